/* Tokens at work: which one a secret belongs to, and what each has used. Their file is that of
 * src/store/tokens. Runs in the serve process, in its loop. Everything that a token makes (runs,
 * sessions, tasks, blobs) carries the id of the token, "k_...", which it may outlive. */
#ifndef SERVE_WHO_WHO_H
#define SERVE_WHO_WHO_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/loop.h"
#include "base/str.h"
#include "contract/request.h"

#define WHO_ID_ROOM 32

struct who;
struct who_token;

/* Tokens and what was used of them are in the state folder; a changed file is read again at the
 * next request. state_dir stays the caller's. */
struct who *who_open(struct loop *loop, int state_dir, struct err *err);
void who_close(struct who *who);

/* The token behind a secret: a reference, to be given back. ERR_TOKEN: unknown, expired or none. It
 * takes the same time for every wrong secret. */
struct who_token *who_find(struct who *who, struct str secret, struct err *err);
/* The token of that id; NULL: there is none any more. Stays the list's. */
struct who_token *who_owner(struct who *who, const char *id);
struct who_token *who_ref(struct who_token *token);
void who_unref(struct who_token *token);
const char *who_name(const struct who_token *token);
const char *who_id(const struct who_token *token);
bool who_is_operator(const struct who_token *token);
/* May it see what belongs to `owner`? */
bool who_may_see(const struct who_token *token, const char *owner);

/* May this request run, as far as its profile, image and limits go? ERR_FORBIDDEN names the field,
 * the value and the bound. */
int who_allows(const struct who_token *token, const struct request *request, struct err *err);
/* May it use that tool? */
int who_allows_tool(const struct who_token *token, const char *tool, struct err *err);
/* Each counts one in, or refuses with ERR_QUOTA and a hint when to try again. cpu_ms of a run is
 * the most that it can use, its limit: it is set aside until the run ends, so that runs side by
 * side cannot exceed the day's share. 0 sets nothing aside. */
int who_run_begins(struct who_token *token, int64_t cpu_ms, struct err *err);
/* reserved_ms: cpu_ms of its begin. cpu_ms: the time that it has used. */
void who_run_ends(struct who_token *token, int64_t reserved_ms, double cpu_ms);
int who_session_begins(struct who_token *token, struct err *err);
void who_session_ends(struct who_token *token);
/* After an ERR_QUOTA: the seconds until it may work, for Retry-After. */
int64_t who_retry_s(const struct who_token *token);
/* Stored bytes: blobs, and files of ended sessions. */
int who_stores(struct who_token *token, int64_t bytes, struct err *err);
void who_unstores(struct who_token *token, int64_t bytes);
/* By owner, for what outlives a token or an engine: no refusal. Less than 0 gives back. */
void who_stored_by(struct who *who, const char *owner, int64_t bytes);
/* [{"id","name","operator","used":{...},"quota":{...}}] for metrics. */
json_t *who_describe(const struct who *who);

#endif
