/* The connection of a tasklog, its locks and its writing side. Any process with the state folder.
 * The lock of a task is one byte of a file, held by an open file description: threads of one
 * process exclude each other too, and the kernel gives it back when the process dies. */
#include "store/tasks/tasklog.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/own.h"
#include "store/tasks/tasklog_int.h"

#define LOCK_FILE "tasks.lock"

int64_t tasklog_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int tasklog_do(struct db_query *query, struct err *err)
{
    int rc = query ? db_next(query, err) : -1;
    if (rc > 0)
        db_stop(query);
    return rc < 0 ? -1 : 0;
}

/* --- open and close --- */

static int read_key(struct db *db, unsigned char key[REDACT_KEY_BYTES], bool *out_found,
                    struct err *err)
{
    struct db_query *query = db_ask(db, "SELECT value FROM meta WHERE name = 'redact_key'", err);
    int rc = query ? db_next(query, err) : -1;
    struct str bytes = rc > 0 ? db_bytes(query, 0) : STR_NONE;
    *out_found = bytes.len == REDACT_KEY_BYTES;
    if (*out_found)
        memcpy(key, bytes.at, REDACT_KEY_BYTES);
    if (rc > 0)
        db_stop(query);
    return rc < 0 ? -1 : 0;
}

/* The store's key: the first who needs it makes it. */
static int find_key(struct db *db, unsigned char key[REDACT_KEY_BYTES], struct err *err)
{
    bool found;
    unsigned char made[REDACT_KEY_BYTES];
    if (read_key(db, key, &found, err) < 0)
        return -1;
    if (found)
        return 0;
    if (getrandom(made, sizeof made, 0) != (ssize_t)sizeof made)
        return err_sys(err, "get random bytes");
    struct db_query *query = db_ask(
        db, "INSERT OR IGNORE INTO meta (name, value) VALUES ('redact_key', ?1)", err);
    if (query)
        db_put_bytes(query, 1, (struct str){ (const char *)made, sizeof made });
    if (tasklog_do(query, err) < 0 || read_key(db, key, &found, err) < 0)
        return -1;
    return found ? 0 : err_set(err, ERR_BUG, "the store has no key for its markers");
}

int tasklog_open_locks(int state_dir, struct err *err)
{
    int fd = openat(state_dir, LOCK_FILE, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    return fd >= 0 ? fd : err_sys(err, "open '%s' in the state folder", LOCK_FILE);
}

struct tasklog *tasklog_open(const struct tasklog_options *options, struct err *err)
{
    const struct db_options how = { .state_dir = options->state_dir,
                                    .only_if_there = options->only_if_there };
    unsigned char key[REDACT_KEY_BYTES];
    struct tasklog *log = buf_alloc_zero(1, sizeof *log);
    log->lock_fd = -1;
    log->db = db_open(&how, err);
    if (log->db && find_key(log->db, key, err) == 0)
        log->redact = redact_open(options->redact, key, err);
    if (log->redact) {
        log->lock_fd = tasklog_open_locks(options->state_dir, err);
        if (log->lock_fd >= 0)
            return log;
    }
    tasklog_close(log);
    return NULL;
}

void tasklog_close(struct tasklog *log)
{
    if (!log)
        return;
    tasklog_finish(log);
    own_close_fd(&log->lock_fd);
    redact_close(log->redact);
    db_close(log->db);
    free(log);
}

void tasklog_drop(struct tasklog **log)
{
    tasklog_close(*log);
    *log = NULL;
}

size_t tasklog_redact(const struct tasklog *log, json_t *value)
{
    size_t found = redact_json(log->redact, value);
    if (found)
        redact_sums(log->redact, value);
    return found;
}

bool tasklog_is_id(const char *text)
{
    return strncmp(text, "t_", 2) == 0 && strlen(text) == TASKLOG_ID_LEN &&
           strspn(text + 2, "0123456789abcdef") == TASKLOG_ID_LEN - 2;
}

/* --- locks --- */

static struct flock byte_of(int64_t task, short type)
{
    return (struct flock){ .l_type = type, .l_whence = SEEK_SET, .l_start = task, .l_len = 1 };
}

int tasklog_lock(struct tasklog *log, int64_t task, struct err *err)
{
    struct flock byte = byte_of(task, F_WRLCK);
    if (fcntl(log->lock_fd, F_OFD_SETLK, &byte) == 0)
        return 1;
    return errno == EAGAIN || errno == EACCES ? 0 : err_sys(err, "lock a task");
}

void tasklog_unlock(struct tasklog *log, int64_t task)
{
    struct flock byte = byte_of(task, F_UNLCK);
    fcntl(log->lock_fd, F_OFD_SETLK, &byte);
}

/* The kernel does not show us our own lock. */
bool tasklog_is_locked(const struct tasklog *log, int64_t task)
{
    struct flock byte = byte_of(task, F_WRLCK);
    if (log->locked && log->task == task)
        return true;
    return fcntl(log->lock_fd, F_OFD_GETLK, &byte) == 0 && byte.l_type != F_UNLCK;
}

void tasklog_finish(struct tasklog *log)
{
    if (log->locked)
        tasklog_unlock(log, log->task);
    log->locked = false;
    log->task = log->seq = 0;
    log->id[0] = 0;
    free(take_ptr(log->owner));
    free(take_ptr(log->door));
}

/* --- a task --- */

static int read_seq(struct tasklog *log, struct err *err)
{
    struct db_query *query = db_ask(
        log->db, "SELECT coalesce(max(seq), 0) FROM task_events WHERE task = ?1", err);
    if (!query)
        return -1;
    db_put_int(query, 1, log->task);
    int rc = db_next(query, err);
    log->seq = rc > 0 ? db_int(query, 0) : 0;
    if (rc > 0)
        db_stop(query);
    return rc < 0 ? -1 : 0;
}

static int take_up(struct tasklog *log, int64_t task, struct err *err)
{
    int rc = tasklog_lock(log, task, err);
    if (rc == 0)
        return err_set(err, ERR_BUSY, "the task '%s' is running", log->id);
    if (rc < 0)
        return -1;
    log->task = task;
    log->locked = true;
    return read_seq(log, err);
}

int tasklog_begin(struct tasklog *log, const struct tasklog_about *about, struct err *err)
{
    struct err absent = ERR_INIT;
    tasklog_finish(log);
    if (!tasklog_is_id(about->id))
        return err_set(err, ERR_INPUT, "'%.60s' is no id of a task", about->id);
    memcpy(log->id, about->id, TASKLOG_ID_LEN + 1);
    log->owner = buf_strdup(str_of(about->owner));
    log->door = buf_strdup(str_of(about->door));
    log->created_ms = about->created_ms;
    int64_t task = tasklog_find(log, NULL, log->id, &absent);
    if (task > 0)
        return take_up(log, task, err);
    if (absent.kind == ERR_ABSENT)
        return 0;
    *err = absent;
    return -1;
}

/* The row of a new task. Its lock is there before anybody can see the row. */
static int insert(struct tasklog *log, int64_t at_ms, struct err *err)
{
    struct db_query *query = db_ask(
        log->db,
        "INSERT INTO tasks (id, owner, door, status, created_ms, began_ms) "
        "VALUES (?1, ?2, ?3, 'running', ?4, ?5)",
        err);
    if (!query)
        return -1;
    db_put_text(query, 1, str_of(log->id));
    db_put_text(query, 2, str_of(log->owner));
    db_put_text(query, 3, str_of(log->door));
    db_put_int(query, 4, log->created_ms ? log->created_ms : at_ms);
    db_put_int(query, 5, at_ms);
    if (tasklog_do(query, err) < 0)
        return -1;
    return take_up(log, db_last_row(log->db), err) < 0 ? -1 : 0;
}

/* --- events --- */

bool tasklog_is_portion(const char *kind)
{
    return strcmp(kind, "text") == 0 || strcmp(kind, "output") == 0;
}

struct event {
    const char *kind;
    const json_t *data; /* redacted */
    int64_t at_ms;
};

static void put_count(struct db_query *query, int place, const json_t *value)
{
    int64_t count = json_is_integer(value) ? json_integer_value(value) : 0;
    db_put_int(query, place, count > 0 ? count : 0);
}

static struct db_query *note_task(struct tasklog *log, const struct event *event, struct err *err)
{
    struct db_query *query = db_ask(
        log->db,
        "UPDATE tasks SET status = 'running', question = ?2, model = ?3, began_ms = ?4, "
        "ended_ms = NULL, questions = questions + 1 WHERE n = ?1",
        err);
    if (!query)
        return NULL;
    db_put_text(query, 2, json_get_str(event->data, "question"));
    db_put_text(query, 3, json_get_str(event->data, "model"));
    db_put_int(query, 4, event->at_ms);
    return query;
}

static struct db_query *note_resumed(struct tasklog *log, const struct event *event,
                                     struct err *err)
{
    struct db_query *query = db_ask(
        log->db, "UPDATE tasks SET status = 'running', model = ?2, ended_ms = NULL WHERE n = ?1",
        err);
    if (query)
        db_put_text(query, 2, json_get_str(event->data, "model"));
    return query;
}

static struct db_query *note_end(struct tasklog *log, const struct event *event, struct err *err)
{
    struct db_query *query = db_ask(
        log->db, "UPDATE tasks SET status = ?2, ended_ms = ?3 WHERE n = ?1", err);
    if (!query)
        return NULL;
    db_put_text(query, 2, json_get_str(event->data, "status"));
    db_put_int(query, 3, event->at_ms);
    return query;
}

static struct db_query *note_step(struct tasklog *log, const struct event *event, struct err *err)
{
    struct db_query *query = db_ask(log->db, "UPDATE tasks SET steps = ?2 WHERE n = ?1", err);
    bool undone = strcmp(event->kind, "undone") == 0;
    if (query)
        put_count(query, 2, json_object_get(event->data, undone ? "steps" : "n"));
    return query;
}

static struct db_query *note_reply(struct tasklog *log, const struct event *event, struct err *err)
{
    const json_t *usage = json_object_get(event->data, "usage");
    const json_t *usd = json_object_get(event->data, "cost_usd");
    struct db_query *query = db_ask(
        log->db,
        "UPDATE tasks SET input_tokens = input_tokens + ?2, output_tokens = output_tokens + ?3, "
        "usd = usd + ?4, unpriced = unpriced + ?5, requests = requests + 1 WHERE n = ?1",
        err);
    if (!query)
        return NULL;
    put_count(query, 2, json_object_get(usage, "input"));
    put_count(query, 3, json_object_get(usage, "output"));
    db_put_real(query, 4, json_number_value(usd));
    db_put_int(query, 5, !json_is_number(usd));
    return query;
}

/* Changes of the task's row that events make. */
static int note(struct tasklog *log, const struct event *event, struct err *err)
{
    static const struct {
        const char *kind;
        struct db_query *(*make)(struct tasklog *, const struct event *, struct err *);
    } rows[] = {
        { "task", note_task },  { "resumed", note_resumed }, { "end", note_end },
        { "step", note_step },  { "undone", note_step },     { "reply", note_reply },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        if (strcmp(event->kind, rows[i].kind) != 0)
            continue;
        struct db_query *query = rows[i].make(log, event, err);
        if (query)
            db_put_int(query, 1, log->task);
        return tasklog_do(query, err);
    }
    return 0;
}

static int count_redacted(struct tasklog *log, size_t found, struct err *err)
{
    struct db_query *query = found ? db_ask(log->db,
                                            "UPDATE tasks SET redacted = redacted + ?2 "
                                            "WHERE n = ?1",
                                            err)
                                   : NULL;
    if (!query)
        return found ? -1 : 0;
    db_put_int(query, 1, log->task);
    db_put_int(query, 2, (int64_t)found);
    return tasklog_do(query, err);
}

static int insert_event(struct tasklog *log, const struct event *event, struct str text,
                        struct err *err)
{
    struct db_query *query = db_ask(
        log->db,
        "INSERT INTO task_events (task, seq, at_ms, kind, data) VALUES (?1, ?2, ?3, ?4, ?5)", err);
    if (!query)
        return -1;
    db_put_int(query, 1, log->task);
    db_put_int(query, 2, log->seq + 1);
    db_put_int(query, 3, event->at_ms);
    db_put_text(query, 4, str_of(event->kind));
    db_put_text(query, 5, text);
    return tasklog_do(query, err);
}

/* A secret that two portions of a stream share is seen in neither: they are stored without their
 * texts, which replies and steps have as a whole. */
static json_t *blank_portion(const char *kind, const json_t *data)
{
    if (!tasklog_is_portion(kind))
        return NULL;
    return json_pack("{s:O*, s:s}", "stream", json_object_get(data, "stream"), "text", "");
}

/* In a transaction. */
static int write_event(struct tasklog *log, const char *kind, const json_t *data, int64_t at_ms,
                       struct err *err)
{
    own_buf text = BUF_INIT(TASKLOG_EVENT_MAX);
    own_json hidden = NULL;
    own_json blank = blank_portion(kind, data);
    size_t found = 0;
    data = blank ? blank : data;
    if (json_add(&text, data) < 0)
        return err_set(err, ERR_LIMIT, "an event of the task is too long to be stored");
    if (redact_json_may(log->redact, buf_str(&text))) {
        hidden = json_deep_copy(data);
        found = tasklog_redact(log, hidden);
    }
    if (found) {
        json_object_set_new(hidden, "redacted", json_integer((json_int_t)found));
        buf_drop(&text, text.len);
        if (json_add(&text, hidden) < 0)
            return err_set(err, ERR_LIMIT, "an event of the task is too long to be stored");
    }
    const struct event event = { kind, found ? hidden : data, at_ms };
    if ((log->task == 0 && insert(log, at_ms, err) < 0) ||
        insert_event(log, &event, buf_str(&text), err) < 0 || note(log, &event, err) < 0 ||
        count_redacted(log, found, err) < 0)
        return -1;
    log->seq++;
    return 0;
}

int tasklog_add(struct tasklog *log, const char *kind, const json_t *data, struct err *err)
{
    bool is_new = log->task == 0;
    int64_t seq = log->seq;
    if (!log->id[0] || (is_new && strcmp(kind, "task") != 0))
        return err_set(err, ERR_BUG, "an event of no task");
    if (db_begin(log->db, err) < 0)
        return -1;
    if (write_event(log, kind, data, tasklog_now_ms(), err) == 0 && db_commit(log->db, err) == 0)
        return 0;
    db_undo(log->db);
    log->seq = seq;
    if (is_new && log->locked) {
        tasklog_unlock(log, log->task);
        log->locked = false;
        log->task = 0;
    }
    return -1;
}

int tasklog_add_file(struct tasklog *log, const char *role, const char *path, const char *mime,
                     struct str bytes, struct err *err)
{
    char digest[HASH_HEX_ROOM];
    own_buf name = BUF_INIT(TASKLOG_NAME_MAX); /* as the events have it */
    if (log->task == 0)
        return err_set(err, ERR_BUG, "a file of no task");
    redact_text(log->redact, str_of(path), &name);
    hash_hex(bytes, digest);
    struct db_query *query = db_ask(
        log->db,
        "INSERT OR REPLACE INTO task_files (task, role, path, mime, sha256, size_bytes, bytes) "
        "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        err);
    if (!query)
        return -1;
    db_put_int(query, 1, log->task);
    db_put_text(query, 2, str_of(role));
    db_put_text(query, 3, buf_str(&name));
    db_put_text(query, 4, str_of(mime));
    db_put_text(query, 5, str_of(digest));
    db_put_int(query, 6, (int64_t)bytes.len);
    db_put_bytes(query, 7, bytes.at ? bytes : STR(""));
    return tasklog_do(query, err);
}

/* "2026-11-16T19:00:00.000Z" of a transcript. */
static int64_t time_of(const json_t *event)
{
    struct tm utc = { 0 };
    const char *rest = strptime(json_get_str(event, "at").at, "%Y-%m-%dT%H:%M:%S", &utc);
    int64_t ms = rest && rest[0] == '.' ? strtol(rest + 1, NULL, 10) : 0;
    return rest ? (int64_t)timegm(&utc) * 1000 + (ms >= 0 && ms < 1000 ? ms : 0) : tasklog_now_ms();
}

static int import_all(struct tasklog *log, const json_t *events, struct err *err)
{
    size_t i;
    json_t *event;
    json_array_foreach (events, i, event)
        if (write_event(log, json_get_str(event, "kind").at, json_object_get(event, "data"),
                        time_of(event), err) < 0)
            return -1;
    return 0;
}

int tasklog_import(struct tasklog *log, const char *id, const json_t *events, struct err *err)
{
    if (tasklog_begin(log, &(struct tasklog_about){ id, "", "cli", 0 }, err) < 0)
        return -1;
    int rc = log->task ? err_set(err, ERR_CONFLICT, "the task '%s' is in the store", id)
                       : db_begin(log->db, err);
    if (rc == 0 && (import_all(log, events, err) < 0 || db_commit(log->db, err) < 0)) {
        db_undo(log->db);
        rc = -1;
    }
    tasklog_finish(log);
    return rc;
}
