/* The signature of a tool. Pure: any process. Definitions are strangers': types are checked. */
#include "contract/signature.h"

#include "base/attr.h"
#include "base/json.h"
#include "base/own.h"

/* The type of a schema in Python's words. */
static const char *type_word(const json_t *schema)
{
    static const struct {
        const char *type, *word;
    } words[] = { { "string", "str" }, { "integer", "int" }, { "number", "float" },
                  { "boolean", "bool" }, { "array", "list" }, { "object", "dict" },
                  { "null", "None" } };
    struct str type = json_get_str(schema, "type");
    for (size_t i = 0; i < array_len(words); i++)
        if (str_is(type, words[i].type))
            return words[i].word;
    return "Any";
}

static bool is_required(const json_t *schema, const char *name)
{
    size_t i;
    json_t *one;
    json_array_foreach (json_object_get(schema, "required"), i, one)
        if (str_is(json_str(one), name))
            return true;
    return false;
}

/* A name as Python's code has it, as drivers/functions.py makes it. */
static void add_name(const char *name, bool python, struct buf *out)
{
    for (; *name; name++) {
        bool plain = (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') ||
                     (*name >= '0' && *name <= '9') || *name == '_' || *name == '.';
        buf_add(out, plain || !python ? name : "_", 1);
    }
}

static void add_parameters(const json_t *schema, bool required, bool python, size_t *count,
                           struct buf *out)
{
    const char *name;
    json_t *property;
    json_object_foreach (json_object_get(schema, "properties"), name, property) {
        if (is_required(schema, name) != required)
            continue;
        const json_t *usual = json_object_get(property, "default");
        own_str text = usual ? json_write(usual, JSON_COMPACT) : NULL;
        buf_add_text(out, (*count)++ ? ", " : "");
        add_name(name, python, out);
        buf_printf(out, ": %s", type_word(property));
        if (!required)
            buf_printf(out, " = %.60s", text ? text : "None");
    }
}

void signature_add(const json_t *definition, bool python, struct buf *out)
{
    const json_t *input = json_object_get(definition, "input_schema");
    const json_t *output = json_object_get(definition, "output_schema");
    size_t count = 0;
    add_name(json_get_str(definition, "name").at, python, out);
    buf_add_text(out, "(");
    add_parameters(input, /* required= */ true, python, &count, out);
    add_parameters(input, /* required= */ false, python, &count, out);
    buf_printf(out, ")%s%s", output ? " -> " : "", output ? type_word(output) : "");
}
