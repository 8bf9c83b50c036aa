/* Blobs on the disk: every change of the folder. Runs in the thread of the errands, but for the
 * start, which comes before it. A lock on one of the 256 folders keeps engines that share a state
 * folder apart. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/own.h"
#include "store/blobs_int.h"

#define REST (2 * HASH_BYTES - 2) /* digits after the first two */
#define DIGITS "0123456789abcdef"
#define DATA "data"

void blobs_tally_done(struct blobs_tally *tally)
{
    free(tally->rows);
    *tally = (struct blobs_tally){ 0 };
}

static void tally(struct blobs_tally *to, const char *owner, int64_t bytes)
{
    to->rows = buf_list_room(to->rows, to->count, sizeof *to->rows);
    struct blobs_row *row = &to->rows[to->count++];
    snprintf(row->owner, sizeof row->owner, "%s", owner);
    row->bytes = bytes;
}

bool blobs_is_owner(const char *name)
{
    size_t len = strlen(name);
    return len > 2 && len < BLOBS_OWNER_ROOM && strncmp(name, "k_", 2) == 0 &&
           strspn(name + 2, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") ==
               len - 2;
}

bool blobs_path(char out[BLOBS_PATH_ROOM], const char *sum, const char *name)
{
    if (strlen(sum) != 2 * HASH_BYTES || strspn(sum, DIGITS) != 2 * HASH_BYTES)
        return false;
    snprintf(out, BLOBS_PATH_ROOM, "%.2s/%.*s%s%s", sum, REST, sum + 2, *name ? "/" : "", name);
    return true;
}

/* --- folders --- */

static int open_dir(int dir, const char *name)
{
    return openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int make_dir(int dir, const char *name)
{
    return mkdirat(dir, name, 0700) < 0 && errno != EEXIST ? -1 : open_dir(dir, name);
}

/* Another reader of the folder, from its first entry on. */
static DIR *list(int dir)
{
    own_fd again = open_dir(dir, ".");
    DIR *reader = again < 0 ? NULL : fdopendir(again);
    if (reader)
        take_fd(&again);
    return reader;
}

static const char *next_name(DIR *reader)
{
    const struct dirent *entry;
    do
        entry = readdir(reader);
    while (entry && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0));
    return entry ? entry->d_name : NULL;
}

/* A file that nobody has locked was left by a process that is dead. */
static void remove_leftovers(int tmp)
{
    own_dirp reader = list(tmp);
    for (const char *name; reader && (name = next_name(reader));) {
        own_fd file = openat(tmp, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (file >= 0 && flock(file, LOCK_EX | LOCK_NB) == 0)
            unlinkat(tmp, name, 0);
    }
}

int blobs_disk_open(int state_dir, struct err *err)
{
    own_fd dir = make_dir(state_dir, "blobs");
    own_fd tmp = dir < 0 ? -1 : make_dir(dir, "tmp");
    if (tmp < 0)
        return blobs_disk_err(err, errno, "make the folder 'blobs' in the state folder");
    remove_leftovers(tmp);
    return take_fd(&dir);
}

/* --- one entry --- */

struct entry {
    bool has_data;
    unsigned owners;
    int64_t bytes;
};

static void look(int dir, struct entry *out)
{
    struct stat st;
    own_dirp reader = list(dir);
    *out = (struct entry){ 0 };
    if (fstatat(dir, DATA, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode)) {
        out->has_data = true;
        out->bytes = st.st_size;
    }
    for (const char *name; reader && (name = next_name(reader));)
        out->owners += blobs_is_owner(name);
}

/* The entry has no owner, or no bytes. */
static void clear(int above, const char *name, int dir)
{
    own_dirp reader = list(dir);
    for (const char *each; reader && (each = next_name(reader));)
        unlinkat(dir, each, 0);
    unlinkat(above, name, AT_REMOVEDIR);
}

/* Marks older than the limit go; the owners of the others are counted where `counts`. */
static void tend(int above, const char *name, int64_t limit_s, struct blobs_tally *lost,
                 struct blobs_tally *kept)
{
    struct entry entry;
    struct stat st;
    own_fd dir = open_dir(above, name);
    if (dir < 0)
        return;
    look(dir, &entry);
    own_dirp reader = list(dir);
    for (const char *owner; entry.has_data && reader && (owner = next_name(reader));) {
        if (!blobs_is_owner(owner) || fstatat(dir, owner, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (st.st_mtim.tv_sec >= limit_s) {
            if (kept)
                tally(kept, owner, entry.bytes);
        } else if (unlinkat(dir, owner, 0) == 0) {
            entry.owners--;
            tally(lost, owner, -entry.bytes);
        }
    }
    bool whole = entry.has_data && entry.owners > 0;
    if (!whole)
        clear(above, name, dir);
    if (whole && kept)
        kept->disk_bytes += entry.bytes;
    else if (!whole && lost)
        lost->disk_bytes -= entry.bytes;
}

static void tend_all(int dir, unsigned number, int64_t limit_s, struct blobs_tally *lost,
                     struct blobs_tally *kept)
{
    char digits[8];
    snprintf(digits, sizeof digits, "%02x", number % BLOBS_DIRS);
    own_fd above = open_dir(dir, digits);
    if (above < 0 || flock(above, LOCK_EX) < 0)
        return;
    own_dirp reader = list(above);
    for (const char *name; reader && (name = next_name(reader));) {
        if (strlen(name) == REST && strspn(name, DIGITS) == REST)
            tend(above, name, limit_s, lost, kept);
    }
}

void blobs_disk_count(int dir, struct blobs_tally *out)
{
    for (unsigned number = 0; number < BLOBS_DIRS; number++)
        tend_all(dir, number, INT64_MIN, NULL, out);
}

void blobs_disk_sweep(int dir, unsigned number, int64_t limit_s, struct blobs_tally *lost)
{
    tend_all(dir, number, limit_s, lost, NULL);
}

void blobs_disk_tidy(int dir, const char *sum, int64_t *out_bytes)
{
    char digits[3] = { sum[0], sum[1], 0 };
    struct entry entry;
    own_fd above = open_dir(dir, digits);
    own_fd inner = above < 0 || flock(above, LOCK_EX) < 0 ? -1 : open_dir(above, sum + 2);
    *out_bytes = 0;
    if (inner < 0)
        return;
    look(inner, &entry);
    if (entry.owners > 0)
        return;
    clear(above, sum + 2, inner);
    *out_bytes = entry.bytes;
}

/* --- bytes on their way in --- */

static int make_file(int dir, struct blobs_file *file)
{
    snprintf(file->name, sizeof file->name, "tmp/");
    hash_random_hex(file->name + 4, 32);
    file->fd = openat(dir, file->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return file->fd < 0 || flock(file->fd, LOCK_EX | LOCK_NB) < 0 ? errno : 0;
}

int blobs_disk_write(int dir, struct blobs_file *file, const char *bytes, size_t len)
{
    int why = file->fd < 0 ? make_file(dir, file) : 0;
    if (why)
        return why;
    off_t at = lseek(file->fd, 0, SEEK_CUR);
    if (io_write_all(file->fd, bytes, len) < 0)
        return errno;
    /* The disk begins now: the sync at the end is short then. */
    sync_file_range(file->fd, at, (off_t)len, SYNC_FILE_RANGE_WRITE);
    return 0;
}

static int mark(int dir, const char *owner, bool *out_was_owned)
{
    own_fd fd = openat(dir, owner, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    *out_was_owned = fd < 0 && errno == EEXIST;
    if (*out_was_owned)
        return utimensat(dir, owner, NULL, AT_SYMLINK_NOFOLLOW) < 0 ? errno : 0;
    return fd < 0 ? errno : 0;
}

int blobs_disk_keep(int dir, struct blobs_file *file, const char *sum, const char *owner,
                    bool *out_was_owned, bool *out_was_there)
{
    char digits[3] = { sum[0], sum[1], 0 };
    int why = file->fd < 0 ? make_file(dir, file) : 0;
    if (why || fsync(file->fd) < 0)
        return why ? why : errno;
    own_fd above = make_dir(dir, digits);
    own_fd inner = above < 0 || flock(above, LOCK_EX) < 0 ? -1 : make_dir(above, sum + 2);
    if (inner < 0)
        return errno;
    why = mark(inner, owner, out_was_owned);
    file->old = openat(inner, DATA, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    *out_was_there = file->old >= 0;
    if (!why && renameat(dir, file->name, inner, DATA) < 0)
        why = errno;
    if (!why) {
        file->name[0] = 0;
        return fsync(inner) < 0 || fsync(above) < 0 || fsync(dir) < 0 ? errno : 0;
    }
    if (!*out_was_owned)
        unlinkat(inner, owner, 0);
    if (!*out_was_there)
        unlinkat(above, sum + 2, AT_REMOVEDIR);
    return why;
}

void blobs_disk_drop(int dir, struct blobs_file *file)
{
    if (file->fd >= 0 && file->name[0])
        unlinkat(dir, file->name, 0);
    own_close_fd(&file->fd);
    own_close_fd(&file->old);
}
