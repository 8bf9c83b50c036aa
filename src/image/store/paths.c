/* Names below a folder. Every path came from an archive, an index or a build: it is checked, then
 * opened beneath its folder without following any link (openat2), so that no entry leads out of its
 * tree, whatever is in the tree. */
#include "image/store/store_int.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"

#define FOLDER (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

bool image_hex_valid(const char *text)
{
    return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

int image_store_sys(struct err *err, const char *fmt, ...)
{
    int saved = errno;
    char text[300];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    errno = saved;
    err_sys(err, "%s", text);
    if (saved == ENOSPC || saved == EDQUOT)
        err_hint(err, "nothing was kept; make room on the disk of the state folder: 'cupel images "
                      "prune' removes what no name leads to, 'cupel images rm' an image");
    else if (saved == EPERM || saved == EXDEV)
        err_hint(err, "the state folder must be where hard links can be made; CUPEL_STATE names "
                      "another folder");
    return -1;
}

static int refuse(struct str path, const char *bound, const char *why, struct err *err)
{
    char plain[120];
    str_plain(plain, sizeof plain, path);
    return err_input(err, "path", plain, bound, "path '%s' %s", plain, why);
}

int image_path_check(struct str path, struct err *err)
{
    size_t parts = 0, begin = 0;
    if (path.len == 0 || path.len >= PATH_MAX)
        return refuse(path, "1 to 4095 bytes", "has no acceptable length", err);
    if (memchr(path.at, 0, path.len))
        return refuse(path, "no NUL", "has a NUL in it", err);
    if (path.at[0] == '/')
        return refuse(path, "relative", "begins with a slash", err);
    for (size_t i = 0; i <= path.len; i++) {
        if (i < path.len && path.at[i] != '/')
            continue;
        struct str part = { path.at + begin, i - begin };
        if (part.len == 0 || str_is(part, ".") || str_is(part, ".."))
            return refuse(path, "no part empty, '.' or '..'", "is not plain", err);
        if (part.len > IMAGE_PART_MAX)
            return refuse(path, "at most 255 bytes a part", "has a part that is too long", err);
        begin = i + 1;
        parts++;
    }
    if (parts > IMAGE_DEPTH_MAX)
        return refuse(path, "at most 128 parts", "is nested too deep", err);
    return 0;
}

/* One part after another, for folders that are not there and kernels without openat2. */
static int open_by_parts(int dirfd, const char *path, bool make, image_path_made made, void *user)
{
    char part[NAME_MAX + 1];
    own_fd at = openat(dirfd, ".", FOLDER);
    while (at >= 0 && *path) {
        size_t len = strcspn(path, "/");
        memcpy(part, path, len);
        part[len] = 0;
        path += len + (path[len] == '/');
        int next = openat(at, part, FOLDER);
        if (next < 0 && errno == ENOENT && make && mkdirat(at, part, 0755) == 0) {
            next = openat(at, part, FOLDER);
            if (next >= 0 && fchmod(next, 0755) < 0)
                own_close_fd(&next);
            if (next >= 0 && made)
                made(user, at, part);
        }
        own_close_fd(&at);
        at = next;
    }
    return take_fd(&at);
}

int image_path_open(int dirfd, struct str path, bool make, image_path_made made, void *user)
{
    char text[PATH_MAX];
    struct open_how how = { .flags = FOLDER, .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };
    if (path.len >= sizeof text) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(text, path.at, path.len);
    text[path.len] = 0;
    int fd = (int)syscall(SYS_openat2, dirfd, path.len > 0 ? text : ".", &how, sizeof how);
    if (fd >= 0 || !(errno == ENOSYS || errno == EPERM || (errno == ENOENT && make)))
        return fd;
    return open_by_parts(dirfd, text, make, made, user);
}

static int64_t empty_deep(int dirfd, int depth);

static int64_t remove_deep(int parent_fd, const char *name, int depth)
{
    if (unlinkat(parent_fd, name, 0) == 0)
        return 1;
    if (errno == ENOENT)
        return 0;
    if (errno != EISDIR)
        return -1;
    own_fd fd = openat(parent_fd, name, FOLDER);
    if (fd < 0 && errno == EACCES && fchmodat(parent_fd, name, 0700, 0) == 0)
        fd = openat(parent_fd, name, FOLDER); /* a build may leave folders that it closed */
    if (fd < 0)
        return -1;
    int64_t below = empty_deep(fd, depth);
    return below < 0 || unlinkat(parent_fd, name, AT_REMOVEDIR) < 0 ? -1 : below + 1;
}

static int64_t empty_deep(int dirfd, int depth)
{
    int64_t count = 0;
    if (depth > 16 * IMAGE_DEPTH_MAX) {
        errno = ELOOP;
        return -1;
    }
    int copy = openat(dirfd, ".", FOLDER);
    own_dirp dir = copy >= 0 ? fdopendir(copy) : NULL;
    if (!dir)
        return -1;
    struct stat st;
    if (fstat(dirfd, &st) == 0 && (st.st_mode & 0300) != 0300)
        fchmod(dirfd, 0700);
    for (struct dirent *entry; errno = 0, (entry = readdir(dir));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        int64_t gone = remove_deep(dirfd, entry->d_name, depth + 1);
        if (gone < 0)
            return -1;
        count += gone;
    }
    return errno ? -1 : count;
}

int64_t image_path_remove(int parent_fd, const char *name)
{
    return remove_deep(parent_fd, name, 0);
}

int64_t image_path_empty(int dirfd)
{
    return empty_deep(dirfd, 0);
}

int image_path_folder(int dirfd, const char *name, mode_t mode)
{
    bool made = mkdirat(dirfd, name, mode) == 0;
    if (!made && errno != EEXIST)
        return -1;
    own_fd fd = openat(dirfd, name, FOLDER);
    if (fd < 0 || (made && fchmod(fd, mode) < 0)) /* the caller's umask may have changed it */
        return -1;
    return take_fd(&fd);
}

void image_names_done(struct image_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->at[i]);
    free(names->at);
    *names = IMAGE_NAMES_INIT;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int image_names_read(int dirfd, struct image_names *out)
{
    own_image_names names = IMAGE_NAMES_INIT;
    int copy = openat(dirfd, ".", FOLDER);
    own_dirp dir = copy >= 0 ? fdopendir(copy) : NULL;
    if (!dir)
        return -1;
    for (struct dirent *entry; errno = 0, (entry = readdir(dir));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (names.count >= IMAGE_ENTRIES_MAX) {
            errno = EOVERFLOW;
            return -1;
        }
        names.at = buf_list_room(names.at, names.count, sizeof *names.at);
        names.at[names.count++] = buf_strdup(str_of(entry->d_name));
    }
    if (errno)
        return -1;
    if (names.count > 0)
        qsort(names.at, names.count, sizeof *names.at, by_bytes);
    *out = names;
    names = IMAGE_NAMES_INIT;
    return 0;
}

int image_path_write(int work, int dirfd, const char *name, struct str text, struct err *err)
{
    own_fd fd = openat(work, "text", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || io_write_all(fd, text.at, text.len) < 0 || fsync(fd) < 0 ||
        renameat(work, "text", dirfd, name) < 0 || fsync(dirfd) < 0)
        return image_store_sys(err, "write '%.80s' in the store of images", name);
    return 0;
}
