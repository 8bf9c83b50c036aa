/* JSON Schemas of others, in the keywords that tool/define/schema.c checks. Runs in the tool host;
 * pure. The result accepts all that the original accepts, perhaps more: the owner of the
 * schema checks a call again. Understands the older forms of OpenAPI 3.0 and draft 7. */
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"
#include "tool/define/schema.h"
#include "tool/host/foreign.h"

#define REFERENCE "#/components/schemas/"

struct walk {
    struct foreign *foreign;
    struct err *err;
    int depth;
    bool loosened; /* a rule was left out */
};

typedef json_t *change(struct walk *walk, const json_t *value);

static json_t *change_schema(struct walk *walk, const json_t *schema);

static json_t *refuse(struct walk *walk, const char *text)
{
    err_input(walk->err, "", NULL, NULL, "the schema %s", text);
    return NULL;
}

/* ---- kinds of keywords ---- */

static json_t *keep(struct walk *walk, const json_t *value)
{
    (void)walk;
    return json_deep_copy(value);
}

static json_t *keep_text(struct walk *walk, const json_t *value)
{
    (void)walk;
    return foreign_text(json_str(value));
}

static json_t *change_list(struct walk *walk, const json_t *list)
{
    json_t *out = json_array(), *inner;
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (!(inner = change_schema(walk, json_array_get(list, i)))) {
            json_decref(out);
            return NULL;
        }
        json_array_append_new(out, inner);
    }
    return out;
}

static json_t *change_map(struct walk *walk, const json_t *map)
{
    json_t *out = json_object(), *schema, *inner;
    const char *name;
    json_object_foreach ((json_t *)(uintptr_t)map, name, schema) {
        if (!(inner = change_schema(walk, schema))) {
            json_decref(out);
            return NULL;
        }
        json_object_set_new(out, name, inner);
    }
    return out;
}

/* `not` of a looser schema would be stricter. */
static json_t *change_not(struct walk *walk, const json_t *schema)
{
    bool before = walk->loosened;
    walk->loosened = false;
    json_t *inner = change_schema(walk, schema);
    if (inner && walk->loosened) {
        json_decref(inner);
        inner = json_false();
    }
    walk->loosened = walk->loosened || before;
    return inner;
}

/* Into $defs, once: a schema may refer to itself. */
static json_t *change_reference(struct walk *walk, const json_t *value)
{
    struct foreign *foreign = walk->foreign;
    const char *text = json_string_value(value);
    walk->loosened = true; /* perhaps */
    if (!text || !foreign->document)
        return json_deep_copy(value);
    const char *name = text + strlen(REFERENCE);
    const json_t *schemas = json_object_get(json_object_get(foreign->document, "components"),
                                            "schemas");
    if (strncmp(text, REFERENCE, strlen(REFERENCE)) != 0 || strpbrk(name, "/~%"))
        return refuse(walk, "refers to a place outside of #/components/schemas");
    const json_t *schema = json_object_get(schemas, name);
    if (!schema)
        return refuse(walk, "refers to a schema that the document does not have");
    if (!foreign->definitions)
        foreign->definitions = json_object();
    if (!json_object_get(foreign->definitions, name)) {
        json_object_set_new(foreign->definitions, name, json_true());
        json_t *inner = change_schema(walk, schema);
        if (!inner)
            return NULL;
        json_object_set_new(foreign->definitions, name, inner);
    }
    own_buf place = BUF_INIT(4096);
    return buf_printf(&place, "#/$defs/%s", name) < 0 ? refuse(walk, "refers to a name of 4 KiB")
                                                      : json_text(buf_str(&place));
}

static const struct {
    const char *keyword;
    change *change;
    unsigned is; /* the JSON types that it may have: others are left out */
} rows[] = {
#define IS(type) (1u << JSON_##type)
#define SCHEMA (IS(OBJECT) | IS(TRUE) | IS(FALSE))
#define NUMBER (IS(INTEGER) | IS(REAL))
    { "$ref", change_reference, IS(STRING) },
    { "$defs", change_map, IS(OBJECT) },
    { "definitions", change_map, IS(OBJECT) },
    { "properties", change_map, IS(OBJECT) },
    { "additionalProperties", change_schema, SCHEMA },
    { "items", change_schema, SCHEMA },
    { "propertyNames", change_schema, SCHEMA },
    { "not", change_not, SCHEMA },
    { "allOf", change_list, IS(ARRAY) },
    { "anyOf", change_list, IS(ARRAY) },
    { "prefixItems", change_list, IS(ARRAY) },
    { "type", keep, IS(STRING) | IS(ARRAY) },
    { "enum", keep, IS(ARRAY) },
    { "const", keep, ~0u },
    { "default", keep, ~0u },
    { "format", keep_text, IS(STRING) },
    { "title", keep_text, IS(STRING) },
    { "description", keep_text, IS(STRING) },
    { "required", keep, IS(ARRAY) },
    { "dependentRequired", keep, IS(OBJECT) },
    { "minimum", keep, NUMBER },
    { "maximum", keep, NUMBER },
    { "exclusiveMinimum", keep, NUMBER },
    { "exclusiveMaximum", keep, NUMBER },
    { "multipleOf", keep, NUMBER },
    { "minLength", keep, NUMBER },
    { "maxLength", keep, NUMBER },
    { "minItems", keep, NUMBER },
    { "maxItems", keep, NUMBER },
    { "uniqueItems", keep, IS(TRUE) | IS(FALSE) },
    { "minProperties", keep, NUMBER },
    { "maxProperties", keep, NUMBER },
};

/* Notes, which constrain nothing. */
static bool is_note(const char *keyword)
{
    static const char *const notes[] = { "$schema",    "$id",         "id",       "$comment",
                                         "example",    "examples",    "xml",      "externalDocs",
                                         "deprecated", "readOnly",    "writeOnly", "nullable",
                                         "oneOf",      "discriminator" };
    for (size_t i = 0; i < array_len(notes); i++)
        if (strcmp(keyword, notes[i]) == 0)
            return true;
    return strncmp(keyword, "x-", 2) == 0;
}

/* ---- older forms ---- */

/* {"type":"string","nullable":true} of OpenAPI 3.0. */
static void allow_null(json_t *out)
{
    json_t *type = json_object_get(out, "type"), *choices = json_object_get(out, "enum");
    if (json_is_string(type))
        json_object_set_new(out, "type", json_pack("[O,s]", type, "null"));
    if (choices)
        json_array_append_new(choices, json_null());
}

/* {"minimum":0,"exclusiveMinimum":true} of draft 4. */
static void exclude(json_t *out, const json_t *schema, const char *limit, const char *exclusive)
{
    json_t *value = json_object_get(out, limit);
    if (value && json_is_true(json_object_get(schema, exclusive))) {
        json_object_set(out, exclusive, value);
        json_object_del(out, limit);
    }
}

/* Looser rules where one was left out; a list of items of draft 7. */
static int finish(struct walk *walk, const json_t *schema, json_t *out)
{
    const json_t *items = json_object_get(schema, "items"), *one = json_object_get(schema, "oneOf");
    json_t *list = NULL;
    if (json_object_get(schema, "patternProperties"))
        json_object_del(out, "additionalProperties");
    if (json_is_array(items) && json_array_size(items) > 0) {
        if (!(list = change_list(walk, items)))
            return -1;
        json_object_set_new(out, "prefixItems", list);
    }
    /* Branches that lost a rule may both fit. */
    if (json_array_size(one) > 0 && !json_object_get(out, "anyOf")) {
        if (!(list = change_list(walk, one)))
            return -1;
        json_object_set_new(out, "anyOf", list);
        walk->loosened = true;
    }
    if (json_is_true(json_object_get(schema, "nullable")))
        allow_null(out);
    exclude(out, schema, "minimum", "exclusiveMinimum");
    exclude(out, schema, "maximum", "exclusiveMaximum");
    return 0;
}

static int change_member(struct walk *walk, const char *keyword, const json_t *value, json_t *out)
{
    size_t i = 0;
    while (i < array_len(rows) && strcmp(rows[i].keyword, keyword) != 0)
        i++;
    if (i == array_len(rows) || !(rows[i].is & 1u << json_typeof(value))) {
        walk->loosened = walk->loosened || !is_note(keyword);
        return 0;
    }
    json_t *inner = rows[i].change(walk, value);
    if (!inner)
        return -1;
    bool nothing = (rows[i].change == change_not && walk->loosened && json_is_false(inner)) ||
                   (rows[i].change == change_list && json_array_size(inner) == 0);
    if (nothing)
        json_decref(inner);
    else
        json_object_set_new(out, keyword, inner);
    return 0;
}

static json_t *change_schema(struct walk *walk, const json_t *schema)
{
    const char *keyword;
    json_t *value;
    if (json_is_boolean(schema))
        return json_deep_copy(schema);
    if (!json_is_object(schema))
        return refuse(walk, "has a part that is no schema");
    if (++walk->foreign->nodes > SCHEMA_NODES_MAX)
        return refuse(walk, "has more than 4096 parts");
    if (walk->depth == SCHEMA_DEPTH_MAX)
        return refuse(walk, "is nested more than 48 deep");
    walk->depth++;
    json_t *out = json_object();
    int rc = 0;
    json_object_foreach ((json_t *)(uintptr_t)schema, keyword, value)
        if (rc == 0)
            rc = change_member(walk, keyword, value, out);
    if (rc == 0)
        rc = finish(walk, schema, out);
    walk->depth--;
    if (rc == 0)
        return out;
    json_decref(out);
    return NULL;
}

json_t *foreign_schema(struct foreign *foreign, const json_t *schema, struct err *err)
{
    struct walk walk = { .foreign = foreign, .err = err };
    return change_schema(&walk, schema);
}
