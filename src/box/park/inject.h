/* Injecting makes a stopped process execute single system calls. The keeper stops the process with
 * ptrace, sets its registers, steps it over one `syscall` instruction of its own code, and
 * restores its registers. The process runs no other instruction meanwhile, so the user code that
 * has run in it decides nothing.
 *
 * Runs in a keeper: one thread, CAP_SYS_PTRACE in the user namespace above the target's, the needs
 * of box/park/pin.h, no other power. The keeper must not ignore SIGCHLD: every wait is for it, and
 * every wait has a bound. x86_64 only (INJECT_HERE). No heap, no stdio.
 *
 * Invariants:
 * 1. The keeper changes only a quiet process: it has one thread, no signal is being delivered, and
 *    it is blocked in read() on its descriptor for requests, in a plain `syscall` instruction.
 * 2. The value that the kernel leaves in orig_rax proves that the call was made. Bytes that a
 *    third process may have changed prove nothing.
 * 3. Signals that arrive meanwhile stay pending. A signal that cannot stay pending is delivered
 *    when the process continues.
 * 4. All processes that a keeper has stopped die with the keeper. */
#ifndef BOX_PARK_INJECT_H
#define BOX_PARK_INJECT_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "base/attr.h"
#include "box/park/pin.h"

#if defined(__x86_64__) && !defined(__ILP32__)
#define INJECT_HERE 1
#else
#define INJECT_HERE 0
#endif

/*    id           text            meaning for the process */
#define INJECT_ENDS(X)                                                                    \
    X(OK, "ok")                   /* done */                                              \
    X(NOT_QUIET, "not quiet")     /* it is busy, or a signal came: it continues */        \
    X(THREADS, "has threads")     /* more than one: it continues */                       \
    X(REFUSED, "refused")         /* by the kernel, errno has the reason: it continues */ \
    X(DIED, "died")               /* it ended, or another process killed it */            \
    X(LOST, "lost")               /* no answer in time, or half changed: we killed it */  \
    X(UNSUPPORTED, "unsupported") /* not on this processor (errno ENOTSUP) */

enum inject_end {
#define X(id, text) INJECT_##id,
    INJECT_ENDS(X)
#undef X
};

const char *inject_end_name(enum inject_end end);

#if INJECT_HERE

struct inject_target {
    pid_t pid;
    int proc;          /* a procfs in which this pid is valid */
    int requests;      /* the descriptor that it reads */
    int timeout_ms;    /* for all work until it continues */
    int settle_ms;     /* the time to wait until it is quiet; 0: check once */
    int home;          /* the processor on which it continues; -1: any */
};

/* A stopped process. */
struct inject {
    pid_t pid;
    int64_t since_ns, deadline_ns;
    struct user_regs_struct regs; /* for when it continues */
    uint64_t signals;             /* its own signal mask */
    pid_t born;                   /* the child of its last clone, stopped too; 0: none */
    int caught;                   /* a signal to deliver when it continues */
    struct pin pin;               /* its processors, to be restored */
    int home;                     /* the processor on which it continues first; -1: any */
};

struct inject_order {
    long nr;
    uint64_t arg[6];
};

/* "PID/name", for openat below a procfs. */
#define INJECT_PROC_PATH 64
void inject_proc_path(char out[INJECT_PROC_PATH], pid_t pid, const char *name);

/* The processor on which a process ran last; -1: unknown. */
int inject_home(int proc, pid_t pid);

/* All other calls stand between these two. They block SIGCHLD, and they keep the caller on one
 * processor, which is not `home`. */
struct inject_work {
    sigset_t signals;
    struct pin pin;
};
void inject_begin_work(int home, struct inject_work *out_before);
void inject_end_work(const struct inject_work *before);

/* Stop a quiet process. At every end but OK it continues, or it is dead. A running process is not
 * stopped. A process that sleeps in another call is stopped and continues; a few calls (epoll_wait,
 * sockets with a timeout) then return EINTR, as they do after SIGSTOP. */
enum inject_end inject_attach(const struct inject_target *target, struct inject *out) attr_must_use;
/* Continue work on a process that inject_settle left stopped. */
enum inject_end inject_hold(pid_t pid, int timeout_ms, struct inject *out) attr_must_use;
/* Take over the child of a clone in `parent` (parent->born). It will continue where the parent
 * does. The parent must still be stopped. */
enum inject_end inject_adopt(struct inject *parent, struct inject *out) attr_must_use;

/* Make one system call. *out is the result, -errno for an error. At every end but OK the result is
 * unknown, and the process is still stopped unless the end is DIED or LOST. */
enum inject_end inject_call(struct inject *at, const struct inject_order *order,
                            long *out) attr_must_use;

/* Access to its memory; 0, or -1 with errno. */
int inject_read(const struct inject *at, uint64_t from, void *bytes, size_t len) attr_must_use;
int inject_write(const struct inject *at, uint64_t to, const void *bytes, size_t len) attr_must_use;

/* Give two stopped processes that share these pages a private copy each. Reading a byte copies the
 * page for `from` (Linux 5.19 and later), so `to` keeps the page that is in its processor caches.
 * Writing the same byte makes the old page private to `to`. Pages that are absent or read-only are
 * skipped. */
void inject_part(pid_t from, pid_t to, const uint64_t *pages, size_t count);

/* Restore registers, signal mask and processors. The process stays stopped. */
enum inject_end inject_settle(struct inject *at) attr_must_use;
/* The same, and the process continues: its read() starts again, and pending signals arrive. */
enum inject_end inject_let_go(struct inject *at) attr_must_use;
/* Kill a process that we have stopped, and wait for its end. Without that wait its pid namespace
 * could never end. */
void inject_kill(pid_t pid);
/* The same without the wait: inject_kill does that later. */
void inject_begin_kill(pid_t pid);

#endif
#endif
