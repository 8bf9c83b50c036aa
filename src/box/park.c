/* Copies of quiet interpreters; see the header. Runs in the keeper of a session: one
 * thread, no heap, no stdio. The mechanism is that of box/inject.c; here is what is
 * called, and in which order. */
#include "box/park.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/own.h"

#if INJECT_HERE

#ifndef PR_GET_TID_ADDRESS
#define PR_GET_TID_ADDRESS 40
#endif
#define PAGE 4096
#define RED_ZONE 128 /* below the stack pointer, in use: System V ABI, x86-64 */
#define ERESTARTNOINTR 513
#define GIFTS_MAX (PARK_TASKS_MAX + 1)

/* As the kernel reads and writes it in the copy, whatever our libc's struct is. */
struct letter {
    struct {
        uint64_t name;
        uint32_t name_len, pad;
        uint64_t parts, parts_len, control, control_len;
        uint32_t flags, end;
    } head;
    struct {
        uint64_t base, len;
    } part;
    struct {
        uint64_t len;
        int32_t level, type, fd[GIFTS_MAX];
    } control;
    int32_t pair[2]; /* of sockets */
    char text[8];    /* "0": what moves the writer to a control group */
};
static const char here[] = "0";

/* What has reached a copy, under the numbers that it has there. */
struct gifts {
    uint64_t page;
    size_t count;
    int fd[GIFTS_MAX];
};

/* --- SIGCHLD, for which inject waits --- */

static void hold_sigchld(sigset_t *out_before)
{
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, out_before);
}

/* One may have been taken that told of another process. */
static void release_sigchld(const sigset_t *before)
{
    int saved = errno;
    sigprocmask(SIG_SETMASK, before, NULL);
    raise(SIGCHLD);
    errno = saved;
}

/* --- calls that must succeed --- */

static enum inject_end call(struct inject *at, struct inject_order order, long *out)
{
    long result = 0;
    enum inject_end end = inject_call(at, &order, &result);
    if (end != INJECT_OK)
        return end;
    if (result == -ERESTARTNOINTR) /* a clone that makes way for a signal */
        return INJECT_NOT_QUIET;
    if (result < 0) {
        errno = (int)-result;
        return INJECT_REFUSED;
    }
    if (out)
        *out = result;
    return INJECT_OK;
}

static enum inject_end call_all(struct inject *at, const struct inject_order *orders, size_t count)
{
    enum inject_end end = INJECT_OK;
    for (size_t i = 0; end == INJECT_OK && i < count; i++)
        end = call(at, orders[i], NULL);
    return end;
}

/* End a copy that did not become what it should. */
static enum inject_end give_up(pid_t copy, enum inject_end why)
{
    int saved = errno;
    if (copy > 0 && why != INJECT_DIED && why != INJECT_LOST)
        inject_kill(copy);
    errno = saved;
    return why;
}

/* --- the copy --- */

/* Where libc keeps the thread id, which the kernel shall set in the copy. The answer
 * passes through the stack below what is in use, and so through memory that may be
 * shared with anybody; a wrong one harms only the copy. */
static enum inject_end find_tid_slot(struct inject *from, uint64_t *out)
{
    const uint64_t room = (from->regs.rsp - RED_ZONE - 2 * sizeof *out) & ~UINT64_C(15);
    uint64_t before = 0;
    if (inject_read(from, room, &before, sizeof before) < 0)
        return INJECT_REFUSED;
    struct inject_order ask = { SYS_prctl, { PR_GET_TID_ADDRESS, room } };
    enum inject_end end = call(from, ask, NULL);
    if (end != INJECT_OK)
        return end;
    if (inject_read(from, room, out, sizeof *out) < 0 ||
        inject_write(from, room, &before, sizeof before) < 0)
        return INJECT_REFUSED;
    return INJECT_OK;
}

static enum inject_end protect(const struct park_session *session, struct inject *copy)
{
    const struct inject_order orders[] = {
        { SYS_setresuid, { session->holder, session->own, session->holder } },
        { SYS_prctl, { PR_SET_DUMPABLE, 0 } },
    };
    return call_all(copy, orders, array_len(orders));
}

/* A stopped and protected copy of a stopped process. */
static enum inject_end make_copy(const struct park_session *session, struct inject *from,
                                 struct inject *out)
{
    uint64_t slot = 0;
    enum inject_end end = find_tid_slot(from, &slot);
    if (end != INJECT_OK)
        return end;
    const uint64_t flags = CLONE_PARENT | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD;
    end = call(from, (struct inject_order){ SYS_clone, { flags, 0, 0, slot } }, NULL);
    if (end != INJECT_OK) {
        int saved = errno;
        if (from->born)
            inject_kill(from->born);
        from->born = 0;
        errno = saved;
        return end;
    }
    end = inject_adopt(from, out);
    if (end == INJECT_OK)
        end = protect(session, out);
    return end == INJECT_OK ? end : give_up(out->pid, end);
}

/* --- descriptors for the copy --- */

static enum inject_end take_letter(struct inject *copy, int sock, size_t count, struct gifts *out)
{
    const uint64_t page = out->page;
    struct letter letter = {
        .head = { .parts = page + offsetof(struct letter, part), .parts_len = 1,
                  .control = page + offsetof(struct letter, control),
                  .control_len = sizeof letter.control },
        .part = { page + offsetof(struct letter, text), sizeof here - 1 },
    };
    if (inject_write(copy, page, &letter, sizeof letter) < 0)
        return INJECT_REFUSED;
    const uint64_t flags = MSG_DONTWAIT | MSG_CMSG_CLOEXEC;
    enum inject_end end =
        call(copy, (struct inject_order){ SYS_recvmsg, { (uint64_t)sock, page, flags } }, NULL);
    if (end != INJECT_OK)
        return end;
    if (inject_read(copy, page, &letter, sizeof letter) < 0)
        return INJECT_REFUSED;
    errno = EMFILE; /* fewer arrive where its table of descriptors is full */
    if (letter.control.len != offsetof(struct letter, control.fd) -
                                  offsetof(struct letter, control) + count * sizeof(int32_t) ||
        (letter.head.flags & MSG_CTRUNC))
        return INJECT_REFUSED;
    for (size_t i = 0; i < count; i++)
        out->fd[i] = letter.control.fd[i];
    out->count = count;
    return INJECT_OK;
}

/* A page and a pair of sockets that are the copy's alone; we take one end, and through
 * it send what it shall have. */
static enum inject_end hand_over(struct inject *copy, int pidfd, const int *fds, size_t count,
                                 struct gifts *out)
{
    long page = 0;
    int32_t pair[2];
    const struct inject_order map = {
        SYS_mmap, { 0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, ~UINT64_C(0), 0 },
    };
    enum inject_end end = call(copy, map, &page);
    if (end != INJECT_OK)
        return end;
    out->page = (uint64_t)page;
    const uint64_t room = out->page + offsetof(struct letter, pair);
    const struct inject_order connect = {
        SYS_socketpair, { AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, room },
    };
    end = call(copy, connect, NULL);
    if (end != INJECT_OK)
        return end;
    if (inject_read(copy, room, pair, sizeof pair) < 0)
        return INJECT_REFUSED;
    own_fd mine = (int)syscall(SYS_pidfd_getfd, pidfd, pair[1], 0);
    if (mine < 0 || io_send(mine, here, sizeof here - 1, fds, count) < 0)
        return INJECT_REFUSED;
    end = take_letter(copy, pair[0], count, out);
    const struct inject_order hang_up[] = {
        { SYS_close, { (uint64_t)pair[0] } },
        { SYS_close, { (uint64_t)pair[1] } },
    };
    return end == INJECT_OK ? call_all(copy, hang_up, array_len(hang_up)) : end;
}

/* From the gift `first` on they are `tasks`: enter each and close it. */
static enum inject_end enter_groups(struct inject *copy, const struct gifts *gifts, size_t first)
{
    const uint64_t text = gifts->page + offsetof(struct letter, text);
    enum inject_end end = INJECT_OK;
    for (size_t i = first; end == INJECT_OK && i < gifts->count; i++) {
        const struct inject_order enter[] = {
            { SYS_write, { (uint64_t)gifts->fd[i], text, sizeof here - 1 } },
            { SYS_close, { (uint64_t)gifts->fd[i] } },
        };
        end = call_all(copy, enter, array_len(enter));
    }
    return end;
}

static enum inject_end forget_page(struct inject *copy, const struct gifts *gifts)
{
    return call(copy, (struct inject_order){ SYS_munmap, { gifts->page, PAGE } }, NULL);
}

static enum inject_end move(struct inject *copy, int pidfd, const struct park_tasks *tasks)
{
    struct gifts gifts = { .count = 0 };
    if (tasks->count == 0)
        return INJECT_OK;
    enum inject_end end = hand_over(copy, pidfd, tasks->fd, tasks->count, &gifts);
    if (end == INJECT_OK)
        end = enter_groups(copy, &gifts, 0);
    return end == INJECT_OK ? forget_page(copy, &gifts) : end;
}

/* In a copy of a parked copy the control socket is closed already. */
static enum inject_end close_control(const struct park_session *session, struct inject *copy)
{
    const struct inject_order order = { SYS_close, { (uint64_t)session->control } };
    enum inject_end end = call(copy, order, NULL);
    return end == INJECT_REFUSED && errno == EBADF ? INJECT_OK : end;
}

/* The rest of parking, off the path of what it was copied from. */
static enum inject_end finish(const struct park_session *session, struct inject *copy,
                              const struct park_tasks *tasks, struct park *out)
{
    own_fd pidfd = (int)syscall(SYS_pidfd_open, copy->pid, 0);
    enum inject_end end = pidfd < 0 ? INJECT_REFUSED : move(copy, pidfd, tasks);
    if (end == INJECT_OK) /* within a session everybody may send SIGCONT */
        end = call(copy, (struct inject_order){ SYS_setsid, { 0 } }, NULL);
    if (end == INJECT_OK)
        end = close_control(session, copy);
    if (end == INJECT_OK)
        end = inject_settle(copy);
    if (end != INJECT_OK)
        return give_up(copy->pid, end);
    out->pid = copy->pid;
    out->pidfd = take_fd(&pidfd);
    return INJECT_OK;
}

/* DIED and LOST are said of the original; of a copy it is a refusal. */
static enum inject_end said_of_copy(enum inject_end end)
{
    if (end != INJECT_DIED && end != INJECT_LOST)
        return end;
    errno = end == INJECT_DIED ? ESRCH : ETIMEDOUT;
    return INJECT_REFUSED;
}

static enum inject_end copy_stopped(const struct park_session *session, struct inject *from,
                                    enum inject_end (*part)(struct inject *),
                                    const struct park_tasks *tasks, struct park *out)
{
    struct inject copy;
    enum inject_end end = make_copy(session, from, &copy);
    int saved = errno;
    enum inject_end parted = part(from); /* DIED, if that was what happened */
    struct park made = { .pause_ns = clock_now_ns() - from->since_ns };
    errno = saved;
    if (end != INJECT_OK)
        return parted == INJECT_OK ? said_of_copy(end) : parted;
    /* If the original was killed just now, its copy is what we want all the more. */
    end = finish(session, &copy, tasks, &made);
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
        .pid = live, .proc = session->proc, .control = session->control,
        .timeout_ms = session->timeout_ms, .settle_ms = session->settle_ms,
    };
    if (!valid(tasks))
        return INJECT_REFUSED;
    sigset_t before;
    struct inject from;
    hold_sigchld(&before);
    enum inject_end end = inject_attach(&target, &from);
    if (end == INJECT_OK)
        end = copy_stopped(session, &from, inject_let_go, tasks, out);
    release_sigchld(&before);
    return end;
}

enum inject_end park_copy_parked(const struct park_session *session, const struct park *parked,
                                 const struct park_tasks *tasks, struct park *out)
{
    if (!valid(tasks))
        return INJECT_REFUSED;
    sigset_t before;
    struct inject from;
    hold_sigchld(&before);
    enum inject_end end = inject_hold(parked->pid, session->timeout_ms, &from);
    if (end == INJECT_OK)
        end = copy_stopped(session, &from, inject_settle, tasks, out);
    release_sigchld(&before);
    return end;
}

/* --- back to life --- */

/* The received socket to its place, unless it has got that number by itself. */
static enum inject_end place_control(const struct park_session *session, struct inject *copy,
                                     int got)
{
    const struct inject_order orders[] = {
        { SYS_dup3, { (uint64_t)got, (uint64_t)session->control, O_CLOEXEC } },
        { SYS_close, { (uint64_t)got } },
    };
    return got == session->control ? INJECT_OK : call_all(copy, orders, array_len(orders));
}

static enum inject_end revive(const struct park_session *session, struct inject *copy, int pidfd,
                              int control, const struct park_tasks *tasks)
{
    const struct inject_order become_live[] = {
        { SYS_setresuid, { session->own, session->own, session->holder } },
        { SYS_prctl, { PR_SET_DUMPABLE, 1 } },
    };
    int fds[GIFTS_MAX] = { control };
    struct gifts gifts = { .count = 0 };
    memcpy(fds + 1, tasks->fd, tasks->count * sizeof fds[0]);
    enum inject_end end = hand_over(copy, pidfd, fds, 1 + tasks->count, &gifts);
    if (end == INJECT_OK)
        end = call_all(copy, become_live, array_len(become_live));
    if (end == INJECT_OK)
        end = enter_groups(copy, &gifts, 1); /* first: one may sit in the control's place */
    if (end == INJECT_OK)
        end = place_control(session, copy, gifts.fd[0]);
    return end == INJECT_OK ? forget_page(copy, &gifts) : end;
}

enum inject_end park_wake(const struct park_session *session, struct park *parked, int control,
                          const struct park_tasks *tasks, pid_t *out_live)
{
    if (!valid(tasks)) {
        park_drop(parked);
        return INJECT_REFUSED;
    }
    sigset_t before;
    struct inject copy;
    hold_sigchld(&before);
    enum inject_end end = inject_hold(parked->pid, session->timeout_ms, &copy);
    if (end == INJECT_OK)
        end = revive(session, &copy, parked->pidfd, control, tasks);
    end = end == INJECT_OK ? inject_let_go(&copy) : give_up(copy.pid, end);
    if (end == INJECT_OK)
        *out_live = parked->pid;
    release_sigchld(&before);
    own_close_fd(&parked->pidfd);
    *parked = PARK_NONE;
    return end;
}

void park_drop(struct park *parked)
{
    if (parked->pid <= 0)
        return;
    sigset_t before;
    hold_sigchld(&before);
    inject_kill(parked->pid);
    release_sigchld(&before);
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
                          struct park *parked attr_unused, int control attr_unused,
                          const struct park_tasks *tasks attr_unused, pid_t *out_live attr_unused)
{
    return unsupported();
}

void park_drop(struct park *parked)
{
    *parked = PARK_NONE; /* there never was one */
}

#endif
