/* Private to src/mcp. */
#ifndef MCP_MCP_INT_H
#define MCP_MCP_INT_H

#include <stdint.h>

#include "base/clock.h"
#include "base/own.h"
#include "contract/request.h"
#include "embed/client.h"
#include "mcp/answer.h"
#include "mcp/tool.h"

#define MCP_CALLS_MAX 64           /* under way in one conversation */
#define MCP_ALL_CALLS_MAX 256      /* and on one connection to the engine */
#define MCP_PATIENCE_NS (45 * CLOCK_S) /* then a call without progress gets an id to follow */
#define MCP_TICK_NS CLOCK_S        /* between two notifications of progress */
#define MCP_KEPT_RUNS 64           /* results that are kept for `runs` and resources; tasks too */
#define MCP_STDOUT_BYTES 20000
#define MCP_STDERR_BYTES 8000
#define MCP_READ_BYTES 65536       /* of one read_file */
#define MCP_RESOURCE_BYTES (8 << 20) /* of one resources/read */
#define MCP_SESSION_TTL_S 3600
#define MCP_SESSION_LIFE_S 86400
#define MCP_PICTURE_TEXT "1568"    /* the long side in pixels, for the driver in the box */
#define MCP_RUN_ROOM 40

/* A session that a conversation uses where it names none: one for each language. */
struct mcp_default {
    struct mcp_peer *peer;
    struct embed_call of; /* makes it */
    bool making, counted;
    char id[32];          /* "": there is none */
    char note[256];       /* for the next call: what became of the one before */
};

struct mcp_peer {
    struct mcp *mcp;
    struct mcp_peer *next;
    bool keeps, ended;
    bool initialized;
    const char *version; /* of a legacy conversation */
    size_t calls;
    struct mcp_default defaults[REQUEST_LANGUAGES];
};

/* A run of code: under way, or its result. */
struct mcp_run {
    struct mcp_run *next; /* the latest first */
    struct mcp *mcp;
    struct mcp_peer *peer; /* that began it; NULL: it has ended */
    char id[MCP_RUN_ROOM];
    char session[32];
    struct embed_call of;
    bool busy;
    bool told;             /* as running: the client knows it by `id` */
    int64_t begun_ns;
    double timeout_s;
    struct buf tail[2];    /* the last output, while it runs */
    size_t bytes;          /* of what is kept */
    char note[256];        /* for the answer */
};

/* A task of the agent: under way, or its report. */
struct mcp_task {
    struct mcp_task *next; /* the latest first */
    struct mcp *mcp;
    struct mcp_peer *peer; /* that began it; NULL: it has ended */
    char id[MCP_TASK_ROOM];
    int64_t begun_ns;
    char phase[16]; /* what it does now */
    int64_t steps;  /* that it has done */
    char *question; /* that waits for the user's answer, or NULL */
    bool over;
    struct mcp_answer answer; /* then, without pictures */
};

/* The door's answer. */
struct mcp_found {
    const json_t *record;
    struct str bytes;
    const struct err *err; /* NULL: it did */
};

struct mcp_call {
    struct mcp_call *next;
    struct mcp *mcp;
    struct mcp_peer *peer;
    struct mcp_sink sink;
    bool muted;
    enum mcp_era era;
    json_t *id, *params, *token;
    json_t *args; /* of a tool */
    const struct mcp_tool *tool;
    double progress; /* the last one that was told */
    int64_t begun_ns, tick_ns;

    struct embed_call of; /* a question to the engine */
    void (*then)(struct mcp_call *call);
    uint64_t ticket; /* of what the door looks for; 0: nothing */
    void (*found)(struct mcp_call *call, const struct mcp_found *found);
    bool counted; /* a session was counted for it */
    char session[32];
    struct mcp_default *own; /* the session is this one */
    bool again; /* it was begun a second time, in a new session */
    bool waits; /* for `own` to be made; then `then` */
    struct mcp_run *run; /* that it waits for */
    struct mcp_task *task; /* that it waits for */
    void *state;
};

struct mcp {
    struct mcp_options options;
    struct embed_client client;
    json_t *instructions[2], *tools[2]; /* of each era */
    struct mcp_peer *peers;
    struct mcp_call *calls;
    size_t call_count;
    struct mcp_run *runs;
    struct mcp_task *tasks;
    size_t errands; /* questions that nobody waits for */
    uint64_t last_ticket;
    struct mcp_batch *batches;
};

/* mcp.c: the connection. */
/* Connected, if need be again. */
int mcp_reach(struct mcp *mcp, struct err *err);
/* Asks and forgets the answer. Takes the frame. */
void mcp_forget(struct mcp *mcp, json_t *frame);
void mcp_peer_look(struct mcp_peer *peer);

/* take.c */
void mcp_take_leave(struct mcp *mcp, const void *sink_user);

/* methods.c */
void mcp_dispatch(struct mcp_call *call, const struct mcp_message *message);

/* definitions.c */
/* NULL: it is not served. */
const struct mcp_tool *mcp_tool_find(const struct mcp *mcp, const char *name);
int mcp_definitions_open(struct mcp *mcp, struct err *err);
const json_t *mcp_definition(const struct mcp *mcp, enum mcp_era era, const char *name);
json_t *mcp_definitions_list(const struct mcp_call *call);

/* call.c */
/* Asks the engine; `then` follows with the answer in call->of. -1: nothing follows. Takes the
 * frame. */
int mcp_call_ask(struct mcp_call *call, json_t *frame, void (*then)(struct mcp_call *call),
                 struct err *err);
void mcp_call_cancel(struct mcp_call *call);
void mcp_call_free(struct mcp_call *call);
/* The conversation's version has no member or kind of content that came later. */
bool mcp_call_is_oldest(const struct mcp_call *call);

/* sessions.c */
/* Finds the session that the arguments name, or the conversation's own (which is made if need be),
 * fills in call->session, and calls `then`. Where there is none, the call is refused; `may_lack`:
 * goes on without. */
void mcp_session_find(struct mcp_call *call, bool may_lack, void (*then)(struct mcp_call *call));
/* The request of a new session, in the image that the call names. */
json_t *mcp_session_request(const struct mcp_call *call, const char *language);
/* The call's `image` and `packages`. */
void mcp_session_add_image(const struct mcp_call *call, json_t *request);
/* Makes one, counted; `then` follows with the answer in call->of. */
int mcp_session_new(struct mcp_call *call, json_t *frame, void (*then)(struct mcp_call *call),
                    struct err *err);
/* Counts what mcp_session_new has begun: the new session's id, or NULL after refusing the call. */
const char *mcp_session_took(struct mcp_call *call);
/* The conversation's own session has ended: forgets it. True: the call may begin again. */
bool mcp_session_lost(struct mcp_call *call);
void mcp_session_end(struct mcp *mcp, const char *id);
bool mcp_session_may(const struct mcp_call *call, const char *id);
/* A language's row that has sessions; -1: none. */
int mcp_session_language(const char *name);
void mcp_tool_session(struct mcp_call *call);

/* run.c, runs.c */
void mcp_tool_run(struct mcp_call *call);
void mcp_tool_run_stop(struct mcp_call *call);
void mcp_tool_runs(struct mcp_call *call);
struct mcp_run *mcp_run_new(struct mcp_call *call);
struct mcp_run *mcp_run_find(struct mcp *mcp, struct str id);
void mcp_run_stop(struct mcp_run *run);
void mcp_run_free(struct mcp_run *run);
/* It has ended: answers who waits, and lets the oldest results go. */
void mcp_run_over(struct mcp_run *run);
/* The call's time without an answer is over: tells what there is. */
void mcp_run_tell_running(struct mcp_call *call);

/* ask.c: tasks of the agent. */
void mcp_tool_ask(struct mcp_call *call);
void mcp_tool_ask_stop(struct mcp_call *call);
struct mcp_task *mcp_task_find(const struct mcp *mcp, struct str id);
/* Answers with what the task says, now or later. */
void mcp_task_follow(struct mcp_call *call, struct mcp_task *task);
void mcp_task_stop(const struct mcp_task *task);
void mcp_task_free(struct mcp_task *task);
/* The call's tick: progress, or what there is. */
void mcp_task_tick(struct mcp_call *call, int64_t now);

/* stored.c: runs that are not kept here any more. */
bool mcp_stored_may_be(const struct mcp *mcp, struct str id);
/* The run's answer, as run_code gave it. */
void mcp_stored_show(struct mcp_call *call, const char *id);
/* `found` follows with the record, or with the bytes of a file. */
void mcp_stored_find(struct mcp_call *call, const char *id, const char *path,
                     void (*found)(struct mcp_call *call, const struct mcp_found *found));

/* files.c, resources.c */
void mcp_tool_read(struct mcp_call *call);
void mcp_tool_write(struct mcp_call *call);
void mcp_tool_files(struct mcp_call *call);
void mcp_resources_list(struct mcp_call *call);
void mcp_resources_templates(struct mcp_call *call);
void mcp_resources_read(struct mcp_call *call);

#endif
