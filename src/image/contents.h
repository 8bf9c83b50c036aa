/* Which Python packages an image has, by the names in its folders: no interpreter runs. */
#ifndef IMAGE_CONTENTS_H
#define IMAGE_CONTENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "image/image.h"

#define IMAGE_VERSION_ROOM 64

/* The installed version of a distribution ("scikit-learn"; letters of either case, and - _ . are
 * the same). False: the image does not have it. */
bool image_has_distribution(const struct image *image, struct str name,
                            char out_version[IMAGE_VERSION_ROOM]);
/* Can code import a module of this name, as far as folders tell? */
bool image_can_import(const struct image *image, const char *module);
/* Is version `a` at least `b`? Numbers by value, part by part; what follows them is not
 * compared. */
bool image_version_is_least(const char *a, struct str b);

#endif
