/* Checks a copy by its files in /proc; see park_int.h. Runs in the keeper of a session: one thread,
 * no heap, no stdio. A filter that the code installed could fake the result of a call in the copy.
 * No process in a box can fake these files. */
#include "box/park/park_int.h"

#if INJECT_HERE

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own.h"

#define TEXT_MAX 16384 /* `status` lists the groups of an ordinary user */
#define NUMBERS_MAX 40 /* in a line: a pid namespace has at most 32 levels */
#define NUMBER_MAX (UINT64_C(1) << 40)

int park_read_proc(int proc, pid_t pid, const char *name, char *text, size_t room)
{
    char path[INJECT_PROC_PATH];
    inject_proc_path(path, pid, name);
    return park_read_path(proc, path, text, room);
}

int park_read_path(int proc, const char *path, char *text, size_t room)
{
    size_t len = 0;
    own_fd fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    while (len < room - 1) {
        ssize_t n = read(fd, text + len, room - 1 - len);
        len += n > 0 ? (size_t)n : 0;
        text[len] = 0;
        if (n <= 0)
            return (int)n;
    }
    errno = E2BIG;
    return -1;
}

void park_fd_path(char out[INJECT_PROC_PATH], pid_t pid, const char *folder, int fd)
{
    char name[32], digits[12];
    size_t count = 0, at = strlen(folder);
    memcpy(name, folder, at);
    for (int rest = fd; rest || !count; rest /= 10)
        digits[count++] = (char)('0' + rest % 10);
    while (count)
        name[at++] = digits[--count];
    name[at] = 0;
    inject_proc_path(out, pid, name);
}

/* --- descriptors --- */

struct entry { /* as getdents64 gives it */
    uint64_t ino;
    int64_t next;
    uint16_t len;
    uint8_t type;
    char name[];
};

static int add_fd(struct park_fds *out, const char *name)
{
    uint32_t fd = 0;
    if (*name < '0' || *name > '9') /* "." and ".." */
        return 0;
    for (; *name >= '0' && *name <= '9' && fd < PARK_FDS; name++)
        fd = fd * 10 + (uint32_t)(*name - '0');
    errno = EMFILE;
    if (fd >= PARK_FDS)
        return -1;
    out->bit[fd / 64] |= UINT64_C(1) << fd % 64;
    return 0;
}

int park_list_fds(int proc, pid_t pid, struct park_fds *out)
{
    char path[INJECT_PROC_PATH];
    _Alignas(struct entry) char bytes[4096];
    long len;
    *out = (struct park_fds){ 0 };
    inject_proc_path(path, pid, "fd");
    own_fd dir = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return -1;
    while ((len = syscall(SYS_getdents64, dir, bytes, sizeof bytes)) > 0) {
        for (long at = 0; at < len;) {
            const struct entry *entry = (const void *)(bytes + at);
            if (add_fd(out, entry->name) < 0)
                return -1;
            at += entry->len;
        }
    }
    return len < 0 ? -1 : 0;
}

static bool is_same_file(int proc, pid_t pid, int fd, int ours)
{
    char path[INJECT_PROC_PATH];
    struct stat theirs, own;
    park_fd_path(path, pid, "fd/", fd);
    return fstatat(proc, path, &theirs, 0) == 0 && fstat(ours, &own) == 0 &&
           theirs.st_dev == own.st_dev && theirs.st_ino == own.st_ino;
}

/* --- the text of `status` and its like --- */

/* Read the numbers of the line that begins with `label`, and return their count. */
static size_t numbers_of(const char *text, const char *label, uint64_t out[NUMBERS_MAX])
{
    const size_t len = strlen(label);
    size_t count = 0;
    while (*text && strncmp(text, label, len) != 0)
        text = *strchrnul(text, '\n') ? strchrnul(text, '\n') + 1 : "";
    for (text += *text ? len : 0; *text && *text != '\n' && count < NUMBERS_MAX;) {
        if (*text < '0' || *text > '9') {
            text++;
            continue;
        }
        for (out[count] = 0; *text >= '0' && *text <= '9' && out[count] < NUMBER_MAX; text++)
            out[count] = out[count] * 10 + (uint64_t)(*text - '0');
        count++;
    }
    return count;
}

static bool last_is(const char *text, const char *label, uint64_t want)
{
    uint64_t got[NUMBERS_MAX];
    size_t count = numbers_of(text, label, got);
    return count > 0 && got[count - 1] == want;
}

static bool has_uids(const char *text, uint64_t real, uint64_t effective, uint64_t saved)
{
    uint64_t got[NUMBERS_MAX];
    return numbers_of(text, "Uid:", got) == 4 && got[0] == real && got[1] == effective &&
           got[2] == saved && got[3] == effective;
}

/* Kernels before 5.9 do not report the number of filters. */
static bool has_own_filter(const char *text, int filters)
{
    uint64_t got[NUMBERS_MAX];
    return filters > 0 && numbers_of(text, "Seccomp_filters:", got) == 1 &&
           got[0] != (uint64_t)filters;
}

int park_own_filters(int proc)
{
    static char text[TEXT_MAX];
    uint64_t got[NUMBERS_MAX];
    if (park_read_path(proc, "self/status", text, sizeof text) < 0 ||
        numbers_of(text, "Seccomp_filters:", got) != 1)
        return 0;
    return (int)got[0];
}

/* "4:pids,memory:/some/path/NAME": the last part of it, or NULL. */
static const char *group_of(const char *text, const char *controller)
{
    const size_t len = strlen(controller);
    for (const char *line = text; *line;) {
        const char *end = strchrnul(line, '\n'), *at = strchrnul(line, ':');
        while (at < end && (*at == ':' || *at == ',') && at[1] != '/') {
            if (strncmp(++at, controller, len) == 0 && (at[len] == ':' || at[len] == ','))
                return memrchr(at, '/', (size_t)(end - at));
            at += strcspn(at, ":,\n");
        }
        line = *end ? end + 1 : end;
    }
    return NULL;
}

static bool is_in_group(const char *text, const char *controller, const char *name)
{
    const size_t len = strlen(name);
    const char *last = group_of(text, controller);
    return last && strncmp(last + 1, name, len) == 0 && (last[1 + len] == '\n' || !last[1 + len]);
}

static bool is_in_groups(const struct park_session *session, const struct park_claim *claim)
{
    static char text[TEXT_MAX];
    const struct park_tasks *tasks = claim->tasks;
    if (tasks->count == 0 || !tasks->name)
        return true;
    bool in = park_read_proc(session->proc, claim->pid, "cgroup", text, sizeof text) == 0;
    for (size_t i = 0; in && i < tasks->count; i++)
        in = is_in_group(text, tasks->controller[i], tasks->name);
    return in;
}

static bool is_who_it_should_be(const struct park_session *session, const struct park_claim *claim,
                                const char *status)
{
    const uint64_t inside = (uint64_t)claim->inside;
    const uid_t own = session->seen_own, holder = session->seen_holder;
    return last_is(status, "Threads:", 1) && last_is(status, "NStgid:", inside) &&
           last_is(status, "NSsid:", inside) && last_is(status, "NSpgid:", inside) &&
           has_uids(status, claim->parked ? holder : own, own, holder);
}

static bool has_channel(const struct park_session *session, const struct park_claim *claim)
{
    bool right = true;
    for (int i = 0; claim->channel && i < BOX_CHANNEL; i++)
        right &= is_same_file(session->proc, claim->pid, session->channel[i], claim->channel[i]);
    return right;
}

int park_confirm(const struct park_session *session, const struct park_claim *claim)
{
    static char status[TEXT_MAX];
    struct park_fds fds;
    if (park_read_proc(session->proc, claim->pid, "status", status, sizeof status) < 0 ||
        park_list_fds(session->proc, claim->pid, &fds) < 0)
        return -1;
    errno = EPROTOTYPE;
    if (has_own_filter(status, session->filters))
        return -1;
    errno = EPROTO;
    bool right = is_who_it_should_be(session, claim, status) && is_in_groups(session, claim) &&
                 memcmp(&fds, claim->fds, sizeof fds) == 0 && has_channel(session, claim);
    errno = EPROTO;
    return right ? 0 : -1;
}

int park_check_limits(const struct park_session *session, pid_t pid)
{
    static char text[TEXT_MAX];
    uint64_t got[NUMBERS_MAX];
    if (session->copies == 0)
        return 0;
    if (park_read_proc(session->proc, pid, "limits", text, sizeof text) < 0)
        return -1;
    size_t count = numbers_of(text, "Max processes", got); /* none: unlimited */
    errno = EAGAIN;
    return count > 0 && got[0] < (uint64_t)session->copies ? -1 : 0;
}

#else

int park_own_filters(int proc attr_unused)
{
    return 0;
}

#endif
