/* The box's /usr on a host with other file systems mounted below /usr. */
#ifndef BOX_INSIDE_MOUNT_USR_H
#define BOX_INSIDE_MOUNT_USR_H

#include <stdbool.h>

#include "box/proto/proto.h"

/* Read the mounts below /usr, once, in the broker: they never change in its namespace. */
int mount_usr_look(void);
/* Must /usr be assembled from parts? */
bool mount_usr_parted(void);
/* Assemble /usr at `at`. The current directory has "top" with cupel's own files. 0, or -1. */
int mount_usr(const char *at);
/* Has this process bound files of the host, which other boxes then share? */
bool mount_usr_shared(void);
/* An overlay of two lower layers and no upper: read-only. */
int mount_overlay(const char *top, const char *below, const char *at);
/* The same of layers that are named as overlay wants them. */
int mount_layers(const char *layers, const char *at);

#endif
