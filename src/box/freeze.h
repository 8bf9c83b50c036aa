/* The frozen image: the private memory of this process, copied once into a sealed
 * memory file and mapped from there, so that a fork copies no page tables and all
 * forks share the pages that they do not write. */
#ifndef BOX_FREEZE_H
#define BOX_FREEZE_H

#include "base/attr.h"

/* Must be called by the only thread, when it holds no lock. Until the process
 * forks, it should write to nothing but its stack: a page that is written is
 * private again. 0, or -1 with errno and nothing changed; a failure half way, which
 * leaves no memory to go on with, ends the process. */
int freeze_image(void) attr_must_use;

#endif
