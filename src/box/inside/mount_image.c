/* Boxes with an image of the store. The root is a read-only overlay of a template and the image's
 * tree. The template has every folder that cupel mounts on and every file that cupel relies on, as
 * real folders and files: names of the tree that differ in kind are hidden by it. An image on the
 * host adds to /usr, which is then an overlay of the tree's over the host's.
 *
 * The tree is hostile. Only its own top folder, "usr" and "usr/local" are ever named as layers, and
 * only as real folders. Runs in the box's first process; no heap. */
#include "box/inside/mount_image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "box/inside/mount_usr.h"
#include "box/inside/template.h"

#define SAFE (MS_NOSUID | MS_NODEV)
#define TREE "../" MOUNT_TREE /* seen from a template */
#define MOUNTS_ROOM 32768

bool mount_is_host(const struct box_image *image)
{
    static const struct box_image none;
    return memcmp(image, &none, sizeof none) == 0;
}

bool mount_image_valid(const struct box_image *image)
{
    if (!image->present)
        return mount_is_host(image);
    return image->present == 1 && image->on_host <= 1 && image->hex[64] == 0 &&
           strspn(image->hex, "0123456789abcdef") == 64;
}

bool mount_has_image(const struct mount_plan *plan)
{
    return plan->image && plan->image->present;
}

bool mount_stands_alone(const struct mount_plan *plan)
{
    return mount_has_image(plan) && !plan->image->on_host;
}

/* A real folder? -1: something else. */
static int is_folder(const char *path)
{
    struct stat st;
    if (lstat(path, &st) < 0)
        return errno == ENOENT || errno == ENOTDIR ? 0 : -1;
    errno = ENOTDIR;
    return S_ISDIR(st.st_mode) ? 1 : -1;
}

static bool is_of_host(const char *tree)
{
    static const char *const host[] = { "/", "/usr" };
    struct stat ours, theirs;
    bool same = stat(tree, &ours) < 0;
    for (size_t i = 0; i < sizeof host / sizeof host[0]; i++)
        same = same || stat(host[i], &theirs) < 0 ||
               (theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino);
    return same;
}

enum box_step mount_image_tree(const struct mount_plan *plan, const char **out_template)
{
    static char own[2 * TEMPLATE_PATH];
    char from[2 * TEMPLATE_PATH + sizeof plan->image->hex], to[2 * TEMPLATE_PATH];
    errno = ENOENT;
    if (!plan->place)
        return BOX_STEP_TREE_OF_IMAGE;
    if (plan->image->on_host && mount_usr_parted()) {
        errno = EOPNOTSUPP;
        return BOX_STEP_PARTED_IMAGE;
    }
    snprintf(from, sizeof from, "%s/" MOUNT_IMAGES "/%s", plan->place, plan->image->hex);
    snprintf(to, sizeof to, "%s/" MOUNT_TREE, plan->place);
    int found = is_folder(from);
    if (found <= 0 || mount(from, to, NULL, MS_BIND, NULL) < 0)
        return BOX_STEP_TREE_OF_IMAGE;
    errno = EXDEV;
    if (is_of_host(to))
        return BOX_STEP_TREE_OF_IMAGE;
    *out_template = plan->template;
    if (plan->template)
        return BOX_STEP_NONE;
    snprintf(own, sizeof own, "%s/" MOUNT_OWN, plan->place);
    if (mount("cupel", own, "tmpfs", SAFE, "mode=0755,size=24m,nr_inodes=2048") < 0 ||
        mount_layout_at(plan, own) < 0)
        return BOX_STEP_TREE;
    *out_template = own;
    return BOX_STEP_NONE;
}

/* /usr/local is the image's own, never the host's. */
static enum box_step mount_over_host(const char *root)
{
    char at[64];
    int usr = is_folder(TREE "/usr"), local = is_folder(TREE "/usr/local");
    if (usr < 0 || local < 0)
        return BOX_STEP_TREE_OF_IMAGE;
    snprintf(at, sizeof at, "%.20s/usr", root);
    if (mount_layers(usr ? "top:" TREE "/usr:/usr" : "top:/usr", at) < 0)
        return BOX_STEP_IMAGE;
    snprintf(at, sizeof at, "%.20s/usr/local", root);
    const char *layers = local ? "top/none:" TREE "/usr/local" : "top/none:root/srv";
    return mount_layers(layers, at) < 0 && (local || errno != ENOENT) ? BOX_STEP_IMAGE
                                                                      : BOX_STEP_NONE;
}

enum box_step mount_image_parts(const struct mount_plan *plan, const char *root)
{
    /* The tree could have files of these names in its own folders. */
    static const char *const whole[] = { "dev", "sys" };
    char layers[32], at[64];
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
        snprintf(layers, sizeof layers, "root/%s:top/none", whole[i]);
        snprintf(at, sizeof at, "%.20s/%s", root, whole[i]);
        if (mount_layers(layers, at) < 0)
            return BOX_STEP_IMAGE;
    }
    return plan->image->on_host ? mount_over_host(root) : BOX_STEP_NONE;
}

/* --- read back --- */

/* The n-th word of a line of mountinfo, and its length. */
static const char *word(const char *line, int n, size_t *out_len)
{
    for (; n > 0 && *line; line++)
        n -= *line == ' ';
    *out_len = strcspn(line, " \n");
    return line;
}

static bool is_one_of(const char *text, size_t len, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(list[i]) == len && strncmp(text, list[i], len) == 0)
            return true;
    }
    return false;
}

/* Layers are our template's or the tree, by names that lead nowhere else. */
static bool layers_are_own(const char *options)
{
    static const char *const own[] = { "root", "root/dev", "root/sys", "top/none", TREE };
    size_t len = strcspn(options, "\n");
    const char *at = memmem(options, len, "lowerdir=", strlen("lowerdir="));
    const char *again = at ? memmem(at + 1, len - (size_t)(at + 1 - options), "dir", 3) : NULL;
    if (!at || (again && again != at + strlen("lower")))
        return false; /* another upperdir, or lowerdir+ */
    at += strlen("lowerdir=");
    for (;;) {
        size_t name = strcspn(at, ":, \n");
        if (!is_one_of(at, name, own, sizeof own / sizeof own[0]))
            return false;
        if (at[name] != ':')
            return true;
        at += name + 1;
    }
}

static bool line_is_own(const char *line)
{
    static const char *const made[] = { "tmpfs", "proc", "devpts" };
    static const char *const devices[] = { "/dev/null",   "/dev/zero",    "/dev/full",
                                           "/dev/random", "/dev/urandom", "/dev/tty" };
    const size_t end = strcspn(line, "\n");
    const char *rest = memmem(line, end, " - ", 3);
    size_t at_len, type_len;
    const char *at = word(line, 4, &at_len);
    const bool work = at_len >= 10 && strncmp(at, "/workspace", 10) == 0 &&
                      (at_len == 10 || at[10] == '/');
    if (!rest)
        return false;
    if (work || is_one_of(at, at_len, devices, sizeof devices / sizeof devices[0]))
        return true;
    const char *type = word(rest + 3, 0, &type_len);
    if (type_len == 7 && strncmp(type, "overlay", 7) == 0)
        return layers_are_own(type);
    return is_one_of(type, type_len, made, sizeof made / sizeof made[0]);
}

bool mount_image_alone(void)
{
    static char text[MOUNTS_ROOM];
    size_t len = 0;
    own_fd fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    for (ssize_t n = 1; n > 0; len += n > 0 ? (size_t)n : 0) {
        n = fd < 0 || len + 1 >= sizeof text ? -1 : read(fd, text + len, sizeof text - 1 - len);
        if (n < 0)
            return false;
    }
    text[len] = 0;
    bool own = len > 0;
    for (const char *line = text; own && *line; line = strchr(line, '\n') + 1) {
        if (!strchr(line, '\n'))
            return false;
        own = line_is_own(line);
    }
    return own;
}
