/* A walk over a tree in a fixed order: names by their bytes, folders before what is in them. No
 * link is followed. */
#include "image/store/store_int.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"

struct at {
    const struct image_walk *walk;
    struct buf path;
    int64_t entries;
};

static void at_done(struct at *at)
{
    buf_done(&at->path);
}

static int walk_folder(struct at *at, int dirfd, int depth, struct err *err);

static int walk_below(struct at *at, int dirfd, const char *name, const struct stat *st, int depth,
                      struct err *err)
{
    own_fd fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return image_store_sys(err, "open the folder '%.200s' of an image", at->path.at);
    if (walk_folder(at, fd, depth + 1, err) < 0)
        return -1;
    return at->walk->left ? at->walk->left(at->walk->user, fd, st, err) : 0;
}

static int walk_entry(struct at *at, int dirfd, const char *name, int depth, struct err *err)
{
    struct stat st;
    size_t before = at->path.len;
    if (buf_printf(&at->path, "%s%s", before > 0 ? "/" : "", name) < 0)
        return err_set(err, ERR_LIMIT, "a path below '%.200s' has over %d bytes", at->path.at,
                       PATH_MAX - 1);
    if (++at->entries > IMAGE_ENTRIES_MAX)
        return err_set(err, ERR_LIMIT, "the image has more than %d entries", IMAGE_ENTRIES_MAX);
    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return image_store_sys(err, "look at '%.200s' of an image", at->path.at);
    if (at->walk->see(at->walk->user, dirfd, name, &st, buf_str(&at->path), err) < 0 ||
        (S_ISDIR(st.st_mode) && walk_below(at, dirfd, name, &st, depth, err) < 0))
        return -1;
    at->path.len = before;
    if (at->path.at)
        at->path.at[before] = 0;
    return 0;
}

static int walk_folder(struct at *at, int dirfd, int depth, struct err *err)
{
    own_image_names names = IMAGE_NAMES_INIT;
    if (depth > IMAGE_DEPTH_MAX)
        return err_set(err, ERR_LIMIT, "the path '%.100s...' has more than %d parts", at->path.at,
                       IMAGE_DEPTH_MAX);
    if (image_names_read(dirfd, &names) < 0)
        return image_store_sys(err, "read the folder '%.200s' of an image", buf_str(&at->path).at);
    for (size_t i = 0; i < names.count; i++)
        if (walk_entry(at, dirfd, names.at[i], depth, err) < 0)
            return -1;
    return 0;
}

int image_walk(int dirfd, const struct image_walk *walk, struct err *err)
{
    attr_cleanup(at_done) struct at at = { .walk = walk, .path = BUF_INIT(PATH_MAX - 1) };
    return walk_folder(&at, dirfd, 0, err);
}

int image_walk_item(int parent_fd, const char *name, const struct stat *st, struct str path,
                    char target[PATH_MAX], struct image_item *out, struct err *err)
{
    struct image_item item = { .path = path };
    char plain[200];
    if (S_ISDIR(st->st_mode)) {
        item.kind = IMAGE_DIR;
        item.mtime_s = st->st_mtim.tv_sec;
    } else if (S_ISREG(st->st_mode)) {
        item.kind = IMAGE_FILE;
        item.mode = st->st_mode & 0111 ? 0555 : 0444;
        item.size = st->st_size;
        item.mtime_s = st->st_mtim.tv_sec;
    } else if (S_ISLNK(st->st_mode)) {
        item.kind = IMAGE_LINK;
        ssize_t n = readlinkat(parent_fd, name, target, PATH_MAX);
        if (n <= 0 || n >= PATH_MAX)
            return image_store_sys(err, "read a link of an image");
        item.target = (struct str){ target, (size_t)n };
    } else {
        str_plain(plain, sizeof plain, path);
        return err_input(err, "path", plain, "files, folders and links",
                         "'%s' is a device, pipe or socket", plain);
    }
    *out = item;
    return 0;
}

int image_walk_hash(int parent_fd, const char *name, struct str path, char out[HASH_HEX_ROOM],
                    struct err *err)
{
    static char bytes[1 << 17];
    struct hash hash;
    char plain[200];
    own_fd fd = openat(parent_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    str_plain(plain, sizeof plain, path);
    if (fd < 0)
        return image_store_sys(err, "open '%s' of an image", plain);
    hash_start(&hash);
    for (ssize_t n; (n = read(fd, bytes, sizeof bytes)) != 0;) {
        if (n < 0)
            return image_store_sys(err, "read '%s' of an image", plain);
        hash_add(&hash, bytes, (size_t)n);
    }
    hash_end_hex(&hash, out);
    return 0;
}
