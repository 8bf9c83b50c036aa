/* Outcomes of calls: made, and checked where they come from another process. Any process. */
#include "tool/define/outcome.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/json.h"

static const char *const names[] = {
#define X(id, name) [OUTCOME_##id] = name,
    OUTCOME_KINDS(X)
#undef X
};

json_t *outcome_value(json_t *value)
{
    return outcome_value_files(value, NULL);
}

json_t *outcome_value_files(json_t *value, json_t *files)
{
    json_t *outcome = json_object();
    json_object_set_new(outcome, "value", value ? value : json_null());
    if (files)
        json_object_set_new(outcome, "files", files);
    return outcome;
}

json_t *outcome_error(enum outcome_kind kind, const char *fmt, ...)
{
    char text[OUTCOME_MESSAGE_MAX + 8];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    struct str whole = str_of(text);
    whole.len = str_cut_utf8(whole, OUTCOME_MESSAGE_MAX);
    json_t *error = json_object(), *outcome = json_object();
    json_object_set_new(error, "kind", json_string(names[kind]));
    json_object_set_new(error, "message", json_text(whole));
    json_object_set_new(outcome, "error", error);
    return outcome;
}

static bool are_files_good(const json_t *files)
{
    size_t count = json_array_size(files);
    bool good = json_is_array(files) && count <= OUTCOME_FILES_MAX;
    for (size_t i = 0; good && i < count; i++) {
        const json_t *file = json_array_get(files, i);
        good = json_is_string(json_object_get(file, "name")) &&
               json_is_string(json_object_get(file, "mime")) &&
               json_is_string(json_object_get(file, "base64")) && json_object_size(file) == 3;
    }
    return good;
}

bool outcome_is_good(const json_t *outcome)
{
    const json_t *error = json_object_get(outcome, "error");
    const json_t *files = json_object_get(outcome, "files");
    if (error)
        return json_object_size(outcome) == 1 && json_object_size(error) == 2 &&
               outcome_kind_of(outcome) != OUTCOME_KINDS_COUNT &&
               json_is_string(json_object_get(error, "message"));
    return json_object_get(outcome, "value") && json_object_size(outcome) == (files ? 2 : 1) &&
           (!files || are_files_good(files));
}

enum outcome_kind outcome_kind_of(const json_t *outcome)
{
    struct str kind = json_get_str(json_object_get(outcome, "error"), "kind");
    for (size_t i = 0; i < array_len(names); i++)
        if (str_is(kind, names[i]))
            return (enum outcome_kind)i;
    return OUTCOME_KINDS_COUNT;
}

const char *outcome_kind_name(enum outcome_kind kind)
{
    return names[kind];
}
