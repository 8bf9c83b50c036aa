/* Is any of the task's files read? An answer about data that no kept cell has opened is made up,
 * whatever the cells printed. Process: the task's. Pure.
 * Unsure counts as read: a folder that is listed, a path in a variable, another program. What
 * stands in a comment is no code. */
#include "agent/verify/verify.h"

#include "base/attr.h"
#include "base/buf.h"
#include "base/json.h"

#define NAMES_SHOWN 5

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (unsigned char)c >= 0x80;
}

static bool has(struct str code, const char *text)
{
    return memmem(code.at, code.len, text, strlen(text)) != NULL;
}

/* The word alone, or with `quoted` only as the beginning of a text or of a path's last part. */
static bool has_word(struct str code, struct str word, bool quoted)
{
    for (size_t from = 0; word.len && from < code.len;) {
        const char *found = memmem(code.at + from, code.len - from, word.at, word.len);
        if (!found)
            return false;
        size_t at = (size_t)(found - code.at), end = at + word.len;
        char before = at ? code.at[at - 1] : ' ', after = end < code.len ? code.at[end] : ' ';
        if (!is_word(before) && !is_word(after) && (!quoted || (before && strchr("'\"/", before))))
            return true;
        from = at + 1;
    }
    return false;
}

/* Code without its comments, so that saying a name is not reading it. */
static void add_code(struct buf *out, struct str code)
{
    char quote = '\0';
    bool comment = false;
    for (size_t i = 0; i < code.len; i++) {
        char c = code.at[i];
        if (c == '\n')
            comment = false, quote = '\0';
        else if (quote && c == '\\' && i + 1 < code.len && code.at[i + 1] != '\n')
            buf_add(out, code.at + i++, 1);
        else if (quote)
            quote = c == quote ? '\0' : quote;
        else if (c == '\'' || c == '"')
            quote = comment ? '\0' : c;
        else if (c == '#')
            comment = true;
        if (!comment)
            buf_add(out, code.at + i, 1);
    }
    buf_add_text(out, "\n");
}

/* A call whose first argument is no text: it may be any path. To write, or where the environment
 * says so, is no reading of a file. */
static bool opens_variable(struct str code)
{
    static const char *const calls[] = { "open(", "read_csv(", "read_table(", "read_json(",
                                         "read_excel(", "read_parquet(", "loadtxt(", "genfromtxt(",
                                         "fromfile(", "connect(", "Path(", "load(" };
    static const char *const others[] = { "'w", "\"w", "'a", "\"a", "'x", "\"x", "environ" };
    for (size_t c = 0; c < array_len(calls); c++) {
        for (size_t from = 0; from < code.len;) {
            const char *found =
                memmem(code.at + from, code.len - from, calls[c], strlen(calls[c]));
            if (!found)
                break;
            size_t at = (size_t)(found - code.at) + strlen(calls[c]), end = at;
            from = at;
            while (end < code.len && code.at[end] != ')' && code.at[end] != '\n')
                end++;
            bool other = at == code.len || !(is_word(code.at[at]) || code.at[at] == '*');
            for (size_t o = 0; o < array_len(others); o++)
                other = other || has((struct str){ code.at + at, end - at }, others[o]);
            /* f"{name}.csv" has a variable in it, r"a.csv" has none. */
            bool text = at + 1 < code.len && strchr("rRbBuU", code.at[at]) &&
                        strchr("'\"", code.at[at + 1]);
            if (!other && !text)
                return true;
        }
    }
    return false;
}

static bool reads_any(struct str code)
{
    static const char *const ways[] = { "listdir", "glob", "scandir", "iterdir", "walk(", "\"*.",
                                        "'*.", "subprocess", "os.system", "popen" };
    for (size_t i = 0; i < array_len(ways); i++) {
        if (has(code, ways[i]))
            return true;
    }
    return opens_variable(code);
}

static bool reads_file(struct str code, const char *path)
{
    const char *slash = strrchr(path, '/');
    struct str name = str_of(slash ? slash + 1 : path), stem = name;
    const char *dot = memrchr(name.at, '.', name.len);
    if (dot && dot > name.at)
        stem.len = (size_t)(dot - name.at);
    bool module = dot && !strcmp(dot, ".py"); /* read by importing it */
    return (name.len && has(code, name.at)) || has_word(code, stem, !module);
}

void agent_check_inputs(const struct agent_claim *claim, json_t *checks)
{
    own_buf code = BUF_INIT(8u << 20), names = BUF_INIT(2048), text = BUF_INIT(4096);
    size_t i, from = agent_steps_from(claim->steps), ran = 0;
    json_t *step;
    json_array_foreach (claim->steps, i, step) {
        if (i < from || !agent_step_is_kept(step))
            continue;
        add_code(&code, json_str(json_object_get(step, "code")));
        ran++;
    }
    if (!claim->file_count || !ran) {
        agent_checks_add(checks, "inputs", "skip",
                         ran ? "the task has no files" : "nothing ran", NULL);
        return;
    }
    bool any = reads_any(buf_str(&code));
    for (i = 0; i < claim->file_count; i++) {
        const char *path = claim->files[i].path;
        any = any || reads_file(buf_str(&code), path);
        if (i < NAMES_SHOWN)
            buf_printf(&names, "%s%.200s", i ? " or " : "", path);
    }
    if (any) {
        agent_checks_add(checks, "inputs", "pass", "the cells read the task's files", NULL);
        return;
    }
    buf_printf(&text, "no cell reads %s", buf_str(&names).at);
    own_buf repair = BUF_INIT(4096);
    buf_printf(&repair,
               "The answer is about files, but %s. Read the data in a cell and compute from it; do "
               "not type it in.",
               buf_str(&text).at);
    agent_checks_add(checks, "inputs", "fail", buf_str(&text).at, buf_str(&repair).at);
}
