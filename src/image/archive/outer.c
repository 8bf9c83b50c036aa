/* The index of an archive of blobs. Runs in the cli process. libarchive tells where headers begin;
 * contents stand right before the next one. Digests prove it afterwards. */
#include "image/archive/outer.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image/archive/tarball.h"

#define BLOCK 512
#define LINKS_MAX 8
#define LOOKS_MAX 64 /* names that may be unclear until one is clear */

void outer_done(struct outer *outer)
{
    for (size_t i = 0; i < outer->count; i++) {
        free(outer->entries[i].name);
        free(outer->entries[i].link);
    }
    free(outer->entries);
    *outer = OUTER_INIT;
}

static int order(const void *a, const void *b)
{
    const struct outer_entry *x = a, *y = b;
    return strcmp(x->name, y->name);
}

/* A symbolic link's target as a name of the archive: the older layouts of `docker save` have
 * "ID/layer.tar" lead to "../ID/layer.tar". "": it leads elsewhere. */
static char *link_name(struct str path, struct str link)
{
    char text[2 * TARBALL_PATH_MAX + 2], name[TARBALL_PATH_MAX + 1];
    struct err ignored = ERR_INIT;
    const char *slash = memrchr(path.at, '/', path.len);
    size_t folder = slash ? (size_t)(slash - path.at) : 0;
    while (link.len >= 3 && memcmp(link.at, "../", 3) == 0) {
        if (folder == 0)
            return buf_strdup(STR(""));
        slash = memrchr(path.at, '/', folder);
        folder = slash ? (size_t)(slash - path.at) : 0;
        link.at += 3;
        link.len -= 3;
    }
    snprintf(text, sizeof text, "%.*s%s%.*s", (int)folder, path.at, folder ? "/" : "",
             (int)link.len, link.at);
    if (tarball_clean(text, text, "target", name, &ignored) < 0)
        return buf_strdup(STR(""));
    return buf_strdup(str_of(name));
}

static int add(struct outer *outer, const struct tarball_entry *entry, struct err *err)
{
    bool linked = entry->kind == TARBALL_SYMLINK || entry->kind == TARBALL_HARDLINK;
    if (entry->kind != TARBALL_FILE && !linked)
        return 0;
    if (outer->count == OUTER_ENTRIES_MAX)
        return tarball_refuse(err, entry->path, "is one file too many: at most %d",
                              OUTER_ENTRIES_MAX);
    outer->entries = buf_list_room(outer->entries, outer->count, sizeof *outer->entries);
    struct outer_entry *to = &outer->entries[outer->count++];
    *to = (struct outer_entry){ .name = buf_strdup(entry->path),
                                .size = linked ? 0 : entry->size };
    if (entry->kind == TARBALL_SYMLINK)
        to->link = link_name(entry->path, entry->link);
    else if (linked)
        to->link = buf_strdup(entry->link);
    return 0;
}

static int check_twice(const struct outer *outer, struct err *err)
{
    for (size_t i = 1; i < outer->count; i++)
        if (strcmp(outer->entries[i - 1].name, outer->entries[i].name) == 0)
            return tarball_refuse(err, str_of(outer->entries[i].name), "stands there twice");
    return 0;
}

/* Contents end where the next header begins. */
static void place(struct outer *outer, size_t first, int64_t end)
{
    for (size_t i = first; i < outer->count; i++) {
        struct outer_entry *entry = &outer->entries[i];
        entry->at = end - (entry->size + BLOCK - 1) / BLOCK * BLOCK;
    }
}

static int scan(struct outer *outer, struct tarball *tarball, int64_t size, struct err *err)
{
    struct tarball_entry entry;
    for (;;) {
        size_t before = outer->count ? outer->count - 1 : 0;
        int rc = tarball_next(tarball, &entry, err);
        if (rc < 0)
            return -1;
        if (outer->count > 0 && outer->entries[before].at == 0)
            place(outer, before, tarball_position(tarball));
        if (rc == 0)
            break;
        if (entry.size > size)
            return tarball_refuse(err, entry.path, "is longer than the archive");
        if (add(outer, &entry, err) < 0)
            return -1;
    }
    for (size_t i = 0; i < outer->count; i++)
        if (outer->entries[i].at < 0)
            return tarball_refuse(err, str_of(outer->entries[i].name), "has no place");
    if (outer->count > 0)
        qsort(outer->entries, outer->count, sizeof *outer->entries, order);
    return check_twice(outer, err);
}

int outer_open(int fd, struct outer *out, struct err *err)
{
    struct stat st;
    own_tarball tarball = NULL;
    if (fstat(fd, &st) < 0)
        return err_sys(err, "look at the archive");
    out->fd = fd;
    if (tarball_open_file(fd, st.st_size, &tarball, err) < 0)
        return -1;
    return scan(out, tarball, st.st_size, err);
}

bool outer_find(const struct outer *outer, const char *name, struct unpack_source *out)
{
    for (int hops = 0; hops < LINKS_MAX; hops++) {
        const struct outer_entry key = { .name = (char *)(uintptr_t)name };
        const struct outer_entry *found = outer->count ? bsearch(&key, outer->entries, outer->count,
                                                                 sizeof key, order)
                                                       : NULL;
        if (!found)
            return false;
        if (!found->link) {
            *out = (struct unpack_source){ outer->fd, found->at, found->size };
            return true;
        }
        name = found->link;
    }
    return false;
}

static int read_at(const struct unpack_source *source, char *to, struct err *err)
{
    for (int64_t done = 0; done < source->size;) {
        ssize_t n = pread(source->fd, to + done, (size_t)(source->size - done), source->at + done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(err, "read the archive");
        if (n == 0)
            return err_input(err, "image", NULL, NULL, "the archive ends too early");
        done += n;
    }
    return 0;
}

int outer_read(const struct outer *outer, const char *name, const char *hex, struct buf *out,
               struct err *err)
{
    struct unpack_source source;
    char found[HASH_HEX_ROOM];
    if (!outer_find(outer, name, &source)) {
        tarball_refuse(err, str_of(name), "is missing");
        err_hint(err, "the archive is not complete: save the image again");
        return -1;
    }
    char *room = source.size <= (int64_t)out->max ? buf_room(out, (size_t)source.size) : NULL;
    if (!room)
        return tarball_refuse(err, str_of(name), "has more than %zu bytes", out->max);
    if (read_at(&source, room, err) < 0)
        return -1;
    buf_grew(out, (size_t)source.size);
    hash_hex(buf_str(out), found);
    if (hex && strcmp(hex, found) != 0)
        return tarball_refuse(err, str_of(name), "has another digest: sha256:%s", found);
    return 0;
}

static bool is_hex(const char *text, size_t len)
{
    return len == HASH_HEX_ROOM - 1 && strspn(text, "0123456789abcdef") >= len;
}

/* 1: only an archive of blobs has it; 0: unclear; -1: it does not. */
static int judge(const struct tarball_entry *entry)
{
    static const char *const files[] = { "oci-layout", "index.json", "manifest.json",
                                         "repositories" };
    const char *path = entry->path.at;
    size_t first = strcspn(path, "/");
    bool dir = entry->kind == TARBALL_DIR;
    if (!*path)
        return 0;
    for (size_t i = 0; i < array_len(files); i++)
        if (strcmp(path, files[i]) == 0)
            return dir ? -1 : 1;
    if (strcmp(path, "blobs") == 0 || strcmp(path, "blobs/sha256") == 0)
        return dir ? 0 : -1;
    if (strncmp(path, "blobs/sha", strlen("blobs/sha")) == 0)
        return 1;
    const char *end = path + strlen(path);
    size_t stem = first > 5 && end == path + first && strcmp(end - 5, ".json") == 0  ? first - 5
                  : first > 4 && end == path + first && strcmp(end - 4, ".tar") == 0 ? first - 4
                                                                                     : first;
    return !is_hex(path, stem) ? -1 : dir ? 0 : 1;
}

int outer_is_one(int fd, struct err *err)
{
    struct stat st;
    struct tarball_entry entry;
    own_unpack unpack = NULL;
    own_tarball tarball = NULL;
    if (fstat(fd, &st) < 0)
        return err_sys(err, "look at the archive");
    const struct unpack_source source = { fd, 0, st.st_size };
    if (unpack_open(&source, INT64_MAX, &unpack, err) < 0 ||
        tarball_open(unpack, &tarball, err) < 0)
        return -1;
    for (int i = 0; i < LOOKS_MAX; i++) {
        int rc = tarball_next(tarball, &entry, err);
        if (rc < 0)
            return -1;
        if (rc == 0 && i == 0)
            return err_input(err, "image", NULL, NULL, "the archive is empty");
        int verdict = rc == 0 ? -1 : judge(&entry);
        if (verdict != 0)
            return verdict > 0;
    }
    return 0;
}
