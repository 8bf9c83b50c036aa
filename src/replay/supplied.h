/* Values that a caller supplies in the place of markers. A value whose keyed hash is the marker's
 * is what was hidden, and is hidden again. Another one might be stored in clear by the new run: it
 * is refused where redaction would not hide it. Blocking; runs where something is replayed. */
#ifndef REPLAY_SUPPLIED_H
#define REPLAY_SUPPLIED_H

#include <jansson.h>

#include "base/err.h"
#include "store/db/db.h"

struct redact;

struct supplied {
    struct redact *redact; /* NULL: nothing has to be looked for */
    json_t *others; /* {"HASH":"value"}: not what was hidden */
};

/* `secrets` is {"HASH":"value"}, or NULL. */
int supplied_open(struct supplied *supplied, struct db *db, const json_t *secrets, struct err *err);
void supplied_done(struct supplied *supplied);
/* Of a request, or of another value that is stored. ERR_CONFLICT names the hash, not the value. */
int supplied_check(const struct supplied *supplied, const json_t *request, struct err *err);

#endif
