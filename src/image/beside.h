/* Images that add to the host and replace nothing of its Python. */
#ifndef IMAGE_BESIDE_H
#define IMAGE_BESIDE_H

#include <stdbool.h>

#include "image/image.h"

/* Of an image whose facts are those of its tree alone: does it have no Python, no module of the
 * standard library, no library under a name that the host has, and no environment of its own? Then
 * nothing that a process of the host's Python holds, which has imported the standard library, is
 * another thing in the image. */
bool image_is_beside(const struct image *image);

#endif
