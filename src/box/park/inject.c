/* System calls in stopped processes; see the header. Runs in the keeper of a session:
 * one thread, no heap, no stdio. Every byte of the target is an attacker's: of it we
 * read the two bytes before the instruction pointer, registers, and what our own calls
 * have put into its memory. */
#include "box/park/inject.h"

const char *inject_end_name(enum inject_end end)
{
    static const char *const names[] = {
#define X(id, text) [INJECT_##id] = text,
        INJECT_ENDS(X)
#undef X
    };
    return (size_t)end < array_len(names) ? names[end] : "unknown";
}

#if INJECT_HERE

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"

/* Some of these are not in musl's header. */
#define SEIZE 0x4206
#define INTERRUPT 0x4207
#define GET_SIGNAL_MASK 0x420a
#define SET_SIGNAL_MASK 0x420b
#define GET_EVENT 0x4201
#define EVENT_FORK 1 /* vfork and clone follow */
#define EVENT_CLONE 3
#define OPTION_BIRTHS (1u << 1 | 1u << 2 | 1u << 3)
#define OPTION_SECCOMP (1u << 7)
#define OPTION_EXITKILL (1u << 20)
#define EVENT_STOP 128

#define OPTIONS (OPTION_BIRTHS | OPTION_SECCOMP | OPTION_EXITKILL)
/* All signals, but the trap that ends a step: the kernel would take its handler away
 * if it were blocked. (Who ignores it does so no longer: nothing can be done there.) */
#define HELD_SIGNALS (~(UINT64_C(1) << (SIGTRAP - 1)))

#define LOOK_AGAIN_MS 20    /* should a SIGCHLD have been missed */
#define KILL_MS 2000        /* for a killed process to end */
#define STRAY_MS 20         /* for a copy to show up whose maker was killed */
#define NAP_MIN_NS 50000    /* between looks at one that is not quiet */
#define NAP_MAX_NS 10000000
#define STOPS_MAX 32        /* in one step: whoever sends more SIGCONT than this is hostile */
#define USER_CODE_SEGMENT 0x33
#define ERESTARTSYS 512     /* what an interrupted read leaves: it will start again */
#define STAT_MAX 1024
#define STAT_STATE 3      /* proc(5) counts the fields of /proc/PID/stat so */
#define STAT_PROCESSOR 39
#define ONE_THREAD_LINKS 3  /* of /proc/PID/task: two, and one for each thread */

static long trace(int request, pid_t pid, const void *address, const void *data)
{
    return syscall(SYS_ptrace, (long)request, (long)pid, address, data);
}

/* --- waiting --- */

/* Sleep until a SIGCHLD, or a little; false when the time is over. */
static bool sleep_until(int64_t deadline_ns)
{
    int64_t left = deadline_ns - clock_now_ns();
    if (left <= 0)
        return false;
    left = left < LOOK_AGAIN_MS * CLOCK_MS ? left : LOOK_AGAIN_MS * CLOCK_MS;
    struct timespec nap = { .tv_nsec = left };
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigtimedwait(&child, NULL, &nap);
    return true;
}

void inject_begin_work(int home, struct inject_work *out_before)
{
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, &out_before->signals);
    pin_self(home, &out_before->pin);
}

void inject_end_work(const struct inject_work *before)
{
    int saved = errno;
    pin_release(0, &before->pin);
    sigprocmask(SIG_SETMASK, &before->signals, NULL);
    raise(SIGCHLD); /* one may have been taken that told of another process */
    errno = saved;
}

/* OK: stopped. DIED: and its end is taken. LOST: the time is over. */
static enum inject_end wait_stop(const struct inject *at, int *out_status)
{
    for (;;) {
        int status;
        pid_t got = waitpid(at->pid, &status, __WALL | WNOHANG);
        if (got == at->pid && WIFSTOPPED(status)) {
            *out_status = status;
            return INJECT_OK;
        }
        if (got == at->pid || (got < 0 && errno != EINTR))
            return INJECT_DIED;
        if (!sleep_until(at->deadline_ns))
            return INJECT_LOST;
    }
}

void inject_begin_kill(pid_t pid)
{
    /* Kernels before 5.19 may let it run on instead: then into its end. */
    struct user_regs_struct regs = { 0 };
    if (trace(PTRACE_GETREGS, pid, NULL, &regs) == 0) {
        regs.rip -= 2;
        regs.rax = SYS_exit_group;
        regs.orig_rax = (unsigned long long)-1;
        trace(PTRACE_SETREGS, pid, NULL, &regs);
    }
    trace(PTRACE_KILL, pid, NULL, NULL);
}

void inject_kill(pid_t pid)
{
    struct inject at = { .pid = pid, .deadline_ns = clock_now_ns() + KILL_MS * CLOCK_MS };
    int status;
    do {
        inject_begin_kill(pid);
    } while (wait_stop(&at, &status) == INJECT_OK);
}

/* The kernel does not know it as stopped: it was killed meanwhile. */
static enum inject_end gone(struct inject *at)
{
    int saved = errno;
    inject_kill(at->pid);
    errno = saved;
    return INJECT_DIED;
}

/* Its maker was killed before it could tell us of the copy. No other process that we
 * have can newly stop, so that the one that does is it. */
static void kill_stray(void)
{
    const int64_t deadline = clock_now_ns() + STRAY_MS * CLOCK_MS;
    do {
        siginfo_t info = { .si_pid = 0 };
        if (waitid(P_ALL, 0, &info, WSTOPPED | WNOHANG | __WALL) == 0 && info.si_pid > 0) {
            inject_kill(info.si_pid);
            return;
        }
    } while (sleep_until(deadline));
}

/* --- /proc --- */

void inject_proc_path(char out[INJECT_PROC_PATH], pid_t pid, const char *name)
{
    char digits[16];
    size_t count = 0, at = 0;
    for (uint32_t rest = (uint32_t)pid; rest || !count; rest /= 10)
        digits[count++] = (char)('0' + rest % 10);
    while (count)
        out[at++] = digits[--count];
    out[at++] = '/';
    size_t len = strlen(name);
    memcpy(out + at, name, len + 1);
}

static bool is_dead(pid_t pid)
{
    own_fd fd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd end = { .fd = fd, .events = POLLIN };
    return fd < 0 ? errno == ESRCH : poll(&end, 1, 0) == 1;
}

static enum inject_end refused_or_dead(pid_t pid)
{
    int saved = errno;
    bool dead = saved == ESRCH || is_dead(pid);
    errno = saved;
    return dead ? INJECT_DIED : INJECT_REFUSED;
}

/* What follows the name in "PID (NAME) S ...", which has no spaces but between fields; NULL with
 * errno. */
static const char *read_stat(int proc, pid_t pid, char text[STAT_MAX])
{
    char path[INJECT_PROC_PATH];
    inject_proc_path(path, pid, "stat");
    own_fd fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, text, STAT_MAX - 3);
    if (len <= 0)
        return NULL;
    memset(text + len, 0, STAT_MAX - (size_t)len);
    const char *name_end = memrchr(text, ')', (size_t)len);
    errno = EPROTO;
    return name_end ? name_end + 2 : NULL;
}

/* Whether it sleeps at all, which can be seen without stopping it. What it sleeps in
 * (/proc/PID/syscall) only its owner may read. */
static enum inject_end look(const struct inject_target *target)
{
    char text[STAT_MAX];
    const char *stat = read_stat(target->proc, target->pid, text);
    if (!stat)
        return refused_or_dead(target->pid);
    if (*stat == 'S')
        return INJECT_OK;
    return is_dead(target->pid) ? INJECT_DIED : INJECT_NOT_QUIET;
}

int inject_home(int proc, pid_t pid)
{
    char text[STAT_MAX];
    const char *stat = read_stat(proc, pid, text);
    for (int field = STAT_STATE; stat && *stat && field < STAT_PROCESSOR; stat++)
        field += *stat == ' ';
    int cpu = 0;
    for (; stat && *stat >= '0' && *stat <= '9' && cpu < 1 << 16; stat++)
        cpu = cpu * 10 + (*stat - '0');
    return stat && *stat == ' ' ? cpu : -1;
}

static enum inject_end count_threads(const struct inject_target *target)
{
    char path[INJECT_PROC_PATH];
    struct stat info;
    inject_proc_path(path, target->pid, "task");
    if (fstatat(target->proc, path, &info, 0) < 0)
        return INJECT_REFUSED;
    return info.st_nlink == ONE_THREAD_LINKS ? INJECT_OK : INJECT_THREADS;
}

/* --- stopping and letting go --- */

static void begin(struct inject *out, pid_t pid, int timeout_ms)
{
    const int64_t now = clock_now_ns();
    *out = (struct inject){ .pid = pid, .since_ns = now, .deadline_ns = now + timeout_ms * CLOCK_MS,
                            .home = -1 };
}

static bool is_quiet(const struct inject *at, int requests)
{
    static const unsigned char want[2] = { 0x0f, 0x05 }; /* syscall */
    const struct user_regs_struct *regs = &at->regs;
    unsigned char code[2] = { 0 };
    return regs->orig_rax == SYS_read && (int)regs->rdi == requests &&
           (long)regs->rax == -ERESTARTSYS && regs->cs == USER_CODE_SEGMENT &&
           inject_read(at, regs->rip - sizeof code, code, sizeof code) == 0 &&
           memcmp(code, want, sizeof want) == 0;
}

static enum inject_end hold_signals(struct inject *at)
{
    static const uint64_t held = HELD_SIGNALS;
    const void *size = (void *)(uintptr_t)sizeof held;
    if (trace(GET_SIGNAL_MASK, at->pid, size, &at->signals) < 0 ||
        trace(SET_SIGNAL_MASK, at->pid, size, &held) < 0)
        return gone(at);
    return INJECT_OK;
}

static enum inject_end detach(struct inject *at)
{
    bool sent_home = pin_to(at->pid, at->home, &at->pin);
    if (trace(PTRACE_DETACH, at->pid, NULL, (void *)(uintptr_t)at->caught) < 0)
        return gone(at);
    if (sent_home)
        pin_release(at->pid, &at->pin); /* it is there now, and does not move by this */
    return INJECT_OK;
}

/* Undo a stop that found something else than we want. */
static enum inject_end refuse(struct inject *at, enum inject_end why)
{
    int saved = errno;
    enum inject_end end = detach(at);
    errno = saved;
    return end == INJECT_OK ? why : end;
}

static enum inject_end try_attach(const struct inject_target *target, struct inject *out)
{
    enum inject_end end = look(target);
    if (end != INJECT_OK)
        return end;
    begin(out, target->pid, target->timeout_ms);
    /* It may run until it is stopped: what it asks for meanwhile is refused as ever. Only a
     * process that is stopped, and quiet, is let do what needs a tracer. */
    if (trace(SEIZE, target->pid, NULL, (void *)(uintptr_t)OPTION_EXITKILL) < 0)
        return refused_or_dead(target->pid);
    int status = 0;
    end = trace(INTERRUPT, target->pid, NULL, NULL) < 0 ? gone(out) : wait_stop(out, &status);
    if (end == INJECT_LOST)
        inject_kill(target->pid); /* only a stopped process can be let go of */
    if (end != INJECT_OK)
        return end;
    if (status >> 16 == 0)
        out->caught = WSTOPSIG(status); /* a signal was first: it shall have it */
    if (status >> 8 != (SIGTRAP | EVENT_STOP << 8))
        return refuse(out, INJECT_NOT_QUIET);
    end = count_threads(target);
    if (end != INJECT_OK)
        return refuse(out, end);
    if (trace(PTRACE_GETREGS, out->pid, NULL, &out->regs) < 0)
        return gone(out);
    if (!is_quiet(out, target->requests))
        return refuse(out, INJECT_NOT_QUIET);
    if (trace(PTRACE_SETOPTIONS, out->pid, NULL, (void *)(uintptr_t)OPTIONS) < 0)
        return gone(out);
    pin_beside(out->pid, &out->pin);
    out->home = target->home;
    return hold_signals(out);
}

enum inject_end inject_attach(const struct inject_target *target, struct inject *out)
{
    const int64_t deadline = clock_now_ns() + target->settle_ms * CLOCK_MS;
    int64_t nap_ns = NAP_MIN_NS;
    for (;;) {
        enum inject_end end = try_attach(target, out);
        if (end != INJECT_NOT_QUIET || clock_now_ns() + nap_ns > deadline)
            return end;
        struct timespec nap = { .tv_nsec = nap_ns };
        nanosleep(&nap, NULL);
        nap_ns = nap_ns < NAP_MAX_NS ? nap_ns * 2 : nap_ns;
    }
}

enum inject_end inject_hold(pid_t pid, int timeout_ms, struct inject *out)
{
    begin(out, pid, timeout_ms);
    pin_beside(pid, &out->pin);
    if (trace(PTRACE_GETREGS, pid, NULL, &out->regs) < 0)
        return gone(out);
    return hold_signals(out);
}

enum inject_end inject_adopt(struct inject *parent, struct inject *out)
{
    *out = *parent;
    out->pid = parent->born;
    out->home = -1;
    out->born = parent->born = 0;
    errno = ECHILD;
    if (out->pid <= 0)
        return INJECT_REFUSED;
    int status = 0;
    enum inject_end end = wait_stop(out, &status);
    if (end == INJECT_LOST)
        inject_kill(out->pid);
    return end;
}

enum inject_end inject_settle(struct inject *at)
{
    const void *size = (void *)(uintptr_t)sizeof at->signals;
    if (trace(PTRACE_SETREGS, at->pid, NULL, &at->regs) < 0 ||
        trace(SET_SIGNAL_MASK, at->pid, size, &at->signals) < 0)
        return gone(at);
    pin_release(at->pid, &at->pin);
    return INJECT_OK;
}

enum inject_end inject_let_go(struct inject *at)
{
    enum inject_end end = inject_settle(at);
    return end == INJECT_OK ? detach(at) : end;
}

/* --- calls --- */

/* Over one instruction. Stops on the way: seccomp asks (the answer is yes, for it is our
 * call), a copy was made, somebody sent SIGCONT. */
static enum inject_end step(struct inject *at)
{
    for (int i = 0; i < STOPS_MAX; i++) {
        int status = 0;
        if (trace(PTRACE_SINGLESTEP, at->pid, NULL, NULL) < 0)
            return gone(at);
        enum inject_end end = wait_stop(at, &status);
        if (end != INJECT_OK)
            return end;
        int event = status >> 16, sig = WSTOPSIG(status);
        if (event == 0 && sig == SIGTRAP)
            return INJECT_OK;
        if (event == 0) {
            at->caught = sig;
            return INJECT_NOT_QUIET;
        }
        unsigned long born = 0;
        if (event >= EVENT_FORK && event <= EVENT_CLONE &&
            trace(GET_EVENT, at->pid, NULL, &born) == 0)
            at->born = (pid_t)born;
    }
    return INJECT_NOT_QUIET;
}

/* Not the end of a step, but a signal that somebody sent. */
static bool sent_trap(const struct inject *at)
{
    siginfo_t info;
    return trace(PTRACE_GETSIGINFO, at->pid, NULL, &info) == 0 && info.si_code <= 0;
}

enum inject_end inject_call(struct inject *at, const struct inject_order *order, long *out)
{
    struct user_regs_struct regs = at->regs;
    regs.rip -= 2;
    regs.rax = (unsigned long long)order->nr;
    regs.orig_rax = (unsigned long long)-1; /* in no call: nothing is started again */
    regs.rdi = order->arg[0];
    regs.rsi = order->arg[1];
    regs.rdx = order->arg[2];
    regs.r10 = order->arg[3];
    regs.r8 = order->arg[4];
    regs.r9 = order->arg[5];
    if (trace(PTRACE_SETREGS, at->pid, NULL, &regs) < 0)
        return gone(at);
    enum inject_end end = step(at);
    if (end == INJECT_OK && trace(PTRACE_GETREGS, at->pid, NULL, &regs) < 0)
        end = gone(at);
    if (end == INJECT_LOST)
        inject_kill(at->pid);
    if ((end == INJECT_DIED || end == INJECT_LOST) && order->nr == SYS_clone && !at->born)
        kill_stray();
    if (end != INJECT_OK)
        return end;
    /* Another instruction than a system call, put there by a third process, leaves -1. */
    if (regs.orig_rax != (unsigned long long)order->nr || regs.rip != at->regs.rip) {
        at->caught = sent_trap(at) ? SIGTRAP : 0;
        return INJECT_NOT_QUIET;
    }
    *out = (long)regs.rax;
    return INJECT_OK;
}

int inject_read(const struct inject *at, uint64_t from, void *bytes, size_t len)
{
    struct iovec here = { bytes, len }, there = { (void *)(uintptr_t)from, len };
    return process_vm_readv(at->pid, &here, 1, &there, 1, 0) == (ssize_t)len ? 0 : -1;
}

int inject_write(const struct inject *at, uint64_t to, const void *bytes, size_t len)
{
    struct iovec here = { (void *)(uintptr_t)bytes, len }, there = { (void *)(uintptr_t)to, len };
    return process_vm_writev(at->pid, &here, 1, &there, 1, 0) == (ssize_t)len ? 0 : -1;
}

#define PARTED_AT_ONCE 128

/* How many of them were parted before one that cannot be. */
static size_t part_some(pid_t from, pid_t to, const uint64_t *pages, size_t count)
{
    char bytes[PARTED_AT_ONCE];
    struct iovec here = { bytes, count }, there[PARTED_AT_ONCE];
    for (size_t i = 0; i < count; i++)
        there[i] = (struct iovec){ (void *)(uintptr_t)pages[i], 1 };
    ssize_t got = process_vm_readv(from, &here, 1, there, count, 0);
    here.iov_len = got > 0 ? (size_t)got : 0;
    ssize_t put = got > 0 ? process_vm_writev(to, &here, 1, there, (size_t)got, 0) : 0;
    return put > 0 ? (size_t)put : 0;
}

void inject_part(pid_t from, pid_t to, const uint64_t *pages, size_t count)
{
    for (size_t done = 0, misses = 0; done < count && misses < 8;) {
        size_t some = count - done < PARTED_AT_ONCE ? count - done : PARTED_AT_ONCE;
        size_t parted = part_some(from, to, pages + done, some);
        misses += parted < some;
        done += parted < some ? parted + 1 : some;
    }
}

#endif
