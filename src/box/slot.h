/* A slot: a number that one running instance of this user owns. It names the
 * instance's cgroups and, as root, its range of uids. A slot is held by a lock on
 * one byte of a file, so it is free again the moment its owners are dead. */
#ifndef BOX_SLOT_H
#define BOX_SLOT_H

#include <stdbool.h>

#include "base/err.h"

struct slot {
    int fd; /* the lock lives as long as any copy of this; -1: none */
    int number;
};

/* Are we root with the whole range of uids that slots stand for? Root of a user
 * namespace without them is an ordinary user to cupel. */
bool box_is_root(void);

/* Take the first free slot. The lock file lies in /run/cupel for root, else in
 * $XDG_RUNTIME_DIR/cupel or /tmp/cupel-UID. */
int slot_take(struct slot *out, struct err *err);
/* Is `number` held by someone else? */
bool slot_is_held(const struct slot *mine, int number);

#endif
