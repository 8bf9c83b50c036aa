/* Sources of tools: the interface that commands, HTTP requests, OpenAPI files and MCP servers
 * implement inside the tool host process (host_serve.c). One source is one file of the tools'
 * folder, or one MCP server. The host checks definitions, arguments, results and caps around every
 * source; a source only describes and calls.
 *
 * Threads: the host makes one thread for each call, and code in it may block. `list` never runs
 * twice at once for one source; `call` runs in any number of threads, also beside `list`. `close`
 * runs when neither does. A thread never forks: programs are started by program_start
 * (tool/host/program.h). */
#ifndef TOOL_HOST_SOURCE_H
#define TOOL_HOST_SOURCE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "tool/define/outcome.h"

struct secrets;

struct source_context {
    int64_t deadline_ns;         /* monotonic clock (clock_now_ns); past it: OUTCOME_TIMEOUT */
    int cancel_fd;               /* readable: the call is cancelled; end it: OUTCOME_CANCELLED */
    const char *idempotency_key; /* or NULL */
    int64_t timeout_ms;          /* the whole time of the call, for messages */
    size_t result_bytes;         /* cap of the outcome as JSON; read no more than this */
};

struct source_ops {
    /* The definitions of all tools of this source (tool/define/define.h), a new array. Definitions
     * hold no secret. A tool that cannot be offered is left out, and a fault {"tool","message",
     * "field","value","bound"} (all but the message may be missing) is appended to faults. NULL
     * with err: nothing can be said about any of them. Called often: keep what is slow to find
     * out. */
    json_t *(*list)(void *state, int64_t deadline_ns, json_t *faults, struct err *err);
    /* One call, with arguments that the tool's input schema accepts. Returns a new outcome
     * (tool/define/outcome.h), never NULL. */
    json_t *(*call)(void *state, const char *tool, const json_t *arguments,
                    const struct source_context *context);
    void (*close)(void *state);
    bool is_slow; /* list may wait for another process: it gets a thread of its own */
};

struct source {
    const struct source_ops *ops;
    void *state;
    char kind[16]; /* shown to people: "command", "http", "openapi", "mcp" */
};

/* Given to a source when it is opened. */
struct source_from {
    const char *path; /* of the file, for messages */
    int folder_fd; /* of the file's folder, where relative paths start */
    const char *folder;
    /* The host's secrets; a snapshot that outlives the source. When the secrets' file changes, the
     * sources of the folder are opened again. */
    const struct secrets *secrets;
};

/* The kinds of files: the member that a file of this kind has, and its source. `file` is the whole
 * JSON object; the source keeps a reference where it needs one. All members of the file that are
 * not the source's own must be fields of a definition: pass them on, tool_read refuses the rest. */
struct source_kind {
    const char *member;
    int (*open)(const json_t *file, const struct source_from *from, struct source *out,
                struct err *err);
};

/* `${secret:NAME}` in a text is replaced by that secret. New heap text, or NULL with err, which
 * names the secret and never a value. */
char *secrets_expand(const struct secrets *secrets, const char *text, struct err *err);
/* Every secret's value in a text becomes "[secret NAME]": for notes of programs and servers that go
 * into messages. The host does the same for every string of every outcome. New heap text. */
char *secrets_hide(const struct secrets *secrets, const char *text, size_t len);

#endif
