/* The final program: all kept cells in order, for people to keep and run. Runs in the task's
 * process; pure. A failed cell was rolled back, so every kept cell has succeeded. */
#include "agent/verify/verify.h"

#include <string.h>

#include "base/buf.h"
#include "base/json.h"

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
