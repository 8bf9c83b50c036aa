/* Whole reads and writes, datagrams with descriptors. Every process, also between clone and exec:
 * no heap, no stdio, no locks. */
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#define CLOSE_LEAST 4096
#define CLOSE_MOST (1 << 20)

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#define MFD_NOEXEC_SEAL 0x0008U
#endif

int io_write_all(int fd, const void *bytes, size_t len)
{
    const char *at = bytes;
    while (len > 0) {
        ssize_t n = write(fd, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

int io_read_all(int fd, void *bytes, size_t len)
{
    char *at = bytes;
    while (len > 0) {
        ssize_t n = read(fd, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            errno = n == 0 ? ENODATA : errno;
            return -1;
        }
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

ssize_t io_read_text(int dir, const char *path, char *text, size_t room)
{
    own_fd fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : read(fd, text, room - 1);
    text[n > 0 ? n : 0] = 0;
    return n;
}

int io_write_text(int dir, const char *path, const char *text)
{
    own_fd fd = openat(dir, path, O_WRONLY | O_CLOEXEC);
    return fd < 0 ? -1 : io_write_all(fd, text, strlen(text));
}

int io_sealed_memfd(const char *name, const void *bytes, size_t len, int executable)
{
    /* Kernels before 6.3 know neither exec flag and refuse it with EINVAL. */
    unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    int fd = memfd_create(name, flags | (executable ? MFD_EXEC : MFD_NOEXEC_SEAL));
    if (fd < 0 && errno == EINVAL)
        fd = memfd_create(name, flags);
    if (fd < 0)
        return -1;
    int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
    if (io_write_all(fd, bytes, len) < 0 || fcntl(fd, F_ADD_SEALS, seals) < 0 ||
        lseek(fd, 0, SEEK_SET) < 0) {
        int saved = errno;
        close(fd);
        errno = saved;
        return -1;
    }
    return fd;
}

int io_place(int *fds, int count, int first, int inherited)
{
    /* By way of numbers above all of them: a new number may be another's old one. */
    for (int i = 0; i < count; i++) {
        if (fds[i] >= 0 && (fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, first + count)) < 0)
            return -1;
    }
    for (int i = 0; i < count; i++) {
        if (fds[i] < 0)
            close(first + i);
        else if (dup3(fds[i], first + i, i < inherited ? 0 : O_CLOEXEC) < 0)
            return -1;
    }
    return 0;
}

int io_close_from(int first)
{
    struct rlimit most;
    if (syscall(SYS_close_range, first, ~0u, 0) == 0)
        return 0;
    if (getrlimit(RLIMIT_NOFILE, &most) < 0)
        return -1;
    /* The limit may have been lowered after descriptors above it were opened: hence the minimum. */
    int end = most.rlim_max < CLOSE_LEAST || most.rlim_max == RLIM_INFINITY ? CLOSE_LEAST
              : most.rlim_max > CLOSE_MOST                                  ? CLOSE_MOST
                                                                            : (int)most.rlim_max;
    for (int fd = first; fd < end; fd++)
        close(fd);
    return 0;
}

void io_close_between(int first, int last)
{
    if (syscall(SYS_close_range, first, last, 0) == 0)
        return;
    for (int fd = first; fd <= last; fd++)
        close(fd);
}

void io_close_all(const int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
}

/* The caller may have closed its standard streams: nothing else may take their numbers. */
int io_keep_alone(int fd)
{
    int kept = fcntl(fd, F_DUPFD_CLOEXEC, 3), nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int i = 0; i < 3; i++)
        if (kept < 0 || nothing < 0 || dup2(nothing, i) < 0)
            return -1;
    io_close_between(3, kept - 1);
    return io_close_from(kept + 1) < 0 ? -1 : kept;
}

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

void io_refuse_fds(int sock)
{
    int saved = errno, off = 0;
    setsockopt(sock, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof off);
    errno = saved;
}

union io_fds_room {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int) * IO_FDS_MAX)];
};

static int send_with(int sock, const void *bytes, size_t len, const int *fds, size_t count,
                     int flags)
{
    union io_fds_room room = { .bytes = { 0 } };
    struct iovec part = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = len };
    struct msghdr msg = { .msg_iov = &part, .msg_iovlen = 1 };
    if (count > IO_FDS_MAX) {
        errno = EINVAL;
        return -1;
    }
    if (count > 0) {
        msg.msg_control = room.bytes;
        msg.msg_controllen = CMSG_SPACE(sizeof(int) * count);
        struct cmsghdr *head = &room.align;
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int) * count);
        memcpy(CMSG_DATA(head), fds, sizeof(int) * count);
    }
    for (;;) {
        ssize_t n = sendmsg(sock, &msg, MSG_NOSIGNAL | flags);
        if (n >= 0)
            return 0;
        if (errno != EINTR)
            return -1;
    }
}

int io_send(int sock, const void *bytes, size_t len, const int *fds, size_t count)
{
    return send_with(sock, bytes, len, fds, count, 0);
}

int io_send_now(int sock, const void *bytes, size_t len, const int *fds, size_t count)
{
    return send_with(sock, bytes, len, fds, count, MSG_DONTWAIT);
}

/* Move received descriptors out of the message; close those that do not fit. */
static size_t take_fds(struct msghdr *msg, int *fds, size_t max, int *too_many)
{
    size_t count = 0;
    for (struct cmsghdr *head = CMSG_FIRSTHDR(msg); head; head = CMSG_NXTHDR(msg, head)) {
        if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(head) + i * sizeof(int), sizeof fd);
            if (count < max) {
                fds[count++] = fd;
            } else {
                close(fd);
                *too_many = 1;
            }
        }
    }
    return count;
}

int io_recv(int sock, void *bytes, size_t len, int *fds, size_t max, size_t *out_count)
{
    union io_fds_room room;
    struct iovec part = { .iov_base = bytes, .iov_len = len };
    struct msghdr msg = {
        .msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = room.bytes,
        .msg_controllen = sizeof room.bytes,
    };
    ssize_t n;
    do {
        n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR);
    for (size_t i = 0; i < max; i++)
        fds[i] = -1;
    if (n < 0)
        return -1;
    int too_many = 0;
    size_t count = take_fds(&msg, fds, max, &too_many);
    if (n == 0 && count == 0)
        return 0;
    if ((size_t)n != len || too_many || (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC))) {
        for (size_t i = 0; i < count; i++) {
            close(fds[i]);
            fds[i] = -1;
        }
        errno = EBADMSG;
        return -1;
    }
    if (out_count)
        *out_count = count;
    return 1;
}
