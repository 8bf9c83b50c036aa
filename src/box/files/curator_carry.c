/* Sending a snapshot to another session's store: one curator writes it to a stream, another makes
 * it anew. Only in the porter; no heap, no recursion. Both ends are cupel's porters, but the
 * content comes from user code: names, lengths and numbers are checked as hostile. No other process
 * sees the store, so nothing changes meanwhile. */
#include "box/files/curator.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "box/files/curator_attrs.h"
#include "box/files/curator_links.h"
#include "box/files/curator_walk.h"
#include "box/proto/proto.h"

#define CHUNK 65536

enum carried_kind {
    CARRIED_END, CARRIED_FILE, CARRIED_DIR, CARRIED_UP, CARRIED_LINK, CARRIED_FIFO, CARRIED_SOCKET,
    CARRIED_AGAIN /* another name of a file that was sent already; target is its path */
};

/* After it: name_len bytes of the name; for a link target_len bytes; for a file its pieces, each a
 * struct piece and its bytes, until one of length 0; for a file and a directory the attributes. */
struct carried {
    uint32_t kind, mode, name_len, target_len;
    int64_t size, mtime_s, mtime_ns;
    int64_t note; /* directory: the atime's seconds, which hold its mode */
};

struct piece {
    int64_t at, len;
};

static char chunk[CHUNK];

/* --- sending --- */

static int say(int to, const void *bytes, size_t len)
{
    const char *at = bytes;
    while (len > 0) {
        struct iovec part = { (void *)(uintptr_t)at, len };
        struct msghdr letter = { .msg_iov = &part, .msg_iovlen = 1 };
        ssize_t n = sendmsg(to, &letter, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? errno : EPIPE;
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

static int say_piece(int to, int from, off_t at, off_t end)
{
    struct piece head = { at, end - at };
    int error = say(to, &head, sizeof head);
    while (!error && at < end) {
        size_t want = end - at < CHUNK ? (size_t)(end - at) : CHUNK;
        ssize_t n = pread(from, chunk, want, at);
        if (n <= 0)
            return n < 0 ? errno : EIO;
        error = say(to, chunk, (size_t)n);
        at += n;
    }
    return error;
}

static int say_content(int to, int from, off_t size)
{
    const struct piece last = { size, 0 };
    int error = 0;
    for (off_t at = 0; !error && at < size;) {
        off_t data = lseek(from, at, SEEK_DATA);
        if (data < 0 && errno != ENXIO)
            return errno;
        off_t hole = data < 0 ? -1 : lseek(from, data, SEEK_HOLE);
        if (hole <= data || data >= size)
            break;
        error = say_piece(to, from, data, hole < size ? hole : size);
        at = hole;
    }
    return error ? error : say(to, &last, sizeof last);
}

static uint32_t kind_of(mode_t mode)
{
    return S_ISREG(mode)    ? CARRIED_FILE
           : S_ISDIR(mode)  ? CARRIED_DIR
           : S_ISLNK(mode)  ? CARRIED_LINK
           : S_ISFIFO(mode) ? CARRIED_FIFO
           : S_ISSOCK(mode) ? CARRIED_SOCKET
                            : CARRIED_END;
}

/* Path of the current directory, with a slash after each name. */
static struct {
    char text[PATH_MAX];
    size_t len;
} way;

/* In a snapshot with hard links: was this file sent already? Then `word` and `target` tell its
 * path. */
static int find_again(const char *name, const struct stat *st, struct carried *word,
                      char target[PATH_MAX])
{
    const struct curator_link *link = curator_links_find(&curator_by_kept, st->st_ino);
    if (link) {
        word->kind = CARRIED_AGAIN;
        word->target_len = (uint32_t)strlen(curator_links_path(link));
        memcpy(target, curator_links_path(link), word->target_len);
        return 0;
    }
    if (way.len + word->name_len >= PATH_MAX)
        return 0; /* the path is too long to link to */
    memcpy(target, way.text, way.len);
    memcpy(target + way.len, name, word->name_len + 1);
    int error = curator_links_add(&curator_by_kept, st->st_ino, st->st_ino);
    return error ? error
                 : curator_links_set_path(curator_links_find(&curator_by_kept, st->st_ino), target);
}

/* *out_into: the directory to go into next, or -1. */
static int say_entry(int to, int dir, const char *name, bool links, int *out_into)
{
    static char target[PATH_MAX];
    struct stat st;
    int error = 0;
    *out_into = -1;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno;
    struct carried word = { .kind = kind_of(st.st_mode), .mode = st.st_mode & 07777,
                            .name_len = (uint32_t)strlen(name), .size = st.st_size,
                            .mtime_s = st.st_mtim.tv_sec, .mtime_ns = st.st_mtim.tv_nsec,
                            .note = st.st_atim.tv_sec };
    if (word.kind == CARRIED_END)
        return 0;
    if (word.kind == CARRIED_LINK) {
        ssize_t len = readlinkat(dir, name, target, sizeof target);
        if (len < 0 || len == (ssize_t)sizeof target)
            return len < 0 ? errno : ENAMETOOLONG;
        word.target_len = (uint32_t)len;
    }
    if (word.kind == CARRIED_FILE && links)
        error = find_again(name, &st, &word, target);
    error = error ? error : say(to, &word, sizeof word);
    error = error ? error : say(to, name, word.name_len);
    if (error || word.kind == CARRIED_FIFO || word.kind == CARRIED_SOCKET)
        return error;
    if (word.kind == CARRIED_LINK || word.kind == CARRIED_AGAIN)
        return say(to, target, word.target_len);
    own_fd fd = curator_open_kept(dir, name, word.kind == CARRIED_DIR ? O_DIRECTORY : 0);
    if (fd < 0)
        return errno;
    if (word.kind == CARRIED_FILE)
        error = say_content(to, fd, st.st_size);
    error = error ? error : curator_attrs_send(fd, to, say);
    if (!error && word.kind == CARRIED_DIR)
        *out_into = take_fd(&fd);
    return error;
}

/* Append a directory. In a directory whose path is too long, hard links are not found. */
static void go_way(const char *name)
{
    size_t len = strlen(name);
    if (way.len + len + 2 < sizeof way.text) {
        memcpy(way.text + way.len, name, len);
        way.text[way.len + len] = '/';
    }
    way.len += len + 1;
}

static struct tree_reader readers[CURATOR_DEPTH_MAX + 1];

int curator_send(uint32_t snapshot, int to)
{
    const struct carried up = { .kind = CARRIED_UP }, end = { .kind = CARRIED_END };
    int depth = 0, error = 0, top = curator_open_snapshot(snapshot);
    struct stat st;
    if (top < 0 || fstat(top, &st) < 0)
        return errno;
    const struct carried first = { .kind = CARRIED_DIR, .mode = st.st_mode & 07777,
                                   .mtime_s = st.st_mtim.tv_sec, .mtime_ns = st.st_mtim.tv_nsec,
                                   .note = st.st_atim.tv_sec };
    tree_read(&readers[0], top);
    size_t lens[CURATOR_DEPTH_MAX + 1] = { 0 };
    way.len = 0;
    curator_links_clear();
    error = say(to, &first, sizeof first); /* the snapshot itself, without a name */
    error = error ? error : curator_attrs_send(top, to, say);
    while (depth >= 0) {
        const char *name = error ? NULL : tree_next(&readers[depth]);
        int into = -1;
        if (name) {
            way.len = lens[depth];
            error = say_entry(to, readers[depth].fd, name, curator_has_links[snapshot], &into);
            if (into >= 0 && depth == CURATOR_DEPTH_MAX) {
                error = ENAMETOOLONG;
                close(into);
            } else if (into >= 0) {
                go_way(name);
                lens[depth + 1] = way.len;
                tree_read(&readers[++depth], into);
            }
            continue;
        }
        error = error ? error : readers[depth].error;
        close(readers[depth--].fd);
        error = error ? error : say(to, &up, sizeof up);
    }
    return error ? error : say(to, &end, sizeof end);
}

/* --- receiving --- */

static int hear(int from, void *bytes, size_t len)
{
    return io_read_all(from, bytes, len) < 0 ? (errno ? errno : EPIPE) : 0;
}

static int hear_content(int from, int to, const struct carried *word)
{
    if (word->size < 0)
        return EBADMSG;
    for (;;) {
        struct piece head;
        int error = hear(from, &head, sizeof head);
        if (error)
            return error;
        if (head.len == 0)
            return ftruncate(to, word->size) < 0 ? errno : 0;
        if (head.at < 0 || head.len < 0 || head.at > word->size || head.len > word->size - head.at)
            return EBADMSG;
        while (head.len > 0) {
            size_t part = head.len < CHUNK ? (size_t)head.len : CHUNK;
            error = hear(from, chunk, part);
            if (error)
                return error;
            for (size_t done = 0; done < part;) {
                ssize_t n = pwrite(to, chunk + done, part - done, head.at + (off_t)done);
                if (n <= 0)
                    return n < 0 ? errno : EIO;
                done += (size_t)n;
            }
            head.at += (int64_t)part;
            head.len -= (int64_t)part;
        }
    }
}

static int hear_file(int from, int dir, const char *name, const struct carried *word)
{
    const struct timespec times[2] = { { 0, 0 }, { word->mtime_s, word->mtime_ns } };
    own_fd fd = tree_open(dir, name, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd < 0)
        return errno;
    int error = hear_content(from, fd, word);
    error = error ? error : curator_attrs_receive(fd, from, hear);
    if (!error && (fchmod(fd, word->mode & 07777) < 0 || futimens(fd, times) < 0))
        error = errno;
    return error;
}

static int hear_target(int from, const struct carried *word, char target[PATH_MAX])
{
    if (word->target_len == 0 || word->target_len >= PATH_MAX)
        return EBADMSG;
    int error = hear(from, target, word->target_len);
    target[word->target_len] = 0;
    return error;
}

static int hear_link(int from, int dir, const char *name, const struct carried *word)
{
    static char target[PATH_MAX];
    const struct timespec times[2] = { { 0, UTIME_OMIT }, { word->mtime_s, word->mtime_ns } };
    int error = hear_target(from, word, target);
    if (error)
        return error;
    return symlinkat(target, dir, name) < 0 || utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW) < 0
               ? errno
               : 0;
}

/* FIFOs, and notes of sockets, which name no inode of this box. */
static int hear_node(int from, int dir, const char *name, const struct carried *word)
{
    const struct timespec times[2] = { { 0, 0 }, { word->mtime_s, word->mtime_ns } };
    const mode_t type = word->kind == CARRIED_FIFO ? S_IFIFO : S_IFSOCK;
    (void)from;
    return mknodat(dir, name, type | 0600, 0) < 0 ||
                   fchmodat(dir, name, word->mode & 07777, 0) < 0 ||
                   utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW) < 0
               ? errno
               : 0;
}

static int hear_name(int from, const struct carried *word, char name[NAME_MAX + 1])
{
    if (word->name_len == 0 || word->name_len > NAME_MAX)
        return EBADMSG;
    int error = hear(from, name, word->name_len);
    name[word->name_len] = 0;
    if (error)
        return error;
    return memchr(name, '/', word->name_len) || strlen(name) != word->name_len ||
                   strcmp(name, ".") == 0 || strcmp(name, "..") == 0
               ? EBADMSG
               : 0;
}

static uint32_t now_snapshot; /* the snapshot that is being made */

static int hear_again(int from, int dir, const char *name, const struct carried *word)
{
    static char target[PATH_MAX];
    int error = hear_target(from, word, target);
    own_fd top = error ? -1 : curator_open_snapshot(now_snapshot);
    if (error || top < 0)
        return error ? error : errno;
    curator_has_links[now_snapshot] = true;
    return curator_links_make(top, target, dir, name);
}

/* Open directories of the new tree, with the times to set at the end. */
static struct {
    int fd;
    struct timespec times[2];
} open_dirs[CURATOR_DEPTH_MAX + 1];

static int go_into(int from, int *depth, int parent, const char *name, const struct carried *word)
{
    if (*depth >= CURATOR_DEPTH_MAX || mkdirat(parent, name, 0700) < 0)
        return *depth >= CURATOR_DEPTH_MAX ? ENAMETOOLONG : errno;
    int fd = tree_open(parent, name, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0)
        return errno;
    open_dirs[++*depth].fd = fd;
    open_dirs[*depth].times[0] = (struct timespec){ word->note, 0 };
    open_dirs[*depth].times[1] = (struct timespec){ word->mtime_s, word->mtime_ns };
    return curator_attrs_receive(fd, from, hear);
}

static int go_out(int *depth)
{
    int fd = open_dirs[*depth].fd;
    int error = futimens(fd, open_dirs[*depth].times) < 0 ? errno : 0;
    close(fd);
    --*depth;
    return error;
}

static int hear_entry(int from, int *depth, const struct carried *word)
{
    static int (*const makes[])(int from, int dir, const char *name, const struct carried *word) = {
        [CARRIED_FILE] = hear_file, [CARRIED_LINK] = hear_link, [CARRIED_FIFO] = hear_node,
        [CARRIED_SOCKET] = hear_node, [CARRIED_AGAIN] = hear_again,
    };
    char name[NAME_MAX + 1];
    if (word->kind == CARRIED_UP)
        return go_out(depth);
    if (word->kind > CARRIED_AGAIN)
        return EBADMSG;
    int error = hear_name(from, word, name);
    if (error)
        return error;
    int dir = open_dirs[*depth].fd;
    return word->kind == CARRIED_DIR ? go_into(from, depth, dir, name, word)
                                     : makes[word->kind](from, dir, name, word);
}

int curator_receive(uint32_t snapshot, int from)
{
    struct carried word;
    char name[TREE_NAME_ROOM];
    int depth = -1;
    tree_name(name, "", snapshot);
    now_snapshot = snapshot;
    int error = curator_forget(snapshot);
    error = error ? error : hear(from, &word, sizeof word);
    if (!error)
        error = word.kind == CARRIED_DIR ? go_into(from, &depth, curator_dirs.store, name, &word)
                                         : EBADMSG;
    for (uint32_t count = 0; !error; count++) {
        error = count > 2 * CURATOR_ENTRIES_MAX ? E2BIG : hear(from, &word, sizeof word);
        if (!error && word.kind == CARRIED_END)
            error = depth < 0 ? ENODATA : EBADMSG;
        else if (!error)
            error = depth < 0 ? EBADMSG : hear_entry(from, &depth, &word);
    }
    while (depth >= 0)
        close(open_dirs[depth--].fd);
    if (error == ENODATA) /* the end arrived */
        return 0;
    curator_forget(snapshot);
    return error;
}
