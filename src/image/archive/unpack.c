/* A thread that reads, decompresses and hashes, and a ring of pieces between it and the caller.
 * Runs in the cli process, which clones no boxes. */
#include "image/archive/unpack.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "image/archive/library.h"

#define PIECE (512u << 10)
#define PIECES 8
#define POLL_MS 100 /* how often a pipe that is silent looks whether it is still wanted */

struct unpack {
    struct unpack_source source;
    int64_t bytes_max;
    const struct libarchive *lib;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* Under the lock. */
    size_t first, count; /* the pieces that are filled */
    bool lent;           /* the caller looks at the first one */
    bool ended, unwanted;
    struct err err;
    struct unpack_sums sums;
    /* The thread's own. */
    struct hash packed, plain;
    struct unpack_sums running;
    size_t lens[PIECES];
    char *pieces[PIECES];
    char *input; /* packed bytes, PIECE of them */
    size_t input_len, input_at;
    bool input_ended;
};

static bool is_unwanted(struct unpack *unpack)
{
    pthread_mutex_lock(&unpack->lock);
    bool unwanted = unpack->unwanted;
    pthread_mutex_unlock(&unpack->lock);
    return unwanted;
}

/* Waits for a pipe without forgetting the caller. */
static int wait_readable(struct unpack *unpack)
{
    struct pollfd ready = { .fd = unpack->source.fd, .events = POLLIN };
    while (poll(&ready, 1, POLL_MS) == 0)
        if (is_unwanted(unpack)) {
            errno = ECANCELED;
            return -1;
        }
    return 0;
}

static ssize_t read_source(struct unpack *unpack, void *to, size_t room)
{
    struct unpack_source *source = &unpack->source;
    ssize_t n;
    if (source->at >= 0) {
        if ((int64_t)room > source->size)
            room = (size_t)source->size;
        do
            n = room ? pread(source->fd, to, room, source->at) : 0;
        while (n < 0 && errno == EINTR);
        source->at += n > 0 ? n : 0;
        source->size -= n > 0 ? n : 0;
    } else {
        do
            n = wait_readable(unpack) < 0 ? -1 : read(source->fd, to, room);
        while (n < 0 && (errno == EINTR || errno == EAGAIN));
    }
    return n;
}

/* Packed bytes into `to`, hashed. The length, 0 at the end, -1 with err. */
static ssize_t read_packed(struct unpack *unpack, void *to, size_t room, struct err *err)
{
    ssize_t n = read_source(unpack, to, room);
    if (n < 0)
        return err_sys(err, "read the archive");
    if (n == 0 && unpack->source.at >= 0 && unpack->source.size > 0)
        return err_input(err, "image", NULL, NULL, "the archive ends before one of its files does");
    hash_add(&unpack->packed, to, (size_t)n);
    unpack->running.packed_bytes += n;
    return n;
}

/* A buffer for the next piece; NULL: nobody wants it. */
static char *wait_room(struct unpack *unpack, size_t *out_at)
{
    pthread_mutex_lock(&unpack->lock);
    unpack->sums.packed_bytes = unpack->running.packed_bytes;
    while (unpack->count == PIECES && !unpack->unwanted)
        pthread_cond_wait(&unpack->changed, &unpack->lock);
    *out_at = (unpack->first + unpack->count) % PIECES;
    bool unwanted = unpack->unwanted;
    pthread_mutex_unlock(&unpack->lock);
    return unwanted ? NULL : unpack->pieces[*out_at];
}

static void hand_over(struct unpack *unpack, size_t at, size_t len)
{
    unpack->lens[at] = len;
    pthread_mutex_lock(&unpack->lock);
    unpack->count++;
    pthread_cond_broadcast(&unpack->changed);
    pthread_mutex_unlock(&unpack->lock);
}

static int check_size(const struct unpack *unpack, struct err *err)
{
    const struct unpack_sums *sums = &unpack->running;
    if (sums->plain_bytes > unpack->bytes_max) {
        char bound[64];
        snprintf(bound, sizeof bound, "at most %lld bytes", (long long)unpack->bytes_max);
        err_input(err, "image", NULL, bound, "the archive is larger than %lld bytes unpacked",
                  (long long)unpack->bytes_max);
        err_hint(err, "--max-size raises the limit, for an image that you trust");
        return -1;
    }
    if (sums->plain_bytes - UNPACK_FREE > sums->packed_bytes * UNPACK_RATIO)
        return err_input(err, "image", NULL, "a ratio of at most 200",
                         "the archive is a bomb: %lld bytes became more than %lld",
                         (long long)sums->packed_bytes, (long long)sums->plain_bytes);
    return 0;
}

static int pump_plain(struct unpack *unpack, struct err *err)
{
    size_t at;
    for (;;) {
        char *piece = wait_room(unpack, &at);
        if (!piece)
            return 0;
        size_t len = unpack->input_len;
        ssize_t n = 0;
        memcpy(piece, unpack->input, len); /* the first bytes, which told the compression */
        unpack->input_len = 0;
        while (len < PIECE && !unpack->input_ended) {
            n = read_packed(unpack, piece + len, PIECE - len, err);
            if (n < 0)
                return -1;
            unpack->input_ended = n == 0;
            len += (size_t)n;
        }
        if (len == 0)
            return 0;
        unpack->running.plain_bytes += (int64_t)len;
        if (check_size(unpack, err) < 0)
            return -1;
        hand_over(unpack, at, len);
    }
}

static la_ssize_t on_read(struct archive *archive, void *user, const void **out)
{
    struct unpack *unpack = user;
    struct err err = ERR_INIT;
    (void)archive;
    if (unpack->input_len == 0 && !unpack->input_ended) {
        ssize_t n = read_packed(unpack, unpack->input, PIECE, &err);
        if (n < 0) {
            pthread_mutex_lock(&unpack->lock);
            unpack->err = err;
            pthread_mutex_unlock(&unpack->lock);
            return -1;
        }
        unpack->input_ended = n == 0;
        unpack->input_len = (size_t)n;
    }
    la_ssize_t len = (la_ssize_t)unpack->input_len;
    unpack->input_len = 0;
    *out = unpack->input;
    return len;
}

static int pump_archive(struct unpack *unpack, struct archive *archive, struct err *err)
{
    const struct libarchive *lib = unpack->lib;
    struct archive_entry *entry;
    size_t at;
    if (lib->read_open2(archive, unpack, NULL, on_read, NULL, NULL) != ARCHIVE_OK ||
        lib->read_next_header(archive, &entry) != ARCHIVE_OK)
        return -1;
    for (;;) {
        char *piece = wait_room(unpack, &at);
        if (!piece)
            return 0;
        la_ssize_t n = lib->read_data(archive, piece, PIECE);
        if (n < 0)
            return -1;
        if (n == 0)
            return 0;
        hash_add(&unpack->plain, piece, (size_t)n);
        unpack->running.plain_bytes += n;
        if (check_size(unpack, err) < 0)
            return -1;
        hand_over(unpack, at, (size_t)n);
    }
}

/* A digest covers what stands behind the compressed bytes, too. */
static int read_rest(struct unpack *unpack, struct err *err)
{
    while (!unpack->input_ended) {
        ssize_t n = read_packed(unpack, unpack->input, PIECE, err);
        if (n < 0 || is_unwanted(unpack))
            return n < 0 ? -1 : 0;
        unpack->input_ended = n == 0;
    }
    return 0;
}

static int pump_packed(struct unpack *unpack, int (*filter)(struct archive *), struct err *err)
{
    const struct libarchive *lib = unpack->lib;
    struct archive *archive = lib->read_new();
    if (!archive)
        return err_set(err, ERR_HOST, "no memory for an archive");
    /* Not ARCHIVE_OK: a library without it, which would start a program instead. */
    int rc = -1;
    if (filter(archive) != ARCHIVE_OK || lib->read_support_format_raw(archive) != ARCHIVE_OK)
        err_set(err, ERR_HOST, "this libarchive cannot read the archive's compression");
    else
        rc = pump_archive(unpack, archive, err);
    if (rc < 0 && err->kind == ERR_NONE)
        *err = unpack->err;
    if (rc < 0 && err->kind == ERR_NONE) {
        const char *why = lib->error_string(archive);
        err_input(err, "image", NULL, NULL, "the archive cannot be decompressed: %.200s",
                  why ? why : "its bytes are damaged");
    }
    lib->read_free(archive);
    return rc < 0 ? -1 : read_rest(unpack, err);
}

static int pump(struct unpack *unpack, struct err *err)
{
    const struct {
        const char magic[7];
        size_t len;
        int (*filter)(struct archive *);
    } kinds[] = {
        { "\x1f\x8b", 2, unpack->lib->read_support_filter_gzip },
        { "\x28\xb5\x2f\xfd", 4, unpack->lib->read_support_filter_zstd },
        { "\xfd" "7zXZ", 6, unpack->lib->read_support_filter_xz },
        { "BZh", 3, unpack->lib->read_support_filter_bzip2 },
    };
    while (unpack->input_len < 8 && !unpack->input_ended) {
        ssize_t n = read_packed(unpack, unpack->input + unpack->input_len,
                                PIECE - unpack->input_len, err);
        if (n < 0)
            return -1;
        unpack->input_ended = n == 0;
        unpack->input_len += (size_t)n;
    }
    for (size_t i = 0; i < array_len(kinds); i++)
        if (unpack->input_len >= kinds[i].len &&
            memcmp(unpack->input, kinds[i].magic, kinds[i].len) == 0) {
            unpack->running.compressed = true;
            return pump_packed(unpack, kinds[i].filter, err);
        }
    return pump_plain(unpack, err);
}

static void *work(void *user)
{
    struct unpack *unpack = user;
    struct err err = ERR_INIT;
    int rc = pump(unpack, &err);
    struct unpack_sums *sums = &unpack->running;
    hash_end_hex(&unpack->packed, sums->packed);
    hash_end_hex(&unpack->plain, sums->plain);
    if (!sums->compressed)
        memcpy(sums->plain, sums->packed, sizeof sums->plain);
    pthread_mutex_lock(&unpack->lock);
    unpack->sums = *sums;
    if (rc < 0)
        unpack->err = err;
    unpack->ended = true;
    pthread_cond_broadcast(&unpack->changed);
    pthread_mutex_unlock(&unpack->lock);
    return NULL;
}

/* Signals are the main thread's. */
static int start_thread(struct unpack *unpack)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int rc = pthread_create(&unpack->thread, NULL, work, unpack);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

static void destroy(struct unpack *unpack)
{
    for (size_t i = 0; i < PIECES; i++)
        free(unpack->pieces[i]);
    free(unpack->input);
    pthread_mutex_destroy(&unpack->lock);
    pthread_cond_destroy(&unpack->changed);
    free(unpack);
}

int unpack_open(const struct unpack_source *source, int64_t bytes_max, struct unpack **out,
                struct err *err)
{
    const struct libarchive *lib = libarchive(err);
    if (!lib)
        return -1;
    struct unpack *unpack = buf_alloc_zero(1, sizeof *unpack);
    *unpack = (struct unpack){ .source = *source, .bytes_max = bytes_max, .lib = lib,
                               .err = ERR_INIT };
    for (size_t i = 0; i < PIECES; i++)
        unpack->pieces[i] = buf_alloc(PIECE);
    unpack->input = buf_alloc(PIECE);
    pthread_mutex_init(&unpack->lock, NULL);
    pthread_cond_init(&unpack->changed, NULL);
    hash_start(&unpack->packed);
    hash_start(&unpack->plain);
    int rc = start_thread(unpack);
    if (rc != 0) {
        destroy(unpack);
        errno = rc;
        return err_sys(err, "start the thread that unpacks");
    }
    *out = unpack;
    return 0;
}

/* Gives the piece that the caller had back. Under the lock. */
static void give_back(struct unpack *unpack)
{
    if (!unpack->lent)
        return;
    unpack->lent = false;
    unpack->first = (unpack->first + 1) % PIECES;
    unpack->count--;
    pthread_cond_broadcast(&unpack->changed);
}

ssize_t unpack_next(struct unpack *unpack, const void **out, struct err *err)
{
    ssize_t len = 0;
    pthread_mutex_lock(&unpack->lock);
    give_back(unpack);
    while (unpack->count == 0 && !unpack->ended)
        pthread_cond_wait(&unpack->changed, &unpack->lock);
    if (unpack->count > 0) {
        unpack->lent = true;
        *out = unpack->pieces[unpack->first];
        len = (ssize_t)unpack->lens[unpack->first];
    } else if (unpack->err.kind != ERR_NONE) {
        *err = unpack->err;
        len = -1;
    }
    pthread_mutex_unlock(&unpack->lock);
    return len;
}

int64_t unpack_packed_bytes(struct unpack *unpack)
{
    pthread_mutex_lock(&unpack->lock);
    int64_t bytes = unpack->sums.packed_bytes;
    pthread_mutex_unlock(&unpack->lock);
    return bytes;
}

int unpack_finish(struct unpack *unpack, struct unpack_sums *out, struct err *err)
{
    const void *ignored;
    ssize_t n;
    while ((n = unpack_next(unpack, &ignored, err)) > 0)
        continue;
    if (n < 0)
        return -1;
    *out = unpack->sums;
    return 0;
}

void unpack_close(struct unpack *unpack)
{
    if (!unpack)
        return;
    pthread_mutex_lock(&unpack->lock);
    unpack->unwanted = true;
    pthread_cond_broadcast(&unpack->changed);
    pthread_mutex_unlock(&unpack->lock);
    pthread_join(unpack->thread, NULL);
    destroy(unpack);
}
