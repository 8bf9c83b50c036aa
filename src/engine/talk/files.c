/* Jobs for the porter, and files in. The engine asks; the porter, with no more rights than the box,
 * opens and reads. Names and contents come from the box and stay bytes. Each question has one
 * answer, except LIST, which has several and a last one. Nothing here waits: the socket is
 * non-blocking, and an answer is little work. Runs in the engine. */
#include "engine/talk/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/own.h"
#include "engine/talk/files_int.h"

#define PATIENCE_MS 20000
#define ANSWERS_A_TURN 8 /* then others have their turn */

static void on_answer(struct loop_source *source, uint32_t events);

static void be_patient(struct files_job *job)
{
    loop_set_timer(job->loop, &job->patience, clock_now_ns() + PATIENCE_MS * CLOCK_MS);
}

/* Keeps the list of a session's collect for the next one. */
static void remember(struct files_job *job)
{
    files_seen_done(job->seen);
    *job->seen = (struct files_seen){ job->entries, job->count };
    job->entries = NULL;
    job->count = 0;
}

void files_finish(struct files_job *job)
{
    if (job->seen && job->err.kind == ERR_NONE)
        remember(job);
    loop_set_timer(job->loop, &job->patience, LOOP_NEVER);
    loop_set_timer(job->loop, &job->deadline, LOOP_NEVER);
    job->done(job);
}

static void on_patience(struct loop_timer *timer)
{
    struct files_job *job = loop_owner(timer, struct files_job, patience);
    if (job->err.kind == ERR_NONE && !job->over)
        err_set(&job->err, ERR_BUG, "the porter does not answer");
    files_finish(job);
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

void files_new_tag(struct files_job *job)
{
    static uint32_t tags;
    job->tag = ++tags;
}

void files_begin(struct files_job *job, struct loop *loop, int sock,
                 void (*done)(struct files_job *job))
{
    *job = FILES_JOB_INIT;
    job->loop = loop;
    job->done = done;
    files_new_tag(job);
    loop_due(&job->patience, on_patience);
    job->porter = (struct loop_source){ .fd = sock, .ready = LOOP_HANDLER(on_answer) };
    if (fcntl(sock, F_SETFL, O_NONBLOCK) < 0 || loop_add(loop, &job->porter, EPOLLIN) < 0)
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

void files_seen_done(struct files_seen *seen)
{
    files_free_entries(seen->entries, seen->count);
    *seen = FILES_SEEN_INIT;
}

void files_drop(struct files_job *job)
{
    int sock = job->porter.fd;
    if (job->loop) {
        loop_set_timer(job->loop, &job->patience, LOOP_NEVER);
        loop_set_timer(job->loop, &job->deadline, LOOP_NEVER);
        loop_remove(job->loop, &job->porter);
    }
    if (!job->keeps_sock)
        own_close_fd(&sock);
    files_free_entries(job->entries, job->count);
    free(job->content);
    free(job->inputs);
    *job = FILES_JOB_INIT;
}

int files_put_next(struct files_job *job)
{
    const struct request_file *file = &job->puts[job->next];
    struct box_porter_call call = { .op = BOX_PORTER_PUT, .readonly = file->readonly,
                                    .replace = job->replaces, .size = file->data.len,
                                    .upload = job->part.upload, .first = job->part.first,
                                    .more = job->part.more };
    size_t len = strlen(file->path);
    if (len >= sizeof call.path) {
        const struct box_porter_answer refusal = { .error = ENAMETOOLONG };
        return files_hear_put(job, &refusal, NULL);
    }
    own_fd content = io_sealed_memfd("input", file->data.at, file->data.len, 0);
    if (content < 0)
        return err_sys(&job->err, "make a memory file for '%s'", file->path);
    call.path_len = (uint32_t)len;
    memcpy(call.path, file->path, len);
    return files_ask(job, &call, content);
}

static int refuse_stale(struct files_job *job)
{
    char value[32];
    snprintf(value, sizeof value, "%lu", (unsigned long)job->part.upload);
    err_input(&job->err, "upload", value, "an upload to this path that is under way",
              "upload %s to '%s' does not exist", value, job->puts[job->next].path);
    err_hint(&job->err, "send the file from its first part on");
    return -1;
}

int files_hear_put(struct files_job *job, const struct box_porter_answer *word, const char *bytes)
{
    char field[48], value[32];
    (void)bytes;
    job->changed = job->changed || word->changed;
    if (word->error == 0)
        return ++job->next < job->put_count ? files_put_next(job) : 1;
    if (word->error == ESTALE)
        return refuse_stale(job);
    snprintf(field, sizeof field, "files[%zu]", job->next);
    snprintf(value, sizeof value, "%llu", (unsigned long long)word->size);
    err_input(&job->err, field, word->error == ENOSPC ? value : NULL, "limits.disk_bytes",
              "cannot place '%s' in the box: %s", job->puts[job->next].path, strerror(word->error));
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

/* Receives one answer with its content: 1, 0 if there is none now, or -1. An answer with a
 * descriptor is refused, and the kernel closes the descriptor. */
static int receive(int sock, struct box_porter_answer *word, char bytes[BOX_PORTER_PART])
{
    struct iovec parts[] = { { word, sizeof *word }, { bytes, BOX_PORTER_PART } };
    struct msghdr letter = { .msg_iov = parts, .msg_iovlen = 2 };
    ssize_t n = recvmsg(sock, &letter, MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    bool whole = (size_t)n >= sizeof *word && (size_t)n == sizeof *word + word->bytes;
    return whole && !(letter.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) ? 1 : -1;
}

static void on_answer(struct loop_source *source, uint32_t events)
{
    static struct box_porter_answer word;
    static union {
        char bytes[BOX_PORTER_PART];
        uint64_t align;
    } rest;
    struct files_job *job = loop_owner(source, struct files_job, porter);
    int state = 0;
    (void)events;
    for (int i = 0; i < ANSWERS_A_TURN && state == 0; i++) {
        int got = receive(job->porter.fd, &word, rest.bytes);
        if (got == 0)
            return;
        if (got < 0)
            state = err_set(&job->err, ERR_BUG, "the porter is gone");
        else if (word.tag == job->tag)
            state = job->heard(job, &word, rest.bytes);
    }
    if (state != 0)
        files_finish(job);
}
