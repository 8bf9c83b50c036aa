/* Writing tar through libarchive. Runs in the cli process, and in the helper that packs a folder. */
#include "image/archive/writer.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/own.h"
#include "image/archive/library.h"

#define BLOCK (256u << 10)

struct writer {
    const struct libarchive *lib;
    struct archive *archive;
    struct archive_entry *entry;
    struct writer *into;
    int fd;
    enum writer_times times;
    struct hash hash;
    int64_t bytes;
    struct err err; /* of the callback */
    char *block;
};

static la_ssize_t on_write(struct archive *archive, void *user, const void *bytes, size_t len)
{
    struct writer *writer = user;
    (void)archive;
    hash_add(&writer->hash, bytes, len);
    writer->bytes += (int64_t)len;
    if (writer->into && writer_bytes(writer->into, bytes, len, &writer->err) < 0)
        return -1;
    if (writer->fd >= 0 && io_write_all(writer->fd, bytes, len) < 0)
        return err_sys(&writer->err, "write the archive");
    return (la_ssize_t)len;
}

static int refuse(struct writer *writer, struct err *err)
{
    const char *why = writer->lib->error_string(writer->archive);
    if (writer->err.kind != ERR_NONE) {
        *err = writer->err;
        return -1;
    }
    return err_set(err, ERR_HOST, "write the archive: %.200s", why ? why : "libarchive failed");
}

int writer_open(int fd, struct writer *into, enum writer_times times, struct writer **out,
                struct err *err)
{
    const struct libarchive *lib = libarchive(err);
    if (!lib)
        return -1;
    own_writer writer = buf_alloc_zero(1, sizeof *writer);
    writer->lib = lib;
    writer->fd = fd;
    writer->into = into;
    writer->times = times;
    writer->err = ERR_INIT;
    writer->block = buf_alloc(BLOCK);
    hash_start(&writer->hash);
    writer->archive = lib->write_new();
    writer->entry = lib->entry_new();
    if (!writer->archive || !writer->entry)
        return err_set(err, ERR_HOST, "no memory for an archive");
    if (lib->write_set_format_pax_restricted(writer->archive) != ARCHIVE_OK ||
        lib->write_set_bytes_per_block(writer->archive, BLOCK) != ARCHIVE_OK ||
        lib->write_set_bytes_in_last_block(writer->archive, 1) != ARCHIVE_OK ||
        lib->write_open(writer->archive, writer, NULL, on_write, NULL) != ARCHIVE_OK)
        return refuse(writer, err);
    *out = take_ptr(writer);
    return 0;
}

void writer_free(struct writer *writer)
{
    if (!writer)
        return;
    if (writer->entry)
        writer->lib->entry_free(writer->entry);
    if (writer->archive) {
        /* libarchive would write the end of a broken archive. */
        writer->fd = -1;
        writer->into = NULL;
        writer->lib->write_free(writer->archive);
    }
    free(writer->block);
    free(writer);
}

int writer_end(struct writer *writer, int64_t *out_bytes, char out_hex[HASH_HEX_ROOM],
               struct err *err)
{
    if (writer->lib->write_close(writer->archive) != ARCHIVE_OK)
        return refuse(writer, err);
    *out_bytes = writer->bytes;
    hash_end_hex(&writer->hash, out_hex);
    return 0;
}

/* A warning: the name is not of the locale "C", and is written as bytes. */
static int header(struct writer *writer, struct err *err)
{
    int rc = writer->lib->write_header(writer->archive, writer->entry);
    return rc != ARCHIVE_OK && rc != ARCHIVE_WARN ? refuse(writer, err) : 0;
}

static void begin(struct writer *writer, const char *path, unsigned type, unsigned mode,
                  int64_t size, int64_t mtime_s)
{
    const struct libarchive *lib = writer->lib;
    lib->entry_clear(writer->entry);
    lib->entry_set_pathname(writer->entry, path);
    lib->entry_set_filetype(writer->entry, type);
    lib->entry_set_perm(writer->entry, (mode_t)mode);
    lib->entry_set_size(writer->entry, size);
    lib->entry_set_mtime(writer->entry, mtime_s, 0);
}

int writer_folder(struct writer *writer, const char *path, struct err *err)
{
    begin(writer, path, S_IFDIR, 0755, 0, 0);
    return header(writer, err);
}

int writer_file(struct writer *writer, const char *path, int64_t size, struct err *err)
{
    begin(writer, path, S_IFREG, 0644, size, 0);
    return header(writer, err);
}

int writer_bytes(struct writer *writer, const void *bytes, size_t len, struct err *err)
{
    if (len > 0 && writer->lib->write_data(writer->archive, bytes, len) != (la_ssize_t)len)
        return refuse(writer, err);
    return 0;
}

int writer_text(struct writer *writer, const char *path, struct str text, struct err *err)
{
    if (writer_file(writer, path, (int64_t)text.len, err) < 0)
        return -1;
    return writer_bytes(writer, text.at, text.len, err);
}

static int copy(struct writer *writer, const struct walk_entry *entry, struct err *err)
{
    for (int64_t left = entry->st->st_size; left > 0;) {
        size_t room = left < (int64_t)BLOCK ? (size_t)left : BLOCK;
        ssize_t n = read(entry->fd, writer->block, room);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            errno = n == 0 ? ENODATA : errno;
            char plain[160];
            str_plain(plain, sizeof plain, str_of(entry->path));
            return err_sys(err, "read '%s'", plain);
        }
        if (writer_bytes(writer, writer->block, (size_t)n, err) < 0)
            return -1;
        left -= n;
    }
    return 0;
}

/* Where everybody may write, in every system. */
static bool is_shared(const char *path)
{
    return strcmp(path, "tmp") == 0 || strcmp(path, "var/tmp") == 0;
}

static int on_entry(void *user, const struct walk_entry *entry, struct err *err)
{
    struct writer *writer = user;
    const struct stat *st = entry->st;
    bool real = writer->times == WRITER_REAL, file = S_ISREG(st->st_mode);
    unsigned mode = st->st_mode & 0777;
    if (!real)
        mode = S_ISLNK(st->st_mode)                              ? 0777
               : S_ISDIR(st->st_mode) && is_shared(entry->path)  ? 01777
               : S_ISDIR(st->st_mode) || (st->st_mode & S_IXUSR) ? 0755
                                                                 : 0644;
    begin(writer, entry->path, st->st_mode & S_IFMT, mode, file ? st->st_size : 0,
          real || file ? st->st_mtime : 0);
    if (entry->target)
        writer->lib->entry_set_symlink(writer->entry, entry->target);
    if (header(writer, err) < 0)
        return -1;
    return file ? copy(writer, entry, err) : 0;
}

int writer_tree(struct writer *writer, int dirfd, int64_t *out_left_out, struct err *err)
{
    return walk_folder(dirfd, on_entry, writer, out_left_out, err);
}
