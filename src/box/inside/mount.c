/* The box's file system. Runs in the box's first process, in its own mount namespace, with
 * capabilities in the box's user namespace only; no heap.
 *
 * 1. The root is a tmpfs of the box, so cupel makes every mount point itself and none is a link
 *    that the image controls.
 * 2. The image is only the lower layer of an overlay that belongs to this box, so boxes do not
 *    share locks and inotify watches on its files.
 * 3. Nothing else of the host is in the box but copies of a few public files of /etc and six
 *    device nodes. */
#include "box/inside/mount.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/own.h"
#include "base/io.h"
#include "box/inside/mount_folder.h"
#include "box/inside/mount_image.h"
#include "box/inside/mount_usr.h"

#define count(a) (sizeof(a) / sizeof((a)[0]))
#define TEMPLATE_AT "/tmp" /* mount point of a root made from a template */
#define PTYS_MAX "16" /* in a box */
#define SAFE (MS_NOSUID | MS_NODEV)

/* The template of this process's box; NULL: none. */
static const char *template;

/* Paths are relative to the template, so that a box's mountinfo shows no path of the broker. Leaves
 * the new root as current directory. */
static int overlay_template(const char *top, const char *below, const char *at)
{
    return chdir(template) < 0 || mount_overlay(top, below, at) < 0 ? -1 : chdir(TEMPLATE_AT);
}

enum box_step mount_root(const struct mount_plan *plan)
{
    /* Any directory serves: the mount covers it only in this namespace, and the image needs nothing
     * under these. */
    static const char *const covers[] = { "/tmp", "/mnt", "/media", "/srv" };
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return BOX_STEP_PRIVATE;
    template = plan->template;
    enum box_step step = mount_has_image(plan) ? mount_image_tree(plan, &template) : BOX_STEP_NONE;
    if (step)
        return step;
    const char *below = mount_has_image(plan) ? "../" MOUNT_TREE : "top/none";
    if (template)
        return overlay_template("root", below, TEMPLATE_AT) < 0 ? BOX_STEP_ROOT : BOX_STEP_NONE;
    for (size_t i = 0; i < count(covers); i++) {
        if (mount("cupel", covers[i], "tmpfs", SAFE, "mode=0755,size=16m,nr_inodes=2048") == 0)
            return chdir(covers[i]) < 0 ? BOX_STEP_ROOT : BOX_STEP_NONE;
        if (errno != ENOENT && errno != ENOTDIR)
            break;
    }
    return BOX_STEP_ROOT;
}

static int write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return -1;
    int failed = io_write_all(fd, text, strlen(text));
    close(fd);
    return failed;
}

static int copy_from(int from, const char *path, mode_t mode)
{
    char chunk[16384];
    off_t at = 0;
    int to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (to < 0)
        return -1;
    for (;;) {
        ssize_t n = pread(from, chunk, sizeof chunk, at);
        if (n <= 0 || io_write_all(to, chunk, (size_t)n) < 0) {
            close(to);
            return n == 0 ? 0 : -1;
        }
        at += n;
    }
}

/* Copy a directory with its files and links, two levels deep, once for all boxes. */
static int copy_links(const char *from, const char *to)
{
    char target[512], source[300], path[300];
    own_dirp dir = opendir(from);
    int failed = !dir || mkdir(to, 0755) < 0;
    for (const struct dirent *entry; !failed && (entry = readdir(dir));) {
        struct stat st;
        snprintf(source, sizeof source, "%.20s/%.255s", from, entry->d_name);
        snprintf(path, sizeof path, "%.20s/%.255s", to, entry->d_name);
        if (entry->d_name[0] == '.' || lstat(source, &st) < 0)
            continue;
        if (S_ISLNK(st.st_mode)) {
            ssize_t n = readlink(source, target, sizeof target - 1);
            target[n > 0 ? n : 0] = 0;
            failed = symlink(target, path) < 0;
        } else if (S_ISDIR(st.st_mode) && strlen(source) < 20) {
            failed = copy_links(source, path) < 0;
        } else if (S_ISREG(st.st_mode)) {
            int fd = open(source, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
            failed = fd >= 0 && copy_from(fd, path, 0644) < 0;
            if (fd >= 0)
                close(fd);
        }
    }
    return failed ? -1 : 0;
}

/* Where /usr is not merged, as on Alpine, these are separate folders with the loader and the C
 * library. */
static const char *const apart[] = { "/bin", "/sbin", "/lib", "/lib64" };

static bool is_apart(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Mount an overlay on each. `at` is the new root, `none` an empty folder. */
static int overlay_apart(const char *at, const char *none)
{
    char to[32];
    for (size_t i = 0; i < count(apart); i++) {
        snprintf(to, sizeof to, "%s%s", at, apart[i]);
        if (is_apart(apart[i]) && mount_overlay(none, apart[i], to) < 0)
            return -1;
    }
    return 0;
}

/* Of an image that stands alone, the rest of /etc and the folders of programs are its own. */
static int make_tree(bool alone)
{
    static const char *const dirs[] = {
        "usr", "etc", "dev", "dev/shm", "dev/pts", "proc", "tmp", "workspace", "home", "mnt",
        "var", "run", "srv", "etc/ssl",
    };
    static const char *const links[][2] = {
        { "/tmp", "var/tmp" },        { "/workspace", "home/user" },
        { "/workspace", "mnt/data" }, { "/run", "var/run" },
        { "/proc/self/mounts", "etc/mtab" },
        /* Leads nowhere, and so loads nothing, but in the box of a seeded run. */
        { BOX_PLANT_DIR "/preload", "etc/ld.so.preload" },
        { "../usr/lib/os-release", "etc/os-release" },
    };
    for (size_t i = 0; i < count(dirs) - alone; i++) {
        if (mkdir(dirs[i], 0755) < 0)
            return -1;
    }
    for (size_t i = 0; i < count(links) - alone; i++) {
        if (symlink(links[i][0], links[i][1]) < 0)
            return -1;
    }
    for (size_t i = 0; !alone && i < count(apart); i++) {
        char merged[16];
        snprintf(merged, sizeof merged, "usr%s", apart[i]);
        if (is_apart(apart[i]) ? mkdir(apart[i] + 1, 0755) : symlink(merged, apart[i] + 1))
            return -1;
    }
    /* Landlock forbids reading this file; see enter.c. */
    return write_file(".landlock", "");
}

/* cupel's own files: the first layer of the overlay over /usr. */
static int copy_plants(const struct mount_plan *plan, const char *at)
{
    char path[sizeof "../top/lib/cupel/" + BOX_PLANT_NAME];
    static const char *const dirs[] = { "top", "top/none", "top/lib", "top/lib/cupel" };
    for (size_t i = 0; i < count(dirs); i++) {
        snprintf(path, sizeof path, "%s/%s", at, dirs[i]);
        if (mkdir(path, 0755) < 0)
            return -1;
    }
    for (uint32_t i = 0; i < plan->plants->count; i++) {
        snprintf(path, sizeof path, "%s/top/lib/cupel/%s", at, plan->plants->name[i]);
        bool program = strcmp(plan->plants->name[i], BOX_PLANT_PROGRAM) == 0;
        if (copy_from(plan->plant_fds[i], path, program ? 0755 : 0644) < 0)
            return -1;
    }
    snprintf(path, sizeof path, "%s/top/lib/cupel/main.sh", at);
    return plan->plants->late_code ? symlink("/proc/self/fd/252", path) : 0;
}

static int copy_etc(bool alone)
{
    static const char *const files[] = {
        "ld.so.cache", "nsswitch.conf", "protocols", "services", "mime.types", "debian_version",
        "ld-musl-x86_64.path", "ld-musl-aarch64.path", "ssl/openssl.cnf",
    };
    static const char passwd[] = "root:x:0:0:root:/:/usr/sbin/nologin\n"
                                 "user:x:1000:1000:user:/home/user:/bin/bash\n"
                                 "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n";
    static const char group[] = "root:x:0:\nuser:x:1000:\nnogroup:x:65534:\n";
    char path[64];
    for (size_t i = 0; !alone && i < count(files); i++) {
        snprintf(path, sizeof path, "/etc/%s", files[i]);
        int from = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (from < 0)
            continue; /* not every host has every file */
        int failed = copy_from(from, path + 1, 0644);
        close(from);
        if (failed)
            return -1;
    }
    if (alone && write_file("etc/resolv.conf", "") < 0)
        return -1;
    return write_file("etc/passwd", passwd) || write_file("etc/group", group) ||
                   write_file("etc/hosts", "127.0.0.1 localhost box\n::1 localhost\n") ||
                   write_file("etc/hostname", "box\n")
               ? -1
               : 0;
}

/* Directories of /etc that links lead through. Of /etc/ssl only the certificates of authorities,
 * never the keys. */
static const char *const etc_dirs[] = { "/etc/alternatives", "/etc/fonts", "/etc/ssl/certs" };

static int overlay_etc(void)
{
    for (size_t i = 0; i < count(etc_dirs); i++) {
        const char *from = etc_dirs[i], *to = from + 1;
        if (access(from, R_OK) < 0)
            continue;
        if (mkdir(to, 0755) < 0)
            return -1;
        /* Fails when something is mounted below it: see mount_usr.c. */
        if (mount_overlay("usr/top/none", from, to) < 0 &&
            (rmdir(to) < 0 || copy_links(from, to) < 0))
            return -1;
    }
    return 0;
}

/* Memory devices, and the terminal of the opener: an occupant has a session of its own, and
 * so never the caller's. */
static const struct {
    const char *path;
    unsigned kind; /* major number */
} dev_nodes[] = {
    { "/dev/null", 1 },   { "/dev/zero", 1 },    { "/dev/full", 1 },
    { "/dev/random", 1 }, { "/dev/urandom", 1 }, { "/dev/tty", 5 },
};

/* Mount points for the nodes, and links. */
static int lay_out_dev(void)
{
    static const char *const links[][2] = {
        { "/proc/self/fd", "dev/fd" },
        { "/proc/self/fd/0", "dev/stdin" },
        { "/proc/self/fd/1", "dev/stdout" },
        { "/proc/self/fd/2", "dev/stderr" },
        { "pts/ptmx", "dev/ptmx" },
    };
    for (size_t i = 0; i < count(dev_nodes); i++) {
        if (write_file(dev_nodes[i].path + 1, "") < 0)
            return -1;
    }
    for (size_t i = 0; i < count(links); i++) {
        if (symlink(links[i][0], links[i][1]) < 0)
            return -1;
    }
    return 0;
}

static int mount_dev_nodes(void)
{
    for (size_t i = 0; i < count(dev_nodes); i++) {
        const char *path = dev_nodes[i].path;
        struct stat st;
        /* Accept only the real devices, whatever the host's /dev holds. */
        if (stat(path, &st) < 0)
            return -1;
        if (!S_ISCHR(st.st_mode) || major(st.st_rdev) != dev_nodes[i].kind) {
            errno = ENODEV;
            return -1;
        }
        if (mount(path, path + 1, NULL, MS_BIND, NULL) < 0)
            return -1;
    }
    return 0;
}

/* Terminals of the box's own. The kernel's pool of terminals is the host's, 4,096 by default, of
 * which it keeps 1,024 for the host's own: 128 boxes of PTYS_MAX stay below the rest. */
static int mount_pts(void)
{
    return mount("devpts", "dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
                 "newinstance,ptmxmode=0666,mode=0620,max=" PTYS_MAX);
}

static int lay_out_template(const struct mount_plan *plan)
{
    const bool alone = mount_stands_alone(plan);
    if (make_tree(alone) < 0 || copy_etc(alone) < 0 || lay_out_dev() < 0 ||
        copy_plants(plan, "..") < 0 || system_write(&plan->limits) < 0)
        return -1;
    /* Without an overlay over /usr, the root itself has them. */
    if (alone)
        return rename("../top/lib", "usr/lib");
    for (size_t i = 0; i < count(etc_dirs); i++) {
        if (access(etc_dirs[i], R_OK) == 0 && copy_links(etc_dirs[i], etc_dirs[i] + 1) < 0)
            return -1;
    }
    return 0;
}

int mount_layout_at(const struct mount_plan *plan, const char *folder)
{
    if (chdir(folder) < 0 || mkdir("root", 0755) < 0 || chdir("root") < 0)
        return -1;
    int failed = lay_out_template(plan);
    int saved = errno;
    if (chdir("/") < 0)
        return -1;
    errno = saved;
    return failed;
}

/* Without a template. cupel's own files lie on a tmpfs that the overlay over /usr then covers: no
 * other path reaches them. */
static enum box_step lay_out(const struct mount_plan *plan)
{
    if (make_tree(/* alone= */ false) < 0 || system_write(&plan->limits) < 0)
        return BOX_STEP_TREE;
    if (mount("cupel", "usr", "tmpfs", SAFE, "mode=0755,size=24m,nr_inodes=64") < 0 ||
        copy_plants(plan, "usr") < 0)
        return BOX_STEP_PLANT;
    if (copy_etc(/* alone= */ false) < 0 || overlay_etc() < 0)
        return BOX_STEP_ETC;
    if (overlay_apart(".", "usr/top/none") < 0)
        return BOX_STEP_IMAGE;
    if (lay_out_dev() < 0)
        return BOX_STEP_DEV;
    return BOX_STEP_NONE;
}

/* From the template, or from the tmpfs with cupel's own files, which "usr" then covers. */
static int mount_parts(void)
{
    if (template)
        return chdir(template) < 0 || mount_usr(TEMPLATE_AT "/usr") < 0 ? -1 : chdir(TEMPLATE_AT);
    return chdir("usr") < 0 || mount_usr("../usr") < 0 ? -1 : chdir("..");
}

static int mount_whole(void)
{
    return template ? overlay_template("top", "/usr", TEMPLATE_AT "/usr")
                    : mount_overlay("usr/top", "/usr", "usr");
}

static enum box_step mount_of_host(void)
{
    return (mount_usr_parted() ? mount_parts : mount_whole)() < 0 ? BOX_STEP_IMAGE : BOX_STEP_NONE;
}

static enum box_step mount_of_store(const struct mount_plan *plan)
{
    if (chdir(template) < 0)
        return BOX_STEP_IMAGE;
    enum box_step step = mount_image_parts(plan, TEMPLATE_AT);
    return step ? step : chdir(TEMPLATE_AT) < 0 ? BOX_STEP_IMAGE : BOX_STEP_NONE;
}

/* /usr/local belongs to the administrator, not to the image: hide it under an empty folder. */
static int hide_local(void)
{
    if (mount("srv", "usr/local", NULL, MS_BIND, NULL) < 0 && errno != ENOENT)
        return -1;
    return mount(NULL, "usr/local", NULL, MS_BIND | MS_REMOUNT | MS_RDONLY | SAFE, NULL) < 0 &&
                   errno != ENOENT && errno != EINVAL
               ? -1
               : 0;
}

enum box_step mount_image(const struct mount_plan *plan)
{
    enum box_step step = template ? BOX_STEP_NONE : lay_out(plan);
    if (step || (step = mount_has_image(plan) ? mount_of_store(plan) : mount_of_host()))
        return step;
    if (template && !mount_stands_alone(plan) &&
        (chdir(template) < 0 || overlay_apart(TEMPLATE_AT, "top/none") < 0 ||
         chdir(TEMPLATE_AT) < 0))
        return BOX_STEP_IMAGE;
    if (!mount_has_image(plan) && hide_local() < 0)
        return BOX_STEP_IMAGE;
    return mount_dev_nodes() < 0 || mount_pts() < 0 ? BOX_STEP_DEV : BOX_STEP_NONE;
}

enum box_step mount_proc(void)
{
    if (mount("proc", "proc", "proc", SAFE | MS_NOEXEC, NULL) < 0)
        return BOX_STEP_PROC;
    return BOX_STEP_NONE;
}

/* The kernel drops every name from its cache that is no mount point. */
static int hide_kernel(void)
{
    const char *options = "subset=pid,hidepid=invisible";
    return mount("proc", "proc", "proc", MS_REMOUNT | SAFE | MS_NOEXEC, options);
}

static int link_font_list(const struct mount_plan *plan)
{
    char at[sizeof "mnt/t/.matplotlib/" + BOX_PLANT_NAME];
    char to[sizeof BOX_PLANT_DIR + BOX_PLANT_NAME];
    if (mkdir("mnt/t/.matplotlib", 0755) < 0 ||
        chown("mnt/t/.matplotlib", plan->occupant_uid, plan->occupant_gid) < 0)
        return -1;
    if (!plan->plants->font_list[0])
        return 0;
    snprintf(at, sizeof at, "mnt/t/.matplotlib/%s", plan->plants->font_list);
    snprintf(to, sizeof to, "%s/%s", BOX_PLANT_DIR, plan->plants->font_list);
    return symlink(to, at);
}

enum box_step mount_writable(const struct mount_plan *plan, int *out_fd)
{
    static const struct {
        const char *from, *to; /* to: NULL: mount_folder mounts it */
        mode_t mode;
    } parts[] = {
        { "mnt/" BOX_WORK, NULL, 0755 },
        { "mnt/t", "tmp", 01777 },
        { "mnt/s", "dev/shm", 01777 },
    };
    char options[96];
    snprintf(options, sizeof options, "mode=0755,size=%lld,nr_inodes=%lld",
             (long long)plan->disk_bytes, (long long)plan->disk_inodes);
    if (mount("cupel", "mnt", "tmpfs", SAFE, options) < 0)
        return BOX_STEP_WRITABLE;
    *out_fd = open("mnt", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < count(parts); i++) {
        if (mkdir(parts[i].from, 0700) < 0 || chmod(parts[i].from, parts[i].mode) < 0 ||
            chown(parts[i].from, plan->occupant_uid, plan->occupant_gid) < 0 ||
            (parts[i].to && mount(parts[i].from, parts[i].to, NULL, MS_BIND, NULL) < 0))
            return BOX_STEP_WRITABLE;
    }
    enum box_step step = mount_folder(plan);
    if (step || (step = mount_places(plan)))
        return step;
    if (*out_fd < 0 || link_font_list(plan) < 0 || umount2("mnt", MNT_DETACH) < 0)
        return BOX_STEP_WRITABLE;
    return BOX_STEP_NONE;
}

enum box_step mount_seal(void)
{
    if (mount(NULL, ".", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | SAFE, NULL) < 0)
        return BOX_STEP_SEAL;
    if (system_bind() < 0 || hide_kernel() < 0)
        return BOX_STEP_PROC;
    if (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
        return BOX_STEP_PIVOT;
    return BOX_STEP_NONE;
}
