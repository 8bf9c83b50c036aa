/* libarchive, loaded at its first use: linked in, it would slow down every command's start. Names
 * in archives are bytes: no process of cupel sets a locale, and in the locale "C" libarchive
 * leaves them as they are. Private to src/image/archive. */
#ifndef IMAGE_ARCHIVE_LIBRARY_H
#define IMAGE_ARCHIVE_LIBRARY_H

#include <archive.h>
#include <archive_entry.h>

#include "base/err.h"

#define LIBARCHIVE_SYMBOLS(X)                                                              \
    X(read_new) X(read_free) X(read_open2) X(read_next_header) X(read_data)                \
    X(read_header_position) X(read_support_format_tar) X(read_support_format_raw)          \
    X(read_support_filter_gzip) X(read_support_filter_bzip2) X(read_support_filter_xz)     \
    X(read_support_filter_zstd) X(error_string) X(write_new) X(write_free) X(write_close)  \
    X(write_open) X(write_header) X(write_data) X(write_finish_entry)                      \
    X(write_set_format_pax_restricted) X(write_set_bytes_per_block)                        \
    X(write_set_bytes_in_last_block) X(entry_new) X(entry_free) X(entry_clear)             \
    X(entry_pathname) X(entry_hardlink) X(entry_symlink) X(entry_filetype) X(entry_size)   \
    X(entry_size_is_set) X(entry_perm) X(entry_mtime) X(entry_set_pathname)                \
    X(entry_set_symlink) X(entry_set_filetype) X(entry_set_perm) X(entry_set_size)         \
    X(entry_set_mtime)

struct libarchive {
#define X(name) typeof(&archive_##name) name;
    LIBARCHIVE_SYMBOLS(X)
#undef X
};

/* The library's functions; any thread. NULL with ERR_HOST if it is missing. */
const struct libarchive *libarchive(struct err *err);

#endif
