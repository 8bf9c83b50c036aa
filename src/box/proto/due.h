/* Deadlines of boxes: memory that the engine writes and the broker reads. The broker ends an
 * overdue box even when the engine hangs; normally the engine acts first and gives the reason. Only
 * numbers are shared. */
#ifndef BOX_PROTO_DUE_H
#define BOX_PROTO_DUE_H

#include <stdatomic.h>
#include <stdint.h>

#include "box/proto/proto.h"

struct due_box {
    _Atomic int64_t wall_ns; /* monotonic clock; 0: no deadline */
    _Atomic int64_t cpu_us;  /* of the box's own CPU counter; 0: none */
    _Atomic uint64_t serial; /* incremented by every due_set */
};

struct due_page {
    struct due_box box[BOX_MAX];
};

/* The engine's side: returns a descriptor for the broker and maps the memory; -1 with errno. */
int due_make(struct due_page **out);
/* The broker's side, read-only; NULL when the seals or the size are wrong. The seals keep the
 * engine from shrinking the file. */
const struct due_page *due_open(int fd);
void due_close(struct due_page *page);

/* Set a box's deadline; wall_ns 0: its run is over. A NULL page is no error: the broker is gone,
 * and every box with it. */
void due_set(struct due_page *page, uint32_t box, int64_t wall_ns, int64_t cpu_us);

#endif
