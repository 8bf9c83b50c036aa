/* The recorded calls of a run's tools, served once more: the replay is the client that answers its
 * run's calls. Blocking reads; runs where something is replayed. The record may be hostile: an
 * edited store.
 *
 * 1. The code gets the definitions that it had, without policies and with the largest caps: the
 *    record says how each call ended, a refused one too, and nobody is asked again.
 * 2. A call that was not recorded is answered by an error. The records' differences name it.
 * 3. A call that the code did not wait for gets no answer: the code does not wait again, or meets
 *    its limit again. */
#ifndef REPLAY_CALLS_H
#define REPLAY_CALLS_H

#include <jansson.h>

#include "contract/frame.h"
#include "contract/past_calls.h"
#include "embed/client.h"
#include "replay/remake.h"

struct replay_calls {
    json_t *tools; /* definitions for the request; NULL: the run had none */
    json_t *whole; /* what the past calls have views into */
    struct past_calls *past;
    struct embed_client *engine;
    struct err err; /* why an answer could not be sent; ERR_NONE: none */
};

/* `stored` as look_calls gives it; without its markers. -1 with an err that says why it cannot be
 * replayed. */
int replay_calls_open(struct replay_calls *calls, const struct remake *remake, const json_t *record,
                      const json_t *stored, struct embed_client *engine, struct err *err);
void replay_calls_done(struct replay_calls *calls);
#define own_replay_calls attr_cleanup(replay_calls_done) struct replay_calls

/* Adds the tools to a run's frame. */
void replay_calls_give(const struct replay_calls *calls, json_t *frame);
/* An event of the run: answers a call. */
void replay_calls_hear(struct replay_calls *calls, struct embed_call *run,
                       const struct frame_news *news);

#endif
