/* dpkg's file lists: one text file for each package, one path in each line. Reading 800 of them
 * takes a few milliseconds; asking dpkg takes seconds. */
#include "image/owned.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "image/root.h"

#define LIST_MAX (64u << 20) /* bytes of one package's list */

void image_owned_done(struct image_owned *owned)
{
    buf_done(&owned->text);
    free(owned->paths);
    *owned = IMAGE_OWNED_INIT;
}

/* On a merged /usr, packages may still list /usr/lib/x as /lib/x. */
static int keep_line(struct image_owned *owned, struct str line, const char *const *prefixes,
                     size_t prefix_count)
{
    const char *above = line.len > 5 && memcmp(line.at, "/lib/", 5) == 0 ? "/usr" : "";
    size_t skip = strlen(above);
    for (size_t i = 0; i < prefix_count; i++) {
        size_t want = strlen(prefixes[i]);
        if (want <= skip || line.len <= want - skip || strncmp(prefixes[i], above, skip) != 0 ||
            memcmp(line.at, prefixes[i] + skip, want - skip) != 0)
            continue;
        if (buf_add_text(&owned->text, above) < 0 || buf_add_str(&owned->text, line) < 0 ||
            buf_add(&owned->text, "", 1) < 0)
            return -1;
        owned->count++;
        return 0;
    }
    return 0;
}

static int keep_lines(struct image_owned *owned, struct str text, const char *const *prefixes,
                      size_t prefix_count)
{
    while (text.len > 0) {
        const char *end = memchr(text.at, '\n', text.len);
        size_t len = end ? (size_t)(end - text.at) : text.len;
        if (keep_line(owned, (struct str){ text.at, len }, prefixes, prefix_count) < 0)
            return -1;
        len += end ? 1 : 0;
        text = (struct str){ text.at + len, text.len - len };
    }
    return 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void sort_paths(struct image_owned *owned)
{
    owned->paths = buf_alloc_zero(owned->count + 1, sizeof *owned->paths);
    const char *at = buf_str(&owned->text).at;
    for (size_t i = 0; i < owned->count; i++) {
        owned->paths[i] = at;
        at += strlen(at) + 1;
    }
    qsort(owned->paths, owned->count, sizeof *owned->paths, by_text);
}

int image_owned_read(int root_dirfd, const char *const *prefixes, size_t prefix_count,
                     struct image_owned *out, struct err *err)
{
    int fd = image_root_open(root_dirfd, "var/lib/dpkg/info", O_RDONLY | O_DIRECTORY);
    if (fd < 0 && errno == ENOENT) {
        sort_paths(out);
        return 0;
    }
    own_dirp dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir)
        return err_sys(err, "read '/var/lib/dpkg/info'");
    own_buf text = BUF_INIT(LIST_MAX);
    for (struct dirent *entry; (entry = readdir(dir));) {
        size_t len = strlen(entry->d_name);
        if (len < 6 || strcmp(entry->d_name + len - 5, ".list") != 0)
            continue;
        own_fd list = openat(fd, entry->d_name, O_RDONLY | O_CLOEXEC);
        text.len = 0;
        if (list < 0 || buf_read(&text, list) < 0)
            return err_sys(err, "read '/var/lib/dpkg/info/%.200s'", entry->d_name);
        if (keep_lines(out, buf_str(&text), prefixes, prefix_count) < 0)
            return err_set(err, ERR_LIMIT, "dpkg's file lists exceed 256 MiB");
    }
    sort_paths(out);
    return 0;
}

bool image_owned_has(const struct image_owned *owned, const char *path)
{
    return bsearch(&path, owned->paths, owned->count, sizeof *owned->paths, by_text) != NULL;
}
