/* Facts of an image that its tree shows without running anything: where its interpreters are, which
 * libc they need, where packages are added. The tree is hostile: links are followed inside it only,
 * and every read is capped. Pure but for reading the tree. */
#ifndef IMAGE_LOOK_H
#define IMAGE_LOOK_H

#include "base/err.h"

#define IMAGE_LOOK_PATH 256

struct image_facts {
    /* Absolute paths inside the image, with all links resolved; "" if the image has none. */
    char python[IMAGE_LOOK_PATH], node[IMAGE_LOOK_PATH], bash[IMAGE_LOOK_PATH];
    char sh[IMAGE_LOOK_PATH];
    char python_packages[IMAGE_LOOK_PATH]; /* where pip adds: .../dist-packages or site-packages */
    int python_minor; /* 11 for Python 3.11; 0: unknown */
    char libc[8]; /* of Python, else of sh: "glibc", "musl", or "" */
    char loader[IMAGE_LOOK_PATH]; /* the dynamic loader that it names */
    char os[64]; /* PRETTY_NAME of /etc/os-release, printable characters only */
};

/* Look at the tree; NULL-safe for images without anything: the fields stay empty. ERR_INPUT only
 * for a tree that cannot be read. */
int image_look(int tree_dirfd, struct image_facts *out, struct err *err);

#endif
