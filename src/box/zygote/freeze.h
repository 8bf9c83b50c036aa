/* The frozen image: the private memory of this process, copied once into a sealed
 * memory file and mapped from there, so that a fork copies no page tables and all
 * forks share the pages that they do not write. */
#ifndef BOX_ZYGOTE_FREEZE_H
#define BOX_ZYGOTE_FREEZE_H

#include <stddef.h>

#include "base/attr.h"

/* How CPython allocates small objects, as its own names for it are. */
struct freeze_allocator {
    void (*get_arenas)(void *out);
    void (*set_arenas)(void *arenas);
    void *(*take)(size_t);
    void (*give_back)(void *);
};

/* Take what is free within used memory, for ever: what is asked for from now on lies
 * together, in few pages, where it would have been a few bytes here and there, each
 * in a page that every fork would have to copy. Called last before the image is
 * frozen. What cannot be filled stays as it is, and costs time. */
void freeze_fill_gaps(const struct freeze_allocator *python);

/* Must be called by the only thread, when it holds no lock. Until the process
 * forks, it should write to nothing but its stack: a page that is written is
 * private again. 0, or -1 with errno and nothing changed; a failure half way, which
 * leaves no memory to go on with, ends the process. */
int freeze_image(void) attr_must_use;

#endif
