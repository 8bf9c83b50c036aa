/* The host's cgroup hierarchies: finding them, and making, sweeping and removing
 * the base directories in which a broker makes those of its boxes. Host side. */
#ifndef BOX_HOST_HIERARCHY_H
#define BOX_HOST_HIERARCHY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "box/proto/proto.h"
#include "box/host/slot.h"

#define HIERARCHY_PATH 512

struct hierarchy {
    char parent[BOX_CG_COUNT][HIERARCHY_PATH]; /* where a base can be made; "" for none */
    char name[48];                             /* of the base: cupel-UID-SLOT */
    int base[BOX_CG_COUNT];                    /* the base directories, locked; -1 for none */
    int broker_leaf;        /* v2: where the broker itself lives; -1 */
    bool in_front;          /* we had to move ourselves into a leaf of the base */
    uint32_t v2_controllers; /* bits of box_cg that the v2 base really has */
};

/* Where this process could make groups: as root at the top of each hierarchy, as
 * an ordinary user in its own v2 group if that was delegated. Never fails: no
 * usable hierarchy is an empty struct. */
void hierarchy_find(struct hierarchy *out);
bool hierarchy_any(const struct hierarchy *h);
/* Remove bases of dead instances of this user: those that nobody holds a lock on. */
void hierarchy_sweep(const struct hierarchy *h, const struct slot *slot);
/* Make this instance's bases and give them to `owner`. They are locked for as long as
 * a copy of their descriptors is open. TAKEN: the slot's name belongs to an instance
 * that has its slots elsewhere, and nothing was made: try another slot. */
enum hierarchy_made {
    HIERARCHY_FAILED = -1,
    HIERARCHY_MADE,
    HIERARCHY_TAKEN,
};
enum hierarchy_made hierarchy_make(struct hierarchy *h, const struct slot *slot, uid_t owner,
                                   struct err *err);
/* Remove them with what is left in them; waits a moment for the last to die. */
void hierarchy_remove(const struct hierarchy *h);
void hierarchy_close(struct hierarchy *h);

#endif
