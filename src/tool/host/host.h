/* The tool host: a process that holds the secrets and runs the tools, and the parent's side of it.
 * It is forked before a door drops root, so tools run as the caller. The engine's process never
 * holds a secret and never runs a tool.
 *
 *   parent (engine, cupel tools)   toolhost_*: a queue of frames; calls for loops never wait
 *   ├── guard                      host_guard.c: one thread; starts the host and the minders, kills
 *   │   ├── tool host              host_serve.c: one thread for each call
 *   │   └── minder, one for each program that runs
 *
 * All of them end with the parent. When the host dies, its calls end with an error and the next
 * call starts another. */
#ifndef TOOL_HOST_HOST_H
#define TOOL_HOST_HOST_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"

#define TOOLHOST_CALLS_MAX 256                 /* at once */
#define TOOLHOST_TOOLS_MAX 4096                /* known at once */
#define TOOLHOST_ARGUMENTS_MAX (16 << 20)      /* bytes of one call's arguments as JSON */
#define TOOLHOST_QUEUE_MAX ((size_t)64 << 20)  /* bytes that wait for the host */

struct toolhost;

/* Any may be NULL: without it there are no tools of that kind. */
struct toolhost_options {
    const char *folder;       /* of tool files; one that does not exist has no tools */
    const char *mcp_file;     /* {"mcpServers": {...}} */
    const char *secrets_file; /* {"NAME": "..."}; one that does not exist holds none */
};

/* Where they are if nobody names them: for root /etc/cupel, else $XDG_CONFIG_HOME/cupel or
 * ~/.config/cupel. Heap, or NULL where there is no such place. */
char *toolhost_default_folder(void);
char *toolhost_default_secrets(void);

/* Forks the guard, which starts the host: call it before the drop and before any thread. 0 or -1
 * with err. Files are read by the host, so a bad one is no fault here. */
int toolhost_open(const struct toolhost_options *options, struct toolhost **out,
                  struct err *err) attr_must_use;
/* Ends the host and everything that it started, and waits for that (some milliseconds). */
void toolhost_close(struct toolhost *host);

static inline void own_toolhost_close(struct toolhost **host)
{
    toolhost_close(*host);
    *host = NULL;
}
#define own_toolhost attr_cleanup(own_toolhost_close) struct toolhost *

/* Definitions of all tools (a new array), each with "source": its kind and file. Waits at most
 * timeout_ms for servers that are slow. Not for loops. Answers to calls that arrive meanwhile are
 * told as by toolhost_ready. NULL with err. */
json_t *toolhost_list(struct toolhost *host, int64_t timeout_ms, struct err *err) attr_must_use;
/* The faults of the last list, a borrowed array of {"source","tool","message","field","value",
 * "bound"}; not NULL. */
const json_t *toolhost_faults(const struct toolhost *host);

/* The same for loops: ask now, `told` later in toolhost_ready, with the definitions, or NULL and
 * err. Several may be asked for. -1: the host cannot be reached. */
int toolhost_ask_list(struct toolhost *host, int64_t timeout_ms,
                      void (*told)(void *user, const json_t *definitions, const struct err *err),
                      void *user, struct err *err) attr_must_use;

/* ---- for a loop ---- */

/* Watch it for EPOLLIN, and for EPOLLOUT while toolhost_wants_write says so. The number changes
 * when the host is started again: -1 while there is none, so ask again after each call to
 * toolhost_call, toolhost_ask_list and toolhost_ready. */
int toolhost_fd(const struct toolhost *host);
bool toolhost_wants_write(const struct toolhost *host);
/* Read and write as much as there is, and call on_answer for each answer. false: the host died; all
 * of its calls were answered with errors, and toolhost_fd is -1 until the next call. */
bool toolhost_ready(struct toolhost *host);

/* Called once for each call, never within toolhost_call. `outcome` is the callee's to keep by
 * json_incref. */
void toolhost_on_answer(struct toolhost *host,
                        void (*told)(void *user, uint64_t id, json_t *outcome), void *user);

/* Send a call; never waits. The id is the caller's own, above 0, and none that is under way. The
 * host checks the arguments against the input schema, too. timeout_ms: no more than the tool's own;
 * 0: the tool's own. Policy is the caller's to judge (tool_judge). -1 with err: nothing was sent,
 * no answer comes. Keeps its own reference to the arguments. */
int toolhost_call(struct toolhost *host, uint64_t id, const char *tool, json_t *arguments,
                  const char *idempotency_key, int64_t timeout_ms, struct err *err) attr_must_use;
/* The answer (OUTCOME_CANCELLED, or what came before) still arrives. */
void toolhost_cancel(struct toolhost *host, uint64_t id);

#endif
