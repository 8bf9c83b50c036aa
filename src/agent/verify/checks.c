/* The list of checks, and which steps count. Runs in the task's process; pure. */
#include "agent/verify/verify.h"

#include "base/buf.h"
#include "base/json.h"

#define REPAIR_MAX (16u << 10)

static bool is(const json_t *object, const char *name, const char *text)
{
    return str_is(json_get_str(object, name), text);
}

bool agent_step_is_kept(const json_t *step)
{
    return is(step, "state", "kept") && !is(step, "status", "not_run") &&
           !json_is_true(json_object_get(step, "repeated"));
}

size_t agent_steps_from(const json_t *steps)
{
    size_t from = 0, i;
    json_t *step;
    json_array_foreach (steps, i, step) {
        if (is(step, "state", "lost"))
            from = i + 1;
    }
    return from;
}

bool agent_checks_have(const json_t *checks, const char *name, const char *outcome)
{
    size_t i;
    json_t *check;
    json_array_foreach (checks, i, check) {
        if ((!name || is(check, "check", name)) && is(check, "outcome", outcome))
            return true;
    }
    return false;
}

char *agent_checks_repair(const json_t *checks)
{
    own_buf out = BUF_INIT(REPAIR_MAX);
    size_t i;
    json_t *check;
    json_array_foreach (checks, i, check) {
        struct str repair = json_get_str(check, "repair");
        if (!is(check, "outcome", "fail"))
            continue;
        if (!repair.len)
            repair = json_get_str(check, "detail");
        buf_printf(&out, "- %.*s\n", (int)str_cut_utf8(repair, REPAIR_MAX / 4), repair.at);
    }
    return out.len ? buf_take(&out) : NULL;
}

void agent_checks_add(json_t *checks, const char *name, const char *outcome, const char *detail,
                      const char *repair)
{
    json_array_append_new(checks,
                          json_pack("{s:o, s:s, s:o, s:o}", "check", json_text(str_of(name)),
                                    "outcome", outcome, "detail", json_text(str_of(detail)),
                                    "repair", repair ? json_text(str_of(repair)) : json_null()));
}
