/* /etc/os-release of an image: a file of outside. */
#ifndef IMAGE_OS_RELEASE_H
#define IMAGE_OS_RELEASE_H

#include <stddef.h>

#include "base/str.h"

/* PRETTY_NAME, else NAME, without quotes; printable ASCII only. "" if there is neither. */
void image_os_release(struct str text, char *out, size_t room);

#endif
