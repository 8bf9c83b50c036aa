/* The box's /usr where other file systems are mounted below the host's. */
#ifndef BOX_INSIDE_MOUNT_USR_H
#define BOX_INSIDE_MOUNT_USR_H

#include <stdbool.h>

#include "box/proto/proto.h"

/* Once, in the broker: what is mounted below /usr. Its mounts never change. */
int mount_usr_look(void);
/* Can /usr not be one overlay? */
bool mount_usr_parted(void);
/* Put the parts of /usr together at `at`. The current directory has "top", our own
 * files. 0, or -1. */
int mount_usr(const char *at);
/* Has this process bound files of the host, which other boxes then have too? */
bool mount_usr_shared(void);
/* An overlay of two lower layers and no upper is read-only by its nature. */
int mount_overlay(const char *top, const char *below, const char *at);

#endif
