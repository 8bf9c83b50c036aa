/* The bodies of requests for runs and sessions, as the contract takes them. Pure. */
#ifndef SERVE_API_BODIES_H
#define SERVE_API_BODIES_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"

/* POST /v1/run: takes "wait" out of a body. */
int bodies_run(json_t *body, bool *out_wait, struct err *err);
/* POST /v1/run_python, {"code","files"?,"timeout_ms"?}: a request of the contract, or NULL. */
json_t *bodies_python(const json_t *body, struct err *err);
/* POST /v1/sessions: the frame that the socket takes, without op and id. */
json_t *bodies_session(const json_t *body);

#endif
