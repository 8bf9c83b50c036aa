/* Attachments. As root the caller's process clones the mount of each descriptor; no path is looked
 * up again, and the mount reaches the broker's namespace as a descriptor. An ordinary user may
 * clone mounts only inside W, and only those of its namespace: there each path is opened anew and
 * compared with the descriptor. attach_mounts runs in the child that becomes the broker: no heap,
 * no stdio. */
#include "box/host/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>
#include <signal.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/mounts.h"
#include "base/own.h"
#include "box/wall/clone.h"

static const char *const kinds[] = {
    [BOX_ATTACH_IMAGES] = "the folder of images",
    [BOX_ATTACH_DIR] = "the folder",
    [BOX_ATTACH_FILE] = "the file",
    [BOX_ATTACH_TREE] = "the folder",
};

static int set_attributes(int tree, bool writable, int user_ns)
{
    struct mount_attr attr = {
        .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (writable ? 0 : MOUNT_ATTR_RDONLY) |
                    (user_ns >= 0 ? MOUNT_ATTR_IDMAP : 0),
        .userns_fd = user_ns >= 0 ? (uint64_t)user_ns : 0,
    };
    return (int)syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attr, sizeof attr);
}

/* --- as root --- */

/* A user namespace whose maps turn the ids of a file's owner into those of the occupant. A process
 * must exist to write them. */
static int map_owner(const struct stat *st, uid_t occupant)
{
    char path[48], map[64];
    int ns = -1, wait[2];
    if (pipe2(wait, O_CLOEXEC) < 0)
        return -1;
    long pid = clone_child(CLONE_NEWUSER, NULL, -1);
    if (pid == 0) {
        char end;
        close(wait[1]);
        while (read(wait[0], &end, 1) < 0 && errno == EINTR)
            continue;
        _exit(0);
    }
    close(wait[0]);
    int failed = pid < 0;
    snprintf(map, sizeof map, "%u %u 1\n", (unsigned)st->st_uid, (unsigned)occupant);
    snprintf(path, sizeof path, "/proc/%ld/uid_map", pid);
    failed = failed || io_write_text(AT_FDCWD, path, map) < 0;
    snprintf(map, sizeof map, "%u %u 1\n", (unsigned)st->st_gid, (unsigned)occupant);
    snprintf(path, sizeof path, "/proc/%ld/gid_map", pid);
    failed = failed || io_write_text(AT_FDCWD, path, map) < 0;
    snprintf(path, sizeof path, "/proc/%ld/ns/user", pid);
    if (!failed)
        ns = open(path, O_RDONLY | O_CLOEXEC);
    int saved = errno;
    close(wait[1]);
    while (pid > 0 && waitpid((pid_t)pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    errno = saved;
    return ns;
}

static int refuse_file_system(const struct attach *one, struct err *err)
{
    char path[PATH_MAX], link[48];
    snprintf(link, sizeof link, "/proc/self/fd/%d", one->from.fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = 0;
    err_set(err, ERR_HOST,
            "the file system of %s '%s' cannot show it with the uid of a box (id-mapped mounts)",
            kinds[one->from.kind], path);
    err_hint(err, "run cupel as the folder's owner instead of as root, or use a folder on ext4, "
                  "xfs, btrfs or tmpfs");
    return -1;
}

static int clone_tree(struct attach *one, uid_t first_uid, struct err *err)
{
    struct stat st;
    one->tree = (int)syscall(SYS_open_tree, one->from.fd, "",
                             OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
    if (one->tree < 0 || fstat(one->from.fd, &st) < 0)
        return err_sys(err, "clone the mount of %s", kinds[one->from.kind]);
    own_fd user_ns = -1;
    if (one->from.kind != BOX_ATTACH_IMAGES) {
        user_ns = map_owner(&st, first_uid + BOOT_ID_OCCUPANT(BOX_ATTACHED));
        if (user_ns < 0)
            return err_sys(err, "map the owner of %s to a box", kinds[one->from.kind]);
    }
    if (set_attributes(one->tree, one->from.writable, user_ns) == 0)
        return 0;
    bool for_all = one->from.kind == BOX_ATTACH_FILE && st.st_mode & S_IROTH;
    if (for_all && set_attributes(one->tree, false, -1) == 0)
        return 0;
    return user_ns >= 0 && (errno == EINVAL || errno == EPERM)
               ? refuse_file_system(one, err)
               : err_sys(err, "make the mount of %s safe", kinds[one->from.kind]);
}

/* --- as an ordinary user --- */

static int note_path(struct attach *one, struct err *err)
{
    char path[PATH_MAX], link[48];
    snprintf(link, sizeof link, "/proc/self/fd/%d", one->from.fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n <= 0 || path[0] != '/')
        return err_sys(err, "find the path of %s", kinds[one->from.kind]);
    path[n] = 0;
    one->path = buf_alloc_zero(1, (size_t)n + 1);
    memcpy(one->path, path, (size_t)n);
    return 0;
}

/* In W. */
static int open_tree_at(const struct attach *one)
{
    struct stat st;
    own_fd tree = (int)syscall(SYS_open_tree, AT_FDCWD, one->path,
                               OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
    if (tree < 0 || fstat(tree, &st) < 0)
        return -1;
    if (st.st_dev != one->dev || st.st_ino != one->ino) {
        errno = ESTALE;
        return -1;
    }
    return set_attributes(tree, one->from.writable, -1) < 0 ? -1 : take_fd(&tree);
}

/* --- both --- */

struct below {
    char path[PATH_MAX];
    size_t len;
    bool found;
};

static int look_below(void *to, const char *path)
{
    struct below *below = to;
    if (strncmp(path, below->path, below->len) == 0 && path[below->len] == '/')
        below->found = true;
    return 0;
}

/* An overlay would show what mounts cover, and the kernel refuses some of them. */
static int refuse_mounts_below(const struct attach *one, struct err *err)
{
    static struct below below;
    char link[48];
    below.found = false;
    snprintf(link, sizeof link, "/proc/self/fd/%d", one->from.fd);
    ssize_t n = readlink(link, below.path, sizeof below.path - 1);
    if (n <= 0)
        return err_sys(err, "find the path of the folder");
    below.path[n] = 0;
    below.len = n == 1 ? 0 : (size_t)n;
    if (mounts_each(look_below, &below) < 0)
        return err_sys(err, "read the mounts below '%s'", below.path);
    if (!below.found)
        return 0;
    err_set(err, ERR_INPUT, "another file system is mounted below the folder '%s'", below.path);
    err_hint(err, "name a folder without mounts below it; findmnt lists them");
    return -1;
}

static int look(struct attach *one, struct err *err)
{
    struct stat st;
    if (fstat(one->from.fd, &st) < 0)
        return err_sys(err, "look at %s", kinds[one->from.kind]);
    bool is_file = one->from.kind == BOX_ATTACH_FILE;
    if (is_file ? !S_ISREG(st.st_mode) : !S_ISDIR(st.st_mode)) {
        err_set(err, ERR_INPUT, "%s to attach is not a %s", kinds[one->from.kind],
                is_file ? "regular file" : "folder");
        return -1;
    }
    one->dev = st.st_dev;
    one->ino = st.st_ino;
    bool is_whole = one->from.kind == BOX_ATTACH_DIR || one->from.kind == BOX_ATTACH_TREE;
    return is_whole ? refuse_mounts_below(one, err) : 0;
}

/* In the order of the broker, whatever the caller's. */
static int collect(struct attach_set *set, const struct box_attach *attach, size_t count)
{
    static const size_t most[] = { 1, 1, BOX_ATTACH_FILES, BOX_ATTACH_TREES };
    for (size_t kind = 0; kind < array_len(most); kind++) {
        size_t found = 0;
        for (size_t i = 0; i < count; i++) {
            if ((size_t)attach[i].kind != kind)
                continue;
            if (++found > most[kind])
                return -1;
            set->at[set->count] = (struct attach){ .from = attach[i], .tree = -1 };
            set->at[set->count++].from.writable &= kind == BOX_ATTACH_DIR;
        }
    }
    return 0;
}

int attach_open(struct attach_set *set, const struct box_attach *attach, size_t count,
                uid_t first_uid, struct err *err)
{
    set->count = 0;
    if (collect(set, attach, count) < 0) {
        err_set(err, ERR_INPUT,
                "more than one folder to work on, %d to show, or %d files, to attach",
                BOX_ATTACH_TREES, BOX_ATTACH_FILES);
        return -1;
    }
    for (size_t i = 0; i < set->count; i++) {
        struct attach *one = &set->at[i];
        if (look(one, err) == 0 &&
            (first_uid ? clone_tree(one, first_uid, err) : note_path(one, err)) == 0)
            continue;
        if (one->from.kind != BOX_ATTACH_IMAGES)
            return -1;
        *err = ERR_INIT;
        own_close_fd(&one->tree); /* a box with an image is refused then */
    }
    return 0;
}

void attach_close(struct attach_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        own_close_fd(&set->at[i].tree);
        free(set->at[i].path);
    }
    set->count = 0;
}

int attach_mounts(const struct attach_set *set, int none, int fds[BOOT_ATTACHED])
{
    for (size_t i = 0; i < set->count; i++) {
        const struct attach *one = &set->at[i];
        fds[i] = one->tree >= 0 ? one->tree : one->path ? open_tree_at(one) : -1;
        if (fds[i] < 0 && one->from.kind != BOX_ATTACH_IMAGES)
            return -1;
        if (fds[i] < 0)
            fds[i] = none;
    }
    return 0;
}

void attach_describe(const struct attach_set *set, struct box_call *setup)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct box_attach *from = &set->at[i].from;
        setup->setup.images += from->kind == BOX_ATTACH_IMAGES;
        setup->setup.folder += from->kind == BOX_ATTACH_DIR ? 1 + from->writable : 0;
        setup->setup.files += from->kind == BOX_ATTACH_FILE;
        setup->setup.trees += from->kind == BOX_ATTACH_TREE;
    }
}
