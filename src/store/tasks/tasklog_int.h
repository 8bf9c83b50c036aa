/* Private to src/store/tasks: the connection, and the lock of a task. */
#ifndef STORE_TASKS_TASKLOG_INT_H
#define STORE_TASKS_TASKLOG_INT_H

#include "store/db/db.h"
#include "store/redact/redact.h"
#include "store/tasks/tasklog.h"

#define TASKLOG_EVENT_MAX ((size_t)256 << 20)
#define TASKLOG_NAME_MAX ((size_t)1 << 20) /* bytes of a file's name, with its markers */

struct tasklog {
    struct db *db;
    struct redact *redact;
    int lock_fd; /* STATE/tasks.lock: task n has byte n */
    int64_t task; /* being written; 0: none, or not in the table yet */
    int64_t seq;
    int64_t created_ms;
    bool locked;
    char id[TASKLOG_ID_LEN + 1];
    char *owner, *door;
};

int64_t tasklog_now_ms(void);
/* The file of the locks, or -1. */
int tasklog_open_locks(int state_dir, struct err *err);
/* 1: locked by us; 0: by another; -1: err. */
int tasklog_lock(struct tasklog *log, int64_t task, struct err *err);
void tasklog_unlock(struct tasklog *log, int64_t task);
bool tasklog_is_locked(const struct tasklog *log, int64_t task);
/* In a transaction, with the lock of the task. */
int tasklog_remove_rows(struct tasklog *log, int64_t n, struct err *err);
/* Its number; -1: ERR_ABSENT. */
int64_t tasklog_find(struct tasklog *log, const char *owner, const char *id, struct err *err);
/* "text" or "output": a part of what a reply or a step has as a whole. */
bool tasklog_is_portion(const char *kind);
/* Runs a statement that gives no row, after its values were put. */
int tasklog_do(struct db_query *query, struct err *err);

#endif
