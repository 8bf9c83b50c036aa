/* Posture: the walls that the kernel reports for this process, read by the process itself. Runs in
 * init after its exec, and in the occupant between the last wall and exec. No heap, no stdio. A
 * fact that cannot be read counts as missing. */
#include "box/wall/posture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/io.h"
#include "box/wall/walls.h"

static const char *const ns_files[POSTURE_NS_COUNT] = {
    [POSTURE_NS_USER] = "user", [POSTURE_NS_MNT] = "mnt", [POSTURE_NS_PID] = "pid",
    [POSTURE_NS_NET] = "net",   [POSTURE_NS_IPC] = "ipc", [POSTURE_NS_UTS] = "uts",
    [POSTURE_NS_CGROUP] = "cgroup",
};

static const uint32_t ns_walls[POSTURE_NS_COUNT] = {
    [POSTURE_NS_USER] = BOX_WALL_BIT(USER_NS), [POSTURE_NS_MNT] = BOX_WALL_BIT(MOUNT_NS),
    [POSTURE_NS_PID] = BOX_WALL_BIT(PID_NS),   [POSTURE_NS_NET] = BOX_WALL_BIT(NET_NS),
    [POSTURE_NS_IPC] = BOX_WALL_BIT(IPC_NS),   [POSTURE_NS_UTS] = BOX_WALL_BIT(UTS_NS),
    [POSTURE_NS_CGROUP] = BOX_WALL_BIT(CGROUP_NS),
};

int posture_read_ns(struct posture_outside *out)
{
    int dir = open("/proc/self/ns", O_PATH | O_DIRECTORY | O_CLOEXEC), failed = dir < 0;
    for (int i = 0; i < POSTURE_NS_COUNT && !failed; i++) {
        struct stat st;
        failed = fstatat(dir, ns_files[i], &st, 0) < 0;
        out->ns[i] = failed ? 0 : st.st_ino;
    }
    if (dir >= 0)
        close(dir);
    return failed ? -1 : 0;
}

static uint32_t read_namespaces(const struct posture_outside *outside)
{
    struct posture_outside here;
    uint32_t walls = 0;
    if (posture_read_ns(&here) < 0)
        return 0;
    for (int i = 0; i < POSTURE_NS_COUNT; i++) {
        if (here.ns[i] != outside->ns[i])
            walls |= ns_walls[i];
    }
    return walls;
}

/* The value after "NAME:\t" in /proc/self/status; ends at a newline. */
static const char *field(const char *status, const char *name)
{
    size_t len = strlen(name);
    for (const char *line = status; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, len) == 0 && line[len] == ':')
            return line + len + 1 + (line[len + 1] == '\t');
    }
    return NULL;
}

static bool field_is(const char *status, const char *name, const char *want)
{
    const char *value = field(status, name);
    size_t len = strlen(want);
    return value && strncmp(value, want, len) == 0 && (value[len] == '\n' || value[len] == ' ');
}

static uint32_t read_status(void)
{
    static const char *const cap_sets[] = { "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb" };
    char status[4096];
    uint32_t walls = BOX_WALL_BIT(NO_CAPS);
    if (io_read_text(AT_FDCWD, "/proc/self/status", status, sizeof status) <= 0)
        return 0;
    for (size_t i = 0; i < sizeof cap_sets / sizeof cap_sets[0]; i++) {
        if (!field_is(status, cap_sets[i], "0000000000000000"))
            walls = 0;
    }
    if (field_is(status, "NoNewPrivs", "1"))
        walls |= BOX_WALL_BIT(NO_NEW_PRIVS);
    if (field_is(status, "Seccomp", "2"))
        walls |= BOX_WALL_BIT(SECCOMP);
    const char *groups = field(status, "Groups");
    if (groups && (groups[0] == '\n' || (groups[0] == ' ' && groups[1] == '\n')))
        walls |= BOX_WALL_BIT(NO_GROUPS);
    return walls;
}

static uint32_t read_mounts(void)
{
    static const char *const read_only[] = { "/", "/usr", "/etc", "/dev" };
    static const char *const writable[] = { "/workspace", "/tmp", "/dev/shm" };
    struct statvfs st;
    uint32_t walls = BOX_WALL_BIT(READ_ONLY_ROOT);
    for (size_t i = 0; i < sizeof read_only / sizeof read_only[0]; i++) {
        unsigned long want = ST_RDONLY | ST_NOSUID | ST_NODEV;
        if (statvfs(read_only[i], &st) < 0 || (st.f_flag & want) != want)
            walls = 0;
    }
    for (size_t i = 0; i < sizeof writable / sizeof writable[0]; i++) {
        unsigned long want = ST_NOSUID | ST_NODEV;
        if (statvfs(writable[i], &st) < 0 || (st.f_flag & want) != want)
            walls = 0;
    }
    /* subset=pid leaves nothing but processes: no sysctl, no kernel tables. */
    if (access("/proc/self/status", R_OK) == 0 && access("/proc/sys", F_OK) < 0 &&
        access("/proc/version", F_OK) < 0 && access("/sys/kernel", F_OK) < 0)
        walls |= BOX_WALL_BIT(OWN_PROC);
    return walls;
}

static bool kept(int fd, int pipes, const int *keep_fds, int keep_count)
{
    struct stat st;
    /* A pipe carries only bytes. A socket could carry descriptors, and closing them can block. */
    if (fd < pipes)
        return fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
    for (int i = 0; i < keep_count; i++) {
        if (keep_fds[i] == fd)
            return true;
    }
    return false;
}

struct dirent_raw {
    uint64_t ino;
    int64_t off;
    unsigned short reclen;
    unsigned char type;
    char name[];
};

static uint32_t read_fds(int pipes, const int *keep_fds, int keep_count)
{
    union {
        char bytes[1024];
        struct dirent_raw align;
    } room;
    int dir = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    uint32_t walls = dir < 0 ? 0 : BOX_WALL_BIT(CLOSED_FDS);
    for (;;) {
        long n = dir < 0 ? 0 : syscall(SYS_getdents64, dir, room.bytes, sizeof room.bytes);
        if (n < 0)
            walls = 0;
        if (n <= 0)
            break;
        for (long at = 0; at < n;) {
            const struct dirent_raw *entry = (const void *)(room.bytes + at);
            int fd = 0;
            for (const char *c = entry->name; *c >= '0' && *c <= '9'; c++)
                fd = fd * 10 + (*c - '0');
            if (entry->name[0] != '.' && fd != dir && !kept(fd, pipes, keep_fds, keep_count))
                walls = 0;
            at += entry->reclen;
        }
    }
    if (dir >= 0)
        close(dir);
    return walls;
}

static uint32_t read_rlimits(void)
{
    struct rlimit core, files, lock, rt;
    if (getrlimit(RLIMIT_CORE, &core) < 0 || getrlimit(RLIMIT_NOFILE, &files) < 0 ||
        getrlimit(RLIMIT_MEMLOCK, &lock) < 0 || getrlimit(RLIMIT_RTPRIO, &rt) < 0)
        return 0;
    bool ok = core.rlim_max <= 1 && files.rlim_max <= 4096 && lock.rlim_max <= 65536 &&
              rt.rlim_max == 0;
    return ok ? BOX_WALL_BIT(RLIMITS) : 0;
}

static uint32_t read_name(void)
{
    struct utsname name;
    return uname(&name) == 0 && strcmp(name.nodename, "box") == 0 ? BOX_WALL_BIT(OWN_NAME) : 0;
}

uint32_t posture_read(const struct posture_outside *outside, int pipes, const int *keep_fds,
                      int keep_count)
{
    uint32_t walls = read_namespaces(outside) | read_status() | read_mounts() |
                     read_fds(pipes, keep_fds, keep_count) | read_rlimits() | read_name();
    uid_t real, effective, saved;
    if (getresuid(&real, &effective, &saved) < 0 || real == 0 || real != effective ||
        (real != saved && saved != BOX_ID_HOLDER))
        walls &= ~BOX_WALL_BIT(USER_NS);
    return walls;
}
