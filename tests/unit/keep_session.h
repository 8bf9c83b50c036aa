/* A session for the tests of parking, through the broker's own socket, as the engine has
 * one: a python forked from a real zygote into a real box. Its program is a loop of ours
 * that waits where a session's driver would, evaluates what it is sent, and answers. */
#ifndef TESTS_UNIT_KEEP_SESSION_H
#define TESTS_UNIT_KEEP_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "box/host/box.h"
#include "box/park/inject.h"

#if INJECT_HERE

#define BOX 0
#define MIB (INT64_C(1) << 20)

extern struct box_broker keep_house;
/* Our ends of its channel. */
struct keep_channel {
    int words, requests;
};
#define KEEP_NO_CHANNEL ((struct keep_channel){ -1, -1 })
extern struct keep_channel keep_live;

/* False: it cannot be here, and says why. begin: as root, so that it can be parked. */
bool keep_begin(int64_t memory_bytes);
bool keep_begin_as_we_are(int64_t memory_bytes);
/* As an ordinary user, with one uid only. */
bool keep_begin_as_user(int64_t memory_bytes);
/* Another session beside it, in another box; keep_live leads there then. */
void keep_move_in(uint32_t box, int64_t memory_bytes);
/* Release the box, see that the broker goes on, and end it. */
void keep_end(void);

/* Wait for news of a kind; was there any that nobody has taken? */
struct box_news keep_news_of(uint32_t kind);
bool keep_heard(uint32_t kind);
void keep_order(const struct box_call *call, const int *fds, size_t count);
void keep_order_place(uint32_t op, uint32_t place);
/* What the python answers; "gone" if it does not. tell: without waiting for it. */
const char *keep_ask(const char *text);
void keep_tell(const char *text);

struct box_news keep_park(uint32_t place);
void keep_must_park(uint32_t place);
struct box_news keep_wake(uint32_t place);
struct box_news keep_wake_ticket(uint32_t place, uint64_t ticket);
struct box_news keep_sweep(void);
/* Back to the state of a place, whatever has become of the keep_live process. */
void keep_go_back(uint32_t place);

/* Everything that user code might try against what is parked; ends the session. */
void keep_survive_attacks(void);

/* Of the broker's children, as the host sees them. */
pid_t keep_process_named(const char *name);
/* How many, when they are as many as awaited, or after 5 seconds: a child that counts what a box
 * holds comes and goes. */
int keep_children_of_broker(int awaited);
int keep_fds_of(pid_t pid);
const char *keep_status_of(pid_t pid, const char *name);

#endif
#endif
