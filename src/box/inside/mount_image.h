/* Boxes with an image of the store. */
#ifndef BOX_INSIDE_MOUNT_IMAGE_H
#define BOX_INSIDE_MOUNT_IMAGE_H

#include <stdbool.h>

#include "box/inside/mount.h"

/* Names on the broker's tmpfs. */
#define MOUNT_IMAGES "images" /* the attached trees of all images */
#define MOUNT_FOLDER "folder" /* the attached folder */
#define MOUNT_FILE "file%u" /* the attached files */
#define MOUNT_MORE "more%u" /* the attached folders for other places */
#define MOUNT_TREE "tree" /* in a box's copy of the mounts: the tree of its image */
#define MOUNT_OWN "own" /* there: a template of the box's own */

/* The broker's checks of a call: is it an image, or all zero? */
bool mount_image_valid(const struct box_image *image);
bool mount_is_host(const struct box_image *image);
/* Does the box have an image of the store; one that stands alone? */
bool mount_has_image(const struct mount_plan *plan);
bool mount_stands_alone(const struct mount_plan *plan);

/* Before the root is mounted: put the image's tree at its place, and a template beside it if the
 * plan has none. *out_template: the template to use. */
enum box_step mount_image_tree(const struct mount_plan *plan, const char **out_template);
/* The image over the new root at `root`, which shows the tree already: /usr, and our own /dev and
 * /sys. Run in the template's folder. */
enum box_step mount_image_parts(const struct mount_plan *plan, const char *root);

/* In the finished box: do all its mounts but /workspace belong to it, the image's tree and the
 * kernel? Read from the kernel's list of mounts. */
bool mount_image_alone(void);

#endif
