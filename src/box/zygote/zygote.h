/* Messages between the broker and a zygote: fixed-size structs with descriptors, over the SEQPACKET
 * socket that the zygote has as descriptor 3. The zygote speaks first, once it is ready; then each
 * order has one answer. */
#ifndef BOX_ZYGOTE_ZYGOTE_H
#define BOX_ZYGOTE_ZYGOTE_H

#include <stdint.h>

#include "box/park/park.h"
#include "box/wall/posture.h"

#define ZYGOTE_FD 3

/* What does an occupant do before it waits for its request? */
enum zygote_rehearsal {
    ZYGOTE_NO_REHEARSAL, /* nothing: it was forked for a waiting request */
    ZYGOTE_REHEARSE,     /* runs a small program, so that the touched pages are its own */
    ZYGOTE_REHEARSE_ALL, /* also touches the pages of the large packages */
};

/* Trial runs before the first fork: the zygote notes the pages that they write, and later occupants
 * of the same kind copy those pages at once. In the child of a training zygote_serve returns
 * ZYGOTE_TRAINING plus its number. */
enum zygote_training {
    ZYGOTE_TRAIN_LEAST,  /* pages that every program writes */
    ZYGOTE_TRAIN_COMMON, /* pages of a small program, and of an error */
    ZYGOTE_TRAIN_LARGE,  /* pages of large packages */
    ZYGOTE_TRAIN_CELL,   /* pages that a cell of a session writes after a copy */
    ZYGOTE_TRAININGS,
};
#define ZYGOTE_TRAINING 16

/* Fork one occupant into a box. Descriptors, in this order: POSTURE_NS_COUNT namespaces, the v2
 * group's directory if has_cgroup, join_count v1 `tasks` files, Landlock's rules if has_rules,
 * stdin, stdout, stderr, words, requests, report. */
struct zygote_order {
    uint32_t join_count, has_cgroup, has_rules, two_ids, rehearsal;
    uint32_t parkable; /* saved uid BOX_ID_HOLDER, and the filter of a session */
    uint32_t required, broker_walls;
    int64_t cpu_s, open_files, processes, file_bytes, data_bytes;
    uint32_t piped_core, through;
    struct posture_outside outside;
};

struct zygote_answer {
    int32_t pid; /* in the broker's pid namespace */
    int32_t error; /* errno, or 0 */
};

/* The first message. */
struct zygote_ready {
    int32_t step; /* 0, or the enum box_step that failed */
    int32_t error; /* errno, or 0 */
    struct park_pages cell_pages;
};

#endif
