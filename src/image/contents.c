/* The names in an image's package folders. Runs in the engine. The tree is hostile: links are
 * followed inside it only, and what is read is bounded. */
#include "image/contents.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/own.h"
#include "image/root.h"

#define ENTRIES_MAX 100000 /* of one folder */

/* True: that was it, the walk ends. */
typedef bool see_name(const char *name, void *user);

static bool walk_folder(int root, const char *path, see_name *see, void *user)
{
    own_fd fd = image_root_open(root, path, O_RDONLY | O_DIRECTORY);
    own_dirp dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir)
        return false;
    take_fd(&fd);
    const struct dirent *entry;
    for (int i = 0; i < ENTRIES_MAX && (entry = readdir(dir)); i++) {
        if (see(entry->d_name, user))
            return true;
    }
    return false;
}

/* PLACE/python3/dist-packages, PLACE/python3.N/dist-packages and site-packages */
static bool walk_place(int root, const char *place, int minor, see_name *see, void *user)
{
    char path[128];
    snprintf(path, sizeof path, "%s/python3/dist-packages", place);
    if (walk_folder(root, path, see, user))
        return true;
    snprintf(path, sizeof path, "%s/python3.%d/dist-packages", place, minor);
    if (walk_folder(root, path, see, user))
        return true;
    snprintf(path, sizeof path, "%s/python3.%d/site-packages", place, minor);
    return walk_folder(root, path, see, user);
}

/* Where Python looks for packages below one root. Boxes do not see the host's own /usr/local. */
static bool walk_root(const struct image *image, int root, bool host, see_name *see, void *user)
{
    const char *own = image->facts.python_packages;
    int minor = image->facts.python_minor;
    if (!host && ((own[0] == '/' && walk_folder(root, own + 1, see, user)) ||
                  walk_place(root, "usr/local/lib", minor, see, user)))
        return true;
    return walk_place(root, "usr/lib", minor, see, user) ||
           walk_place(root, "usr/lib64", minor, see, user);
}

static bool walk(const struct image *image, see_name *see, void *user)
{
    if (image->tree >= 0 && walk_root(image, image->tree, /* host= */ false, see, user))
        return true;
    own_fd root = image->on_host ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    return root >= 0 && walk_root(image, root, /* host= */ true, see, user);
}

/* --- distributions --- */

struct wanted {
    struct str name;
    char *version;
};

static char plain(char c)
{
    if (c == '-' || c == '_' || c == '.')
        return '-';
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* NAME-VERSION.dist-info, NAME-VERSION[-py3].egg-info */
static bool is_distribution(const char *entry, void *user)
{
    const struct wanted *wanted = user;
    const char *end = strstr(entry, ".dist-info");
    end = end ? end : strstr(entry, ".egg-info");
    size_t i = 0;
    for (; end && i < wanted->name.len && plain(entry[i]) == plain(wanted->name.at[i]); i++)
        continue;
    if (!end || i < wanted->name.len || entry[i] != '-' || entry + i + 1 >= end)
        return false;
    snprintf(wanted->version, IMAGE_VERSION_ROOM, "%.*s", (int)(end - entry - (long)i - 1),
             entry + i + 1);
    char *more = strstr(wanted->version, "-py");
    if (more)
        *more = 0;
    return true;
}

bool image_has_distribution(const struct image *image, struct str name,
                            char out_version[IMAGE_VERSION_ROOM])
{
    struct wanted wanted = { name, out_version };
    out_version[0] = 0;
    return name.len > 0 && walk(image, is_distribution, &wanted);
}

/* --- modules --- */

static bool is_module(const char *entry, void *user)
{
    const char *name = user;
    size_t len = strlen(name);
    const char *end = entry + len;
    return strncmp(entry, name, len) == 0 &&
           (!*end || strcmp(end, ".py") == 0 || strncmp(end, ".cpython-", 9) == 0 ||
            strncmp(end, ".abi3.so", 8) == 0);
}

bool image_can_import(const struct image *image, const char *module)
{
    own_str name = buf_strdup(str_of(module));
    return *module && walk(image, is_module, name);
}

/* --- versions --- */

bool image_version_is_least(const char *a, struct str b)
{
    const char *end = b.at + b.len;
    const char *at = b.at;
    for (;;) {
        char *a_end;
        unsigned long mine = strtoul(a, &a_end, 10), least = 0;
        while (at < end && *at >= '0' && *at <= '9' && least < 100000000)
            least = 10 * least + (unsigned long)(*at++ - '0');
        if (mine != least)
            return mine > least;
        a = a_end;
        bool more_a = *a == '.', more_b = at < end && *at == '.';
        if (!more_b)
            return true;
        at++;
        a += more_a;
    }
}
