/* /workspace as a folder of the caller: below a layer of the box's own, read-only, or itself; and
 * places in it that are hidden, read-only, or files of the caller. The content is hostile: every
 * path is resolved beneath /workspace and then held by a descriptor, on which something is mounted.
 * Runs in the box's first process; no heap. */
#include "box/inside/mount_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/own.h"
#include "box/inside/mount_image.h"
#include "box/inside/template.h"
#include "box/proto/places.h"

/* <sys/mount.h> and <linux/mount.h> exclude each other. */
int mount(const char *source, const char *target, const char *type, unsigned long flags,
          const void *data);
int umount2(const char *target, int flags);
#define BIND 4096ul
#define RECURSIVE 16384ul
#define NOSUID_NODEV 6ul
#define DETACH 2

/* Names in the writable part, beside BOX_WORK. */
#define OWN_WORK "mnt/o" /* overlay's own */
#define BELOW "mnt/f" /* the folder, while the overlay is mounted */
#define EMPTY_FOLDER "mnt/h"
#define EMPTY_FILE "mnt/e"

/* --- the folder --- */

/* A detached clone of a mount would be a mount namespace, and the box may have no more. */
static int bind(const char *from, int to)
{
    char at[32];
    snprintf(at, sizeof at, "/proc/self/fd/%d", to);
    return mount(from, at, NULL, BIND | RECURSIVE, NULL);
}

/* `at` is the root of a mount. */
static int make_read_only(int at)
{
    struct mount_attr attr = {
        .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV
    };
    return (int)syscall(SYS_mount_setattr, at, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr,
                        sizeof attr);
}

static enum box_step mount_layer(const struct mount_plan *plan, const char *folder)
{
    static const char options[] = "lowerdir=" BELOW ",upperdir=mnt/" BOX_WORK ",workdir=" OWN_WORK
                                  ",userxattr";
    struct stat st;
    /* Without user attributes on a tmpfs (Linux 6.6) the layer could not say that a new folder
     * hides an old one: removed files would come back. */
    if (setxattr("mnt/" BOX_WORK, "user.cupel", "", 0, 0) < 0 ||
        removexattr("mnt/" BOX_WORK, "user.cupel") < 0)
        return BOX_STEP_FOLDER_XATTR;
    /* The list of mounts shows the path of the lower layer: it is to be no path of the broker. */
    if (mkdir(BELOW, 0700) < 0 || mount(folder, BELOW, NULL, BIND, NULL) < 0)
        return BOX_STEP_FOLDER;
    if (stat(folder, &st) < 0 || chmod("mnt/" BOX_WORK, (st.st_mode & 0777) | 0700) < 0 ||
        mkdir(OWN_WORK, 0700) < 0 || chown(OWN_WORK, plan->occupant_uid, plan->occupant_gid) < 0 ||
        mount("cupel", "workspace", "overlay", NOSUID_NODEV, options) < 0 ||
        umount2(BELOW, DETACH) < 0 || rmdir(BELOW) < 0)
        return BOX_STEP_FOLDER;
    return BOX_STEP_NONE;
}

enum box_step mount_folder(const struct mount_plan *plan)
{
    const uint32_t mode = plan->folder ? plan->folder->mode : BOX_FOLDER_NONE;
    char folder[2 * TEMPLATE_PATH];
    if (mode == BOX_FOLDER_NONE)
        return mount("mnt/" BOX_WORK, "workspace", NULL, BIND, NULL) < 0 ? BOX_STEP_WRITABLE
                                                                         : BOX_STEP_NONE;
    snprintf(folder, sizeof folder, "%s/" MOUNT_FOLDER, plan->place);
    if (mode == BOX_FOLDER_OVERLAY)
        return mount_layer(plan, folder);
    if (mount(folder, "workspace", NULL, BIND, NULL) < 0)
        return BOX_STEP_FOLDER;
    own_fd at = open("workspace", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (at < 0 || (mode == BOX_FOLDER_READ && make_read_only(at) < 0))
        return BOX_STEP_FOLDER;
    return BOX_STEP_NONE;
}

/* --- places --- */

struct work {
    const struct mount_plan *plan;
    int root; /* /workspace, or a tree elsewhere: what paths are relative to */
    unsigned files, trees;
};

static int open_beneath(int dir, const char *path, uint64_t resolve)
{
    struct open_how how = { .flags = O_PATH | O_CLOEXEC,
                            .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | resolve };
    return (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
}

static bool leads_nowhere(int error)
{
    return error == ENOENT || error == ENOTDIR || error == EXDEV || error == ELOOP;
}

/* Opened again, a path leads to the mount that now covers it. */
static int make_place_read_only(const struct work *work, const char *path)
{
    own_fd at = open_beneath(work->root, path, 0);
    return at < 0 ? -1 : make_read_only(at);
}

static int hide(const struct work *work, const char *path)
{
    struct stat st;
    own_fd at = open_beneath(work->root, path, 0);
    if (at < 0)
        return leads_nowhere(errno) ? 0 : -1;
    if (fstat(at, &st) < 0 || bind(S_ISDIR(st.st_mode) ? EMPTY_FOLDER : EMPTY_FILE, at) < 0)
        return -1;
    return make_place_read_only(work, path);
}

static int protect(const struct work *work, const char *path)
{
    char same[32];
    own_fd at = open_beneath(work->root, path, 0);
    if (at < 0)
        return leads_nowhere(errno) ? 0 : -1;
    snprintf(same, sizeof same, "/proc/self/fd/%d", at);
    return bind(same, at) < 0 ? -1 : make_place_read_only(work, path);
}

/* The folder above a path beneath `top`, with missing ones made; *out_name is the last part.
 * `own`: they are the code's. */
static int make_above(const struct work *work, int top, const char *path, bool own,
                      const char **out_name)
{
    char part[256];
    own_fd dir = open_beneath(top, ".", 0);
    for (const char *slash = strchr(path, '/'); dir >= 0 && slash; slash = strchr(path, '/')) {
        if ((size_t)(slash - path) >= sizeof part) {
            errno = ENAMETOOLONG;
            return -1;
        }
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        bool made = mkdirat(dir, part, 0755) == 0;
        if (made ? own && fchownat(dir, part, work->plan->occupant_uid, work->plan->occupant_gid,
                                   AT_SYMLINK_NOFOLLOW) < 0
                 : errno != EEXIST)
            return -1;
        int inner = open_beneath(dir, part, RESOLVE_NO_SYMLINKS);
        own_close_fd(&dir);
        dir = inner;
        path = slash + 1;
    }
    *out_name = path;
    return take_fd(&dir);
}

static int place_file(struct work *work, const char *path)
{
    char from[2 * TEMPLATE_PATH + 16];
    const char *name;
    own_fd dir = make_above(work, work->root, path, /* own= */ true, &name);
    own_fd made = dir < 0 ? -1
                          : openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                                   0444);
    if (made < 0 || fchown(made, work->plan->occupant_uid, work->plan->occupant_gid) < 0)
        return -1;
    own_fd at = open_beneath(dir, name, RESOLVE_NO_SYMLINKS);
    snprintf(from, sizeof from, "%s/" MOUNT_FILE, work->plan->place, work->files++);
    return at < 0 ? -1 : bind(from, at);
}

static int place_tree(struct work *work, int top, const char *path, bool own)
{
    char from[2 * TEMPLATE_PATH + 16];
    const char *name;
    own_fd dir = make_above(work, top, path, own, &name);
    if (dir < 0 || mkdirat(dir, name, 0755) < 0)
        return -1;
    own_fd at = open_beneath(dir, name, RESOLVE_NO_SYMLINKS);
    snprintf(from, sizeof from, "%s/" MOUNT_MORE, work->plan->place, work->trees++);
    return at < 0 ? -1 : bind(from, at);
}

static bool placed_in_box;

bool mount_placed_in_box(void)
{
    return placed_in_box;
}

/* The box's root is its own and still writable; later parts are hidden in the tree. */
static int place_in_box(struct work *work, const char *path)
{
    static int tree = -1;
    placed_in_box = true;
    own_fd top = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (top < 0 || place_tree(work, top, path, /* own= */ false) < 0)
        return -1;
    own_close_fd(&tree);
    tree = open_beneath(top, path, RESOLVE_NO_SYMLINKS);
    work->root = tree;
    return tree < 0 ? -1 : 0;
}

static int make_empty(void)
{
    own_fd file = open(EMPTY_FILE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
    return file < 0 ? -1 : mkdir(EMPTY_FOLDER, 0555);
}

static int put(struct work *work, enum place_kind kind, const char *path)
{
    const uint32_t mode = work->plan->folder->mode;
    if (kind == PLACE_HIDDEN)
        return hide(work, path);
    if (kind == PLACE_READ_ONLY)
        return protect(work, path);
    if (kind == PLACE_IN_BOX)
        return place_in_box(work, path);
    errno = EROFS;
    /* A file of the caller in the caller's own folder would leave an empty one there. */
    if (mode == BOX_FOLDER_READ || mode == BOX_FOLDER_WRITE)
        return -1;
    return kind == PLACE_TREE ? place_tree(work, work->root, path, /* own= */ true)
                              : place_file(work, path);
}

enum box_step mount_places(const struct mount_plan *plan)
{
    static char list[BOX_PLACES_ROOM + 1];
    const char *path;
    enum place_kind kind;
    size_t at = 0, count = 0;
    if (plan->places < 0)
        return BOX_STEP_NONE;
    ssize_t len = pread(plan->places, list, sizeof list, 0);
    errno = E2BIG;
    if (len < 0 || len > (ssize_t)BOX_PLACES_ROOM || make_empty() < 0)
        return BOX_STEP_PLACES;
    own_fd root = open("workspace", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct work work = { .plan = plan, .root = root };
    int more = root < 0 ? -1 : 1;
    while (more > 0 && (more = places_next(list, (size_t)len, &at, &kind, &path)) > 0) {
        errno = E2BIG;
        if (++count > BOX_PLACES_MAX || put(&work, kind, path) < 0)
            return BOX_STEP_PLACES;
        errno = EBADMSG;
    }
    return more < 0 ? BOX_STEP_PLACES : BOX_STEP_NONE;
}
