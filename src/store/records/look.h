/* Looks at records: lists, searches, shows, counts, exports, removes and pins them. Any process
 * with a connection: threads of the service, `cupel runs`. Blocking.
 *
 * RECORD, as look_show gives it:
 *   {"run","status","owner","door","started_at","ended_at","engine","task","step","session","cell",
 *    "replay_of","pinned","redacted","cached_hits","stored_bytes",
 *    "request":{as sent; files are {"path","size_bytes","sha256","readonly"}; stdin is
 *    {"size_bytes","sha256"} or null},"result":{...}|null,
 *    "error":{...}|null (a refusal after the start)}
 *   status "started": it runs, or its engine is gone. Times are seconds since 1970 with fractions.
 * ROW, of a list: {"run","status","language","owner","started_at","wall_ms","cpu_ms",
 *    "memory_peak_bytes","exit_code","session","cell","task","step","code_sha256","code" (its first
 *    line, at most 200 bytes),"text" (the result's, or the error's, short),"redacted","pinned",
 *    "cached_hits","artifacts":N,"stored_bytes"}
 * A question that takes too long ends with ERR_SLOW. */
#ifndef STORE_RECORDS_LOOK_H
#define STORE_RECORDS_LOOK_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "store/db/db.h"

#define LOOK_PAGE 50
#define LOOK_PAGE_MAX 1000

struct look_filter {
    const char *owner; /* NULL: everybody's */
    int64_t since_ms, until_ms; /* of the start, since 1970; 0: no bound */
    const char *status, *language, *session, *task, *code_sha256; /* NULL: any */
    const char *text; /* words that the record must have; "quoted phrases"; prefix* */
    const char *page; /* where the last page ended ("next"); NULL: from the newest */
    int limit; /* 0: LOOK_PAGE */
};
/* A time as people write it: 2h or 7d (ago), 2026-11-01, 2026-11-01T12:00:00Z, or seconds since
 * 1970. `name` is the field of the err. */
int look_time(const char *name, const char *text, int64_t now_ms, int64_t *out_ms, struct err *err);
/* Brings indexes up to date first: what was answered before is found. {"runs":[ROW],"next"}. */
json_t *look_list(struct db *db, const struct look_filter *filter, struct err *err);
/* RECORD; ERR_ABSENT also for another owner's. `id` may be a unique prefix or "last". */
json_t *look_show(struct db *db, const char *owner, const char *id, struct err *err);
/* Whole stdout or stderr of a run (is_err), redacted; appended to out. */
int look_output(struct db *db, int state_dir, const char *owner, const char *id, bool is_err,
                struct buf *out, struct err *err);
/* Bytes of an artifact, or of an input file; their sum is checked. */
int look_artifact(struct db *db, int state_dir, const char *owner, const char *id, struct str path,
                  struct buf *out, struct err *err);
int look_content(struct db *db, int state_dir, const char *sha256, struct buf *out,
                 struct err *err);
/* The calls of tools that a run made, whole, as its engine kept them for a replay; JSON null where
 * it had no tools, or they are not stored:
 *   {"whole":true,"tools":[{"name","description","input_schema","output_schema"?,"effect"}],
 *    "calls":[{"number","tool","line","verdict","ms","unheard","arguments","outcome"}]}
 * "whole" is false where they were too long, and both lists are empty then. "unheard": the code
 * did not wait for the outcome. The text may be that of an edited store. */
json_t *look_calls(struct db *db, const char *owner, const char *id, struct err *err);
/* The member that look_add_calls adds: what look_calls gives. */
#define LOOK_CALLS "calls_whole"
#define LOOK_CALLS_MAX ((size_t)64 << 20) /* bytes of all that it adds */
/* To a RECORD, and to those of its `steps` (look_session; or NULL), whose runs had tools. Calls
 * that are not stored, or have no room, are left out. */
void look_add_calls(struct db *db, const char *owner, json_t *record, json_t *steps);
/* Figures over a window (since_ms to until_ms of the filter; from the first run where that is 0):
 *   {"since","until","runs","statuses":{STATUS:N},"languages":{LANGUAGE:N},
 *    "failures":[{"status","kind","name","count","example":RUN,"last_at","text"}],
 *    "wall_ms":{"p50","p95","p99","max"}|null,"by_language":{LANGUAGE:{"runs","wall_ms","cpu_s"}},
 *    "slowest":[{"run","wall_ms","started_at","language","status","code","text"}],
 *    "cost":{"cpu_s","wall_s","memory_peak_bytes_p50","memory_peak_bytes_max","stored_bytes",
 *    "artifacts","redacted","cached_hits"},
 *    "over_time":{"from","bucket_s","runs":[N],"failed":[N],"p95_ms":[]},
 *    "tokens":[{"owner","runs","failed","cpu_s","stored_bytes"}] (everybody's: without an owner)}
 * Percentiles are right within one percent. */
json_t *look_stats(struct db *db, const struct look_filter *filter, struct err *err);
int look_remove(struct db *db, const char *owner, const char *id, struct err *err);
int look_pin(struct db *db, const char *owner, const char *id, bool pinned, struct err *err);
/* Cells of a session up to that run (NULL: all), and all its acts, in their order, for replay: each
 * a RECORD, or {"act","session","owner","at","detail","redacted","files":[{"path","size_bytes",
 * "sha256","readonly"}]}. */
json_t *look_session(struct db *db, const char *owner, const char *session, const char *until,
                     struct err *err);

#endif
