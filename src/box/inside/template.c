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
#include "box/inside/mount_image.h"

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

static bool fits(const struct template_set *set, int i, const struct mount_plan *plan)
{
    const struct box_plants *plants = plan->plants;
    if (!set->at[i].used || set->at[i].count != plants->count ||
        set->at[i].late_code != plants->late_code || set->at[i].alone != mount_stands_alone(plan) ||
        !same_limits(&set->at[i].limits, &plan->limits) ||
        strcmp(set->at[i].font_list, plants->font_list) != 0)
        return false;
    for (uint32_t n = 0; n < plants->count; n++) {
        if (!is_same(set->at[i].fds[n], plan->plant_fds[n]))
            return false;
    }
    return true;
}

/* A failed template stays half made on its tmpfs and is never used. */
static int make(struct template_set *set, int i, const struct mount_plan *plan)
{
    const struct box_plants *plants = plan->plants;
    snprintf(set->at[i].path, TEMPLATE_PATH, "%s/%d", set->folder, i);
    if (mkdir(set->at[i].path, 0755) < 0 || mount_layout_at(plan, set->at[i].path) < 0)
        return -1;
    for (uint32_t n = 0; n < plants->count; n++) {
        set->at[i].fds[n] = fcntl(plan->plant_fds[n], F_DUPFD_CLOEXEC, 3);
        if (set->at[i].fds[n] < 0)
            return -1;
    }
    memcpy(set->at[i].font_list, plants->font_list, BOX_PLANT_NAME);
    set->at[i].count = plants->count;
    set->at[i].late_code = plants->late_code;
    set->at[i].alone = mount_stands_alone(plan);
    set->at[i].limits = plan->limits;
    set->at[i].used = true;
    return 0;
}

const char *template_place(struct template_set *set)
{
    if (!set->folder)
        set->folder = mount_folder();
    return set->folder;
}

const char *template_find(struct template_set *set, const struct mount_plan *plan)
{
    const uint32_t again = plan->plants->again;
    for (int i = 0; again && i < TEMPLATES_MAX; i++) {
        if (fits(set, i, plan))
            return set->at[i].path;
    }
    if (set->failed || !again)
        return NULL;
    for (int i = 0; template_place(set) && i < TEMPLATES_MAX; i++) {
        if (set->at[i].used)
            continue;
        if (make(set, i, plan) == 0)
            return set->at[i].path;
        break;
    }
    set->failed = true; /* or all are taken: make no more */
    return NULL;
}
