/* Templates of a box's root: the tree that all boxes with the same files of ours
 * share as the lowest layer of an overlay that is each box's own. Broker. */
#ifndef BOX_INSIDE_TEMPLATE_H
#define BOX_INSIDE_TEMPLATE_H

#include <stdbool.h>

#include "box/proto/proto.h"

#define TEMPLATES_MAX 4
#define TEMPLATE_PATH 32

struct template_set {
    const char *place; /* where their tmpfs is mounted; NULL: not yet, or nowhere */
    struct {
        bool used;
        uint32_t count;
        int fds[BOX_PLANTS_MAX]; /* kept open, so that no other file can be taken for them */
        char font_list[BOX_PLANT_NAME];
        uint32_t late_code;
        char path[TEMPLATE_PATH]; /* has "root", the tree, and "top", our files in /usr */
    } at[TEMPLATES_MAX];
    bool failed; /* it does not work here: boxes are laid out one by one */
};

/* The template for these files, made if it is not there yet; NULL: do without. */
const char *template_find(struct template_set *set, const struct box_plants *plants,
                          const int *fds);

#endif
