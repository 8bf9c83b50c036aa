/* Acts on sessions that are no runs (new, put, remove, undo, fork, checkpoint, end), recorded for
 * the replay of cells. Runs in the serve process, in its loop; every door of sessions calls it.
 *
 * 1. An act is recorded when the engine has answered that it is done; the end of a session when it
 *    ends, for whatever reason: retention keeps the cells of a session that has no end.
 * 2. A file that came in parts is recorded whole, up to the session's input_bytes and to
 *    ACTS_BYTES for all uploads together; a larger one is named as not stored. */
#ifndef SERVE_WORK_ACTS_H
#define SERVE_WORK_ACTS_H

#include <jansson.h>

#include "base/err.h"
#include "contract/frame.h"
#include "engine/engine.h"
#include "serve/work/work.h"

#define ACTS_BYTES ((size_t)128 << 20)
#define ACTS_UPLOADS 256 /* under way; the oldest is forgotten */

struct acts;
struct act; /* one that the engine has not answered */

/* Both stay the caller's. After works_stop nothing is recorded. */
struct acts *acts_new(const struct engine *engine, const struct works *works);
void acts_free(struct acts *acts);

/* Before engine_ask, which takes the request over. NULL: nothing of it is recorded. */
struct act *act_begin(struct acts *acts, const struct frame_session *what,
                      const struct request *request);
/* In on_answer, or after a refusal (`answer` NULL: it did not happen). Accepts a NULL act. */
void act_end(struct act *act, const char *owner, const json_t *answer);
/* For engine_on_session_end; `acts` is the user. */
void acts_session_ended(void *acts, const char *session);

#endif
