/* Until when each box may run: memory that the engine writes and the broker reads. With it the
 * broker ends a box whose time is over by itself, though the engine stands still; normally the
 * engine is first, and gives the reason. Numbers only, nothing else is shared. */
#ifndef BOX_PROTO_DUE_H
#define BOX_PROTO_DUE_H

#include <stdatomic.h>
#include <stdint.h>

#include "box/proto/proto.h"

struct due_box {
    _Atomic int64_t wall_ns; /* of the monotonic clock; 0: nothing runs that has an end */
    _Atomic int64_t cpu_us;  /* of the box's own counter; 0: none */
    _Atomic uint64_t serial; /* one for each time that it is set */
};

struct due_page {
    struct due_box box[BOX_MAX];
};

/* The engine's end: a descriptor for the broker, and the memory; -1 with errno. */
int due_make(struct due_page **out);
/* The broker's end, which cannot write and cannot be cut short; NULL: it is not as agreed. */
const struct due_page *due_open(int fd);
void due_close(struct due_page *page);

/* The box may run until then; wall_ns 0: its run is over. A page that is not there is no error:
 * the broker is gone, and every box with it. */
void due_set(struct due_page *page, uint32_t box, int64_t wall_ns, int64_t cpu_us);

#endif
