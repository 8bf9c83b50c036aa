/* Writes tools to the terminal. Runs in the cli process, after the drop of rights. */
#include "cli/tools/tools_show.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "cli/term/term.h"
#include "cli/term/visible.h"
#include "contract/signature.h"
#include "tool/define/define.h"

#define OUT_MAX ((size_t)128 << 20)

const char *cli_tools_policy(const json_t *definition)
{
    own_tool tool = TOOL_INIT;
    struct err err = ERR_INIT;
    own_json none = json_object();
    if (json_is_array(json_object_get(definition, "policy")))
        return "rules";
    return tool_read(definition, &tool, &err) < 0 ? "?"
                                                  : tool_verdict_name(tool_judge(&tool, none));
}

static const char *effect_of(const json_t *definition)
{
    const char *effect = json_string_value(json_object_get(definition, "effect"));
    return effect ? effect : tool_effect_name(TOOL_WRITE);
}

static void print(const struct buf *text)
{
    own_buf visible = BUF_INIT(OUT_MAX);
    if (cli_visible_text(buf_str(text), &visible) < 0)
        cli_term_note("the output is too long to show; --json prints it");
    else
        cli_term_write(STDOUT_FILENO, buf_str(&visible));
}

void cli_tools_print_table(const json_t *definitions)
{
    own_buf out = BUF_INIT(OUT_MAX);
    size_t i, width = 4;
    json_t *definition;
    json_array_foreach (definitions, i, definition) {
        size_t len = json_get_str(definition, "name").len;
        width = len > width ? len : width;
    }
    if (i)
        buf_printf(&out, "%-*s  %-12s  %-6s  %s\n", (int)width, "NAME", "EFFECT", "POLICY",
                   "SOURCE");
    json_array_foreach (definitions, i, definition)
        buf_printf(&out, "%-*s  %-12s  %-6s  %s\n", (int)width, json_get_str(definition, "name").at,
                   effect_of(definition), cli_tools_policy(definition),
                   json_get_str(definition, "source").at);
    print(&out);
}

static void add_json(struct buf *out, const char *title, const json_t *value)
{
    own_str text = value ? json_write(value, JSON_INDENT(2) | JSON_ENCODE_ANY) : NULL;
    if (text)
        buf_printf(out, "\n%s: %s\n", title, text);
}

void cli_tools_print_one(const json_t *definition)
{
    own_buf out = BUF_INIT(OUT_MAX);
    signature_add(definition, /* python= */ false, &out);
    buf_printf(&out, "\n\n%s\n\neffect: %s\npolicy: %s\nsource: %s\n",
               json_get_str(definition, "description").at, effect_of(definition),
               cli_tools_policy(definition), json_get_str(definition, "source").at);
    if (json_is_array(json_object_get(definition, "policy")))
        add_json(&out, "policy", json_object_get(definition, "policy"));
    add_json(&out, "caps", json_object_get(definition, "caps"));
    add_json(&out, "input_schema", json_object_get(definition, "input_schema"));
    add_json(&out, "output_schema", json_object_get(definition, "output_schema"));
    print(&out);
}

void cli_tools_print_faults(const json_t *faults)
{
    own_buf out = BUF_INIT(OUT_MAX);
    size_t i;
    json_t *fault;
    json_array_foreach (faults, i, fault) {
        struct str source = json_get_str(fault, "source"), tool = json_get_str(fault, "tool");
        struct str hint = json_get_str(fault, "hint");
        buf_printf(&out, "bad  %s%s", source.at, source.len ? ": " : "");
        buf_printf(&out, "%s%s%s", tool.len ? "tool '" : "", tool.at, tool.len ? "': " : "");
        buf_printf(&out, "%s\n", json_get_str(fault, "message").at);
        if (hint.len)
            buf_printf(&out, "     %s\n", hint.at);
    }
    print(&out);
}

void cli_tools_print_value(const json_t *value)
{
    own_buf out = BUF_INIT(OUT_MAX);
    own_str text = json_is_string(value) ? NULL
                                         : json_write(value, JSON_INDENT(2) | JSON_ENCODE_ANY);
    int fits = text ? buf_add_text(&out, text) : buf_add_str(&out, json_str(value));
    if (fits == 0 && (out.len == 0 || out.at[out.len - 1] != '\n'))
        buf_add_text(&out, "\n");
    print(&out);
}
