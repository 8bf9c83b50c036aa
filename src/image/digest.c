/* The digest of image `host`. Runs in the engine's process.
 *
 * The digest names a state of the host; it is no proof against the administrator. dpkg's status
 * file stands for all files that packages installed (on other distributions the package manager's
 * own file does, and the package directories are read in full). Only the interpreters and files
 * that no package owns are read. Two things are left out: compiled Python in __pycache__, which
 * follows from its source and changes with every import by the administrator; and hidden mounts
 * (base/mounts.h), which boxes do not see.
 *
 * The hash covers lines in a fixed order, one line for each part with the part's own hash; unowned
 * files are sorted by path. */
#include "image/digest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/mounts.h"
#include "base/own.h"
#include "image/owned.h"
#include "image/root.h"

#define STATUS_FILE "var/lib/dpkg/status"
#define DIRS_MAX 16
#define DEPTH_MAX 40
#define UNOWNED_MAX 400000

/* Package databases of other distributions; absent ones are skipped. */
static const char *const other_status[] = {
    "usr/lib/sysimage/rpm/rpmdb.sqlite", "var/lib/rpm/rpmdb.sqlite", "lib/apk/db/installed",
    "usr/lib/apk/db/installed",
};

static const char *const interpreters[] = { "usr/bin/python3", "usr/bin/node", "usr/bin/bash" };

/* Package directories; a name that ends in "." stands for every directory that continues it with a
 * digit (python3.11, python3.12). */
static const char *const package_dirs[] = {
    "usr/lib/python3/dist-packages",
    "usr/lib/python3.",
    "usr/lib64/python3.",
    "usr/share/nodejs",
    "usr/lib/node_modules",
};

struct dirs {
    char *at[DIRS_MAX]; /* relative to the root, sorted, heap */
    size_t count;
};

static void dirs_done(struct dirs *dirs)
{
    for (size_t i = 0; i < dirs->count; i++)
        free(dirs->at[i]);
    dirs->count = 0;
}

static void dirs_add(struct dirs *dirs, const char *path)
{
    if (dirs->count < DIRS_MAX)
        dirs->at[dirs->count++] = buf_strdup(str_of(path));
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The directories beside `stem` (".../python3.") whose names continue it. */
static void dirs_add_stem(int root_dirfd, const char *stem, struct dirs *dirs)
{
    const char *last = strrchr(stem, '/') + 1;
    char path[512];
    snprintf(path, sizeof path, "%.*s", (int)(last - stem - 1), stem);
    int fd = image_root_open(root_dirfd, path, O_RDONLY | O_DIRECTORY);
    own_dirp dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir));) {
        const char *name = entry->d_name;
        size_t len = strlen(last);
        if (strncmp(name, last, len) != 0 || name[len] < '0' || name[len] > '9')
            continue;
        snprintf(path, sizeof path, "%.*s%s", (int)(last - stem), stem, name);
        dirs_add(dirs, path);
    }
}

static void find_dirs(int root_dirfd, struct dirs *dirs)
{
    for (size_t i = 0; i < array_len(package_dirs); i++) {
        const char *path = package_dirs[i];
        if (path[strlen(path) - 1] == '.')
            dirs_add_stem(root_dirfd, path, dirs);
        else
            dirs_add(dirs, path);
    }
    qsort(dirs->at, dirs->count, sizeof dirs->at[0], by_text);
}

static struct mounts mounts; /* read at the start of each pass */

/* `path` is relative to the root. */
static bool is_hidden(const char *path)
{
    char absolute[PATH_MAX];
    snprintf(absolute, sizeof absolute, "/%s", path);
    return mounts_hide(&mounts, absolute);
}

/* Hash a file's bytes to hexadecimal digits, or "absent" or "unreadable": a box sees the same. */
static void file_hash(int root_dirfd, const char *path, char out[HASH_HEX_ROOM])
{
    own_fd fd = -1;
    if (is_hidden(path))
        errno = ENOENT;
    else
        fd = image_root_open(root_dirfd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        snprintf(out, HASH_HEX_ROOM, "%s", errno == ENOENT ? "absent" : "unreadable");
        return;
    }
    posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    struct hash hash;
    static char bytes[1 << 17];
    hash_start(&hash);
    for (;;) {
        ssize_t n = read(fd, bytes, sizeof bytes);
        if (n < 0) {
            snprintf(out, HASH_HEX_ROOM, "unreadable");
            return;
        }
        if (n == 0)
            break;
        hash_add(&hash, bytes, (size_t)n);
    }
    hash_end_hex(&hash, out);
}

static void add_line(struct hash *hash, const char *what, const char *path, const char *value)
{
    hash_add(hash, what, strlen(what) + 1);
    hash_add(hash, path, strlen(path) + 1);
    hash_add(hash, value, strlen(value) + 1);
}

struct walk {
    const struct image_owned *owned;
    struct buf path; /* absolute path of the current directory */
    char **found;    /* absolute paths that no package owns, heap */
    size_t count;
};

static void walk_done(struct walk *walk)
{
    for (size_t i = 0; i < walk->count; i++)
        free(walk->found[i]);
    free(walk->found);
    buf_done(&walk->path);
}

static void walk_keep(struct walk *walk)
{
    walk->found = buf_list_room(walk->found, walk->count, sizeof *walk->found);
    walk->found[walk->count++] = buf_strdup(buf_str(&walk->path));
}

static bool ends_in(const char *text, const char *end)
{
    size_t text_len = strlen(text), end_len = strlen(end);
    return text_len >= end_len && strcmp(text + text_len - end_len, end) == 0;
}

static int walk_dir(struct walk *walk, int fd, int depth, struct err *err);

static int walk_entry(struct walk *walk, int dirfd, const struct dirent *entry, int depth,
                      struct err *err)
{
    bool compiled = ends_in(entry->d_name, ".pyc") &&
                    ends_in(buf_str(&walk->path).at, "/__pycache__");
    if (compiled)
        return 0;
    size_t before = walk->path.len;
    if (buf_printf(&walk->path, "/%s", entry->d_name) < 0)
        return err_set(err, ERR_LIMIT, "a path under '%.200s' is too long", walk->path.at);
    int rc = 0;
    int fd = -1;
    bool hidden = mounts_hide(&mounts, walk->path.at);
    if (hidden)
        ; /* boxes do not see it */
    else if (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN)
        fd = openat(dirfd, entry->d_name,
                    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0)
        rc = walk_dir(walk, fd, depth + 1, err);
    else if (!hidden && !image_owned_has(walk->owned, walk->path.at))
        walk_keep(walk);
    walk->path.len = before;
    walk->path.at[before] = 0;
    if (rc == 0 && walk->count > UNOWNED_MAX)
        return err_set(err, ERR_LIMIT, "more than %d files in '%.200s' belong to no package",
                       UNOWNED_MAX, walk->path.at);
    return rc;
}

/* Takes fd over. */
static int walk_dir(struct walk *walk, int fd, int depth, struct err *err)
{
    own_dirp dir = fdopendir(fd);
    if (!dir || depth > DEPTH_MAX) {
        err_set(err, ERR_LIMIT, "'%.200s' is nested deeper than %d", walk->path.at, DEPTH_MAX);
        if (!dir)
            close(fd);
        return -1;
    }
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (walk_entry(walk, fd, entry, depth, err) < 0)
            return -1;
    }
    return 0;
}

static void hash_found(int root_dirfd, const char *path, struct hash *hash)
{
    char value[PATH_MAX];
    own_fd fd = image_root_open(root_dirfd, path + 1, O_PATH | O_NOFOLLOW);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0) {
        add_line(hash, "other", path, "absent");
    } else if (S_ISLNK(st.st_mode)) {
        ssize_t n = readlinkat(fd, "", value, sizeof value - 1);
        value[n < 0 ? 0 : n] = 0;
        add_line(hash, "link", path, value);
    } else if (S_ISREG(st.st_mode)) {
        file_hash(root_dirfd, path + 1, value);
        add_line(hash, "file", path, value);
    } else {
        add_line(hash, "other", path, "special");
    }
}

static int hash_unowned(int root_dirfd, const struct dirs *dirs, struct hash *hash, struct err *err)
{
    attr_cleanup(image_owned_done) struct image_owned owned = IMAGE_OWNED_INIT;
    char *prefixes[DIRS_MAX];
    for (size_t i = 0; i < dirs->count; i++) {
        own_buf prefix = BUF_INIT(600);
        buf_printf(&prefix, "/%s/", dirs->at[i]);
        prefixes[i] = buf_take(&prefix);
    }
    int rc = image_owned_read(root_dirfd, (const char *const *)prefixes, dirs->count, &owned, err);
    for (size_t i = 0; i < dirs->count; i++)
        free(prefixes[i]);

    attr_cleanup(walk_done) struct walk walk = { .owned = &owned, .path = BUF_INIT(PATH_MAX) };
    for (size_t i = 0; rc == 0 && i < dirs->count; i++) {
        int fd = is_hidden(dirs->at[i])
                     ? -1
                     : image_root_open(root_dirfd, dirs->at[i], O_RDONLY | O_DIRECTORY);
        if (fd < 0)
            continue;
        walk.path.len = 0;
        buf_printf(&walk.path, "/%s", dirs->at[i]);
        rc = walk_dir(&walk, fd, 0, err);
    }
    if (rc < 0)
        return err_wrap(err, "hash image 'host'");
    if (walk.count > 0)
        qsort(walk.found, walk.count, sizeof *walk.found, by_text);
    for (size_t i = 0; i < walk.count; i++)
        hash_found(root_dirfd, walk.found[i], hash);
    return 0;
}

/* A hidden path may cover files of a package: dpkg's status does not show that. */
static void add_hidden(struct hash *hash)
{
    const char *at = mounts.hidden, *end = at + mounts.len;
    for (; at < end; at += strlen(at) + 1) {
        if (strcmp(at, MOUNTS_LOCAL) != 0)
            add_line(hash, "hidden", at, "");
    }
}

int image_digest_compute(int root_dirfd, char out[IMAGE_DIGEST_ROOM], struct err *err)
{
    struct hash hash;
    char value[HASH_HEX_ROOM];
    hash_start(&hash);
    if (mounts_read(&mounts) < 0)
        return err_sys(err, "read '/proc/self/mountinfo'");
    add_line(&hash, "image", "host", "1");
    add_hidden(&hash);
    file_hash(root_dirfd, STATUS_FILE, value);
    add_line(&hash, "dpkg", STATUS_FILE, value);
    for (size_t i = 0; i < array_len(other_status); i++) {
        file_hash(root_dirfd, other_status[i], value);
        if (strcmp(value, "absent") != 0)
            add_line(&hash, "packages", other_status[i], value);
    }
    for (size_t i = 0; i < array_len(interpreters); i++) {
        file_hash(root_dirfd, interpreters[i], value);
        add_line(&hash, "interpreter", interpreters[i], value);
    }
    attr_cleanup(dirs_done) struct dirs dirs = { .count = 0 };
    find_dirs(root_dirfd, &dirs);
    if (hash_unowned(root_dirfd, &dirs, &hash, err) < 0)
        return -1;
    hash_end_hex(&hash, value);
    snprintf(out, IMAGE_DIGEST_ROOM, "sha256:%s", value);
    return 0;
}

static void add_stat(int root_dirfd, const char *path, struct hash *hash)
{
    char value[200] = "absent";
    own_fd fd = image_root_open(root_dirfd, path, O_PATH);
    struct stat st;
    if (fd >= 0 && fstat(fd, &st) == 0)
        snprintf(value, sizeof value, "%ju:%ju %jd %jd.%09ld %jd.%09ld", (uintmax_t)st.st_dev,
                 (uintmax_t)st.st_ino, (intmax_t)st.st_size, (intmax_t)st.st_mtim.tv_sec,
                 st.st_mtim.tv_nsec, (intmax_t)st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
    add_line(hash, "stat", path, value);
}

void image_digest_key(int root_dirfd, char out[IMAGE_KEY_ROOM])
{
    struct hash hash;
    hash_start(&hash);
    add_line(&hash, "key", "host", "1");
    if (mounts_read(&mounts) < 0)
        mounts.len = 0; /* image_digest_compute reports the error */
    add_hidden(&hash);
    add_stat(root_dirfd, STATUS_FILE, &hash);
    for (size_t i = 0; i < array_len(other_status); i++)
        add_stat(root_dirfd, other_status[i], &hash);
    for (size_t i = 0; i < array_len(interpreters); i++)
        add_stat(root_dirfd, interpreters[i], &hash);
    attr_cleanup(dirs_done) struct dirs dirs = { .count = 0 };
    find_dirs(root_dirfd, &dirs);
    for (size_t i = 0; i < dirs.count; i++)
        add_stat(root_dirfd, dirs.at[i], &hash);
    hash_end_hex(&hash, out);
}
