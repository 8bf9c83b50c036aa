/* The tools of one run, from the request: definitions of the client, and names and patterns of the
 * tools of the engine's owner. Runs in the serve process. Each list is compiled once (ready.h). */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"
#include "tool/call/call_int.h"

#define TOOLS_MAX 512 /* of a run, after patterns have become names */

static void name_field(struct err *err, size_t index)
{
    char field[sizeof err->field];
    snprintf(field, sizeof field, "tools[%zu]%s%.60s", index, err->field[0] ? "." : "", err->field);
    memcpy(err->field, field, sizeof field);
}

static int add(struct calls *calls, size_t index, bool owned, struct err *err)
{
    const struct ready_tool *tool = ready_at(owned ? calls->ready_owned : calls->ready, index, err);
    if (!tool)
        return -1;
    calls->tools[calls->tool_count++] = (struct calls_tool){
        .of = &tool->of, .told_text = tool->told_text, .owned = owned
    };
    json_array_append(calls->told, tool->told);
    return 0;
}

static int add_client_tool(struct calls *calls, const json_t *entry, size_t index, struct err *err)
{
    struct str name = json_get_str(entry, "name");
    if (!calls->hooks.answers) {
        err_input(err, "tools", NULL, "a client that hears events and answers",
                  "a definition in 'tools' needs a client that answers the calls of the tool");
        err_hint(err, "ask for events: \"events\": true on the socket, an event stream or "
                      "\"wait\": false over HTTP, on_event in libcupel; for a cell without tools "
                      "send \"tools\": []");
        return -1;
    }
    if (calls_find_tool(calls, name)) {
        err_input(err, "name", NULL, "each name once", "two tools have the name '%.80s'", name.at);
        name_field(err, index);
        return -1;
    }
    if (add(calls, index, /* owned= */ false, err) == 0)
        return 0;
    name_field(err, index);
    return err_wrap(err, "tools[%zu]", index);
}

static int refuse_name(const struct calls *calls, const json_t *entry, size_t index,
                       struct err *err)
{
    const json_t *all = shed_definitions(calls->hooks.shed);
    char field[32], value[80];
    snprintf(field, sizeof field, "tools[%zu]", index);
    json_brief(entry, value, sizeof value);
    err_input(err, field, value, "a tool of the engine, a pattern of some, or a definition",
              json_array_size(all) ? "there is no tool %s"
                                   : "there is no tool %s: this engine has no tools of its own",
              value);
    err_hint(err, "'cupel tools ls' lists the tools of a host; or define the tool in the request, "
                  "and answer its calls");
    return -1;
}

/* A tool may fit several patterns. The last refusal is told if nothing was added. */
static int add_owned_tools(struct calls *calls, const json_t *entry, size_t index, struct err *err)
{
    const char *pattern = json_string_value(entry);
    const json_t *all = shed_definitions(calls->hooks.shed);
    bool is_name = !strchr(pattern, '*'), fits = false;
    size_t i;
    json_t *definition;
    json_array_foreach ((json_t *)(uintptr_t)all, i, definition) {
        struct str name = json_get_str(definition, "name");
        struct err refused = ERR_INIT;
        if (!tool_name_fits(name, pattern))
            continue;
        if (calls->hooks.allows && calls->hooks.allows(calls->hooks.user, name.at, &refused) < 0) {
            *err = refused;
            continue;
        }
        fits = true;
        if (calls_find_tool(calls, name))
            continue;
        if (calls->tool_count >= TOOLS_MAX)
            return err_input(err, "tools", NULL, "patterns of fewer tools",
                             "the patterns fit more than %d tools", TOOLS_MAX);
        if (add(calls, i, /* owned= */ true, err) < 0)
            return err_wrap(err, "tool '%.64s'", name.at);
    }
    if (fits) {
        *err = ERR_INIT;
        return 0;
    }
    return err->kind != ERR_NONE && is_name ? -1 : refuse_name(calls, entry, index, err);
}

int calls_choose(struct calls *calls, const json_t *wanted, struct err *err)
{
    size_t i;
    json_t *entry;
    calls->tools = buf_alloc_zero(TOOLS_MAX + json_array_size(wanted), sizeof *calls->tools);
    json_array_foreach ((json_t *)(uintptr_t)wanted, i, entry) {
        int rc = json_is_object(entry) ? add_client_tool(calls, entry, i, err)
                                       : add_owned_tools(calls, entry, i, err);
        if (rc < 0)
            return -1;
    }
    return 0;
}
