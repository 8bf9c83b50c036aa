/* Whether an image on the host replaces something that a fork of the host's Python holds. Runs in
 * the engine, when an image is opened. The tree is hostile: no link of it is followed, and the
 * number of names is bounded. */
#include "image/beside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/json.h"
#include "base/own.h"

#ifdef __x86_64__
#define MULTIARCH "x86_64-linux-gnu"
#else
#define MULTIARCH "aarch64-linux-gnu"
#endif
#define HOST_LIBRARIES "/usr/lib/" MULTIARCH "/"
#define NAMES_MAX 4096 /* of one folder */

/* Looks at each name of a folder of the tree until one is not `good`. A folder that is not there is
 * good; a link or a file in its place is not. */
static bool all_good(int tree, const char *path, bool (*good)(int dirfd, const char *name))
{
    own_fd fd = openat(tree, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT;
    own_dirp dir = fdopendir(fd);
    if (!dir)
        return false;
    const int dirfd = take_fd(&fd);
    const struct dirent *entry;
    for (int i = 0; (entry = readdir(dir)); i++) {
        bool self = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
        if (!self && (i > NAMES_MAX || !good(dirfd, entry->d_name)))
            return false;
    }
    return true;
}

/* A library, or another file, that the host does not have under this name. */
static bool is_new(int dirfd, const char *name)
{
    struct stat st;
    char path[NAME_MAX + sizeof HOST_LIBRARIES];
    snprintf(path, sizeof path, HOST_LIBRARIES "%s", name);
    return (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode)) ||
           faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0;
}

static bool is_good_lib(int dirfd, const char *name)
{
    if (strcmp(name, MULTIARCH) == 0)
        return all_good(dirfd, name, is_new);
    return strncmp(name, "python3.", strlen("python3.")) != 0;
}

static bool is_good_top(int dirfd, const char *name)
{
    (void)dirfd;
    return strcmp(name, "usr") == 0;
}

static bool is_good_in_usr(int dirfd, const char *name)
{
    static const char *const good[] = { "local", "bin", "sbin", "share", "libexec", "games" };
    for (size_t i = 0; i < array_len(good); i++) {
        if (strcmp(name, good[i]) == 0)
            return true;
    }
    return strcmp(name, "lib") == 0 && all_good(dirfd, name, is_good_lib);
}

/* Forks know of no variable but the place of npm's packages. */
static bool is_plain_env(const json_t *env)
{
    return json_object_size(env) == 0 ||
           (json_object_size(env) == 1 &&
            str_is(json_get_str(env, "NODE_PATH"), "/usr/local/lib/node_modules"));
}

bool image_is_beside(const struct image *image)
{
    return image->on_host && !image->facts.python[0] &&
           is_plain_env(json_object_get(image->stored, "env")) &&
           all_good(image->tree, ".", is_good_top) && all_good(image->tree, "usr", is_good_in_usr);
}
