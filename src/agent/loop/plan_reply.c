/* Reads a plan. Pure. Keeps the model's requirements, and adds those of the question that they do
 * not cover: omitting a demand from the plan does not remove it from the checklist. */
#include "agent/loop/plan_reply.h"

#include <string.h>

#include "agent/verify/verify.h"
#include "base/json.h"
#include "base/own.h"

#define STEPS_MAX 12
#define STEP_MAX 300
#define REQUIREMENTS_MAX 20

static json_t *steps_of(const json_t *from_model)
{
    json_t *steps = json_array(), *step;
    size_t i;
    json_array_foreach (json_object_get(from_model, "steps"), i, step) {
        struct str text = json_str(step);
        if (json_is_string(step) && json_array_size(steps) < STEPS_MAX && text.len)
            json_array_append_new(steps,
                                  json_text((struct str){ text.at, str_cut_utf8(text, STEP_MAX) }));
    }
    return steps;
}

static bool says_as_much(const json_t *model, const json_t *rule, const char *member)
{
    const json_t *wanted = json_object_get(rule, member);
    return !wanted || json_is_null(wanted) || json_equal(json_object_get(model, member), wanted);
}

/* Two checks cover the same if their first member is equal; for files and code its value too, and
 * for a file the number of rows. */
static bool speaks_of(const json_t *model, const json_t *rule)
{
    static const struct {
        const char *member;
        bool by_value;
    } kinds[] = { { "file", true }, { "items", false }, { "contains", false },
                  { "answer", false }, { "code", true } };
    for (size_t i = 0; i < array_len(kinds); i++) {
        const json_t *left = json_object_get(model, kinds[i].member),
                     *right = json_object_get(rule, kinds[i].member);
        if (left && right)
            return !kinds[i].by_value ||
                   (json_equal(left, right) && says_as_much(model, rule, "rows"));
    }
    return false;
}

static bool is_covered(const json_t *requirements, const json_t *check)
{
    size_t i;
    json_t *requirement;
    json_array_foreach (requirements, i, requirement)
        if (speaks_of(json_object_get(requirement, "check"), check))
            return true;
    return false;
}

static json_t *requirements_of(const json_t *from_model, const char *question)
{
    json_t *requirements = agent_checklist_read(json_object_get(from_model, "requirements"));
    own_json by_rules = agent_checklist_of(question);
    size_t i;
    json_t *requirement;
    if (!requirements)
        requirements = json_array();
    json_array_foreach (by_rules, i, requirement)
        if (!is_covered(requirements, json_object_get(requirement, "check")) &&
            json_array_size(requirements) < 2 * REQUIREMENTS_MAX) /* a plan leaves room for them */
            json_array_append(requirements, requirement);
    return requirements;
}

json_t *agent_plan_read(const json_t *from_model, const char *question)
{
    const json_t *needs = json_object_get(from_model, "needs_code");
    return json_pack("{s:o, s:o, s:o}", "steps", steps_of(from_model), "requirements",
                     requirements_of(from_model, question), "needs_code",
                     json_boolean(!json_is_false(needs)));
}

bool agent_plan_is_plain(const json_t *plan)
{
    return json_is_false(json_object_get(plan, "needs_code"));
}
