/* Separate mounts below /usr. Boxes and the digest of image `host` follow the same rule: a mount on
 * a folder that packages fill (/usr/lib, /usr/share, ...) is part of the image; any other mount
 * below /usr is data of this machine (a project, secrets, drivers) and stays hidden. No heap. */
#ifndef BASE_MOUNTS_H
#define BASE_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>

#define MOUNTS_ROOM 65536
#define MOUNTS_LOCAL "/usr/local" /* the administrator's: boxes never see it */

struct mounts {
    bool parted; /* something is mounted below /usr */
    size_t len;
    char hidden[MOUNTS_ROOM]; /* absolute paths, sorted, each ended by NUL */
};

/* Call `seen` for every mount point of this process, oldest first, until `seen` returns -1. 0, or
 * -1 with errno. */
int mounts_each(int (*seen)(void *to, const char *path), void *to);

/* Read the mounts below /usr. 0, or -1 with errno (E2BIG: the paths exceed MOUNTS_ROOM). */
int mounts_read(struct mounts *out);

/* Is this path, or a folder above it, hidden? */
bool mounts_hide(const struct mounts *mounts, const char *path);
/* Is something mounted below this folder of /usr? */
bool mounts_part(const struct mounts *mounts, const char *folder);

#endif
