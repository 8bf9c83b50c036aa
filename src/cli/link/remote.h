/* Runs and sessions on a running engine. */
#ifndef CLI_LINK_REMOTE_H
#define CLI_LINK_REMOTE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "cli/approve/approve.h"
#include "cli/term/input.h"
#include "cli/term/stream.h"
#include "contract/request.h"
#include "contract/result.h"
#include "embed/client.h"
#include "engine/engine.h"

struct cli_remote {
    struct embed_client client;
    /* The last run or question. call.answer holds the result, which struct result has views into,
     * or the answer; both stay until the next one. */
    struct embed_call call;
    const struct cli_remote_hooks *hooks; /* of the call under way */
    uint64_t lost[2]; /* bytes of stdout and stderr that the engine dropped */
    uint64_t late_shown; /* bytes of late output since the last result */
};
#define CLI_REMOTE_INIT ((struct cli_remote){ .client = EMBED_CLIENT_INIT })

/* Connects to this user's engine, as the caller. 0 either way: without an engine the remote is not
 * open. -1 if the engine of $CUPEL_SOCKET cannot be reached. */
int cli_remote_open(struct cli_remote *remote, struct err *err);
/* The connection alone; ERR_ABSENT if there is no engine. */
int cli_remote_connect(struct cli_remote *remote, struct err *err);
/* Starts an engine for this connection alone; as embed_spawn. */
int cli_remote_spawn(struct cli_remote *remote, char *const *options, int errors, struct err *err);
/* Frees the last answer. */
void cli_remote_forget(struct cli_remote *remote);
void cli_remote_close(struct cli_remote *remote);
static inline bool cli_remote_is_open(const struct cli_remote *remote)
{
    return remote->client.link.fd >= 0;
}

struct cli_remote_hooks {
    void (*on_event)(void *user, const struct engine_event *event); /* or NULL */
    /* Streams with pending bytes, and a function to call when a reader may have taken some, or is
     * gone. */
    const struct cli_stream *streams[2];
    void (*on_room)(void *user);
    void *user;
    int interrupt_fd; /* each byte is one stop request */
    /* A terminal that answers when the code asks for input, or NULL. */
    struct cli_input *input;
    struct cli_approve *approve; /* decides on calls that ask, or NULL */
    bool content; /* with the bytes of artifacts */
};

/* Sends the request; from here on it may run, and is never sent again. */
int cli_remote_send(struct cli_remote *remote, const struct request *request,
                    const struct cli_remote_hooks *hooks, struct err *err);
/* Reads and prints news that came between requests. False: the engine is gone. */
bool cli_remote_hear(struct cli_remote *remote);
/* As engine_run, for the sent request. */
int cli_remote_wait(struct cli_remote *remote, const struct cli_remote_hooks *hooks,
                    struct result *out, struct err *err);

/* Asks a session (docs/protocol.md, without op and id) and waits; the answer and its artifacts stay
 * in `remote` until the next one. */
int cli_remote_ask(struct cli_remote *remote, const json_t *ask, struct err *err);

/* A request's JSON, with the files that were added as bytes. */
json_t *cli_remote_request(const struct request *request);

#endif
