/* The compiler of schemas: a table of keywords, one node for each schema inside the schema. A
 * reference is resolved by its JSON pointer to a node, so that a text with two references is
 * compiled once. Any process; no I/O. */

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"
#include "tool/define/schema_int.h"

#define POINTER_MAX 512

struct compiler {
    struct schema *schema;
    struct buf path; /* JSON pointer of the place */
    size_t depth;
    struct err *err;
};

struct keyword {
    const char *name;
    int (*take)(struct compiler *with, struct schema_node *node, const json_t *value,
                const struct keyword *row);
    int which;
};

static const struct schema_node *compile(struct compiler *with, const json_t *text);

static const char *path_of(const struct compiler *with)
{
    return with->path.len ? with->path.at : "";
}

static int refuse(struct compiler *with, const json_t *value, const char *bound)
{
    char given[96];
    json_brief(value, given, sizeof given);
    return err_input(with->err, path_of(with), given, bound, "'%s' of the schema is %s, must be %s",
                     path_of(with), given, bound);
}

/* Enter a member; the result goes to `leave`. -1: the pointer has no room. */
static int enter(struct compiler *with, const char *name, size_t *out_before)
{
    *out_before = with->path.len;
    int fits = buf_add_text(&with->path, "/");
    for (const char *at = name; *at && fits == 0; at++)
        fits = *at == '~'   ? buf_add_text(&with->path, "~0")
               : *at == '/' ? buf_add_text(&with->path, "~1")
                            : buf_add(&with->path, at, 1);
    if (fits == 0)
        return 0;
    return err_input(with->err, path_of(with), NULL, "at most 512 bytes",
                     "the schema has a place whose JSON pointer exceeds %d bytes, after '%.60s'",
                     POINTER_MAX, path_of(with));
}

static void leave(struct compiler *with, size_t before)
{
    with->path.len = before;
    if (with->path.at)
        with->path.at[before] = 0;
}

static const struct schema_node *compile_at(struct compiler *with, const char *name,
                                            const json_t *text)
{
    size_t before;
    const struct schema_node *node = enter(with, name, &before) < 0 ? NULL : compile(with, text);
    leave(with, before);
    return node;
}

static int take_note(struct compiler *with, struct schema_node *node, const json_t *value,
                     const struct keyword *row)
{
    (void)with, (void)node, (void)value, (void)row;
    return 0;
}

/* Annotations of the whole schema, which would change meaning further inside. */
static int take_root_note(struct compiler *with, struct schema_node *node, const json_t *value,
                          const struct keyword *row)
{
    if (node->text == with->schema->text)
        return 0;
    (void)value;
    return err_input(with->err, path_of(with), row->name, "only at the top of the schema",
                     "keyword '%s' at '%s' is supported only at the top of the schema", row->name,
                     path_of(with));
}

static int add_type(struct compiler *with, struct schema_node *node, const json_t *value)
{
    for (size_t i = 0; i < SCHEMA_TYPES; i++)
        if (json_is_string(value) && str_is(json_str(value), schema_types[i].name)) {
            node->types |= schema_types[i].type;
            return 0;
        }
    return refuse(with, value, "a type: null, boolean, integer, number, string, array, object");
}

static int take_type(struct compiler *with, struct schema_node *node, const json_t *value,
                     const struct keyword *row)
{
    (void)row;
    if (!json_is_array(value))
        return add_type(with, node, value);
    if (json_array_size(value) == 0)
        return refuse(with, value, "a type or a list of types");
    for (size_t i = 0; i < json_array_size(value); i++)
        if (add_type(with, node, json_array_get(value, i)) < 0)
            return -1;
    return 0;
}

static int take_number(struct compiler *with, struct schema_node *node, const json_t *value,
                       const struct keyword *row)
{
    if (!json_is_number(value))
        return refuse(with, value, "a number");
    if (row->which == MULTIPLE && !(json_number_value(value) > 0))
        return refuse(with, value, "a number above 0");
    node->number[row->which] = value;
    return 0;
}

static int take_count(struct compiler *with, struct schema_node *node, const json_t *value,
                      const struct keyword *row)
{
    double count = json_number_value(value);
    if (!schema_is_integer(value) || !(count >= 0 && count <= 0x1p53))
        return refuse(with, value, "a count of 0 or more");
    /* Rows of the least are even, of the most odd. */
    int64_t *list = row->which % 2 ? node->most : node->least;
    list[row->which / 2] = (int64_t)count;
    return 0;
}

static int take_unique(struct compiler *with, struct schema_node *node, const json_t *value,
                       const struct keyword *row)
{
    (void)row;
    node->unique = json_is_true(value);
    return json_is_boolean(value) ? 0 : refuse(with, value, "true or false");
}

static int take_const(struct compiler *with, struct schema_node *node, const json_t *value,
                      const struct keyword *row)
{
    (void)with, (void)row;
    node->constant = value;
    return 0;
}

static int take_enum(struct compiler *with, struct schema_node *node, const json_t *value,
                     const struct keyword *row)
{
    (void)row;
    node->choices = value;
    return json_is_array(value) ? 0 : refuse(with, value, "a list of values");
}

static bool is_names(const json_t *value)
{
    bool good = json_is_array(value);
    for (size_t i = 0; good && i < json_array_size(value); i++)
        good = json_is_string(json_array_get(value, i));
    return good;
}

static int take_required(struct compiler *with, struct schema_node *node, const json_t *value,
                         const struct keyword *row)
{
    (void)row;
    node->required = value;
    return is_names(value) ? 0 : refuse(with, value, "a list of names");
}

static int take_dependent(struct compiler *with, struct schema_node *node, const json_t *value,
                          const struct keyword *row)
{
    const char *name;
    json_t *names;
    (void)row;
    if (!json_is_object(value))
        return refuse(with, value, "an object of names and lists of names");
    json_object_foreach ((json_t *)(uintptr_t)value, name, names)
        if (!is_names(names))
            return refuse(with, names, "a list of names");
    node->dependent = value;
    return 0;
}

static void list_add(struct schema_list *list, const struct schema_node *node)
{
    list->at = buf_list_room(list->at, list->count, sizeof *list->at);
    list->at[list->count++] = node;
}

static int take_properties(struct compiler *with, struct schema_node *node, const json_t *value,
                           const struct keyword *row)
{
    const char *name;
    json_t *text;
    (void)row;
    if (!json_is_object(value))
        return refuse(with, value, "an object of names and schemas");
    node->property_places = json_object();
    json_object_foreach ((json_t *)(uintptr_t)value, name, text) {
        const struct schema_node *inner = compile_at(with, name, text);
        if (!inner)
            return -1;
        json_object_set_new(node->property_places, name,
                            json_integer((json_int_t)node->properties.count));
        list_add(&node->properties, inner);
    }
    return 0;
}

/* $defs: compiled here so that a fault in a definition that nobody names is found too. */
static int take_definitions(struct compiler *with, struct schema_node *node, const json_t *value,
                            const struct keyword *row)
{
    const char *name;
    json_t *text;
    (void)node, (void)row;
    if (!json_is_object(value))
        return refuse(with, value, "an object of names and schemas");
    json_object_foreach ((json_t *)(uintptr_t)value, name, text)
        if (!compile_at(with, name, text))
            return -1;
    return 0;
}

enum { ADDITIONAL, NAMES, ITEMS_EACH, NOT };

static int take_schema(struct compiler *with, struct schema_node *node, const json_t *value,
                       const struct keyword *row)
{
    const struct schema_node **places[] = { [ADDITIONAL] = &node->additional,
                                            [NAMES] = &node->names,
                                            [ITEMS_EACH] = &node->items,
                                            [NOT] = &node->refused };
    *places[row->which] = compile(with, value);
    return *places[row->which] ? 0 : -1;
}

enum { ALL, ANY, ONE, PREFIX };

static int take_schemas(struct compiler *with, struct schema_node *node, const json_t *value,
                        const struct keyword *row)
{
    struct schema_list *lists[] = {
        [ALL] = &node->all, [ANY] = &node->any, [ONE] = &node->one, [PREFIX] = &node->prefix
    };
    if (!json_is_array(value) || json_array_size(value) == 0)
        return refuse(with, value, "a list of one schema or more");
    for (size_t i = 0; i < json_array_size(value); i++) {
        char place[24];
        snprintf(place, sizeof place, "%zu", i);
        const struct schema_node *inner = compile_at(with, place, json_array_get(value, i));
        if (!inner)
            return -1;
        list_add(lists[row->which], inner);
    }
    return 0;
}

/* One step of a JSON pointer, unescaped into `name`. */
static const json_t *step(const json_t *from, const char **at, char name[POINTER_MAX])
{
    size_t len = 0;
    for ((*at)++; **at && **at != '/' && len < POINTER_MAX - 1; (*at)++) {
        char c = **at;
        if (c == '~' && ((*at)[1] == '0' || (*at)[1] == '1'))
            c = *++*at == '0' ? '~' : '/';
        name[len++] = c;
    }
    name[len] = 0;
    uint64_t place;
    if (json_is_array(from))
        return str_to_u64(str_of(name), &place) ? json_array_get(from, place) : NULL;
    return json_object_get(from, name);
}

static int take_ref(struct compiler *with, struct schema_node *node, const json_t *value,
                    const struct keyword *row)
{
    struct str text = json_is_string(value) ? json_str(value) : STR_NONE;
    const json_t *at = with->schema->text;
    char name[POINTER_MAX];
    (void)row;
    if (text.len == 0 || *text.at != '#' || strlen(text.at) != text.len || text.len > POINTER_MAX ||
        (text.len > 1 && text.at[1] != '/'))
        return refuse(with, value, "a place in the same schema, such as \"#/$defs/name\"");
    struct buf here = with->path;
    with->path = BUF_INIT(POINTER_MAX);
    for (const char *rest = text.at + 1; at && *rest;) {
        size_t before;
        at = step(at, &rest, name);
        if (at && enter(with, name, &before) < 0)
            at = NULL;
    }
    const struct schema_node *found = at ? compile(with, at) : NULL;
    buf_done(&with->path);
    with->path = here;
    node->reference = found;
    if (found)
        return 0;
    return at ? -1 : refuse(with, value, "a place that exists in the schema");
}

/* One row is one keyword; tests/docs/test_tools.py holds the list of docs/tools.md equal. */
static const struct keyword keywords[] = {
    { "$comment", take_note, 0 },
    { "$defs", take_definitions, 0 },
    { "$id", take_root_note, 0 },
    { "$ref", take_ref, 0 },
    { "$schema", take_root_note, 0 },
    { "additionalProperties", take_schema, ADDITIONAL },
    { "allOf", take_schemas, ALL },
    { "anyOf", take_schemas, ANY },
    { "const", take_const, 0 },
    { "contentEncoding", take_note, 0 },
    { "contentMediaType", take_note, 0 },
    { "default", take_note, 0 },
    { "definitions", take_definitions, 0 },
    { "dependentRequired", take_dependent, 0 },
    { "deprecated", take_note, 0 },
    { "description", take_note, 0 },
    { "enum", take_enum, 0 },
    { "examples", take_note, 0 },
    { "exclusiveMaximum", take_number, BELOW },
    { "exclusiveMinimum", take_number, ABOVE },
    { "format", take_note, 0 },
    { "items", take_schema, ITEMS_EACH },
    { "maxItems", take_count, 2 * ITEMS + 1 },
    { "maxLength", take_count, 2 * LENGTH + 1 },
    { "maxProperties", take_count, 2 * PROPERTIES + 1 },
    { "maximum", take_number, MOST },
    { "minItems", take_count, 2 * ITEMS },
    { "minLength", take_count, 2 * LENGTH },
    { "minProperties", take_count, 2 * PROPERTIES },
    { "minimum", take_number, LEAST },
    { "multipleOf", take_number, MULTIPLE },
    { "not", take_schema, NOT },
    { "oneOf", take_schemas, ONE },
    { "prefixItems", take_schemas, PREFIX },
    { "properties", take_properties, 0 },
    { "propertyNames", take_schema, NAMES },
    { "readOnly", take_note, 0 },
    { "required", take_required, 0 },
    { "title", take_note, 0 },
    { "type", take_type, 0 },
    { "uniqueItems", take_unique, 0 },
    { "writeOnly", take_note, 0 },
};

static int by_name(const void *name, const void *row)
{
    return strcmp(name, ((const struct keyword *)row)->name);
}

static int take_keyword(struct compiler *with, struct schema_node *node, const char *name,
                        const json_t *value)
{
    const struct keyword *row = bsearch(name, keywords, array_len(keywords), sizeof *keywords,
                                        by_name);
    size_t before;
    if (!row && strncmp(name, "x-", 2) == 0)
        return 0;
    int done = enter(with, name, &before);
    if (done == 0 && row) {
        done = row->take(with, node, value, row);
    } else if (done == 0) {
        done = err_input(with->err, path_of(with), name, "a keyword that cupel checks",
                         "keyword '%.60s' at '%s' of the schema is not supported", name,
                         path_of(with));
        err_hint(with->err, "docs/tools.md lists the supported keywords; a rule in another one "
                            "would not be checked");
    }
    leave(with, before);
    return done;
}

static struct schema_node *node_new(struct compiler *with, const json_t *text)
{
    struct schema *schema = with->schema;
    if (schema->count >= SCHEMA_NODES_MAX) {
        err_input(with->err, path_of(with), NULL, "at most 4096 schemas",
                  "the schema has more than %d schemas in it", SCHEMA_NODES_MAX);
        return NULL;
    }
    struct schema_node *node = buf_alloc_zero(1, sizeof *node);
    schema->nodes = buf_list_room(schema->nodes, schema->count, sizeof *schema->nodes);
    json_object_set_new(schema->places, path_of(with), json_integer((json_int_t)schema->count));
    schema->nodes[schema->count++] = node;
    node->text = text;
    for (int i = 0; i < COUNTS; i++)
        node->least[i] = node->most[i] = -1;
    return node;
}

static const struct schema_node *compile(struct compiler *with, const json_t *text)
{
    const json_t *known = json_object_get(with->schema->places, path_of(with));
    const char *name;
    json_t *value;
    if (known)
        return with->schema->nodes[json_integer_value(known)];
    if (!json_is_object(text) && !json_is_boolean(text)) {
        refuse(with, text, "a schema: an object, true or false");
        return NULL;
    }
    struct schema_node *node = node_new(with, text);
    if (!node)
        return NULL;
    node->never = json_is_false(text);
    if (with->depth >= SCHEMA_DEPTH_MAX) {
        err_input(with->err, path_of(with), NULL, "at most 48 levels",
                  "the schema has schemas nested more than %d deep", SCHEMA_DEPTH_MAX);
        return NULL;
    }
    with->depth++;
    int done = 0;
    json_object_foreach ((json_t *)(uintptr_t)text, name, value)
        if ((done = take_keyword(with, node, name, value)) < 0)
            break;
    with->depth--;
    return done < 0 ? NULL : node;
}

const struct schema_node *schema_compile(struct schema *schema, struct err *err)
{
    struct compiler with = { schema, BUF_INIT(POINTER_MAX), 0, err };
    const struct schema_node *root = compile(&with, schema->text);
    buf_done(&with.path);
    return root;
}
