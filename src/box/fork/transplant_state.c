/* What a process is beside memory and files: signal handlers, what the kernel knows of
 * its thread, registers. Read of the parked one by calls that it makes itself, and given
 * to the fresh one when the memory that all of it points to is there. */
#include "box/fork/transplant_int.h"

#if INJECT_HERE

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef PR_GET_TID_ADDRESS
#define PR_GET_TID_ADDRESS 40
#endif
#ifndef NT_X86_XSTATE
#define NT_X86_XSTATE 0x202
#endif
#define MASK_LEN 8 /* of a set of signals, as the kernel has it */
#define RSEQ_UNREGISTER 1
#define ALTSTACK_DISABLED UINT32_C(2)
#define ALTSTACK_DISARM (UINT32_C(1) << 31)
#define IGNORE_SIGNAL 1

static uint64_t bit_of(int sig)
{
    return UINT64_C(1) << (sig - 1);
}

/* --- of the parked process --- */

static enum inject_end read_answer(struct transplant *t, struct inject_order order, uint64_t room,
                                   void *out, size_t len)
{
    enum inject_end end = transplant_call(&t->from.at, order, NULL);
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

/* Asking for it is setting it. */
static enum inject_end note_umask(struct transplant *t)
{
    enum inject_end end =
        transplant_call(&t->from.at, (struct inject_order){ SYS_umask, { 077 } }, &t->umask);
    if (end != INJECT_OK)
        return end;
    return transplant_call(&t->from.at,
                           (struct inject_order){ SYS_umask, { (uint64_t)t->umask } }, NULL);
}

enum inject_end transplant_note_state(struct transplant *t, uint64_t room)
{
    const struct inject_order slot = { SYS_prctl, { PR_GET_TID_ADDRESS, room } };
    const struct inject_order altstack = { SYS_sigaltstack, { 0, room } };
    struct iovec registers = { t->xstate, sizeof t->xstate };
    if (transplant_read_side(&t->from) < 0)
        return INJECT_REFUSED;
    size_t list_len = 0;
    if (syscall(SYS_get_robust_list, t->from.at.pid, &t->robust_head, &list_len) < 0 ||
        syscall(SYS_ptrace, (long)PTRACE_GETREGSET, (long)t->from.at.pid, (long)NT_X86_XSTATE,
                &registers) < 0)
        return INJECT_REFUSED;
    t->xstate_len = registers.iov_len;
    enum inject_end end = read_answer(t, slot, room, &t->tid_slot, sizeof t->tid_slot);
    if (end == INJECT_OK)
        end = read_answer(t, altstack, room, &t->altstack, sizeof t->altstack);
    if (end == INJECT_OK)
        end = note_handlers(t, room);
    return end == INJECT_OK ? note_umask(t) : end;
}

/* --- to the fresh process --- */

/* The kernel writes there whenever it likes: it must not while the memory changes. */
enum inject_end transplant_quiet_rseq(struct transplant *t)
{
    if (!t->to.rseq.pointer)
        return INJECT_OK;
    t->changed = true;
    return transplant_do(t, (struct inject_order){ SYS_rseq, { t->to.rseq.pointer, t->to.rseq.size,
                                                               RSEQ_UNREGISTER,
                                                               t->to.rseq.signature } }, NULL);
}

static enum inject_end give_handlers(struct transplant *t)
{
    const uint64_t room = t->desk + TRANSPLANT_DESK_DATA;
    const uint64_t touched = t->from.caught | t->from.ignored | t->to.caught | t->to.ignored;
    enum inject_end end = INJECT_OK;
    for (int sig = 1; end == INJECT_OK && sig <= TRANSPLANT_SIGNALS; sig++) {
        if (!(touched & bit_of(sig)) || sig == SIGKILL || sig == SIGSTOP)
            continue;
        if (inject_write(&t->to.at, room, &t->action[sig], sizeof t->action[sig]) < 0)
            return INJECT_REFUSED;
        end = transplant_do(t, (struct inject_order){ SYS_rt_sigaction,
                                                      { (uint64_t)sig, room, 0, MASK_LEN } }, NULL);
    }
    return end;
}

/* One that the code made too small for this processor is refused: it goes without. */
static enum inject_end give_altstack(struct transplant *t)
{
    const uint64_t room = t->desk + TRANSPLANT_DESK_DATA;
    t->altstack.flags &= ALTSTACK_DISABLED | ALTSTACK_DISARM;
    if (inject_write(&t->to.at, room, &t->altstack, sizeof t->altstack) < 0)
        return INJECT_REFUSED;
    enum inject_end end = transplant_do(t, (struct inject_order){ SYS_sigaltstack, { room, 0 } },
                                        NULL);
    return end == INJECT_REFUSED ? INJECT_OK : end;
}

/* A copy that was made from outside has told the kernel of no list: it is at the same
 * place in the thread's block as the fresh process's own. */
static enum inject_end give_robust_list(struct transplant *t)
{
    uint64_t head = 0;
    size_t len = 0;
    if (syscall(SYS_get_robust_list, t->to.at.pid, &head, &len) < 0)
        return INJECT_REFUSED;
    if (t->robust_head || !head)
        head = t->robust_head;
    else
        head += t->from.at.regs.fs_base - t->to.at.regs.fs_base;
    return transplant_do(t, (struct inject_order){ SYS_set_robust_list, { head, len } }, NULL);
}

/* What libc has told the kernel of its thread, and the number that it keeps there. A
 * slot that cannot be written is one that the code has unmapped. */
static enum inject_end give_thread(struct transplant *t)
{
    long tid = 0;
    enum inject_end end =
        transplant_do(t, (struct inject_order){ SYS_set_tid_address, { t->tid_slot } }, &tid);
    if (end != INJECT_OK)
        return end;
    const int32_t number = (int32_t)tid;
    if (t->tid_slot && inject_write(&t->to.at, t->tid_slot, &number, sizeof number) < 0)
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
    struct iovec registers = { t->xstate, t->xstate_len };
    enum inject_end end = give_handlers(t);
    if (end == INJECT_OK)
        end = give_altstack(t);
    if (end == INJECT_OK)
        end = transplant_do(t, (struct inject_order){ SYS_umask, { (uint64_t)t->umask } }, NULL);
    if (end == INJECT_OK)
        end = give_thread(t);
    if (end == INJECT_OK && syscall(SYS_ptrace, (long)PTRACE_SETREGSET, (long)t->to.at.pid,
                                    (long)NT_X86_XSTATE, &registers) < 0)
        end = INJECT_REFUSED;
    return end;
}

#endif
