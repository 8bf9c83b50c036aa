/* Templates of a box's root: a tree that all boxes with the same plants and limits share as the
 * lowest layer of their own overlays. Broker. */
#ifndef BOX_INSIDE_TEMPLATE_H
#define BOX_INSIDE_TEMPLATE_H

#include <stdbool.h>

#include "box/inside/system.h"
#include "box/proto/proto.h"

#define TEMPLATES_MAX 24
#define TEMPLATE_PATH 32

struct mount_plan;

struct template_set {
    const char *folder; /* mount point of their tmpfs; NULL: not mounted */
    struct {
        bool used;
        uint32_t count;
        int fds[BOX_PLANTS_MAX]; /* kept open, so that no other file gets the same inode */
        char font_list[BOX_PLANT_NAME];
        uint32_t late_code;
        bool alone; /* for images that stand alone */
        struct system_limits limits;
        char path[TEMPLATE_PATH]; /* has "root", the tree, and "top", cupel's files in /usr */
    } at[TEMPLATES_MAX];
    bool failed; /* templates do not work here: every box is laid out alone */
};

/* The mount point of the broker's tmpfs, made at the first call; NULL: none can be made. */
const char *template_place(struct template_set *set);
/* The template for these files, limits and kind of image, made if it does not exist; NULL: do
 * without. */
const char *template_find(struct template_set *set, const struct mount_plan *plan);

#endif
