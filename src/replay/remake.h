/* A recorded request made sendable again. Pure but for the contents, which the caller reads. The
 * record may be hostile (a store that somebody edited): every part is checked here or by the
 * engine.
 *
 * A marker of redaction is "[redacted:KIND:HASH]"; `secrets` has what stands in its place, by the
 * eight digits of HASH. They are sent to the engine, and never stored (replay/supplied.h). */
#ifndef REPLAY_REMAKE_H
#define REPLAY_REMAKE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

#define REMAKE_HASH 8 /* digits of a marker */
#define REMAKE_INPUT_MAX ((size_t)96 << 20) /* bytes of all inputs: a frame holds them as base64 */

struct remake {
    /* Appends the bytes with that sum, and checks them. -1: ERR_ABSENT if they are not stored. */
    int (*content)(void *user, const char *sha256, struct buf *out, struct err *err);
    void *user;
    const json_t *secrets; /* {"HASH":"value"}, or NULL */
    bool any_image; /* do not pin the recorded digest */
    bool
        whole; /* nothing was redacted: a text like a marker is the code's own. Set by remake_run */
};

/* Was nothing of this record or act redacted? */
bool remake_is_whole(const json_t *row);

/* The members "request" and perhaps "stdin_base64" of a run frame. `session` is that of a cell, or
 * NULL: a run of its own. A new object; NULL with an err that names the part. */
json_t *remake_run(const struct remake *remake, const json_t *record, const char *session,
                   struct err *err);
/* The stored calls of tools (look_calls) without markers. A new object; NULL with an err. */
json_t *remake_calls(const struct remake *remake, const json_t *record, const json_t *stored,
                     struct err *err);
/* The request of a new session: `recorded` is that of its act, `files` those of the act. `digest`
 * pins the image; NULL: none. */
json_t *remake_session(const struct remake *remake, const json_t *recorded, const json_t *files,
                       const char *digest, struct err *err);
/* Rows {"path","size_bytes","sha256","readonly"} as files of a request. */
json_t *remake_files(const struct remake *remake, const json_t *rows, struct err *err);
/* A text without markers. */
json_t *remake_text(const struct remake *remake, const char *part, struct str text,
                    struct err *err);
/* The digest of the image that a record ran on, or NULL. */
const char *remake_digest(const json_t *record);

#endif
