/* Transplanting moves the state of a parked interpreter into a fresh interpreter, which sits in
 * another box and waits in read() for its next request. Afterwards the fresh process is that
 * interpreter, and the two share nothing. The keeper of the parked session does all of it from
 * outside (box/park/inject.h). It injects system calls into the fresh process, and it writes to
 * the memory of that process. This folder has one entry point, transplant(). x86_64 only.
 *
 * Invariants:
 * 1. The parked process stays stopped and unchanged.
 * 2. The fresh process keeps everything that belongs to its box: pid, uids, namespaces, control
 *    group, limits, filters, file descriptors 0 to 2 and its channel. The keeper gives it bytes
 *    and no descriptor. The fresh process opens its files itself, behind its own walls.
 * 3. The attacker controls the memory map, the file names and the content of the parked process.
 *    Wrong values can only damage the fresh process: the keeper writes to no other process, and
 *    every parser has a limit.
 * 4. A transplant is complete, or the fresh process continues unchanged, or it is killed.
 * 5. transplant() refuses kernels and processes that it does not know (TRANSPLANT_REASONS).
 *
 * Copied: memory, registers, signal handlers and mask, alternate stack, heap limits, thread id
 * address, robust list, rseq, working folder, umask. Regular files and directories below
 * /workspace, /tmp and /usr, and four devices, are opened again by name with their flags and
 * offset.
 * Not copied: other descriptors, the sharing of memory (it becomes private) and of file offsets,
 * pending signals, timers, file locks, locked memory. */
#ifndef BOX_FORK_TRANSPLANT_H
#define BOX_FORK_TRANSPLANT_H

#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"
#include "box/park/inject.h"
#include "box/park/park.h"

/* The version gate: errno, and the reason that the session gives to its client. */
#define TRANSPLANT_REASONS(X)                                                               \
    X(ENOSYS, "this kernel lacks a feature that forks need (Linux 5.13 or later with "      \
              "CONFIG_CHECKPOINT_RESTORE and CONFIG_PROC_PAGE_MONITOR)")                    \
    X(ENOTSUP, "the interpreter uses a feature of the processor or kernel that forks do "   \
               "not know")                                                                  \
    X(EIO, "this kernel does not let a debugger write to /proc/PID/mem")                    \
    X(E2BIG, "the session has too many memory mappings (maximum 20000)")                    \
    X(ENOMEM, "the new session has no memory left")                                         \
    X(ETIMEDOUT, "copying its memory took too long (maximum 6 s)")                          \
    X(ESRCH, "the saved state has died")                                                    \
    X(ECHILD, "the keeper of the session has died")

struct transplant_report {
    uint64_t bytes_copied;
    uint32_t calls;     /* system calls that the fresh process made */
    uint32_t lost_bits; /* BOX_LOST_BIT: what the fresh process does not have */
};

/* `from` is the session of `parked`, `to` is the session of `fresh`. The caller traces `parked`.
 * OK: the fresh process continues in its own read(). NOT_QUIET, THREADS and REFUSED: it continues
 * unchanged. DIED and LOST: the fresh process is dead. errno has the reason for every end but OK.
 * *out changes at OK only. The call takes about timeout_ms at most. */
enum inject_end transplant(const struct park_session *from, const struct park *parked,
                           const struct park_session *to, pid_t fresh, int timeout_ms,
                           struct transplant_report *out) attr_must_use;
/* Why a transplant did not end with OK, for the client of the session. */
const char *transplant_reason(enum inject_end end, int error);

#endif
