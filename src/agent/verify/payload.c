/* Reads the calls of answer(), cannot_answer() and ask_user() in a result. Runs in the task's
 * process; pure. A box wrote every byte: what has not the form of drivers/answer.py is no call. */
#include "agent/verify/verify.h"

#include <math.h>

#include "base/attr.h"
#include "base/json.h"
#include "base/own.h"

#define FORM "application/vnd.cupel.answer+json"
#define SHOWN 160 /* bytes of a value in a message */

static bool has_strings(const json_t *payload, const char *const *members)
{
    for (; *members; members++) {
        if (!json_is_string(json_object_get(payload, *members)))
            return false;
    }
    return true;
}

static bool is_answer(const json_t *payload)
{
    static const char *const texts[] = { "template", "text", NULL };
    return has_strings(payload, texts) && json_is_object(json_object_get(payload, "values")) &&
           json_is_object(json_object_get(payload, "types")) &&
           json_is_array(json_object_get(payload, "files"));
}

bool agent_payload_is(const json_t *payload, const char *kind)
{
    return str_is(json_get_str(payload, "kind"), kind);
}

static bool is_call(const json_t *payload)
{
    static const char *const reason[] = { "reason", NULL }, *const question[] = { "question",
                                                                                  NULL };
    return (agent_payload_is(payload, "answer") && is_answer(payload)) ||
           (agent_payload_is(payload, "cannot_answer") && has_strings(payload, reason)) ||
           (agent_payload_is(payload, "ask_user") && has_strings(payload, question));
}

json_t *agent_payload_of(const json_t *result)
{
    const json_t *results = json_object_get(result, "results");
    for (size_t i = json_array_size(results); i-- > 0;) {
        json_t *payload = json_object_get(json_array_get(results, i), FORM);
        if (is_call(payload))
            return payload;
    }
    return NULL;
}

bool agent_payload_opened(const json_t *payload, const char *path)
{
    size_t i;
    json_t *input;
    json_array_foreach (json_object_get(payload, "opened"), i, input) {
        if (str_is(json_get_str(input, "path"), path))
            return true;
    }
    return false;
}

static bool numbers_are_near(double a, double b, double relative)
{
    double most = fabs(a) > fabs(b) ? fabs(a) : fabs(b);
    return a == b || fabs(a - b) <= relative * most;
}

static bool lists_are_same(json_t *a, json_t *b, double relative)
{
    size_t i;
    json_t *each;
    if (json_array_size(a) != json_array_size(b))
        return false;
    json_array_foreach (a, i, each) {
        if (!agent_value_same(each, json_array_get(b, i), relative))
            return false;
    }
    return true;
}

static bool objects_are_same(json_t *a, json_t *b, double relative)
{
    const char *name;
    json_t *each;
    if (json_object_size(a) != json_object_size(b))
        return false;
    json_object_foreach (a, name, each) {
        json_t *other = json_object_get(b, name);
        if (!other || !agent_value_same(each, other, relative))
            return false;
    }
    return true;
}

bool agent_value_same(json_t *a, json_t *b, double relative)
{
    if (json_is_number(a) && json_is_number(b) && !(json_is_integer(a) && json_is_integer(b)))
        return numbers_are_near(json_number_value(a), json_number_value(b), relative);
    if (json_is_array(a) && json_is_array(b))
        return lists_are_same(a, b, relative);
    if (json_is_object(a) && json_is_object(b))
        return objects_are_same(a, b, relative);
    return json_equal(a, b);
}

void agent_payload_differs(json_t *a, json_t *b, double relative, struct buf *out)
{
    json_t *values = json_object_get(a, "values"), *others = json_object_get(b, "values");
    const char *name;
    json_t *value;
    json_object_foreach (values, name, value) {
        json_t *other = json_object_get(others, name);
        char was[SHOWN], is[SHOWN] = "nothing";
        if (other && agent_value_same(value, other, relative))
            continue;
        json_brief(value, was, sizeof was);
        if (other)
            json_brief(other, is, sizeof is);
        buf_printf(out, "%s%.60s is %s and %s", out->len ? "; " : "", name, was, is);
    }
}
