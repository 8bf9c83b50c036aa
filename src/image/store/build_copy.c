/* Entries that come from elsewhere on the disk: the tree of another image (by links), an earlier
 * file of the same tree (a link), and a folder that pip, npm or dpkg filled (by reading it: the
 * program that wrote it may still hold a file open, and a stored file has no other writer). */
#include "image/store/store_int.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"

static int64_t read_fd(void *user, void *buffer, size_t room, struct err *err)
{
    ssize_t n = read(*(int *)user, buffer, room);
    return n < 0 ? image_store_sys(err, "read a file for an image") : n;
}

static int copy_file(struct image_build *build, int dirfd, const char *name, struct str path,
                     unsigned mode, int64_t mtime_s, struct err *err)
{
    struct stat st;
    char plain[200];
    own_fd fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    str_plain(plain, sizeof plain, path);
    if (fd < 0 || fstat(fd, &st) < 0)
        return image_store_sys(err, "open '%s' for an image", plain);
    if (!S_ISREG(st.st_mode)) /* it was one a moment ago */
        return err_input(err, "path", plain, "files, folders and links", "'%s' is no file", plain);
    return image_build_file(build, path, mode, mtime_s, read_fd, &fd, err);
}

/* --- another image --- */

/* The hash is from the list, so the content need not be read again. */
static int link_file(struct image_build *build, int from, const struct image_item *item,
                     struct err *err)
{
    char name[NAME_MAX + 1], path[PATH_MAX];
    struct stat st;
    memcpy(path, item->path.at, item->path.len);
    path[item->path.len] = 0;
    if (image_build_parent(build, item->path, name, err) < 0)
        return -1;
    if (linkat(from, path, build->parent_fd, name, 0) < 0) {
        if (errno != EMLINK)
            return image_store_sys(err, "link '%.200s' of another image", path);
        build->entries--;
        return copy_file(build, from, path, item->path, item->mode, item->mtime_s, err);
    }
    if (fstatat(build->parent_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return image_store_sys(err, "look at '%.200s' of an image", path);
    image_inodes_set(&build->inodes, st.st_ino, item->hash, item->mtime_s);
    return 0;
}

static int copy_item(struct image_build *build, int from, const struct image_item *item,
                     struct err *err)
{
    if (item->kind == IMAGE_DIR)
        return image_build_dir(build, item->path, item->mtime_s, err);
    if (item->kind == IMAGE_LINK)
        return image_build_symlink(build, item->path, item->target, err);
    return link_file(build, from, item, err);
}

int image_build_copy(struct image_build *build, const struct image_entry *from, struct err *err)
{
    own_image_list list = IMAGE_LIST_INIT;
    struct image_item item;
    char hex[HASH_HEX_ROOM];
    if (image_store_hold(build->store, from, &build->from_fd, err) < 0 ||
        image_list_open(build->store, from->hex, &list, err) < 0)
        return -1;
    int rc;
    while ((rc = image_list_next(&list, &item, err)) > 0)
        if (copy_item(build, build->from_fd, &item, err) < 0)
            return -1;
    if (rc < 0)
        return -1;
    hash_end_hex(&list.hash, hex);
    if (!str_is(json_get_str(from->manifest, "list_sha256"), hex))
        return err_set(err, ERR_HOST, "the list of image '%.64s' was changed", from->name);
    build->on_host = from->on_host;
    build->from = json_incref(from->manifest);
    return 0;
}

/* --- another name --- */

int image_build_link(struct image_build *build, struct str path, struct str earlier,
                     struct err *err)
{
    char name[NAME_MAX + 1], plain[200], leaf[NAME_MAX + 1];
    struct stat st;
    if (image_path_check(earlier, err) < 0)
        return -1;
    str_plain(plain, sizeof plain, earlier);
    const char *slash = memrchr(earlier.at, '/', earlier.len);
    size_t above = slash ? (size_t)(slash - earlier.at) : 0, begin = slash ? above + 1 : 0;
    memcpy(leaf, earlier.at + begin, earlier.len - begin);
    leaf[earlier.len - begin] = 0;
    own_fd from = image_path_open(build->tree, (struct str){ earlier.at, above }, /* make= */ false,
                                  /* made= */ NULL, /* user= */ NULL);
    if (from < 0 || fstatat(from, leaf, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
        return err_input(err, "path", plain, "an earlier file of the image",
                         "a hard link leads to '%s', which is no earlier file", plain);
    if (str_eq(path, earlier))
        return 0;
    if (image_build_parent(build, path, name, err) < 0)
        return -1;
    int linked = linkat(from, leaf, build->parent_fd, name, 0);
    if (linked < 0 && errno == EEXIST) {
        /* The folder of `earlier` may be in what makes way. */
        if (image_build_clear(build, name, err) < 0)
            return -1;
        linked = linkat(from, leaf, build->parent_fd, name, 0);
    }
    if (linked < 0 && errno == EMLINK) {
        build->entries--;
        return copy_file(build, from, leaf, path, st.st_mode, st.st_mtim.tv_sec, err);
    }
    return linked < 0 ? image_store_sys(err, "link '%s' again in an image", plain) : 0;
}

/* --- a folder of the disk --- */

struct take {
    struct image_build *build;
    struct str at;
    int64_t mtime_s;
};

static int take_entry(void *user, int parent_fd, const char *name, const struct stat *st,
                      struct str below, struct err *err)
{
    const struct take *take = user;
    char target[PATH_MAX];
    struct image_item item;
    own_buf path = BUF_INIT(PATH_MAX - 1);
    if (image_walk_item(parent_fd, name, st, below, target, &item, err) < 0)
        return -1;
    if (buf_add_str(&path, take->at) < 0 || (take->at.len > 0 && buf_add_text(&path, "/") < 0) ||
        buf_add_str(&path, below) < 0)
        return err_set(err, ERR_LIMIT, "a path below '%.200s' has over %d bytes", path.at,
                       PATH_MAX - 1);
    if (item.kind == IMAGE_DIR)
        return image_build_dir(take->build, buf_str(&path), take->mtime_s, err);
    if (item.kind == IMAGE_LINK)
        return image_build_symlink(take->build, buf_str(&path), item.target, err);
    return copy_file(take->build, parent_fd, name, buf_str(&path), st->st_mode, take->mtime_s, err);
}

int image_build_take(struct image_build *build, int folder_fd, struct str at, int64_t mtime_s,
                     struct err *err)
{
    struct take take = { .build = build, .at = at, .mtime_s = mtime_s };
    const struct image_walk walk = { .see = take_entry, .user = &take };
    if (at.len > 0 && image_build_dir(build, at, mtime_s, err) < 0)
        return -1;
    return image_walk(folder_fd, &walk, err);
}
