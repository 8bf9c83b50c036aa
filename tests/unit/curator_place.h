/* A resident porter over a folder of /dev/shm, for tests: as in a box, but without one. */
#ifndef TESTS_UNIT_CURATOR_PLACE_H
#define TESTS_UNIT_CURATOR_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "box/proto/proto.h"

struct place {
    int sock;    /* the engine's end */
    int ws;      /* the workspace, where the current directory is, too */
    int outside; /* what must not change */
};

/* Run the test in a process of its own, without power, in a new place; afterwards
 * nothing of it is left. Says so and does nothing where there is no tmpfs. */
void place_run(void (*test)(struct place *place));

/* One call and its answer. */
struct box_porter_answer place_ask(const struct place *place, const struct box_porter_call *call,
                                   int fd);
struct box_porter_answer place_snap(const struct place *place, uint32_t snapshot, uint32_t base);
int place_restore(const struct place *place, uint32_t snapshot);
void place_forget(const struct place *place, uint32_t snapshot);

/* Everything beneath a directory as text, sorted: kinds, modes, times, contents. Heap.
 * Times of directories only where asked for. */
char *place_tell(int dir, bool dir_times);

/* Small files. */
void place_write(const char *path, const char *text);
bool place_holds(const char *path, const char *text);

#endif
