/* The checks of rows: does a match hold a secret, and which bytes are it? Pure; any process. */
#include <string.h>

#include "store/redact/redact_int.h"

#define NAME_LOOK_BACK 64
#define CUT_MAX 4096
#define PEM_MAX 32768 /* bytes between the two lines of a block: more than any private key */
#define PEM_LINE 24   /* of base64, without a break: fewer are words of code */

static bool in(char c, const char *set)
{
    return c && strchr(set, c);
}

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

static bool is_base64(char c)
{
    return (is_name(c) && c != '_' && c != '-') || c == '+' || c == '/' || c == '=';
}

bool redact_check_random(struct hit *hit)
{
    struct str run = { hit->text.at + hit->from, hit->until - hit->from };
    return redact_is_random(run) && !memmem(run.at, run.len, "[redacted:", 10);
}

static bool is_env_name(struct str name)
{
    bool upper = false;
    for (size_t i = 0; i < name.len; i++) {
        if (name.at[i] >= 'a' && name.at[i] <= 'z')
            return false;
        upper = upper || (name.at[i] >= 'A' && name.at[i] <= 'Z');
    }
    return upper;
}

/* The whole name around the anchor, up to the sign. */
struct str redact_name_at(const struct hit *hit)
{
    size_t from = hit->anchor, until = hit->anchor;
    while (from > hit->done && hit->anchor - from < NAME_LOOK_BACK &&
           is_name(hit->text.at[from - 1]))
        from--;
    while (until < hit->group[1].from && is_name(hit->text.at[until]))
        until++;
    return (struct str){ hit->text.at + from, until - from };
}

/* The pattern's value is bounded. Once it is a secret, its rest belongs to it. */
static size_t value_end(const struct hit *hit, bool quoted)
{
    size_t until = hit->group[3].until;
    char quote = quoted ? hit->text.at[hit->group[2].until - 1] : 0;
    while (until < hit->text.len) {
        char c = hit->text.at[until];
        if ((c >= 0 && c <= ' ') || (quoted ? c == quote : in(c, "\"'`<>(){}[],;|&\\")))
            break;
        until++;
    }
    /* The backslash of an escaped quote. */
    while (quoted && until > hit->group[3].until && hit->text.at[until - 1] == '\\')
        until--;
    return until;
}

/* Without quotes, among other code: it may be a name. */
static bool is_bare(const struct hit *hit, struct str name, struct str sign, bool is_option)
{
    size_t until = hit->group[3].until;
    char after = until < hit->text.len ? hit->text.at[until] : '\n';
    bool is_env = is_env_name(name) && str_is(sign, "=");
    return !is_env && !is_option && !in(after, "\r\n&");
}

bool redact_check_assigned(struct hit *hit)
{
    struct str name = redact_name_at(hit);
    const struct span *group = hit->group;
    struct str sign = { hit->text.at + group[1].from, group[1].until - group[1].from };
    struct str value = { hit->text.at + group[3].from, group[3].until - group[3].from };
    bool quoted = group[2].until > 0;
    bool is_option = name.len > 2 && name.at[0] == '-' && name.at[1] == '-';
    enum name_class class = redact_name(name);
    if (class == NAME_PLAIN)
        return false;
    if (str_trim(sign).len == 0 && !is_option)
        return false; /* two words of a sentence */
    if (str_is(str_trim(sign), ",") && !quoted)
        return false; /* arguments of a call */
    if (!quoted && group[3].until < hit->text.len && in(hit->text.at[group[3].until], "(["))
        return false; /* token = tokenizer(...) */
    if (!redact_value(class, value, !quoted && is_bare(hit, name, sign, is_option)))
        return false;
    hit->from = group[3].from;
    hit->until = value_end(hit, quoted);
    hit->kind = redact_name_kind(class);
    return true;
}

bool redact_check_authorization(struct hit *hit)
{
    struct str value = { hit->text.at + hit->from, hit->until - hit->from };
    struct span part = redact_credential(value);
    size_t end = hit->until;
    if (part.from == part.until)
        return false;
    /* A long one goes on to its quote or the end of its line; so do members in quotes. */
    bool whole = part.until == value.len;
    bool members = whole && value.at[value.len - 1] == '=' && memchr(value.at, ' ', value.len) &&
                   in(value.at[0], "dDhHoO");
    while (whole && end < hit->text.len && !(hit->text.at[end] >= 0 && hit->text.at[end] < ' ') &&
           (members || !in(hit->text.at[end], " \"'`\\")))
        end++;
    hit->until = whole ? end : hit->from + part.until;
    hit->from += part.from;
    return true;
}

/* Half a secret: random, or a piece that is longer than words are and of mixed letters. */
bool redact_check_half(struct hit *hit)
{
    size_t piece = 0, uppers = 0;
    for (size_t i = hit->from; i < hit->until; i++) {
        char c = hit->text.at[i];
        bool part = is_base64(c) && c != '/' && c != '=';
        uppers = part ? uppers + (c >= 'A' && c <= 'Z') : 0;
        piece = part ? piece + 1 : 0;
        if (piece >= 12 && uppers > 1 && uppers < piece)
            return !memmem(hit->text.at + hit->from, hit->until - hit->from, "[redacted:", 10);
    }
    return redact_check_random(hit);
}

/* The run before the line "... N bytes left out ...". */
bool redact_check_cut(struct hit *hit)
{
    struct str text = hit->text;
    size_t line = hit->anchor;
    while (line > hit->done && text.at[line - 1] >= '0' && text.at[line - 1] <= '9')
        line--;
    if (line < hit->done + 5 || memcmp(text.at + line - 5, "\n... ", 5) != 0)
        return false;
    hit->from = hit->until = line - 5;
    while (hit->from > hit->done && hit->until - hit->from < CUT_MAX &&
           (unsigned char)text.at[hit->from - 1] > ' ')
        hit->from--;
    return hit->until - hit->from >= 8 && redact_check_half(hit);
}

bool redact_check_url(struct hit *hit)
{
    struct str value = { hit->text.at + hit->from, hit->until - hit->from };
    bool digits = value.len <= 5;
    for (size_t i = 0; i < value.len; i++)
        digits = digits && value.at[i] >= '0' && value.at[i] <= '9';
    return !digits && !redact_is_placeholder(value);
}

/* Skips what may stand between two lines of a block: white space, quotes, marks, escapes. */
static size_t skip_break(struct str text, size_t at)
{
    for (size_t end = at + 24; at < text.len && at < end;) {
        bool escape = text.at[at] == '\\' && at + 1 < text.len && in(text.at[at + 1], "nrt");
        if (!escape && !in(text.at[at], " \t\r\n\"',+>|#"))
            break;
        at += escape ? 2 : 1;
    }
    return at;
}

/* The end of the base64 that begins at `at`: long runs, whatever breaks the lines, and a shorter
 * last one. */
static size_t base64_end(struct str text, size_t at)
{
    size_t end = at, runs = 0;
    while (at < text.len) {
        size_t run = at;
        while (run < text.len && is_base64(text.at[run]))
            run++;
        bool is_last = run - at < PEM_LINE;
        bool ends_line = run == text.len || in(text.at[run], "\r\n\"'\\");
        if (run == at || (is_last && (!runs || run - at < 2 || !ends_line)))
            break;
        end = run;
        runs++;
        if (is_last)
            break;
        at = skip_break(text, run);
    }
    return end;
}

/* After the first line: headers such as "Proc-Type: 4,ENCRYPTED", each a whole line. */
static size_t pem_body(struct str text, size_t at)
{
    at = skip_break(text, at);
    for (size_t headers = 0; headers < 6; headers++) {
        size_t colon, end;
        for (colon = at; colon < text.len && colon - at < 24 && is_name(text.at[colon]);)
            colon++;
        if (colon == at || colon == text.len || text.at[colon] != ':')
            break;
        for (end = colon; end < text.len && end - colon < 128 && !in(text.at[end], "\r\n\\");)
            end++;
        if (end == text.len || !in(text.at[end], "\r\n\\"))
            break;
        at = skip_break(text, end);
    }
    return at;
}

static size_t longest_run(struct str text)
{
    size_t longest = 0, run = 0;
    for (size_t i = 0; i < text.len; i++) {
        run = is_base64(text.at[i]) ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    return longest;
}

/* From the first line to the last, or to the end of the base64 where the last is missing. */
bool redact_check_pem(struct hit *hit)
{
    struct str text = hit->text;
    size_t body = hit->until;
    if (hit->next_end < body) {
        const char *found = memmem(text.at + body, text.len - body, "-----END", 8);
        hit->next_end = found ? (size_t)(found - text.at) : text.len;
    }
    size_t until = hit->next_end;
    if (until < text.len && until - body <= PEM_MAX) {
        struct str inside = { text.at + body, until - body };
        if (!memmem(inside.at, inside.len, "-----BEGIN", 10) && longest_run(inside) >= PEM_LINE) {
            size_t rest = text.len - until - 8;
            const char *close = memmem(text.at + until + 8, rest < 64 ? rest : 64, "-----", 5);
            hit->until = close ? (size_t)(close - text.at) + 5 : until + 8;
            return true;
        }
    }
    size_t from = pem_body(text, body), end = base64_end(text, from);
    if (end == from)
        return false;
    hit->until = end;
    return true;
}

/* The last line of a block whose first is missing: the base64 before it. */
bool redact_check_pem_end(struct hit *hit)
{
    struct str text = hit->text;
    size_t from = hit->anchor, until = from;
    while (from > hit->done && until - from < PEM_MAX &&
           (is_base64(text.at[from - 1]) || in(text.at[from - 1], "\r\n\\")))
        from--;
    while (from < until && in(text.at[from], "\r\n\\"))
        from++;
    if (longest_run((struct str){ text.at + from, until - from }) < PEM_LINE)
        return false;
    hit->from = from;
    return true;
}
