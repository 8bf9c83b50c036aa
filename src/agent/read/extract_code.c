/* Cleans text that may be Python, and tells it from prose. Pure. Doubtful text stays as it is: the
 * check before running judges it better than a guess here. */
#include <ctype.h>
#include <string.h>

#include "agent/read/extract_int.h"
#include "base/attr.h"

#define CODE_MAX (1u << 20)

static bool line_starts(struct str line, const char *with)
{
    size_t len = strlen(with);
    return line.len >= len && memcmp(line.at, with, len) == 0;
}

static bool next_line(struct str text, size_t *at, struct str *out)
{
    if (*at >= text.len)
        return false;
    size_t end = agent_extract_line_end(text, *at);
    *out = (struct str){ text.at + *at, end - *at };
    if (out->len && out->at[out->len - 1] == '\r')
        out->len--;
    *at = end + 1;
    return true;
}

/* --- cleaning --- */

/* Lines that markdown, LaTeX and chat templates leave at the edges of code. */
static bool is_debris(struct str line)
{
    static const char *const marks[] = { "```", "~~~", "$$", "\\[", "\\]", "\\begin{", "\\end{",
                                         "</code>", "</execute>", "<end_code>", "<|eom_id|>",
                                         "<|eot_id|>", "<|im_end|>", "%%python" };
    struct str text = str_trim(line);
    for (size_t i = 0; i < array_len(marks); i++)
        if (line_starts(text, marks[i]))
            return true;
    return str_is(text, "python") || str_is(text, "py");
}

/* A template's token at the very end: <|eom_id|>. */
static struct str without_token(struct str code)
{
    const char *open = code.len > 4 ? memrchr(code.at, '<', code.len) : NULL;
    if (open && code.at[code.len - 1] == '>' && code.at[code.len - 2] == '|' && open[1] == '|')
        code.len = (size_t)(open - code.at);
    return code;
}

static struct str without_edges(struct str code)
{
    for (;;) {
        size_t at = 0;
        struct str line;
        if (!next_line(code, &at, &line) || (str_trim(line).len && !is_debris(line)))
            break;
        size_t drop = at < code.len ? at : code.len;
        code.at += drop;
        code.len -= drop;
    }
    for (;;) {
        while (code.len && isspace((unsigned char)code.at[code.len - 1]))
            code.len--;
        code = without_token(code);
        size_t begin = code.len;
        while (begin > 0 && code.at[begin - 1] != '\n')
            begin--;
        struct str last = { code.at + begin, code.len - begin };
        if (!last.len || !is_debris(last))
            return code;
        code.len = begin;
    }
}

/* Pasted from an interpreter: ">>> " and "... " before every statement. */
static bool has_prompts(struct str code)
{
    return line_starts(str_trim(code), ">>> ") || line_starts(str_trim(code), "In [");
}

static bool prompt_cut(struct str *line)
{
    struct str text = str_trim(*line);
    const char *colon = line_starts(text, "In [") ? memchr(text.at, ':', text.len) : NULL;
    if (colon) {
        size_t cut = (size_t)(colon - text.at) + 1;
        cut += cut < text.len && text.at[cut] == ' ';
        *line = (struct str){ text.at + cut, text.len - cut };
        return true;
    }
    if (!line_starts(text, ">>>") && !line_starts(text, "..."))
        return false;
    size_t cut = text.len > 3 && text.at[3] == ' ' ? 4 : 3;
    *line = (struct str){ text.at + cut, text.len - cut };
    return true;
}

static size_t indent_of(struct str line)
{
    size_t at = 0;
    while (at < line.len && (line.at[at] == ' ' || line.at[at] == '\t'))
        at++;
    return at;
}

static size_t common_indent(struct str code)
{
    size_t at = 0, least = SIZE_MAX;
    struct str line;
    while (next_line(code, &at, &line))
        if (str_trim(line).len && indent_of(line) < least)
            least = indent_of(line);
    return least == SIZE_MAX ? 0 : least;
}

/* No-break spaces before a statement are spaces; inside it they may be intended. */
static void add_line(struct buf *out, struct str line)
{
    while (line.len && (line.at[0] == ' ' || line.at[0] == '\t' || line_starts(line, "\xc2\xa0"))) {
        bool wide = line.at[0] == '\xc2';
        buf_add(out, wide ? " " : line.at, 1);
        line.at += wide ? 2 : 1;
        line.len -= wide ? 2 : 1;
    }
    buf_add_str(out, line);
    buf_add_text(out, "\n");
}

char *agent_extract_clean(struct str code)
{
    own_buf out = BUF_INIT(CODE_MAX);
    if (line_starts(code, "\xef\xbb\xbf"))
        code = (struct str){ code.at + 3, code.len - 3 };
    if (code.len > CODE_MAX / 2)
        code.len = str_cut_utf8(code, CODE_MAX / 2);
    code = without_edges(code);
    bool prompts = has_prompts(code);
    size_t indent = prompts ? 0 : common_indent(code), at = 0;
    /* `<code> x = 1` has its first statement beside the mark. */
    if (indent == 0 && code.len && (code.at[0] == ' ' || code.at[0] == '\t')) {
        size_t lead = indent_of(code);
        if (!memchr(code.at, '\n', code.len))
            code = (struct str){ code.at + lead, code.len - lead };
    }
    struct str line;
    while (next_line(code, &at, &line)) {
        if (prompts && !prompt_cut(&line))
            continue; /* pasted output */
        size_t cut = indent_of(line) < indent ? indent_of(line) : indent;
        add_line(&out, (struct str){ line.at + cut, line.len - cut });
    }
    while (out.len && isspace((unsigned char)out.at[out.len - 1]))
        out.at[--out.len] = 0;
    return out.len ? buf_take(&out) : NULL;
}

/* --- telling code from prose --- */

enum looks { PROSE, WEAK, STRONG };

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

bool agent_extract_is_name(const char *text)
{
    size_t len = 0;
    while (is_name(text[len]))
        len++;
    return len > 0 && !text[len] && !isdigit((unsigned char)text[0]);
}

static bool word_then(struct str line, const char *word)
{
    return line_starts(line, word) && line.len > strlen(word) && !is_name(line.at[strlen(word)]);
}

/* `a.b[c] = ...`, `a, b = ...`, `a += ...`: targets have no spaces except after commas. */
static bool is_assignment(struct str line)
{
    size_t at = 0;
    if (!line.len || !(isalpha((unsigned char)line.at[0]) || line.at[0] == '_'))
        return false;
    while (at < line.len && line.at[at] != '=') {
        char c = line.at[at];
        bool spaced = c == ' ' && at > 0 && line.at[at - 1] != ',' && at + 1 < line.len &&
                      !strchr("=+-*/%|&:", line.at[at + 1]);
        if (spaced || (!is_name(c) && !strchr(" ,.[]'\"+-*/%|&:()", c)))
            return false;
        at++;
    }
    return at < line.len && at > 0 && (at + 1 >= line.len || line.at[at + 1] != '=');
}

/* `f(...)`, `df.head()`: a dotted name, then a bracket that the line closes or leaves open. */
static bool is_call(struct str line)
{
    size_t at = 0;
    while (at < line.len && (is_name(line.at[at]) || line.at[at] == '.'))
        at++;
    if (at == 0 || at >= line.len || line.at[at] != '(' || isdigit((unsigned char)line.at[0]))
        return false;
    char last = line.at[line.len - 1];
    return last == ')' || last == '(' || last == ',' || last == '[' || last == '{' || last == ']';
}

static enum looks look_at(struct str line)
{
    static const char *const blocks[] = { "def", "class", "for", "while", "if", "with", "try",
                                          "async", "elif", "else", "except", "finally" };
    static const char *const plain[] = { "return", "assert", "raise", "del", "global", "pass" };
    struct str text = str_trim(line);
    if (!text.len || text.at[0] == '#' || text.at[0] == '@')
        return WEAK;
    for (size_t i = 0; i < array_len(blocks); i++)
        if (word_then(text, blocks[i]) && text.at[text.len - 1] == ':')
            return STRONG;
    if (word_then(text, "import") || line_starts(text, "print("))
        return STRONG;
    if (word_then(text, "from") && memmem(text.at, text.len, " import ", 8))
        return STRONG;
    for (size_t i = 0; i < array_len(plain); i++)
        if (word_then(text, plain[i]) || str_is(text, plain[i]))
            return WEAK;
    if (is_assignment(text) || is_call(text) || indent_of(line) > 0 || strchr(")]}\"'", text.at[0]))
        return WEAK;
    return PROSE;
}

struct census {
    size_t lines, prose, strong, weak;
};

static struct census look_over(struct str text)
{
    struct census found = { 0 };
    struct str line;
    size_t at = 0;
    int depth = 0;
    while (next_line(text, &at, &line)) {
        enum looks looks = depth > 0 ? WEAK : look_at(line);
        found.lines += str_trim(line).len > 0;
        found.prose += looks == PROSE;
        found.strong += looks == STRONG;
        found.weak += looks == WEAK && str_trim(line).len > 0;
        for (size_t i = 0; i < line.len && looks != PROSE; i++)
            depth += strchr("([{", line.at[i]) && line.at[i]   ? 1
                     : strchr(")]}", line.at[i]) && line.at[i] ? -1
                                                               : 0;
        depth = depth < 0 ? 0 : depth;
    }
    return found;
}

bool agent_extract_is_bare(struct str text)
{
    struct census found = look_over(text);
    return found.prose == 0 && found.strong > 0;
}

bool agent_extract_is_pythonic(struct str code)
{
    struct census found = look_over(code);
    bool prompts = has_prompts(code);
    return prompts || found.strong > 0 || (found.prose == 0 && found.weak > 1 && found.lines > 1);
}
