/* The doctor's checks of the kernel: walls, limits, and resources shared with others. Runs in the
 * cli process as the caller; a child tries what must be tried (box/probe). */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/own.h"
#include "box/host/container.h"
#include "box/wall/landlock.h"
#include "box/host/probe.h"
#include "cli/doctor/doctor.h"

#define CGROUP2_MAGIC 0x63677270
#define SYSCTL "/proc/sys/"
#define CGROUP "/sys/fs/cgroup"

/* The profile lies beside the program: installed, or in the source tree. */
static void apparmor_fix(struct cli_doctor_report *out)
{
    static const char *const places[] = { "share/cupel/apparmor/cupel", "dev/apparmor/cupel" };
    char program[300];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    program[n < 0 ? 0 : n] = 0;
    char *slash = strrchr(program, '/');
    program[slash ? slash - program : 0] = 0;
    own_str found = NULL;
    for (size_t i = 0; i < array_len(places) && !found; i++) {
        char place[400];
        snprintf(place, sizeof place, "%s/../%s", program, places[i]);
        found = realpath(place, NULL);
    }
    cli_doctor_fix(out,
                   "sudo install -m 644 %.300s /etc/apparmor.d/cupel && "
                   "sudo apparmor_parser -r /etc/apparmor.d/cupel",
                   found ? found : "/usr/local/share/cupel/apparmor/cupel");
}

static void check_switches(struct cli_doctor_report *out)
{
    static const struct {
        const char *name;
        long least; /* below this, an ordinary user has no user namespaces */
        long set_to;
    } rows[] = {
        { "user.max_user_namespaces", 8, 15000 },
        { "kernel.unprivileged_userns_clone", 1, 1 },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        char path[128];
        snprintf(path, sizeof path, SYSCTL "%s", rows[i].name);
        path[strlen(SYSCTL) + strcspn(rows[i].name, ".")] = '/';
        long value = cli_doctor_number(path, rows[i].least);
        if (value >= rows[i].least)
            continue;
        bool root_may = geteuid() == 0 && i == 1;
        cli_doctor_say(out, root_may ? CLI_DOCTOR_WEAK : CLI_DOCTOR_MISSING, "%s is %ld",
                       rows[i].name, value);
        cli_doctor_fix(out, "sudo sysctl -w %s=%ld", rows[i].name, rows[i].set_to);
        return;
    }
    cli_doctor_say(out, CLI_DOCTOR_OK, "user.max_user_namespaces is %ld",
                   cli_doctor_number(SYSCTL "user/max_user_namespaces", -1));
}

static void check_apparmor(struct cli_doctor_report *out)
{
    long on = cli_doctor_number(SYSCTL "kernel/apparmor_restrict_unprivileged_userns", 0);
    if (on == 0) {
        cli_doctor_say(out, CLI_DOCTOR_OK, "AppArmor does not restrict user namespaces");
        return;
    }
    char label[64];
    if (cli_doctor_read("/proc/self/attr/current", label, sizeof label) &&
        strncmp(label, "cupel", 5) == 0) {
        cli_doctor_say(out, CLI_DOCTOR_OK, "restricted, and cupel's profile is loaded");
        return;
    }
    /* The next check tries whether this stops us. */
    cli_doctor_say(out, geteuid() == 0 ? CLI_DOCTOR_OK : CLI_DOCTOR_WEAK,
                   "kernel.apparmor_restrict_unprivileged_userns is %ld", on);
    if (geteuid() != 0)
        apparmor_fix(out);
}

/* The fix of a wall that fails: the container's flags, or a setting of the host. */
static void wall_fix(struct cli_doctor_report *out, int error)
{
    struct box_container around;
    char fix[400];
    box_container_look(&around);
    bool inside = box_container_fix(&around, fix, sizeof fix);
    if (!inside)
        box_container_host_fix(fix, sizeof fix);
    if (!inside && cli_doctor_number(SYSCTL "kernel/apparmor_restrict_unprivileged_userns", 0) > 0)
        apparmor_fix(out);
    else if (error == ENOSPC)
        cli_doctor_fix(out, "sudo sysctl -w user.max_user_namespaces=15000");
    else
        cli_doctor_fix(out, "%s", fix);
}

static void check_container(struct cli_doctor_report *out)
{
    struct box_container around;
    box_container_look(&around);
    if (around.kind == BOX_CONTAINER_NONE) {
        cli_doctor_say(out, CLI_DOCTOR_OK, "cupel does not run in a container");
        return;
    }
    /* The checks below try whether this stops us. */
    cli_doctor_say(out, CLI_DOCTOR_OK, "%s: %s, %s, %s%s", around.name,
                   around.filtered ? "a system call filter" : "no system call filter",
                   around.masked ? "/proc is masked" : "/proc is not masked",
                   around.label[0] ? "confined as " : "no other confinement", around.label);
}

static void check_walls(struct cli_doctor_report *out)
{
    static const char *const names[] = {
        [BOX_PROBE_USER] = "make a user namespace",
        [BOX_PROBE_MAP] = "map a uid in a user namespace",
        [BOX_PROBE_SPACES] = "make mount, pid, network, ipc, uts and cgroup namespaces",
        [BOX_PROBE_MOUNT] = "mount in a user namespace",
    };
    struct box_probe_walls walls;
    if (box_probe_walls(&walls) < 0) {
        cli_doctor_say(out, CLI_DOCTOR_MISSING, "no process could be made to try them");
        return;
    }
    if (walls.step >= BOX_PROBE_OVERLAY) {
        cli_doctor_say(out, CLI_DOCTOR_OK, "user, mount, pid, network, ipc, uts and cgroup");
        return;
    }
    cli_doctor_say(out, CLI_DOCTOR_MISSING, "could not %s: %s", names[walls.step],
                   strerror(walls.error));
    wall_fix(out, walls.error);
}

/* A step after the namespaces; false if it is not the one that failed. */
static bool later_step_failed(struct cli_doctor_report *out, enum box_probe_step step,
                              const char *fine, struct box_probe_walls *walls)
{
    *walls = (struct box_probe_walls){ .step = BOX_PROBE_USER };
    if (box_probe_walls(walls) == 0 && walls->step > step)
        cli_doctor_say(out, CLI_DOCTOR_OK, "%s", fine);
    else if (walls->step < step)
        cli_doctor_say(out, CLI_DOCTOR_MISSING, "not tried: depends on a failed check above");
    return walls->step == step;
}

static void check_overlay(struct cli_doctor_report *out)
{
    struct box_probe_walls walls;
    if (!later_step_failed(out, BOX_PROBE_OVERLAY, "overlayfs mounts in a user namespace", &walls))
        return;
    cli_doctor_say(out, CLI_DOCTOR_MISSING, "could not mount an overlay: %s",
                   strerror(walls.error));
    if (walls.error == ENODEV)
        cli_doctor_fix(out, "sudo modprobe overlay");
    else
        cli_doctor_fix(out, "boot a kernel from 5.11 on, which allows it in user namespaces");
}

static void check_proc(struct cli_doctor_report *out)
{
    struct box_probe_walls walls;
    if (!later_step_failed(out, BOX_PROBE_PROC, "a box can have its own /proc", &walls))
        return;
    cli_doctor_say(out, CLI_DOCTOR_MISSING, "could not mount a box's own /proc: %s",
                   strerror(walls.error));
    wall_fix(out, walls.error);
}

static void check_seccomp(struct cli_doctor_report *out)
{
    struct box_probe_seccomp seccomp;
    box_probe_seccomp(&seccomp);
    if (!seccomp.filter) {
        cli_doctor_say(out, CLI_DOCTOR_MISSING, "the kernel has no seccomp filters");
        cli_doctor_fix(out, "boot a kernel with CONFIG_SECCOMP_FILTER=y (any of Debian's)");
        return;
    }
    cli_doctor_say(out, seccomp.notification ? CLI_DOCTOR_OK : CLI_DOCTOR_WEAK, "filters%s",
                   seccomp.notification ? " and notifications" : ", no notifications");
}

static void check_landlock(struct cli_doctor_report *out)
{
    int abi = box_landlock_abi();
    if (abi > 0) {
        cli_doctor_say(out, CLI_DOCTOR_OK, "ABI %d", abi);
        return;
    }
    cli_doctor_say(out, CLI_DOCTOR_WEAK, "the kernel has no Landlock, a second wall around files");
    cli_doctor_fix(out, "add landlock to the lsm= boot parameter: see "
                        "/sys/kernel/security/lsm for the others");
}

/* The path of our cgroup in the hierarchy whose line has this prefix ("0::", ...). */
static bool own_cgroup(const char *controller, char *out, size_t room)
{
    FILE *lines = fopen("/proc/self/cgroup", "re");
    char line[512];
    bool found = false;
    while (lines && !found && fgets(line, sizeof line, lines)) {
        char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = 0;
        path[strcspn(path, "\n")] = 0;
        found = strcmp(names + 1, controller) == 0;
        if (found)
            snprintf(out, room, "%s", path);
    }
    if (lines)
        fclose(lines);
    return found;
}

static const char *const controllers[] = { "memory", "pids", "cpu" };

/* Delegated groups: only a container withholds them from root. */
static void delegation_fix(struct cli_doctor_report *out)
{
    struct box_container around;
    box_container_look(&around);
    if (around.kind == BOX_CONTAINER_PODMAN)
        cli_doctor_fix(out, "podman run --security-opt unmask=/sys/fs/cgroup (on cgroup v2)");
    else if (around.kind == BOX_CONTAINER_DOCKER || around.kind == BOX_CONTAINER_OTHER)
        cli_doctor_fix(out, "docker run --cgroupns=private --security-opt writable-cgroups=true "
                            "(Docker 28 or later, on cgroup v2)");
    else if (around.kind == BOX_CONTAINER_KUBERNETES)
        cli_doctor_fix(out, "allow writable cgroups on the node (containerd: cgroup_writable)");
    if (out->fix[0] || geteuid() == 0)
        return;
    cli_doctor_fix(out, "run as root, or in a user session of systemd on cgroup v2: "
                        "systemd-run --user --scope -p Delegate=yes cupel run ...");
}

static void check_cgroup_v2(struct cli_doctor_report *out)
{
    char path[600] = "", folder[400], have[256] = "";
    if (!own_cgroup("", folder, sizeof folder))
        snprintf(folder, sizeof folder, "/");
    snprintf(path, sizeof path, CGROUP "%s/cgroup.controllers", folder);
    cli_doctor_read(path, have, sizeof have);
    for (size_t i = 0; i < array_len(controllers); i++) {
        if (strstr(have, controllers[i]))
            continue;
        cli_doctor_say(out, CLI_DOCTOR_WEAK, "v2 without controller '%s' here (has: %.100s)",
                       controllers[i], have);
        delegation_fix(out);
        return;
    }
    snprintf(path, sizeof path, CGROUP "%s/cgroup.subtree_control", folder);
    if (access(path, W_OK) == 0) {
        cli_doctor_say(out, CLI_DOCTOR_OK, "v2, may be divided (has: %.100s)", have);
        return;
    }
    cli_doctor_say(out, CLI_DOCTOR_WEAK,
                   "v2, not delegated to this user: limits fall back to "
                   "rlimits and a watchdog");
    delegation_fix(out);
}

static void check_cgroup_v1(struct cli_doctor_report *out, const char *kind)
{
    for (size_t i = 0; i < array_len(controllers); i++) {
        char path[600], folder[400] = "/";
        own_cgroup(controllers[i], folder, sizeof folder);
        snprintf(path, sizeof path, CGROUP "/%s%s", controllers[i], folder);
        if (access(path, F_OK) != 0)
            snprintf(path, sizeof path, CGROUP "/%s", controllers[i]);
        if (access(path, W_OK) == 0)
            continue;
        cli_doctor_say(out, CLI_DOCTOR_WEAK,
                       "%s, controller '%s' not usable: limits fall back to rlimits and a watchdog",
                       kind, controllers[i]);
        delegation_fix(out);
        return;
    }
    cli_doctor_say(out, CLI_DOCTOR_OK, "%s, with memory, pids and cpu", kind);
}

static void check_cgroup(struct cli_doctor_report *out)
{
    struct statfs root, unified;
    if (statfs(CGROUP, &root) < 0) {
        cli_doctor_say(out, CLI_DOCTOR_WEAK, "no cgroups: limits fall back to rlimits");
        cli_doctor_fix(out, "sudo mount -t cgroup2 none " CGROUP);
        return;
    }
    if (root.f_type == CGROUP2_MAGIC) {
        check_cgroup_v2(out);
        return;
    }
    bool hybrid = statfs(CGROUP "/unified", &unified) == 0 && unified.f_type == CGROUP2_MAGIC;
    check_cgroup_v1(out, hybrid ? "hybrid" : "v1");
}

static void check_core(struct cli_doctor_report *out)
{
    char pattern[256] = "";
    cli_doctor_read(SYSCTL "kernel/core_pattern", pattern, sizeof pattern);
    if (pattern[0] != '|') {
        cli_doctor_say(out, CLI_DOCTOR_OK, "core dumps do not go to a program");
        return;
    }
    /* A limit of 1 byte keeps the kernel from starting it: boxes have that. */
    cli_doctor_say(out, CLI_DOCTOR_WEAK,
                   "core dumps go to a program on the host (%.80s); "
                   "boxes keep it from starting",
                   pattern + 1);
    cli_doctor_fix(out, "sudo sysctl -w kernel.core_pattern=core");
}

static void check_smt(struct cli_doctor_report *out)
{
    if (cli_doctor_number("/sys/devices/system/cpu/smt/active", 0) != 1) {
        cli_doctor_say(out, CLI_DOCTOR_OK, "no sibling threads share a core");
        return;
    }
    cli_doctor_say(out, CLI_DOCTOR_WEAK,
                   "sibling threads share a core's caches: another box or "
                   "the host may be timed");
    cli_doctor_fix(out, "where that matters: echo off | sudo tee "
                        "/sys/devices/system/cpu/smt/control");
}

static void check_ksm(struct cli_doctor_report *out)
{
    if (cli_doctor_number("/sys/kernel/mm/ksm/run", 0) != 1) {
        cli_doctor_say(out, CLI_DOCTOR_OK, "equal pages are not merged");
        return;
    }
    cli_doctor_say(out, CLI_DOCTOR_WEAK, "equal pages of processes are merged, which can be timed");
    cli_doctor_fix(out, "echo 2 | sudo tee /sys/kernel/mm/ksm/run");
}

const struct cli_doctor_check cli_doctor_kernel[] = {
    { "user namespaces", check_switches, true },
    { "apparmor", check_apparmor, false },
    { "container", check_container, false },
    { "walls", check_walls, true },
    { "overlay", check_overlay, true },
    { "proc", check_proc, true },
    { "seccomp", check_seccomp, true },
    { "landlock", check_landlock, false },
    { "cgroup", check_cgroup, false },
    { "core dumps", check_core, false },
    { "smt", check_smt, false },
    { "ksm", check_ksm, false },
};
const size_t cli_doctor_kernel_count = array_len(cli_doctor_kernel);
