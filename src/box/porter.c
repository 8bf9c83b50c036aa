/* The porter: a process with the occupant's uid, no capabilities and a filter of
 * its own, that writes input files before the start and opens results after the
 * end; of a session, it stays and keeps snapshots (box/curator.h). The engine speaks
 * to it in fixed-size messages; it never trusts a path: everything is resolved
 * beneath /workspace, with no links, no magic links and no crossing of mounts, and
 * may change at any moment. No heap.
 *
 * The list is a walk without recursion: a stack of path lengths, one directory
 * open at a time by path, so that depth and descriptors are bounded. */
#include "box/porter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "box/curator.h"
#include "box/filter.h"
#include "box/mutate.h"
#include "box/proto.h"
#include "box/tree.h"

#define LIST_MAX 20000 /* entries told of one box */
#define DEPTH_MAX 64

static int root;
static uint32_t tag; /* of the call that is served */

static int open_beneath(const char *path, int flags, mode_t mode)
{
    return tree_open(root, path, flags, mode);
}

/* Open the directory above a path, made where it is not there; *out_name is the last
 * component. Step by step, for mkdirat follows links in the middle of a path. */
static int open_parent(char *path, char **out_name)
{
    own_fd dir = open_beneath(".", O_RDONLY | O_DIRECTORY, 0);
    for (char *slash = strchr(path, '/'); dir >= 0 && slash; slash = strchr(path, '/')) {
        *slash = 0;
        bool failed = mkdirat(dir, path, 0755) < 0 && errno != EEXIST;
        int inner = failed ? -1 : tree_open(dir, path, O_RDONLY | O_DIRECTORY, 0);
        own_close_fd(&dir);
        dir = inner;
        path = slash + 1;
    }
    *out_name = path;
    return take_fd(&dir);
}

static int fill(int to, int from, uint64_t left)
{
    static char chunk[65536];
    while (left > 0) {
        ssize_t n = read(from, chunk, left < sizeof chunk ? left : sizeof chunk);
        if (n <= 0 || io_write_all(to, chunk, (size_t)n) < 0)
            return n == 0 ? EIO : errno;
        left -= (uint64_t)n;
    }
    return 0;
}

static int put(struct box_porter_call *call, int from)
{
    char fresh[TREE_NAME_ROOM], *name;
    own_fd dir = open_parent(call->path, &name);
    if (dir < 0)
        return errno;
    if (call->replace)
        tree_new_name(fresh);
    const char *made = call->replace ? fresh : name;
    own_fd to = tree_open(dir, made, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (to < 0)
        return errno;
    if (!call->replace)
        own_close_fd(&dir); /* nothing is held that is not needed */
    int why = fill(to, from, call->size);
    if (!why && fchmod(to, call->readonly ? 0444 : 0644) < 0)
        why = errno;
    if (!why && call->replace && renameat(dir, fresh, dir, name) < 0)
        why = errno;
    if (why && call->replace)
        unlinkat(dir, fresh, 0);
    return why;
}

static int answer(struct box_porter_answer *word, const int *fd)
{
    word->tag = tag;
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
    uint32_t met, cut;
    int64_t since_ns; /* 0: everything is told */
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
    if (at + len >= sizeof word.path || walk->met >= LIST_MAX ||
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
    word.mode = st.st_mode & 07777;
    word.size = (uint64_t)st.st_size;
    word.ctime_ns = st.st_ctim.tv_sec * INT64_C(1000000000) + st.st_ctim.tv_nsec;
    walk->met++;
    bool wanted = walk->since_ns == 0 ||
                  (word.type != BOX_ENTRY_DIR && word.ctime_ns >= walk->since_ns);
    *broken = wanted && answer(&word, NULL) < 0;
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
            if (walk->met >= LIST_MAX) {
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

static int list(const struct box_porter_call *call)
{
    static struct walk walk;
    memset(&walk, 0, sizeof walk);
    walk.since_ns = call->since_ns;
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
    own_fd fd = open_beneath(call->path, O_RDONLY, 0);
    if (fd < 0 || fstat(fd, &st) < 0)
        word.error = errno;
    else if (!mutate(REGULAR_OPEN) && !S_ISREG(st.st_mode))
        word.error = EINVAL;
    else
        word.size = (uint64_t)st.st_size;
    return answer(&word, word.error ? NULL : &fd);
}

static int keep(const struct box_porter_call *call)
{
    struct box_porter_answer word = { .error = 0 };
    struct curator_facts facts = { 0 };
    bool empties = call->op == BOX_PORTER_RESTORE && call->slot == BOX_PLACES;
    if (call->slot >= BOX_PLACES && !empties)
        return -1;
    if (call->op == BOX_PORTER_FORGET) {
        curator_forget(call->slot); /* what cannot go now goes with the next of its number */
        return 0;
    }
    if (call->op == BOX_PORTER_SNAP)
        word.error = curator_snap(call->slot, call->base, call->compare, &facts);
    else
        word.error = curator_restore(call->slot, &word.lost);
    if (curator_outside_changed(call->since_ns))
        word.lost |= BOX_LOST_BIT(OUTSIDE);
    word.changed = facts.changed;
    word.entries = facts.entries;
    return answer(&word, NULL);
}

static int carry(const struct box_porter_call *call, int sock)
{
    struct box_porter_answer word = { .error = 0 };
    if (call->slot >= BOX_PLACES)
        return -1;
    word.error = call->op == BOX_PORTER_SEND ? curator_send(call->slot, sock)
                                             : curator_receive(call->slot, sock);
    if (curator_outside_changed(call->since_ns))
        word.lost |= BOX_LOST_BIT(OUTSIDE);
    return answer(&word, NULL);
}

static int serve(bool resident)
{
    static struct box_porter_call call;
    own_fd from = -1;
    size_t fds = 0;
    if (io_recv(PORTER_FD, &call, sizeof call, &from, 1, &fds) != 1)
        return -1;
    if (call.path_len >= sizeof call.path)
        return -1;
    call.path[call.path_len] = 0;
    tag = call.tag;
    if (call.op == BOX_PORTER_LIST)
        return list(&call);
    if (call.op == BOX_PORTER_OPEN)
        return show(&call);
    if (call.op == BOX_PORTER_PUT && from >= 0) {
        struct box_porter_answer word = { .error = put(&call, from) };
        return answer(&word, NULL);
    }
    bool carries = call.op == BOX_PORTER_SEND || call.op == BOX_PORTER_RECEIVE;
    if (resident && carries && from >= 0)
        return carry(&call, from);
    bool keeps = call.op == BOX_PORTER_SNAP || call.op == BOX_PORTER_RESTORE ||
                 call.op == BOX_PORTER_FORGET;
    return resident && keeps ? keep(&call) : -1;
}

/* What makes a porter resident lies in its socket before anybody else can write there.
 * 1, 0 where there is nothing, or -1. */
static int take_store(void)
{
    struct box_porter_call call;
    int fds[2] = { -1, -1 };
    size_t count = 0;
    char byte;
    ssize_t n = recv(PORTER_FD, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n <= 0)
        return n < 0 && errno == EAGAIN ? 0 : -1;
    if (io_recv(PORTER_FD, &call, sizeof call, fds, 2, &count) != 1 ||
        call.op != BOX_PORTER_STAY || count != 2)
        return -1;
    curator_open(root, fds[0], fds[1]);
    curator_open_outside();
    return 1;
}

static int confine(bool resident)
{
    struct sock_fprog filter = {
        .len = sizeof box_filter_porter / sizeof box_filter_porter[0],
        .filter = (struct sock_filter *)(uintptr_t)box_filter_porter,
    };
    if (resident) {
        filter.len = sizeof box_filter_curator / sizeof box_filter_curator[0];
        filter.filter = (struct sock_filter *)(uintptr_t)box_filter_curator;
    }
    return mutate(SECCOMP_PORTER) ? 0
                                  : (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter);
}

void porter_run(int report_fd)
{
    struct box_report report = { .step = BOX_STEP_NONE };
    root = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int resident = root < 0 ? -1 : take_store();
    if (resident < 0 || confine(resident) < 0) {
        report.step = BOX_STEP_PORTER;
        report.error = errno;
    }
    if (io_send(report_fd, &report, sizeof report, NULL, 0) < 0 || report.step)
        _exit(70);
    close(report_fd);
    while (serve(resident) == 0)
        continue;
    _exit(0);
}
