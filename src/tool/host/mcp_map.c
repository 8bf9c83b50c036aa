/* Tools of MCP servers as definitions. Runs in the tool host; pure. Names, texts and schemas are
 * the server's: made good, bounded, and never believed. A hint that a tool only reads makes its
 * effect "read", all others "write"; the configuration has the last word. */
#include "tool/host/mcp_map.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"
#include "tool/define/define.h"
#include "tool/host/foreign.h"

#define PARAMETERS_MAX 16

void mcp_map_init(struct mcp_map *map, const char *alias, const json_t *wishes)
{
    *map = (struct mcp_map){ alias, wishes, json_object(), json_array(), json_array() };
}

void mcp_map_done(struct mcp_map *map)
{
    json_decref(map->names);
    json_decref(map->definitions);
    json_decref(map->faults);
    *map = (struct mcp_map){ .names = NULL };
}

static void add_fault(struct mcp_map *map, const char *tool, const char *text)
{
    json_array_append_new(map->faults,
                          json_pack("{s:s,s:o}", "tool", tool, "message", json_text(str_of(text))));
}

/* The first pattern of the configuration that fits the server's own name. */
static void apply_wishes(const struct mcp_map *map, struct str theirs, json_t *definition)
{
    static const char *const fields[] = { "effect", "policy", "caps", "idempotency_key" };
    const char *pattern;
    json_t *wish, *value;
    json_object_foreach ((json_t *)(uintptr_t)map->wishes, pattern, wish) {
        if (!tool_glob_fits(theirs, str_of(pattern)))
            continue;
        for (size_t i = 0; i < array_len(fields); i++)
            if ((value = json_object_get(wish, fields[i])))
                json_object_set_new(definition, fields[i], json_deep_copy(value));
        return;
    }
}

/* ---- schemas ---- */

static json_t *input_of(const json_t *tool, struct err *err)
{
    struct foreign foreign = { .document = NULL };
    const json_t *schema = json_object_get(tool, "inputSchema");
    json_t *input = schema ? foreign_schema(&foreign, schema, err) : json_object();
    if (input && !json_object_get(input, "type"))
        json_object_set_new(input, "type", json_string("object"));
    return input;
}

/* NULL where there is none that can be checked: the result is data in either case. */
static json_t *output_of(const json_t *tool)
{
    struct err err = ERR_INIT;
    struct foreign foreign = { .document = NULL };
    const json_t *schema = json_object_get(tool, "outputSchema");
    own_json output = schema ? foreign_schema(&foreign, schema, &err) : NULL;
    own_schema check = output ? schema_new(output, &err) : NULL;
    return check ? take_ptr(output) : NULL;
}

static bool is_token(const char *name)
{
    size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");
    return len > 0 && len <= 64 && name[len] == 0;
}

/* Arguments that HTTP mirrors in headers, {argument: header}. NULL: an annotation is wrong, and the
 * tool is to be left out. */
static json_t *headers_of(const json_t *tool)
{
    const json_t *properties = json_object_get(json_object_get(tool, "inputSchema"), "properties");
    json_t *headers = json_object(), *property;
    const char *name;
    json_object_foreach ((json_t *)(uintptr_t)properties, name, property) {
        const json_t *mark = json_object_get(property, "x-mcp-header");
        struct str type = json_get_str(property, "type");
        bool simple = str_is(type, "string") || str_is(type, "integer") || str_is(type, "boolean");
        if (!mark)
            continue;
        if (!simple || !json_is_string(mark) || !is_token(json_string_value(mark)) ||
            json_object_size(headers) == PARAMETERS_MAX) {
            json_decref(headers);
            return NULL;
        }
        json_object_set(headers, name, (json_t *)(uintptr_t)mark);
    }
    return headers;
}

/* ---- definitions ---- */

static void add_definition(struct mcp_map *map, struct str theirs, json_t *definition, json_t *way)
{
    char name[TOOL_NAME_MAX + 1];
    struct err err = ERR_INIT;
    struct tool check = TOOL_INIT;
    foreign_name(map->alias, theirs, map->names, name);
    json_object_set_new(definition, "name", json_string(name));
    apply_wishes(map, theirs, definition);
    if (tool_read(definition, &check, &err) < 0) {
        add_fault(map, name, err.text);
        json_decref(definition);
        json_decref(way);
        return;
    }
    tool_done(&check);
    json_object_set_new(map->names, name, way);
    json_array_append_new(map->definitions, definition);
}

static void add_tool(struct mcp_map *map, const json_t *tool)
{
    struct err err = ERR_INIT;
    struct str theirs = json_get_str(tool, "name");
    const json_t *hint = json_object_get(json_object_get(tool, "annotations"), "readOnlyHint");
    json_t *headers = headers_of(tool), *input = headers ? input_of(tool, &err) : NULL;
    json_t *output = output_of(tool), *definition = json_object();
    char shown[80];
    if (theirs.len == 0 || !input) {
        str_plain(shown, sizeof shown, theirs);
        add_fault(map, shown,
                  !theirs.len ? "it has no name"
                  : headers   ? err.text
                              : "its 'x-mcp-header' is wrong");
        json_decref(headers);
        json_decref(input);
        json_decref(output);
        json_decref(definition);
        return;
    }
    json_object_set_new(definition, "description", foreign_text(json_get_str(tool, "description")));
    json_object_set_new(definition, "input_schema", input);
    if (output)
        json_object_set_new(definition, "output_schema", output);
    json_object_set_new(definition, "effect", json_string(json_is_true(hint) ? "read" : "write"));
    add_definition(map, theirs, definition,
                   json_pack("{s:o,s:o}", "tool", json_text(theirs), "headers", headers));
}

int mcp_map_tools(struct mcp_map *map, const json_t *tools, struct err *err)
{
    size_t i;
    json_t *tool;
    json_array_foreach ((json_t *)(uintptr_t)tools, i, tool) {
        if (json_array_size(map->definitions) + json_array_size(map->faults) >= MCP_TOOLS_MAX)
            return err_set(err, ERR_LIMIT, "it has more than %d tools", MCP_TOOLS_MAX);
        add_tool(map, tool);
    }
    return 0;
}

void mcp_map_resources(struct mcp_map *map)
{
    json_t *list = json_pack("{s:s,s:{s:s,s:{},s:b},s:s}", "description",
                             "The resources that this server offers: their URIs, names and types.",
                             "input_schema", "type", "object", "properties", "additionalProperties",
                             0, "effect", "read");
    json_t *read = json_pack("{s:s,s:{s:s,s:{s:{s:s,s:s}},s:[s],s:b},s:s}", "description",
                             "Read one of this server's resources: a text, or a file.",
                             "input_schema", "type", "object", "properties", "uri", "type",
                             "string", "description", "as list_resources gives it", "required",
                             "uri", "additionalProperties", 0, "effect", "read");
    add_definition(map, STR("list_resources"), list,
                   json_pack("{s:s}", "resources", "resources/list"));
    add_definition(map, STR("read_resource"), read,
                   json_pack("{s:s}", "resources", "resources/read"));
}
