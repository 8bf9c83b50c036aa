/* Files in and out. The engine asks, the porter (no more power than the box)
 * opens; names and contents are the box's own and stay bytes. Each question has
 * one answer but LIST, which has one for each entry and a last one. What comes out
 * is sorted by name, so that the same run gives the same list. */
#include "engine/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/own.h"
#include "box/mutate.h"
#include "engine/files_int.h"

#define PATIENCE_MS 20000
#define ANSWERS_A_TURN 256 /* then others have their turn */

static void on_answer(struct loop_source *source, uint32_t events);

static void be_patient(struct files_job *job)
{
    loop_set_timer(job->loop, &job->patience, clock_now_ns() + PATIENCE_MS * INT64_C(1000000));
}

static void finish(struct files_job *job)
{
    loop_set_timer(job->loop, &job->patience, LOOP_NEVER);
    job->done(job);
}

static void on_patience(struct loop_timer *timer)
{
    struct files_job *job = loop_owner(timer, struct files_job, patience);
    if (job->err.kind == ERR_NONE && !job->over)
        err_set(&job->err, ERR_BUG, "the porter does not answer");
    finish(job);
}

int files_ask(struct files_job *job, const struct box_porter_call *call, int fd)
{
    struct box_porter_call tagged = *call;
    tagged.tag = job->tag;
    if (io_send(job->porter.fd, &tagged, sizeof tagged, &fd, fd >= 0 ? 1 : 0) < 0)
        return err_set(&job->err, ERR_BUG, "the porter is gone: %s", strerror(errno));
    be_patient(job);
    return 0;
}

void files_begin(struct files_job *job, struct loop *loop, int sock,
                 void (*done)(struct files_job *job))
{
    static uint32_t tags;
    *job = FILES_JOB_INIT;
    job->loop = loop;
    job->done = done;
    job->tag = ++tags;
    loop_due(&job->patience, on_patience);
    job->porter = (struct loop_source){ .fd = sock, .ready = LOOP_HANDLER(on_answer) };
    if (loop_add(loop, &job->porter, EPOLLIN) < 0)
        err_sys(&job->err, "watch the porter");
    be_patient(job);
}

void files_started(struct files_job *job, int state)
{
    job->over = state > 0;
    if (state != 0)
        loop_set_timer(job->loop, &job->patience, clock_now_ns());
}

void files_free_entries(struct files_entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(entries[i].path);
    free(entries);
}

void files_drop(struct files_job *job)
{
    int sock = job->porter.fd;
    if (job->loop) {
        loop_set_timer(job->loop, &job->patience, LOOP_NEVER);
        loop_remove(job->loop, &job->porter);
    }
    if (!job->keeps_sock)
        own_close_fd(&sock);
    files_free_entries(job->entries, job->count);
    free(job->content);
    *job = FILES_JOB_INIT;
}

/* --- in --- */

int files_put_next(struct files_job *job)
{
    const struct request_file *file = &job->puts[job->next];
    struct box_porter_call call = { .op = BOX_PORTER_PUT, .readonly = file->readonly,
                                    .replace = job->replaces, .size = file->data.len };
    size_t len = strlen(file->path);
    if (len >= sizeof call.path) {
        const struct box_porter_answer refusal = { .error = ENAMETOOLONG };
        return files_hear_put(job, &refusal, -1);
    }
    own_fd content = io_sealed_memfd("input", file->data.at, file->data.len, 0);
    if (content < 0)
        return err_sys(&job->err, "make a memory file for '%s'", file->path);
    call.path_len = (uint32_t)len;
    memcpy(call.path, file->path, len);
    return files_ask(job, &call, content);
}

int files_hear_put(struct files_job *job, const struct box_porter_answer *word, int fd)
{
    char field[48];
    (void)fd;
    if (word->error == 0)
        return ++job->next < job->put_count ? files_put_next(job) : 1;
    snprintf(field, sizeof field, "files[%zu]", job->next);
    err_input(&job->err, field, NULL, "limits.disk_bytes", "cannot place '%s' in the box: %s",
              job->puts[job->next].path, strerror(word->error));
    if (word->error == ENOSPC)
        err_hint(&job->err, "raise limits.disk_bytes and limits.memory_bytes, or send less");
    return -1;
}

void files_put(struct files_job *job, struct loop *loop, int sock, const struct request *request,
               void (*done)(struct files_job *job))
{
    files_begin(job, loop, sock, done);
    job->puts = request->files;
    job->put_count = request->file_count;
    job->heard = files_hear_put;
    files_started(job, job->err.kind != ERR_NONE ? -1 : files_put_next(job));
}

/* --- out --- */

static int by_path(const void *a, const void *b)
{
    const struct files_entry *left = a, *right = b;
    size_t len = left->len < right->len ? left->len : right->len;
    int order = memcmp(left->path, right->path, len);
    return order ? order : (left->len > right->len) - (left->len < right->len);
}

static void add_entry(struct files_job *job, const struct box_porter_answer *word)
{
    if (job->count == job->room) {
        size_t room = job->room ? job->room * 2 : 64;
        struct files_entry *more = buf_alloc_zero(room, sizeof *more);
        if (job->count)
            memcpy(more, job->entries, job->count * sizeof *more);
        free(job->entries);
        job->entries = more;
        job->room = room;
    }
    job->entries[job->count++] = (struct files_entry){
        .path = buf_strdup((struct str){ word->path, word->path_len }),
        .len = word->path_len, .type = word->type, .mode = word->mode, .size = word->size,
        .ctime_ns = word->ctime_ns,
    };
}

char *files_fetch(int fd, uint64_t size, uint64_t *out_len)
{
    struct stat st;
    if (fstat(fd, &st) < 0 || (!mutate(REGULAR_FETCH) && !S_ISREG(st.st_mode)))
        return NULL;
    char *bytes = buf_alloc((size_t)size + 1);
    uint64_t got = 0;
    while (got < size) {
        ssize_t n = pread(fd, bytes + got, (size_t)(size - got), (off_t)got);
        if (n <= 0)
            break;
        got += (uint64_t)n;
    }
    bytes[got] = 0;
    *out_len = got;
    return bytes;
}

static bool is_unchanged_input(const struct request *request, const struct files_entry *entry,
                               struct str bytes)
{
    for (size_t i = 0; i < request->file_count; i++) {
        const struct request_file *file = &request->files[i];
        if (strlen(file->path) == entry->len && memcmp(file->path, entry->path, entry->len) == 0)
            return str_eq(file->data, bytes);
    }
    return false;
}

static struct str path_of(const struct files_entry *entry)
{
    return (struct str){ entry->path, entry->len };
}

static uint64_t bytes_left(const struct files_job *job)
{
    int64_t most = job->request->limits.value[LIMITS_ARTIFACT_BYTES];
    return mutate(ARTIFACT_BYTES) ? UINT64_MAX : (uint64_t)most - job->bytes_taken;
}

/* What the last collect met under this name and with this ctime, or NULL. */
static const struct files_entry *told_before(const struct files_job *job,
                                             const struct files_entry *entry)
{
    const struct files_seen *seen = job->seen;
    const struct files_entry *found =
        seen && seen->count
            ? bsearch(entry, seen->entries, seen->count, sizeof *seen->entries, by_path)
            : NULL;
    return found && found->ctime_ns == entry->ctime_ns && found->size == entry->size ? found : NULL;
}

/* A ctime has the grain of a tick, so the same one may be another content: the hash
 * decides, where there was one. */
static bool is_known(const struct files_job *job, struct files_entry *entry, struct str bytes)
{
    if (!job->seen)
        return false;
    hash_hex(bytes, entry->sum);
    const struct files_entry *before = told_before(job, entry);
    return before && (!before->sum[0] || strcmp(before->sum, entry->sum) == 0);
}

static void skip(struct files_job *job, const struct files_entry *entry, const char *why)
{
    if (!told_before(job, entry))
        result_add_skipped(job->result, path_of(entry), why);
}

static void skip_large(struct files_job *job, const struct files_entry *entry)
{
    job->bytes_hit = job->bytes_hit || !told_before(job, entry);
    skip(job, entry, "too large: over limits.artifact_bytes");
}

/* Ask for the next file that may be taken: 0; 1 where there is none any more. */
int files_open_next(struct files_job *job)
{
    static const char *const not_files[] = { [BOX_ENTRY_LINK] = "not a regular file: a link",
                                             [BOX_ENTRY_OTHER] = "not a regular file" };
    uint64_t inputs = (uint64_t)job->request->limits.value[LIMITS_INPUT];
    for (; job->next < job->count; job->next++) {
        const struct files_entry *entry = &job->entries[job->next];
        uint64_t room = bytes_left(job);
        bool link = entry->type == BOX_ENTRY_LINK;
        if (!mutate(REGULAR_LIST) && entry->type != BOX_ENTRY_FILE) {
            skip(job, entry, not_files[link ? BOX_ENTRY_LINK : BOX_ENTRY_OTHER]);
            continue;
        }
        /* An unchanged input counts for nothing, so it may be larger than the cap. */
        if (entry->size > room && entry->size > inputs) {
            skip_large(job, entry);
            continue;
        }
        struct box_porter_call call = { .op = BOX_PORTER_OPEN, .path_len = (uint32_t)entry->len };
        memcpy(call.path, entry->path, entry->len);
        return files_ask(job, &call, -1);
    }
    if (job->cut) {
        job->count_hit = true;
        result_add_skipped(job->result, STR_NONE, "not looked at: too many or too deep");
    }
    return 1;
}

int files_hear_opened(struct files_job *job, const struct box_porter_answer *word, int fd)
{
    struct files_entry *entry = &job->entries[job->next++];
    uint64_t most = (uint64_t)job->request->limits.value[LIMITS_ARTIFACT_FILES];
    char sum[HASH_HEX_ROOM];
    uint64_t len = 0;
    /* Of a session it may still be written: it is as large as it is now. */
    if (job->seen && word->error == 0)
        entry->size = word->size;
    if (job->seen && entry->size > bytes_left(job)) {
        skip_large(job, entry);
        return files_open_next(job);
    }
    own_str bytes = fd < 0 ? NULL : files_fetch(fd, entry->size, &len);
    struct str content = { bytes, (size_t)len };
    if (!bytes) {
        skip(job, entry, word->error == EACCES ? "not readable" : "cannot be opened");
    } else if (is_known(job, entry, content) || is_unchanged_input(job->request, entry, content)) {
        return files_open_next(job);
    } else if (len > bytes_left(job)) {
        skip_large(job, entry);
    } else if (!mutate(ARTIFACT_FILES) && job->files_taken >= most) {
        job->count_hit = true;
        skip(job, entry, "too many: over limits.artifact_files");
    } else {
        hash_hex(content, sum);
        job->bytes_taken += len;
        job->files_taken++;
        result_add_artifact(job->result, path_of(entry), take_ptr(bytes), len, sum);
    }
    return files_open_next(job);
}

int files_hear_entry(struct files_job *job, const struct box_porter_answer *word, int fd)
{
    (void)fd;
    if (!word->last) {
        if (job->lists_dirs || word->type != BOX_ENTRY_DIR)
            add_entry(job, word);
        return 0;
    }
    job->cut = word->cut > 0;
    if (job->count)
        qsort(job->entries, job->count, sizeof *job->entries, by_path);
    job->heard = files_hear_opened;
    return job->listed(job);
}

void files_collect(struct files_job *job, struct loop *loop, int sock,
                   const struct request *request, struct result *result,
                   void (*done)(struct files_job *job))
{
    const struct box_porter_call call = { .op = BOX_PORTER_LIST };
    files_begin(job, loop, sock, done);
    job->request = request;
    job->result = result;
    job->heard = files_hear_entry;
    job->listed = files_open_next;
    files_started(job, job->err.kind != ERR_NONE ? -1 : files_ask(job, &call, -1));
}

/* --- both --- */

/* One answer: 0 where more is to come, 1 where the job is done, -1. */
static int take_answer(struct files_job *job)
{
    static struct box_porter_answer word;
    own_fd fd = -1;
    size_t fds = 0;
    int got = io_recv(job->porter.fd, &word, sizeof word, &fd, 1, &fds);
    if (got != 1 || word.path_len >= sizeof word.path)
        return err_set(&job->err, ERR_BUG, "the porter is gone");
    return word.tag == job->tag ? job->heard(job, &word, fd) : 0;
}

static bool more_is_there(int sock)
{
    char byte;
    return recv(sock, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

static void on_answer(struct loop_source *source, uint32_t events)
{
    struct files_job *job = loop_owner(source, struct files_job, porter);
    int state = 0;
    (void)events;
    for (int i = 0; i < ANSWERS_A_TURN && state == 0; i++) {
        state = take_answer(job);
        if (state == 0 && !more_is_there(job->porter.fd))
            return;
    }
    if (state != 0)
        finish(job);
}
