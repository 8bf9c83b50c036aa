/* Requirements as a model wrote them, and as the rules of the question do: one form, validated.
 * Process: the task's. Pure. What is not understood keeps its text and has no check. */
#include "agent/verify/checklist.h"

#include "agent/verify/check_scan.h"
#include "base/attr.h"
#include "base/json.h"

#define REQUIREMENTS_MAX 20
#define TEXT_MAX 500
#define NAME_MAX 200
#define CODE_MAX (16u << 10)
#define LIST_MAX 50
#define COUNT_MAX 1000000

static const char *const answers[] = { "number", "integer", "date", "yes_no", "json", "percent",
                                       "name" };
static const char *const orders[] = { "ascending", "descending", "any" };

static bool is_one_of(const json_t *value, const char *const *list, size_t count)
{
    const char *text = json_string_value(value);
    for (size_t i = 0; text && i < count; i++) {
        if (!strcmp(text, list[i]))
            return true;
    }
    return false;
}

static bool is_text(const json_t *value, size_t max)
{
    return json_is_string(value) && json_string_length(value) > 0 &&
           json_string_length(value) <= max &&
           !memchr(json_string_value(value), '\0', json_string_length(value));
}

static bool is_count(const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) >= 0 &&
           json_integer_value(value) <= COUNT_MAX;
}

/* A list of short texts, or one text that stands for a list of one. */
static json_t *texts_of(const json_t *value)
{
    json_t *out = json_array(), *each;
    size_t i;
    if (is_text(value, NAME_MAX))
        json_array_append_new(out, json_string(json_string_value(value)));
    json_array_foreach (value, i, each) {
        if (is_text(each, NAME_MAX) && json_array_size(out) < LIST_MAX)
            json_array_append(out, each);
    }
    if (json_array_size(out) > 0)
        return out;
    json_decref(out);
    return NULL;
}

static json_t *file_of(const json_t *from)
{
    const json_t *file = json_object_get(from, "file"), *format = json_object_get(from, "format");
    const json_t *rows = json_object_get(from, "rows");
    if (!is_text(file, NAME_MAX))
        return NULL;
    json_t *columns = texts_of(json_object_get(from, "columns"));
    const char *kind = json_string_value(format);
    kind = kind && agent_format_is_known(kind) ? kind
                                               : agent_format_of_path(json_string_value(file));
    return json_pack("{s:s, s:s?, s:o, s:o}", "file", json_string_value(file), "format", kind,
                     "rows",
                     is_count(rows) ? json_integer(json_integer_value(rows)) : json_null(),
                     "columns", columns ? columns : json_null());
}

json_t *agent_checklist_check(const json_t *from)
{
    json_t *check = file_of(from), *words;
    const json_t *items = json_object_get(from, "items"), *code = json_object_get(from, "code");
    const json_t *answer = json_object_get(from, "answer");
    const json_t *sorted = json_object_get(from, "sorted");
    if (check)
        return check;
    if (is_count(items) && json_integer_value(items) > 0)
        return json_pack("{s:I}", "items", json_integer_value(items));
    if ((words = texts_of(json_object_get(from, "contains"))))
        return json_pack("{s:o}", "contains", words);
    if (is_one_of(answer, answers, array_len(answers)))
        return json_pack("{s:s}", "answer", json_string_value(answer));
    if (is_one_of(sorted, orders, array_len(orders)))
        return json_pack("{s:s}", "sorted", json_string_value(sorted));
    if (is_text(code, CODE_MAX))
        return json_pack("{s:s}", "code", json_string_value(code));
    return NULL;
}

json_t *agent_checklist_read(const json_t *from_model)
{
    json_t *out = json_array(), *each;
    size_t i;
    json_array_foreach (from_model, i, each) {
        const json_t *said = json_is_string(each) ? each : json_object_get(each, "text");
        const json_t *inner = json_object_get(each, "check");
        json_t *check = agent_checklist_check(json_is_object(inner) ? inner : each);
        struct str text = json_is_string(said) ? json_str(said) : STR("");
        text.len = str_cut_utf8(text, TEXT_MAX);
        if (json_array_size(out) >= REQUIREMENTS_MAX || (!text.len && !check)) {
            json_decref(check);
            continue;
        }
        if (!text.len)
            text = STR("a check without words");
        json_array_append_new(out, json_pack("{s:o, s:s, s:o}", "text", json_text(text), "from",
                                             "model", "check", check ? check : json_null()));
    }
    return out;
}
