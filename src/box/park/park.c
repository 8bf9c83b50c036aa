/* Copies of quiet interpreters; see the header. Runs in the keeper of a session: one thread, no
 * heap, no stdio. box/park/inject.c makes the calls; this file chooses them and their order. */
#include "box/park/park.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "box/park/park_int.h"
#include "box/proto/warden.h"

#if INJECT_HERE

#ifndef PR_GET_TID_ADDRESS
#define PR_GET_TID_ADDRESS 40
#endif
#define RED_ZONE 128 /* bytes in use below the stack pointer: System V ABI, x86-64 */
#define CLONES_MAX 3 /* attempts to get a pid of the range */
#define SHOWS_MAX 3

/* Kill a copy that could not be finished. */
static enum inject_end give_up(pid_t copy, enum inject_end why)
{
    int saved = errno;
    if (copy > 0 && why != INJECT_DIED && why != INJECT_LOST)
        inject_kill(copy);
    errno = saved;
    return why;
}

/* --- the copy --- */

static bool has_two_uids(const struct park_session *session)
{
    return session->holder != session->own;
}

/* Find the address where libc keeps the thread id, so that the kernel sets it in the copy. The
 * result passes through unused stack, which other processes may share. A wrong result harms only
 * the copy. */
static enum inject_end find_tid_slot(struct inject *from, uint64_t *out)
{
    const uint64_t room = (from->regs.rsp - RED_ZONE - 2 * sizeof *out) & ~UINT64_C(15);
    uint64_t before = 0;
    if (inject_read(from, room, &before, sizeof before) < 0)
        return INJECT_REFUSED;
    struct inject_order ask = { SYS_prctl, { PR_GET_TID_ADDRESS, room } };
    enum inject_end end = park_call(from, ask, NULL);
    if (end != INJECT_OK)
        return end;
    if (inject_read(from, room, out, sizeof *out) < 0 ||
        inject_write(from, room, &before, sizeof before) < 0)
        return INJECT_REFUSED;
    return INJECT_OK;
}

/* Protect a copy by another uid. Where its pid protects it, it only needs a session and a process
 * group of its own. */
static enum inject_end protect(const struct park_session *session, struct inject *copy)
{
    const struct inject_order other_uid = {
        SYS_setresuid, { session->holder, session->own, session->holder },
    };
    const struct inject_order own_session = { SYS_setsid, { 0 } };
    return park_call(copy, has_two_uids(session) ? other_uid : own_session, NULL);
}

enum inject_end park_set_dumpable(struct inject *at, uint64_t dumpable)
{
    return park_call(at, (struct inject_order){ SYS_prctl, { PR_SET_DUMPABLE, dumpable } }, NULL);
}

/* A copy of a dumpable process would be dumpable for a moment. Others could then open its /proc
 * files, and keep them open. */
static enum inject_end hide(struct inject *from)
{
    return park_set_dumpable(from, 0);
}

static void show(struct inject *from)
{
    int saved = errno;
    for (int i = 0; i < SHOWS_MAX && park_set_dumpable(from, 1) == INJECT_NOT_QUIET; i++)
        continue;
    errno = saved;
}

/* from->born is the copy. */
static enum inject_end clone_once(struct inject *from, uint64_t slot, pid_t *out_inside)
{
    const uint64_t flags = CLONE_PARENT | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD;
    long inside = 0;
    enum inject_end end = park_call(from, (struct inject_order){ SYS_clone, { flags, 0, 0, slot } },
                                    &inside);
    *out_inside = (pid_t)inside;
    if (end != INJECT_OK) {
        int saved = errno;
        if (from->born)
            inject_kill(from->born);
        from->born = 0;
        errno = saved;
    }
    return end;
}

/* Other processes of the box may fork at the same time and take pids of the range. The keeper ends
 * that when the original runs again. */
static enum inject_end clone_reserved(const struct park_session *session, struct inject *from,
                                      uint64_t slot, pid_t *out_inside)
{
    for (int i = 0; i < CLONES_MAX; i++) {
        if (park_number_reserved(session) < 0)
            return INJECT_REFUSED;
        enum inject_end end = clone_once(from, slot, out_inside);
        if (end != INJECT_OK || (*out_inside >= WARDEN_FIRST && *out_inside <= WARDEN_LAST))
            return end;
        inject_kill(from->born);
        from->born = 0;
    }
    errno = ENOTSUP;
    return INJECT_REFUSED;
}

/* Copy a stopped process. from->born is the copy, *out_inside its pid in the box. */
static enum inject_end clone_copy(const struct park_session *session, struct inject *from,
                                  bool live, pid_t *out_inside)
{
    uint64_t slot = 0;
    enum inject_end end = find_tid_slot(from, &slot);
    if (end == INJECT_OK && !live && park_number_ordinary(session) < 0)
        end = INJECT_REFUSED;
    if (end != INJECT_OK)
        return end;
    return live && session->warden >= 0 ? clone_reserved(session, from, slot, out_inside)
                                        : clone_once(from, slot, out_inside);
}

/* Copy a stopped process and protect the copy, which stays stopped. */
static enum inject_end make_copy(const struct park_session *session, struct inject *from, bool live,
                                 struct inject *out, pid_t *out_inside)
{
    enum inject_end end = live ? hide(from) : INJECT_OK;
    if (end == INJECT_OK)
        end = clone_copy(session, from, live, out_inside);
    bool alive = end != INJECT_DIED && end != INJECT_LOST;
    if (end == INJECT_OK)
        end = inject_adopt(from, out);
    if (live && alive)
        show(from);
    if (end != INJECT_OK)
        return end;
    end = protect(session, out);
    return end == INJECT_OK ? end : give_up(out->pid, end);
}

static void part(const struct park_session *session, pid_t from, pid_t to)
{
    if (session->pages)
        inject_part(from, to, session->pages->at, session->pages->count);
}

/* --- the rest of parking --- */

/* Move the descriptors that the copy received to the numbers of its channel. Both pairs of numbers
 * are in order: one descriptor may sit at the other's number, but never both at once. */
static enum inject_end place_channel(const struct park_session *session, struct inject *copy,
                                     const int got[BOX_CHANNEL])
{
    const int *to = session->channel;
    const bool swap = got[BOX_REQUESTS] == to[BOX_WORDS];
    enum inject_end end = INJECT_OK;
    for (int i = 0; i < BOX_CHANNEL && end == INJECT_OK; i++) {
        const int at = swap ? BOX_CHANNEL - 1 - i : i;
        const struct inject_order orders[] = {
            { SYS_dup3, { (uint64_t)got[at], (uint64_t)to[at], O_CLOEXEC } },
            { SYS_close, { (uint64_t)got[at] } },
        };
        const bool stays = got[at] == to[BOX_WORDS] || got[at] == to[BOX_REQUESTS];
        if (got[at] != to[at])
            end = park_call_all(copy, orders, stays ? 1 : 2);
    }
    return end;
}

/* Everything that needs room in the limits of the process: a mapping, descriptors, the numbers of
 * the channel. Waking does it with the channel, parking with other descriptors. */
static enum inject_end equip(const struct park_session *session, struct inject *copy, int pidfd,
                             const int channel[BOX_CHANNEL], const struct park_tasks *tasks)
{
    int fds[PARK_GIFTS_MAX] = { channel[BOX_WORDS], channel[BOX_REQUESTS] };
    struct park_gifts gifts = { .count = 0 };
    memcpy(fds + BOX_CHANNEL, tasks->fd, tasks->count * sizeof fds[0]);
    enum inject_end end = park_hand_over(copy, pidfd, fds, BOX_CHANNEL + tasks->count, &gifts);
    if (end == INJECT_OK) /* first, because one may have a number of the channel */
        end = park_enter_groups(copy, &gifts, BOX_CHANNEL);
    if (end == INJECT_OK)
        end = place_channel(session, copy, gifts.fd);
    return end == INJECT_OK ? park_forget_page(copy, &gifts) : end;
}

static void set_has(struct park_fds *fds, int fd, bool has)
{
    const uint64_t bit = UINT64_C(1) << fd % 64;
    fds->bit[fd / 64] = has ? fds->bit[fd / 64] | bit : fds->bit[fd / 64] & ~bit;
}

static void set_has_channel(const struct park_session *session, struct park_fds *fds, bool has)
{
    set_has(fds, session->channel[BOX_WORDS], has);
    set_has(fds, session->channel[BOX_REQUESTS], has);
}

/* Do the same as waking, with our stdin (/dev/null) as the channel, and close it again. `fds` has
 * the descriptors that the copy had before. */
static enum inject_end rehearse(const struct park_session *session, struct inject *copy, int pidfd,
                                struct park_fds *fds, const struct park_tasks *tasks)
{
    static const int nowhere[BOX_CHANNEL] = { STDIN_FILENO, STDIN_FILENO };
    const struct inject_order closing[] = {
        { SYS_close, { (uint64_t)session->channel[BOX_WORDS] } },
        { SYS_close, { (uint64_t)session->channel[BOX_REQUESTS] } },
    };
    enum inject_end end = equip(session, copy, pidfd, nowhere, tasks);
    set_has_channel(session, fds, false);
    return end == INJECT_OK ? park_call_all(copy, closing, array_len(closing)) : end;
}

/* The rest of parking, while the original runs again. A copy of a parked copy in the same group
 * skips most of it: the parked copy has passed it, and waking checks again. */
static enum inject_end finish(const struct park_session *session, struct inject *copy, bool live,
                              struct park_fds *fds, const struct park_tasks *tasks,
                              struct park *out)
{
    const bool whole = live || tasks->count > 0;
    const struct park_claim claim = {
        .pid = copy->pid, .inside = out->inside, .parked = true, .fds = fds, .tasks = tasks,
    };
    own_fd pidfd = (int)syscall(SYS_pidfd_open, copy->pid, 0);
    enum inject_end end = pidfd < 0 ? INJECT_REFUSED : INJECT_OK;
    if (end == INJECT_OK && whole && park_note_memory(session, copy->pid, &out->files.lost) < 0)
        end = INJECT_REFUSED;
    if (end == INJECT_OK && whole)
        end = rehearse(session, copy, pidfd, fds, tasks);
    if (end == INJECT_OK && has_two_uids(session)) /* any process of a session may send SIGCONT */
        end = park_call(copy, (struct inject_order){ SYS_setsid, { 0 } }, NULL);
    if (end == INJECT_OK && whole &&
        (park_confirm(session, &claim) < 0 || park_check_limits(session, copy->pid) < 0))
        end = INJECT_REFUSED;
    if (end == INJECT_OK)
        end = inject_settle(copy);
    if (end != INJECT_OK)
        return give_up(copy->pid, end);
    out->pid = copy->pid;
    out->pidfd = take_fd(&pidfd);
    return INJECT_OK;
}

/* DIED and LOST describe the original. A copy that died is a refusal. */
static enum inject_end said_of_copy(enum inject_end end)
{
    if (end != INJECT_DIED && end != INJECT_LOST)
        return end;
    errno = end == INJECT_DIED ? ESRCH : ETIMEDOUT;
    return INJECT_REFUSED;
}

static enum inject_end copy_stopped(const struct park_session *session, struct inject *from,
                                    bool live, const struct park_tasks *tasks, struct park *out)
{
    static struct park made;
    struct inject copy;
    struct park_fds fds;
    made = (struct park){ .pid = 0 };
    enum inject_end end = live ? park_note_timers(session, from, &made.timers) : INJECT_OK;
    if (end == INJECT_OK)
        end = make_copy(session, from, live, &copy, &made.inside);
    if (end == INJECT_OK && (park_list_fds(session->proc, copy.pid, &fds) < 0 ||
                             (live && park_note_files(session, copy.pid, &fds, &made.files) < 0)))
        end = give_up(copy.pid, INJECT_REFUSED);
    int saved = errno;
    if (live && end == INJECT_OK)
        part(session, copy.pid, from->pid);
    enum inject_end parted = live ? inject_let_go(from) : inject_settle(from);
    made.pause_ns = clock_now_ns() - from->since_ns;
    if (live && park_number_ordinary(session) < 0 && end == INJECT_OK) {
        saved = errno;
        end = give_up(copy.pid, INJECT_REFUSED);
    }
    errno = saved;
    if (end != INJECT_OK)
        return parted == INJECT_OK ? said_of_copy(end) : parted;
    /* If the original was killed meanwhile, the session needs its copy even more. */
    end = finish(session, &copy, live, &fds, tasks, &made);
    if (end == INJECT_OK)
        *out = made;
    return said_of_copy(end);
}

static bool valid(const struct park_tasks *tasks)
{
    errno = EINVAL;
    return tasks->count <= PARK_TASKS_MAX;
}

enum inject_end park_copy(const struct park_session *session, pid_t live,
                          const struct park_tasks *tasks, struct park *out)
{
    const struct inject_target target = {
        .pid = live, .proc = session->proc, .requests = session->channel[BOX_REQUESTS],
        .timeout_ms = session->timeout_ms, .settle_ms = session->settle_ms,
        .home = inject_home(session->proc, live),
    };
    if (!valid(tasks))
        return INJECT_REFUSED;
    struct inject_work before;
    struct inject from;
    inject_begin_work(target.home, &before);
    enum inject_end end = inject_attach(&target, &from);
    if (end == INJECT_OK)
        end = copy_stopped(session, &from, /* live= */ true, tasks, out);
    inject_end_work(&before);
    return end;
}

enum inject_end park_copy_parked(const struct park_session *session, const struct park *parked,
                                 const struct park_tasks *tasks, struct park *out)
{
    if (!valid(tasks))
        return INJECT_REFUSED;
    struct inject_work before;
    struct inject from;
    inject_begin_work(-1, &before);
    enum inject_end end = inject_hold(parked->pid, session->timeout_ms, &from);
    if (end == INJECT_OK)
        end = copy_stopped(session, &from, /* live= */ false, tasks, out);
    if (end == INJECT_OK) {
        out->files = parked->files;
        out->timers = parked->timers;
    }
    inject_end_work(&before);
    return end;
}

/* --- back to life --- */

static enum inject_end revive(const struct park_session *session, struct inject *copy,
                              const struct park *parked, const int *channel,
                              const struct park_tasks *tasks, uint32_t *out_lost)
{
    const struct inject_order own_uid = {
        SYS_setresuid, { session->own, session->own, session->holder },
    };
    struct park_fds fds;
    const struct park_claim claim = {
        .pid = copy->pid, .inside = parked->inside, .fds = &fds, .tasks = tasks,
        .channel = channel,
    };
    if (park_list_fds(session->proc, copy->pid, &fds) < 0)
        return INJECT_REFUSED;
    set_has_channel(session, &fds, true);
    enum inject_end end = equip(session, copy, parked->pidfd, channel, tasks);
    if (end == INJECT_OK)
        end = park_restore_files(session, copy, &parked->files, out_lost);
    if (end == INJECT_OK)
        end = park_restore_timers(copy, &parked->timers, out_lost);
    if (end == INJECT_OK && has_two_uids(session))
        end = park_call(copy, own_uid, NULL);
    if (end == INJECT_OK && park_confirm(session, &claim) < 0)
        end = INJECT_REFUSED;
    /* The process may then open its own files in /proc. */
    return end == INJECT_OK ? park_set_dumpable(copy, 1) : end;
}

enum inject_end park_wake(const struct park_session *session, struct park *parked,
                          const int channel[BOX_CHANNEL], const struct park_tasks *tasks,
                          pid_t *out_live, uint32_t *out_lost)
{
    uint32_t lost = 0;
    if (!valid(tasks)) {
        park_drop(parked);
        return INJECT_REFUSED;
    }
    struct inject_work before;
    struct inject copy;
    inject_begin_work(-1, &before);
    enum inject_end end = inject_hold(parked->pid, session->timeout_ms, &copy);
    if (end == INJECT_OK)
        end = revive(session, &copy, parked, channel, tasks, &lost);
    end = end == INJECT_OK ? inject_let_go(&copy) : give_up(copy.pid, end);
    if (end == INJECT_OK) {
        *out_live = parked->pid;
        *out_lost = lost;
    }
    inject_end_work(&before);
    own_close_fd(&parked->pidfd);
    *parked = PARK_NONE;
    return end;
}

void park_let_die(const struct park *parked)
{
    inject_begin_kill(parked->pid);
}

void park_drop(struct park *parked)
{
    if (parked->pid <= 0)
        return;
    struct inject_work before;
    inject_begin_work(-1, &before);
    inject_kill(parked->pid);
    inject_end_work(&before);
    own_close_fd(&parked->pidfd);
    *parked = PARK_NONE;
}

#else

static enum inject_end unsupported(void)
{
    errno = ENOTSUP;
    return INJECT_UNSUPPORTED;
}

enum inject_end park_copy(const struct park_session *session attr_unused, pid_t live attr_unused,
                          const struct park_tasks *tasks attr_unused, struct park *out attr_unused)
{
    return unsupported();
}

enum inject_end park_copy_parked(const struct park_session *session attr_unused,
                                 const struct park *from attr_unused,
                                 const struct park_tasks *tasks attr_unused,
                                 struct park *out attr_unused)
{
    return unsupported();
}

enum inject_end park_wake(const struct park_session *session attr_unused,
                          struct park *parked attr_unused,
                          const int channel[BOX_CHANNEL] attr_unused,
                          const struct park_tasks *tasks attr_unused, pid_t *out_live attr_unused,
                          uint32_t *out_lost attr_unused)
{
    return unsupported();
}

uint32_t park_lost_in_fork(const struct park *parked attr_unused)
{
    return 0;
}

void park_let_die(const struct park *parked attr_unused)
{
}

void park_drop(struct park *parked)
{
    *parked = PARK_NONE; /* there is never one */
}

#endif
