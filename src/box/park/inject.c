/* System calls in stopped processes; see the header. Runs in the keeper of a session: one thread,
 * no heap, no stdio. The attacker controls every byte of the target. We read the two bytes before
 * its instruction pointer, its registers, and the results of our own calls in its memory. */
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

/* musl's header lacks some of these. */
#define SEIZE 0x4206
#define INTERRUPT 0x4207
#define GET_SIGNAL_MASK 0x420a
#define SET_SIGNAL_MASK 0x420b
#define GET_EVENT 0x4201
#define EVENT_FORK 1 /* then vfork and clone */
#define EVENT_CLONE 3
#define OPTION_BIRTHS (1u << 1 | 1u << 2 | 1u << 3)
#define OPTION_SECCOMP (1u << 7)
#define OPTION_EXITKILL (1u << 20)
#define EVENT_STOP 128

#define OPTIONS (OPTION_BIRTHS | OPTION_SECCOMP | OPTION_EXITKILL)
/* All signals but SIGTRAP, which ends a step: the kernel would remove its handler if the process
 * blocked it. A process that ignored SIGTRAP no longer does afterwards; we cannot prevent that. */
#define HELD_SIGNALS (~(UINT64_C(1) << (SIGTRAP - 1)))

#define LOOK_AGAIN_MS 20    /* in case we missed a SIGCHLD */
#define KILL_MS 2000        /* for a killed process to end */
#define STRAY_MS 20         /* for a copy to appear after its parent was killed */
#define NAP_MIN_NS 50000    /* between checks of a process that is not quiet */
#define NAP_MAX_NS 10000000
#define STOPS_MAX 32        /* in one step: only a hostile process sends more SIGCONT */
#define USER_CODE_SEGMENT 0x33
#define ERESTARTSYS 512     /* the result of an interrupted read that will start again */
#define STAT_MAX 1024
#define STAT_STATE 3      /* fields of /proc/PID/stat, as proc(5) counts them */
#define STAT_PROCESSOR 39
#define ONE_THREAD_LINKS 3  /* links of /proc/PID/task: two, and one for each thread */

static long trace(int request, pid_t pid, const void *address, const void *data)
{
    return syscall(SYS_ptrace, (long)request, (long)pid, address, data);
}

/* --- waiting --- */

/* Sleep until a SIGCHLD or for a short time; false after the deadline. */
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
    /* We may have taken a SIGCHLD of another process. glibc's raise makes a call that the filter
     * does not allow. */
    syscall(SYS_tkill, syscall(SYS_gettid), SIGCHLD);
    errno = saved;
}

/* OK: it has stopped. DIED: it has ended, and we have waited for it. LOST: the deadline passed. */
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
    /* Kernels before 5.19 may let it continue instead: then it runs into exit_group. */
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

/* The kernel says that it is not stopped: another process killed it. */
static enum inject_end gone(struct inject *at)
{
    int saved = errno;
    inject_kill(at->pid);
    errno = saved;
    return INJECT_DIED;
}

/* The parent of a copy was killed before it reported the copy. No other process of ours can newly
 * stop, so a process that does is the copy. */
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

/* The fields after the name in "PID (NAME) S ...", separated by single spaces; NULL with errno. */
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

/* Whether it sleeps: that is visible without stopping it. Only its owner may read in which call
 * it sleeps (/proc/PID/syscall). */
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
        pin_release(at->pid, &at->pin); /* it runs there now and need not move */
    return INJECT_OK;
}

/* Let a process continue that is not what we want. */
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
    /* It may run until it is stopped, under its filter as before. The options that open the filter
     * for a tracer are set only on a process that is stopped and quiet. */
    if (trace(SEIZE, target->pid, NULL, (void *)(uintptr_t)OPTION_EXITKILL) < 0)
        return refused_or_dead(target->pid);
    int status = 0;
    end = trace(INTERRUPT, target->pid, NULL, NULL) < 0 ? gone(out) : wait_stop(out, &status);
    if (end == INJECT_LOST)
        inject_kill(target->pid); /* the kernel detaches only stopped processes */
    if (end != INJECT_OK)
        return end;
    if (status >> 16 == 0)
        out->caught = WSTOPSIG(status); /* a signal came first: it gets that signal */
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

/* Step over one instruction. The process may stop on the way because seccomp asks (we allow it, it
 * is our call), because a clone made a copy, or because another process sent SIGCONT. */
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

/* Whether another process sent this SIGTRAP: it is then not the end of a step. */
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
    regs.orig_rax = (unsigned long long)-1; /* in no call: the kernel restarts nothing */
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
    /* -1 here means that a third process replaced the system call by another instruction. */
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

/* The number of pages that were separated before one that cannot be. */
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
