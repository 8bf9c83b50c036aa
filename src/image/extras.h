/* The packages that code in image `host` can use: dev/image-packages, built in. */
#ifndef IMAGE_EXTRAS_H
#define IMAGE_EXTRAS_H

#include <stdbool.h>
#include <stddef.h>

#define IMAGE_EXTRAS_MAX 128
#define IMAGE_EXTRAS_WORD 96

struct image_extra {
    char set[8];   /* "base" or "extra" */
    char kind[12]; /* "python", "program" or "language" */
    char name[IMAGE_EXTRAS_WORD];    /* in code */
    char package[IMAGE_EXTRAS_WORD]; /* Debian's; several names separated by '|' */
    char flag[16]; /* of a program: prints its version */
};

/* The rows, read once; *out_count is their number. */
const struct image_extra *image_extras(size_t *out_count);
/* NULL: not in the list. */
const struct image_extra *image_extra_find(const char *kind, const char *name);
/* The first of the package's names. */
const char *image_extra_package(const struct image_extra *extra, char out[IMAGE_EXTRAS_WORD]);

/* The installed versions, by dpkg's own list; rows without one stay empty. False: this host has no
 * dpkg. `versions` has image_extras' number of rows. */
bool image_extras_installed(char versions[][IMAGE_EXTRAS_WORD]);

/* Is there a module of this name in a folder of Python's packages? */
bool image_has_module(const char *name);

#endif
