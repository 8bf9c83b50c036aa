/* Any bytes as a client of MCP, over stdio and with HTTP's headers: one message a line. The engine
 * never answers. Each line that asks for an answer gets one, or waits for the engine. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "mcp/tool.h"
#include "mcp/uri.h"

/* An agent whose tasks ask, or end at once, as their question says. */
static struct mcp *asked_by;
static unsigned long tasks;

static int begin(void *user, json_t *request, char out_id[MCP_TASK_ROOM], struct err *err)
{
    (void)user;
    if (!json_object_get(request, "question"))
        abort();
    if (json_object_get(request, "files"))
        return err_set(err, ERR_BUSY, "too many");
    snprintf(out_id, MCP_TASK_ROOM, "t_%lu", ++tasks);
    return 0;
}

static int reply(void *user, const char *id, struct str text, struct err *err)
{
    (void)user;
    (void)id;
    return text.len ? 0 : err_set(err, ERR_CONFLICT, "it does not ask");
}

static void stop(void *user, const char *id)
{
    (void)user;
    (void)id;
}

static struct str file(void *user, const char *id, const char *path)
{
    (void)user;
    return id[2] == '1' ? str_of(path) : STR_NONE;
}

static void tell_tasks(void)
{
    own_json report = json_pack("{s:s, s:s, s:[{s:s, s:s}]}", "status", "computed", "answer", "6",
                                "artifacts", "path", "a.png", "mime", "image/png");
    for (unsigned long i = 1; i <= tasks; i++) {
        char id[MCP_TASK_ROOM];
        snprintf(id, sizeof id, "t_%lu", i);
        mcp_task_news(asked_by, id, "step", report);
        if (i % 3 == 1)
            mcp_task_asks(asked_by, id, "which?");
        else
            mcp_task_over(asked_by, id, report);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t ends;

static void say(void *user, json_t *message)
{
    (void)user;
    json_decref(message);
}

/* An answer is JSON text again. */
static void end(void *user, json_t *message, unsigned status)
{
    (void)user;
    ends++;
    if (status < 200 || status > 599)
        abort();
    own_str text = message ? json_write(message, JSON_COMPACT) : NULL;
    if (message && !text)
        abort();
    json_decref(message);
}

static void take(struct mcp_peer *peer, struct str line)
{
    static const struct mcp_headers headers = { "2026-07-28", "tools/call", "run_code" };
    const struct mcp_sink sink = { say, end, peer };
    char owner[MCP_OWNER_ROOM];
    own_str uri = buf_strdup(line);
    own_str path = NULL;
    if (mcp_uri_read(uri, owner, &path) == 0 && (!path || !*path || !*owner))
        abort();
    mcp_take_text(peer, line, NULL, &sink);
    mcp_take_text(peer, line, &headers, &sink);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct mcp_agent agent = { begin, reply, stop, file, NULL };
    const struct mcp_options options = { .agent = &agent, .tools = mcp_tools,
                                         .definitions = mcp_definitions, .languages = "",
                                         .timeout_s = 30, .kept_bytes = 1000 };
    struct err err = ERR_INIT;
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
        abort();
    struct embed_link link;
    embed_take_over(pair[0], &link);
    struct mcp *mcp = mcp_open(&options, &link, &err);
    if (!mcp)
        abort();
    struct mcp_peer *peer = mcp_peer_new(mcp, /* keeps= */ true);
    struct str rest = { (const char *)data, size };
    size_t asked = 0;
    asked_by = mcp;
    tasks = 0;
    ends = 0;
    while (rest.len > 0) {
        const char *newline = memchr(rest.at, '\n', rest.len);
        struct str line = { rest.at, newline ? (size_t)(newline - rest.at) : rest.len };
        take(peer, line);
        asked += 2;
        tell_tasks();
        size_t skip = line.len + (newline != NULL);
        rest = (struct str){ rest.at + skip, rest.len - skip };
    }
    mcp_ready(mcp);
    mcp_peer_end(peer);
    mcp_close(mcp);
    close(pair[1]);
    if (ends != asked)
        abort();
    return 0;
}
