/* One processor for a tracer and what it has stopped. Each system call that is made in a stopped
 * process is a switch there and back; between two processors each of these wakes one that idles,
 * which takes many times as long as the call. It is another one than where the process came from
 * and goes back to, if there is one: to copy a process goes through so much memory that nothing of
 * it would be left in the caches there.
 *
 * For a keeper: it needs CAP_SYS_NICE in the user namespace above the target's where their uids
 * differ. Where it is refused, nothing changes but the time that is taken. No heap, no stdio. */
#ifndef BOX_PARK_PIN_H
#define BOX_PARK_PIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Which processors a process may run on. */
struct pin {
    size_t len; /* in bytes; 0: nothing was changed */
    uint64_t cpus[16];
};

/* Ourselves to one processor, not `home` (-1: whichever) if we may run on another. */
void pin_self(int home, struct pin *out_before);
/* A stopped process to the one that we are on. */
void pin_beside(pid_t pid, struct pin *out_before);
/* A stopped process to `home`, if it may run there: it goes on there, and is to be released once it
 * does. */
bool pin_to(pid_t pid, int home, const struct pin *before);
/* As it was; pid 0: ourselves. */
void pin_release(pid_t pid, const struct pin *before);

#endif
