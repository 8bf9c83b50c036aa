/* The facts that a tree shows. Every name in it is an attacker's: links are followed below the tree
 * by hand, at most 40 of them, a path that does not fit its field counts as absent, and files are
 * opened below the tree by the kernel (openat2). */
#include "image/look.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/own.h"
#include "base/str.h"
#include "image/elf.h"
#include "image/os_release.h"
#include "image/root.h"

#define LINKS_MAX 40
#define OS_RELEASE_MAX 8192

/* As a box's PATH has them; then where builds of Python and node put themselves. */
static const char *const folders[] = { "usr/local/bin", "usr/bin", "bin", "opt/python/bin",
                                       "usr/local/python/bin", "opt/node/bin" };
#define MINOR_MOST 19
#define MINOR_LEAST 8

/* --- links --- */

/* Put the link's target before what is left of the path. */
static bool put_before(char *rest, size_t room, const char *target)
{
    char joined[PATH_MAX];
    int n = snprintf(joined, sizeof joined, "%s/%s", target, rest);
    if (n < 0 || (size_t)n >= sizeof joined || (size_t)n >= room)
        return false;
    memcpy(rest, joined, (size_t)n + 1);
    return true;
}

static void drop_last(char *path)
{
    char *slash = strrchr(path, '/');
    *(slash ? slash : path) = 0;
}

/* The path without links, relative to the tree. False: it leads nowhere, or not to a file. */
static bool resolve(int tree, const char *path, char out[IMAGE_LOOK_PATH])
{
    char rest[PATH_MAX], done[PATH_MAX] = "", target[PATH_MAX];
    struct stat st = { 0 };
    int links = 0;
    snprintf(rest, sizeof rest, "%s", path);
    while (rest[0]) {
        size_t len = strcspn(rest, "/"), before = strlen(done);
        char part[NAME_MAX + 1];
        if (len > NAME_MAX)
            return false;
        snprintf(part, sizeof part, "%.*s", (int)len, rest);
        memmove(rest, rest + len + (rest[len] == '/'), strlen(rest + len + (rest[len] == '/')) + 1);
        if (part[0] == 0 || strcmp(part, ".") == 0)
            continue;
        if (strcmp(part, "..") == 0) {
            drop_last(done);
            continue;
        }
        if (before + len + 2 > sizeof done)
            return false;
        snprintf(done + before, sizeof done - before, "%s%s", before > 0 ? "/" : "", part);
        ssize_t n = readlinkat(tree, done, target, sizeof target - 1);
        if (n < 0) {
            if (errno != EINVAL) /* EINVAL: no link */
                return false;
            continue;
        }
        target[n] = 0;
        done[target[0] == '/' ? 0 : before] = 0;
        if (++links > LINKS_MAX || !put_before(rest, sizeof rest, target))
            return false;
    }
    if (strlen(done) + 2 > IMAGE_LOOK_PATH || fstatat(tree, done, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
        !S_ISREG(st.st_mode) || !(st.st_mode & 0111))
        return false;
    snprintf(out, IMAGE_LOOK_PATH, "/%.*s", IMAGE_LOOK_PATH - 2, done);
    return true;
}

static bool find(int tree, const char *name, char out[IMAGE_LOOK_PATH])
{
    char path[IMAGE_LOOK_PATH];
    for (size_t i = 0; i < array_len(folders); i++) {
        snprintf(path, sizeof path, "%s/%s", folders[i], name);
        if (resolve(tree, path, out))
            return true;
    }
    return false;
}

/* --- Python --- */

/* "python3.13" or "python3.13t" to 13. */
static int minor_of(const char *name)
{
    const char *head = "python3.";
    size_t len = strlen(head);
    if (strncmp(name, head, len) != 0 || !isdigit((unsigned char)name[len]))
        return 0;
    int minor = name[len] - '0';
    if (isdigit((unsigned char)name[len + 1]))
        minor = 10 * minor + name[len + 1] - '0';
    return minor;
}

static bool is_folder(int tree, const char *path)
{
    own_fd fd = image_root_open(tree, path, O_PATH | O_DIRECTORY);
    return fd >= 0;
}

/* PREFIX is what stands before /bin/; "" for /bin itself. */
static bool prefix_of(const char *path, char out[IMAGE_LOOK_PATH])
{
    snprintf(out, IMAGE_LOOK_PATH, "%s", path);
    drop_last(out);
    size_t len = strlen(out);
    if (len < 4 || strcmp(out + len - 4, "/bin") != 0)
        return false;
    out[len - 4] = 0;
    return true;
}

static int minor_beside(int tree, const char *prefix)
{
    char path[2 * IMAGE_LOOK_PATH];
    for (int minor = MINOR_MOST; minor >= MINOR_LEAST; minor--) {
        snprintf(path, sizeof path, "%s/lib/python3.%d", prefix[0] ? prefix + 1 : ".", minor);
        if (is_folder(tree, path))
            return minor;
    }
    return 0;
}

/* Debian's own python adds to /usr/local; it has the folder that its packages share. */
static bool is_debians(int tree, const char *prefix)
{
    return strcmp(prefix, "/usr") == 0 && is_folder(tree, "usr/lib/python3/dist-packages");
}

static void look_at_python(int tree, struct image_facts *out)
{
    char name[16], prefix[IMAGE_LOOK_PATH];
    bool found = find(tree, "python3", out->python);
    for (int minor = MINOR_MOST; !found && minor >= MINOR_LEAST; minor--) {
        snprintf(name, sizeof name, "python3.%d", minor);
        found = find(tree, name, out->python);
    }
    if (!found || !prefix_of(out->python, prefix))
        return;
    out->python_minor = minor_of(strrchr(out->python, '/') + 1);
    if (out->python_minor == 0)
        out->python_minor = minor_beside(tree, prefix);
    if (out->python_minor == 0)
        return;
    char path[2 * IMAGE_LOOK_PATH];
    int n = is_debians(tree, prefix)
                ? snprintf(path, sizeof path, "/usr/local/lib/python3.%d/dist-packages",
                           out->python_minor)
                : snprintf(path, sizeof path, "%s/lib/python3.%d/site-packages", prefix,
                           out->python_minor);
    if (n > 0 && n < IMAGE_LOOK_PATH)
        memcpy(out->python_packages, path, (size_t)n + 1);
}

/* --- libc and the name of the system --- */

static void look_at_libc(int tree, struct image_facts *out)
{
    const char *program = out->python[0] ? out->python : out->sh;
    own_fd fd = program[0] ? image_root_open(tree, program + 1, O_RDONLY | O_NONBLOCK | O_NOCTTY)
                           : -1;
    if (fd < 0 || !image_elf_loader(fd, out->loader, sizeof out->loader))
        return;
    const char *name = strrchr(out->loader, '/');
    if (name && strncmp(name, "/ld-musl-", 9) == 0)
        snprintf(out->libc, sizeof out->libc, "musl");
    else if (name && (strncmp(name, "/ld-linux", 9) == 0 || strncmp(name, "/ld64.so", 8) == 0 ||
                      strcmp(name, "/ld.so.1") == 0))
        snprintf(out->libc, sizeof out->libc, "glibc");
}

static void look_at_system(int tree, struct image_facts *out)
{
    char text[OS_RELEASE_MAX];
    struct stat st;
    static const char *const files[] = { "etc/os-release", "usr/lib/os-release" };
    for (size_t i = 0; i < array_len(files) && !out->os[0]; i++) {
        own_fd fd = image_root_open(tree, files[i], O_RDONLY | O_NONBLOCK | O_NOCTTY);
        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
            continue;
        ssize_t n = read(fd, text, sizeof text);
        if (n > 0)
            image_os_release((struct str){ text, (size_t)n }, out->os, sizeof out->os);
    }
}

int image_look(int tree_dirfd, struct image_facts *out, struct err *err)
{
    struct image_facts facts = { 0 };
    struct stat st;
    if (fstat(tree_dirfd, &st) < 0 || !S_ISDIR(st.st_mode)) {
        return err_input(err, "image", NULL, "a readable folder",
                         "the tree of the image cannot be read");
    }
    look_at_python(tree_dirfd, &facts);
    (void)(find(tree_dirfd, "node", facts.node) || find(tree_dirfd, "nodejs", facts.node));
    (void)find(tree_dirfd, "bash", facts.bash);
    (void)find(tree_dirfd, "sh", facts.sh);
    look_at_libc(tree_dirfd, &facts);
    look_at_system(tree_dirfd, &facts);
    *out = facts;
    return 0;
}
