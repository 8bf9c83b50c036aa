/* The text of a search, made into an expression of FTS5. Pure. Any process.
 *
 * Nothing of the text is read as FTS5's syntax: each term is written as a string in double quotes,
 * and no term has a double quote in it. */
#include <ctype.h>

#include "store/records/look_int.h"

struct term {
    struct str text;
    bool prefix; /* a `*` follows */
};

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* FTS5 makes tokens of letters and digits; every byte of a longer character may be one. */
static bool is_token(char c)
{
    return isalnum((unsigned char)c) || (unsigned char)c >= 0x80;
}

static bool has_token(struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (is_token(text.at[i]))
            return true;
    return false;
}

/* Bytes of the token that the text ends in. */
static size_t last_token(struct str text)
{
    size_t len = 0;
    while (len < text.len && is_token(text.at[text.len - 1 - len]))
        len++;
    return len;
}

/* Takes the next term from the text; false: there is none. */
static bool next_term(struct str *text, struct term *out)
{
    const char *at = text->at, *end = text->at + text->len;
    while (at < end && is_space(*at))
        at++;
    if (at == end)
        return false;
    bool quoted = *at == '"';
    const char *from = at + quoted;
    at = from;
    while (at < end && *at != '"' && (quoted || !is_space(*at)))
        at++;
    *out = (struct term){ { from, (size_t)(at - from) }, false };
    if (quoted) {
        at += at < end;
        out->prefix = at < end && *at == '*';
        at += out->prefix;
    } else if (out->text.len > 0 && at[-1] == '*') {
        out->prefix = true;
        while (out->text.len > 0 && out->text.at[out->text.len - 1] == '*')
            out->text.len--;
    }
    *text = (struct str){ at, (size_t)(end - at) };
    return true;
}

static int check_prefix(const struct term *term, struct err *err)
{
    if (!term->prefix || last_token(term->text) >= LOOK_PREFIX_MIN)
        return 0;
    err_input(err, "text", NULL, "3 letters or digits before a *",
              "the search '%.*s*' has too little before its '*'", (int)str_cut_utf8(term->text, 80),
              term->text.at);
    err_hint(err, "write at least %d letters of the word, as in divi*", LOOK_PREFIX_MIN);
    return -1;
}

static int check_text(struct str text, struct err *err)
{
    if (text.len > LOOK_TEXT_MAX)
        return err_input(err, "text", NULL, "1 to 1000 bytes", "the search has %zu bytes",
                         text.len);
    if (memchr(text.at, '\0', text.len) || !str_is_utf8(text))
        return err_input(err, "text", NULL, "UTF-8 without NUL", "the search is not text");
    return 0;
}

int look_words(struct str text, struct buf *out, struct err *err)
{
    struct term term;
    int count = 0;
    if (text.len == 0)
        text = STR("");
    if (check_text(text, err) < 0)
        return -1;
    while (next_term(&text, &term)) {
        if (!has_token(term.text))
            continue; /* the index has no punctuation */
        if (check_prefix(&term, err) < 0)
            return -1;
        if (++count > LOOK_TERMS_MAX)
            return err_input(err, "text", NULL, "at most 32 words and phrases",
                             "the search has more than %d words and phrases", LOOK_TERMS_MAX);
        buf_add_text(out, count > 1 ? " \"" : "\"");
        buf_add_str(out, term.text);
        buf_add_text(out, term.prefix ? "\" *" : "\"");
    }
    if (count > 0)
        return 0;
    err_input(err, "text", NULL, "a word", "the search has no word");
    err_hint(err, "search for letters or digits; punctuation is not in the index");
    return -1;
}

/* The same as the expression of `tags` in the view `texts` (store/db/schema.c). */
bool look_tag(struct buf *out, char kind, const char *value)
{
    buf_printf(out, "\"%c", kind);
    for (; *value; value++) {
        if (!isalnum((unsigned char)*value) && *value != '_')
            return false;
        if (*value != '_')
            buf_add(out, value, 1);
    }
    buf_add_text(out, "\"");
    return true;
}
