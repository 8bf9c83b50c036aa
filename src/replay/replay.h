/* A recorded run once more: the same code on the same inputs, image and limits, and then the
 * differences (replay/diff.h). Blocking, over a connection to an engine; any process or thread with
 * a connection to the database.
 *
 * REPORT: {"run","replayed_as","session":"s_..."|null,"same","differences":[DIFFERENCE],
 *          "cells":[{"cell","run","replayed_as","same","differences"}]}
 *   A run's calls of tools are answered from its record (replay/calls.h).
 *   cells: of a session's cell, those before it that it needs. `same` is about the run alone. */
#ifndef REPLAY_REPLAY_H
#define REPLAY_REPLAY_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "embed/client.h"
#include "store/db/db.h"

struct replay {
    struct embed_client *engine;
    struct db *db;
    int state_dir;
    const char *owner; /* whose records; NULL: everybody's */
    const json_t *secrets; /* {"HASH":"value"} for redacted parts (replay/remake.h), or NULL.
                            * Another value than the hidden one must look like a secret, too. */
    bool any_image; /* run on the image as it is now; a change is a difference */
    int cancel_fd;  /* a byte stops it; -1: none */
    const struct err *no_session; /* the refusal of a session; NULL: one may be made */
    void (*on_step)(void *user, const json_t *cell); /* each cell of the report; or NULL */
    void *user;
    const struct supplied *supplied; /* of replay_run itself */
};

/* REPORT, or NULL with an err: nothing was compared. `id` as look_show takes it. */
json_t *replay_run(const struct replay *how, const char *id, struct err *err);
/* The steps that lead to a session's cell, itself the last: without those that were undone, with
 * those of the session that it was forked from. Where some of them are gone, all that is left, and
 * *out_gap says what is missing. A new array; NULL with an err. */
json_t *replay_steps(struct db *db, const char *owner, const json_t *record, struct err *out_gap,
                     struct err *err);
/* {"run","with","same","differences"} of two records, which get their calls of tools. */
json_t *replay_compare(struct db *db, json_t *was, json_t *is);

#endif
