/* The names in an image's package folders: read once for each open image, since code that fails and
 * requests ask for them often. Runs in the engine. The tree is hostile: links are followed inside
 * it only, and the number of names is bounded. */
#include "image/contents.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/own.h"
#include "image/root.h"

#define ENTRIES_MAX 20000 /* of all folders */
#define DISTRIBUTIONS "distributions"
#define MODULES "modules"

/* Adds one name of a package folder. */
static void add_distribution(json_t *contents, const char *entry);
static void add_module(json_t *contents, const char *entry);

static void walk_folder(int root, const char *path, json_t *contents, int *left)
{
    own_fd fd = image_root_open(root, path, O_RDONLY | O_DIRECTORY);
    own_dirp dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir)
        return;
    take_fd(&fd);
    const struct dirent *entry;
    for (; *left > 0 && (entry = readdir(dir)); --*left) {
        add_distribution(contents, entry->d_name);
        add_module(contents, entry->d_name);
    }
}

/* PLACE/python3/dist-packages, PLACE/python3.N/dist-packages and site-packages */
static void walk_place(int root, const char *place, int minor, json_t *contents, int *left)
{
    char path[128];
    snprintf(path, sizeof path, "%s/python3/dist-packages", place);
    walk_folder(root, path, contents, left);
    snprintf(path, sizeof path, "%s/python3.%d/dist-packages", place, minor);
    walk_folder(root, path, contents, left);
    snprintf(path, sizeof path, "%s/python3.%d/site-packages", place, minor);
    walk_folder(root, path, contents, left);
}

/* Where Python looks for packages below one root. Boxes do not see the host's own /usr/local. */
static void walk_root(const struct image *image, int root, bool host, int *left)
{
    const char *own = image->facts.python_packages;
    int minor = image->facts.python_minor;
    if (!host && own[0] == '/')
        walk_folder(root, own + 1, image->contents, left);
    if (!host)
        walk_place(root, "usr/local/lib", minor, image->contents, left);
    walk_place(root, "usr/lib", minor, image->contents, left);
    walk_place(root, "usr/lib64", minor, image->contents, left);
}

/* The first of two equal names counts, as for Python. */
static const json_t *contents_of(const struct image *image, const char *kind)
{
    int left = ENTRIES_MAX;
    json_t *contents = image->contents;
    if (json_object_size(contents) == 0) {
        json_object_set_new(contents, DISTRIBUTIONS, json_object());
        json_object_set_new(contents, MODULES, json_object());
        if (image->tree >= 0)
            walk_root(image, image->tree, /* host= */ false, &left);
        own_fd root = image->on_host ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
        if (root >= 0)
            walk_root(image, root, /* host= */ true, &left);
    }
    return json_object_get(contents, kind);
}

static void add_name(json_t *contents, const char *kind, struct str name, const char *value)
{
    char key[NAME_MAX + 1];
    json_t *names = json_object_get(contents, kind);
    snprintf(key, sizeof key, "%.*s", (int)name.len, name.at);
    if (!json_object_get(names, key))
        json_object_set_new(names, key, json_string(value)); /* no UTF-8: it is left out */
}

/* --- distributions --- */

/* Letters of either case, and - _ . are the same. */
static void plain(struct str name, char out[NAME_MAX + 1])
{
    size_t len = name.len < NAME_MAX ? name.len : NAME_MAX;
    for (size_t i = 0; i < len; i++) {
        char c = name.at[i];
        out[i] = c == '_' || c == '.' ? '-' : c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    out[len] = 0;
}

/* NAME-VERSION.dist-info, NAME-VERSION[-py3].egg-info */
static void add_distribution(json_t *contents, const char *entry)
{
    char name[NAME_MAX + 1], version[IMAGE_VERSION_ROOM];
    const char *end = strstr(entry, ".dist-info");
    end = end ? end : strstr(entry, ".egg-info");
    const char *dash = end ? memchr(entry, '-', (size_t)(end - entry)) : NULL;
    if (!dash || dash == entry || dash + 1 == end)
        return;
    plain((struct str){ entry, (size_t)(dash - entry) }, name);
    snprintf(version, sizeof version, "%.*s", (int)(end - dash - 1), dash + 1);
    char *more = strstr(version, "-py");
    if (more)
        *more = 0;
    add_name(contents, DISTRIBUTIONS, str_of(name), version);
}

bool image_has_distribution(const struct image *image, struct str name,
                            char out_version[IMAGE_VERSION_ROOM])
{
    char key[NAME_MAX + 1];
    out_version[0] = 0;
    if (name.len == 0 || name.len > NAME_MAX)
        return false;
    plain(name, key);
    const char *version = json_string_value(
        json_object_get(contents_of(image, DISTRIBUTIONS), key));
    if (version)
        snprintf(out_version, IMAGE_VERSION_ROOM, "%s", version);
    return version != NULL;
}

/* --- modules --- */

static void add_module(json_t *contents, const char *entry)
{
    static const char *const ends[] = { "", ".py", ".abi3.so" };
    size_t len = strcspn(entry, ".");
    bool whole = strncmp(entry + len, ".cpython-", 9) == 0;
    for (size_t i = 0; i < array_len(ends); i++)
        whole = whole || strcmp(entry + len, ends[i]) == 0;
    if (whole && len > 0)
        add_name(contents, MODULES, (struct str){ entry, len }, "");
}

bool image_can_import(const struct image *image, const char *module)
{
    return json_object_get(contents_of(image, MODULES), module) != NULL;
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
