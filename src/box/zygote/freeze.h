/* Frozen memory: the private memory of this process, copied once into a sealed memory file and
 * mapped from there. A fork then copies no page tables, and all forks share the pages that they do
 * not write. */
#ifndef BOX_ZYGOTE_FREEZE_H
#define BOX_ZYGOTE_FREEZE_H

#include <stddef.h>

#include "base/attr.h"

/* CPython's functions for allocating small objects. */
struct freeze_allocator {
    void (*get_arenas)(void *out);
    void (*set_arenas)(void *arenas);
    void *(*take)(size_t);
    void (*give_back)(void *);
};

/* Allocate the free gaps within used memory, permanently: later allocations then lie together in
 * few pages, instead of dirtying many pages that every fork must copy. Call it last before the
 * freeze. Gaps that cannot be filled only cost time. */
void freeze_fill_gaps(const struct freeze_allocator *python);

/* Call it from the only thread, without a lock held. Until it forks, the process should write only
 * to its stack: a written page is private again. 0, or -1 with errno and nothing changed; a failure
 * half way ends the process. */
int freeze_memory(void) attr_must_use;

#endif
