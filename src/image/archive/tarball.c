/* tar through libarchive. Runs in the cli process. */
#include "image/archive/tarball.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/own.h"
#include "base/json.h"
#include "image/archive/library.h"

#define FILE_PIECE (64u << 10)
#define MTIME_MAX INT64_C(253402300799) /* the end of the year 9999 */

struct tarball {
    const struct libarchive *lib;
    struct archive *archive;
    struct unpack *from; /* or NULL: a file */
    int fd;
    int64_t at, size;
    char *piece;
    struct err err; /* of a callback */
    char path[TARBALL_PATH_MAX + 1], link[TARBALL_PATH_MAX + 1];
};

int tarball_refuse(struct err *err, struct str path, const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    char plain[100];
    str_plain(plain, sizeof plain, path);
    own_json value = json_text(str_of(plain));
    char brief[120];
    json_brief(value, brief, sizeof brief);
    return err_input(err, "image", brief, NULL, "'%s' in the archive %s", plain, text);
}

static la_ssize_t on_unpacked(struct archive *archive, void *user, const void **out)
{
    struct tarball *tarball = user;
    (void)archive;
    return unpack_next(tarball->from, out, &tarball->err);
}

static la_ssize_t on_file(struct archive *archive, void *user, const void **out)
{
    struct tarball *tarball = user;
    ssize_t n;
    (void)archive;
    do
        n = pread(tarball->fd, tarball->piece, FILE_PIECE, tarball->at);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return err_sys(&tarball->err, "read the archive");
    tarball->at += n;
    *out = tarball->piece;
    return n;
}

static la_int64_t on_skip(struct archive *archive, void *user, la_int64_t wanted)
{
    struct tarball *tarball = user;
    (void)archive;
    int64_t left = tarball->size - tarball->at;
    if (left < 0 || wanted < 0)
        return 0;
    int64_t skipped = wanted < left ? wanted : left;
    tarball->at += skipped;
    return skipped;
}

static int refuse_archive(struct tarball *tarball, struct err *err)
{
    const char *why = tarball->lib->error_string(tarball->archive);
    char plain[200];
    str_plain(plain, sizeof plain, str_of(why ? why : "it is damaged"));
    if (tarball->err.kind != ERR_NONE) {
        *err = tarball->err;
        return -1;
    }
    return err_input(err, "image", NULL, "a tar archive", "the archive cannot be read: %s", plain);
}

static int start(struct tarball *tarball, struct err *err)
{
    const struct libarchive *lib = tarball->lib;
    tarball->archive = lib->read_new();
    if (!tarball->archive)
        return err_set(err, ERR_HOST, "no memory for an archive");
    if (lib->read_support_format_tar(tarball->archive) != ARCHIVE_OK ||
        lib->read_open2(tarball->archive, tarball, NULL, tarball->from ? on_unpacked : on_file,
                        tarball->from ? NULL : on_skip, NULL) != ARCHIVE_OK)
        return refuse_archive(tarball, err);
    return 0;
}

static int open_any(struct unpack *from, int fd, int64_t size, struct tarball **out,
                    struct err *err)
{
    const struct libarchive *lib = libarchive(err);
    if (!lib)
        return -1;
    own_tarball tarball = buf_alloc_zero(1, sizeof *tarball);
    tarball->lib = lib;
    tarball->from = from;
    tarball->fd = fd;
    tarball->size = size;
    tarball->err = ERR_INIT;
    if (!from)
        tarball->piece = buf_alloc(FILE_PIECE);
    if (start(tarball, err) < 0)
        return -1;
    *out = take_ptr(tarball);
    return 0;
}

int tarball_open(struct unpack *from, struct tarball **out, struct err *err)
{
    return open_any(from, -1, 0, out, err);
}

int tarball_open_file(int fd, int64_t size, struct tarball **out, struct err *err)
{
    return open_any(NULL, fd, size, out, err);
}

int tarball_clean(const char *path, const char *entry, const char *what,
                  char out[TARBALL_PATH_MAX + 1], struct err *err)
{
    const struct str whole = str_of(entry);
    size_t len = 0;
    if (*path == '/')
        return tarball_refuse(err, whole, "has an absolute %s", what);
    while (*path) {
        size_t part = strcspn(path, "/");
        if (part == 2 && path[0] == '.' && path[1] == '.')
            return tarball_refuse(err, whole, "has a %s with '..'", what);
        if (part > TARBALL_NAME_MAX)
            return tarball_refuse(err, whole, "has a name of more than %d bytes in its %s",
                                  TARBALL_NAME_MAX, what);
        if (part > 0 && !(part == 1 && path[0] == '.')) {
            if (len + 1 + part > TARBALL_PATH_MAX)
                return tarball_refuse(err, whole, "has a %s of more than %d bytes", what,
                                      TARBALL_PATH_MAX);
            if (len > 0)
                out[len++] = '/';
            memcpy(out + len, path, part);
            len += part;
        }
        path += part + (path[part] == '/');
    }
    out[len] = '\0';
    return 0;
}

static enum tarball_kind kind_of(unsigned type)
{
    switch (type) {
    case S_IFREG: return TARBALL_FILE;
    case S_IFDIR: return TARBALL_DIR;
    case S_IFLNK: return TARBALL_SYMLINK;
    default: return TARBALL_OTHER;
    }
}

static int fill(struct tarball *tarball, struct archive_entry *entry, struct tarball_entry *out,
                struct err *err)
{
    const struct libarchive *lib = tarball->lib;
    const char *path = lib->entry_pathname(entry), *hard = lib->entry_hardlink(entry);
    const char *soft = lib->entry_symlink(entry);
    if (!path || !*path)
        return err_input(err, "image", NULL, NULL, "an entry of the archive has no name");
    if (tarball_clean(path, path, "path", tarball->path, err) < 0)
        return -1;
    *out = (struct tarball_entry){
        .kind = hard ? TARBALL_HARDLINK : kind_of(lib->entry_filetype(entry)),
        .path = str_of(tarball->path),
        .size = lib->entry_size_is_set(entry) ? lib->entry_size(entry) : 0,
        .mode = lib->entry_perm(entry) & 0777,
        .mtime_s = lib->entry_mtime(entry),
    };
    if (out->mtime_s < 0 || out->mtime_s > MTIME_MAX)
        out->mtime_s = out->mtime_s < 0 ? 0 : MTIME_MAX;
    if (out->size < 0)
        return tarball_refuse(err, out->path, "has a negative size");
    if (out->kind == TARBALL_HARDLINK) {
        if (tarball_clean(hard, tarball->path, "target", tarball->link, err) < 0)
            return -1;
        out->link = str_of(tarball->link);
    }
    if (out->kind == TARBALL_SYMLINK) {
        if (!soft || !*soft || strlen(soft) > TARBALL_PATH_MAX)
            return tarball_refuse(err, out->path, "is a link with no target of 1 to %d bytes",
                                  TARBALL_PATH_MAX);
        out->link = str_of(soft);
    }
    return 0;
}

int tarball_next(struct tarball *tarball, struct tarball_entry *out, struct err *err)
{
    struct archive_entry *entry;
    int rc = tarball->lib->read_next_header(tarball->archive, &entry);
    if (rc == ARCHIVE_EOF && tarball->err.kind == ERR_NONE)
        return 0;
    /* A warning: a name that is not of the locale, or a member that libarchive does not know. */
    if (rc != ARCHIVE_OK && rc != ARCHIVE_WARN)
        return refuse_archive(tarball, err);
    return fill(tarball, entry, out, err) < 0 ? -1 : 1;
}

int64_t tarball_read(struct tarball *tarball, void *buffer, size_t room, struct err *err)
{
    la_ssize_t n = tarball->lib->read_data(tarball->archive, buffer, room);
    return n < 0 ? refuse_archive(tarball, err) : n;
}

int64_t tarball_position(const struct tarball *tarball)
{
    return tarball->lib->read_header_position(tarball->archive);
}

void tarball_close(struct tarball *tarball)
{
    if (!tarball)
        return;
    if (tarball->archive)
        tarball->lib->read_free(tarball->archive);
    free(tarball->piece);
    free(tarball);
}
