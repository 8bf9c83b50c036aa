/* The thread of large jobs. Redacting, parsing and summing megabytes takes seconds: here it delays
 * only the run that has them. The thread of records gets rows that are ready, and commits them.
 *
 * 1. An end comes after its start, whatever their sizes.
 * 2. Starts and acts of one session keep their order.
 * 3. A descriptor of its own holds the lock of the files that a job wrote, until its commit. */
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "store/records/contents.h"
#include "store/records/records_int.h"

#define BIG ((size_t)256 << 10) /* bytes of a large job: some milliseconds */

/* --- which way a job goes --- */

static size_t bytes_of_request(const struct request *request)
{
    size_t bytes = request->code.len + request->stdin_text.len;
    for (size_t i = 0; i < request->file_count; i++)
        bytes += request->files[i].data.len;
    return bytes;
}

static size_t bytes_of_end(const struct records_job *job)
{
    size_t bytes = job->json.len + (job->result ? job->result->calls_whole.len : 0);
    for (size_t i = 0; job->result && i < job->result->artifact_count; i++)
        bytes += (size_t)job->result->artifacts[i].size_bytes;
    return bytes;
}

static size_t bytes_of_act(const struct records_job *job)
{
    size_t bytes = 0;
    for (size_t i = 0; i < job->row.uses.count; i++)
        bytes += job->row.uses.at[i].bytes.len;
    return bytes;
}

/* "": it is in no order with others. */
static const char *session_of(const struct records_job *job)
{
    const char *session = job->kind == RECORDS_START ? job->request->session
                          : job->kind == RECORDS_ACT ? job->session
                                                     : NULL;
    return session ? session : "";
}

static bool session_is_big(const struct records *records, const char *session)
{
    if (!session[0])
        return false;
    for (const struct records_job *job = records->big; job; job = job->next)
        if (strcmp(session_of(job), session) == 0)
            return true;
    return false;
}

bool records_goes_big(const struct records *records, const struct records_job *job)
{
    if (records->big_closing)
        return false;
    switch (job->kind) {
    case RECORDS_START:
        return bytes_of_request(job->request) > BIG || session_is_big(records, session_of(job));
    case RECORDS_ACT: return bytes_of_act(job) > BIG || session_is_big(records, session_of(job));
    case RECORDS_END:
        return job->record->began ? bytes_of_end(job) > BIG : job->record->start.is_big;
    case RECORDS_FIND:
    case RECORDS_HITS: break;
    }
    return false;
}

/* --- redaction, whose key may change while it is in use --- */

static struct redact *use_redact(struct records *records)
{
    pthread_mutex_lock(&records->lock);
    struct redact *redact = records->big_redact = records->redact;
    pthread_mutex_unlock(&records->lock);
    return redact;
}

static void leave_redact(struct records *records)
{
    pthread_mutex_lock(&records->lock);
    struct redact *redact = take_ptr(records->big_redact);
    bool dropped = redact != records->redact;
    pthread_mutex_unlock(&records->lock);
    if (dropped)
        redact_close(redact);
}

void records_drop_redact(struct records *records)
{
    pthread_mutex_lock(&records->lock);
    struct redact *redact = take_ptr(records->redact);
    bool used = redact == records->big_redact;
    pthread_mutex_unlock(&records->lock);
    if (!used)
        redact_close(redact);
}

/* --- the thread --- */

static int write_files(struct records *records, struct records_job *job)
{
    bool any = false;
    own_fd dir = contents_open(records->options.state_dir, &job->err);
    if (dir < 0 ||
        records_write_files(dir, records->options.durable, &job->row.uses, &any, &job->err) < 0)
        return -1;
    job->files_fd = any ? take_fd(&dir) : -1;
    return 0;
}

/* Without a store, nothing is made ready: the thread of records says why. */
static void make_ready(struct records *records, struct records_job *job)
{
    const struct redact *redact = use_redact(records);
    if (redact) {
        job->files_fd = -1;
        job->is_ready = true;
        if (records_prepare(records, redact, job, &job->err) == 0)
            write_files(records, job);
    }
    leave_redact(records);
}

/* NULL: the end. It stays in the list until it is handed on. */
static struct records_job *first(struct records *records)
{
    pthread_mutex_lock(&records->lock);
    while (!records->big && !records->big_closing)
        pthread_cond_wait(&records->big_work, &records->lock);
    struct records_job *job = records->big;
    pthread_mutex_unlock(&records->lock);
    return job;
}

static void hand_on(struct records *records, struct records_job *job)
{
    pthread_mutex_lock(&records->lock);
    records->big = job->next;
    if (!records->big)
        records->big_last = &records->big;
    job->next = NULL;
    *records->queued_last = job;
    records->queued_last = &job->next;
    pthread_mutex_unlock(&records->lock);
    pthread_cond_signal(&records->work);
}

void *records_big_thread(void *user)
{
    struct records *records = user;
    for (struct records_job *job; (job = first(records));) {
        make_ready(records, job);
        hand_on(records, job);
    }
    return NULL;
}
