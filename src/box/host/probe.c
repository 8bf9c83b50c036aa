/* Probes for the doctor. A forked child raises the walls, stops at the first step that fails, and
 * reports the step with its errno. */
#include "box/host/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/io.h"
#include "base/own.h"

/* A directory that every host has and that the child's tmpfs may cover. */
#define COVER "/tmp"

static int write_text(const char *path, const char *text)
{
    own_fd fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd < 0 ? -1 : io_write_all(fd, text, strlen(text));
}

static int try_user(unsigned uid, unsigned gid)
{
    (void)uid, (void)gid;
    return unshare(CLONE_NEWUSER);
}

static int try_map(unsigned uid, unsigned gid)
{
    char map[32];
    snprintf(map, sizeof map, "0 %u 1", uid);
    if (write_text("/proc/self/uid_map", map) < 0)
        return -1;
    snprintf(map, sizeof map, "0 %u 1", gid);
    if (write_text("/proc/self/setgroups", "deny") < 0)
        return -1;
    return write_text("/proc/self/gid_map", map);
}

static int try_spaces(unsigned uid, unsigned gid)
{
    (void)uid, (void)gid;
    return unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS |
                   CLONE_NEWCGROUP);
}

static int try_mount(unsigned uid, unsigned gid)
{
    (void)uid, (void)gid;
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return -1;
    return mount("tmpfs", COVER, "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,mode=0700");
}

static int try_overlay(unsigned uid, unsigned gid)
{
    (void)uid, (void)gid;
    static const char *const folders[] = { COVER "/a", COVER "/b", COVER "/whole" };
    for (size_t i = 0; i < array_len(folders); i++) {
        if (mkdir(folders[i], 0700) < 0)
            return -1;
    }
    /* Two lower layers, as in a box. Not /usr, which may have mounts below it. */
    return mount("overlay", COVER "/whole", "overlay", MS_NOSUID | MS_NODEV | MS_RDONLY,
                 "lowerdir=" COVER "/a:" COVER "/b");
}

/* In a process of the new pid namespace: a /proc shows the namespace of its mounter. */
static int try_proc(unsigned uid, unsigned gid)
{
    int status = 0;
    (void)uid, (void)gid;
    if (mkdir(COVER "/proc", 0700) < 0)
        return -1;
    pid_t child = fork();
    if (child == 0)
        _exit(mount("proc", COVER "/proc", "proc", MS_NOSUID | MS_NODEV, NULL) < 0 ? errno : 0);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    if (child > 0)
        errno = WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
    return child < 0 || status ? -1 : 0;
}

static int (*const steps[BOX_PROBE_DONE])(unsigned uid, unsigned gid) = {
    [BOX_PROBE_USER] = try_user,       [BOX_PROBE_MAP] = try_map,
    [BOX_PROBE_SPACES] = try_spaces,   [BOX_PROBE_MOUNT] = try_mount,
    [BOX_PROBE_OVERLAY] = try_overlay, [BOX_PROBE_PROC] = try_proc,
};

static attr_noreturn void raise_walls(int report)
{
    unsigned uid = geteuid(), gid = getegid();
    struct box_probe_walls walls = { .step = BOX_PROBE_USER };
    for (; walls.step < BOX_PROBE_DONE; walls.step++) {
        if (steps[walls.step](uid, gid) < 0) {
            walls.error = errno;
            break;
        }
    }
    _exit(io_write_all(report, &walls, sizeof walls) < 0);
}

int box_probe_walls(struct box_probe_walls *out)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    own_fd from = ends[0], to = ends[1];
    pid_t child = fork();
    if (child < 0)
        return -1;
    if (child == 0)
        raise_walls(to);
    close(take_fd(&to));
    struct box_probe_walls walls;
    int rc = io_read_all(from, &walls, sizeof walls);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    if (rc == 0)
        *out = walls;
    return rc;
}

static bool has_action(uint32_t action)
{
    return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0U, &action) == 0;
}

void box_probe_seccomp(struct box_probe_seccomp *out)
{
    out->filter = has_action(SECCOMP_RET_KILL_PROCESS);
    out->notification = has_action(SECCOMP_RET_USER_NOTIF);
}
