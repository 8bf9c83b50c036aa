/* What the code says of itself: string literals, and what print shows without computing anything.
 * Process: the task's. Pure.
 * A small reader of Python: strings with their prefixes, comments, names that are assigned a
 * literal once and never anything else. What it does not understand counts as computed. */
#include "agent/verify/check_scan.h"
#include "agent/verify/evidence.h"
#include "base/attr.h"
#include "base/buf.h"

#define CODE_MAX (1u << 20)
#define CONSTANTS_MAX 256
#define TEXT_MAX 4096

struct constants {
    struct {
        struct str name, text;
        bool quoted;
    } at[CONSTANTS_MAX];
    size_t count;
};

struct reader {
    struct str code;
    size_t at;
};

static char peek(const struct reader *in, size_t ahead)
{
    return in->at + ahead < in->code.len ? in->code.at[in->at + ahead] : '\0';
}

static bool name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
}

/* A string with its prefix at the reader: its inner bytes. The reader moves behind it. */
static bool read_string(struct reader *in, struct str *out, bool *out_format)
{
    size_t prefix = 0;
    *out_format = false;
    while (prefix < 2 && peek(in, prefix) && strchr("rRbBuUfF", peek(in, prefix))) {
        *out_format = *out_format || (peek(in, prefix) | 32) == 'f';
        prefix++;
    }
    char quote = peek(in, prefix);
    if (quote != '"' && quote != '\'')
        return false;
    bool triple = peek(in, prefix + 1) == quote && peek(in, prefix + 2) == quote;
    size_t start = in->at + prefix + (triple ? 3 : 1), i = start;
    for (; i < in->code.len; i++) {
        char c = in->code.at[i];
        if (c == '\\') {
            i++;
            continue;
        }
        bool ends =
            c == quote && (!triple || (i + 2 < in->code.len && in->code.at[i + 1] == quote &&
                                       in->code.at[i + 2] == quote));
        if (ends || (!triple && c == '\n'))
            break;
    }
    i = i < in->code.len ? i : in->code.len;
    *out = (struct str){ in->code.at + start, i - start };
    in->at = i + (triple ? 3 : 1);
    in->at = in->at < in->code.len ? in->at : in->code.len;
    return true;
}

/* Escapes that matter for what is printed. */
static void add_unescaped(struct buf *out, struct str raw)
{
    for (size_t i = 0; i < raw.len; i++) {
        char c = raw.at[i];
        if (c == '\\' && i + 1 < raw.len) {
            c = raw.at[++i];
            c = c == 'n' ? '\n' : c == 't' ? '\t' : c;
        }
        buf_add(out, &c, 1);
    }
}

/* A lone word or number in quotes is a key or a filter more often than a claim. */
static bool says_something(struct str line)
{
    bool letter = false, more = false;
    for (size_t i = 0; i < line.len; i++) {
        char c = line.at[i];
        more = more || c == ' ' || (c >= '0' && c <= '9');
        letter = letter || (name_char(c) && !(c >= '0' && c <= '9'));
    }
    return letter && more;
}

static void add_lines(struct agent_tally *literals, struct str text, bool all)
{
    while (text.len) {
        const char *end = memchr(text.at, '\n', text.len);
        size_t len = end ? (size_t)(end - text.at) : text.len;
        struct str line = agent_scan_trim((struct str){ text.at, len });
        if (line.len && (all || says_something(line)))
            agent_tally_add(literals, agent_scan_hash(line, 0), 0);
        text.at += len + (end != NULL);
        text.len -= len + (end != NULL);
    }
}

static int find(const struct constants *constants, struct str name)
{
    for (size_t i = 0; i < constants->count; i++) {
        if (str_eq(constants->at[i].name, name))
            return (int)i;
    }
    return -1;
}

static struct str read_name(struct reader *in)
{
    size_t start = in->at;
    while (name_char(peek(in, 0)))
        in->at++;
    return (struct str){ in->code.at + start, in->at - start };
}

static void skip_spaces(struct reader *in, const char *spaces)
{
    while (peek(in, 0) && strchr(spaces, peek(in, 0)))
        in->at++;
}

static struct str read_digits(struct reader *in)
{
    size_t start = in->at;
    in->at += peek(in, 0) == '-';
    while (peek(in, 0) && strchr("0123456789._", peek(in, 0)))
        in->at++;
    return (struct str){ in->code.at + start, in->at - start };
}

static bool starts_number(const struct reader *in)
{
    char c = peek(in, 0);
    return (c >= '0' && c <= '9') || (c == '-' && peek(in, 1) >= '0' && peek(in, 1) <= '9');
}

/* One argument or value at the reader, as text, if nothing is computed for it. */
static bool read_plain(struct reader *in, const struct constants *constants, struct buf *out)
{
    struct str text;
    bool format;
    if (read_string(in, &text, &format)) {
        if (!format) {
            add_unescaped(out, text);
            return true;
        }
        for (size_t i = 0; i < text.len; i++) {
            if (text.at[i] != '{') {
                buf_add(out, text.at + i, 1);
                continue;
            }
            size_t end = i + 1;
            while (end < text.len && name_char(text.at[end]))
                end++;
            int known = find(constants, (struct str){ text.at + i + 1, end - i - 1 });
            if (known < 0 || end >= text.len || text.at[end] != '}')
                return false;
            buf_add_str(out, constants->at[known].text);
            i = end;
        }
        return true;
    }
    if (starts_number(in)) {
        buf_add_str(out, read_digits(in));
        return true;
    }
    struct str name = read_name(in);
    if (peek(in, 0) == '(' &&
        (str_is(name, "float") || str_is(name, "int") || str_is(name, "str"))) {
        in->at++;
        skip_spaces(in, " ");
        char next = peek(in, 0);
        if (!(next == '"' || next == '\'' || starts_number(in)) || !read_plain(in, constants, out))
            return false;
        skip_spaces(in, " ");
        bool closed = peek(in, 0) == ')';
        in->at += closed;
        return closed;
    }
    int known = find(constants, name);
    if (known >= 0)
        buf_add_str(out, constants->at[known].text);
    return known >= 0;
}

/* print(...) whose arguments are all plain: the line that it shows. */
static void fold_print(struct reader in, const struct constants *constants,
                       struct agent_tally *literals)
{
    own_buf line = BUF_INIT(TEXT_MAX);
    for (;;) {
        skip_spaces(&in, " \t\n");
        if (!read_plain(&in, constants, &line))
            return;
        skip_spaces(&in, " \t\n");
        if (peek(&in, 0) == ')')
            break;
        if (peek(&in, 0) != ',')
            return;
        in.at++;
        buf_add_text(&line, " ");
    }
    add_lines(literals, buf_str(&line), true);
}

/* NAME = LITERAL to the end of the line. A second assignment of any kind takes it back. */
static void note_assignment(struct reader in, struct str name, struct constants *constants)
{
    int known = find(constants, name);
    struct reader at = in;
    skip_spaces(&at, " ");
    bool quoted = peek(&at, 0) == '"' || peek(&at, 0) == '\'', format = false;
    struct str text = STR_NONE;
    bool literal = quoted ? read_string(&at, &text, &format) : starts_number(&at);
    if (literal && !quoted)
        text = read_digits(&at);
    skip_spaces(&at, " \t\r;");
    literal = literal && !format && (!peek(&at, 0) || strchr("\n#", peek(&at, 0)));
    if (known >= 0) {
        constants->at[known].name = literal && str_eq(text, constants->at[known].text)
                                        ? name : STR_NONE;
    } else if (literal && constants->count < CONSTANTS_MAX) {
        constants->at[constants->count].name = name;
        constants->at[constants->count].text = text;
        constants->at[constants->count++].quoted = quoted;
    }
}

/* Walk over the code: first without `literals`, to learn the constants, then with them. */
static void walk(struct str code, struct constants *constants, struct agent_tally *literals)
{
    struct reader in = { code, 0 };
    struct str text;
    bool format;
    while (in.at < code.len) {
        if (peek(&in, 0) == '#') {
            while (peek(&in, 0) && peek(&in, 0) != '\n')
                in.at++;
        } else if (read_string(&in, &text, &format)) {
            own_buf plain = BUF_INIT(CODE_MAX);
            add_unescaped(&plain, text);
            if (literals && !(format && memchr(text.at, '{', text.len)))
                add_lines(literals, buf_str(&plain), false);
        } else if (name_char(peek(&in, 0))) {
            struct str name = read_name(&in);
            struct reader next = in;
            skip_spaces(&next, " ");
            char c = peek(&next, 0), d = peek(&next, 1);
            bool changes = c && strchr("+-*/%|&", c) && (d == '=' || peek(&next, 2) == '=');
            next.at++;
            if (literals && c == '(' && str_is(name, "print"))
                fold_print(next, constants, literals);
            else if (!literals && c == '=' && d != '=')
                note_assignment(next, name, constants);
            else if (!literals && (changes || (c == 'i' && d == 'n') || c == ',') &&
                     find(constants, name) >= 0)
                constants->at[find(constants, name)].name = STR_NONE;
        } else {
            in.at++;
        }
    }
}

/* The last line, if it is a value as it stands: the cell shows it. */
static void fold_last(struct str code, const struct constants *constants,
                      struct agent_tally *literals)
{
    struct str rest = agent_scan_trim(code);
    size_t start = rest.len;
    while (start > 0 && rest.at[start - 1] != '\n')
        start--;
    struct reader in = { rest, start };
    own_buf text = BUF_INIT(TEXT_MAX);
    if (!read_plain(&in, constants, &text) || in.at < rest.len)
        return;
    add_lines(literals, buf_str(&text), true);
    own_buf quoted = BUF_INIT(TEXT_MAX + 2);
    buf_printf(&quoted, "'%s'", text.at ? text.at : "");
    add_lines(literals, buf_str(&quoted), true);
}

void agent_evidence_add_literals(struct agent_tally *literals, struct str code)
{
    struct constants *constants = buf_alloc_zero(1, sizeof *constants);
    code.len = code.len > CODE_MAX ? CODE_MAX : code.len;
    walk(code, constants, NULL);
    walk(code, constants, literals);
    fold_last(code, constants, literals);
    for (size_t i = 0; i < constants->count; i++) {
        own_buf line = BUF_INIT(CODE_MAX + TEXT_MAX);
        const char *quote = constants->at[i].quoted ? "'" : "";
        buf_printf(&line, "%.*s = %s%.*s%s", (int)constants->at[i].name.len,
                   constants->at[i].name.at ? constants->at[i].name.at : "", quote,
                   (int)constants->at[i].text.len, constants->at[i].text.at, quote);
        add_lines(literals, buf_str(&line), true);
    }
    free(constants);
}
