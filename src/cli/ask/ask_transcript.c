/* Writes and shows transcripts of tasks. Runs in the cli process. A file is opened as the caller,
 * so that root's files belong to root; its folder belongs to the uid after the drop of rights,
 * which renames the file when the task gets its id. A transcript is as hostile as its quotes:
 * capped, parsed, drawn like live events. */
#include "cli/ask/ask_transcript.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "cli/run/run_inputs.h"
#include "cli/link/state_files.h"
#include "cli/term/term.h"

#define FOLDER "tasks"
#define TRANSCRIPT_MAX (512u << 20)
#define LINE_MAX_BYTES (256u << 20)
#define TASK_MAX_BYTES (4u << 20) /* of the first event */
#define AGAIN_MAX (128u << 20) /* of a task that goes on */
#define PASSING ".new-" /* plus our process number, until the task has its id */
#define LEFT_S 600      /* an older temporary file is abandoned */

static bool is_id(const char *text)
{
    return strncmp(text, "t_", 2) == 0 && strlen(text) == CLI_ASK_ID_LEN &&
           strspn(text + 2, "0123456789abcdef") == CLI_ASK_ID_LEN - 2;
}

int cli_ask_transcript_open(struct cli_ask_transcript *out)
{
    own_fd folder = cli_state_open_folder(FOLDER);
    if (folder < 0)
        return -1;
    snprintf(out->name, sizeof out->name, PASSING "%ld", (long)getpid());
    unlinkat(folder, out->name, 0); /* of a dead process with our number */
    out->fd = openat(folder, out->name,
                     O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (out->fd < 0 || fchmod(out->fd, 0600) < 0 || flock(out->fd, LOCK_EX | LOCK_NB) < 0)
        return -1;
    out->folder = take_fd(&folder);
    return 0;
}

void cli_ask_transcript_name(struct cli_ask_transcript *transcript, const char *id)
{
    char name[CLI_ASK_ID_LEN + sizeof ".jsonl"];
    if (transcript->folder < 0 || !is_id(id))
        return;
    snprintf(name, sizeof name, "%s.jsonl", id);
    if (renameat2(transcript->folder, transcript->name, transcript->folder, name,
                  RENAME_NOREPLACE) == 0)
        snprintf(transcript->name, sizeof transcript->name, "%s", name);
}

void cli_ask_transcript_follow(struct cli_ask_transcript *transcript)
{
    char last = 0;
    off_t size = transcript->fd < 0 ? -1 : lseek(transcript->fd, 0, SEEK_END);
    transcript->cut = transcript->cut || size <= transcript->size ||
                      pread(transcript->fd, &last, 1, size - 1) != 1 || last != '\n';
    transcript->size = size;
}

/* Left by a process that was killed before its task got an id. */
static bool is_left(int folder, const char *name)
{
    uint64_t pid;
    struct stat st;
    return strncmp(name, PASSING, strlen(PASSING)) == 0 &&
           str_to_u64(str_of(name + strlen(PASSING)), &pid) && pid > 0 && pid < INT32_MAX &&
           kill((pid_t)pid, 0) < 0 && errno == ESRCH &&
           fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           time(NULL) - st.st_mtime > LEFT_S;
}

/* At the end, when nobody waits: a folder may hold many transcripts. */
static void sweep(int folder)
{
    int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *all = again < 0 ? NULL : fdopendir(again);
    if (!all) {
        own_close_fd(&again);
        return;
    }
    for (const struct dirent *entry; (entry = readdir(all));)
        if (is_left(folder, entry->d_name))
            unlinkat(folder, entry->d_name, 0);
    closedir(all);
}

void cli_ask_transcript_close(struct cli_ask_transcript *transcript)
{
    if (transcript->folder >= 0 && transcript->name[0] == '.')
        unlinkat(transcript->folder, transcript->name, 0);
    if (transcript->folder >= 0)
        sweep(transcript->folder);
    own_close_fd(&transcript->fd);
    own_close_fd(&transcript->folder);
}

/* By path, or by id in our folder. */
static int open_named(const char *what, int flags)
{
    own_fd fd = open(what, flags | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 && is_id(what)) {
        char name[CLI_ASK_ID_LEN + sizeof ".jsonl"];
        own_fd folder = cli_state_open_folder(FOLDER);
        snprintf(name, sizeof name, "%s.jsonl", what);
        fd = folder < 0 ? -1 : openat(folder, name, flags | O_CLOEXEC | O_NOFOLLOW);
    }
    struct stat st;
    return fd >= 0 && fstat(fd, &st) == 0 && !S_ISDIR(st.st_mode) ? take_fd(&fd) : -1;
}

static int refuse_absent(const char *what, struct err *err)
{
    err_set(err, ERR_ABSENT, "no such transcript: '%.200s'", what);
    err_hint(err, "name a task by the id that cupel ask printed (t_ and 24 digits), or a file");
    return -1;
}

int cli_ask_transcript_find(const char *what, int *out_fd, struct err *err)
{
    own_fd fd = open_named(what, O_RDONLY);
    if (fd < 0)
        return refuse_absent(what, err);
    *out_fd = take_fd(&fd);
    return 0;
}

int cli_ask_transcript_again(const char *what, struct cli_ask_transcript *out, struct err *err)
{
    own_fd fd = open_named(what, O_RDWR | O_APPEND | O_NONBLOCK);
    struct stat st;
    if (fd < 0)
        return refuse_absent(what, err);
    /* The folder may belong to another uid: write only to a plain file of our own. */
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_nlink != 1)
        return err_set(err, ERR_USAGE, "the transcript '%.200s' is not a file of yours", what);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return err_set(err, ERR_BUSY, "the task '%.200s' is running", what);
    out->fd = take_fd(&fd);
    out->size = st.st_size;
    return 0;
}

static json_t *read_event(struct str line, struct err *err)
{
    json_t *event = json_read(line, LINE_MAX_BYTES, err);
    if (!event || (json_is_string(json_object_get(event, "kind")) &&
                   json_is_object(json_object_get(event, "data"))))
        return event;
    json_decref(event);
    err_set(err, ERR_INPUT, "no event with kind and data");
    return NULL;
}

/* Calls `each` for every whole line. Returns the number of bytes that they have, or -1. */
static off_t each_line(int fd, const char *what, size_t max,
                       void (*each)(void *user, const char *kind, json_t *data), void *user,
                       struct err *err)
{
    own_buf text = BUF_INIT(max);
    if (cli_run_inputs_read(fd, what, "transcript", &text, err) < 0)
        return -1;
    struct str rest = buf_str(&text);
    for (size_t number = 1; rest.len > 0; number++) {
        const char *end = memchr(rest.at, '\n', rest.len);
        if (!end) { /* cut by a crash of the machine */
            cli_term_note("the last line of '%.200s' is cut", what);
            break;
        }
        struct str line = { rest.at, (size_t)(end - rest.at) };
        own_json event = read_event(line, err);
        if (!event)
            return err_wrap(err, "line %zu of '%.200s'", number, what);
        each(user, json_string_value(json_object_get(event, "kind")),
             json_object_get(event, "data"));
        rest = (struct str){ end + 1, rest.len - line.len - 1 };
    }
    return (off_t)(text.len - rest.len);
}

json_t *cli_ask_transcript_task(const struct cli_ask_transcript *transcript, const char *what,
                                struct err *err)
{
    own_buf line = BUF_INIT(TASK_MAX_BYTES);
    char *room = buf_room(&line, TASK_MAX_BYTES);
    ssize_t n = pread(transcript->fd, room, TASK_MAX_BYTES, 0);
    const char *end = n > 0 ? memchr(room, '\n', (size_t)n) : NULL;
    own_json event = end ? read_event((struct str){ room, (size_t)(end - room) }, err) : NULL;
    json_t *data = json_object_get(event, "data");
    if (str_is(json_get_str(event, "kind"), "task"))
        return json_incref(data);
    err_set(err, ERR_INPUT, "the transcript '%.200s' does not begin with a task", what);
    return NULL;
}

/* Steps in their order, and the latest state of the conversation alone. */
static void keep_event(void *user, const char *kind, json_t *data)
{
    static const char *const kept[] = { "task", "step", "undone", "history" };
    json_t *events = user;
    size_t i;
    json_t *event;
    bool found = false;
    for (i = 0; i < array_len(kept); i++)
        found = found || strcmp(kind, kept[i]) == 0;
    if (!found)
        return;
    if (strcmp(kind, "history") == 0)
        json_array_foreach (events, i, event) {
            if (str_is(json_get_str(event, "kind"), "history")) {
                json_array_remove(events, i);
                break;
            }
        }
    json_array_append_new(events, json_pack("{s:s, s:O}", "kind", kind, "data", data));
}

json_t *cli_ask_transcript_events(struct cli_ask_transcript *transcript, const char *what,
                                  struct err *err)
{
    own_json events = json_array();
    off_t size = lseek(transcript->fd, 0, SEEK_SET) < 0
                     ? -1
                     : each_line(transcript->fd, what, AGAIN_MAX, keep_event, events, err);
    if (size < 0)
        return NULL;
    if (ftruncate(transcript->fd, size) == 0)
        transcript->size = size;
    return take_ptr(events);
}

struct showing {
    struct cli_ask_draw *draw;
    json_t **report;
};

static void show_event(void *user, const char *kind, json_t *data)
{
    const struct showing *showing = user;
    cli_ask_draw_event(showing->draw, kind, data);
    if (strcmp(kind, "end") == 0) {
        json_decref(*showing->report);
        *showing->report = json_incref(data);
    }
}

int cli_ask_transcript_show(int fd, const char *what, struct cli_ask_draw *draw,
                            json_t **out_report, struct err *err)
{
    struct showing showing = { draw, out_report };
    return each_line(fd, what, TRANSCRIPT_MAX, show_event, &showing, err) < 0 ? -1 : 0;
}
