/* Schemas: making one from its text, and ending it. Any process; no I/O. */
#include "tool/define/schema.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/own.h"
#include "tool/define/schema_int.h"

const struct schema_names schema_types[SCHEMA_TYPES] = {
    { TYPE_NULL, "null", "null" },
    { TYPE_BOOLEAN, "boolean", "true or false" },
    { TYPE_INTEGER, "integer", "an integer" },
    { TYPE_NUMBER, "number", "a number" },
    { TYPE_STRING, "string", "a string" },
    { TYPE_ARRAY, "array", "a list" },
    { TYPE_OBJECT, "object", "an object" },
};

/* A schema that applies itself to the same value again has no meaning: a circle of references with
 * no step into the value between them. */
static bool is_circle(const struct schema_node *node)
{
    enum { UNSEEN, OPEN, CLOSED };
    struct schema_node *own = (struct schema_node *)(uintptr_t)node;
    if (!node || node->colour != UNSEEN)
        return node && node->colour == OPEN;
    own->colour = OPEN;
    const struct schema_list *lists[] = { &node->all, &node->any, &node->one };
    bool found = is_circle(node->reference) || is_circle(node->refused);
    for (size_t i = 0; i < array_len(lists); i++)
        for (size_t j = 0; j < lists[i]->count && !found; j++)
            found = is_circle(lists[i]->at[j]);
    own->colour = CLOSED;
    return found;
}

static int check_circles(const struct schema *schema, struct err *err)
{
    const char *place;
    json_t *number;
    json_object_foreach (schema->places, place, number)
        if (is_circle(schema->nodes[json_integer_value(number)]))
            return err_input(err, place, NULL, "references that lead into the value",
                             "the schema at '%s' refers to itself without end", place);
    return 0;
}

struct schema *schema_new(const json_t *text, struct err *err)
{
    size_t bytes = json_dumpb(text, NULL, 0, JSON_ENCODE_ANY | JSON_COMPACT);
    if (bytes > SCHEMA_BYTES_MAX) {
        char given[32];
        snprintf(given, sizeof given, "%zu", bytes);
        err_input(err, "", given, "at most 262144 bytes",
                  "the schema has %zu bytes; the maximum is %d", bytes, SCHEMA_BYTES_MAX);
        return NULL;
    }
    own_schema schema = buf_alloc_zero(1, sizeof *schema);
    schema->text = json_deep_copy(text);
    schema->places = json_object();
    return schema_compile(schema, err) && check_circles(schema, err) == 0 ? take_ptr(schema) : NULL;
}

void schema_free(struct schema *schema)
{
    if (!schema)
        return;
    for (size_t i = 0; i < schema->count; i++) {
        struct schema_node *node = schema->nodes[i];
        json_decref(node->property_places);
        free(node->properties.at);
        free(node->prefix.at);
        free(node->all.at);
        free(node->any.at);
        free(node->one.at);
        free(node);
    }
    free(schema->nodes);
    json_decref(schema->places);
    json_decref(schema->text);
    free(schema);
}
