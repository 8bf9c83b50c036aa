/* Checks arguments against the schemas of our own tools. Pure; runs in every process that serves
 * MCP. The schemas are ours and use few keywords; the arguments are a model's. */
#include "mcp/args.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"

static int check(const json_t *schema, const json_t *value, const char *where, struct err *err);

static int refuse(const char *where, const json_t *value, const char *bound, struct err *err)
{
    char brief[sizeof err->value] = "";
    json_brief(value, brief, sizeof brief);
    return err_input(err, where, brief, bound, "argument '%.80s' is %.80s, not %.80s", where, brief,
                     bound);
}

static const struct {
    const char *name, *bound;
} types[] = {
    [JSON_OBJECT] = { "object", "an object" },
    [JSON_ARRAY] = { "array", "a list" },
    [JSON_STRING] = { "string", "a text" },
    [JSON_INTEGER] = { "integer", "a whole number" },
    [JSON_REAL] = { "number", "a number" },
    [JSON_TRUE] = { "boolean", "true or false" },
    [JSON_FALSE] = { "boolean", "true or false" },
    [JSON_NULL] = { "null", "null" },
};

static int check_type(const json_t *schema, const json_t *value, const char *where, struct err *err)
{
    const char *type = json_string_value(json_object_get(schema, "type"));
    if (!type || strcmp(types[json_typeof(value)].name, type) == 0 ||
        (json_is_integer(value) && strcmp(type, "number") == 0))
        return 0;
    size_t i = 0;
    while (i < array_len(types) - 1 && strcmp(types[i].name, type) != 0)
        i++;
    return refuse(where, value, types[i].bound, err);
}

static int check_enum(const json_t *schema, const json_t *value, const char *where, struct err *err)
{
    const json_t *names = json_object_get(schema, "enum");
    own_buf bound = BUF_INIT(sizeof err->bound - 1);
    size_t i;
    json_t *name;
    if (!names)
        return 0;
    json_array_foreach (names, i, name) {
        if (json_equal(name, value))
            return 0;
        if (buf_printf(&bound, "%s%s", i ? ", " : "one of ", json_string_value(name)) < 0)
            break;
    }
    return refuse(where, value, buf_str(&bound).at, err);
}

static int check_range(const json_t *schema, const json_t *value, const char *where,
                       struct err *err)
{
    const json_t *least = json_object_get(schema, "minimum");
    const json_t *most = json_object_get(schema, "maximum");
    const json_t *items = json_object_get(schema, "maxItems");
    char bound[64];
    if (least && json_number_value(value) < json_number_value(least)) {
        snprintf(bound, sizeof bound, "at least %g", json_number_value(least));
        return refuse(where, value, bound, err);
    }
    if (most && json_number_value(value) > json_number_value(most)) {
        snprintf(bound, sizeof bound, "at most %g", json_number_value(most));
        return refuse(where, value, bound, err);
    }
    if (items && json_array_size(value) > (size_t)json_integer_value(items)) {
        snprintf(bound, sizeof bound, "at most %lld entries", (long long)json_integer_value(items));
        return err_input(err, where, NULL, bound, "argument '%.80s' has %zu entries, %s", where,
                         json_array_size(value), bound);
    }
    return 0;
}

static int check_known(const json_t *properties, const json_t *value, const char *where,
                       struct err *err)
{
    const char *name;
    json_t *member;
    json_object_foreach ((json_t *)(uintptr_t)value, name, member) {
        own_buf bound = BUF_INIT(sizeof err->bound - 1);
        const char *known;
        json_t *unused;
        if (json_object_get(properties, name))
            continue;
        json_object_foreach ((json_t *)(uintptr_t)properties, known, unused)
            if (buf_printf(&bound, "%s%s", bound.len ? ", " : "", known) < 0)
                break;
        return err_input(err, name, NULL, buf_str(&bound).at, "argument '%.80s' is unknown%s%.80s",
                         name, *where ? " in " : "", where);
    }
    return 0;
}

static int check_members(const json_t *schema, const json_t *value, const char *where,
                         struct err *err)
{
    const json_t *properties = json_object_get(schema, "properties");
    const char *name;
    json_t *rule;
    size_t i;
    json_t *needed;
    if (json_is_false(json_object_get(schema, "additionalProperties")) &&
        check_known(properties, value, where, err) < 0)
        return -1;
    json_array_foreach (json_object_get(schema, "required"), i, needed)
        if (!json_object_get(value, json_string_value(needed)))
            return err_input(err, json_string_value(needed), NULL, "required",
                             "argument '%.80s' is missing%s%.80s", json_string_value(needed),
                             *where ? " in " : "", where);
    json_object_foreach ((json_t *)(uintptr_t)properties, name, rule) {
        const json_t *member = json_object_get(value, name);
        char path[96];
        snprintf(path, sizeof path, "%s%s%s", where, *where ? "." : "", name);
        if (member && check(rule, member, path, err) < 0)
            return -1;
    }
    return 0;
}

static int check(const json_t *schema, const json_t *value, const char *where, struct err *err)
{
    const json_t *items = json_object_get(schema, "items");
    size_t i;
    json_t *item;
    if (check_type(schema, value, where, err) < 0 || check_enum(schema, value, where, err) < 0 ||
        check_range(schema, value, where, err) < 0)
        return -1;
    if (items) {
        json_array_foreach (value, i, item) {
            char path[96];
            snprintf(path, sizeof path, "%.60s[%zu]", where, i);
            if (check(items, item, path, err) < 0)
                return -1;
        }
    }
    return json_is_object(value) ? check_members(schema, value, where, err) : 0;
}

int mcp_args_check(const json_t *schema, const json_t *args, struct err *err)
{
    return check(schema, args, "", err);
}
