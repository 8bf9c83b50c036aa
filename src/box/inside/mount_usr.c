/* A /usr assembled from parts. The kernel refuses an overlay (EINVAL) of a folder with mounts below
 * it that belong to a more privileged owner: the overlay could show what they cover. So the folders
 * above such mounts are made anew on a tmpfs, and their content is mounted piece by piece: folders
 * as overlays, links copied, files bound. A bound file is the host's own inode: two boxes can lock
 * it against each other and see each other's opens; a run then lists `private_files` as missing.
 * Hidden mounts (base/mounts.h) are left out or become empty folders. Runs in the box's first
 * process; no heap but that of opendir. */
#include "box/inside/mount_usr.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own.h"
#include "base/mounts.h"

#define SAFE (MS_NOSUID | MS_NODEV)
#define DEPTH_MAX 32
#define PIECES_MAX 20000
#define OPTIONS "mode=0755,size=16m,nr_inodes=65536"

static struct mounts mounts;
static bool shared;

struct work {
    const char *at; /* path of the box's /usr */
    char path[PATH_MAX]; /* path of the current piece on the host */
    int pieces;
};

int mount_usr_look(void)
{
    return mounts_read(&mounts);
}

bool mount_usr_parted(void)
{
    return mounts.parted;
}

bool mount_usr_shared(void)
{
    return shared;
}

/* Escape a path for overlay's options: colons and commas separate them. */
static int escape(const char *path, char *out, size_t room)
{
    size_t len = 0;
    for (; *path && len + 2 < room; path++) {
        if (strchr(":,\\", *path))
            out[len++] = '\\';
        out[len++] = *path;
    }
    out[len] = 0;
    errno = ENAMETOOLONG;
    return *path ? -1 : 0;
}

int mount_layers(const char *layers, const char *at)
{
    char options[2048];
    if (snprintf(options, sizeof options, "lowerdir=%s", layers) >= (int)sizeof options) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return mount("cupel", at, "overlay", SAFE | MS_RDONLY, options);
}

int mount_overlay(const char *top, const char *below, const char *at)
{
    char layers[2000], escaped[1900];
    if (escape(below, escaped, sizeof escaped) < 0)
        return -1;
    snprintf(layers, sizeof layers, "%.64s:%s", top, escaped);
    return mount_layers(layers, at);
}

static int assemble(struct work *work, size_t len, int depth);

static int mount_folder(struct work *work, size_t len, const char *at, int depth)
{
    const char *top = strcmp(work->path, "/usr/lib") == 0 ? "top/lib" : "top/none";
    if (mkdir(at, 0755) < 0)
        return -1;
    if (mounts_hide(&mounts, work->path))
        return 0;
    if (mounts_part(&mounts, work->path))
        return assemble(work, len, depth + 1);
    /* A folder that this user cannot read stays empty. */
    return mount_overlay(top, work->path, at) < 0 && errno != EACCES ? -1 : 0;
}

static int bind_file(struct work *work, const char *at)
{
    int fd = open(at, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return -1;
    close(fd);
    shared = true;
    return mount(work->path, at, NULL, MS_BIND, NULL);
}

static int copy_link(const struct work *work, const char *at)
{
    char target[PATH_MAX];
    ssize_t n = readlink(work->path, target, sizeof target - 1);
    target[n > 0 ? n : 0] = 0;
    return n < 0 ? -1 : symlink(target, at);
}

/* Mount or copy the piece work->path. */
static int mount_piece(struct work *work, size_t len, int depth)
{
    char at[PATH_MAX + 64];
    struct stat st;
    snprintf(at, sizeof at, "%s%s", work->at, work->path + strlen("/usr"));
    if (lstat(work->path, &st) < 0)
        return errno == ENOENT || errno == EACCES ? 0 : -1;
    if (++work->pieces > PIECES_MAX || depth > DEPTH_MAX) {
        errno = E2BIG;
        return -1;
    }
    if (S_ISDIR(st.st_mode))
        return mount_folder(work, len, at, depth);
    if (mounts_hide(&mounts, work->path))
        return 0;
    if (S_ISLNK(st.st_mode))
        return copy_link(work, at);
    return S_ISREG(st.st_mode) ? bind_file(work, at) : 0;
}

/* Where /usr/lib is no overlay, cupel's own files get an overlay of their own. */
static int mount_own(const struct work *work)
{
    char at[128];
    snprintf(at, sizeof at, "%.64s/lib/cupel", work->at);
    return mkdir(at, 0755) < 0 ? -1 : mount_overlay("top/lib/cupel", "top/none", at);
}

/* Assemble the folder work->path, of `len` bytes, piece by piece. */
static int assemble(struct work *work, size_t len, int depth)
{
    bool lib = strcmp(work->path, "/usr/lib") == 0;
    if (lib && mount_own(work) < 0)
        return -1;
    own_dirp dir = opendir(work->path);
    int failed = !dir && errno != EACCES;
    for (const struct dirent *entry; dir && !failed && (entry = readdir(dir));) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || (lib && !strcmp(name, "cupel")))
            continue;
        int more = snprintf(work->path + len, sizeof work->path - len, "/%s", name);
        if ((size_t)more >= sizeof work->path - len)
            errno = ENAMETOOLONG;
        failed = (size_t)more >= sizeof work->path - len ||
                 mount_piece(work, len + (size_t)more, depth) < 0;
        if (!failed)
            work->path[len] = 0;
    }
    return failed ? -1 : 0;
}

/* Only adds flags: a mount's inherited flags cannot be cleared. */
static int seal(const char *at)
{
    struct {
        uint64_t set, clear, propagation, user_ns;
    } flags = { .set = MS_RDONLY | SAFE }; /* MOUNT_ATTR_* have the same values */
    return (int)syscall(SYS_mount_setattr, AT_FDCWD, at, AT_RECURSIVE, &flags, sizeof flags);
}

int mount_usr(const char *at)
{
    struct work work = { .at = at, .path = "/usr" };
    if (mount("cupel", at, "tmpfs", SAFE, OPTIONS) < 0)
        return -1;
    return assemble(&work, strlen(work.path), 0) < 0 ? -1 : seal(at);
}
