/* The proof run: drivers/proof.py with the kept cells as its arguments, and its output split at the
 * marks. Runs in the task's process; the program runs in the box. */
#include "agent/verify/script.h"

#include "base/buf.h"
#include "base/builtin.h"
#include "base/json.h"
#include "base/own.h"

#define PROOF_MAX (8u << 20)

BUILTIN(agent_proof_py, "drivers/proof.py");

/* JSON lists of texts and small numbers are valid Python, except for true and null. */
static int add_literal(struct buf *out, json_t *value)
{
    own_str text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    json_decref(value);
    return text ? buf_add_text(out, text) : -1;
}

char *agent_script_proof(const json_t *steps, const json_t *requirements, const char *tag)
{
    json_t *cells = json_array(), *tests = json_array(), *each;
    size_t i, from = agent_steps_from(steps);
    json_array_foreach (steps, i, each) {
        const char *status = json_string_value(json_object_get(each, "status"));
        json_t *code = json_object_get(each, "code");
        if (i < from || !agent_step_is_kept(each) || !json_is_string(code))
            continue;
        bool failed = !status || strcmp(status, "ok") != 0;
        json_array_append_new(
            cells,
            json_pack("[I, O, i]", json_integer_value(json_object_get(each, "n")), code, failed));
    }
    json_array_foreach (requirements, i, each) {
        json_t *code = json_object_get(json_object_get(each, "check"), "code");
        if (json_is_string(code))
            json_array_append(tests, code);
    }
    bool any = json_array_size(cells) > 0;
    own_buf out = BUF_INIT(PROOF_MAX);
    bool fits = buf_printf(&out, "%s__cupel_proof(", agent_proof_py) == 0;
    fits = add_literal(&out, cells) == 0 && fits;
    fits = buf_add_text(&out, ", ") == 0 && fits;
    fits = add_literal(&out, tests) == 0 && fits;
    fits = buf_printf(&out, ", '%s')\n", tag) == 0 && fits;
    return any && fits ? buf_take(&out) : NULL;
}

static const char *find_mark(struct str in, const char *tag, const char *what, size_t part,
                             size_t *out_len)
{
    char mark[160];
    int len = snprintf(mark, sizeof mark, "\x1e%s%s %zu\x1e", tag, what, part);
    *out_len = (size_t)len;
    return in.len ? memmem(in.at, in.len, mark, (size_t)len) : NULL;
}

static bool result_is(const json_t *shown, const char *tag, const char *what, size_t part)
{
    char mark[160];
    const char *text = json_string_value(json_object_get(shown, "text/plain"));
    snprintf(mark, sizeof mark, "%s%s %zu", tag, what, part);
    return text && !strcmp(text, mark);
}

void agent_script_part(const json_t *result, const char *tag, size_t part,
                       struct agent_script_part *out)
{
    struct str text = json_str(json_object_get(result, "stdout"));
    size_t len, i;
    json_t *shown;
    *out = (struct agent_script_part){ .out = STR("") };
    const char *begin = find_mark(text, tag, "begin", part, &len);
    if (begin) {
        out->begun = true;
        begin += len;
        struct str rest = { begin, text.len - (size_t)(begin - text.at) };
        const char *end = find_mark(rest, tag, "end", part, &len);
        out->ended = end != NULL;
        out->out = (struct str){ begin, end ? (size_t)(end - begin) : rest.len };
    }
    json_array_foreach (json_object_get(result, "results"), i, shown) {
        if (result_is(shown, tag, "begin", part))
            out->from = out->to = i + 1;
        if (result_is(shown, tag, "end", part))
            out->to = i;
    }
}

struct str agent_script_test(const json_t *result, const char *tag, size_t test)
{
    char mark[160];
    size_t i;
    json_t *shown;
    int len = snprintf(mark, sizeof mark, "%stest %zu ", tag, test);
    json_array_foreach (json_object_get(result, "results"), i, shown) {
        struct str text = json_str(json_object_get(shown, "text/plain"));
        if (text.len > (size_t)len && !memcmp(text.at, mark, (size_t)len))
            return (struct str){ text.at + len, text.len - (size_t)len };
    }
    return STR_NONE;
}

bool agent_script_cut(const struct agent_cut *all, const char *tag, size_t part,
                      struct agent_cut *out)
{
    size_t len, unused;
    struct str from = all->head;
    const char *begin = find_mark(from, tag, "begin", part, &len);
    if (!begin) {
        from = all->tail;
        begin = find_mark(from, tag, "begin", part, &len);
    }
    begin = begin ? begin + len : NULL;
    size_t room = begin ? (size_t)(from.at + from.len - begin) : 0;
    const char *end = find_mark((struct str){ begin, room }, tag, "end", part, &unused);
    if (begin && (end || !all->cut)) {
        struct str whole = { begin, end ? (size_t)(end - begin) : room };
        *out = (struct agent_cut){ .head = whole, .tail = whole };
        return true;
    }
    end = find_mark(all->tail, tag, "end", part, &unused);
    *out = (struct agent_cut){ .cut = true };
    if (begin)
        out->head = (struct str){ begin, room };
    if (end)
        out->tail = (struct str){ all->tail.at, (size_t)(end - all->tail.at) };
    return begin || end;
}

bool agent_script_length(const struct agent_cut *all, const char *tag, size_t cells, uint64_t bytes,
                         uint64_t printed, uint64_t *out_is, uint64_t *out_should)
{
    size_t len = 0;
    const char *end = cells ? find_mark(all->tail, tag, "end", cells - 1, &len) : NULL;
    if (!end)
        return false;
    *out_is = bytes - (size_t)(all->tail.at + all->tail.len - end);
    *out_should = printed;
    for (size_t i = 0; i < cells; i++) { /* the marks themselves, except for the last */
        find_mark(STR_NONE, tag, "begin", i, &len);
        *out_should += len;
        find_mark(STR_NONE, tag, "end", i, &len);
        *out_should += i + 1 < cells ? len : 0;
    }
    return true;
}
