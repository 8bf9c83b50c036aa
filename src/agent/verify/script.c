/* The final program: all kept cells in order, for people to keep and run. Runs in the task's
 * process; pure. Python requires __future__ imports first. A failed cell whose state stands must
 * not end the program. */
#include "agent/verify/verify.h"

#include "base/buf.h"
#include "base/json.h"

#define SCRIPT_MAX (4u << 20)

static const char future[] = "from __future__ import ";

static bool is_ok(const json_t *step)
{
    const char *status = json_string_value(json_object_get(step, "status"));
    return status && !strcmp(status, "ok");
}

/* Each line of the code, without the first line's indent. */
static bool next_line(struct str *rest, size_t indent, struct str *out)
{
    if (!rest->len)
        return false;
    const char *end = memchr(rest->at, '\n', rest->len);
    size_t len = end ? (size_t)(end - rest->at) : rest->len, cut = 0;
    while (cut < indent && cut < len && (rest->at[cut] == ' ' || rest->at[cut] == '\t'))
        cut++;
    *out = (struct str){ rest->at + cut, len - cut };
    rest->at += len + (end != NULL);
    rest->len -= len + (end != NULL);
    return true;
}

static size_t indent_of(struct str code)
{
    size_t i = 0, start;
    while (i < code.len && code.at[i] == '\n')
        i++;
    start = i;
    while (i < code.len && (code.at[i] == ' ' || code.at[i] == '\t'))
        i++;
    return i - start;
}

static bool is_future(struct str line)
{
    return line.len > sizeof future && !memcmp(line.at, future, sizeof future - 1);
}

static void add_futures(struct buf *out, const json_t *step)
{
    struct str rest = json_str(json_object_get(step, "code")), line;
    size_t indent = indent_of(rest);
    while (next_line(&rest, indent, &line)) {
        if (is_future(line) && !(out->len && memmem(out->at, out->len, line.at, line.len)))
            buf_printf(out, "%.*s\n", (int)line.len, line.at);
    }
}

static void add_cell(struct buf *out, const json_t *step)
{
    struct str rest = json_str(json_object_get(step, "code")), line;
    size_t indent = indent_of(rest);
    const char *purpose = json_string_value(json_object_get(step, "purpose"));
    struct str said = str_of(purpose ? purpose : "");
    bool ok = is_ok(step);
    said.len = strcspn(said.at, "\r\n");
    buf_printf(out, "%s# Cell %lld%s%.*s\n", out->len ? "\n" : "",
               (long long)json_integer_value(json_object_get(step, "n")), said.len ? ": " : "",
               (int)(said.len > 200 ? 200 : said.len), said.at);
    if (!ok)
        buf_add_text(out, "try:\n");
    while (next_line(&rest, indent, &line)) {
        if (is_future(line))
            continue;
        buf_printf(out, "%s%.*s\n", ok || !line.len ? "" : "    ", (int)line.len, line.at);
    }
    if (!ok)
        buf_add_text(out, "    pass\nexcept Exception:\n    pass  # it failed so before, too\n");
}

char *agent_script(const json_t *steps)
{
    own_buf out = BUF_INIT(SCRIPT_MAX);
    size_t i, from = agent_steps_from(steps);
    json_t *step;
    json_array_foreach (steps, i, step) {
        if (i >= from && agent_step_is_kept(step))
            add_futures(&out, step);
    }
    json_array_foreach (steps, i, step) {
        if (i >= from && agent_step_is_kept(step))
            add_cell(&out, step);
    }
    return out.len ? buf_take(&out) : NULL;
}
