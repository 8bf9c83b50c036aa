/* The porter: a process with the occupant's uid, no capabilities and a filter of
 * its own, that writes input files before the start and opens results after the
 * end. The engine speaks to it in fixed-size messages; it never trusts a path:
 * everything is resolved beneath /workspace, with no links, no magic links and
 * no crossing of mounts. No heap.
 *
 * The list is a walk without recursion: a stack of path lengths, one directory
 * open at a time by path, so that depth and descriptors are bounded. */
#include "box/porter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"
#include "box/filter.h"
#include "box/mutate.h"
#include "box/proto.h"

#define LIST_MAX 20000 /* entries told of one box */
#define DEPTH_MAX 64

static int root;

static int open_beneath(const char *path, int flags, mode_t mode)
{
    struct open_how how = {
        .flags = (uint64_t)(flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY),
        .mode = mode,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
    };
    if (mutate(PORTER_RESOLVE)) {
        how.flags &= ~(uint64_t)O_NOFOLLOW;
        how.resolve = 0;
    }
    return (int)syscall(SYS_openat2, root, path, &how, sizeof how);
}

/* Make the directories above a path; the path is restored afterwards. */
static int make_parents(char *path)
{
    for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        /* mkdirat follows links in the middle of a path, but nothing has run in
         * the box yet, so there are none but those we would refuse to open. */
        int failed = mkdirat(root, path, 0755) < 0 && errno != EEXIST;
        int dir = failed ? -1 : open_beneath(path, O_RDONLY | O_DIRECTORY, 0);
        *slash = '/';
        if (dir < 0)
            return -1;
        close(dir);
    }
    return 0;
}

static int put(struct box_porter_call *call, int from)
{
    static char chunk[65536];
    uint64_t left = call->size;
    if (make_parents(call->path) < 0)
        return errno;
    int to = open_beneath(call->path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (to < 0)
        return errno;
    while (left > 0) {
        ssize_t n = read(from, chunk, left < sizeof chunk ? left : sizeof chunk);
        if (n <= 0 || io_write_all(to, chunk, (size_t)n) < 0) {
            int why = n == 0 ? EIO : errno;
            close(to);
            return why;
        }
        left -= (uint64_t)n;
    }
    int why = fchmod(to, call->readonly ? 0444 : 0644) < 0 ? errno : 0;
    close(to);
    return why;
}

static int answer(const struct box_porter_answer *word, const int *fd)
{
    return io_send(PORTER_FD, word, sizeof *word, fd, fd ? 1 : 0);
}

struct dirent_raw {
    uint64_t ino;
    int64_t off;
    unsigned short reclen;
    unsigned char type;
    char name[];
};

struct walk {
    char path[BOX_PATH_MAX];
    size_t len;
    struct {
        size_t len;  /* of the directory's path */
        int64_t off; /* where to go on in it */
    } at[DEPTH_MAX];
    int depth;
    uint32_t told, cut;
};

static uint32_t type_of(mode_t mode)
{
    return S_ISREG(mode)   ? BOX_ENTRY_FILE
           : S_ISDIR(mode) ? BOX_ENTRY_DIR
           : S_ISLNK(mode) ? BOX_ENTRY_LINK
                           : BOX_ENTRY_OTHER;
}

/* Tell one entry; true where it is a directory to go into. */
static bool tell(struct walk *walk, int dir, const char *name, int *broken)
{
    struct box_porter_answer word = { .error = 0 };
    struct stat st;
    size_t len = strlen(name), at = walk->len + (walk->len > 0);
    if (at + len >= sizeof word.path || walk->told >= LIST_MAX ||
        fstatat(dir, name, &st, mutate(PORTER_TYPES) ? 0 : AT_SYMLINK_NOFOLLOW) < 0) {
        walk->cut++;
        return false;
    }
    memcpy(word.path, walk->path, walk->len);
    if (walk->len > 0)
        word.path[walk->len] = '/';
    memcpy(word.path + at, name, len);
    word.path_len = (uint32_t)(at + len);
    word.type = type_of(st.st_mode);
    word.size = (uint64_t)st.st_size;
    walk->told++;
    *broken = answer(&word, NULL) < 0;
    if (word.type != BOX_ENTRY_DIR || walk->depth + 1 >= DEPTH_MAX) {
        walk->cut += word.type == BOX_ENTRY_DIR;
        return false;
    }
    memcpy(walk->path, word.path, at + len);
    return true;
}

/* Read on in the directory on top of the stack, until it ends or a directory
 * within it is to be read first. */
static int step(struct walk *walk)
{
    static union {
        char bytes[4096];
        struct dirent_raw align;
    } room;
    int broken = 0;
    walk->len = walk->at[walk->depth].len;
    walk->path[walk->len] = 0;
    int dir = open_beneath(walk->len ? walk->path : ".", O_RDONLY | O_DIRECTORY, 0);
    if (dir < 0 || lseek(dir, walk->at[walk->depth].off, SEEK_SET) < 0) {
        walk->cut++;
        walk->depth--;
        if (dir >= 0)
            close(dir);
        return 0;
    }
    long n;
    while (!broken && (n = syscall(SYS_getdents64, dir, room.bytes, sizeof room.bytes)) > 0) {
        for (long at = 0; at < n && !broken;) {
            const struct dirent_raw *entry = (const void *)(room.bytes + at);
            at += entry->reclen;
            walk->at[walk->depth].off = entry->off;
            if (strcmp(entry->name, ".") == 0 || strcmp(entry->name, "..") == 0)
                continue;
            if (tell(walk, dir, entry->name, &broken)) {
                size_t len = walk->len + (walk->len > 0) + strlen(entry->name);
                walk->depth++;
                walk->at[walk->depth].len = len;
                walk->at[walk->depth].off = 0;
                close(dir);
                return broken;
            }
            if (walk->told >= LIST_MAX) {
                close(dir);
                walk->cut++;
                walk->depth = -1;
                return broken;
            }
        }
    }
    close(dir);
    walk->depth--;
    return broken;
}

static int list(void)
{
    static struct walk walk;
    memset(&walk, 0, sizeof walk);
    while (walk.depth >= 0) {
        if (step(&walk))
            return -1;
    }
    struct box_porter_answer end = { .last = 1, .cut = walk.cut };
    return answer(&end, NULL);
}

static int show(struct box_porter_call *call)
{
    struct box_porter_answer word = { .error = 0 };
    struct stat st;
    int fd = open_beneath(call->path, O_RDONLY, 0);
    if (fd < 0 || fstat(fd, &st) < 0)
        word.error = errno;
    else if (!mutate(REGULAR_OPEN) && !S_ISREG(st.st_mode))
        word.error = EINVAL;
    else
        word.size = (uint64_t)st.st_size;
    int failed = answer(&word, word.error ? NULL : &fd);
    if (fd >= 0)
        close(fd);
    return failed;
}

static int serve(void)
{
    static struct box_porter_call call;
    int from = -1;
    size_t fds = 0;
    if (io_recv(PORTER_FD, &call, sizeof call, &from, 1, &fds) != 1)
        return -1;
    if (call.path_len >= sizeof call.path)
        return -1;
    call.path[call.path_len] = 0;
    if (call.op == BOX_PORTER_LIST)
        return list();
    if (call.op == BOX_PORTER_OPEN)
        return show(&call);
    if (call.op != BOX_PORTER_PUT || from < 0)
        return -1;
    struct box_porter_answer word = { .error = put(&call, from) };
    close(from);
    return answer(&word, NULL);
}

void porter_run(int report_fd)
{
    struct sock_fprog filter = {
        .len = sizeof box_filter_porter / sizeof box_filter_porter[0],
        .filter = (struct sock_filter *)(uintptr_t)box_filter_porter,
    };
    struct box_report report = { .step = BOX_STEP_NONE };
    root = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0 || (!mutate(SECCOMP_PORTER) &&
                     syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) < 0)) {
        report.step = BOX_STEP_PORTER;
        report.error = errno;
    }
    if (io_send(report_fd, &report, sizeof report, NULL, 0) < 0 || report.step)
        _exit(70);
    close(report_fd);
    while (serve() == 0)
        continue;
    _exit(0);
}
