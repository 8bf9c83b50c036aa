/* Many system calls of the fresh process for two switches between it and us: a loop of a
 * few instructions on the desk, which is ours alone, makes those of a list and stops. A
 * single call by a step costs as much as the whole list. Used where mappings are made:
 * every one of a large interpreter takes thousands. */
#include "box/fork/transplant_int.h"

#if INJECT_HERE

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define LOOK_AGAIN_NS 20000000 /* should a SIGCHLD have been missed */
#define STOPS_MAX 32

/* rbx: the list, r12: how many, r13: the file that the list has opened last. A descriptor
 * of -2 (TRANSPLANT_LAST_FILE) stands for that. 257 is openat. */
extern const unsigned char transplant_loop[], transplant_loop_end[];
__asm__(".pushsection .rodata\n"
        "transplant_loop:\n"
        "1: mov (%rbx), %rax\n"
        "   mov 8(%rbx), %rdi\n"
        "   mov 16(%rbx), %rsi\n"
        "   mov 24(%rbx), %rdx\n"
        "   mov 32(%rbx), %r10\n"
        "   mov 40(%rbx), %r8\n"
        "   mov 48(%rbx), %r9\n"
        "   cmp $-2, %rdi\n"
        "   cmove %r13, %rdi\n"
        "   cmp $-2, %r8\n"
        "   cmove %r13, %r8\n"
        "   syscall\n"
        "   mov %rax, 56(%rbx)\n"
        "   cmpq $257, (%rbx)\n"
        "   cmove %rax, %r13\n"
        "   add $64, %rbx\n"
        "   dec %r12\n"
        "   jnz 1b\n"
        "   int3\n"
        "transplant_loop_end:\n"
        ".popsection\n");

int transplant_write_loop(struct transplant *t, uint64_t desk)
{
    const size_t len = (size_t)(transplant_loop_end - transplant_loop);
    return inject_write(&t->to.at, desk + TRANSPLANT_DESK_LOOP, transplant_loop, len);
}

/* OK: stopped. */
static enum inject_end wait_stop(struct transplant *t, int *out_status)
{
    for (;;) {
        pid_t got = waitpid(t->to.at.pid, out_status, __WALL | WNOHANG);
        if (got == t->to.at.pid && WIFSTOPPED(*out_status))
            return INJECT_OK;
        if (got == t->to.at.pid || (got < 0 && errno != EINTR))
            return INJECT_DIED;
        if (clock_now_ns() > t->deadline_ns)
            return INJECT_LOST;
        const struct timespec nap = { .tv_nsec = LOOK_AGAIN_NS };
        sigset_t child;
        sigemptyset(&child);
        sigaddset(&child, SIGCHLD);
        sigtimedwait(&child, NULL, &nap);
    }
}

/* Until the end of the loop. Other stops are of somebody's SIGCONT, or a signal that
 * cannot be held back, which then ends all of it. */
static enum inject_end run_loop(struct transplant *t)
{
    const long pid = t->to.at.pid;
    const size_t len = (size_t)(transplant_loop_end - transplant_loop);
    struct user_regs_struct regs = t->to.at.regs;
    regs.rip = t->desk + TRANSPLANT_DESK_LOOP;
    regs.orig_rax = (unsigned long long)-1; /* in no call: nothing is started again */
    regs.rbx = t->desk + TRANSPLANT_DESK_LIST;
    regs.r12 = t->line_count;
    regs.r13 = (uint64_t)t->last_file;
    errno = EBUSY;
    if (syscall(SYS_ptrace, (long)PTRACE_SETREGS, pid, NULL, &regs) < 0)
        return INJECT_REFUSED;
    for (int i = 0; i < STOPS_MAX; i++) {
        int status = 0;
        if (syscall(SYS_ptrace, (long)PTRACE_CONT, pid, NULL, NULL) < 0)
            return INJECT_REFUSED;
        enum inject_end end = wait_stop(t, &status);
        if (end == INJECT_LOST)
            inject_kill((pid_t)pid);
        if (end != INJECT_OK)
            return end;
        if (status >> 16 != 0)
            continue;
        errno = EBUSY;
        return WSTOPSIG(status) == SIGTRAP &&
               syscall(SYS_ptrace, (long)PTRACE_GETREGS, pid, NULL, &regs) == 0 &&
               regs.rip == t->desk + TRANSPLANT_DESK_LOOP + len ? INJECT_OK : INJECT_REFUSED;
    }
    return INJECT_REFUSED;
}

enum inject_end transplant_flush(struct transplant *t)
{
    const uint64_t list = t->desk + TRANSPLANT_DESK_LIST, names = t->desk + TRANSPLANT_DESK_NAMES;
    const size_t count = t->line_count, len = count * sizeof t->line[0];
    if (!count)
        return INJECT_OK;
    if (inject_write(&t->to.at, list, t->line, len) < 0 ||
        (t->names_len && inject_write(&t->to.at, names, t->names, t->names_len) < 0))
        return INJECT_REFUSED;
    enum inject_end end = run_loop(t);
    if (end == INJECT_OK && inject_read(&t->to.at, list, t->line, len) < 0)
        end = INJECT_REFUSED;
    for (size_t i = 0; end == INJECT_OK && i < count; i++) {
        const int64_t result = t->line[i].result;
        t->last_file = t->line[i].nr == SYS_openat ? result : t->last_file;
        if (result >= 0 || result <= -4096 || t->line_for[i] == TRANSPLANT_WHATEVER)
            continue;
        if (t->line_for[i] == TRANSPLANT_MUST) {
            errno = (int)-result;
            end = INJECT_REFUSED;
        } else {
            t->from.map.vma[t->line_for[i]].failed = true;
        }
    }
    t->report.calls += (uint32_t)count;
    t->line_count = t->names_len = 0;
    return end;
}

enum inject_end transplant_queue(struct transplant *t, struct inject_order order, int32_t for_what)
{
    struct transplant_line line = { .nr = (uint64_t)order.nr };
    memcpy(line.arg, order.arg, sizeof line.arg);
    t->line[t->line_count] = line;
    t->line_for[t->line_count++] = for_what;
    return t->line_count == TRANSPLANT_LINES ? transplant_flush(t) : INJECT_OK;
}

enum inject_end transplant_queue_name(struct transplant *t, const char *name, size_t len,
                                      uint64_t *out)
{
    if (sizeof t->names - t->names_len <= len) {
        enum inject_end end = transplant_flush(t);
        if (end != INJECT_OK)
            return end;
    }
    memcpy(t->names + t->names_len, name, len);
    t->names[t->names_len + len] = 0;
    *out = t->desk + TRANSPLANT_DESK_NAMES + t->names_len;
    t->names_len += len + 1;
    return INJECT_OK;
}

#endif
