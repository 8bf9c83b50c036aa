/* The space that images take. A file is counted once, however many names it has: as an image's own
 * if no other image has it, else as shared. */
#include "image/store/store_int.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"

#define FOLDER (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define SHARED (-1)

struct usage {
    struct image_inodes owners; /* mtime_s: the number of the only image, or SHARED */
    struct image_inodes seen;   /* of this image */
    int64_t image, own, shared;
};

static void usage_done(struct usage *usage)
{
    image_inodes_done(&usage->owners);
    image_inodes_done(&usage->seen);
}

static int see_owner(void *user, int parent_fd, const char *name, const struct stat *st,
                     struct str path, struct err *err)
{
    struct usage *usage = user;
    (void)parent_fd;
    (void)name;
    (void)path;
    (void)err;
    if (!S_ISREG(st->st_mode))
        return 0;
    const struct image_inode *known = image_inodes_find(&usage->owners, st->st_ino);
    if (!known || known->mtime_s != usage->image)
        image_inodes_set(&usage->owners, st->st_ino, NULL, known ? SHARED : usage->image);
    return 0;
}

static int see_size(void *user, int parent_fd, const char *name, const struct stat *st,
                    struct str path, struct err *err)
{
    struct usage *usage = user;
    int64_t bytes = 512 * (int64_t)st->st_blocks;
    (void)parent_fd;
    (void)name;
    (void)path;
    (void)err;
    if (!S_ISREG(st->st_mode)) {
        usage->own += bytes;
        return 0;
    }
    if (image_inodes_find(&usage->seen, st->st_ino))
        return 0;
    image_inodes_set(&usage->seen, st->st_ino, NULL, 0);
    const struct image_inode *known = image_inodes_find(&usage->owners, st->st_ino);
    if (known && known->mtime_s == SHARED)
        usage->shared += bytes;
    else
        usage->own += bytes;
    return 0;
}

static int walk_tree(int trees, const char *hex, image_walk_see see, struct usage *usage,
                     struct err *err)
{
    const struct image_walk walk = { .see = see, .user = usage };
    own_fd fd = openat(trees, hex, FOLDER);
    return fd < 0 ? image_store_sys(err, "open the tree of an image") : image_walk(fd, &walk, err);
}

static void add_row(const struct image_store *store, const char *hex, const struct usage *usage,
                    json_t *list)
{
    own_image_entry entry = IMAGE_ENTRY_INIT;
    struct err ignored = ERR_INIT;
    char digest[80];
    snprintf(digest, sizeof digest, "sha256:%.64s", hex);
    if (image_store_find_any(store, digest, &entry, &ignored) < 0)
        return; /* half made, or half removed */
    json_array_append_new(list,
                          json_pack("{s:o,s:s,s:I,s:I}", "name", json_text_or_null(entry.name),
                                    "tree", digest, "own_bytes", (json_int_t)usage->own,
                                    "shared_bytes", (json_int_t)usage->shared));
}

/* Bytes in files/, and those of them that no image has. */
static void sum_files(const struct image_store *store, int64_t *out_all, int64_t *out_unused)
{
    own_image_names folders = IMAGE_NAMES_INIT;
    own_fd files = openat(store->dirfd, "files", FOLDER);
    if (files < 0 || image_names_read(files, &folders) < 0)
        return;
    for (size_t i = 0; i < folders.count; i++) {
        own_image_names names = IMAGE_NAMES_INIT;
        own_fd fd = openat(files, folders.at[i], FOLDER);
        struct stat st;
        if (fd < 0 || image_names_read(fd, &names) < 0)
            continue;
        for (size_t j = 0; j < names.count; j++) {
            if (fstatat(fd, names.at[j], &st, AT_SYMLINK_NOFOLLOW) < 0)
                continue;
            *out_all += 512 * (int64_t)st.st_blocks;
            *out_unused += st.st_nlink == 1 ? 512 * (int64_t)st.st_blocks : 0;
        }
    }
}

int image_store_usage(const struct image_store *store, json_t **out, struct err *err)
{
    attr_cleanup(usage_done) struct usage usage = { 0 };
    own_image_names trees = IMAGE_NAMES_INIT;
    own_fd fd = openat(store->dirfd, "trees", FOLDER);
    int64_t total = 0, unused = 0;
    if (fd < 0 || image_names_read(fd, &trees) < 0)
        return image_store_sys(err, "read the trees of the images");
    for (size_t i = 0; i < trees.count; i++) {
        usage.image = (int64_t)i;
        if (walk_tree(fd, trees.at[i], see_owner, &usage, err) < 0)
            return -1;
    }
    own_json list = json_array();
    for (size_t i = 0; i < trees.count; i++) {
        usage.own = usage.shared = 0;
        image_inodes_done(&usage.seen);
        if (walk_tree(fd, trees.at[i], see_size, &usage, err) < 0)
            return -1;
        add_row(store, trees.at[i], &usage, list);
    }
    sum_files(store, &total, &unused);
    *out = json_pack("{s:O,s:I,s:I}", "images", list, "unused_bytes", (json_int_t)unused,
                     "total_bytes", (json_int_t)total);
    return 0;
}
