/* The janitor removes an instance's cgroup bases after all its other processes ended. */
#ifndef BOX_HOST_JANITOR_H
#define BOX_HOST_JANITOR_H

#include <sys/types.h>

#include "base/err.h"
#include "box/host/hierarchy.h"

/* Fork the janitor. It keeps the slot and the locks on the bases, and waits until the door and the
 * broker have closed their copies of the lifeline's writing end. Its pid, or -1. */
pid_t janitor_start(const struct hierarchy *h, int life_read, int slot_fd, struct err *err);

#endif
