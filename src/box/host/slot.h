/* A slot: a number that one running instance of this user owns. It names the instance's cgroups
 * and, as root, its range of uids. A lock on one byte of a file holds the slot, so it is free the
 * moment its owners are dead. */
#ifndef BOX_HOST_SLOT_H
#define BOX_HOST_SLOT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct slot {
    int fd; /* the lock lives as long as any copy of this descriptor; -1: none */
    int number;
};

/* Is this root with the whole uid range of all slots and the capabilities to assign them? Root
 * without either, as in some containers, counts as an ordinary user. */
bool box_is_root(void);

/* Open the directory for runtime files, made if missing: /run/cupel for root, else
 * $XDG_RUNTIME_DIR/cupel or /tmp/cupel-UID. No other user can write it. The descriptor, or -1 with
 * errno; the path is filled in either way. */
int box_runtime_dir(char *path, size_t room);

/* Take the first free slot from `first` on. The lock file is in the runtime directory. */
int slot_take(struct slot *out, int first, struct err *err);
/* Does another instance hold `number`? */
bool slot_is_held(const struct slot *mine, int number);

#endif
