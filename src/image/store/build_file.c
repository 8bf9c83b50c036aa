/* Files of a build. Each content is stored once, by its hash, permissions and time, and is a hard
 * link in every tree that has it. A file is written into work/ while it is hashed, and gets its
 * name in files/ when it is whole, so that what has a name there is whole.
 *
 * A stored file with one link belongs to no tree: a killed build left it, perhaps before its bytes
 * reached the disk. It is replaced, not trusted. */
#include "image/store/store_int.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"

#define NEW "new"
#define TRIES 8
#define MTIME_MAX 0x7fffffff /* what every file system keeps */

struct content {
    char hex[HASH_HEX_ROOM];
    unsigned mode;
    int64_t size, mtime_s;
};

static void key_of(const struct content *content, int copy, char out[IMAGE_KEY_MAX])
{
    int n = snprintf(out, IMAGE_KEY_MAX, "%.2s/%s.%o.%lld", content->hex, content->hex,
                     content->mode, (long long)content->mtime_s);
    if (copy > 1)
        snprintf(out + n, IMAGE_KEY_MAX - (size_t)n, ".%d", copy);
}

static bool is_sound(const struct content *content, const struct stat *st)
{
    return S_ISREG(st->st_mode) && st->st_size == content->size &&
           (st->st_mode & 07777) == content->mode && st->st_nlink > 1 &&
           st->st_mtim.tv_sec == content->mtime_s;
}

/* A link to a stored file: 1, 0 if there is none of this key, -1; EMLINK if it has no link left. */
static int link_stored(struct image_build *build, const struct content *content, const char *key,
                       const char *name, struct err *err)
{
    struct stat st;
    for (;;) {
        if (fstatat(build->files, key, &st, AT_SYMLINK_NOFOLLOW) < 0)
            return errno == ENOENT ? 0 : -1;
        if (!is_sound(content, &st)) {
            if (unlinkat(build->files, key, 0) < 0 && errno != ENOENT)
                return -1;
            return 0;
        }
        if (build->links_max > 0 && st.st_nlink >= build->links_max) {
            errno = EMLINK;
            return -1;
        }
        if (linkat(build->files, key, build->parent_fd, name, 0) == 0) {
            image_inodes_set(&build->inodes, st.st_ino, content->hex, content->mtime_s);
            return 1;
        }
        if (errno == ENOENT)
            return 0;
        if (errno != EEXIST)
            return -1;
        if (image_build_clear(build, name, err) < 0)
            return -1;
    }
}

static int reuse(struct image_build *build, const struct content *content, const char *name,
                 int *out_copy, struct err *err)
{
    char key[IMAGE_KEY_MAX];
    for (int copy = 1; copy <= IMAGE_COPIES_MAX; copy++) {
        key_of(content, copy, key);
        errno = 0;
        int rc = link_stored(build, content, key, name, err);
        *out_copy = copy;
        if (rc >= 0)
            return rc;
        if (errno != EMLINK)
            return err->kind != ERR_NONE
                       ? -1
                       : image_store_sys(err, "link '%.200s' into an image", name);
    }
    return err_set(err, ERR_LIMIT, "'%.200s' is in too many images: over %d copies", name,
                   IMAGE_COPIES_MAX);
}

int image_file_reuse(struct image_build *build, const char *name, const char *hex, unsigned mode,
                     int64_t mtime_s, int64_t size, struct err *err)
{
    struct content content = { .mode = mode, .size = size, .mtime_s = mtime_s };
    int copy;
    snprintf(content.hex, sizeof content.hex, "%s", hex);
    return reuse(build, &content, name, &copy, err);
}

/* --- a new file --- */

static int write_log(const struct image_build *build, const char *key)
{
    char line[IMAGE_KEY_MAX + 1];
    int n = snprintf(line, sizeof line, "%s\n", key);
    return io_write_all(build->log, line, (size_t)n);
}

/* A folder is in the place of the new file. */
static int move_in(struct image_build *build, const char *name, struct err *err)
{
    if (renameat(build->work, NEW, build->parent_fd, name) == 0)
        return 0;
    if (errno != EISDIR)
        return -1;
    return image_build_clear(build, name, err) < 0
               ? -1
               : renameat(build->work, NEW, build->parent_fd, name);
}

/* Give work/new its stored name too. 1, 0 if there is such a file already, -1. */
static int name_new(struct image_build *build, const char *key, const char *name, struct err *err)
{
    if (write_log(build, key) < 0)
        return image_store_sys(err, "write the log of a build");
    int linked = linkat(build->work, NEW, build->files, key, 0);
    if (linked < 0 && errno == ENOENT) {
        char folder[3] = { key[0], key[1], 0 };
        if (mkdirat(build->files, folder, 0700) < 0 && errno != EEXIST)
            return image_store_sys(err, "make a folder in the store of images");
        linked = linkat(build->work, NEW, build->files, key, 0);
    }
    if (linked < 0 && errno == EEXIST)
        return 0;
    return linked < 0 ? image_store_sys(err, "store '%.200s' of an image", name) : 1;
}

/* The whole file is in work/new; `copy` is the first key to try. */
static int store_new(struct image_build *build, const struct content *content, int copy,
                     uint64_t inode, const char *name, struct err *err)
{
    char key[IMAGE_KEY_MAX];
    for (int tries = 0; tries < TRIES; tries++) {
        key_of(content, copy, key);
        int rc = name_new(build, key, name, err);
        if (rc > 0 && move_in(build, name, err) < 0)
            return err->kind != ERR_NONE ? -1
                                         : image_store_sys(err, "store '%.200s' of an image", name);
        if (rc > 0)
            image_inodes_set(&build->inodes, inode, content->hex, content->mtime_s);
        if (rc == 0) /* there is one: use it, or replace it */
            rc = reuse(build, content, name, &copy, err);
        if (rc != 0)
            return rc < 0 ? -1 : 0;
    }
    return err_set(err, ERR_BUSY, "other builds store '%.200s' again and again", name);
}

struct source {
    image_build_read read;
    void *user;
    int64_t len; /* bytes in the build's buffer */
    bool ended;
};

/* Fill the build's buffer as far as the source goes. */
static int fill(const struct image_build *build, struct source *source, struct err *err)
{
    source->len = 0;
    while (!source->ended && source->len < IMAGE_BUILD_BYTES) {
        int64_t room = IMAGE_BUILD_BYTES - source->len;
        int64_t n = source->read(source->user, build->bytes + source->len, (size_t)room, err);
        if (n < 0)
            return -1;
        if (n > room)
            return err_set(err, ERR_BUG, "a source gave %lld bytes into room for %lld",
                           (long long)n, (long long)room);
        source->ended = n == 0;
        source->len += n;
    }
    return 0;
}

static int write_rest(struct image_build *build, int fd, struct source *source, struct hash *hash,
                      struct content *content, struct err *err)
{
    for (;;) {
        if (io_write_all(fd, build->bytes, (size_t)source->len) < 0)
            return image_store_sys(err, "write a file of an image");
        content->size += source->len;
        if (source->ended)
            return 0;
        if (fill(build, source, err) < 0)
            return -1;
        hash_add(hash, build->bytes, (size_t)source->len);
    }
}

static int write_new(struct image_build *build, struct source *source, struct hash *hash,
                     const char *name, struct content *content, int copy, struct err *err)
{
    const struct timespec at = { .tv_sec = content->mtime_s };
    struct stat st;
    own_fd fd = openat(build->work, NEW, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return image_store_sys(err, "make a file for an image");
    content->size = 0;
    if (write_rest(build, fd, source, hash, content, err) < 0)
        return -1;
    if (!content->hex[0])
        hash_end_hex(hash, content->hex);
    if (fchmod(fd, content->mode) < 0 || futimens(fd, (struct timespec[]){ at, at }) < 0 ||
        fstat(fd, &st) < 0)
        return image_store_sys(err, "make a file for an image");
    return store_new(build, content, copy, st.st_ino, name, err);
}

int image_build_file(struct image_build *build, struct str path, unsigned mode, int64_t mtime_s,
                     image_build_read read, void *user, struct err *err)
{
    char name[NAME_MAX + 1];
    struct source source = { .read = read, .user = user };
    struct content content = { .mode = mode & 0111 ? 0555 : 0444,
                               .mtime_s = mtime_s < 0 || mtime_s > MTIME_MAX ? 0 : mtime_s };
    struct hash hash;
    int copy = 1;
    if (image_build_parent(build, path, name, err) < 0 || fill(build, &source, err) < 0)
        return -1;
    hash_start(&hash);
    hash_add(&hash, build->bytes, (size_t)source.len);
    if (source.ended) { /* small: perhaps nothing needs to be written */
        hash_end_hex(&hash, content.hex);
        content.size = source.len;
        int rc = reuse(build, &content, name, &copy, err);
        if (rc != 0)
            return rc < 0 ? -1 : 0;
    }
    int rc = write_new(build, &source, &hash, name, &content, copy, err);
    unlinkat(build->work, NEW, 0); /* it has its names, or was not needed, or failed */
    return rc;
}
