/* cupel as an MCP server: its conversations, their calls, and one connection to an engine. Nothing
 * here waits and nothing here has threads: a loop watches mcp_fd for mcp_events, calls mcp_ready
 * when something happened or mcp_due_ns has come, and gives every message of a client to mcp_take.
 * The doors (src/cli/mcp, src/serve/api) bring the bytes, and say who may do what. */
#ifndef MCP_MCP_H
#define MCP_MCP_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "embed/link.h"
#include "mcp/era.h"

#define MCP_TASK_ROOM 40 /* of the id of a task of the agent */

struct mcp;
struct mcp_peer; /* one conversation */
struct mcp_call; /* one request of a client under way (mcp/tool.h) */
struct mcp_tool;

/* Where the answer to one message goes. */
struct mcp_sink {
    /* A notification that belongs to the request; takes it. NULL: none can be sent. */
    void (*say)(void *user, json_t *message);
    /* Exactly once: takes the answer; NULL where there is none. `status` is that of HTTP. */
    void (*end)(void *user, json_t *message, unsigned status);
    void *user;
};

/* The agent of a door, for the tool `ask`. */
struct mcp_agent {
    /* Begins a task from a request as of POST /v1/tasks, which stays the caller's. mcp_task_* tell
     * later how it goes. */
    int (*begin)(void *user, json_t *request, char out_id[MCP_TASK_ROOM], struct err *err);
    /* The user's answer to what the task asks. */
    int (*reply)(void *user, const char *id, struct str text, struct err *err);
    /* It ends soon. */
    void (*stop)(void *user, const char *id);
    /* A file that it made; none: not kept. */
    struct str (*file)(void *user, const char *id, const char *path);
    /* Its files are not asked for any more. NULL: the door keeps them as it likes. */
    void (*forget)(void *user, const char *id);
};

struct mcp_options {
    const struct mcp_tool *tools; /* a row without name ends them */
    const struct mcp_agent *agent; /* NULL: no model is configured, and there is no tool `ask` */
    void *agent_user;
    const char *definitions; /* JSON text: "instructions", and "tools" in the form of MCP */
    const char *languages; /* a sentence for descriptions */
    const struct mcp_extra *extra; /* more methods; NULL: none */
    double timeout_s; /* of a run that does not say */
    size_t kept_bytes; /* of results that are kept for later calls */
    /* A new link to an engine, when the last one has ended. NULL: there is none. */
    int (*reopen)(void *user, struct embed_link *out, struct err *err);
    /* A stored run of this client, by its whole id, or with `path` one of its files: mcp_found
     * tells it, now or later. NULL: nothing is stored. */
    void (*find)(void *user, uint64_t ticket, const char *run, const char *path);
    /* May the client use this session? NULL: any. */
    bool (*may_use)(void *user, const char *session);
    /* Before a session is made from a request (NULL: by fork). -1: refused. Then one of the two
     * others follows. NULL: nothing is counted. */
    int (*session_begins)(void *user, json_t *request, struct err *err);
    void (*session_made)(void *user, const char *id);
    void (*session_failed)(void *user);
    void *user;
};

/* The languages of image host and packages that models know of, as a sentence; heap. Looks at the
 * host's folders. */
char *mcp_host_languages(void);

/* Takes over the link. NULL: it comes with mcp_connect, before any message. */
struct mcp *mcp_open(const struct mcp_options *options, const struct embed_link *link,
                     struct err *err);
void mcp_connect(struct mcp *mcp, const struct embed_link *link);
/* Ends the connection; every call is over without an answer. Accepts NULL. */
void mcp_close(struct mcp *mcp);
int mcp_fd(const struct mcp *mcp); /* -1: the connection has ended */
short mcp_events(const struct mcp *mcp);
int64_t mcp_due_ns(const struct mcp *mcp); /* 0: none */
void mcp_ready(struct mcp *mcp);
/* The answer to options.find: a record (store/records/look.h), or the bytes of the file; both stay
 * the caller's. `err` not NULL: neither. Does nothing where nobody waits for it any more. */
void mcp_found(struct mcp *mcp, uint64_t ticket, const json_t *record, struct str bytes,
               const struct err *err);
/* The door tells how a task goes; nothing where it is not known any more. `kind` and `data` are
 * an event of the agent (agent/agent.h). */
void mcp_task_news(struct mcp *mcp, const char *id, const char *kind, const json_t *data);
void mcp_task_asks(struct mcp *mcp, const char *id, const char *question);
/* It has ended: its report. */
void mcp_task_over(struct mcp *mcp, const char *id, const json_t *report);
/* Nothing is under way: no call, no run, no task, no session that begins or ends. */
bool mcp_is_quiet(const struct mcp *mcp);
/* No request of a client waits. */
bool mcp_is_answered(const struct mcp *mcp);

/* `keeps`: legacy requests without a session share one for each language. */
struct mcp_peer *mcp_peer_new(struct mcp *mcp, bool keeps);
/* Its calls are cancelled, its runs stopped and its own sessions ended; frees it in time. */
void mcp_peer_end(struct mcp_peer *peer);
/* One message or batch; `headers` NULL: no HTTP. */
void mcp_take_text(struct mcp_peer *peer, struct str text, const struct mcp_headers *headers,
                   const struct mcp_sink *sink);
void mcp_take_json(struct mcp_peer *peer, json_t *root, const struct mcp_headers *headers,
                   const struct mcp_sink *sink);
/* The client behind this sink is gone: it is told nothing more. `stops`: that cancels its
 * request. */
void mcp_leave(struct mcp *mcp, const void *sink_user, bool stops);

#endif
