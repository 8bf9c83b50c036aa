/* cgroup hierarchies of the host. Runs before privileges are dropped (find, sweep, make) and in the
 * janitor (remove). Touches only directories named cupel-UID-N whose slot N is this instance's or
 * free, and which nobody has locked. An instance holds a flock on each of its bases, because
 * instances with another /run, and so other slots, may share a hierarchy. */
#include "box/host/hierarchy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"

static const char *const v1_names[BOX_CG_COUNT] = {
    [BOX_CG_MEMORY] = "memory", [BOX_CG_PIDS] = "pids", [BOX_CG_CPU] = "cpu",
    [BOX_CG_CPUACCT] = "cpuacct",
};

#define FRONT "front" /* the leaf for processes that block the controllers */

static bool has_word(const char *list, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += len) {
        bool starts = at == list || strchr(", \n", at[-1]);
        if (starts && (at[len] == 0 || strchr(", \n", at[len])))
            return true;
    }
    return false;
}

/* One line of mountinfo: ids, root, mount point, ..., " - ", type, source, options. */
static void take_mount(struct hierarchy *out, const char *line)
{
    char root[HIERARCHY_PATH], point[HIERARCHY_PATH], type[32], options[256];
    const char *dash = strstr(line, " - ");
    if (!dash || sscanf(line, "%*s %*s %*s %511s %511s", root, point) != 2 ||
        sscanf(dash, " - %31s %*s %255s", type, options) != 2)
        return;
    if (strcmp(type, "cgroup2") == 0 && !out->parent[BOX_CG_V2][0])
        memcpy(out->parent[BOX_CG_V2], point, sizeof point);
    if (strcmp(type, "cgroup") != 0)
        return;
    for (int i = 0; i < BOX_CG_COUNT; i++) {
        if (v1_names[i] && has_word(options, v1_names[i]) && !out->parent[i][0])
            memcpy(out->parent[i], point, sizeof point);
    }
}

/* The processes in a v2 group itself, not below it. */
struct company {
    bool us, others;
};

static struct company company_in(int dir)
{
    struct company found = { 0 };
    char line[32];
    int fd = openat(dir, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    while (file && fgets(line, sizeof line, file)) {
        bool us = strtol(line, NULL, 10) == getpid();
        found.us |= us;
        found.others |= !us;
    }
    if (file)
        fclose(file);
    else
        own_close_fd(&fd);
    return found;
}

/* Delegated to this user: the group and the files that move processes and controllers. */
static bool is_ours(const char *path)
{
    own_fd dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return dir >= 0 && faccessat(dir, ".", W_OK, 0) == 0 &&
           faccessat(dir, "cgroup.procs", W_OK, 0) == 0 &&
           faccessat(dir, "cgroup.subtree_control", W_OK, 0) == 0;
}

static bool holds_others(const char *path)
{
    own_fd dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return company_in(dir).others;
}

/* An ordinary user owns at most its own v2 group and some above. v2 limits only groups whose parent
 * has no processes: take the nearest such parent. If there is none, the own group still counts CPU
 * time and kills at once. */
static void narrow_to_own_group(struct hierarchy *out)
{
    char line[HIERARCHY_PATH] = "", path[2 * HIERARCHY_PATH];
    size_t top = strlen(out->parent[BOX_CG_V2]);
    bool found = false;
    for (int i = 0; i < BOX_CG_COUNT; i++) {
        if (i != BOX_CG_V2)
            out->parent[i][0] = 0;
    }
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file && !found && fgets(line, sizeof line, file))
        found = strncmp(line, "0::/", 4) == 0;
    if (file)
        fclose(file);
    line[strcspn(line, "\n")] = 0;
    snprintf(path, sizeof path, "%s%s", out->parent[BOX_CG_V2], found ? line + 3 : "");
    bool usable = found && top > 0 && strlen(path) < HIERARCHY_PATH && is_ours(path);
    snprintf(out->parent[BOX_CG_V2], HIERARCHY_PATH, "%.*s", HIERARCHY_PATH - 1,
             usable ? path : "");
    while (usable && holds_others(path)) {
        *strrchr(path, '/') = 0;
        usable = strlen(path) > top && is_ours(path);
        if (usable && !holds_others(path))
            memcpy(out->parent[BOX_CG_V2], path, strlen(path) + 1);
    }
}

void hierarchy_find(struct hierarchy *out)
{
    char line[4096];
    *out = (struct hierarchy){ .base = { -1, -1, -1, -1, -1 }, .broker_leaf = -1 };
    FILE *file = fopen("/proc/self/mountinfo", "re");
    while (file && fgets(line, sizeof line, file))
        take_mount(out, line);
    if (file)
        fclose(file);
    if (!box_is_root())
        narrow_to_own_group(out);
}

bool hierarchy_any(const struct hierarchy *h)
{
    for (int i = 0; i < BOX_CG_COUNT; i++) {
        if (h->parent[i][0])
            return true;
    }
    return false;
}

static const struct {
    const char *word;
    int bit;
} controllers[] = { { "memory", BOX_CG_MEMORY }, { "pids", BOX_CG_PIDS }, { "cpu", BOX_CG_CPU } };

/* Write "+WORD" or "-WORD" for each controller; the kernel refuses unknown ones. */
static void switch_controllers(int dir, char sign)
{
    for (size_t i = 0; i < array_len(controllers); i++) {
        char word[16];
        snprintf(word, sizeof word, "%c%s", sign, controllers[i].word);
        io_write_text(dir, "cgroup.subtree_control", word);
    }
}

/* Undo step_down: switch the controllers off, so that the parent may hold processes again, and move
 * the processes of FRONT back. They are the caller's, never a box's: do not kill them. */
static void step_back(int parent, int base)
{
    char line[32];
    int fd = openat(base, FRONT "/cgroup.procs", O_RDONLY | O_CLOEXEC);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    if (!file) {
        own_close_fd(&fd);
        return;
    }
    switch_controllers(base, '-');
    switch_controllers(parent, '-');
    while (fgets(line, sizeof line, file))
        io_write_text(parent, "cgroup.procs", line);
    fclose(file);
    unlinkat(base, FRONT, AT_REMOVEDIR);
}

static void remove_children(int base)
{
    int copy = openat(base, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        if (entry->d_type != DT_DIR || entry->d_name[0] == '.' || strcmp(entry->d_name, FRONT) == 0)
            continue;
        char kill[sizeof entry->d_name + sizeof "/cgroup.kill"];
        snprintf(kill, sizeof kill, "%s/cgroup.kill", entry->d_name);
        if (unlinkat(base, entry->d_name, AT_REMOVEDIR) < 0)
            io_write_text(base, kill, "1"); /* v2; on v1 the death of their init killed them */
    }
    if (dir)
        closedir(dir);
    else
        own_close_fd(&copy);
}

/* Kill and remove the groups below one base, then the base. Retries on failure: the last process
 * may take a moment to die, and nobody else cleans up. */
static void remove_base(int parent, const char *name)
{
    for (int tries = 0; tries < 200; tries++) {
        own_fd base = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (base < 0 && errno == ENOENT)
            return;
        if (base >= 0) {
            remove_children(base);
            step_back(parent, base);
        }
        if (unlinkat(parent, name, AT_REMOVEDIR) == 0)
            return;
        nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
    }
}

/* The prefix of this user's base names. Root of a user namespace without a range of uids is not the
 * host's root and has other slots: the namespace's number tells them apart. */
static int base_prefix(char *out, size_t room)
{
    struct stat ns;
    if (geteuid() == 0 && !box_is_root() && stat("/proc/self/ns/user", &ns) == 0)
        return snprintf(out, room, "cupel-ns%lu-", (unsigned long)ns.st_ino);
    return snprintf(out, room, "cupel-%u-", (unsigned)geteuid());
}

/* Remove a dead instance's base, holding its lock so that no other instance takes it. */
static void sweep_base(int parent, const char *name)
{
    own_fd base = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (base >= 0 && flock(base, LOCK_EX | LOCK_NB) == 0)
        remove_base(parent, name);
}

void hierarchy_sweep(const struct hierarchy *h, const struct slot *slot)
{
    char prefix[32];
    int len = base_prefix(prefix, sizeof prefix);
    for (int i = 0; i < BOX_CG_COUNT; i++) {
        own_dirp dir = h->parent[i][0] ? opendir(h->parent[i]) : NULL;
        for (const struct dirent *entry; dir && (entry = readdir(dir));) {
            char *end;
            if (strncmp(entry->d_name, prefix, (size_t)len) != 0)
                continue;
            long number = strtol(entry->d_name + len, &end, 10);
            /* This slot was free, so a base with its number is stale, or belongs to an instance
             * with other slots, which then holds its lock. */
            bool stale = *end == 0 && end != entry->d_name + len && number >= 0 &&
                         number < 1 << 20 &&
                         (number == slot->number || !slot_is_held(slot, (int)number));
            if (stale)
                sweep_base(dirfd(dir), entry->d_name);
        }
    }
}

/* Move this process from the parent into a leaf of the base: the kernel passes no controllers down
 * from a group that has processes. */
static bool step_down(int base)
{
    return (mkdirat(base, FRONT, 0755) == 0 || errno == EEXIST) &&
           io_write_text(base, FRONT "/cgroup.procs", "0") == 0;
}

/* v2 gives a group controllers only if its parent passes them down, and the parent may do so only
 * without processes of its own. The top group is exempt; it has no cgroup.type. */
static void hand_down_controllers(struct hierarchy *h, int parent)
{
    int base = h->base[BOX_CG_V2];
    char have[256] = "";
    if (faccessat(parent, "cgroup.type", F_OK, 0) == 0) {
        struct company company = company_in(parent);
        if (company.others || (company.us && !(h->in_front = step_down(base))))
            return;
    }
    switch_controllers(parent, '+');
    switch_controllers(base, '+');
    io_read_text(base, "cgroup.subtree_control", have, sizeof have);
    for (size_t i = 0; i < array_len(controllers); i++) {
        if (has_word(have, controllers[i].word))
            h->v2_controllers |= 1u << controllers[i].bit;
    }
}

static int make_v2(struct hierarchy *h, uid_t owner)
{
    static const char *const files[] = { "cgroup.procs", "cgroup.threads",
                                         "cgroup.subtree_control" };
    int base = h->base[BOX_CG_V2];
    own_fd parent = open(h->parent[BOX_CG_V2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent < 0)
        return -1;
    hand_down_controllers(h, parent);
    if (mkdirat(base, "broker", 0755) < 0)
        return -1;
    h->broker_leaf = openat(base, "broker", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (h->broker_leaf < 0)
        return -1;
    if (!box_is_root())
        return 0;
    for (size_t i = 0; i < array_len(files); i++) {
        if (fchownat(base, files[i], owner, owner, 0) < 0)
            return -1;
    }
    return fchownat(h->broker_leaf, "cgroup.procs", owner, owner, 0);
}

/* Make and lock the base in one hierarchy. Other users can enter but not read it: a reader could
 * take the lock. */
static enum hierarchy_made claim_base(struct hierarchy *h, int which, struct err *err)
{
    struct stat locked, named;
    own_fd parent = open(h->parent[which], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent < 0 || mkdirat(parent, h->name, 0711) < 0) {
        if (parent >= 0 && errno == EEXIST)
            return HIERARCHY_TAKEN;
        /* A read-only or foreign hierarchy: continue without it. */
        if (errno != EROFS && errno != EACCES && errno != EPERM) {
            err_sys(err, "make a control group in '%s'", h->parent[which]);
            return HIERARCHY_FAILED;
        }
        h->parent[which][0] = 0;
        return HIERARCHY_MADE;
    }
    own_fd base = openat(parent, h->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int failed = base < 0 ? -1 : flock(base, LOCK_EX | LOCK_NB);
    if (failed && errno != ENOENT && errno != EWOULDBLOCK) {
        err_sys(err, "lock the control group '%s/%s'", h->parent[which], h->name);
        unlinkat(parent, h->name, AT_REMOVEDIR);
        return HIERARCHY_FAILED;
    }
    /* Another instance's sweep may have removed it before the lock. */
    if (failed || fstat(base, &locked) < 0 || fstatat(parent, h->name, &named, 0) < 0 ||
        locked.st_ino != named.st_ino)
        return HIERARCHY_TAKEN;
    h->base[which] = take_fd(&base);
    return HIERARCHY_MADE;
}

/* An earlier index with the same hierarchy, as cpu and cpuacct often have; -1: none. */
static int shared_with(const struct hierarchy *h, int which)
{
    for (int i = 0; i < which; i++) {
        if (h->base[i] >= 0 && strcmp(h->parent[i], h->parent[which]) == 0)
            return i;
    }
    return -1;
}

static enum hierarchy_made claim_bases(struct hierarchy *h, struct err *err)
{
    enum hierarchy_made made = HIERARCHY_MADE;
    for (int i = 0; i < BOX_CG_COUNT && made == HIERARCHY_MADE; i++) {
        int first = shared_with(h, i);
        if (first >= 0) {
            h->base[i] = fcntl(h->base[first], F_DUPFD_CLOEXEC, 0);
            if (h->base[i] < 0) {
                err_sys(err, "keep the control group '%s/%s'", h->parent[i], h->name);
                made = HIERARCHY_FAILED;
            }
        } else if (h->parent[i][0]) {
            made = claim_base(h, i, err);
        }
    }
    return made;
}

static int furnish_bases(struct hierarchy *h, uid_t owner, struct err *err)
{
    for (int i = 0; i < BOX_CG_COUNT; i++) {
        if (h->base[i] < 0)
            continue;
        if (box_is_root() && fchown(h->base[i], owner, owner) < 0)
            return err_sys(err, "take over the control group '%s/%s'", h->parent[i], h->name);
        if (i == BOX_CG_V2 && make_v2(h, owner) < 0)
            return err_sys(err, "prepare the control group '%s/%s'", h->parent[i], h->name);
    }
    return 0;
}

enum hierarchy_made hierarchy_make(struct hierarchy *h, const struct slot *slot, uid_t owner,
                                   struct err *err)
{
    char prefix[sizeof h->name - 12];
    base_prefix(prefix, sizeof prefix);
    snprintf(h->name, sizeof h->name, "%s%d", prefix, slot->number);
    /* The caller's umask could lock an ordinary user out of these directories. */
    mode_t callers = umask(022);
    enum hierarchy_made made = claim_bases(h, err);
    if (made == HIERARCHY_MADE && furnish_bases(h, owner, err) < 0)
        made = HIERARCHY_FAILED;
    umask(callers);
    if (made == HIERARCHY_TAKEN) {
        hierarchy_remove(h);
        hierarchy_close(h);
    }
    return made;
}

void hierarchy_remove(const struct hierarchy *h)
{
    for (int i = 0; i < BOX_CG_COUNT; i++) {
        if (h->base[i] < 0)
            continue;
        for (int tries = 0; tries < 3; tries++) {
            own_fd parent = open(h->parent[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            if (parent < 0)
                continue;
            remove_base(parent, h->name);
            break;
        }
    }
}

void hierarchy_close(struct hierarchy *h)
{
    for (int i = 0; i < BOX_CG_COUNT; i++)
        own_close_fd(&h->base[i]);
    own_close_fd(&h->broker_leaf);
}
