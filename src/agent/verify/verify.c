/* Sums up the checks. Runs in the task's process; pure. Invariant: an answer is proven only if
 * nothing failed and code, not a model's word, showed it: the program ran again with the same
 * outputs, and they contain the answer's facts. */
#include "agent/verify/verify.h"

#include "base/buf.h"
#include "base/json.h"

#define REPAIR_MAX (16u << 10)

static bool has(const json_t *checks, const char *name, const char *outcome)
{
    size_t i;
    json_t *check;
    json_array_foreach (checks, i, check) {
        struct str at = str_of(json_string_value(json_object_get(check, "check")));
        const char *got = json_string_value(json_object_get(check, "outcome"));
        bool named = !name || (at.len >= strlen(name) && !strncmp(at.at, name, strlen(name)));
        if (named && got && !strcmp(got, outcome))
            return true;
    }
    return false;
}

static bool is(const json_t *object, const char *name, const char *text)
{
    const char *value = json_string_value(json_object_get(object, name));
    return value && !strcmp(value, text);
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

bool agent_checks_prove(const json_t *checks)
{
    if (has(checks, NULL, "fail") || !has(checks, "rerun", "pass"))
        return false;
    if (has(checks, "numbers", "pass"))
        return true;
    /* Nothing to look for is fine; something that could not be looked for is a fault. */
    return has(checks, "numbers", "skip") &&
           (has(checks, "checklist", "pass") || has(checks, "tests", "pass"));
}

char *agent_checks_repair(const json_t *checks)
{
    own_buf out = BUF_INIT(REPAIR_MAX);
    size_t i;
    json_t *check;
    json_array_foreach (checks, i, check) {
        const char *outcome = json_string_value(json_object_get(check, "outcome"));
        const char *repair = json_string_value(json_object_get(check, "repair"));
        const char *detail = json_string_value(json_object_get(check, "detail"));
        if (!outcome || strcmp(outcome, "fail") != 0)
            continue;
        buf_printf(&out, "- %s\n", repair ? repair : detail ? detail : "a check failed");
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
