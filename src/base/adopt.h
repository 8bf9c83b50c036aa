/* Adopting orphaned descendants, and ending them. For processes of one thread. */
#ifndef BASE_ADOPT_H
#define BASE_ADOPT_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/types.h>

#include "base/attr.h"

/* Orphaned descendants become children of this process, not of init. 0, or -1 with errno. The call
 * is no wall: dev/check-layers exempts it. */
static inline attr_must_use int adopt_orphans(void)
{
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

/* No signal of a terminal or of a service ends this process. */
void adopt_ignore_signals(void);
/* Kill all children but these; how many there were. Only this process may reap them. */
size_t adopt_kill_children(const pid_t *but, size_t count);
/* Kill until no descendant is left: a dead process's children become ours. Does not wait for a
 * program of another user, which we cannot kill. */
void adopt_end_all(void);
/* The kernel kills this process when its parent dies. The call is no wall: dev/check-layers exempts
 * it. */
static inline attr_must_use int adopt_end_with_parent(void)
{
    return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
}

/* In a child of `parent` that becomes a program: a group of its own, no signal ignored or blocked.
 * It dies with its parent, also where all that would kill it die in the same moment. */
void adopt_begin_program(pid_t parent);
/* For the parent of that child: waits for its end, or kills it when `control` is readable or at its
 * end. Then ends all descendants. Returns the status, as waitpid gives it. */
int adopt_attend(int control, pid_t pid);

#endif
