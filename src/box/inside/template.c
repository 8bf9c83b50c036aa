/* Templates. Laying out a root takes dozens of calls and as many inodes; an engine that builds
 * thousands of boxes does it once. The templates lie on a tmpfs in the broker's own mount
 * namespace, are written once, and boxes see them only as a read-only lower layer. Broker; no
 * heap. */
#include "box/inside/template.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "box/inside/mount.h"

static const char *mount_folder(void)
{
    /* Not /tmp, where boxes mount their root. These folders are usually empty. */
    static const char *const folders[] = { "/mnt", "/media", "/srv" };
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        if (mount("cupel", folders[i], "tmpfs", MS_NOSUID | MS_NODEV,
                  "mode=0755,size=64m,nr_inodes=16384") == 0)
            return folders[i];
    }
    return NULL;
}

static bool is_same(int a, int b)
{
    struct stat x, y;
    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static bool same_limits(const struct system_limits *a, const struct system_limits *b)
{
    return a->memory_bytes == b->memory_bytes && a->pids == b->pids &&
           a->cpu_thousandths == b->cpu_thousandths;
}

static bool fits(const struct template_set *set, int i, const struct box_plants *plants,
                 const struct system_limits *limits, const int *fds)
{
    if (!set->at[i].used || set->at[i].count != plants->count ||
        set->at[i].late_code != plants->late_code || !same_limits(&set->at[i].limits, limits) ||
        strcmp(set->at[i].font_list, plants->font_list) != 0)
        return false;
    for (uint32_t n = 0; n < plants->count; n++) {
        if (!is_same(set->at[i].fds[n], fds[n]))
            return false;
    }
    return true;
}

/* A failed template stays half made on its tmpfs and is never used. */
static int make(struct template_set *set, int i, const struct box_plants *plants,
                const struct system_limits *limits, const int *fds)
{
    struct mount_plan plan = { .plants = plants, .plant_fds = fds, .limits = *limits };
    char path[2 * TEMPLATE_PATH];
    snprintf(set->at[i].path, TEMPLATE_PATH, "%s/%d", set->folder, i);
    snprintf(path, sizeof path, "%s/root", set->at[i].path);
    if (mkdir(set->at[i].path, 0755) < 0 || mkdir(path, 0755) < 0 || chdir(path) < 0)
        return -1;
    int failed = mount_layout(&plan);
    if (chdir("/") < 0 || failed)
        return -1;
    for (uint32_t n = 0; n < plants->count; n++) {
        set->at[i].fds[n] = fcntl(fds[n], F_DUPFD_CLOEXEC, 3);
        if (set->at[i].fds[n] < 0)
            return -1;
    }
    memcpy(set->at[i].font_list, plants->font_list, BOX_PLANT_NAME);
    set->at[i].count = plants->count;
    set->at[i].late_code = plants->late_code;
    set->at[i].limits = *limits;
    set->at[i].used = true;
    return 0;
}

const char *template_find(struct template_set *set, const struct box_plants *plants,
                          const struct system_limits *limits, const int *fds)
{
    for (int i = 0; plants->again && i < TEMPLATES_MAX; i++) {
        if (fits(set, i, plants, limits, fds))
            return set->at[i].path;
    }
    if (set->failed || !plants->again)
        return NULL;
    if (!set->folder)
        set->folder = mount_folder();
    for (int i = 0; set->folder && i < TEMPLATES_MAX; i++) {
        if (set->at[i].used)
            continue;
        if (make(set, i, plants, limits, fds) == 0)
            return set->at[i].path;
        break;
    }
    set->failed = true; /* or all are taken: make no more */
    return NULL;
}
