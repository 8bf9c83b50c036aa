/* The store: its folders, and what dead processes left in them. A process that builds or prunes
 * holds the lock of its folder in work/; when the lock is free, the process is gone, and everything
 * that it made and that is not an image is removed here. */
#include "image/store/store_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/own.h"

#define TOP "images"
#define FOLDER (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define WORK_TRIES 16

/* trees/ is shown to boxes, whose uids are not ours. */
static const struct {
    const char *name;
    mode_t mode;
} folders[] = {
    { "files", 0700 },     { "trees", 0755 }, { "lists", 0700 },
    { "manifests", 0700 }, { "names", 0700 }, { "work", 0700 },
    { "bad", 0700 },
};

void image_store_close(struct image_store *store)
{
    own_close_fd(&store->dirfd);
}

static int make_folders(int dirfd, struct err *err)
{
    for (size_t i = 0; i < array_len(folders); i++) {
        own_fd fd = image_path_folder(dirfd, folders[i].name, folders[i].mode);
        if (fd < 0)
            return image_store_sys(err, "make the folder '%s/%s' in the state folder", TOP,
                                   folders[i].name);
    }
    return 0;
}

int image_store_turn(const struct image_store *store, struct err *err)
{
    own_fd fd = openat(store->dirfd, "manifests", FOLDER);
    if (fd < 0 || flock(fd, LOCK_EX) < 0)
        return image_store_sys(err, "lock the store of images");
    return take_fd(&fd);
}

/* --- work --- */

int image_work_make(const struct image_store *store, char out_id[24], struct err *err)
{
    own_fd all = openat(store->dirfd, "work", FOLDER);
    for (int i = 0; all >= 0 && i < WORK_TRIES; i++) {
        struct stat st;
        hash_random_hex(out_id, 16);
        own_fd fd = image_path_folder(all, out_id, 0700);
        /* A sweep may have found it before it was open, or before it was locked. */
        if (fd < 0 && errno == ENOENT)
            continue;
        if (fd < 0)
            break;
        if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0 && st.st_nlink > 0)
            return take_fd(&fd);
    }
    return image_store_sys(err, "make a folder for a build in the state folder");
}

/* Files that a build stored and that no tree has. Each line is a name below files/. */
static void undo_log(const struct image_store *store, int work)
{
    char line[IMAGE_KEY_MAX + 8];
    struct stat st;
    own_fd files = openat(store->dirfd, "files", FOLDER);
    own_fd fd = openat(work, "log", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    FILE *log = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (!log)
        return;
    take_fd(&fd);
    while (files >= 0 && fgets(line, sizeof line, log)) {
        size_t len = strcspn(line, "\n");
        line[len] = 0;
        /* "ab/HASH...": nothing else was written, but this removes files. */
        if (len < 67 || line[2] != '/' || strspn(line + 3, "0123456789abcdef.") != len - 3)
            continue;
        if (fstatat(files, line, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
            st.st_nlink == 1)
            unlinkat(files, line, 0);
    }
    fclose(log);
}

void image_work_remove(const struct image_store *store, const char *id, int work)
{
    static const char *const trees[] = { "tree", "old", "stage", "new", "text" };
    own_fd all = openat(store->dirfd, "work", FOLDER);
    image_store_undo_unnamed(store, work);
    for (size_t i = 0; i < array_len(trees); i++)
        image_path_remove(work, trees[i]);
    undo_log(store, work);
    if (faccessat(work, "sweep", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        image_files_sweep(store);
    if (all >= 0)
        image_path_remove(all, id);
}

void image_store_sweep_trees(const struct image_store *store, int work)
{
    static const char *const all[] = { "trees", "lists", "bad" };
    for (size_t i = 0; i < array_len(all); i++) {
        own_image_names names = IMAGE_NAMES_INIT;
        own_fd fd = openat(store->dirfd, all[i], FOLDER);
        if (fd < 0 || image_names_read(fd, &names) < 0)
            continue;
        for (size_t j = 0; j < names.count; j++) {
            if (image_manifest_there(store, names.at[j]))
                continue;
            image_path_remove(work, "old");
            if (renameat(fd, names.at[j], work, "old") == 0)
                image_path_remove(work, "old");
        }
    }
}

/* Trees first: their files then have one link, and the logs tell which to remove. */
static void sweep(const struct image_store *store)
{
    own_image_names names = IMAGE_NAMES_INIT;
    struct err ignored = ERR_INIT;
    own_fd all = openat(store->dirfd, "work", FOLDER);
    if (all < 0 || image_names_read(all, &names) < 0)
        return;
    for (size_t i = 0; i < names.count; i++) {
        own_fd work = openat(all, names.at[i], FOLDER);
        if (work < 0) {
            unlinkat(all, names.at[i], 0);
            continue;
        }
        if (flock(work, LOCK_EX | LOCK_NB) < 0)
            continue;
        own_fd turn = image_store_turn(store, &ignored);
        if (turn < 0)
            return;
        image_store_sweep_trees(store, work);
        own_close_fd(&turn);
        image_work_remove(store, names.at[i], work);
    }
}

int64_t image_files_sweep(const struct image_store *store)
{
    own_image_names folders_of = IMAGE_NAMES_INIT;
    int64_t bytes = 0;
    own_fd files = openat(store->dirfd, "files", FOLDER);
    if (files < 0 || image_names_read(files, &folders_of) < 0)
        return 0;
    for (size_t i = 0; i < folders_of.count; i++) {
        own_image_names names = IMAGE_NAMES_INIT;
        own_fd fd = openat(files, folders_of.at[i], FOLDER);
        if (fd < 0 || image_names_read(fd, &names) < 0)
            continue;
        for (size_t j = 0; j < names.count; j++) {
            struct stat st;
            if (fstatat(fd, names.at[j], &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_nlink == 1 &&
                unlinkat(fd, names.at[j], 0) == 0)
                bytes += 512 * (int64_t)st.st_blocks;
        }
        unlinkat(files, folders_of.at[i], AT_REMOVEDIR); /* if it is empty */
    }
    return bytes;
}

int image_store_open(int state_dirfd, bool make, struct image_store *out, struct err *err)
{
    own_image_store store = { .dirfd = make ? image_path_folder(state_dirfd, TOP, 0700)
                                            : openat(state_dirfd, TOP, FOLDER) };
    if (store.dirfd < 0 && !make && errno == ENOENT) {
        err_input(err, "image", NULL, "host", "there are no images yet but 'host'");
        err_hint(err, "'cupel images --help' lists the commands that make one");
        return -1;
    }
    if (store.dirfd < 0)
        return image_store_sys(err, "open the folder '%s' in the state folder", TOP);
    if (make) {
        if (make_folders(store.dirfd, err) < 0)
            return -1;
        sweep(&store);
    }
    out->dirfd = take_fd(&store.dirfd);
    return 0;
}
