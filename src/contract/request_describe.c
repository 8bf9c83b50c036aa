/* The request's tables as JSON, which a test compares with api/request.schema.json. Runs in any
 * process; pure. */
#include "contract/request_int.h"

static json_t *names(const char *const *list, size_t room)
{
    json_t *out = json_array();
    for (size_t i = 0; i < room && list[i]; i++)
        json_array_append_new(out, json_string(list[i]));
    return out;
}

static json_t *describe_fields(bool there)
{
    json_t *out = json_array();
    for (size_t i = 0; i < request_field_count; i++) {
        if ((request_fields[i].take != NULL) == there)
            json_array_append_new(out, json_string(request_fields[i].name));
    }
    return out;
}

static json_t *describe_languages(void)
{
    json_t *out = json_object();
    for (size_t i = 0; i < REQUEST_LANGUAGES; i++) {
        const struct request_language_row *row = &request_languages[i];
        json_object_set_new(out, row->name, names(row->aliases, array_len(row->aliases)));
    }
    return out;
}

/* The defaults of an empty request, with the derived ones. */
static json_t *describe_profiles(void)
{
    json_t *out = json_object();
    for (size_t i = 0; i < limits_profile_count; i++) {
        struct limits filled;
        struct err err;
        if (limits_fill(&limits_profiles[i], NULL, INT64_MAX, &filled, &err) == 0)
            json_object_set_new(out, limits_profiles[i].name, limits_to_json(&filled));
    }
    return out;
}

static json_t *describe_limits(void)
{
    json_t *out = json_object();
    for (enum limits_id id = 0; id < LIMITS_COUNT; id++) {
        const struct limits_row *row = &limits_rows[id];
        json_t *most = row->most == LIMITS_NO_MOST ? json_null() : limits_value_json(id, row->most);
        json_object_set_new(out, row->name,
                            json_pack("{s:s, s:o, s:o}", "type",
                                      row->scale == 1 ? "integer" : "number", "least",
                                      limits_value_json(id, row->least), "most", most));
    }
    return out;
}

json_t *request_describe(void)
{
    json_t *out = json_object();
    json_object_set_new(out, "fields", describe_fields(true));
    json_object_set_new(out, "fields_later", describe_fields(false));
    json_object_set_new(out, "required", json_pack("[s]", "code"));
    json_object_set_new(out, "languages", describe_languages());
    json_object_set_new(out, "profiles", describe_profiles());
    json_object_set_new(out, "limits", describe_limits());
    json_object_set_new(out, "tiers", names(request_tiers, 8));
    json_object_set_new(out, "images", names(request_images, 8));
    json_object_set_new(out, "on_output_limit", names(request_on_outputs, 8));
    json_object_set_new(out, "on_error", names(request_on_errors, 8));
    json_object_set_new(out, "call", names(request_call_members, 8));
    json_object_set_new(out, "file", names(request_file_members, 8));
    json_object_set_new(out, "file_later", names(request_file_members_later, 8));
    json_object_set_new(out, "caps",
                        json_pack("{s:i, s:i, s:i, s:i, s:i}", "code", (int)REQUEST_CODE_MAX,
                                  "args", REQUEST_ARGS_MAX, "env", REQUEST_ENV_MAX, "files",
                                  REQUEST_FILES_MAX, "path", REQUEST_PATH_MAX));
    return out;
}
