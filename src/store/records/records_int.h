/* Private to the writing side of records: the loop has records.c, the thread the others. */
#ifndef STORE_RECORDS_RECORDS_INT_H
#define STORE_RECORDS_RECORDS_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "base/hash.h"
#include "store/db/db.h"
#include "store/records/records.h"
#include "store/redact/redact.h"

#define RECORDS_RESULT_INLINE (64u << 10) /* bytes of a result in its row; a longer is a content */
#define RECORDS_TEXT_MAX ((size_t)192 << 20)
#define RECORDS_ID_ROOM 64
#define RECORDS_KEPT_MAX ((int64_t)64 << 20) /* bytes of ends that could not be written yet */

/* Bytes that a run, or an act, uses. */
struct records_use {
    const char *kind;
    char *path; /* or NULL */
    size_t path_len;
    char sha256[HASH_HEX_ROOM];
    struct str bytes; /* of the request or result, or of `owned` */
    char *owned;
    bool spooled; /* the bytes are in a file: bytes.at is NULL */
    int spool;
    const char *mime; /* or NULL */
    bool readonly;
};
struct records_uses {
    struct records_use *at;
    size_t count;
};

enum records_kind { RECORDS_START, RECORDS_END, RECORDS_ACT, RECORDS_FIND, RECORDS_HITS };

/* A row, ready to be written: redacted, summed. */
struct records_row {
    int64_t at_ms, bytes;
    size_t redacted;
    struct records_uses uses;
    char code_sha256[HASH_HEX_ROOM]; /* of a start */
    struct buf code; /* of a start */
    struct buf json; /* request, result, detail or error */
    struct buf brief; /* of a long result */
    char result_sha256[HASH_HEX_ROOM]; /* of a long result */
    const char *status;
    struct records_figures { /* of an end */
        int exit_code; /* -1: none */
        double wall_ms, cpu_ms;
        int64_t memory_peak_bytes, cell;
        size_t artifacts;
        bool refused; /* `json` is an error; there are no figures */
    } figures;
    char cache_key[HASH_HEX_ROOM]; /* "": none */
    int64_t ttl_s;
    char owner[RECORDS_ID_ROOM]; /* of the cache, and of an act */
};
void records_row_done(struct records_row *row);
/* The views of `uses` become owned. Bytes that this takes. */
int64_t records_row_own(struct records_row *row);

/* One piece of work: from the loop to the thread and back. */
struct records_job {
    struct records_job *next;
    enum records_kind kind;
    struct record *record; /* of a start or end */
    records_told *told; /* or NULL */
    void *user;
    struct err err;
    bool done; /* written, or refused for good */
    bool is_big, is_ready; /* of the thread of large jobs; it made the row ready, or told `err` */
    int files_fd; /* of one that is ready: holds the lock of its files until the commit; or -1 */
    struct records_row row;
    /* A start: */
    const struct request *request;
    /* An end: */
    const struct result *result; /* NULL: `failure` */
    struct str json;
    struct err failure;
    /* An act; the row has its parts: */
    char session[RECORDS_ID_ROOM], act[RECORDS_ID_ROOM];
    json_t *detail;
    /* A search in the cache: */
    char key[HASH_HEX_ROOM];
    int64_t max_age_s;
    char known[RECORDS_ID_ROOM]; /* "": none */
    records_found *found;
    struct records_hit hit;
    struct buf hit_json;
    bool is_hit;
    /* Results that were given again: */
    char run[RECORDS_ID_ROOM];
    int64_t times;
};
void records_job_done(struct records_job *job);

struct record {
    struct records *records;
    int64_t n; /* 0: not stored yet; the thread's until it told */
    int64_t store; /* the database that has n: records->store */
    char run[RECORDS_ID_ROOM], owner[RECORDS_ID_ROOM], door[RECORDS_ID_ROOM];
    char task[RECORDS_ID_ROOM], replay_of[RECORDS_ID_ROOM]; /* "": none */
    int64_t step;
    size_t redacted;
    bool began, ends; /* the loop's: `start` was told; `end` is on its way */
    struct records_job start, end;
};

/* An end that is still to be written. */
struct records_kept {
    struct records_kept *next;
    int64_t n, store, bytes;
    struct records_row row;
};

struct records {
    struct records_options options;
    char **patterns; /* copies of options.redact */
    struct loop_source ready; /* an eventfd: jobs are done */
    pthread_t thread, big_thread;
    pthread_mutex_t lock;
    pthread_cond_t work, big_work;
    /* Under the lock: */
    struct records_job *big, **big_last; /* the first one is being prepared */
    struct redact *big_redact; /* in use by big_thread; it closes it if it is not `redact` */
    bool big_closing;
    struct records_job *queued, **queued_last;
    struct records_job *finished, **finished_last;
    bool closing, nudged; /* nudged: retention has other bounds */
    _Atomic int64_t age_s, bytes;
    /* The thread's: */
    struct db *db; /* NULL: not open */
    struct redact *redact; /* set under the lock */
    int contents; /* the folder's descriptor, or -1 */
    bool shares; /* it holds the shared lock of the folder */
    int lock_fd; /* the engine's lock, or -1 */
    char name[40]; /* of the lock's file */
    int64_t engine; /* 0: not registered */
    char store_key[80]; /* of the database: another one may take its place */
    int64_t store; /* counts the databases so far: numbers of an earlier one mean nothing here */
    int64_t behind; /* ends that are not in the catalog, at most */
    int64_t retry_ns, tend_ns; /* when */
    struct records_tending *tending;
    struct records_kept *kept, **kept_last;
    struct records_reused { /* runs whose result was given again, not counted yet */
        char run[RECORDS_ID_ROOM];
        int64_t times;
    } reused[64];
    size_t reused_count;
    /* Figures: */
    _Atomic int64_t recorded, failed, waiting, redacted, cache_hits, cache_misses, kept_bytes,
        removed;
};

/* Thread: */
void *records_thread(void *user);
int64_t records_now_ms(void);
/* The connection and all that belongs to it. */
int records_connect(struct records *records, struct err *err);
void records_disconnect(struct records *records, bool last);
/* Starts of engines that are gone get an end. 1: only after more calls; 0: all have one. */
int records_close_dead(struct records *records, struct err *err);

/* The thread of large jobs: it makes them ready, so that no other one waits for that, and hands
 * them to the thread of records. A job that must not overtake one of them goes the same way. */
void *records_big_thread(void *user);
/* Under the lock: does this job go there? */
bool records_goes_big(const struct records *records, const struct records_job *job);
/* `redact` is not that of the store any more. */
void records_drop_redact(struct records *records);

/* Outside a transaction: fills the row; writes files of large contents into `dir`. */
int records_prepare(struct records *records, const struct redact *redact, struct records_job *job,
                    struct err *err);
/* out_any: it has the lock of `dir` now. */
int records_write_files(int dir, bool durable, const struct records_uses *uses, bool *out_any,
                        struct err *err);
/* Inside one. */
int records_write(struct records *records, struct records_job *job, struct err *err);
/* store: the one that has the start n. */
int records_write_end(struct records *records, int64_t store, int64_t n, struct records_row *row,
                      struct err *err);
void records_find(struct records *records, struct records_job *job);
void records_add_hits(struct records *records, const char *run, int64_t times);
int records_count_hits(struct records *records, struct err *err);

/* One portion of a round: engines that are gone, records past their bounds, contents without a use.
 * At most `rows` records, of RECORDS_TEND_MAX. 1: there is more; 0: the round is over; -1: an err,
 * and a new round. */
#define RECORDS_TEND_MAX 32
int records_tend(struct records *records, int rows, struct err *err);
void records_tend_anew(struct records *records);
struct records_tending *records_tending_new(void);

#endif
