/* The seccomp listener: answers and names forbidden system calls. */
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

/* Answers waiting calls. Closes the listener after enough of them (later calls get ENOSYS at once),
 * so that a flood costs the engine nothing. */
void notify_serve(struct notify *notify);
void notify_report(const struct notify *notify, struct result *result);

#endif
