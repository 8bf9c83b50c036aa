/* Removing images. A name goes at once; what it led to stays until prune, because boxes may use it
 * and other names may lead there. */
#include "image/store/store_int.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"

#define FOLDER (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

int image_store_remove(struct image_store *store, const char *name, struct err *err)
{
    own_image_entry entry = IMAGE_ENTRY_INIT;
    if (image_store_find_any(store, name, &entry, err) < 0)
        return -1;
    own_fd names = openat(store->dirfd, "names", FOLDER);
    if (entry.name[0] && (names < 0 || unlinkat(names, entry.name, 0) < 0 || fsync(names) < 0))
        return image_store_sys(err, "remove the name '%.64s'", entry.name);
    return 0;
}

static bool has_name(const struct image_store *store, const struct image_names *names,
                     const char *hex)
{
    char of_name[IMAGE_HEX_ROOM];
    for (size_t i = 0; i < names->count; i++)
        if (image_name_read(store, names->at[i], of_name) == 0 && strcmp(of_name, hex) == 0)
            return true;
    return false;
}

/* The manifest first: from then on it is no image. */
static bool drop_image(const struct image_store *store, const char *hex)
{
    char path[96];
    snprintf(path, sizeof path, "trees/%.64s", hex);
    own_fd tree = openat(store->dirfd, path, FOLDER);
    if (tree >= 0 && flock(tree, LOCK_EX | LOCK_NB) < 0)
        return false; /* in use */
    snprintf(path, sizeof path, "manifests/%.64s.json", hex);
    return unlinkat(store->dirfd, path, 0) == 0;
}

void image_store_undo_unnamed(const struct image_store *store, int work)
{
    char hex[IMAGE_HEX_ROOM + 1] = "";
    struct err ignored = ERR_INIT;
    own_image_names names = IMAGE_NAMES_INIT;
    if (io_read_text(work, IMAGE_UNNAMED, hex, sizeof hex) < 0)
        return;
    hex[strcspn(hex, "\n")] = 0;
    own_fd turn = image_store_turn(store, &ignored);
    own_fd names_fd = openat(store->dirfd, "names", FOLDER);
    if (turn < 0 || names_fd < 0 || !image_hex_valid(hex) || image_names_read(names_fd, &names) < 0)
        return;
    if (!has_name(store, &names, hex) && drop_image(store, hex))
        image_store_sweep_trees(store, work);
}

static int drop_unnamed(const struct image_store *store, int64_t *out_images, struct err *err)
{
    own_image_names names = IMAGE_NAMES_INIT, manifests = IMAGE_NAMES_INIT;
    own_fd names_fd = openat(store->dirfd, "names", FOLDER);
    own_fd manifests_fd = openat(store->dirfd, "manifests", FOLDER);
    if (names_fd < 0 || manifests_fd < 0 || image_names_read(names_fd, &names) < 0 ||
        image_names_read(manifests_fd, &manifests) < 0)
        return image_store_sys(err, "read the names of the images");
    for (size_t i = 0; i < manifests.count; i++) {
        char *dot = strchr(manifests.at[i], '.');
        if (dot)
            *dot = 0;
        if (image_hex_valid(manifests.at[i]) && !has_name(store, &names, manifests.at[i]))
            *out_images += drop_image(store, manifests.at[i]);
    }
    return 0;
}

/* The mark lets the next command go on where this one was killed. */
static int prune(const struct image_store *store, int work, int64_t *out_images, struct err *err)
{
    own_fd mark = openat(work, "sweep", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    own_fd turn = mark >= 0 ? image_store_turn(store, err) : -1;
    if (mark < 0)
        return image_store_sys(err, "begin to prune");
    if (turn < 0 || drop_unnamed(store, out_images, err) < 0)
        return -1;
    image_store_sweep_trees(store, work);
    return 0;
}

int image_store_prune(struct image_store *store, int64_t *out_bytes, int64_t *out_images,
                      struct err *err)
{
    char id[24];
    int64_t images = 0, bytes = 0;
    own_fd lock = openat(store->dirfd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (lock < 0)
        return image_store_sys(err, "lock the store of images");
    if (flock(lock, LOCK_EX | LOCK_NB) < 0) {
        err_set(err, ERR_BUSY, "an image is being made at this moment");
        err_hint(err, "prune when it is ready");
        return -1;
    }
    own_fd work = image_work_make(store, id, err);
    if (work < 0)
        return -1;
    int rc = prune(store, work, &images, err);
    if (rc == 0)
        bytes = image_files_sweep(store);
    unlinkat(work, "sweep", 0);
    image_work_remove(store, id, work);
    if (rc < 0)
        return -1;
    *out_bytes = bytes;
    *out_images = images;
    return 0;
}
