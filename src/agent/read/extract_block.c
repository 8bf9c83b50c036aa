/* Finds where code begins and ends in a reply. Pure. A close mark counts at the start of a line or
 * where Python cannot have it, but never inside a string literal: code that writes markdown or HTML
 * holds such marks. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "agent/read/extract_int.h"
#include "base/attr.h"

/* Blocks of other languages that are skipped: replies have few, and each costs a search of the
 * rest. */
#define FOREIGN_MAX 64

static const struct {
    const char *open, *close; /* without '<', and without what follows the name */
} tags[] = {
    { "code", "</code>" },
    { "execute", "</execute>" },
    { "python", "</python>" },
    { "tool_code", "</tool_code>" },
    { "execute_python", "</execute_python>" },
    { "execute_ipython", "</execute_ipython>" },
    { "parameter name=\"code\"", "</parameter>" },
    { "parameter=code", "</parameter>" },
};
static const char *const languages[] = { "python", "py", "python3", "ipython", "tool_code", "code",
                                         "{python}", "execute", "pycon" };

static bool starts(struct str text, size_t at, const char *with)
{
    size_t len = strlen(with);
    return at + len <= text.len && strncasecmp(text.at + at, with, len) == 0;
}

size_t agent_extract_line_end(struct str text, size_t at)
{
    const char *end = at < text.len ? memchr(text.at + at, '\n', text.len - at) : NULL;
    return end ? (size_t)(end - text.at) : text.len;
}

static size_t skip_blanks(struct str text, size_t at)
{
    while (at < text.len && (text.at[at] == ' ' || text.at[at] == '\t'))
        at++;
    return at;
}

static bool is_blank(struct str text, size_t from, size_t to)
{
    for (; from < to; from++)
        if (!isspace((unsigned char)text.at[from]))
            return false;
    return true;
}

/* --- inside Python --- */

/* Follows strings only to know whether a mark is in one. */
struct scan {
    char quote;   /* 0: outside strings */
    bool triple;
    bool comment; /* of this line */
};

static size_t step(struct scan *scan, struct str text, size_t at)
{
    char c = text.at[at];
    bool three = at + 2 < text.len && text.at[at + 1] == c && text.at[at + 2] == c;
    if (c == '\n') {
        scan->comment = false;
        if (!scan->triple)
            scan->quote = 0;
    } else if (scan->quote && c == '\\' && at + 1 < text.len && text.at[at + 1] != '\n') {
        return 2;
    } else if (scan->quote && c == scan->quote && (!scan->triple || three)) {
        size_t taken = scan->triple ? 3 : 1;
        *scan = (struct scan){ 0 };
        return taken;
    } else if (!scan->quote && !scan->comment && (c == '"' || c == '\'')) {
        scan->quote = c;
        scan->triple = three;
        return three ? 3 : 1;
    } else if (!scan->quote && c == '#') {
        scan->comment = true;
    }
    return 1;
}

static bool closes(const struct scan *scan, struct str text, size_t line, size_t at,
                   const char *mark)
{
    size_t after = at + strlen(mark);
    if (!starts(text, at, mark) || scan->quote)
        return false;
    bool is_tag = mark[0] == '<';
    bool starts_line = is_blank(text, line, at);
    bool ends_line = is_blank(text, after, agent_extract_line_end(text, after));
    if (!is_tag)
        return starts_line && ends_line;
    return starts_line || ends_line || !scan->comment;
}

/* The position of the code's close mark; false if there is none. */
static bool find_close(struct str text, size_t from, const char *mark, size_t *out)
{
    struct scan scan = { 0 };
    size_t line = from;
    for (size_t at = from; at < text.len; at += step(&scan, text, at)) {
        if (at > from && text.at[at - 1] == '\n')
            line = at;
        if (text.at[at] == mark[0] && closes(&scan, text, line, at, mark)) {
            *out = at;
            return true;
        }
    }
    /* A quote is never closed: strings are unknown, but lines are not. */
    for (size_t at = from; at < text.len; at = agent_extract_line_end(text, at) + 1) {
        size_t word = skip_blanks(text, at);
        if (starts(text, word, mark)) {
            *out = word;
            return true;
        }
    }
    return false;
}

/* Code without a close mark ends with the text, or where the model imitates the engine. */
static size_t open_end(struct str text, size_t from)
{
    static const char *const invented[] = { "Observation:", "<observation>", "<|eom_id|>",
                                            "<|im_end|>", "<end_code>", "```", "<thought>" };
    for (size_t at = from; at < text.len; at = agent_extract_line_end(text, at) + 1)
        for (size_t i = 0; at > from && i < array_len(invented); i++)
            if (starts(text, skip_blanks(text, at), invented[i]))
                return at;
    return text.len;
}

/* --- marks --- */

/* The end of `<name>` or `<name lang="...">`; 0: not here. */
static size_t open_tag(struct str text, size_t at, const char *name)
{
    size_t after = at + 1 + strlen(name);
    if (!starts(text, at + 1, name) || after >= text.len || !strchr("> ", text.at[after]))
        return 0;
    while (after < text.len && text.at[after] != '>' && text.at[after] != '\n')
        after++;
    return after < text.len && text.at[after] == '>' ? after + 1 : 0;
}

/* Anywhere except in a sentence's backticks. */
static bool tag_at(struct str text, size_t at, const char *name, const char *close,
                   struct agent_extract_block *out)
{
    size_t from = at > 0 && text.at[at - 1] == '`' ? 0 : open_tag(text, at, name), to;
    if (!from)
        return false;
    bool closed = find_close(text, from, close, &to);
    if (!closed)
        to = open_end(text, from);
    *out = (struct agent_extract_block){ at, closed ? to + strlen(close) : to, from, to };
    return true;
}

static bool is_language(struct str info)
{
    for (size_t i = 0; i < array_len(languages); i++)
        if (info.len == strlen(languages[i]) && strncasecmp(info.at, languages[i], info.len) == 0)
            return true;
    return false;
}

/* A fence at the start of a line; `info` is the word after it. */
static bool fence_at(struct str text, size_t line, struct str *info,
                     struct agent_extract_block *out)
{
    size_t at = skip_blanks(text, line), ticks = at;
    char mark = at < text.len ? text.at[at] : 0;
    if (mark != '`' && mark != '~')
        return false;
    while (at < text.len && text.at[at] == mark)
        at++;
    if (at - ticks < 3 || at - ticks > 16)
        return false;
    char close[20] = { 0 };
    memset(close, mark, at - ticks);
    size_t end = agent_extract_line_end(text, at), word = skip_blanks(text, at), to;
    *info = (struct str){ text.at + word, 0 };
    while (word + info->len < end && !isspace((unsigned char)text.at[word + info->len]))
        info->len++;
    size_t from = end < text.len ? end + 1 : end;
    bool closed = find_close(text, from, close, &to);
    if (!closed)
        to = open_end(text, from);
    *out = (struct agent_extract_block){ line, closed ? agent_extract_line_end(text, to) : to, from,
                                         to };
    return true;
}

static bool block_at(struct str text, size_t at, bool line_start, struct agent_extract_block *out,
                     size_t *skip)
{
    struct str info;
    if (text.at[at] == '<') {
        for (size_t i = 0; i < array_len(tags); i++)
            if (tag_at(text, at, tags[i].open, tags[i].close, out))
                return true;
        if (starts(text, at, "<|python_tag|>")) {
            size_t from = at + strlen("<|python_tag|>"), to = open_end(text, from);
            *out = (struct agent_extract_block){ at, to, from, to };
            return true;
        }
    }
    if (!line_start || !fence_at(text, at, &info, out))
        return false;
    struct str inside = { text.at + out->from, out->to - out->from };
    if (is_language(info) || (info.len == 0 && agent_extract_is_pythonic(inside)))
        return true;
    *skip = out->end; /* another language's: its content is text */
    return false;
}

bool agent_extract_is_foreign(struct str text)
{
    static const char *const names[] = { "bash", "sh",  "shell", "zsh", "console", "javascript",
                                         "js",   "sql", "r" };
    struct agent_extract_block block;
    struct str info;
    size_t at = 0;
    while (at < text.len && !fence_at(text, at, &info, &block))
        at = agent_extract_line_end(text, at) + 1;
    size_t before = at;
    while (before > 0 && at < text.len && isspace((unsigned char)text.at[before - 1]))
        before--;
    if (at >= text.len || (before > 0 && text.at[before - 1] != ':') ||
        !is_blank(text, block.end, text.len))
        return false;
    for (size_t i = 0; i < array_len(names); i++)
        if (info.len == strlen(names[i]) && strncasecmp(info.at, names[i], info.len) == 0)
            return true;
    return false;
}

bool agent_extract_find(struct str text, size_t at, struct agent_extract_block *out)
{
    bool line_start = at == 0 || text.at[at - 1] == '\n';
    int foreign = 0;
    while (at < text.len && foreign < FOREIGN_MAX) {
        size_t skip = 0;
        if ((line_start || text.at[at] == '<') && block_at(text, at, line_start, out, &skip))
            return true;
        foreign += skip > 0;
        at = skip > at ? skip : at + 1;
        line_start = at > 0 && at <= text.len && text.at[at - 1] == '\n';
    }
    return false;
}

bool agent_extract_tag(struct str text, const char *name, struct agent_extract_block *out)
{
    for (size_t at = 0; at < text.len; at++) {
        if (text.at[at] != '<' || (at > 0 && text.at[at - 1] == '`'))
            continue;
        char open[32], close[32];
        snprintf(open, sizeof open, "<%s>", name);
        snprintf(close, sizeof close, "</%s>", name);
        if (!starts(text, at, open))
            continue;
        size_t from = at + strlen(open), to = from;
        while (to < text.len && !starts(text, to, close))
            to++;
        bool closed = to < text.len;
        *out = (struct agent_extract_block){ at, closed ? to + strlen(close) : to, from, to };
        return true;
    }
    return false;
}

bool agent_extract_named(struct str text, const char *name, struct agent_extract_block *out)
{
    if (agent_extract_tag(text, name, out))
        return true;
    int foreign = 0;
    for (size_t at = 0; at < text.len && foreign < FOREIGN_MAX;
         at = agent_extract_line_end(text, at) + 1) {
        struct str info;
        if (!fence_at(text, at, &info, out))
            continue;
        if (info.len == strlen(name) && strncasecmp(info.at, name, info.len) == 0)
            return true;
        at = out->end > at ? out->end - 1 : at;
        foreign++;
    }
    return false;
}
