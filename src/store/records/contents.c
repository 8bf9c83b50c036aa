/* Contents in rows and files. Any process with a connection. */
#include "store/records/contents.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"

#define DIR_NAME "contents"
#define DIGITS "0123456789abcdef"
#define SUM_LEN ((size_t)2 * HASH_BYTES)
#define PATH_ROOM (HASH_HEX_ROOM + 8)
#define TMP "tmp-"
#define PORTION (64u << 10)

static int fault(struct err *err, const char *doing)
{
    int why = errno;
    err_sys(err, "%s 'contents' of the state folder", doing);
    if (why == ENOSPC || why == EDQUOT || why == EFBIG) {
        err->kind = ERR_BUSY;
        err_hint(err, "the disk of the state folder is full: make room there, and try again");
    } else if (why == EROFS || why == EACCES) {
        err_hint(err, "the state folder must be writable: set CUPEL_STATE to another one");
    }
    return -1;
}

static bool path_of(const char *sha256, char out[PATH_ROOM])
{
    if (strlen(sha256) != SUM_LEN || strspn(sha256, DIGITS) != SUM_LEN)
        return false;
    snprintf(out, PATH_ROOM, "%.2s/%s", sha256, sha256 + 2);
    return true;
}

/* --- reading --- */

static int read_file(int state_dir, const char *path, struct buf *out, struct err *err)
{
    own_fd dir = openat(state_dir, DIR_NAME, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    own_fd fd = dir < 0 ? -1 : openat(dir, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return err_set(err, ERR_ABSENT, "the bytes '%.64s' are not stored any more", path);
    if (fd < 0 || buf_read(out, fd) < 0)
        return fault(err, "read");
    return 0;
}

static int check_sum(const char *sha256, struct str bytes, struct err *err)
{
    char sum[HASH_HEX_ROOM];
    hash_hex(bytes, sum);
    if (strcmp(sum, sha256) == 0)
        return 0;
    err_set(err, ERR_HOST, "the stored bytes '%.16s...' are damaged: their sum is '%.16s...'",
            sha256, sum);
    err_hint(err, "the disk of the state folder changed them: remove the run");
    return -1;
}

int contents_read(struct db *db, int state_dir, const char *sha256, struct buf *out,
                  struct err *err)
{
    char path[PATH_ROOM];
    size_t before = out->len;
    struct db_query *query = db_ask(
        db, "SELECT bytes IS NULL, bytes FROM contents WHERE sha256 = ?", err);
    if (!query)
        return -1;
    db_put_text(query, 1, str_of(sha256));
    int got = db_next(query, err);
    if (got < 0)
        return -1;
    if (got == 0 || !path_of(sha256, path))
        return err_set(err, ERR_ABSENT, "the bytes '%.64s' are not stored", sha256);
    bool is_file = db_int(query, 0) != 0;
    int failed = is_file ? 0 : buf_add_str(out, db_bytes(query, 1));
    db_stop(query);
    if (failed)
        return err_set(err, ERR_LIMIT, "the bytes '%.64s' are more than %zu", sha256, out->max);
    if (is_file && read_file(state_dir, path, out, err) < 0)
        return -1;
    struct str bytes = { buf_str(out).at + before, out->len - before };
    failed = check_sum(sha256, bytes, err);
    if (failed)
        out->len = before;
    return failed;
}

/* --- writing --- */

int contents_open(int state_dir, struct err *err)
{
    if (mkdirat(state_dir, DIR_NAME, 0700) < 0 && errno != EEXIST)
        return fault(err, "make");
    int dir = openat(state_dir, DIR_NAME, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return dir < 0 ? fault(err, "open") : dir;
}

/* Bytes in memory, or in a file. */
struct source {
    struct str bytes;
    int file; /* -1: in memory */
};

static int write_all(int fd, const struct source *from)
{
    char portion[PORTION];
    if (from->file < 0)
        return io_write_all(fd, from->bytes.at, from->bytes.len);
    for (size_t at = 0; at < from->bytes.len;) {
        size_t left = from->bytes.len - at;
        ssize_t n = pread(from->file, portion, left < PORTION ? left : PORTION, (off_t)at);
        if (n <= 0 || io_write_all(fd, portion, (size_t)n) < 0)
            return -1;
        at += (size_t)n;
    }
    return 0;
}

/* The file, its folder and the folder above reach the disk. */
static int sync_all(int dir, const char *above, const char *path)
{
    own_fd file = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    own_fd folder = openat(dir, above, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return file < 0 || folder < 0 || fsync(file) < 0 || fsync(folder) < 0 ? -1 : fsync(dir);
}

static int write_new(int dir, const char *above, const char *path, const struct source *from)
{
    char tmp[PATH_ROOM] = TMP;
    hash_random_hex(tmp + sizeof TMP - 1, 32);
    if (mkdirat(dir, above, 0700) < 0 && errno != EEXIST)
        return -1;
    own_fd fd = openat(dir, tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -1;
    if (write_all(fd, from) == 0 && renameat(dir, tmp, dir, path) == 0)
        return 0;
    int why = errno;
    unlinkat(dir, tmp, 0);
    errno = why;
    return -1;
}

static int write_content(int dir, const char *sha256, const struct source *from, bool durable,
                         struct err *err)
{
    char path[PATH_ROOM], above[3] = { sha256[0], sha256[1], 0 };
    struct stat st;
    int failed;
    do
        failed = flock(dir, LOCK_SH);
    while (failed && errno == EINTR);
    if (failed || !path_of(sha256, path))
        return fault(err, "lock");
    bool there = fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
                 st.st_size == (off_t)from->bytes.len;
    if (!there)
        failed = write_new(dir, above, path, from);
    if (!failed && durable) /* the writer of one that is there may not have waited */
        failed = sync_all(dir, above, path);
    return failed ? fault(err, "write into") : 0;
}

int contents_write(int dir, const char *sha256, struct str bytes, bool durable, struct err *err)
{
    return write_content(dir, sha256, &(struct source){ bytes, -1 }, durable, err);
}

int contents_write_file(int dir, const char *sha256, int from, size_t size, bool durable,
                        struct err *err)
{
    return write_content(dir, sha256, &(struct source){ { NULL, size }, from }, durable, err);
}

void contents_unlock(int dir)
{
    flock(dir, LOCK_UN);
}

int contents_add(struct db *db, const char *sha256, struct str bytes, struct err *err)
{
    struct db_query *query = db_ask(
        db, "INSERT OR IGNORE INTO contents (sha256, size_bytes, bytes) VALUES (?, ?, ?)", err);
    if (!query)
        return -1;
    db_put_text(query, 1, str_of(sha256));
    db_put_int(query, 2, (int64_t)bytes.len);
    if (bytes.len <= CONTENTS_INLINE)
        db_put_bytes(query, 3, bytes);
    else
        db_put_null(query, 3);
    return db_next(query, err);
}

/* --- sweeping --- */

struct unused {
    struct db *db;
    char (*paths)[PATH_ROOM]; /* files to remove after the commit */
    int count;
};

static int drop_row(struct unused *unused, const char *sha256, struct err *err)
{
    struct db_query *query = db_ask(
        unused->db,
        "DELETE FROM contents WHERE sha256 = ?1 AND NOT EXISTS"
        " (SELECT 1 FROM uses WHERE sha256 = ?1) RETURNING bytes IS NULL",
        err);
    if (!query)
        return -1;
    db_put_text(query, 1, str_of(sha256));
    int got = db_next(query, err);
    if (got > 0 && db_int(query, 0) && path_of(sha256, unused->paths[unused->count]))
        unused->count++;
    while (got > 0)
        got = db_next(query, err);
    query = got < 0 ? NULL : db_ask(unused->db, "DELETE FROM loose WHERE sha256 = ?", err);
    if (!query)
        return -1;
    db_put_text(query, 1, str_of(sha256));
    return db_next(query, err);
}

/* The number of rows that it looked at. */
static int drop_rows(struct unused *unused, int rows, struct err *err)
{
    own_buf sums = BUF_INIT((size_t)rows * HASH_HEX_ROOM);
    int count = 0, got = 0;
    struct db_query *query = db_ask(unused->db, "SELECT sha256 FROM loose LIMIT ?", err);
    if (!query)
        return -1;
    db_put_int(query, 1, rows);
    while ((got = db_next(query, err)) > 0) {
        char sum[HASH_HEX_ROOM] = "";
        struct str text = db_text(query, 0);
        memcpy(sum, text.at, text.len < SUM_LEN ? text.len : SUM_LEN);
        buf_add(&sums, sum, sizeof sum);
        count++;
    }
    for (int i = 0; got == 0 && i < count; i++)
        got = drop_row(unused, sums.at + (size_t)i * HASH_HEX_ROOM, err);
    return got < 0 ? -1 : count;
}

static int has_loose(struct db *db, struct err *err)
{
    struct db_query *query = db_ask(db, "SELECT 1 FROM loose LIMIT 1", err);
    int got = query ? db_next(query, err) : -1;
    if (got > 0)
        db_stop(query);
    return got;
}

int contents_sweep(struct db *db, int dir, int rows, struct err *err)
{
    int count = has_loose(db, err);
    if (count <= 0 || flock(dir, LOCK_EX | LOCK_NB) < 0)
        return count < 0 ? -1 : 0;
    struct unused unused = { .db = db };
    unused.paths = buf_alloc_zero((size_t)rows, sizeof *unused.paths);
    count = db_begin(db, err) < 0 ? -1 : drop_rows(&unused, rows, err);
    if (count >= 0 && db_commit(db, err) < 0)
        count = -1;
    if (count < 0)
        db_undo(db);
    for (int i = 0; count >= 0 && i < unused.count; i++)
        unlinkat(dir, unused.paths[i], 0);
    contents_unlock(dir);
    free(unused.paths);
    return count;
}

/* 1: it has one; 0: none. */
static int has_row(struct db *db, const char *sha256, struct err *err)
{
    struct db_query *query = db_ask(db, "SELECT 1 FROM contents WHERE sha256 = ? AND bytes IS NULL",
                                    err);
    if (!query)
        return -1;
    db_put_text(query, 1, str_of(sha256));
    int got = db_next(query, err);
    if (got > 0)
        db_stop(query);
    return got;
}

static int sweep_folder(struct db *db, int dir, const char *digits, struct err *err)
{
    own_fd above = openat(dir, digits, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    own_dirp reader = above < 0 ? NULL : fdopendir(above);
    if (!reader)
        return 0;
    take_fd(&above);
    for (const struct dirent *entry; (entry = readdir(reader));) {
        char sum[HASH_HEX_ROOM];
        if (entry->d_name[0] == '.')
            continue;
        int n = snprintf(sum, sizeof sum, "%s%s", digits, entry->d_name);
        int found = n == (int)SUM_LEN ? has_row(db, sum, err) : 0;
        if (found < 0)
            return -1;
        if (!found)
            unlinkat(dirfd(reader), entry->d_name, 0);
    }
    return 0;
}

static void sweep_tmp(int dir)
{
    own_fd again = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    own_dirp reader = again < 0 ? NULL : fdopendir(again);
    if (!reader)
        return;
    take_fd(&again);
    for (const struct dirent *entry; (entry = readdir(reader));) {
        if (strncmp(entry->d_name, TMP, sizeof TMP - 1) == 0)
            unlinkat(dir, entry->d_name, 0);
    }
}

int contents_sweep_files(struct db *db, int dir, unsigned number, struct err *err)
{
    char digits[8];
    if (flock(dir, LOCK_EX | LOCK_NB) < 0)
        return 0;
    snprintf(digits, sizeof digits, "%02x", number % CONTENTS_DIRS);
    if (number == 0)
        sweep_tmp(dir);
    int failed = sweep_folder(db, dir, digits, err);
    contents_unlock(dir);
    return failed;
}
