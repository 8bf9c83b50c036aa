/* Images from archives and into them. An import takes a `docker save` archive, an OCI image layout
 * (a tar of it, or a folder through image_pack), or the tar of a root file system, each as it is or
 * compressed by gzip, zstd, xz or bzip2; content tells which, not the name. Every digest that the
 * archive names is compared. Runs in the cli process, with a thread beside it. */
#ifndef IMAGE_ARCHIVE_ARCHIVE_H
#define IMAGE_ARCHIVE_ARCHIVE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "image/store/store.h"

#define IMAGE_IMPORT_BYTES_MAX (INT64_C(64) << 30) /* unpacked, without another limit */

struct image_import_options {
    const char *ref; /* which image of several; NULL: there is one */
    int64_t bytes_max; /* of all files, unpacked; 0: IMAGE_IMPORT_BYTES_MAX */
    /* NULL: nobody looks. Called now and then. */
    void (*progress)(void *user, int64_t bytes, int64_t entries);
    void *user;
};

struct image_import_report {
    const char *form; /* "docker", "oci" or "root" */
    char name[256]; /* that the archive gives the image, printable, or "" */
    int64_t bytes; /* of files, all layers */
    int64_t entries; /* of all layers */
    int64_t skipped; /* devices, fifos, sockets: no image gets them */
    int64_t layers;
    json_t *facts; /* for image_build_finish: env, where it came from */
};
#define IMAGE_IMPORT_REPORT_INIT ((struct image_import_report){ 0 })
static inline void image_import_report_done(struct image_import_report *report)
{
    json_decref(report->facts);
    report->facts = NULL;
}
#define own_import_report attr_cleanup(image_import_report_done) struct image_import_report

/* Loads libarchive, for a process that cannot load it later. */
int image_archive_ready(struct err *err);

/* Read the archive into the build. `fd` is a regular file or a pipe. The caller finishes the build,
 * or closes it after a failure. */
int image_import(struct image_build *build, int fd, const struct image_import_options *options,
                 struct image_import_report *report, struct err *err);

/* Write the image as the tar of an OCI layout with one layer, which `docker load` takes as well.
 * The same image gives the same bytes. Its name stands in it. `added`: of an image on the host,
 * only the files that it adds; without it such an image is refused. */
int image_export(const struct image_store *store, const struct image_entry *entry, bool added,
                 int out_fd, struct err *err);

/* Write a folder as a tar, for image_import at the other end of a pipe. Files, folders and links;
 * the rest is left out. Names the path that cannot be read. */
int image_pack(int dirfd, int out_fd, struct err *err);

#endif
