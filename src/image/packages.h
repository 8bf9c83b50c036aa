/* The folders of Python's packages in image `host`: Debian and Ubuntu have one folder for all
 * versions, other distributions have one or two for each version. */
#ifndef IMAGE_PACKAGES_H
#define IMAGE_PACKAGES_H

#include <stddef.h>

#define IMAGE_PACKAGES_MAX 8
#define IMAGE_PACKAGES_ROOM 64

/* Fill in the absolute paths of the folders that exist; returns how many. */
size_t image_packages(char out[IMAGE_PACKAGES_MAX][IMAGE_PACKAGES_ROOM]);

#endif
