/* The tools as a model reads them: api/mcp-tools.json, with what is so on this host and in this
 * era. Runs in the process of a door, once. */
#include <stdlib.h>
#include <string.h>

#include "base/builtin.h"
#include "contract/limits.h"
#include "mcp/mcp_int.h"

BUILTIN(mcp_definitions, "api/mcp-tools.json");

const struct mcp_tool mcp_tools[] = {
    { "run_code", mcp_tool_run, mcp_tool_run_stop, false },
    { "session", mcp_tool_session, NULL, false },
    { "read_file", mcp_tool_read, NULL, false },
    { "write_file", mcp_tool_write, NULL, false },
    { "list_files", mcp_tool_files, NULL, false },
    { "runs", mcp_tool_runs, mcp_tool_run_stop, false },
    { "ask", mcp_tool_ask, mcp_tool_ask_stop, true },
    { NULL, NULL, NULL, false },
};

/* The text for a name in braces. */
struct word {
    const char *name;
    char text[512];
};

static const char *const persistence[] = {
    [MCP_LEGACY] = "Without 'session', calls of this connection share one session for each "
                   "language: variables, imports and files are still there in the next call.",
    [MCP_MODERN] = "Without 'session', each call runs in a fresh box and keeps nothing; to keep "
                   "variables, imports and files, pass session 'new' and then the id that comes "
                   "back.",
};

static const char *const session_default[] = {
    [MCP_LEGACY] = "Default: the session of this connection, for read_file, write_file and "
                   "list_files that of python.",
    [MCP_MODERN] = "Without it there is none.",
};

static size_t fill_words(const struct mcp *mcp, enum mcp_era era, struct word *words, size_t room)
{
    const struct limits_profile *profile = limits_profile_find("baseline");
    const int64_t *limit = profile->defaults.value;
    size_t n = 0;
    (void)room;
#define WORD(key, ...)                                                       \
    (words[n].name = key, snprintf(words[n].text, sizeof words[n].text, __VA_ARGS__), n++)
    WORD("{languages}", "%s", mcp->options.languages);
    WORD("{persistence}", "%s", persistence[era]);
    WORD("{session_default}", "%s", session_default[era]);
    WORD("{limits}", "%g s, %lld MiB of memory, %lld MiB of files, %g cpu", mcp->options.timeout_s,
         (long long)limit[LIMITS_MEMORY] >> 20,
         (long long)(limit[LIMITS_DISK] ? limit[LIMITS_DISK] : limit[LIMITS_MEMORY] / 2) >> 20,
         (double)limit[LIMITS_CPUS] / 1000);
    WORD("{timeout}", "%g", mcp->options.timeout_s);
    WORD("{patience}", "%d", (int)(MCP_PATIENCE_NS / CLOCK_S));
    WORD("{output}", "%d", MCP_STDOUT_BYTES);
    WORD("{read}", "%d", MCP_READ_BYTES);
    WORD("{kept}", "%d", MCP_KEPT_RUNS);
    WORD("{life}", "%d hours", MCP_SESSION_LIFE_S / 3600);
    WORD("{idle}", "%d minutes", MCP_SESSION_TTL_S / 60);
#undef WORD
    return n;
}

static json_t *filled(const char *text, const struct word *words, size_t count)
{
    own_buf out = BUF_INIT(1 << 16);
    while (*text) {
        size_t i = 0;
        while (i < count && strncmp(text, words[i].name, strlen(words[i].name)) != 0)
            i++;
        if (i < count) {
            buf_add_text(&out, words[i].text);
            text += strlen(words[i].name);
        } else {
            buf_add(&out, text++, 1);
        }
    }
    return json_text(buf_str(&out));
}

/* Fills in the descriptions inside a value. */
static void fill(json_t *value, const struct word *words, size_t count)
{
    const char *name;
    json_t *member;
    size_t i;
    void *next;
    json_object_foreach_safe (value, next, name, member) {
        if (json_is_string(member))
            json_object_set_new(value, name, filled(json_string_value(member), words, count));
        else
            fill(member, words, count);
    }
    if (json_is_array(value))
        json_array_foreach (value, i, member)
            fill(member, words, count);
}

static json_t *find(const json_t *tools, const char *name)
{
    size_t i;
    json_t *tool;
    json_array_foreach (tools, i, tool)
        if (name && str_is(json_get_str(tool, "name"), name))
            return tool;
    return NULL;
}

const struct mcp_tool *mcp_tool_find(const struct mcp *mcp, const char *name)
{
    const struct mcp_tool *tool = mcp->options.tools;
    while (tool->name && strcmp(tool->name, name) != 0)
        tool++;
    return tool->name && (mcp->options.agent || !tool->needs_agent) ? tool : NULL;
}

/* The output schema of a tool that answers as others do: theirs, of those that are served. */
static json_t *any_of(const json_t *tools, const json_t *names)
{
    json_t *all = json_array(), *name;
    size_t i;
    json_array_foreach (names, i, name) {
        json_t *schema = json_object_get(find(tools, json_string_value(name)), "outputSchema");
        if (schema)
            json_array_append(all, schema);
    }
    if (json_array_size(all) > 1)
        return json_pack("{s:s, s:o}", "type", "object", "anyOf", all);
    json_t *only = json_incref(json_array_get(all, 0));
    json_decref(all);
    return only;
}

/* A tool that is not served is left out; a list of names stands for the schemas of those tools. */
static void settle(const struct mcp *mcp, json_t *tools)
{
    for (size_t i = json_array_size(tools); i-- > 0;)
        if (!mcp_tool_find(mcp, json_get_str(json_array_get(tools, i), "name").at))
            json_array_remove(tools, i);
    for (size_t i = json_array_size(tools); i-- > 0;) {
        json_t *tool = json_array_get(tools, i), *of = json_object_get(tool, "outputSchema");
        if (json_is_array(of))
            json_object_set_new(tool, "outputSchema", any_of(tools, of));
    }
}

int mcp_definitions_open(struct mcp *mcp, struct err *err)
{
    for (int era = 0; era < 2; era++) {
        struct word words[16];
        size_t count = fill_words(mcp, (enum mcp_era)era, words, array_len(words));
        own_json root = json_read(str_of(mcp->options.definitions), 1 << 20, err);
        if (!root)
            return -1;
        fill(root, words, count);
        mcp->instructions[era] = json_incref(json_object_get(root, "instructions"));
        mcp->tools[era] = json_incref(json_object_get(root, "tools"));
        settle(mcp, mcp->tools[era]);
    }
    return 0;
}

const json_t *mcp_definition(const struct mcp *mcp, enum mcp_era era, const char *name)
{
    return find(mcp->tools[era], name);
}

json_t *mcp_definitions_list(const struct mcp_call *call)
{
    json_t *tools = call->mcp->tools[call->era], *tool;
    size_t i;
    if (!mcp_call_is_oldest(call))
        return json_incref(tools);
    tools = json_deep_copy(tools);
    json_array_foreach (tools, i, tool) {
        json_object_del(tool, "title");
        json_object_del(tool, "outputSchema");
    }
    return tools;
}
