/* The thread of records: takes all that waits, writes it in one transaction, and rings once. It
 * waits for nothing but work and the disk. The catalog, checkpoints and retention can
 * wait: small portions of them are done while there is no work. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/own.h"
#include "store/records/catalog.h"
#include "store/records/contents.h"
#include "store/records/records_int.h"

#define IDLE_NS (50 * CLOCK_MS)
#define RETRY_NS CLOCK_S
#define TEND_NS (30 * CLOCK_S)
#define LATE_NS CLOCK_S /* a round that is that late does not wait until there is no work */
#define LATE_ROWS 4
#define BEHIND_MAX 512 /* ends outside the catalog, while there is work */
#define BEHIND_STEP 128 /* 32 cost twice as much for each; a run may come and wait 2 ms for it */
#define LOG_IDLE ((int64_t)1 << 20) /* bytes of the log; above it: a checkpoint when idle */
#define LOG_BUSY ((int64_t)16 << 20) /* the same while there is work */
#define LOG_MAX ((int64_t)64 << 20) /* readers must let go */

int64_t records_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return clock_ns(t) / CLOCK_MS;
}

/* --- ends that could not be written --- */

static void keep(struct records *records, struct records_job *job)
{
    struct record *record = job->record;
    int64_t bytes = 0;
    for (size_t i = 0; i < job->row.uses.count; i++)
        bytes += (int64_t)job->row.uses.at[i].bytes.len;
    if (record->n == 0 || record->store != records->store || !job->row.status ||
        records->kept_bytes + bytes > RECORDS_KEPT_MAX)
        return;
    struct records_kept *kept = buf_alloc_zero(1, sizeof *kept);
    kept->n = record->n;
    kept->store = record->store;
    kept->row = job->row;
    job->row = (struct records_row){ 0 };
    kept->bytes = records_row_own(&kept->row);
    atomic_fetch_add(&records->kept_bytes, kept->bytes);
    *records->kept_last = kept;
    records->kept_last = &kept->next;
    records->retry_ns = clock_now_ns() + RETRY_NS;
}

static void drop_kept(struct records *records)
{
    struct records_kept *kept = records->kept;
    records->kept = kept->next;
    if (!records->kept)
        records->kept_last = &records->kept;
    atomic_fetch_sub(&records->kept_bytes, kept->bytes);
    records_row_done(&kept->row);
    free(kept);
}

static void release(struct records *records)
{
    if (records->shares)
        contents_unlock(records->contents);
    records->shares = false;
}

static int write_files(struct records *records, const struct records_row *row, struct err *err)
{
    return records_write_files(records->contents, records->options.durable, &row->uses,
                               &records->shares, err);
}

static int finish(struct records *records, int failed, struct err *err)
{
    if (!failed)
        failed = db_commit(records->db, err);
    if (failed)
        db_undo(records->db);
    release(records);
    if (failed && db_is_broken(records->db))
        records_disconnect(records, /* last= */ false);
    return failed;
}

static int write_kept(struct records *records, struct err *err)
{
    struct records_kept *kept = records->kept;
    if (records_connect(records, err) < 0)
        return -1;
    int failed = write_files(records, &kept->row, err);
    if (!failed)
        failed = db_begin(records->db, err);
    if (!failed)
        failed = records_write_end(records, kept->store, kept->n, &kept->row, err);
    return finish(records, failed, err);
}

static void retry(struct records *records)
{
    while (records->kept) {
        struct err err = ERR_INIT;
        bool written = write_kept(records, &err) == 0;
        if (!written && (err.kind == ERR_BUSY || err.kind == ERR_HOST))
            break;
        drop_kept(records); /* another fault will not go away */
        atomic_fetch_add(written ? &records->recorded : &records->failed, 1);
        records->behind++;
    }
    records->retry_ns = clock_now_ns() + RETRY_NS;
}

/* --- batches --- */

static void fail(struct records *records, struct records_job *job, const struct err *err)
{
    job->err = *err;
    job->done = true;
    if (job->kind == RECORDS_END)
        keep(records, job);
    if (job->kind == RECORDS_START)
        job->record->n = 0; /* of a transaction that was undone */
    if (job->kind != RECORDS_FIND)
        atomic_fetch_add(&records->failed, 1);
}

/* 0: they are committed. */
static int write_some(struct records *records, struct records_job *first,
                      const struct records_job *after, struct err *err)
{
    int failed = db_begin(records->db, err);
    for (struct records_job *job = first; !failed && job != after; job = job->next) {
        if (!job->done)
            failed = records_write(records, job, err);
    }
    return finish(records, failed, err);
}

/* One bad row must not take the others with it: after a failure, each alone. */
static void write_each(struct records *records, struct records_job *jobs)
{
    for (struct records_job *job = jobs; job; job = job->next) {
        struct err err = ERR_INIT;
        if (job->done)
            continue;
        if (records_connect(records, &err) < 0 || write_files(records, &job->row, &err) < 0 ||
            write_some(records, job, job->next, &err) < 0)
            fail(records, job, &err);
    }
}

static void prepare(struct records *records, struct records_job *jobs, const struct err *why)
{
    for (struct records_job *job = jobs; job; job = job->next) {
        struct err err = ERR_INIT;
        if (job->kind == RECORDS_FIND) {
            if (records->db)
                records_find(records, job);
            job->done = true;
        } else if (job->kind == RECORDS_HITS) {
            records_add_hits(records, job->run, job->times);
            job->done = true;
        } else if (!records->redact) {
            fail(records, job, why);
        } else if (job->is_ready && job->err.kind != ERR_NONE) {
            err = job->err;
            fail(records, job, &err);
        } else if (!job->is_ready && records_prepare(records, records->redact, job, &err) < 0) {
            fail(records, job, &err);
        } else if (!records->db) {
            fail(records, job, why);
        } else if (!job->is_ready && write_files(records, &job->row, &err) < 0) {
            fail(records, job, &err);
        }
    }
}

static void count(struct records *records, struct records_job *jobs)
{
    for (struct records_job *job = jobs; job; job = job->next) {
        if (job->kind == RECORDS_START && job->err.kind == ERR_NONE)
            continue;
        if (job->kind == RECORDS_START || job->kind == RECORDS_END)
            atomic_fetch_sub(&records->waiting, 1);
        if (job->kind == RECORDS_END && job->err.kind == ERR_NONE) {
            atomic_fetch_add(&records->recorded, 1);
            records->behind++;
        }
    }
}

static void write_batch(struct records *records, struct records_job *jobs)
{
    struct err err = ERR_INIT;
    bool any = false;
    records_connect(records, &err);
    prepare(records, jobs, &err);
    for (const struct records_job *job = jobs; job; job = job->next)
        any = any || !job->done;
    if (any && write_some(records, jobs, NULL, &err) < 0)
        write_each(records, jobs);
    release(records);
    for (struct records_job *job = jobs; job; job = job->next)
        if (job->is_ready)
            own_close_fd(&job->files_fd);
    count(records, jobs);
}

/* --- the thread --- */

static struct records_job *take(struct records *records, int64_t until_ns, bool *out_closing)
{
    const struct timespec end = { .tv_sec = until_ns / CLOCK_S, .tv_nsec = until_ns % CLOCK_S };
    int over = 0;
    pthread_mutex_lock(&records->lock);
    while (!records->queued && !records->closing && !records->nudged && !over)
        over = pthread_cond_timedwait(&records->work, &records->lock, &end);
    struct records_job *jobs = records->queued;
    records->queued = NULL;
    records->queued_last = &records->queued;
    *out_closing = records->closing;
    if (records->nudged)
        records_tend_anew(records);
    records->nudged = false;
    pthread_mutex_unlock(&records->lock);
    return jobs;
}

static void give_back(struct records *records, struct records_job *jobs)
{
    uint64_t one = 1;
    struct records_job *last = jobs;
    while (last->next)
        last = last->next;
    pthread_mutex_lock(&records->lock);
    *records->finished_last = jobs;
    records->finished_last = &last->next;
    pthread_mutex_unlock(&records->lock);
    while (write(records->ready.fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

static int checkpoint(struct records *records, int64_t above, struct err *err)
{
    int64_t bytes = db_log_bytes(records->db);
    return bytes > above ? db_checkpoint(records->db, bytes > LOG_MAX, err) : 0;
}

static int tend(struct records *records, int rows, struct err *err)
{
    int more = records_tend(records, rows, err);
    if (more <= 0)
        records->tend_ns = clock_now_ns() + TEND_NS;
    return more;
}

/* After a batch, while more may come. */
static void keep_up(struct records *records)
{
    struct err err = ERR_INIT;
    int64_t now = clock_now_ns();
    if (records->kept && now >= records->retry_ns)
        retry(records);
    if (!records->db)
        return;
    if (now >= records->tend_ns + LATE_NS)
        tend(records, LATE_ROWS, &err);
    if (records->behind > BEHIND_MAX && catalog_step(records->db, BEHIND_STEP, &err) >= 0)
        records->behind -= BEHIND_STEP;
    checkpoint(records, LOG_BUSY, &err);
}

/* A portion of what waits. True: there is more. */
static bool idle(struct records *records)
{
    struct err err = ERR_INIT;
    int more = 0;
    if (records->kept && clock_now_ns() >= records->retry_ns)
        retry(records);
    if (!records->db)
        return false;
    if (records->behind > 0) {
        more = catalog_step(records->db, BEHIND_STEP, &err);
        records->behind = more > 0 ? records->behind : 0;
    }
    if (more == 0 && records->reused_count > 0)
        more = records_count_hits(records, &err);
    if (more == 0 && clock_now_ns() >= records->tend_ns)
        more = tend(records, RECORDS_TEND_MAX, &err);
    if (more == 0)
        more = checkpoint(records, LOG_IDLE, &err);
    if (more < 0 && db_is_broken(records->db))
        records_disconnect(records, /* last= */ false);
    if (more < 0)
        log_line(LOG_LINE_WARN, "records", json_pack("{s:s}", "error", err.text));
    return more > 0;
}

static int64_t next_turn(const struct records *records, bool more)
{
    int64_t now = clock_now_ns(), until = records->tend_ns;
    if (more)
        return now;
    if (records->kept && records->retry_ns < until)
        until = records->retry_ns;
    if (records->behind > 0 || records->reused_count > 0 ||
        (records->db && db_log_bytes(records->db) > LOG_IDLE))
        until = now + IDLE_NS;
    return until;
}

void *records_thread(void *user)
{
    struct records *records = user;
    struct err err = ERR_INIT;
    bool more = false, closing = false;
    records_connect(records, &err); /* a fault is told to the first run */
    records->tend_ns = clock_now_ns() + IDLE_NS;
    while (!closing) {
        struct records_job *jobs = take(records, next_turn(records, more), &closing);
        if (jobs) {
            write_batch(records, jobs);
            give_back(records, jobs);
            keep_up(records);
            more = false;
        } else if (!closing) {
            more = idle(records);
        }
    }
    if (records->kept)
        retry(records);
    while (records->kept)
        drop_kept(records);
    if (records->db)
        checkpoint(records, LOG_IDLE, &err);
    records_disconnect(records, /* last= */ true);
    return NULL;
}
