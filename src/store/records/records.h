/* Records of runs: everything needed to explain, find, replay and reuse one. The writing side, for
 * a process that runs code: the service, or `cupel run --record`.
 *
 * One thread owns the connection. The loop hands it work; it commits all that waits in one
 * transaction, at once, and reports through the loop. Indexes, the text search and retention wait
 * until the thread is idle. A second thread redacts and sums what is long, so that only its own run
 * waits for it.
 *
 * Invariants:
 * 1. A run's start is committed before its code is sent to a box, its end before it is answered.
 * 2. Texts are redacted before they are written (store/redact); bytes of inputs and artifacts are
 *    not.
 * 3. Each engine holds a lock. The starts of engines whose lock is free, and that have no end, are
 *    closed as `internal` by the next open.
 * 4. A failure to write a start refuses the run. A failure to write an end is reported, and the
 *    thread tries again until the memory set aside for that is used. */
#ifndef STORE_RECORDS_RECORDS_H
#define STORE_RECORDS_RECORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/loop.h"
#include "base/str.h"
#include "contract/request.h"
#include "contract/result.h"

struct records;
struct record; /* one run, between records_begin and the answer to its end */

struct records_options {
    struct loop *loop;
    int state_dir; /* the caller's, until records_close */
    bool durable;  /* commits wait for the disk */
    const char *const *redact; /* more patterns (store/redact/redact.h); NULL: none */
    int64_t age_s, bytes; /* retention: of records, and of all they store; 0: no bound */
};
/* The thread opens the database: a fault of it is the err of each records_begin. */
struct records *records_open(const struct records_options *options, struct err *err);
/* Writes all that waits, calls every `told`, then ends the thread. Accepts NULL. */
void records_close(struct records *records);
void records_set_retention(struct records *records, int64_t age_s, int64_t bytes);

struct record_about {
    const char *run;   /* "r_..." */
    const char *owner; /* a token's id; "": the user's own socket or command line */
    const char *door;  /* "socket", "http", "cli" */
    const char *task;  /* "t_...", or NULL */
    int64_t step;      /* of the task; 0: none */
    const char *replay_of; /* "r_...", or NULL */
};
/* ERR_NONE: it is committed. From the loop. */
typedef void records_told(void *user, const struct err *err);
/* `request` and its bytes must stay until `told`; the strings of `about` only until this returns.
 * Told with an err, the record is gone. */
struct record *records_begin(struct records *records, const struct request *request,
                             const struct record_about *about, records_told *told, void *user);
/* The run ended: `result` (with the artifacts' bytes) and `json`, its text, must stay until `told`.
 * The record is gone after `told`. With cache_key, what may be reused is found by it for ttl_s. */
/* Bytes of a result and its files, above which it is not reused. */
#define RECORDS_REUSE_MAX ((int64_t)4 << 20)
struct record_cache {
    const char *key; /* 64 hexadecimal digits */
    int64_t ttl_s;
};
void record_end(struct record *record, const struct result *result, struct str json,
                const struct record_cache *cache, records_told *told, void *user);
/* Inside `told` of the end: was anything of it redacted? */
bool record_was_redacted(const struct record *record);
/* The engine refused it after all, or broke: closes the record with that err, whose kind is its
 * status. Nobody is told. */
void record_fail(struct record *record, const struct err *err);

/* An act on a session that is no run (new, put, remove, undo, fork, checkpoint, end), for replay.
 * `detail` is taken over; `files` (may be NULL) and their bytes are copied by hash before this
 * returns. Nobody waits for it. */
struct records_act {
    const char *session, *owner, *kind;
    json_t *detail;
    const struct request *request; /* of new and put: its files; or NULL */
    const int *spool; /* a file with the bytes of the only one of them, taken over; or NULL */
};
void records_act(struct records *records, const struct records_act *act);

/* A stored result that may be reused, by its key and owner, at most max_age_s old: `found` gets it
 * from the loop. */
struct records_hit {
    bool known;
    struct str json; /* as result_to_json made it */
    double age_s;
    int64_t ttl_s; /* with which it was stored */
    struct result_artifact *artifacts; /* with contents; may be taken over */
    size_t artifact_count;
};
typedef void records_found(void *user, struct records_hit *hit); /* NULL: there is none */
/* `known`, or NULL: the run whose result the caller has. If that is the one that is stored, `known`
 * of the hit is all that is filled, and it is not counted as a use. */
void records_find_cached(struct records *records, const char *key, const char *owner,
                         int64_t max_age_s, const char *known, records_found *found, void *user);

/* Its result was given again so many times, out of memory: for "cached_hits" of its record. */
void records_note_hits(struct records *records, const char *run, int64_t times);

/* {"recorded","failed","waiting","waiting_bytes","redacted","cache_hits",...}, for metrics. */
json_t *records_describe(const struct records *records);

#endif
