/* The porter: a process with the occupant's uid, no capabilities and its own filter. It writes
 * input files before the start and reads results after the end; in a session it stays and keeps
 * snapshots (box/files/curator.h). The engine sends it fixed-size messages. It trusts no path:
 * everything is resolved beneath /workspace, without links, magic links and mounts, and may change
 * at any moment. No heap.
 *
 * A list is a walk without recursion that holds at most 64 directories open. It ends by count, by
 * bytes of names or by time. */
#include "box/files/porter.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/own.h"
#include "box/files/curator.h"
#include "box/files/porter_put.h"
#include "box/wall/filter.h"
#include "box/wall/seccomp.h"
#include "box/proto/proto.h"
#include "box/files/tree.h"

#define LIST_MAX 20000 /* entries of one list */
#define LIST_BYTES (2u << 20) /* of their paths */
#define DEPTH_MAX 64
#define LOOKS 64 /* entries between two checks of the clock */

static int root;
static bool layered; /* it is a layer of changes */
static uint32_t tag; /* of the current call */

static int open_beneath(const char *path, int flags, mode_t mode)
{
    return tree_open(root, path, flags, mode);
}

/* Send a head and its bytes as one datagram. */
static int answer_with(struct box_porter_answer *word, const void *bytes, size_t len)
{
    struct iovec parts[] = { { word, sizeof *word }, { (void *)(uintptr_t)bytes, len } };
    struct msghdr letter = { .msg_iov = parts, .msg_iovlen = len > 0 ? 2 : 1 };
    ssize_t n;
    word->tag = tag;
    word->bytes = (uint32_t)len;
    do {
        n = sendmsg(PORTER_FD, &letter, MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    return n < 0 ? -1 : 0;
}

static int answer(struct box_porter_answer *word)
{
    return answer_with(word, NULL, 0);
}

/* --- the list --- */

struct walk {
    char path[BOX_PATH_MAX];
    struct {
        size_t len; /* of the directory's path */
        struct tree_reader reader;
    } at[DEPTH_MAX];
    int depth; /* of the current directory; -1: the walk is over */
    uint32_t looked, met, cut;
    size_t names;     /* bytes of all paths */
    int64_t since_ns; /* 0: list everything */
    int64_t until_ns;
    size_t packed; /* bytes of `told` not sent yet */
    union {
        char told[BOX_PORTER_PART];
        uint64_t align;
    };
};

/* Overlay's mark on a directory of a layer that hides the one below it. */
static bool is_fresh(int dir, const char *name)
{
    char mark = 0;
    own_fd fd = tree_open(dir, name, O_RDONLY | O_DIRECTORY, 0);
    return fd >= 0 && fgetxattr(fd, "user.overlay.opaque", &mark, 1) == 1 && mark == 'y';
}

static uint32_t type_of(int dir, const char *name, const struct stat *st)
{
    if (layered && S_ISCHR(st->st_mode) && st->st_rdev == 0)
        return BOX_ENTRY_GONE;
    if (layered && S_ISDIR(st->st_mode) && is_fresh(dir, name))
        return BOX_ENTRY_FRESH;
    return S_ISREG(st->st_mode)   ? BOX_ENTRY_FILE
           : S_ISDIR(st->st_mode) ? BOX_ENTRY_DIR
           : S_ISLNK(st->st_mode) ? BOX_ENTRY_LINK
                                  : BOX_ENTRY_OTHER;
}

static int send_told(struct walk *walk, struct box_porter_answer *word)
{
    size_t len = walk->packed;
    walk->packed = 0;
    return answer_with(word, walk->told, len);
}

/* Add an entry to `told`; its path is walk->path, with `len` bytes. */
static int tell(struct walk *walk, size_t len, uint32_t type, const struct stat *st)
{
    struct box_porter_answer word = { .error = 0 };
    struct box_porter_entry entry = {
        .size = (uint64_t)st->st_size, .type = type, .mode = st->st_mode & 07777,
        .ctime_ns = clock_ns(st->st_ctim),
        .path_len = (uint32_t)len,
    };
    size_t room = BOX_PORTER_ENTRY_ROOM(len);
    if (walk->since_ns != 0 && (S_ISDIR(st->st_mode) || entry.ctime_ns < walk->since_ns))
        return 0;
    if (walk->packed + room > sizeof walk->told && send_told(walk, &word) < 0)
        return -1;
    char *at = walk->told + walk->packed;
    memset(at, 0, room);
    memcpy(at, &entry, sizeof entry);
    memcpy(at + sizeof entry, walk->path, len);
    walk->packed += room;
    return 0;
}

static void enter(struct walk *walk, int dir, const char *name, size_t len)
{
    int fd = walk->depth + 1 < DEPTH_MAX ? tree_open(dir, name, O_RDONLY | O_DIRECTORY, 0) : -1;
    if (fd < 0) {
        walk->cut |= walk->depth + 1 >= DEPTH_MAX ? BOX_CUT_DEEP
                     : tree_vanished(errno)       ? 0
                     : errno == EXDEV             ? 0 /* a folder of the caller: no result */
                                                  : BOX_CUT_CLOSED;
        return;
    }
    walk->at[++walk->depth].len = len;
    tree_read(&walk->at[walk->depth].reader, fd);
}

static void leave(struct walk *walk)
{
    close(walk->at[walk->depth--].reader.fd);
}

/* Handle one entry, and enter it if it is a directory. */
static int meet(struct walk *walk, const char *name)
{
    struct stat st;
    size_t above = walk->at[walk->depth].len, at = above + (above > 0);
    size_t name_len = strlen(name), len = at + name_len;
    int dir = walk->at[walk->depth].reader.fd;
    if (len >= sizeof walk->path) {
        walk->cut |= BOX_CUT_DEEP;
        return 0;
    }
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0; /* it vanished */
    if (above > 0)
        walk->path[above] = '/';
    memcpy(walk->path + at, name, name_len);
    walk->met++;
    walk->names += len;
    if (tell(walk, len, type_of(dir, name, &st), &st) < 0)
        return -1;
    if (S_ISDIR(st.st_mode))
        enter(walk, dir, name, len);
    return 0;
}

static bool is_enough(struct walk *walk)
{
    if (walk->met >= LIST_MAX || walk->names >= LIST_BYTES)
        walk->cut |= BOX_CUT_COUNT;
    else if (walk->looked++ % LOOKS == 0 && clock_now_ns() >= walk->until_ns)
        walk->cut |= BOX_CUT_TIME;
    else
        return false;
    return true;
}

/* The next entry, or the end of a directory. 0, or -1 when the engine is gone. */
static int step(struct walk *walk)
{
    const char *name = tree_next(&walk->at[walk->depth].reader);
    if (!name) {
        leave(walk);
        return 0;
    }
    if (!is_enough(walk))
        return meet(walk, name);
    while (walk->depth >= 0)
        leave(walk);
    return 0;
}

static int list(const struct box_porter_call *call)
{
    static struct walk walk;
    walk.looked = walk.met = walk.cut = 0;
    walk.names = walk.packed = 0;
    walk.depth = -1;
    walk.since_ns = call->since_ns;
    walk.until_ns = clock_now_ns() + call->within_ns;
    enter(&walk, root, ".", 0);
    while (walk.depth >= 0) {
        if (step(&walk) < 0)
            return -1;
    }
    struct box_porter_answer end = { .last = 1, .cut = walk.cut };
    return send_told(&walk, &end);
}

/* --- content --- */

/* Of a layer of changes a link's target is its content. */
static int read_link(const struct box_porter_call *call)
{
    static char target[BOX_PORTER_PART];
    struct box_porter_answer word = { .error = 0 };
    own_fd link = open_beneath(call->path, O_PATH | O_NOFOLLOW, 0);
    ssize_t n = link < 0 ? -1 : readlinkat(link, "", target, sizeof target);
    if (n < 0)
        word.error = errno;
    else
        word.size = (uint64_t)n;
    return answer_with(&word, target, n > 0 ? (size_t)n : 0);
}

static int read_file(const struct box_porter_call *call)
{
    static char part[BOX_PORTER_PART];
    static int shown = -1; /* the file of the last READ: only the first part opens it */
    struct box_porter_answer word = { .error = 0 };
    struct stat st;
    ssize_t n = -1;
    if (call->path_len > 0) {
        own_close_fd(&shown);
        shown = open_beneath(call->path, O_RDONLY, 0);
        if (layered && shown < 0 && errno == ELOOP)
            return read_link(call);
    }
    size_t want = call->size < sizeof part ? (size_t)call->size : sizeof part;
    if (shown < 0 || fstat(shown, &st) < 0)
        word.error = call->path_len > 0 ? errno : EBADF;
    else if (!S_ISREG(st.st_mode))
        word.error = EINVAL;
    else if ((n = pread(shown, part, want, (off_t)call->offset)) < 0)
        word.error = errno;
    else
        word = (struct box_porter_answer){ .size = (uint64_t)st.st_size, .inode = st.st_ino,
                                           .ctime_ns = clock_ns(st.st_ctim) };
    /* Close it at its end: a large file that was removed keeps its memory while open. */
    if (n < 0 || call->once || call->offset + (uint64_t)n >= word.size)
        own_close_fd(&shown);
    return answer_with(&word, part, n > 0 ? (size_t)n : 0);
}

static int keep(const struct box_porter_call *call)
{
    struct box_porter_answer word = { .error = 0 };
    struct curator_facts facts = { 0 };
    bool empties = call->op == BOX_PORTER_RESTORE && call->snapshot == BOX_STATES;
    if (call->snapshot >= BOX_STATES && !empties)
        return -1;
    if (call->op == BOX_PORTER_FORGET) {
        curator_forget(call->snapshot); /* what cannot be removed now goes with the next snapshot
                                         * of this number */
        return 0;
    }
    if (call->op == BOX_PORTER_SNAP)
        word.error = curator_snap(call->snapshot, call->base, call->compare, &facts);
    else
        word.error = curator_restore(call->snapshot, &word.lost);
    if (curator_outside_changed(call->since_ns))
        word.lost |= BOX_LOST_BIT(OUTSIDE);
    word.changed = facts.changed;
    word.entries = facts.entries;
    return answer(&word);
}

static int carry(const struct box_porter_call *call, int sock)
{
    struct box_porter_answer word = { .error = 0 };
    if (call->snapshot >= BOX_STATES)
        return -1;
    word.error = call->op == BOX_PORTER_SEND ? curator_send(call->snapshot, sock)
                                             : curator_receive(call->snapshot, sock);
    if (curator_outside_changed(call->since_ns))
        word.lost |= BOX_LOST_BIT(OUTSIDE);
    return answer(&word);
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
    if (call.op == BOX_PORTER_READ)
        return read_file(&call);
    if (call.op == BOX_PORTER_PUT && from >= 0 && (resident || !call.upload)) {
        struct box_porter_answer word = { .error = 0 };
        porter_put(root, &call, from, &word);
        return answer(&word);
    }
    if (resident && call.op == BOX_PORTER_REMOVE) {
        struct box_porter_answer word = { .error = tree_unlink(root, call.path) };
        return answer(&word);
    }
    if (resident && call.op == BOX_PORTER_ABANDON) {
        porter_abandon(call.upload);
        return 0;
    }
    bool carries = call.op == BOX_PORTER_SEND || call.op == BOX_PORTER_RECEIVE;
    if (resident && carries && from >= 0)
        return carry(&call, from);
    bool keeps = call.op == BOX_PORTER_SNAP || call.op == BOX_PORTER_RESTORE ||
                 call.op == BOX_PORTER_FORGET;
    return resident && keeps ? keep(&call) : -1;
}

/* The broker puts the STAY message into the socket before any other process can write there. 1:
 * resident, 0: no message, or -1. */
static int take_store(void)
{
    struct box_porter_call call;
    int fds[2] = { -1, -1 };
    size_t count = 0;
    char byte;
    ssize_t n = recv(PORTER_FD, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n <= 0)
        return n < 0 && errno == EAGAIN ? 0 : -1;
    if (io_recv(PORTER_FD, &call, sizeof call, fds, 2, &count) != 1 || call.op != BOX_PORTER_STAY ||
        count != 2)
        return -1;
    curator_open(root, fds[0], fds[1]);
    curator_open_outside();
    return 1;
}

static int confine(bool resident)
{
    return resident ? seccomp_raise(box_filter_curator, 0) : seccomp_raise(box_filter_porter, 0);
}

void porter_run(int report_fd, bool layer)
{
    struct box_report report = { .step = BOX_STEP_NONE };
    root = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    layered = layer;
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
