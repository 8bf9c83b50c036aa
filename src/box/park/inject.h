/* Single system calls, made by a process that does not know of it: the process is
 * stopped by ptrace, its registers are set, it is stepped over one `syscall`
 * instruction of its own, and put back as it was. It never runs another instruction
 * meanwhile, so that what it holds (user code has run in it) decides nothing.
 *
 * For a keeper: one thread, CAP_SYS_PTRACE in the user namespace above the target's (and what
 * box/park/pin.h says), nothing else. SIGCHLD must not be ignored: every wait is for it, and has an
 * end. x86_64 only (INJECT_HERE). No heap, no stdio.
 *
 * What others rely on:
 * 1. A target is quiet or is not touched: blocked in read on its descriptor for requests,
 *    by a plain `syscall` instruction, one thread, no signal under way.
 * 2. That the call was made is proved by what the kernel leaves in orig_rax, not by
 *    bytes that a third process may have changed.
 * 3. Signals that come meanwhile stay pending. One that cannot is delivered at the end.
 * 4. A keeper that dies takes all that it has stopped with it. */
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

/*    id           text            what it means for the process */
#define INJECT_ENDS(X)                                                                    \
    X(OK, "ok")                   /* done */                                              \
    X(NOT_QUIET, "not quiet")     /* it does something else, or a signal came: goes on */ \
    X(THREADS, "has threads")     /* more than one: goes on */                            \
    X(REFUSED, "refused")         /* by the kernel, errno says why: goes on */            \
    X(DIED, "died")               /* it ended, or was killed by somebody else */          \
    X(LOST, "lost")               /* no answer in time, or no way back: we killed it */   \
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
    int proc;          /* a procfs that knows this pid */
    int requests;      /* the descriptor on which it waits */
    int timeout_ms;    /* for everything until it is let go */
    int settle_ms;     /* how long it may take to become quiet, 0: look once */
    int home;          /* the processor on which it goes on; -1: any */
};

/* A stopped process. */
struct inject {
    pid_t pid;
    int64_t since_ns, deadline_ns;
    struct user_regs_struct regs; /* as it goes on */
    uint64_t signals;             /* its own signal mask */
    pid_t born;                   /* what its last clone made, stopped too; 0: nothing */
    int caught;                   /* a signal that is delivered when it is let go */
    struct pin pin;               /* where it may run once it is let go */
    int home;                     /* where it goes on first; -1: anywhere there */
};

struct inject_order {
    long nr;
    uint64_t arg[6];
};

/* "PID/name", for openat beneath a procfs. */
#define INJECT_PROC_PATH 64
void inject_proc_path(char out[INJECT_PROC_PATH], pid_t pid, const char *name);

/* The processor on which a process ran last; -1: not known. */
int inject_home(int proc, pid_t pid);

/* Around all of the following: SIGCHLD is held, and we stay on one processor, not on `home`. */
struct inject_work {
    sigset_t signals;
    struct pin pin;
};
void inject_begin_work(int home, struct inject_work *out_before);
void inject_end_work(const struct inject_work *before);

/* Stop a quiet process. At any other end than OK it goes on, or is gone. One that runs
 * is not stopped at all; one that sleeps elsewhere is, and a few calls (epoll_wait,
 * sockets with a time limit) then answer EINTR, as they do after SIGSTOP. */
enum inject_end inject_attach(const struct inject_target *target, struct inject *out) attr_must_use;
/* Take up a process that was left stopped by inject_settle. */
enum inject_end inject_hold(pid_t pid, int timeout_ms, struct inject *out) attr_must_use;
/* Take over what a clone in `parent` made (parent->born): it will go on where the
 * parent does. The parent must not have been let go of. */
enum inject_end inject_adopt(struct inject *parent, struct inject *out) attr_must_use;

/* One system call; *out is the kernel's answer, -errno for an error. At another end
 * than OK nothing is known of it; the process is still stopped, or DIED, or is LOST. */
enum inject_end inject_call(struct inject *at, const struct inject_order *order, long *out)
    attr_must_use;

/* Its memory; 0, or -1 with errno. */
int inject_read(const struct inject *at, uint64_t from, void *bytes, size_t len) attr_must_use;
int inject_write(const struct inject *at, uint64_t to, const void *bytes, size_t len) attr_must_use;

/* Part these pages of two stopped processes that share them: to read one makes it `from`'s own
 * (Linux 5.19 and later), so that `to` keeps those which its caches know; to write the same byte
 * makes it `to`'s. One that is not there, or may not be written, is passed over. */
void inject_part(pid_t from, pid_t to, const uint64_t *pages, size_t count);

/* Registers, signal mask and processors as they were; it stays stopped. */
enum inject_end inject_settle(struct inject *at) attr_must_use;
/* The same, and it goes on: its read starts again, pending signals are delivered. */
enum inject_end inject_let_go(struct inject *at) attr_must_use;
/* Kill a process that we have stopped and take its end, without which its pid namespace
 * could never end. */
void inject_kill(pid_t pid);
/* The same, but its end is not waited for: inject_kill takes it later. */
void inject_begin_kill(pid_t pid);

#endif
#endif
