/* The seccomp listener: forbidden system calls are answered and named. */
#ifndef ENGINE_TALK_NOTIFY_H
#define ENGINE_TALK_NOTIFY_H

#include "contract/result.h"

#define NOTIFY_MAX 16 /* reports of one run; after that calls fail unreported */

struct notify {
    int fd; /* the listener; -1: none, or closed after NOTIFY_MAX */
    unsigned reports;
    struct {
        int number;
        uint64_t count;
    } seen[NOTIFY_MAX];
    unsigned kinds;
};

/* Answer the calls that wait. Closes the listener (later calls get ENOSYS at once)
 * when enough was seen, so that a flood costs the engine nothing. */
void notify_serve(struct notify *notify);
/* Put what was seen into the result. */
void notify_report(const struct notify *notify, struct result *result);

#endif
