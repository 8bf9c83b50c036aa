/* Tar archives for tests, also ones that no honest program writes. */
#ifndef TESTS_UNIT_TAR_MAKE_H
#define TESTS_UNIT_TAR_MAKE_H

#include <stdint.h>

#include "base/buf.h"

#define TAR_MAKE_MAX (64u << 20)

struct tar_entry {
    char type; /* as in the header: '0' file, '1' hard link, '2' link, '3' device, '5' folder ... */
    const char *name;
    const char *text; /* of a file; the target of a link */
};

/* A header; `size` need not be true. */
void tar_header(struct buf *tar, char type, const char *name, const char *link, uint64_t size);
/* Header and content. Long names go into a GNU header before it. */
void tar_add(struct buf *tar, char type, const char *name, const char *text);
void tar_file(struct buf *tar, const char *name, struct str bytes);
/* A PAX header with this record for the next entry. */
void tar_pax(struct buf *tar, const char *key, const char *value);
void tar_records(struct buf *tar, const char *const (*records)[2]);
void tar_end(struct buf *tar);
/* All of them, up to the first without a name. */
void tar_all(struct buf *tar, const struct tar_entry *entries);

/* A file in memory with these bytes. */
int tar_fd(struct str bytes);
/* docker save: `layers` are plain tar archives. */
void tar_docker(struct buf *out, const struct buf *layers, size_t count);
/* An OCI layout of the same, with a member of the index for each of `refs`, or NULL. */
struct tar_oci {
    const char *ref; /* annotation of the index, or NULL */
    const char *architecture; /* of index and configuration; NULL: this machine's */
    const char *wrong_diff_id, *wrong_layer, *wrong_config; /* 64 digits instead of the true ones */
    int64_t more_bytes; /* that the manifest claims of the first layer */
};
void tar_layout(struct buf *out, const struct buf *layers, size_t count, const struct tar_oci *how);

#endif
