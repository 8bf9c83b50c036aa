/* Looking at every byte of an image again. The manifest has the hash of the list, the list the hash
 * of every file. A difference marks the image, and every other image that shares the file;
 * the stored file loses its name, so that the next build writes it anew. */
#include "image/store/store_int.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"

#define FOLDER (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

struct check {
    const struct image_store *store;
    struct image_list list;
    char found[200]; /* the path that differs, "" if none does */
    char what[40];
    char hash[HASH_HEX_ROOM]; /* of the stored file that was changed, "" if none was */
    uint64_t inode;
};

static void check_done(struct check *check)
{
    image_list_close(&check->list);
}

/* Ends the walk. */
static int differs(struct check *check, struct str path, const char *what)
{
    str_plain(check->found, sizeof check->found, path);
    snprintf(check->what, sizeof check->what, "%s", what);
    return -1;
}

static int see(void *user, int parent_fd, const char *name, const struct stat *st, struct str path,
               struct err *err)
{
    struct check *check = user;
    struct image_item item, listed;
    char target[PATH_MAX];
    int rc = image_list_next(&check->list, &listed, err);
    if (rc < 0)
        return differs(check, path, "is not in the list");
    int order = rc == 0 ? -1 : image_item_order(path, listed.path);
    if (order != 0)
        return differs(check, order < 0 ? path : listed.path,
                       order < 0 ? "was added" : "is missing");
    if (image_walk_item(parent_fd, name, st, path, target, &item, err) < 0 ||
        item.kind != listed.kind)
        return differs(check, path, "is another kind of file");
    if (item.kind == IMAGE_LINK)
        return str_eq(item.target, listed.target) ? 0 : differs(check, path, "leads elsewhere");
    if ((st->st_mode & 07777) != (item.kind == IMAGE_DIR ? 0755 : listed.mode))
        return differs(check, path, "has other permissions");
    if (item.kind == IMAGE_DIR)
        return 0;
    if (image_walk_hash(parent_fd, name, path, item.hash, err) < 0)
        return differs(check, path, "cannot be read");
    if (strcmp(item.hash, listed.hash) == 0)
        return 0;
    snprintf(check->hash, sizeof check->hash, "%s", listed.hash);
    check->inode = st->st_ino;
    return differs(check, path, "was changed");
}

/* --- the marks --- */

static void mark(const struct check *check, int work, const char *hex, const char *found)
{
    char text[280];
    struct err ignored = ERR_INIT;
    own_fd fd = openat(check->store->dirfd, "bad", FOLDER);
    snprintf(text, sizeof text, "'%s' %s", found, check->what);
    if (fd >= 0)
        (void)!image_path_write(work, fd, hex, str_of(text), &ignored);
}

/* Does this image have the changed file, too? */
static void mark_sharer(const struct check *check, int work, const char *hex)
{
    own_image_list list = IMAGE_LIST_INIT;
    struct image_item item;
    struct err ignored = ERR_INIT;
    char top[80], path[PATH_MAX], plain[200];
    struct stat st;
    snprintf(top, sizeof top, "trees/%.64s", hex);
    own_fd tree = openat(check->store->dirfd, top, FOLDER);
    if (tree < 0 || image_list_open(check->store, hex, &list, &ignored) < 0)
        return;
    while (image_list_next(&list, &item, &ignored) > 0) {
        if (item.kind != IMAGE_FILE || strcmp(item.hash, check->hash) != 0)
            continue;
        memcpy(path, item.path.at, item.path.len);
        path[item.path.len] = 0;
        if (fstatat(tree, path, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_ino != check->inode)
            continue;
        str_plain(plain, sizeof plain, item.path);
        mark(check, work, hex, plain);
        return;
    }
}

/* The names of the changed file in files/ab/. */
static void forget_stored(const struct check *check)
{
    char path[16];
    own_image_names names = IMAGE_NAMES_INIT;
    struct stat st;
    snprintf(path, sizeof path, "files/%.2s", check->hash);
    own_fd fd = openat(check->store->dirfd, path, FOLDER);
    if (fd < 0 || image_names_read(fd, &names) < 0)
        return;
    for (size_t i = 0; i < names.count; i++)
        if (fstatat(fd, names.at[i], &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino == check->inode)
            unlinkat(fd, names.at[i], 0);
}

static void mark_all(const struct check *check, const char *hex)
{
    own_image_names lists = IMAGE_NAMES_INIT;
    struct err ignored = ERR_INIT;
    char id[24];
    own_fd work = image_work_make(check->store, id, &ignored);
    if (work < 0)
        return;
    mark(check, work, hex, check->found);
    own_fd fd = openat(check->store->dirfd, "lists", FOLDER);
    if (check->hash[0] && fd >= 0 && image_names_read(fd, &lists) == 0) {
        for (size_t i = 0; i < lists.count; i++)
            if (image_hex_valid(lists.at[i]) && strcmp(lists.at[i], hex) != 0)
                mark_sharer(check, work, lists.at[i]);
        forget_stored(check);
    }
    image_work_remove(check->store, id, work);
}

static int refuse(const struct check *check, const struct image_entry *entry, struct err *err)
{
    const char *name = entry->name[0] ? entry->name : entry->hex;
    mark_all(check, entry->hex);
    err_input(err, "image", name, "an image as it was made", "image '%.64s' was changed: '%s' %s",
              name, check->found, check->what);
    err_hint(err, "it is refused from now on: make it again, or remove it: 'cupel images rm %.64s'",
             name);
    return -1;
}

static int walk_tree(struct check *check, const struct image_entry *entry, struct err *err)
{
    const struct image_walk walk = { .see = see, .user = check };
    char path[80], hex[HASH_HEX_ROOM];
    struct image_item rest;
    snprintf(path, sizeof path, "trees/%s", entry->hex);
    own_fd tree = openat(check->store->dirfd, path, FOLDER);
    if (tree < 0)
        return differs(check, STR("/"), "is missing");
    if (image_walk(tree, &walk, err) < 0)
        return check->found[0] ? -1 : differs(check, STR("/"), "cannot be read");
    if (image_list_next(&check->list, &rest, err) != 0)
        return differs(check, rest.path, "is missing");
    hash_end_hex(&check->list.hash, hex);
    if (!str_is(json_get_str(entry->manifest, "list_sha256"), hex))
        return differs(check, STR("/"), "has another list than its manifest says");
    return 0;
}

int image_store_verify(struct image_store *store, const struct image_entry *entry, struct err *err)
{
    attr_cleanup(check_done) struct check check = { .store = store, .list = IMAGE_LIST_INIT };
    struct err inner = ERR_INIT;
    own_fd hold = -1;
    if (image_store_hold(store, entry, &hold, err) < 0)
        return -1;
    if (image_list_open(store, entry->hex, &check.list, &inner) < 0) {
        differs(&check, STR("/"), "has no list");
        return refuse(&check, entry, err);
    }
    if (walk_tree(&check, entry, &inner) < 0)
        return refuse(&check, entry, err);
    return 0;
}
