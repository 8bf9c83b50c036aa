/* The host's cgroup hierarchies: finding them, and making, sweeping and removing the base
 * directories in which a broker makes the groups of its boxes. Host side. */
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
    char parent[BOX_CG_COUNT][HIERARCHY_PATH]; /* parent of the base; "": none */
    char name[48];                             /* of the base: cupel-UID-SLOT */
    int base[BOX_CG_COUNT];                    /* the base directories, locked; -1: none */
    int broker_leaf;        /* v2: the broker's own group; -1: none */
    bool in_front;          /* cupel moved itself into a leaf of the base */
    uint32_t v2_controllers; /* bits of box_cg that the v2 base has */
};

/* Find where this process can make groups: as root at the top of each hierarchy, as an ordinary
 * user in its own v2 group if delegated. Never fails: without a usable hierarchy the struct is
 * empty. */
void hierarchy_find(struct hierarchy *out);
bool hierarchy_any(const struct hierarchy *h);
/* Remove the bases of dead instances of this user: those without a lock. */
void hierarchy_sweep(const struct hierarchy *h, const struct slot *slot);
/* Make this instance's bases and give them to `owner`. They stay locked while a copy of their
 * descriptors is open. TAKEN: an instance with other slots holds this slot's name, and nothing was
 * made: try another slot. */
enum hierarchy_made {
    HIERARCHY_FAILED = -1,
    HIERARCHY_MADE,
    HIERARCHY_TAKEN,
};
enum hierarchy_made hierarchy_make(struct hierarchy *h, const struct slot *slot, uid_t owner,
                                   struct err *err);
/* Remove the bases and their content; waits a moment for the last processes to die. */
void hierarchy_remove(const struct hierarchy *h);
void hierarchy_close(struct hierarchy *h);

#endif
