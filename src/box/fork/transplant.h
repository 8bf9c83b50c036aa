/* Transplanting: the memory of a parked interpreter goes into a fresh one, which sits in
 * another box and waits in read on its own descriptor for requests. Afterwards the fresh
 * process is that interpreter, and shares nothing with it. All is done from outside, by
 * the keeper of the parked one's session (box/park/inject.h): system calls that the fresh
 * process makes without knowing, each one of those that its own filter allows, and
 * writes to its memory. x86_64 only.
 *
 * What others rely on:
 * 1. The parked process stays stopped and as it was.
 * 2. The fresh process keeps what is its box's: pid, uids, namespaces, control group,
 *    limits, descriptors 0 to 2 and its channel. Nothing is given to it but
 *    bytes; what it opens, it opens itself.
 * 3. Of the parked process's map, names and content everything may be a lie. A lie makes
 *    another fresh process than it could have been, and nothing else: we write to that
 *    process alone, and parse within caps.
 * 4. It is done whole, or the fresh process goes on as it was, or it is killed.
 *
 * Carried: memory, registers with the extended ones, signal handlers, mask and alternate
 * stack, thread id slot, robust list, rseq; folder, umask; regular files and directories
 * below /workspace, /tmp and /usr, and a few devices, opened anew by name with their
 * flags and place. Not carried: other descriptors; that memory is shared (it becomes
 * private) and that two descriptors share one place; pending signals, timers, locks of
 * files, locked memory, the names of the process in /proc. */
#ifndef BOX_FORK_TRANSPLANT_H
#define BOX_FORK_TRANSPLANT_H

#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"
#include "box/park/inject.h"
#include "box/park/park.h"

#define TRANSPLANT_LOST_MAX 32
#define TRANSPLANT_NAME_MAX 64

struct transplant_report {
    uint64_t bytes_copied;
    uint32_t calls;     /* that the fresh process has made */
    uint32_t lost_bits;  /* of BOX_LOST */
    uint32_t lost_files; /* how many things could not be carried; the first ones by name */
    char lost[TRANSPLANT_LOST_MAX][TRANSPLANT_NAME_MAX]; /* "5 pipe:[123]": printable ASCII */
};

/* `from` is the session of `parked`, `to` that of `fresh`; the same keeper traces both.
 * At OK the fresh process goes on in its own read. NOT_QUIET, THREADS, REFUSED (errno;
 * also if the parked one has died: ESRCH): it goes on as it was. DIED and LOST are said
 * of the fresh process: it is dead. The whole takes at most about timeout_ms; what the
 * parked one does of it has the limit of its session. *out is untouched but at OK. */
enum inject_end transplant(const struct park_session *from, const struct park *parked,
                           const struct park_session *to, pid_t fresh, int timeout_ms,
                           struct transplant_report *out) attr_must_use;

#endif
