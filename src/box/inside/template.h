/* Templates of a box's root: a tree that all boxes with the same plants and limits share as the
 * lowest layer of their own overlays. Broker. */
#ifndef BOX_INSIDE_TEMPLATE_H
#define BOX_INSIDE_TEMPLATE_H

#include <stdbool.h>

#include "box/inside/system.h"
#include "box/proto/proto.h"

#define TEMPLATES_MAX 12
#define TEMPLATE_PATH 32

struct template_set {
    const char *folder; /* mount point of their tmpfs; NULL: not mounted */
    struct {
        bool used;
        uint32_t count;
        int fds[BOX_PLANTS_MAX]; /* kept open, so that no other file gets the same inode */
        char font_list[BOX_PLANT_NAME];
        uint32_t late_code;
        struct system_limits limits;
        char path[TEMPLATE_PATH]; /* has "root", the tree, and "top", cupel's files in /usr */
    } at[TEMPLATES_MAX];
    bool failed; /* templates do not work here: every box is laid out alone */
};

/* The template for these files and limits, made if it does not exist; NULL: do without. */
const char *template_find(struct template_set *set, const struct box_plants *plants,
                          const struct system_limits *limits, const int *fds);

#endif
