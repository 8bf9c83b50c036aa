/* Finds the shared memory of a state: later writes to it change the state. The kernel reports it
 * in the memory map of a stopped copy. Runs in the keeper of a session: one thread, no heap, no
 * stdio. */
#include "box/park/park_int.h"

#if INJECT_HERE

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own.h"

#define MAPS_MAX 1024 /* shared mappings to check; with more, every bit is set */
#define NAME_ROOM 4096
#define SHARED_OR_NEXT (0x08u | 0x10u) /* the next shared mapping from an address on */

/* PROCMAP_QUERY of /proc/PID/maps, Linux 6.11 and later; libc's headers may lack it. */
struct map_query {
    uint64_t size, flags, address;
    uint64_t start, end, vma_flags, page_size, offset, inode;
    uint32_t device[2], name_size, build_id_size;
    uint64_t name, build_id;
};
#define MAP_QUERY _IOWR('f', 17, struct map_query)

static bool begins(const char *name, const char *head)
{
    return strncmp(name, head, strlen(head)) == 0;
}

/* Files of the workspace can be compared, and files of the image never change. */
static uint32_t lost_of(const char *name)
{
    static const char deleted[] = " (deleted)";
    const size_t len = strlen(name), tail = sizeof deleted - 1;
    if (len >= tail && strcmp(name + len - tail, deleted) == 0)
        return BOX_LOST_BIT(MEMORY);
    if (begins(name, "/workspace/"))
        return BOX_MAPS_FILES;
    return begins(name, "/usr/") || begins(name, "/lib") ? 0 : BOX_LOST_BIT(MEMORY);
}

/* One query for each shared mapping. -1: this kernel has no such query. */
static int ask_kernel(int maps, uint32_t *out)
{
    static char name[NAME_ROOM];
    struct map_query query;
    uint64_t address = 0;
    for (int i = 0; i < MAPS_MAX; i++, address = query.end) {
        name[0] = 0;
        query = (struct map_query){ .size = sizeof query, .flags = SHARED_OR_NEXT,
                                    .address = address, .name_size = sizeof name,
                                    .name = (uint64_t)(uintptr_t)name };
        /* libc may extend the sign of the request number; the filter wants the exact number. */
        if (syscall(SYS_ioctl, maps, (unsigned long)MAP_QUERY, &query) < 0) {
            if (errno == ENAMETOOLONG) {
                *out |= BOX_MAPS_FILES | BOX_LOST_BIT(MEMORY);
                return 0;
            }
            return errno == ENOENT ? 0 : -1;
        }
        *out |= lost_of(query.name_size ? name : "");
    }
    *out |= BOX_MAPS_FILES | BOX_LOST_BIT(MEMORY);
    return 0;
}

/* "START-END rw-s OFFSET MAJOR:MINOR INODE    NAME". */
static uint32_t lost_of_line(const char *line)
{
    const char *flags = strchr(line, ' ');
    const char *name = strpbrk(line, "/[");
    if (!flags || strnlen(flags, 5) < 5 || flags[4] != 's')
        return 0;
    return lost_of(name ? name : "");
}

static int read_all(int maps, uint32_t *out)
{
    static char text[2 * NAME_ROOM];
    size_t len = 0;
    for (;;) {
        ssize_t n = read(maps, text + len, sizeof text - 1 - len);
        if (n <= 0)
            return (int)n;
        len += (size_t)n;
        text[len] = 0;
        char *line = text, *end;
        while ((end = strchr(line, '\n'))) {
            *end = 0;
            *out |= lost_of_line(line);
            line = end + 1;
        }
        len -= (size_t)(line - text);
        memmove(text, line, len);
        errno = E2BIG;
        if (len == sizeof text - 1)
            return -1;
    }
}

int park_note_memory(const struct park_session *session, pid_t pid, uint32_t *out)
{
    char path[INJECT_PROC_PATH];
    inject_proc_path(path, pid, "maps");
    own_fd maps = openat(session->proc, path, O_RDONLY | O_CLOEXEC);
    if (maps < 0)
        return -1;
    return ask_kernel(maps, out) == 0 ? 0 : read_all(maps, out);
}

#endif
