/* Tasks of the agent, in the database: what was asked, every event as it happened, and the files
 * that were made. Any process with the state folder: commands, and threads of the service, each
 * with a tasklog of its own. Blocking.
 *
 * Invariants:
 * 1. Each event is one commit. Its texts, and names of files, are redacted before (store/redact);
 *    bytes of files are not.
 * 2. The process that writes a task holds a lock for it, which ends with the process. A task
 *    without an end whose lock is free is `interrupted`.
 * 3. A task belongs to its owner; for another owner it does not exist.
 *
 * ROW: {"task","status","owner","door","question" (the last),"questions","model","began_at",
 *   "ended_at"|null,"steps","cost":{"usd"|null,"input_tokens","output_tokens","requests"},
 *   "redacted"}. Times are seconds since 1970 with fractions. */
#ifndef STORE_TASKS_TASKLOG_H
#define STORE_TASKS_TASKLOG_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#define TASKLOG_ID_LEN 26 /* "t_" and 24 hexadecimal digits */
#define TASKLOG_PAGE 50
#define TASKLOG_PAGE_MAX 1000

struct tasklog;

struct tasklog_options {
    int state_dir; /* the caller's, until tasklog_close */
    const char *const *redact; /* more patterns; NULL: none */
    bool only_if_there; /* ERR_ABSENT rather than a new database */
};
struct tasklog *tasklog_open(const struct tasklog_options *options, struct err *err);
/* Accepts NULL. */
void tasklog_close(struct tasklog *log);
void tasklog_drop(struct tasklog **log);
#define own_tasklog attr_cleanup(tasklog_drop) struct tasklog *

bool tasklog_is_id(const char *text);

/* --- writing: one task at a time --- */
struct tasklog_about {
    const char *id, *owner, *door;
    int64_t created_ms; /* of a new one, for its place in lists; 0: its first event's time */
};
/* A new task, or one that is there. ERR_BUSY: another process writes it. */
int tasklog_begin(struct tasklog *log, const struct tasklog_about *about, struct err *err);
/* The first event of a new task is "task". "text" and "output" are stored without their texts: a
 * secret may be cut by their ends. */
int tasklog_add(struct tasklog *log, const char *kind, const json_t *data, struct err *err);
/* A file of the task, "input" or "made"; a later one of that path takes its place. */
int tasklog_add_file(struct tasklog *log, const char *role, const char *path, const char *mime,
                     struct str bytes, struct err *err);
/* Gives the lock back. */
void tasklog_finish(struct tasklog *log);
/* An old transcript as a whole, in one transaction: `events` with "at". */
int tasklog_import(struct tasklog *log, const char *id, const json_t *events, struct err *err);

/* --- looking: `owner` NULL is everybody's; an id may be a unique beginning, or "last" --- */
struct tasklog_filter {
    const char *owner;
    const char *status, *door; /* NULL: any */
    const char *before; /* the id that the last page ended with; NULL: from the newest */
    int limit; /* 0: TASKLOG_PAGE */
};
/* {"tasks":[ROW],"next"|null} */
json_t *tasklog_list(struct tasklog *log, const struct tasklog_filter *filter, struct err *err);
json_t *tasklog_show(struct tasklog *log, const char *owner, const char *id, struct err *err);
/* [{"at","kind","data"}]; `passing`: with the kinds that only a watcher needs, where the first
 * "text" of a reply and the first "output" of a stream of a step have all of it. */
json_t *tasklog_events(struct tasklog *log, const char *owner, const char *id, bool passing,
                       struct err *err);
/* [{"role","path","mime","size_bytes","sha256"}] */
json_t *tasklog_files(struct tasklog *log, const char *owner, const char *id, struct err *err);
int tasklog_file(struct tasklog *log, const char *owner, const char *id, const char *role,
                 const char *path, struct buf *out, struct err *err);
/* ERR_CONFLICT: it is running. */
int tasklog_remove(struct tasklog *log, const char *owner, const char *id, struct err *err);

/* Redacts a value as this store does, in place: for comparisons with what is stored. */
size_t tasklog_redact(const struct tasklog *log, json_t *value);

#endif
