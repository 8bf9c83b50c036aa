/* The order of what a box writes to several pipes: stdout, stderr and the driver's words. At a
 * switch from one pipe to another the driver writes a mark into the new one (drivers/PROTOCOL.md):
 * a byte, the run's secret, a number that increases, and in a session the earlier cell whose code
 * writes (0: the running one). The bytes after it come later than those with a lower number; number
 * 0 is that of the mark before, for output of an earlier cell. Marks are the box's claim about its
 * own output: a wrong one spoils only the order and the cell, never a byte. Pure; fuzzed. */
#ifndef ENGINE_TALK_ORDER_H
#define ENGINE_TALK_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define ORDER_SECRET 16                  /* characters */
#define ORDER_DIGITS 8
#define ORDER_MARK (1 + ORDER_SECRET + 2 * ORDER_DIGITS) /* bytes: lead, secret, number, cell */
#define ORDER_LEAD '\001'
#define ORDER_MARKS_MAX (1u << 20) /* with numbers, of one run. Later ones are output */
#define ORDER_PIPES 3
#define ORDER_STREAMS 2 /* the first of them: not the driver's words */

struct order_cut {
    size_t at; /* in the pipe's bytes */
    uint32_t epoch, cell; /* from there on */
};

struct order_pipe {
    struct buf bytes; /* read and not yet told, without marks */
    size_t told;      /* of them */
    struct order_cut *cuts;
    size_t cut_count, cut_next;
    uint32_t epoch, cell; /* of the next byte to tell */
    char torn[ORDER_MARK]; /* the end of what was read, which may begin a mark */
    size_t torn_len;
};

/* `cell`: of an earlier cell, or 0. */
typedef void order_tells(void *user, unsigned pipe, uint32_t cell, struct str bytes);

struct order {
    char secret[ORDER_SECRET + 1]; /* "": there are no marks */
    struct order_pipe pipe[ORDER_PIPES];
    unsigned marks;
    uint32_t settled; /* every byte up to this epoch has been read */
    order_tells *tell;
    void *user;
};
void order_init(struct order *order, order_tells *tell, void *user);
void order_done(struct order *order);

/* Another order reads the streams from now on: it goes on within a mark, and between two. */
void order_hand_over(struct order *from, struct order *to);

/* Takes bytes that were read. True: they have been told already, because they have no mark, come
 * after a settled one, and nothing waits. */
bool order_add(struct order *order, unsigned pipe, struct str bytes);
/* Does anything wait that may be told at once? */
bool order_is_settled(const struct order *order);
bool order_waits(const struct order *order);
/* The pipe with the highest epoch, and so the last one written: once the others have been read
 * again, call order_settle, and all that waits now may be told. `read`: the pipe just read. */
unsigned order_newest(const struct order *order, unsigned read);
void order_settle(struct order *order, unsigned newest);
/* Tells up to `most` portions in order, as far as settled. */
void order_tell(struct order *order, unsigned most);
/* Tells everything, in order. `whole`: a torn mark is output. */
void order_tell_all(struct order *order, bool whole);

#endif
