/* The state of a process beside memory and files: signal handlers, registers, and what the kernel
 * knows about its thread and heap. The keeper reads most of it by calls that the parked process
 * makes, and gives it to the fresh process when the memory that it points to is in place. */
#include "box/fork/transplant_int.h"

#if INJECT_HERE

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef PR_GET_TID_ADDRESS
#define PR_GET_TID_ADDRESS 40
#endif
#ifndef PR_SET_MM_MAP
#define PR_SET_MM_MAP 14
#endif
#ifndef NT_X86_XSTATE
#define NT_X86_XSTATE 0x202
#endif
#define MASK_LEN 8 /* bytes of a signal set in the kernel */
#define RSEQ_UNREGISTER 1
#define ALTSTACK_DISABLED UINT32_C(2)
#define ALTSTACK_DISARM (UINT32_C(1) << 31)
#define IGNORE_SIGNAL 1
#define NO_FD (~UINT64_C(0))

static uint64_t bit_of(int sig)
{
    return UINT64_C(1) << (sig - 1);
}

/* --- of the parked process --- */

static enum inject_end read_answer(struct transplant *t, struct inject_order order, uint64_t room,
                                   void *out, size_t len)
{
    enum inject_end end = park_call(&t->from.at, order, NULL);
    if (end == INJECT_OK && inject_read(&t->from.at, room, out, len) < 0)
        end = INJECT_REFUSED;
    return end;
}

static enum inject_end note_handlers(struct transplant *t, uint64_t room)
{
    enum inject_end end = INJECT_OK;
    for (int sig = 1; end == INJECT_OK && sig <= TRANSPLANT_SIGNALS; sig++) {
        struct inject_order order = { SYS_rt_sigaction, { (uint64_t)sig, 0, room, MASK_LEN } };
        if (t->from.caught & bit_of(sig))
            end = read_answer(t, order, room, &t->action[sig], sizeof t->action[sig]);
        else if (t->from.ignored & bit_of(sig))
            t->action[sig].handler = IGNORE_SIGNAL;
    }
    return end;
}

/* The parked process answers into a page of its own, which it removes again. */
static enum inject_end ask(struct transplant *t)
{
    struct inject *at = &t->from.at;
    long room = 0, brk = 0;
    enum inject_end end = park_call(
        at, (struct inject_order){ SYS_mmap, { 0, TRANSPLANT_PAGE, PROT_READ | PROT_WRITE,
                                               MAP_PRIVATE | MAP_ANONYMOUS, NO_FD, 0 } }, &room);
    if (end != INJECT_OK)
        return end;
    const uint64_t page = (uint64_t)room;
    end = read_answer(t, (struct inject_order){ SYS_prctl, { PR_GET_TID_ADDRESS, page } }, page,
                      &t->tid_address, sizeof t->tid_address);
    if (end == INJECT_OK)
        end = read_answer(t, (struct inject_order){ SYS_sigaltstack, { 0, page } }, page,
                          &t->altstack, sizeof t->altstack);
    if (end == INJECT_OK)
        end = note_handlers(t, page);
    if (end == INJECT_OK)
        end = park_call(at, (struct inject_order){ SYS_brk, { 0 } }, &brk);
    t->from.limits.brk = (uint64_t)brk;
    int saved = errno;
    enum inject_end gone = park_call(
        at, (struct inject_order){ SYS_munmap, { page, TRANSPLANT_PAGE } }, NULL);
    errno = end == INJECT_OK ? errno : saved;
    return end == INJECT_OK ? gone : end;
}

enum inject_end transplant_note_state(struct transplant *t)
{
    struct iovec registers = { t->xstate, sizeof t->xstate };
    if (transplant_read_side(&t->from) < 0 ||
        syscall(SYS_ptrace, (long)PTRACE_GETREGSET, (long)t->from.at.pid, (long)NT_X86_XSTATE,
                &registers) < 0)
        return INJECT_REFUSED;
    t->xstate_len = registers.iov_len;
    return ask(t);
}

/* --- to the fresh process --- */

/* The kernel may write to the rseq area at any time. It must not while the memory changes. */
enum inject_end transplant_stop_rseq(struct transplant *t)
{
    if (!t->to.rseq.pointer)
        return INJECT_OK;
    return transplant_do(t, (struct inject_order){ SYS_rseq, { t->to.rseq.pointer, t->to.rseq.size,
                                                               RSEQ_UNREGISTER,
                                                               t->to.rseq.signature } }, NULL);
}

/* Put an argument on the desk; *out is its address. */
static enum inject_end put(struct transplant *t, const void *bytes, size_t len, uint64_t *out)
{
    *out = t->desk + TRANSPLANT_DESK_DATA;
    return inject_write(&t->to.at, *out, bytes, len) < 0 ? INJECT_REFUSED : INJECT_OK;
}

/* Where code, heap, stack, arguments and environment begin and end. With these the heap can grow
 * as before, and /proc shows the same arguments. Kernels without CONFIG_CHECKPOINT_RESTORE answer
 * EINVAL. */
static enum inject_end give_limits(struct transplant *t)
{
    const struct transplant_limits *limits = &t->from.limits;
    uint64_t at = 0;
    enum inject_end end = put(t, limits, sizeof *limits, &at);
    if (end == INJECT_OK)
        end = transplant_do(t, (struct inject_order){ SYS_prctl, { PR_SET_MM, PR_SET_MM_MAP, at,
                                                                   sizeof *limits } }, NULL);
    if (end == INJECT_REFUSED)
        errno = ENOSYS;
    return end;
}

static enum inject_end give_handlers(struct transplant *t)
{
    const uint64_t touched = t->from.caught | t->from.ignored | t->to.caught | t->to.ignored;
    enum inject_end end = INJECT_OK;
    for (int sig = 1; end == INJECT_OK && sig <= TRANSPLANT_SIGNALS; sig++) {
        uint64_t at = 0;
        if (!(touched & bit_of(sig)) || sig == SIGKILL || sig == SIGSTOP)
            continue;
        end = put(t, &t->action[sig], sizeof t->action[sig], &at);
        if (end == INJECT_OK)
            end = transplant_do(t, (struct inject_order){ SYS_rt_sigaction,
                                                          { (uint64_t)sig, at, 0, MASK_LEN } },
                                NULL);
    }
    return end;
}

/* The kernel refuses an alternate stack that is too small for this processor. The process then
 * has none. */
static enum inject_end give_altstack(struct transplant *t)
{
    uint64_t at = 0;
    t->altstack.flags &= ALTSTACK_DISABLED | ALTSTACK_DISARM;
    enum inject_end end = put(t, &t->altstack, sizeof t->altstack, &at);
    return end == INJECT_OK
               ? transplant_try(t, (struct inject_order){ SYS_sigaltstack, { at, 0 } }, NULL)
               : end;
}

/* A copy made from outside has no robust list in the kernel. The list is at the same offset from
 * the thread pointer in both processes. */
static enum inject_end give_robust_list(struct transplant *t)
{
    uint64_t head = 0;
    size_t len = 0;
    if (syscall(SYS_get_robust_list, t->to.at.pid, &head, &len) < 0)
        return INJECT_REFUSED;
    head += head ? t->from.at.regs.fs_base - t->to.at.regs.fs_base : 0;
    return transplant_do(t, (struct inject_order){ SYS_set_robust_list, { head, len } }, NULL);
}

/* The kernel's knowledge of the thread, and the thread id in libc's memory. A write to the thread
 * id fails only if the code has unmapped that memory. */
static enum inject_end give_thread(struct transplant *t)
{
    long tid = 0;
    enum inject_end end = transplant_do(
        t, (struct inject_order){ SYS_set_tid_address, { t->tid_address } }, &tid);
    if (end != INJECT_OK)
        return end;
    const int32_t number = (int32_t)tid;
    if (t->tid_address && inject_write(&t->to.at, t->tid_address, &number, sizeof number) < 0)
        errno = 0;
    end = give_robust_list(t);
    if (end == INJECT_OK && t->from.rseq.pointer)
        end = transplant_do(t, (struct inject_order){ SYS_rseq,
                                                      { t->from.rseq.pointer, t->from.rseq.size, 0,
                                                        t->from.rseq.signature } }, NULL);
    return end;
}

enum inject_end transplant_give_state(struct transplant *t)
{
    static enum inject_end (*const steps[])(struct transplant *) = {
        give_limits, give_handlers, give_altstack, give_thread,
    };
    struct iovec registers = { t->xstate, t->xstate_len };
    enum inject_end end = transplant_do(t, (struct inject_order){ SYS_umask, { t->from.umask } },
                                        NULL);
    for (size_t i = 0; end == INJECT_OK && i < array_len(steps); i++)
        end = steps[i](t);
    if (end == INJECT_OK && syscall(SYS_ptrace, (long)PTRACE_SETREGSET, (long)t->to.at.pid,
                                    (long)NT_X86_XSTATE, &registers) < 0)
        end = INJECT_REFUSED;
    return end;
}

#endif
