/* Programs made of a task: all kept cells in order, for people to keep and run, and calls of our
 * own code in a box. Runs in the task's process; pure. A failed cell was rolled back, so every kept
 * cell has succeeded. */
#include "agent/verify/verify.h"

#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"

#define SCRIPT_MAX (4u << 20)
#define PURPOSE_MAX 200

char *agent_script(const json_t *steps)
{
    own_buf out = BUF_INIT(SCRIPT_MAX);
    size_t i, from = agent_steps_from(steps);
    json_t *step;
    json_array_foreach (steps, i, step) {
        struct str purpose = json_get_str(step, "purpose"), code = json_get_str(step, "code");
        if (i < from || !agent_step_is_kept(step))
            continue;
        purpose.len = strcspn(purpose.at, "\r\n");
        buf_printf(&out, "%s# Cell %lld%s%.*s\n", out.len ? "\n" : "",
                   (long long)json_integer_value(json_object_get(step, "n")),
                   purpose.len ? ": " : "", (int)str_cut_utf8(purpose, PURPOSE_MAX), purpose.at);
        buf_add_str(&out, str_trim(code));
        buf_add_text(&out, "\n");
    }
    return out.len ? buf_take(&out) : NULL;
}

/* JSON text is a Python string literal: jansson writes UTF-8, and its escapes are Python's. */
int agent_script_call(const char *module, const char *function, const json_t *argument,
                      struct buf *out)
{
    own_str text = argument ? json_write(argument, JSON_COMPACT) : NULL;
    own_json quoted = text ? json_string(text) : NULL;
    own_str literal = quoted ? json_dumps(quoted, JSON_ENCODE_ANY) : NULL;
    if (!literal)
        return -1;
    return buf_printf(out, "__import__('builtins').display.__globals__['this'].load('%s').%s(%s)\n",
                      module, function, literal);
}
