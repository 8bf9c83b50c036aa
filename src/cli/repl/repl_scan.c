/* Small scanners, one for each language. They know strings, comments, brackets and blocks, and no
 * more grammar. */
#include "cli/repl/repl_scan.h"

#include <ctype.h>
#include <string.h>

#include "base/attr.h"

#define DEPTH_MAX 256

struct scan {
    const char *at, *end;
    char open[DEPTH_MAX]; /* the closing brackets that are due */
    size_t depth;
};

static bool looks_at(const struct scan *s, const char *text)
{
    size_t len = strlen(text);
    return (size_t)(s->end - s->at) >= len && memcmp(s->at, text, len) == 0;
}

static bool push(struct scan *s, char closing)
{
    if (s->depth == DEPTH_MAX)
        return false;
    s->open[s->depth++] = closing;
    return true;
}

static char top(const struct scan *s)
{
    return s->depth ? s->open[s->depth - 1] : 0;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* The word at the cursor, which moves behind it. */
static struct str take_word(struct scan *s)
{
    struct str word = { s->at, 0 };
    while (s->at < s->end && is_word(*s->at))
        s->at++;
    word.len = (size_t)(s->at - word.at);
    return word;
}

static bool is_one_of(struct str word, const char *const *list)
{
    for (; *list; list++)
        if (str_is(word, *list))
            return true;
    return false;
}

static void skip_line(struct scan *s)
{
    while (s->at < s->end && *s->at != '\n')
        s->at++;
}

/* After the closing quote: 1. At the end without one: 0. A forbidden newline: -1. */
static int skip_string(struct scan *s, const char *quote, bool escapes, bool lines)
{
    s->at += strlen(quote);
    for (; s->at < s->end; s->at++) {
        if (looks_at(s, quote)) {
            s->at += strlen(quote);
            return 1;
        }
        if (*s->at == '\n' && !lines)
            return -1;
        if (*s->at == '\\' && escapes && s->at + 1 < s->end)
            s->at++;
    }
    return 0;
}

/* An opening or closing bracket. False: one too many of either. */
static bool take_bracket(struct scan *s, char c)
{
    static const char pairs[] = "()[]{}";
    const char *found = strchr(pairs, c);
    if (!found || !c)
        return true;
    if ((found - pairs) % 2 == 0)
        return push(s, found[1]);
    if (top(s) != c)
        return false;
    s->depth--;
    return true;
}

/* --- python --- */

struct python_line {
    bool begun;  /* this logical line is not empty */
    bool opens;  /* this line begins a block */
    bool indented;
    char last;   /* its last character */
};

static const char *const python_blocks[] = { "if",  "for",  "while", "def", "class",
                                             "try", "with", "async", NULL };

static int python_quote(struct scan *s)
{
    char one[] = { *s->at, 0 }, three[] = { *s->at, *s->at, *s->at, 0 };
    if (looks_at(s, three))
        return skip_string(s, three, /* escapes= */ true, /* lines= */ true);
    return skip_string(s, one, /* escapes= */ true, /* lines= */ false);
}

static bool is_blank_last_line(struct str text)
{
    size_t at = text.len;
    if (at > 0 && text.at[at - 1] == '\n')
        at--;
    while (at > 0 && (text.at[at - 1] == ' ' || text.at[at - 1] == '\t'))
        at--;
    return at == 0 || text.at[at - 1] == '\n';
}

static void python_first(struct scan *s, struct str text, struct python_line *line)
{
    const char *from = s->at;
    line->begun = true;
    line->indented = s->at > text.at && s->at[-1] != '\n';
    line->opens = *s->at == '@' || is_one_of(take_word(s), python_blocks);
    s->at = from;
}

static bool python_is_whole(struct scan *s, struct str text, bool pasted)
{
    struct python_line line = { 0 };
    bool block = false, flat = false;
    while (s->at < s->end) {
        char c = *s->at;
        if (c == '\n') {
            if (s->depth == 0) {
                bool opens = line.opens || line.last == ':';
                block = block || opens;
                flat = line.begun ? !line.indented && !opens : flat;
                line = (struct python_line){ 0 };
            }
        } else if (c == '#') {
            skip_line(s);
            continue;
        } else if (c == '\\' && s->at + 1 < s->end && s->at[1] == '\n') {
            s->at += 2;
            if (s->at == s->end)
                return false;
            continue;
        } else if (!isspace((unsigned char)c)) {
            if (!line.begun)
                python_first(s, text, &line);
            line.last = c;
            if (c == '"' || c == '\'') {
                int rc = python_quote(s);
                if (rc <= 0)
                    return rc < 0;
                continue;
            }
            if (!take_bracket(s, c))
                return true;
        }
        s->at++;
    }
    return s->depth == 0 && (!block || is_blank_last_line(text) || (pasted && flat));
}

/* --- javascript --- */

/* A slash divides after a value, and begins a pattern elsewhere. */
static bool begins_pattern(const char *from, const char *at)
{
    static const char *const before[] = { "return", "typeof", "case", "in", "of", NULL };
    while (at > from && isspace((unsigned char)at[-1]))
        at--;
    if (at == from)
        return true;
    if (!is_word(at[-1]))
        return !strchr(")]}\"'`$", at[-1]);
    const char *end = at;
    while (at > from && is_word(at[-1]))
        at--;
    return is_one_of((struct str){ at, (size_t)(end - at) }, before);
}

static void skip_pattern(struct scan *s)
{
    bool in_class = false;
    for (s->at++; s->at < s->end && *s->at != '\n'; s->at++) {
        if (*s->at == '\\' && s->at + 1 < s->end)
            s->at++;
        else if (*s->at == '[' || *s->at == ']')
            in_class = *s->at == '[';
        else if (*s->at == '/' && !in_class)
            break;
    }
    if (s->at < s->end && *s->at == '/')
        s->at++;
}

/* Inside `...`: up to its end or to "${". False at the end of the text. */
static bool javascript_template(struct scan *s)
{
    for (; s->at < s->end; s->at++) {
        if (*s->at == '\\' && s->at + 1 < s->end) {
            s->at++;
        } else if (*s->at == '`') {
            s->at++;
            s->depth--;
            return true;
        } else if (looks_at(s, "${")) {
            s->at += 2;
            return push(s, '}');
        }
    }
    return false;
}

/* One step outside templates. -1: continue; else the answer. */
static int javascript_step(struct scan *s, const char *from)
{
    char c = *s->at;
    if (c == '"' || c == '\'') {
        char quote[] = { c, 0 };
        int rc = skip_string(s, quote, /* escapes= */ true, /* lines= */ false);
        return rc > 0 ? -1 : rc < 0;
    }
    if (looks_at(s, "//")) {
        skip_line(s);
        return -1;
    }
    if (looks_at(s, "/*")) {
        const char *found = memmem(s->at + 2, (size_t)(s->end - s->at - 2), "*/", 2);
        if (!found)
            return 0;
        s->at = found + 2;
        return -1;
    }
    if (c == '/' && begins_pattern(from, s->at)) {
        skip_pattern(s);
        return -1;
    }
    s->at++;
    if (c == '`')
        return push(s, '`') ? -1 : 1;
    return take_bracket(s, c) ? -1 : 1;
}

static bool ends_in_backslash(struct str text)
{
    return text.len > 1 && text.at[text.len - 1] == '\n' && text.at[text.len - 2] == '\\';
}

static bool javascript_is_whole(struct scan *s, struct str text)
{
    while (s->at < s->end) {
        if (top(s) == '`') {
            if (!javascript_template(s))
                return false;
            continue;
        }
        int rc = javascript_step(s, text.at);
        if (rc >= 0)
            return rc > 0;
    }
    return s->depth == 0 && !ends_in_backslash(text);
}

bool cli_repl_is_whole(enum request_language language, struct str text, bool pasted)
{
    struct scan s = { .at = text.at, .end = text.at + text.len };
    if (language == REQUEST_PYTHON)
        return python_is_whole(&s, text, pasted);
    if (request_is_node(language))
        return javascript_is_whole(&s, text);
    return cli_repl_bash_is_whole(text);
}
