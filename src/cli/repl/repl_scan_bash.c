/* The scanner of Bash: quotes, substitutions, here-documents, and the words that open and close a
 * compound command where a command may begin. */
#include <ctype.h>
#include <string.h>

#include "base/attr.h"
#include "cli/repl/repl_scan.h"

#define DEPTH_MAX 256
#define DOCUMENTS_MAX 8

struct shell {
    const char *from, *at, *end;
    char open[DEPTH_MAX]; /* '"' ')' '}' '`', or the first letter of fi, done, esac */
    size_t depth;
    bool command;         /* a command may begin here */
    bool joined;          /* the line ends in an operator that needs another command */
    struct document {
        struct str word;
        bool tabs; /* <<-: tabs before the end are removed */
    } documents[DOCUMENTS_MAX];
    size_t document_count;
};

/* Opening words, and their closing ones. */
static const struct {
    const char *word;
    char closing;
} openers[] = { { "if", 'f' },    { "for", 'd' },    { "while", 'd' }, { "until", 'd' },
                { "select", 'd' }, { "case", 'e' },  { "{", '}' } };
static const struct {
    const char *word;
    char closing;
} closers[] = { { "fi", 'f' }, { "done", 'd' }, { "esac", 'e' }, { "}", '}' } };
/* A command begins after these. */
static const char *const leaders[] = { "then", "do",   "else", "elif", "time", "!",
                                       "if",   "while", "until", "{",  NULL };

static char top(const struct shell *s)
{
    return s->depth ? s->open[s->depth - 1] : 0;
}

static bool push(struct shell *s, char closing)
{
    if (s->depth == DEPTH_MAX)
        return false;
    s->open[s->depth++] = closing;
    return true;
}

static bool is_end_of_word(char c)
{
    return isspace((unsigned char)c) || strchr(";&|()<>", c) != NULL;
}

/* A word at the place of a command: does it open or close something? */
static void take_command(struct shell *s)
{
    struct str word = { s->at, 0 };
    while (s->at < s->end && !is_end_of_word(*s->at) && !strchr("'\"`$\\", *s->at))
        s->at++;
    word.len = (size_t)(s->at - word.at);
    s->command = false;
    for (size_t i = 0; i < array_len(closers); i++)
        if (str_is(word, closers[i].word) && top(s) == closers[i].closing)
            s->depth--;
    for (size_t i = 0; i < array_len(openers); i++)
        if (str_is(word, openers[i].word))
            push(s, openers[i].closing);
    for (size_t i = 0; leaders[i]; i++)
        s->command = s->command || str_is(word, leaders[i]);
    if (str_is(word, "function")) {
        while (s->at < s->end && (*s->at == ' ' || *s->at == '\t'))
            s->at++;
        while (s->at < s->end && !is_end_of_word(*s->at))
            s->at++;
        s->command = true;
    }
    if (word.len == 0)
        s->at++;
}

/* "<<WORD" or "<<-'WORD'": its lines follow this one. */
static void take_document(struct shell *s)
{
    struct document *document = &s->documents[s->document_count];
    s->at += 2;
    document->tabs = s->at < s->end && *s->at == '-';
    s->at += document->tabs;
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t'))
        s->at++;
    char quote = s->at < s->end && (*s->at == '\'' || *s->at == '"') ? *s->at : 0;
    s->at += quote || (s->at < s->end && *s->at == '\\');
    document->word = (struct str){ s->at, 0 };
    while (s->at < s->end && *s->at != '\n' && (quote ? *s->at != quote : !is_end_of_word(*s->at)))
        s->at++;
    document->word.len = (size_t)(s->at - document->word.at);
    s->at += quote && s->at < s->end && *s->at == quote;
    s->document_count += s->document_count + 1 < DOCUMENTS_MAX;
}

/* After a newline: the lines of every here-document. False if one has no end. */
static bool skip_documents(struct shell *s)
{
    for (size_t i = 0; i < s->document_count; i++) {
        const struct document *document = &s->documents[i];
        for (;;) {
            if (s->at == s->end)
                return false;
            const char *newline = memchr(s->at, '\n', (size_t)(s->end - s->at));
            struct str line = { s->at, (size_t)((newline ? newline : s->end) - s->at) };
            s->at = newline ? newline + 1 : s->end;
            while (document->tabs && line.len > 0 && line.at[0] == '\t') {
                line.at++;
                line.len--;
            }
            if (str_eq(line, document->word))
                break;
        }
    }
    s->document_count = 0;
    return true;
}

/* Inside "...": only its end and substitutions count. */
static bool step_quoted(struct shell *s)
{
    char c = *s->at++;
    if (c == '\\' && s->at < s->end)
        s->at++;
    else if (c == '"')
        s->depth--;
    else if (c == '$' && s->at < s->end && (*s->at == '(' || *s->at == '{')) {
        s->command = *s->at == '(';
        return push(s, *s->at++ == '(' ? ')' : '}');
    }
    return true;
}

static bool step_operator(struct shell *s, char c)
{
    s->at++;
    if (c == '(')
        return push(s, ')') && (s->command = true);
    if (c == ')') {
        if (top(s) == ')')
            s->depth--;
        /* A pattern of case, or "f()", ends here: a command follows. */
        s->command = top(s) == 'e' || (s->at - s->from > 1 && s->at[-2] == '(');
        return true;
    }
    bool joins = c == '|' || (c == '&' && s->at < s->end && *s->at == '&');
    s->at += s->at < s->end && *s->at == c && c != ';';
    s->joined = joins;
    s->command = true;
    return true;
}

/* Quotes and dollar constructs. -1: neither; else as the steps. */
static int step_opening(struct shell *s, char c)
{
    if (c == '\'' || (c == '$' && s->at + 1 < s->end && s->at[1] == '\'')) {
        bool escapes = c == '$';
        for (s->at += 1 + escapes; s->at < s->end && *s->at != '\''; s->at++)
            s->at += escapes && *s->at == '\\' && s->at + 1 < s->end;
        if (s->at >= s->end)
            return 0;
        s->at++;
        return 1;
    }
    if (c == '"') {
        s->at++;
        return push(s, '"');
    }
    if (c == '`') {
        s->at++;
        if (top(s) == '`')
            s->depth--;
        else if (!push(s, '`'))
            return 0;
        s->command = top(s) == '`';
        return 1;
    }
    if (c == '$' && s->at + 1 < s->end && (s->at[1] == '(' || s->at[1] == '{')) {
        s->at += 2;
        s->command = s->at[-1] == '(';
        return push(s, s->at[-1] == '(' ? ')' : '}');
    }
    return -1;
}

static bool step(struct shell *s)
{
    char c = *s->at;
    if (c == '\n') {
        s->at++;
        s->command = true;
        return skip_documents(s);
    }
    if (isspace((unsigned char)c)) {
        s->at++;
        return true;
    }
    if (c == '#' && (s->at == s->from || is_end_of_word(s->at[-1]))) {
        while (s->at < s->end && *s->at != '\n')
            s->at++;
        return true;
    }
    s->joined = false;
    if (c == '\\') {
        s->at += s->at + 1 < s->end ? 2 : 1;
        return s->at < s->end || s->at[-1] != '\n';
    }
    int opened = step_opening(s, c);
    if (opened >= 0) {
        s->command = s->command && opened && top(s) != '"' && top(s) != '}';
        return opened;
    }
    if (strchr(";&|()", c))
        return step_operator(s, c);
    if (c == '<' && s->at + 2 < s->end && s->at[1] == '<') {
        if (s->at[2] == '<')
            s->at += 3;
        else
            take_document(s);
        return true;
    }
    if (s->command) {
        take_command(s);
        return true;
    }
    if (c == '}' && top(s) == '}')
        s->depth--;
    s->at++;
    return true;
}

bool cli_repl_bash_is_whole(struct str text)
{
    struct shell s = { .from = text.at, .at = text.at, .end = text.at + text.len,
                       .command = true };
    while (s.at < s.end) {
        if (!(top(&s) == '"' ? step_quoted(&s) : step(&s)))
            return false;
    }
    return s.depth == 0 && s.document_count == 0 && !s.joined;
}
