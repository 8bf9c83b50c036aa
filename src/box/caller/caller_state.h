/* The layout of CALLER_STATE, for caller_state.c and caller_read.c. The user's code may write to it
 * too: a length or a number is checked before its use. */
#ifndef BOX_CALLER_CALLER_STATE_H
#define BOX_CALLER_CALLER_STATE_H

#include <stdatomic.h>

#include "box/caller/caller.h"

#define CALLER_OPEN_MAX 128 /* calls that wait at the engine */
#define CALLER_PART 65536 /* a pipe's */

/* A line of the engine that the reader is in. */
struct caller_frame {
    int32_t number;
    bool inside, whole; /* `whole`: its last byte is in the file */
    bool more; /* further lines of the same number follow */
    bool kept; /* the caller lives */
    uint64_t size; /* bytes of the file */
};

struct caller_place {
    struct caller_frame frame;
    uint32_t which, from, len; /* the bytes of part[which] that were read and not yet used */
};

struct caller_state {
    char nonce[CALLER_NONCE_ROOM]; /* of the cell */
    _Atomic uint32_t turn;
    _Atomic bool ending, over;
    int32_t number; /* of the last call */
    _Atomic int32_t open[CALLER_OPEN_MAX]; /* 0: free */
    struct caller_place now, next;
    _Atomic bool changes; /* `next` must become `now` */
    /* Zero behind `len`: no line has that byte, and so the bytes that a reader read before it was
     * killed can be found. */
    char part[2][CALLER_PART];
};

#endif
