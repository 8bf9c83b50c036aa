/* A real python3 that waits in read, for the tests of parking. As root it has the two
 * uids of a session and the filter of its box; as an ordinary user everything runs in a
 * user namespace with one uid, and what needs two is left out. The test is its parent. */
#ifndef TESTS_UNIT_PARK_TARGET_H
#define TESTS_UNIT_PARK_TARGET_H

#include "box/park/park.h"

#if INJECT_HERE

#include <stdbool.h>

/* Its channel: one socket under both numbers, which keeps messages apart. */
#define WORDS 8
#define REQUESTS 9

struct python {
    pid_t pid;
    int sock;
};

extern struct park_session session;
extern const struct park_tasks stay; /* in their control groups */
extern uint32_t woken_lost; /* bits of BOX_LOST, of the last wake */

/* False, and said, where this host has neither root nor user namespaces for us. */
bool may_run(void);
bool two_uids(void);
/* With `user_ns`, in a user namespace of its own, below ours. */
struct python start(bool user_ns);
/* Evaluate or execute in it; "" waits for what it says next. */
const char *ask(int sock, const char *text);
const char *list_fds(int sock, char out[64]);
void stop(struct python *python);
void check_nothing_left(void);
struct park copy_of(const struct python *python);
struct python wake(struct park *parked, const struct park_tasks *tasks);

#endif
#endif
