/* Containers. Boxes need three things from the kernel:
 * - user namespaces, mounts, pivot_root, setns: Docker's filter forbids them;
 * - a /proc of the box's own: the kernel refuses a new one while parts of the old one are covered,
 *   as all container runtimes do;
 * - mounts: the container profiles of AppArmor and SELinux forbid them.
 * Runs in the door, as the caller. */
#include "box/host/container.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/attr.h"
#include "base/mounts.h"
#include "base/own.h"

static int see_mask(void *to, const char *path)
{
    /* Mount points of the kernel's own file systems: they cover nothing. */
    static const char *const harmless[] = { "/proc/sys/fs/binfmt_misc", "/proc/fs/nfsd" };
    for (size_t i = 0; i < array_len(harmless); i++) {
        if (strcmp(path, harmless[i]) == 0)
            return 0;
    }
    if (strncmp(path, "/proc/", strlen("/proc/")) == 0)
        *(bool *)to = true;
    return 0;
}

static bool is_filtered(void)
{
    char status[4096];
    io_read_text(AT_FDCWD, "/proc/self/status", status, sizeof status);
    const char *line = strstr(status, "\nSeccomp:\t");
    return line && line[strlen("\nSeccomp:\t")] == '2';
}

static void read_label(struct box_container *out)
{
    io_read_text(AT_FDCWD, "/proc/self/attr/current", out->label, sizeof out->label);
    out->label[strcspn(out->label, "\n")] = 0;
    out->selinux = access("/sys/fs/selinux/enforce", F_OK) == 0 || strchr(out->label, ':');
    if (strcmp(out->label, "unconfined") == 0 || strstr(out->label, "unconfined_t") ||
        strstr(out->label, "spc_t") || strstr(out->label, "(unconfined)"))
        out->label[0] = 0;
}

static enum box_container_kind find_kind(void)
{
    const char *name = getenv("container");
    if (getenv("KUBERNETES_SERVICE_HOST") || access("/var/run/secrets/kubernetes.io", F_OK) == 0)
        return BOX_CONTAINER_KUBERNETES;
    if (access("/run/.containerenv", F_OK) == 0 || (name && strcmp(name, "podman") == 0))
        return BOX_CONTAINER_PODMAN;
    if (access("/.dockerenv", F_OK) == 0)
        return BOX_CONTAINER_DOCKER;
    return name && *name ? BOX_CONTAINER_OTHER : BOX_CONTAINER_NONE;
}

void box_container_look(struct box_container *out)
{
    static const char *const names[] = {
        [BOX_CONTAINER_NONE] = "no container",
        [BOX_CONTAINER_DOCKER] = "a Docker container",
        [BOX_CONTAINER_PODMAN] = "a Podman container",
        [BOX_CONTAINER_KUBERNETES] = "a container of Kubernetes",
        [BOX_CONTAINER_OTHER] = "a container",
    };
    *out = (struct box_container){ .kind = find_kind(), .filtered = is_filtered() };
    mounts_each(see_mask, &out->masked);
    read_label(out);
    if (out->kind == BOX_CONTAINER_NONE && out->masked)
        out->kind = BOX_CONTAINER_OTHER; /* only containers cover /proc */
    out->name = names[out->kind];
}

/* The profile lies beside the program: installed, or in the source tree. */
static void find_profile(char *out, size_t room)
{
    static const char *const paths[] = { "share/cupel/seccomp.json",
                                          "dev/containers/seccomp.json" };
    char program[300], path[400];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    program[n < 0 ? 0 : n] = 0;
    char *slash = strrchr(program, '/');
    program[slash ? slash - program : 0] = 0;
    for (size_t i = 0; i < array_len(paths); i++) {
        snprintf(path, sizeof path, "%s/../%s", program, paths[i]);
        own_str found = realpath(path, NULL);
        if (found) {
            snprintf(out, room, "%.180s", found);
            return;
        }
    }
    snprintf(out, room, "/usr/local/share/cupel/seccomp.json");
}

static bool fix_kubernetes(const struct box_container *in, char *out, size_t room)
{
    snprintf(out, room, "in the container's securityContext set%s%s%s%s; see docs/containers.md",
             in->filtered ? " seccompProfile: {type: Localhost, localhostProfile: cupel.json}" : "",
             in->masked ? " procMount: Unmasked (and hostUsers: false in the pod)" : "",
             in->label[0] && !in->selinux ? " appArmorProfile: {type: Unconfined}" : "",
             in->label[0] && in->selinux ? " seLinuxOptions: {type: spc_t}" : "");
    return true;
}

bool box_container_fix(const struct box_container *in, char *out, size_t room)
{
    char profile[200];
    out[0] = 0;
    if (in->kind == BOX_CONTAINER_NONE || !(in->filtered || in->masked || in->label[0]))
        return false;
    if (in->kind == BOX_CONTAINER_KUBERNETES)
        return fix_kubernetes(in, out, room);
    bool podman = in->kind == BOX_CONTAINER_PODMAN;
    find_profile(profile, sizeof profile);
    size_t at = (size_t)snprintf(out, room, "start the container with: %s run",
                                 podman ? "podman" : "docker");
    if (in->filtered)
        at += (size_t)snprintf(out + at, room - at, " --security-opt seccomp=%s", profile);
    if (in->masked)
        at += (size_t)snprintf(out + at, room - at, " --security-opt %s",
                               podman ? "unmask=ALL" : "systempaths=unconfined");
    if (in->label[0])
        at += (size_t)snprintf(out + at, room - at, " --security-opt %s",
                               in->selinux ? "label=disable" : "apparmor=unconfined");
    if (in->kind == BOX_CONTAINER_OTHER && at < room)
        snprintf(out + at, room - at, "; podman: unmask=ALL for systempaths=unconfined");
    return true;
}

void box_container_host_fix(char *out, size_t room)
{
    static const struct {
        const char *file;
        char bad; /* first character of a value that forbids */
        const char *fix;
    } rows[] = {
        { "/proc/sys/user/max_user_namespaces", '0',
          "sudo sysctl -w user.max_user_namespaces=15000" },
        { "/proc/sys/kernel/unprivileged_userns_clone", '0',
          "sudo sysctl -w kernel.unprivileged_userns_clone=1" },
        { "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", '1',
          "load cupel's AppArmor profile, 'cupel doctor' says how, or: sudo sysctl -w "
          "kernel.apparmor_restrict_unprivileged_userns=0" },
    };
    char value[8];
    for (size_t i = 0; i < array_len(rows); i++) {
        io_read_text(AT_FDCWD, rows[i].file, value, sizeof value);
        if (value[0] == rows[i].bad && (value[1] == '\n' || !value[1])) {
            snprintf(out, room, "%s", rows[i].fix);
            return;
        }
    }
    snprintf(out, room, "%s",
             is_filtered() ? "start cupel without the system call filter that it inherited"
                           : "in a chroot the kernel allows no user namespaces: enter it by "
                             "pivot_root, as containers do; else look at 'dmesg'");
}

void box_container_hint(struct err *err)
{
    struct box_container around;
    char fix[sizeof err->hint];
    box_container_look(&around);
    if (!box_container_fix(&around, fix, sizeof fix))
        box_container_host_fix(fix, sizeof fix);
    err_hint(err, "%s", fix);
}
