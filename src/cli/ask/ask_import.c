/* Transcripts of an older version (STATE/tasks/t_ID.jsonl, one event a line), imported once. Runs
 * in the cli process. Files are opened as the caller, who owns them, and read after the drop of
 * rights; their folder belongs to the uid after it. A transcript is as hostile as its quotes:
 * capped, then parsed. An imported file goes to tasks/imported, one that cannot be read to
 * tasks/refused; none is deleted. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "cli/ask/ask_store.h"
#include "cli/term/term.h"

#define FOLDER "tasks"
#define SUFFIX ".jsonl"
#define OLD_MAX ((size_t)128 << 20) /* bytes of a transcript */
#define EVENTS_MAX 1000000

/* The id of a transcript's name; false: it is another file. */
static bool take_id(const char *name, char id[TASKLOG_ID_LEN + 1])
{
    size_t len = strlen(name);
    if (len != TASKLOG_ID_LEN + strlen(SUFFIX) || strcmp(name + TASKLOG_ID_LEN, SUFFIX) != 0)
        return false;
    memcpy(id, name, TASKLOG_ID_LEN);
    id[TASKLOG_ID_LEN] = 0;
    return tasklog_is_id(id);
}

/* A plain file of the caller's that no older cupel is writing. */
static int open_one(int folder, const char *name)
{
    own_fd fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
        st.st_nlink != 1 || flock(fd, LOCK_EX | LOCK_NB) < 0)
        return -1;
    return take_fd(&fd);
}

void cli_ask_import_open(int state_dir, struct cli_ask_old *out)
{
    own_fd folder = openat(state_dir, FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    int again = folder < 0 ? -1 : openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *all = again < 0 ? NULL : fdopendir(again);
    if (!all) {
        own_close_fd(&again);
        return;
    }
    for (const struct dirent *entry; out->count < CLI_ASK_OLD_MAX && (entry = readdir(all));) {
        if (!take_id(entry->d_name, out->ids[out->count]))
            continue;
        int fd = open_one(folder, entry->d_name);
        if (fd >= 0)
            out->fds[out->count++] = fd;
    }
    closedir(all);
    if (out->count > 0)
        out->folder = take_fd(&folder);
}

void cli_ask_import_done(struct cli_ask_old *old)
{
    for (size_t i = 0; i < old->count; i++)
        own_close_fd(&old->fds[i]);
    old->count = 0;
    own_close_fd(&old->folder);
}

/* --- after the drop --- */

static json_t *read_event(struct str line, size_t number, struct err *err)
{
    json_t *event = json_read(line, OLD_MAX, err);
    if (event && json_is_string(json_object_get(event, "kind")) &&
        json_is_object(json_object_get(event, "data")))
        return event;
    if (event)
        err_set(err, ERR_INPUT, "no event with kind and data");
    json_decref(event);
    err_wrap(err, "line %zu", number);
    return NULL;
}

/* A last line without its end was cut by a crash. */
static json_t *read_events(struct str text, struct err *err)
{
    own_json events = json_array();
    for (size_t number = 1; text.len > 0; number++) {
        const char *end = memchr(text.at, '\n', text.len);
        if (!end)
            break;
        struct str line = { text.at, (size_t)(end - text.at) };
        json_t *event = number > EVENTS_MAX ? NULL : read_event(line, number, err);
        if (!event)
            return NULL;
        json_array_append_new(events, event);
        text = (struct str){ end + 1, text.len - line.len - 1 };
    }
    return take_ptr(events);
}

static int import_one(int fd, const char *id, struct tasklog *log, struct err *err)
{
    own_buf text = BUF_INIT(OLD_MAX);
    if (buf_read(&text, fd) < 0)
        return errno == EFBIG ? err_set(err, ERR_LIMIT, "it has more than %zu bytes", OLD_MAX)
                              : err_sys(err, "read it");
    own_json events = read_events(buf_str(&text), err);
    const json_t *first = json_array_get(events, 0);
    if (!events)
        return -1;
    if (!str_is(json_get_str(first, "kind"), "task") ||
        !str_is(json_get_str(json_object_get(first, "data"), "task"), id))
        return err_set(err, ERR_INPUT, "it does not begin with the task of its name");
    return tasklog_import(log, id, events, err);
}

static void move_to(int folder, const char *id, const char *place)
{
    char from[64], to[96];
    snprintf(from, sizeof from, "%s" SUFFIX, id);
    snprintf(to, sizeof to, "%s/%s" SUFFIX, place, id);
    mkdirat(folder, place, 0700);
    if (renameat2(folder, from, folder, to, RENAME_NOREPLACE) < 0)
        cli_term_note("cannot move the old transcript of %s: %s", id, strerror(errno));
}

void cli_ask_import(struct cli_ask_old *old, struct tasklog *log)
{
    size_t done = 0;
    for (size_t i = 0; i < old->count; i++) {
        struct err err = ERR_INIT;
        int rc = import_one(old->fds[i], old->ids[i], log, &err);
        bool known = rc < 0 && err.kind == ERR_CONFLICT;
        bool bad = rc < 0 && (err.kind == ERR_INPUT || err.kind == ERR_LIMIT);
        done += rc == 0;
        if (bad)
            cli_term_note("the old transcript of %s is not imported: %s", old->ids[i], err.text);
        if (rc == 0 || known || bad)
            move_to(old->folder, old->ids[i], bad ? "refused" : "imported");
        else
            cli_term_note("the old transcript of %s stays: %s", old->ids[i], err.text);
    }
    if (done > 0)
        cli_term_note("%zu old transcript%s imported", done, done == 1 ? " was" : "s were");
    cli_ask_import_done(old);
}
