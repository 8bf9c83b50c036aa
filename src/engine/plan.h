/* From a checked request to what the broker needs: the numbers of a box, the
 * files to place in it, and the exec block. Pure but for memory files. */
#ifndef ENGINE_PLAN_H
#define ENGINE_PLAN_H

#include "base/err.h"
#include "box/proto.h"
#include "contract/request.h"

struct plan {
    struct box_call create; /* without a box number */
    int plant_fds[BOX_PLANTS_MAX];
    int exec_block;
    struct box_call start;
};
#define PLAN_INIT                                                            \
    ((struct plan){ .plant_fds = { -1, -1, -1, -1, -1, -1 }, .exec_block = -1 })
void plan_done(struct plan *plan);

/* font_list: a font list file prepared ahead (its name and an open descriptor),
 * or NULL and -1. */
int plan_make(const struct request *request, const char *font_list, int font_fd,
              struct plan *out, struct err *err);
/* The line that the driver reads first; heap. */
char *plan_driver_line(const struct request *request);

#endif
