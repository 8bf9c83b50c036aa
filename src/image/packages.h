/* Where Python's packages are in image `host`: Debian and Ubuntu have one folder for all
 * versions, other distributions one or two for each. */
#ifndef IMAGE_PACKAGES_H
#define IMAGE_PACKAGES_H

#include <stddef.h>

#define IMAGE_PACKAGES_MAX 8
#define IMAGE_PACKAGES_ROOM 64

/* Absolute paths of the folders that are there; how many. */
size_t image_packages(char out[IMAGE_PACKAGES_MAX][IMAGE_PACKAGES_ROOM]);

#endif
