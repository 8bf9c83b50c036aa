/* A refusal as the contract's JSON, and back. Runs in any process that answers, and in clients;
 * pure. */
#include "base/json.h"
#include "contract/result.h"

#include <stdio.h>

static json_t *refused_value(const char *value)
{
    json_t *parsed = *value ? json_loads(value, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL) : NULL;
    return parsed ? parsed : json_text_or_null(value);
}

json_t *result_refusal(const struct err *err)
{
    json_t *error = json_object();
    json_object_set_new(error, "kind", json_string(err_kind_name(err->kind)));
    json_object_set_new(error, "field", json_text_or_null(err->field));
    json_object_set_new(error, "value", refused_value(err->value));
    json_object_set_new(error, "bound", json_text_or_null(err->bound));
    json_object_set_new(error, "message", json_text(str_of(err->text)));
    json_object_set_new(error, "hint", json_text_or_null(err->hint));
    return json_pack("{s:o}", "error", error);
}

static void copy_text(const json_t *error, const char *name, char *out, size_t room)
{
    const char *text = json_string_value(json_object_get(error, name));
    snprintf(out, room, "%s", text ? text : "");
}

void result_refusal_read(const json_t *error, struct err *out)
{
    const char *kind = json_string_value(json_object_get(error, "kind"));
    const json_t *value = json_object_get(error, "value");
    *out = ERR_INIT;
    out->kind = kind ? err_kind_find(kind) : ERR_BUG;
    copy_text(error, "message", out->text, sizeof out->text);
    copy_text(error, "field", out->field, sizeof out->field);
    copy_text(error, "bound", out->bound, sizeof out->bound);
    copy_text(error, "hint", out->hint, sizeof out->hint);
    if (value && !json_is_null(value))
        json_brief(value, out->value, sizeof out->value);
}
