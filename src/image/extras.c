/* Reads the built-in list of packages, and dpkg's list of the installed ones. Runs in the engine's
 * process and in the cli. */
#include "image/extras.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/builtin.h"
#include "base/own.h"
#include "image/packages.h"

#define DPKG_LIST "/var/lib/dpkg/status"
#define DPKG_LIST_MAX (64u << 20)

BUILTIN(builtin_list, "dev/image-packages");

const struct image_extra *image_extras(size_t *out_count)
{
    static struct image_extra rows[IMAGE_EXTRAS_MAX];
    static size_t count;
    const char *line = count == 0 ? builtin_list : "";
    for (; *line && count < IMAGE_EXTRAS_MAX; line += *line == '\n') {
        struct image_extra *row = &rows[count];
        char text[256];
        snprintf(text, sizeof text, "%.*s", (int)strcspn(line, "\n"), line);
        line += strcspn(line, "\n");
        int words = sscanf(text, "%7s %11s %95s %95s %15s", row->set, row->kind, row->name,
                           row->package, row->flag);
        count += *text != '#' && words >= 4;
    }
    *out_count = count;
    return rows;
}

const struct image_extra *image_extra_find(const char *kind, const char *name)
{
    size_t count;
    const struct image_extra *rows = image_extras(&count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(rows[i].kind, kind) == 0 && strcmp(rows[i].name, name) == 0)
            return &rows[i];
    }
    return NULL;
}

const char *image_extra_package(const struct image_extra *extra, char out[IMAGE_EXTRAS_WORD])
{
    snprintf(out, IMAGE_EXTRAS_WORD, "%.*s", (int)strcspn(extra->package, "|"), extra->package);
    return out;
}

/* The value of a field of one entry, or an empty text. */
static struct str field_of(struct str entry, const char *name)
{
    const char *at = memmem(entry.at, entry.len, name, strlen(name));
    struct str value = { "", 0 };
    if (!at)
        return value;
    value.at = at + strlen(name);
    const char *end = memchr(value.at, '\n', entry.len - (size_t)(value.at - entry.at));
    value.len = (size_t)((end ? end : entry.at + entry.len) - value.at);
    return value;
}

static bool has_name(const struct image_extra *extra, struct str package)
{
    for (const char *at = extra->package; *at; at += strcspn(at, "|")) {
        at += *at == '|';
        if (str_is(package, "") || strcspn(at, "|") != package.len)
            continue;
        if (memcmp(at, package.at, package.len) == 0)
            return true;
    }
    return false;
}

static void note_entry(struct str entry, char versions[][IMAGE_EXTRAS_WORD])
{
    size_t count;
    const struct image_extra *rows = image_extras(&count);
    struct str package = field_of(entry, "Package: "), version = field_of(entry, "\nVersion: ");
    if (!str_is(field_of(entry, "\nStatus: "), "install ok installed"))
        return;
    for (size_t i = 0; i < count; i++) {
        if (has_name(&rows[i], package))
            snprintf(versions[i], IMAGE_EXTRAS_WORD, "%.*s", (int)version.len, version.at);
    }
}

bool image_extras_installed(char versions[][IMAGE_EXTRAS_WORD])
{
    own_fd fd = open(DPKG_LIST, O_RDONLY | O_CLOEXEC);
    own_buf text = BUF_INIT(DPKG_LIST_MAX);
    size_t count;
    image_extras(&count);
    memset(versions, 0, count * IMAGE_EXTRAS_WORD);
    if (fd < 0 || buf_read(&text, fd) < 0 || text.len == 0)
        return false;
    struct str rest = buf_str(&text);
    while (rest.len > 0) {
        const char *end = memmem(rest.at, rest.len, "\n\n", 2);
        size_t len = end ? (size_t)(end - rest.at) : rest.len;
        note_entry((struct str){ rest.at, len }, versions);
        len += end ? 2 : 0;
        rest = (struct str){ rest.at + len, rest.len - len };
    }
    return true;
}

bool image_has_module(const char *name)
{
    char folders[IMAGE_PACKAGES_MAX][IMAGE_PACKAGES_ROOM];
    size_t count = image_packages(folders), len = strlen(name);
    for (size_t i = 0; i < count; i++) {
        own_dirp dir = opendir(folders[i]);
        for (const struct dirent *entry; dir && (entry = readdir(dir));) {
            const char *end = entry->d_name + len;
            if (strncmp(entry->d_name, name, len) == 0 &&
                (!*end || strcmp(end, ".py") == 0 || strncmp(end, ".cpython-", 9) == 0))
                return true;
        }
    }
    return false;
}
