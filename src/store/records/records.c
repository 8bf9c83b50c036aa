/* Records, the loop's side: jobs go to the thread, and their ends come back. Runs in the process's
 * loop; no call waits for the disk, but records_close. */
#include "store/records/records.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "store/records/records_int.h"

#define STACK_BYTES ((size_t)1 << 20)

/* --- jobs --- */

void records_row_done(struct records_row *row)
{
    for (size_t i = 0; i < row->uses.count; i++) {
        free(row->uses.at[i].path);
        free(row->uses.at[i].owned);
        if (row->uses.at[i].spooled)
            own_close_fd(&row->uses.at[i].spool);
    }
    free(row->uses.at);
    buf_done(&row->code);
    buf_done(&row->json);
    buf_done(&row->brief);
    *row = (struct records_row){ 0 };
}

int64_t records_row_own(struct records_row *row)
{
    int64_t bytes = (int64_t)(row->json.len + row->brief.len);
    for (size_t i = 0; i < row->uses.count; i++) {
        struct records_use *use = &row->uses.at[i];
        if (!use->owned)
            use->owned = buf_strdup(use->bytes);
        use->bytes.at = use->owned;
        bytes += (int64_t)use->bytes.len;
    }
    return bytes;
}

void records_job_done(struct records_job *job)
{
    records_row_done(&job->row);
    result_artifacts_free(job->hit.artifacts, job->hit.artifact_count);
    buf_done(&job->hit_json);
    json_decref(job->detail);
}

static void queue(struct records *records, struct records_job *job)
{
    job->next = NULL;
    job->err = ERR_INIT;
    pthread_mutex_lock(&records->lock);
    job->is_big = records_goes_big(records, job);
    struct records_job ***last = job->is_big ? &records->big_last : &records->queued_last;
    **last = job;
    *last = &job->next;
    pthread_mutex_unlock(&records->lock);
    /* Under the lock, the thread would wake to wait for it. */
    pthread_cond_signal(job->is_big ? &records->big_work : &records->work);
}

static void record_free(struct record *record)
{
    records_job_done(&record->start);
    records_job_done(&record->end);
    free(record);
}

/* The callback may queue more, and may free what the job was about. */
static void tell(struct records_job *job)
{
    struct record *record = job->record;
    bool over = job->kind == RECORDS_END || (job->err.kind != ERR_NONE && record && !record->ends);
    if (record)
        record->began = true;
    if (job->kind == RECORDS_FIND) {
        job->found(job->user, job->is_hit ? &job->hit : NULL);
    } else if (job->told) {
        job->told(job->user, &job->err);
    }
    if (record && over) {
        record_free(record);
    } else if (!record) {
        records_job_done(job);
        free(job);
    }
}

static struct records_job *take_finished(struct records *records)
{
    pthread_mutex_lock(&records->lock);
    struct records_job *first = records->finished;
    records->finished = NULL;
    records->finished_last = &records->finished;
    pthread_mutex_unlock(&records->lock);
    return first;
}

static void tell_all(struct records *records)
{
    for (struct records_job *job = take_finished(records), *next; job; job = next) {
        next = job->next;
        tell(job);
    }
}

static void on_ready(struct loop_source *source, uint32_t events)
{
    struct records *records = loop_owner(source, struct records, ready);
    uint64_t rings;
    (void)events;
    if (read(source->fd, &rings, sizeof rings) == sizeof rings)
        tell_all(records);
}

/* --- the whole --- */

static char **copy_patterns(const char *const *patterns)
{
    size_t count = 0;
    while (patterns && patterns[count])
        count++;
    char **copies = buf_alloc_zero(count + 1, sizeof *copies);
    for (size_t i = 0; i < count; i++)
        copies[i] = buf_strdup(str_of(patterns[i]));
    return copies;
}

static void free_all(struct records *records)
{
    for (char **pattern = records->patterns; *pattern; pattern++)
        free(*pattern);
    free(records->patterns);
    free(records->tending);
    pthread_cond_destroy(&records->work);
    pthread_cond_destroy(&records->big_work);
    pthread_mutex_destroy(&records->lock);
    free(records);
}

/* Signals go to the loop's thread. */
static int start_thread(struct records *records, void *(*run)(void *), pthread_t *out)
{
    sigset_t all, before;
    pthread_attr_t attr;
    sigfillset(&all);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(out, &attr, run, records);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return failed;
}

static void end_thread(struct records *records, bool *closing, pthread_cond_t *work,
                       pthread_t thread)
{
    pthread_mutex_lock(&records->lock);
    *closing = true;
    pthread_cond_signal(work);
    pthread_mutex_unlock(&records->lock);
    pthread_join(thread, NULL);
}

static int start_threads(struct records *records)
{
    int failed = start_thread(records, records_big_thread, &records->big_thread);
    if (failed)
        return failed;
    failed = start_thread(records, records_thread, &records->thread);
    if (failed)
        end_thread(records, &records->big_closing, &records->big_work, records->big_thread);
    return failed;
}

struct records *records_open(const struct records_options *options, struct err *err)
{
    pthread_condattr_t attr;
    struct records *records = buf_alloc_zero(1, sizeof *records);
    records->options = *options;
    records->patterns = copy_patterns(options->redact);
    records->age_s = options->age_s;
    records->bytes = options->bytes;
    records->contents = records->lock_fd = -1;
    records->queued_last = &records->queued;
    records->big_last = &records->big;
    records->finished_last = &records->finished;
    records->kept_last = &records->kept;
    records->tending = records_tending_new();
    pthread_mutex_init(&records->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&records->work, &attr);
    pthread_cond_init(&records->big_work, NULL);
    pthread_condattr_destroy(&attr);
    records->ready = (struct loop_source){ .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                                           LOOP_HANDLER(on_ready) };
    own_fd ready = records->ready.fd;
    if (ready < 0 || loop_add(options->loop, &records->ready, EPOLLIN) < 0) {
        err_sys(err, "watch the records");
        free_all(records);
        return NULL;
    }
    int failed = start_threads(records);
    if (failed) {
        loop_remove(options->loop, &records->ready);
        free_all(records);
        errno = failed;
        err_sys(err, "start the thread of the records");
        return NULL;
    }
    take_fd(&ready);
    return records;
}

/* Jobs that came while the thread ended. */
static bool refuse_late(struct records *records)
{
    bool any = records->queued != NULL;
    for (struct records_job *job = records->queued; job; job = job->next)
        err_set(&job->err, ERR_BUSY, "the records are closed");
    *records->finished_last = records->queued;
    if (any)
        records->finished_last = records->queued_last;
    records->queued = NULL;
    records->queued_last = &records->queued;
    return any || records->finished;
}

void records_close(struct records *records)
{
    if (!records)
        return;
    end_thread(records, &records->big_closing, &records->big_work, records->big_thread);
    end_thread(records, &records->closing, &records->work, records->thread);
    do
        tell_all(records);
    while (refuse_late(records));
    int ready = records->ready.fd;
    loop_remove(records->options.loop, &records->ready);
    own_close_fd(&ready);
    free_all(records);
}

void records_set_retention(struct records *records, int64_t age_s, int64_t bytes)
{
    pthread_mutex_lock(&records->lock);
    records->age_s = age_s;
    records->bytes = bytes;
    records->nudged = true;
    pthread_mutex_unlock(&records->lock);
    pthread_cond_signal(&records->work);
}

/* --- runs --- */

static void copy_id(char out[RECORDS_ID_ROOM], const char *from)
{
    snprintf(out, RECORDS_ID_ROOM, "%s", from ? from : "");
}

struct record *records_begin(struct records *records, const struct request *request,
                             const struct record_about *about, records_told *told, void *user)
{
    struct record *record = buf_alloc_zero(1, sizeof *record);
    record->records = records;
    copy_id(record->run, about->run);
    copy_id(record->owner, about->owner);
    copy_id(record->door, about->door);
    copy_id(record->task, about->task);
    copy_id(record->replay_of, about->replay_of);
    record->step = about->step;
    record->start.kind = RECORDS_START;
    record->start.record = record;
    record->start.request = request;
    record->start.told = told;
    record->start.user = user;
    record->start.row.at_ms = records_now_ms();
    atomic_fetch_add(&records->waiting, 1);
    queue(records, &record->start);
    return record;
}

static void end(struct record *record)
{
    record->ends = true;
    record->end.kind = RECORDS_END;
    record->end.record = record;
    record->end.row.at_ms = records_now_ms();
    queue(record->records, &record->end);
}

void record_end(struct record *record, const struct result *result, struct str json,
                const struct record_cache *cache, records_told *told, void *user)
{
    record->end.result = result;
    record->end.json = json;
    record->end.told = told;
    record->end.user = user;
    if (cache && cache->key && cache->ttl_s > 0) {
        snprintf(record->end.row.cache_key, sizeof record->end.row.cache_key, "%s", cache->key);
        record->end.row.ttl_s = cache->ttl_s;
    }
    end(record);
}

void record_fail(struct record *record, const struct err *err)
{
    record->end.failure = *err;
    end(record);
}

bool record_was_redacted(const struct record *record)
{
    return record->redacted > 0;
}

/* --- acts, the cache, figures --- */

static void copy_files(struct records_uses *uses, const struct request *request, const int *spool)
{
    uses->at = buf_alloc_zero(request->file_count, sizeof *uses->at);
    for (size_t i = 0; i < request->file_count; i++) {
        const struct request_file *file = &request->files[i];
        struct records_use *use = &uses->at[uses->count++];
        use->kind = "input";
        use->path = buf_strdup(str_of(file->path));
        use->path_len = strlen(file->path);
        use->readonly = file->readonly;
        use->spooled = spool != NULL;
        use->spool = spool ? *spool : -1;
        use->owned = spool ? NULL : buf_strdup(file->data);
        use->bytes = (struct str){ use->owned, file->data.len };
    }
}

void records_act(struct records *records, const struct records_act *act)
{
    struct records_job *job = buf_alloc_zero(1, sizeof *job);
    job->kind = RECORDS_ACT;
    job->row.at_ms = records_now_ms();
    copy_id(job->session, act->session);
    copy_id(job->act, act->kind);
    copy_id(job->row.owner, act->owner);
    job->detail = act->detail;
    if (act->request && act->request->file_count > 0)
        copy_files(&job->row.uses, act->request, act->spool);
    queue(records, job);
}

void records_find_cached(struct records *records, const char *key, const char *owner,
                         int64_t max_age_s, const char *known, records_found *found, void *user)
{
    struct records_job *job = buf_alloc_zero(1, sizeof *job);
    job->kind = RECORDS_FIND;
    snprintf(job->key, sizeof job->key, "%s", key);
    copy_id(job->row.owner, owner);
    job->max_age_s = max_age_s;
    copy_id(job->known, known);
    job->found = found;
    job->user = user;
    queue(records, job);
}

void records_note_hits(struct records *records, const char *run, int64_t times)
{
    struct records_job *job = buf_alloc_zero(1, sizeof *job);
    job->kind = RECORDS_HITS;
    copy_id(job->run, run);
    job->times = times;
    queue(records, job);
}

json_t *records_describe(const struct records *records)
{
    return json_pack("{s:I s:I s:I s:I s:I s:I s:I s:I}", "recorded", (json_int_t)records->recorded,
                     "failed", (json_int_t)records->failed, "waiting", (json_int_t)records->waiting,
                     "waiting_bytes", (json_int_t)records->kept_bytes, "redacted",
                     (json_int_t)records->redacted, "cache_hits", (json_int_t)records->cache_hits,
                     "cache_misses", (json_int_t)records->cache_misses, "removed",
                     (json_int_t)records->removed);
}
