/* Timers and pending signals of a state. A clone has neither. Parking notes interval timers, and
 * waking sets them. The session names other timers and signals as lost. Runs in the keeper of a
 * session: one thread, no heap, no stdio. */
#include "box/park/park_int.h"

#if INJECT_HERE

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RED_ZONE 128
#define PEEK_SIGINFO 0x4209

/* Unused stack, as in find_tid_slot: a wrong result harms only the copy. */
static uint64_t room_of(const struct inject *at)
{
    return (at->regs.rsp - RED_ZONE - 2 * sizeof(struct park_timer)) & ~UINT64_C(15);
}

static bool is_set(const struct park_timer *timer)
{
    return timer->value[0] || timer->value[1];
}

/* Whether the thread or the process has pending signals. */
static bool has_pending(pid_t pid)
{
    siginfo_t info;
    for (uint32_t shared = 0; shared < 2; shared++) {
        const struct {
            uint64_t from;
            uint32_t flags;
            int32_t count;
        } ask = { 0, shared, 1 };
        if (syscall(SYS_ptrace, (long)PEEK_SIGINFO, (long)pid, &ask, &info) > 0)
            return true;
    }
    return false;
}

enum inject_end park_note_timers(const struct park_session *session, struct inject *from,
                                 struct park_timers *out)
{
    const uint64_t room = room_of(from);
    struct park_timer before;
    char text[64];
    *out = (struct park_timers){ .lost = 0 };
    /* Some kernels lack this file. Other timers are then unknown. */
    if (park_read_proc(session->proc, from->pid, "timers", text, sizeof text) < 0 ? errno == E2BIG
                                                                                  : text[0] != 0)
        out->lost |= BOX_LOST_BIT(TIMERS);
    if (has_pending(from->pid))
        out->lost |= BOX_LOST_BIT(SIGNALS);
    if (inject_read(from, room, &before, sizeof before) < 0)
        return INJECT_REFUSED;
    enum inject_end end = INJECT_OK;
    for (uint64_t i = 0; end == INJECT_OK && i < PARK_TIMERS; i++) {
        end = park_call(from, (struct inject_order){ SYS_getitimer, { i, room } }, NULL);
        if (end == INJECT_OK && inject_read(from, room, &out->at[i], sizeof out->at[i]) < 0)
            end = INJECT_REFUSED;
    }
    if (end == INJECT_OK && inject_write(from, room, &before, sizeof before) < 0)
        end = INJECT_REFUSED;
    return end;
}

enum inject_end park_restore_timers(struct inject *copy, const struct park_timers *timers,
                                    uint32_t *out_lost)
{
    const uint64_t room = room_of(copy);
    struct park_timer before;
    *out_lost |= timers->lost;
    for (uint64_t i = 0; i < PARK_TIMERS; i++) {
        if (!is_set(&timers->at[i]))
            continue;
        if (inject_read(copy, room, &before, sizeof before) < 0 ||
            inject_write(copy, room, &timers->at[i], sizeof timers->at[i]) < 0)
            return INJECT_REFUSED;
        enum inject_end end = park_call(
            copy, (struct inject_order){ SYS_setitimer, { i, room, 0 } }, NULL);
        if (end != INJECT_OK && end != INJECT_REFUSED)
            return end;
        if (end == INJECT_REFUSED)
            *out_lost |= BOX_LOST_BIT(TIMERS);
        if (inject_write(copy, room, &before, sizeof before) < 0)
            return INJECT_REFUSED;
    }
    return INJECT_OK;
}

uint32_t park_lost_in_fork(const struct park *parked)
{
    uint32_t lost = parked->timers.lost;
    for (size_t i = 0; i < PARK_TIMERS; i++)
        lost |= is_set(&parked->timers.at[i]) ? BOX_LOST_BIT(TIMERS) : 0;
    return lost;
}

#endif
