/* Pinning keeps a tracer and the process that it has stopped on one processor. Each injected call
 * switches to the process and back. Between two processors each switch wakes an idle processor,
 * which takes many times as long as the call. If possible it is not the processor on which the
 * process ran before and continues later: copying a process touches so much memory that it would
 * replace everything in the caches there.
 *
 * Runs in a keeper. It needs CAP_SYS_NICE in the user namespace above the target's if their uids
 * differ. Without it only the speed changes. No heap, no stdio. */
#ifndef BOX_PARK_PIN_H
#define BOX_PARK_PIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The processors on which a process may run. */
struct pin {
    size_t len; /* in bytes; 0: nothing was changed */
    uint64_t cpus[16];
};

/* Move the caller to one processor, if possible not to `home` (-1: to any). */
void pin_self(int home, struct pin *out_before);
/* Move a stopped process to the caller's processor. */
void pin_beside(pid_t pid, struct pin *out_before);
/* Move a stopped process to `home`, if it may run there. Call pin_release when it continues. */
bool pin_to(pid_t pid, int home, const struct pin *before);
/* Restore the processors; pid 0: of the caller. */
void pin_release(pid_t pid, const struct pin *before);

#endif
