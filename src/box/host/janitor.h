/* The janitor: the one who stays to the end and removes the cgroup bases. */
#ifndef BOX_HOST_JANITOR_H
#define BOX_HOST_JANITOR_H

#include <sys/types.h>

#include "base/err.h"
#include "box/host/hierarchy.h"

/* Fork it. It keeps the slot and the locks on the bases, and waits until every other copy
 * of the lifeline's writing end is closed: the door's and the broker's. Its pid, or -1. */
pid_t janitor_start(const struct hierarchy *h, int life_read, int slot_fd, struct err *err);

#endif
