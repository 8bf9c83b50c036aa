/* The files of a session: put, collect, list, get, snapshots. Names, sizes and contents that the
 * porter sends are claims of the box. Runs in the engine. */
#include "engine/session/files_session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/io.h"
#include "engine/talk/files_int.h"

#define WORKSPACE "/workspace/"

struct files_job *files_session_begin(struct files_job *job, struct loop *loop, int sock,
                                      void (*done)(struct files_job *job))
{
    files_begin(job, loop, sock, done);
    job->keeps_sock = true;
    return job;
}

/* Whether the job could not even begin. */
static bool is_broken(const struct files_job *job)
{
    return job->err.kind != ERR_NONE;
}

/* --- put --- */

static int check_paths(struct files_job *job)
{
    char field[48];
    for (size_t i = 0; i < job->put_count; i++) {
        snprintf(field, sizeof field, "files[%zu].path", i);
        if (request_check_path(str_of(job->puts[i].path), field, &job->err) < 0)
            return -1;
    }
    return job->put_count > 0 ? files_put_next(job) : 1;
}

void files_session_put(struct files_job *job, const struct request_file *files, size_t count)
{
    job->puts = files;
    job->put_count = count;
    job->replaces = true;
    job->heard = files_hear_put;
    files_started(job, is_broken(job) ? -1 : check_paths(job));
}

void files_session_put_part(struct files_job *job, const struct request_file *file,
                            struct files_part part)
{
    job->part = part;
    files_session_put(job, file, 1);
}

int files_session_abandon(int sock, uint32_t upload)
{
    const struct box_porter_call call = { .op = BOX_PORTER_ABANDON, .upload = upload };
    return io_send(sock, &call, sizeof call, NULL, 0);
}

/* --- collect --- */

static int fetch_listed(struct files_job *job)
{
    return job->result ? files_read_next(job) : 1;
}

void files_session_collect(struct files_job *job, const struct request *request,
                           struct result *result, int64_t since_ns, struct files_seen *seen)
{
    job->request = request;
    job->result = result;
    job->seen = seen;
    job->listed = fetch_listed;
    if (result)
        files_set_deadline(job);
    files_started(job, is_broken(job) ? -1 : files_ask_list(job, since_ns > 0 ? since_ns : 1));
}

/* --- list and get --- */

static int all_listed(struct files_job *job)
{
    (void)job;
    return 1;
}

void files_session_list(struct files_job *job)
{
    job->lists_dirs = true;
    job->listed = all_listed;
    files_started(job, is_broken(job) ? -1 : files_ask_list(job, 0));
}

static int refuse_get(struct files_job *job, int error)
{
    if (error == ENOENT || error == ENOTDIR)
        return err_set(&job->err, ERR_ABSENT, "no such file in the session");
    return err_input(&job->err, "path", NULL, "a regular file that can be read",
                     error == EACCES   ? "the file cannot be read: its owner removed the permission"
                     : error == EAGAIN ? "the file cannot be read: the code holds a lease on it"
                                       : "it is not a regular file");
}

static int hear_content(struct files_job *job, const struct box_porter_answer *word,
                        const char *bytes)
{
    if (word->error)
        return refuse_get(job, word->error);
    if (!job->content) {
        uint64_t size = word->size > job->from ? word->size - job->from : 0;
        if (size > job->most && !job->is_part)
            return err_set(&job->err, ERR_LIMIT, "the file has %llu bytes, the maximum is %llu",
                           (unsigned long long)word->size, (unsigned long long)job->most);
        job->whole_size = word->size;
        job->inode = word->inode;
        job->ctime_ns = word->ctime_ns;
        job->content_size = size < job->most ? size : job->most;
        job->content = buf_alloc((size_t)job->content_size + 1);
    }
    return files_take_part(job, (struct str){ bytes, word->bytes });
}

/* A path as clients name it; false with an err. */
static bool find_path(struct files_job *job, struct str *path)
{
    const size_t len = sizeof WORKSPACE - 1;
    if (path->len > len && memcmp(path->at, WORKSPACE, len) == 0)
        *path = (struct str){ path->at + len, path->len - len };
    if (request_check_path(*path, "path", &job->err) < 0)
        return false;
    if (path->len < BOX_PATH_MAX)
        return true;
    refuse_get(job, ENOENT);
    return false;
}

void files_session_get(struct files_job *job, struct str path, uint64_t from, uint64_t max)
{
    job->from = from;
    job->most = max;
    job->heard = hear_content;
    bool ready = !is_broken(job) && find_path(job, &path);
    files_started(job, ready ? files_read(job, path) : -1);
}

void files_session_get_part(struct files_job *job, struct str path, uint64_t from, uint64_t most)
{
    job->is_part = true;
    files_session_get(job, path, from, most);
}

/* --- remove --- */

static int hear_removed(struct files_job *job, const struct box_porter_answer *word,
                        const char *bytes)
{
    (void)bytes;
    if (word->error == 0)
        return 1;
    if (word->error == ENOENT || word->error == ENOTDIR || word->error == ELOOP)
        return refuse_get(job, ENOENT);
    if (word->error != ENOTEMPTY)
        return err_input(&job->err, "path", NULL, "a file, a link or an empty directory",
                         "it cannot be removed: %s", strerror(word->error));
    err_set(&job->err, ERR_CONFLICT, "the directory is not empty");
    err_hint(&job->err, "remove its files first, or run a cell that does");
    return -1;
}

static int ask_remove(struct files_job *job, struct str path)
{
    struct box_porter_call call = { .op = BOX_PORTER_REMOVE };
    if (!find_path(job, &path))
        return -1;
    call.path_len = (uint32_t)path.len;
    memcpy(call.path, path.at, path.len);
    return files_ask(job, &call, -1);
}

void files_session_remove(struct files_job *job, struct str path)
{
    job->heard = hear_removed;
    files_started(job, is_broken(job) ? -1 : ask_remove(job, path));
}

/* --- snapshots --- */

static int hear_kept(struct files_job *job, const struct box_porter_answer *word, const char *bytes)
{
    static const struct {
        int error;
        enum err_kind kind;
        const char *text;
    } reasons[] = {
        { ENOSPC, ERR_LIMIT, "there is no room for them" },
        { E2BIG, ERR_LIMIT, "more than 20000 files" },
        { ENAMETOOLONG, ERR_LIMIT, "folders more than 64 deep" },
        { EBUSY, ERR_LIMIT, "a process of the session changes them all the time" },
        { EMLINK, ERR_LIMIT, "too many files with more than one name" },
        { ETIMEDOUT, ERR_LIMIT, "copying them takes more than 4 s" },
        { EAGAIN, ERR_LIMIT, "a process of the session holds a lease on one of them" },
        { ENOENT, ERR_ABSENT, "nothing is kept under this number" },
    };
    (void)bytes;
    job->changed = word->changed;
    job->kept = word->entries;
    job->lost = word->lost;
    if (word->error == 0)
        return 1;
    for (size_t i = 0; i < array_len(reasons); i++) {
        if (reasons[i].error == word->error)
            err_set(&job->err, reasons[i].kind, "the session's files: %s", reasons[i].text);
    }
    if (job->err.kind == ERR_NONE)
        err_set(&job->err, ERR_BUG, "the session's files: %s", strerror(word->error));
    job->err.sys = word->error;
    return -1;
}

static void ask_kept(struct files_job *job, const struct box_porter_call *call, int fd)
{
    job->heard = hear_kept;
    files_started(job, is_broken(job) ? -1 : files_ask(job, call, fd));
}

void files_session_snap(struct files_job *job, uint32_t snapshot, uint32_t base, bool compare)
{
    ask_kept(job, &(struct box_porter_call){ .op = BOX_PORTER_SNAP, .snapshot = snapshot,
                                             .base = base, .compare = compare }, -1);
}

void files_session_restore(struct files_job *job, uint32_t snapshot, int64_t since_ns)
{
    ask_kept(job, &(struct box_porter_call){ .op = BOX_PORTER_RESTORE, .snapshot = snapshot,
                                             .since_ns = since_ns }, -1);
}

void files_session_send(struct files_job *job, uint32_t snapshot, int to, int64_t since_ns)
{
    ask_kept(job, &(struct box_porter_call){ .op = BOX_PORTER_SEND, .snapshot = snapshot,
                                             .since_ns = since_ns }, to);
}

void files_session_receive(struct files_job *job, uint32_t snapshot, int from)
{
    ask_kept(job, &(struct box_porter_call){ .op = BOX_PORTER_RECEIVE, .snapshot = snapshot },
             from);
}

int files_session_forget(int sock, uint32_t snapshot)
{
    const struct box_porter_call call = { .op = BOX_PORTER_FORGET, .snapshot = snapshot };
    return io_send(sock, &call, sizeof call, NULL, 0);
}
