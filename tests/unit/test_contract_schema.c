/* api/ says what the code does: names, enumerations, bounds and defaults of the
 * schemas are compared with the tables. Run from the top of the tree. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "contract/request.h"
#include "contract/result.h"
#include "contract/request_int.h"
#include "contract/result_int.h"

/* --- the tables of the request as JSON --- */

static json_t *list_names(const char *const *list, size_t room)
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
        json_object_set_new(out, row->name, list_names(row->aliases, array_len(row->aliases)));
    }
    return out;
}

/* The defaults as they are when nothing is given: derived ones filled in. */
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

static json_t *request_describe(void)
{
    json_t *out = json_object();
    json_object_set_new(out, "fields", describe_fields(true));
    json_object_set_new(out, "fields_later", describe_fields(false));
    json_object_set_new(out, "required", json_pack("[s]", "code"));
    json_object_set_new(out, "languages", describe_languages());
    json_object_set_new(out, "profiles", describe_profiles());
    json_object_set_new(out, "limits", describe_limits());
    json_object_set_new(out, "tiers", list_names(request_tiers, 8));
    json_object_set_new(out, "on_output_limit", list_names(request_on_outputs, 8));
    json_object_set_new(out, "artifacts", list_names(request_artifacts, 8));
    json_object_set_new(out, "on_error", list_names(request_on_errors, 8));
    json_object_set_new(out, "call", list_names(request_call_members, 8));
    json_object_set_new(out, "file", list_names(request_file_members, 8));
    json_object_set_new(
        out, "caps",
        json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i}", "code", (int)REQUEST_CODE_MAX, "args",
                  REQUEST_ARGS_MAX, "env", REQUEST_ENV_MAX, "files", REQUEST_FILES_MAX, "packages",
                  REQUEST_PACKAGES_MAX, "tools", REQUEST_TOOLS_MAX, "path", REQUEST_PATH_MAX));
    return out;
}

/* --- compared with api/ --- */

static json_t *load(const char *path)
{
    json_error_t why;
    json_t *schema = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
    if (!schema)
        check_failed(__FILE__, __LINE__, "%s: line %d: %s", path, why.line, why.text);
    return schema;
}

/* A member by a path of names with '/' between them. */
static json_t *at(json_t *value, const char *path)
{
    char name[64];
    while (*path) {
        size_t len = strcspn(path, "/");
        snprintf(name, sizeof name, "%.*s", (int)len, path);
        json_t *next = json_object_get(value, name);
        if (!next)
            check_failed(__FILE__, __LINE__, "no '%s' in the schema", name);
        value = next;
        path += len + (path[len] == '/');
    }
    return value;
}

static bool holds(const json_t *array, const json_t *value)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (json_equal(json_array_get(array, i), value))
            return true;
    }
    return false;
}

/* Two arrays hold the same, in any order, nothing twice. */
static void check_set(const char *what, const json_t *schema, const json_t *code)
{
    CHECK(json_is_array(schema) && json_is_array(code));
    if (json_array_size(schema) != json_array_size(code))
        check_failed(__FILE__, __LINE__, "%s: %zu in the schema, %zu in the code", what,
                     json_array_size(schema), json_array_size(code));
    for (size_t i = 0; i < json_array_size(code); i++) {
        if (!holds(schema, json_array_get(code, i)))
            check_failed(__FILE__, __LINE__, "%s: the schema lacks '%s'", what,
                         json_string_value(json_array_get(code, i)));
    }
}

/* An object schema has exactly these properties, and admits no others. */
static void check_properties(const char *what, json_t *schema, const json_t *names)
{
    own_json keys = json_array();
    const char *name;
    json_t *value;
    CHECK(json_is_false(at(schema, "additionalProperties")));
    json_object_foreach (at(schema, "properties"), name, value)
        json_array_append_new(keys, json_string(name));
    check_set(what, keys, names);
}

/* ... and requires all of them. */
static void check_object(const char *what, json_t *schema, const json_t *names)
{
    check_properties(what, schema, names);
    check_set(what, at(schema, "required"), names);
}

static bool same_number(const json_t *a, const json_t *b)
{
    return json_is_number(a) && json_is_number(b) && json_number_value(a) == json_number_value(b);
}

static void check_limits(json_t *schema, json_t *described)
{
    const char *name;
    json_t *row;
    json_object_foreach (described, name, row) {
        json_t *limit = at(at(schema, "properties"), name);
        CHECK_TEXT(json_string_value(at(limit, "type")), json_string_value(at(row, "type")));
        CHECK(same_number(at(limit, "minimum"), at(row, "least")));
        json_t *most = at(row, "most");
        if (json_is_null(most))
            CHECK(!json_object_get(limit, "maximum"));
        else
            CHECK(same_number(at(limit, "maximum"), most));
    }
    CHECK_INT(json_object_size(at(schema, "properties")), json_object_size(described));
    CHECK(json_is_false(at(schema, "additionalProperties")));
}

TEST(schema_of_the_request_has_the_fields_of_the_code)
{
    own_json schema = load("api/request.schema.json");
    own_json code = request_describe();
    check_properties("request", schema, at(code, "fields"));
    check_set("required", at(schema, "required"), at(code, "required"));
    check_properties("call", at(schema, "properties/call"), at(code, "call"));
    check_properties("files", at(schema, "properties/files/items"), at(code, "file"));
    CHECK(json_array_size(at(code, "fields_later")) == 2);
}

TEST(schema_of_the_request_has_the_values_of_the_code)
{
    own_json schema = load("api/request.schema.json");
    own_json code = request_describe();
    own_json languages = json_array();
    own_json profiles = json_array();
    const char *name;
    json_t *row;
    json_object_foreach (at(code, "languages"), name, row) {
        json_array_append_new(languages, json_string(name));
        json_array_extend(languages, row);
    }
    json_object_foreach (at(code, "profiles"), name, row)
        json_array_append_new(profiles, json_string(name));
    check_set("languages", at(schema, "properties/language/enum"), languages);
    check_set("profiles", at(schema, "properties/profile/enum"), profiles);
    check_set("tiers", at(schema, "properties/tier/enum"), at(code, "tiers"));
    check_set("on_output_limit", at(schema, "properties/on_output_limit/enum"),
              at(code, "on_output_limit"));
    check_set("artifacts", at(schema, "properties/artifacts/enum"), at(code, "artifacts"));
    check_set("on_error", at(schema, "properties/on_error/enum"), at(code, "on_error"));
    CHECK_TEXT(json_string_value(at(schema, "properties/image/default")), "host");
}

TEST(schema_of_the_request_has_the_caps_of_the_code)
{
    static const struct {
        const char *cap, *place;
    } rows[] = {
        { "code", "properties/code/maxLength" },
        { "args", "properties/args/maxItems" },
        { "env", "properties/env/maxProperties" },
        { "files", "properties/files/maxItems" },
        { "tools", "properties/tools/maxItems" },
        { "packages", "properties/packages/maxItems" },
        { "path", "properties/files/items/properties/path/maxLength" },
    };
    own_json schema = load("api/request.schema.json");
    own_json code = request_describe();
    for (size_t i = 0; i < array_len(rows); i++)
        CHECK(same_number(at(schema, rows[i].place), at(at(code, "caps"), rows[i].cap)));
    CHECK_INT(json_object_size(at(code, "caps")), array_len(rows));
}

TEST(schema_of_the_limits_has_the_bounds_of_the_code)
{
    own_json request = load("api/request.schema.json");
    own_json result = load("api/result.schema.json");
    own_json code = request_describe();
    check_limits(at(request, "properties/limits"), at(code, "limits"));
    check_limits(at(result, "properties/provenance/properties/limits"), at(code, "limits"));
    const char *name;
    json_t *value;
    json_object_foreach (at(code, "profiles/baseline"), name, value) {
        json_t *limit = at(at(request, "properties/limits/properties"), name);
        json_t *given = json_object_get(limit, "default");
        /* cpu_s has none: it follows from two others. */
        CHECK(given ? same_number(given, value) : strcmp(name, "cpu_s") == 0);
    }
}

static json_t *keys_of(const json_t *object)
{
    json_t *out = json_array(), *value;
    const char *name;
    json_object_foreach ((json_t *)(uintptr_t)object, name, value)
        json_array_append_new(out, json_string(name));
    return out;
}

static void check_keys(const char *what, json_t *schema, const json_t *object)
{
    own_json keys = keys_of(object);
    check_object(what, schema, keys);
}

TEST(schema_of_the_result_has_the_members_of_the_code)
{
    own_json schema = load("api/result.schema.json");
    own_result result = { 0 };
    result_init(&result);
    result.error.kind = RESULT_E_NONE + 1;
    own_json least = result_to_json(&result);
    own_json always = keys_of(least);
    check_set("required", at(schema, "required"), always);
    json_t *error = json_array_get(at(schema, "properties/error/oneOf"), 1);
    check_keys("error", error, at(least, "error"));
    check_keys("metrics", at(schema, "properties/metrics"), at(least, "metrics"));
    check_keys("isolation", at(schema, "properties/isolation"), at(least, "isolation"));
    check_keys("provenance", at(schema, "properties/provenance"), at(least, "provenance"));
    result_stream_add(&result.out, 16, "\xff", 1);
    result_stream_add(&result.err_stream, 16, "\xff", 1);
    result.names = json_pack("{s:[], s:[], s:[], s:i}", "added", "changed", "removed", "more", 1);
    result.lost = json_array();
    result.late = json_array();
    result.calls = json_array();
    own_json most = result_to_json(&result);
    own_json all = keys_of(most);
    check_properties("result", schema, all);
    own_json statuses = json_array();
    own_json kinds = json_array();
    for (size_t i = 0; i < RESULT_STATUS_COUNT; i++)
        json_array_append_new(statuses, json_string(result_statuses[i].name));
    for (size_t i = 1; i < RESULT_ERROR_COUNT; i++)
        json_array_append_new(kinds, json_string(result_errors[i]));
    check_set("statuses", at(schema, "properties/status/enum"), statuses);
    check_set("error kinds", at(error, "properties/kind/enum"), kinds);
}

TEST(schema_of_limits_hit_names_the_limits)
{
    own_json schema = load("api/result.schema.json");
    own_json names = json_array();
    for (int id = 0; id < LIMITS_COUNT; id++)
        json_array_append_new(names, json_string(limits_rows[id].name));
    check_set("limits_hit", at(schema, "properties/limits_hit/items/enum"), names);
}

TEST(schema_of_the_refusal_has_the_members_of_the_code)
{
    own_json schema = load("api/refusal.schema.json");
    struct err err = ERR_INIT;
    err_input(&err, "f", NULL, NULL, "m");
    own_json refusal = result_refusal(&err);
    own_json names = json_array();
    own_json kinds = json_array();
    own_json top = json_pack("[s]", "error");
    const char *name;
    json_t *value;
    json_object_foreach (json_object_get(refusal, "error"), name, value)
        json_array_append_new(names, json_string(name));
    for (enum err_kind kind = ERR_NONE + 1; kind <= ERR_BUG; kind++)
        json_array_append_new(kinds, json_string(err_kind_name(kind)));
    check_object("refusal", schema, top);
    check_object("refusal.error", at(schema, "properties/error"), names);
    check_set("kinds", at(schema, "properties/error/properties/kind/enum"), kinds);
}
