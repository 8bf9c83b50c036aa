/* Offsets and flags of the open files of a state. A clone shares open files with its original, so
 * a later read or write moves the offset for both. Parking reads offsets and flags in /proc while
 * the original is stopped. Waking restores them by calls in the copy. Runs in the keeper of a
 * session: one thread, no heap, no stdio. */
#include "box/park/park_int.h"

#if INJECT_HERE

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TEXT_MAX 1024
#define FIRST_OWN 3 /* the pipes below lead to the engine, which reports their content */

/* "pos:\t12\nflags:\t0100002\n...": both, or -1. A file with a negative offset cannot be set. */
int park_read_file(const struct park_session *session, pid_t pid, int fd, struct park_file *out)
{
    char text[TEXT_MAX], path[INJECT_PROC_PATH];
    uint64_t offset = 0; /* a directory may have any 63 bits */
    int32_t flags = 0;
    park_fd_path(path, pid, "fdinfo/", fd);
    if (park_read_path(session->proc, path, text, sizeof text) < 0 && errno != E2BIG)
        return -1;
    const char *at = strncmp(text, "pos:\t", 5) == 0 ? text + 5 + (text[5] == '-') : "";
    for (; *at >= '0' && *at <= '9'; at++)
        offset = offset * 10 + (uint64_t)(*at - '0');
    errno = EPROTO;
    if (strncmp(at, "\nflags:\t", 8) != 0)
        return -1;
    for (at += 8; *at >= '0' && *at <= '7' && flags < 1 << 27; at++)
        flags = flags * 8 + (*at - '0');
    *out = (struct park_file){ .offset = (int64_t)offset, .fd = fd, .flags = flags };
    return 0;
}

/* The bit for a kind of file that cannot be restored, or 0. */
static uint32_t lost_of(int fd, uint32_t mode, uint64_t names)
{
    if (S_ISREG(mode) && names == 0)
        return BOX_LOST_BIT(UNNAMED);
    if (S_ISFIFO(mode))
        return fd < FIRST_OWN ? 0 : BOX_LOST_BIT(PIPES);
    if (S_ISSOCK(mode))
        return BOX_LOST_BIT(SOCKETS);
    return (mode & S_IFMT) == 0 ? BOX_LOST_BIT(EVENTS) : 0; /* anonymous inodes have no type */
}

static int note_file(const struct park_session *session, pid_t pid, int fd, struct park_files *out)
{
    char path[INJECT_PROC_PATH];
    struct stat info;
    park_fd_path(path, pid, "fd/", fd);
    if (fstatat(session->proc, path, &info, 0) < 0)
        return -1;
    out->lost |= lost_of(fd, info.st_mode, info.st_nlink);
    if (out->count == PARK_FILES_MAX) {
        out->lost |= BOX_LOST_BIT(POSITIONS);
        return 0;
    }
    struct park_file *file = &out->at[out->count];
    if (park_read_file(session, pid, fd, file) < 0)
        return -1;
    if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))
        file->offset = -1;
    out->count++;
    return 0;
}

int park_note_files(const struct park_session *session, pid_t pid, const struct park_fds *fds,
                    struct park_files *out)
{
    out->count = out->lost = 0;
    for (int fd = 0; fd < PARK_FDS; fd++) {
        if (fds->bit[fd / 64] >> fd % 64 & 1 && fd != session->channel[BOX_WORDS] &&
            fd != session->channel[BOX_REQUESTS] && note_file(session, pid, fd, out) < 0)
            return -1;
    }
    return 0;
}

static bool is_back(const struct park_session *session, pid_t pid, const struct park_file *file)
{
    struct park_file now;
    return park_read_file(session, pid, file->fd, &now) == 0 &&
           !((now.flags ^ file->flags) & PARK_SET_FLAGS) &&
           (file->offset < 0 || now.offset == file->offset);
}

enum inject_end park_restore_files(const struct park_session *session, struct inject *copy,
                                   const struct park_files *files, uint32_t *out_lost)
{
    *out_lost = files->lost;
    for (uint32_t i = 0; i < files->count; i++) {
        const struct park_file *file = &files->at[i];
        const uint64_t fd = (uint64_t)file->fd;
        const struct inject_order orders[] = {
            { SYS_fcntl, { fd, F_SETFL, (uint64_t)(file->flags & PARK_SET_FLAGS) } },
            { SYS_lseek, { fd, (uint64_t)file->offset, SEEK_SET } },
        };
        if (is_back(session, copy->pid, file))
            continue;
        enum inject_end end = park_call_all(copy, orders, file->offset < 0 ? 1 : 2);
        if (end != INJECT_OK && end != INJECT_REFUSED)
            return end;
        if (!is_back(session, copy->pid, file))
            *out_lost |= BOX_LOST_BIT(POSITIONS);
    }
    return INJECT_OK;
}

#endif
