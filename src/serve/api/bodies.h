/* The bodies of requests for runs and sessions, as the contract takes them. Pure. */
#ifndef SERVE_API_BODIES_H
#define SERVE_API_BODIES_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

/* The door's own fields of a run. */
struct bodies_run {
    bool wait;    /* for the result; true where it is not given */
    bool approve; /* the client decides on calls whose policy asks */
};
/* POST /v1/run: takes them out of a body. */
int bodies_run(json_t *body, struct bodies_run *out, struct err *err);
/* A person's decision on a call: {"allow","reason"?}. The reason lives in the body, or is
 * STR_NONE. */
int bodies_decision(const json_t *body, bool *out_allow, struct str *out_reason, struct err *err);
/* POST /v1/run_python, {"code","files"?,"timeout_ms"?}: a request of the contract, or NULL. */
json_t *bodies_python(const json_t *body, struct err *err);
/* POST /v1/sessions: the frame that the socket takes, without op and id. */
json_t *bodies_session(const json_t *body);

#endif
