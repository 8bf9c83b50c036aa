/* The janitor: the one who stays to the end and removes the cgroup bases. */
#ifndef BOX_JANITOR_H
#define BOX_JANITOR_H

#include <sys/types.h>

#include "base/err.h"
#include "box/box.h"
#include "box/hierarchy.h"

/* Fork it. It waits until every other copy of the lifeline's writing end is
 * closed: the door's and the broker's. Its pid, or -1. */
pid_t janitor_start(const struct hierarchy *h, const struct box_broker *door, int life_read,
                    struct err *err);

#endif
