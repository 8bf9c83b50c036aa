/* Blobs, the loop's side: who asks for what, and what comes of it. Runs in the serve process. */
#include "store/blobs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/own.h"
#include "store/blobs_int.h"

#define SWEEP_S 10 /* from one of the 256 folders to the next */
#define USED_S 3600 /* a use is noted at most so often */

struct blobs {
    struct blobs_options options;
    int dir;
    int64_t bytes;
    struct loop_timer timer;
    struct errand sweep, last;
    bool closed;
    unsigned puts; /* that are not freed yet */
    unsigned number; /* of the folder that is swept next */
    struct blobs_tally lost;
    int64_t limit_s;
};

int blobs_disk_err(struct err *err, int error, const char *what)
{
    errno = error;
    err_sys(err, "%s", what);
    if (error == ENOSPC || error == EDQUOT) {
        err->kind = ERR_BUSY;
        err_hint(err, "the disk of the state folder is full: make room there, and try again");
    } else if (error == EROFS) {
        err_hint(err, "the disk of the state folder is read-only: set CUPEL_STATE to another one");
    }
    return -1;
}

/* --- the whole --- */

static void tell(const struct blobs *blobs, const struct blobs_tally *tally)
{
    for (size_t i = 0; i < tally->count; i++)
        blobs->options.counted(blobs->options.user, tally->rows[i].owner, tally->rows[i].bytes);
}

static void sweep_work(struct errand *errand)
{
    struct blobs *blobs = loop_owner(errand, struct blobs, sweep);
    blobs_disk_sweep(blobs->dir, blobs->number, blobs->limit_s, &blobs->lost);
}

static void sweep_later(struct blobs *blobs)
{
    loop_set_timer(blobs->options.loop, &blobs->timer, clock_now_ns() + SWEEP_S * CLOCK_S);
}

static void sweep_done(struct errand *errand)
{
    struct blobs *blobs = loop_owner(errand, struct blobs, sweep);
    tell(blobs, &blobs->lost);
    blobs->bytes += blobs->lost.disk_bytes;
    blobs_tally_done(&blobs->lost);
    blobs->number++;
    if (!blobs->closed)
        sweep_later(blobs);
}

static void on_timer(struct loop_timer *timer)
{
    struct blobs *blobs = loop_owner(timer, struct blobs, timer);
    blobs->limit_s = time(NULL) - blobs->options.age_s;
    blobs->sweep = (struct errand){ .work = sweep_work, .done = sweep_done };
    errands_add(blobs->options.errands, &blobs->sweep);
}

struct blobs *blobs_open(const struct blobs_options *options, struct err *err)
{
    struct blobs_tally kept = { 0 };
    int dir = blobs_disk_open(options->state_dir, err);
    if (dir < 0)
        return NULL;
    struct blobs *blobs = buf_alloc_zero(1, sizeof *blobs);
    *blobs = (struct blobs){ .options = *options, .dir = dir };
    loop_due(&blobs->timer, on_timer);
    blobs_disk_count(dir, &kept);
    tell(blobs, &kept);
    blobs->bytes = kept.disk_bytes;
    blobs_tally_done(&kept);
    sweep_later(blobs);
    return blobs;
}

static void close_work(struct errand *errand)
{
    (void)errand;
}

static void close_done(struct errand *errand)
{
    struct blobs *blobs = loop_owner(errand, struct blobs, last);
    if (blobs->puts > 0) { /* the errands that drop them are in line by now */
        errands_add(blobs->options.errands, errand);
        return;
    }
    close(blobs->dir);
    free(blobs);
}

/* Errands of ours may be under way: one after them frees it. */
void blobs_close(struct blobs *blobs)
{
    if (!blobs)
        return;
    loop_set_timer(blobs->options.loop, &blobs->timer, LOOP_NEVER);
    blobs->closed = true;
    blobs->last = (struct errand){ .work = close_work, .done = close_done };
    errands_add(blobs->options.errands, &blobs->last);
}

void blobs_set_age(struct blobs *blobs, int64_t age_s)
{
    blobs->options.age_s = age_s;
}

int64_t blobs_bytes(const struct blobs *blobs)
{
    return blobs->bytes;
}

/* --- in --- */

struct blob_put {
    struct blobs *blobs;
    struct errand errand;
    blobs_told *told;
    void *user;
    bool busy, freed, ended;
    struct blobs_file file;
    struct hash hash;
    char sum[HASH_HEX_ROOM], want[HASH_HEX_ROOM], owner[BLOBS_OWNER_ROOM];
    uint64_t size;
    char *bytes; /* of this call */
    size_t len;
    int error;
    bool differs, was_owned, was_there;
};

struct blob_put *blobs_put(struct blobs *blobs, blobs_told *told, void *user)
{
    struct blob_put *put = buf_alloc_zero(1, sizeof *put);
    *put = (struct blob_put){ .blobs = blobs, .told = told, .user = user, .file = { .fd = -1,
                              .old = -1 } };
    hash_start(&put->hash);
    blobs->puts++;
    return put;
}

static void drop_work(struct errand *errand)
{
    struct blob_put *put = loop_owner(errand, struct blob_put, errand);
    blobs_disk_drop(put->blobs->dir, &put->file);
}

static void drop_done(struct errand *errand)
{
    struct blob_put *put = loop_owner(errand, struct blob_put, errand);
    put->blobs->puts--;
    free(put);
}

static void drop(struct blob_put *put)
{
    put->errand = (struct errand){ .work = drop_work, .done = drop_done };
    errands_add(put->blobs->options.errands, &put->errand);
}

void blobs_put_free(struct blob_put *put)
{
    if (!put)
        return;
    put->freed = true;
    if (!put->busy)
        drop(put);
}

static void put_done(struct errand *errand)
{
    struct blob_put *put = loop_owner(errand, struct blob_put, errand);
    struct err err = ERR_INIT;
    put->busy = false;
    if (put->ended && !put->error && !put->differs && !put->was_there)
        put->blobs->bytes += (int64_t)put->size;
    if (put->freed) {
        /* The bytes of a client that went just now: they are its own, and counted as such. */
        if (put->ended && !put->error && !put->differs && !put->was_owned)
            put->blobs->options.counted(put->blobs->options.user, put->owner, (int64_t)put->size);
        drop(put);
        return;
    }
    if (put->error)
        blobs_disk_err(&err, put->error, "store the blob");
    else if (put->differs)
        err_input(&err, "sha256", put->want, put->sum, "the bytes have another sha256");
    put->told(put->user, &err);
}

static void begin(struct blob_put *put, void (*work)(struct errand *errand))
{
    put->busy = true;
    put->errand = (struct errand){ .work = work, .done = put_done };
    errands_add(put->blobs->options.errands, &put->errand);
}

static void add_work(struct errand *errand)
{
    struct blob_put *put = loop_owner(errand, struct blob_put, errand);
    own_str bytes = take_ptr(put->bytes);
    hash_add(&put->hash, bytes, put->len);
    put->size += put->len;
    put->error = blobs_disk_write(put->blobs->dir, &put->file, bytes, put->len);
}

void blobs_put_add(struct blob_put *put, char *bytes, size_t len)
{
    put->bytes = bytes;
    put->len = len;
    begin(put, add_work);
}

static void end_work(struct errand *errand)
{
    struct blob_put *put = loop_owner(errand, struct blob_put, errand);
    hash_end_hex(&put->hash, put->sum);
    put->differs = put->want[0] && strcmp(put->want, put->sum) != 0;
    if (!put->differs)
        put->error = blobs_disk_keep(put->blobs->dir, &put->file, put->sum, put->owner,
                                     &put->was_owned, &put->was_there);
}

void blobs_put_end(struct blob_put *put, const char *owner, const char *sum)
{
    snprintf(put->owner, sizeof put->owner, "%s", owner);
    snprintf(put->want, sizeof put->want, "%s", sum ? sum : "");
    put->ended = true;
    begin(put, end_work);
}

const char *blobs_put_sum(const struct blob_put *put)
{
    return put->sum;
}

uint64_t blobs_put_size(const struct blob_put *put)
{
    return put->size;
}

bool blobs_put_was_owned(const struct blob_put *put)
{
    return put->was_owned;
}

/* --- out --- */

static int absent(struct err *err)
{
    return err_set(err, ERR_ABSENT, "there is no such blob");
}

/* Notes that the owner uses it. */
static int find_mark(const struct blobs *blobs, const char *owner, const char *sum)
{
    char path[BLOBS_PATH_ROOM];
    struct stat st;
    if (!blobs_is_owner(owner) || !blobs_path(path, sum, owner) ||
        fstatat(blobs->dir, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -1;
    if (time(NULL) - st.st_mtim.tv_sec > USED_S)
        utimensat(blobs->dir, path, NULL, AT_SYMLINK_NOFOLLOW);
    return 0;
}

int blobs_find(struct blobs *blobs, const char *owner, const char *sum, uint64_t *out_size,
               struct err *err)
{
    char path[BLOBS_PATH_ROOM];
    struct stat st;
    if (!blobs_path(path, sum, "data") || (owner && find_mark(blobs, owner, sum) < 0))
        return absent(err);
    own_fd fd = openat(blobs->dir, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return errno == ENOENT || errno == ENOTDIR ? absent(err)
                                                   : blobs_disk_err(err, errno, "open the blob");
    *out_size = (uint64_t)st.st_size;
    return take_fd(&fd);
}

struct removal {
    struct blobs *blobs;
    struct errand errand;
    char sum[HASH_HEX_ROOM];
    int64_t bytes;
};

static void remove_work(struct errand *errand)
{
    struct removal *removal = loop_owner(errand, struct removal, errand);
    blobs_disk_tidy(removal->blobs->dir, removal->sum, &removal->bytes);
}

static void remove_done(struct errand *errand)
{
    struct removal *removal = loop_owner(errand, struct removal, errand);
    removal->blobs->bytes -= removal->bytes;
    free(removal);
}

int blobs_remove(struct blobs *blobs, const char *owner, const char *sum, struct err *err)
{
    char path[BLOBS_PATH_ROOM];
    uint64_t size;
    own_fd fd = blobs_find(blobs, owner, sum, &size, err);
    if (fd < 0)
        return -1;
    blobs_path(path, sum, owner);
    if (unlinkat(blobs->dir, path, 0) < 0)
        return errno == ENOENT ? absent(err) : blobs_disk_err(err, errno, "remove the blob");
    blobs->options.counted(blobs->options.user, owner, -(int64_t)size);
    struct removal *removal = buf_alloc_zero(1, sizeof *removal);
    *removal = (struct removal){ .blobs = blobs,
                                 .errand = { .work = remove_work, .done = remove_done } };
    memcpy(removal->sum, sum, sizeof removal->sum);
    errands_add(blobs->options.errands, &removal->errand);
    return 0;
}
