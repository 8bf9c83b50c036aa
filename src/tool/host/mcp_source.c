/* Files with "mcpServers". Runs in the tool host. Other members of the file are other programs' and
 * ignored, so that a file which a user already has works as it is. A server with a fault leaves the
 * others alone. */
#include "tool/host/mcp_source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "tool/host/mcp_server.h"

struct mcp_source {
    struct mcp_server *servers[MCP_SERVERS_MAX];
    size_t count;
    json_t *faults; /* of entries that could not be read */
};

static json_t *list(void *state, int64_t deadline_ns, json_t *faults, struct err *err)
{
    struct mcp_source *source = state;
    json_t *definitions = json_array();
    (void)err;
    own_json wrong = json_deep_copy(source->faults);
    json_array_extend(faults, wrong);
    for (size_t i = 0; i < source->count; i++)
        mcp_server_begin(source->servers[i]);
    for (size_t i = 0; i < source->count; i++)
        mcp_server_list(source->servers[i], deadline_ns, definitions, faults);
    return definitions;
}

static struct mcp_server *find(const struct mcp_source *source, const char *tool)
{
    for (size_t i = 0; i < source->count; i++) {
        const char *alias = mcp_server_alias(source->servers[i]);
        size_t len = strlen(alias);
        if (strncmp(tool, alias, len) == 0 && tool[len] == '.')
            return source->servers[i];
    }
    return NULL;
}

static json_t *call(void *state, const char *tool, const json_t *arguments,
                    const struct source_context *context)
{
    struct mcp_server *server = find(state, tool);
    return server ? mcp_server_call(server, tool, arguments, context)
                  : outcome_error(OUTCOME_ERROR, "no server has the tool '%s'", tool);
}

static void close_source(void *state)
{
    struct mcp_source *source = state;
    for (size_t i = 0; i < source->count; i++)
        mcp_server_free(source->servers[i]);
    json_decref(source->faults);
    free(source);
}

static void add_fault(struct mcp_source *source, const char *alias, const struct err *why)
{
    own_buf text = BUF_INIT(2048);
    char shown[64];
    str_plain(shown, sizeof shown, str_of(alias));
    buf_printf(&text, "server '%s': %s", shown, why->text);
    json_t *fault = json_pack("{s:o}", "message", json_text(buf_str(&text)));
    if (why->field[0])
        json_object_set_new(fault, "field", json_text(str_of(why->field)));
    if (why->bound[0])
        json_object_set_new(fault, "bound", json_text(str_of(why->bound)));
    json_array_append_new(source->faults, fault);
}

static void add_server(struct mcp_source *source, const char *alias, const json_t *entry,
                       const struct source_from *from)
{
    struct err err = ERR_INIT;
    struct mcp_config config;
    struct mcp_server *server = NULL;
    if (json_is_true(json_object_get(entry, "disabled")))
        return;
    if (source->count == MCP_SERVERS_MAX)
        err_set(&err, ERR_LIMIT, "the file has more than %d servers", MCP_SERVERS_MAX);
    else if (mcp_config_read(alias, entry, from->path, from->secrets, &config, &err) == 0) {
        for (size_t i = 0; i < source->count; i++)
            if (strcmp(mcp_server_alias(source->servers[i]), config.alias) == 0)
                err_set(&err, ERR_INPUT, "another server is called '%s', too", config.alias);
        server = err.kind == ERR_NONE ? mcp_server_new(&config, from->secrets, &err) : NULL;
        mcp_config_done(&config);
    }
    if (server)
        source->servers[source->count++] = server;
    else
        add_fault(source, alias, &err);
}

int mcp_source_open(const json_t *file, const struct source_from *from, struct source *out,
                    struct err *err)
{
    static const struct source_ops ops = { list, call, close_source, .is_slow = true };
    const json_t *servers = json_object_get(file, "mcpServers");
    const char *alias;
    json_t *entry;
    if (!json_is_object(servers))
        return err_input(err, "mcpServers", NULL, "an object of servers",
                         "'mcpServers' must be an object of servers");
    struct mcp_source *source = buf_alloc_zero(1, sizeof *source);
    source->faults = json_array();
    json_object_foreach ((json_t *)(uintptr_t)servers, alias, entry)
        add_server(source, alias, entry, from);
    *out = (struct source){ .ops = &ops, .state = source };
    snprintf(out->kind, sizeof out->kind, "mcp");
    return 0;
}
