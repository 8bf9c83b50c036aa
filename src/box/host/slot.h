/* A slot: a number that one running instance of this user owns. It names the
 * instance's cgroups and, as root, its range of uids. A slot is held by a lock on
 * one byte of a file, so it is free again the moment its owners are dead. */
#ifndef BOX_HOST_SLOT_H
#define BOX_HOST_SLOT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct slot {
    int fd; /* the lock lives as long as any copy of this; -1: none */
    int number;
};

/* Are we root with the whole range of uids that slots stand for, and the power to hand them
 * out? Root without either, as in some containers, is an ordinary user to cupel. */
bool box_is_root(void);

/* Open the directory for what only lives while we run, made where it is missing:
 * /run/cupel for root, else $XDG_RUNTIME_DIR/cupel or /tmp/cupel-UID. Ours alone.
 * The descriptor, or -1 with errno; the path is filled either way. */
int box_runtime_dir(char *path, size_t room);

/* Take the first free slot from `first` on. The lock file lies in the runtime directory. */
int slot_take(struct slot *out, int first, struct err *err);
/* Is `number` held by someone else? */
bool slot_is_held(const struct slot *mine, int number);

#endif
