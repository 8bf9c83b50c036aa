/* The keeper of a session holds the parked copies of an interpreter. It makes and wakes them
 * (box/park/park.h), and it forks them into other boxes (box/fork/transplant.h), when the broker
 * orders it. It is a child of the broker in the same pid namespace: uid 0 of W, CAP_SYS_PTRACE and
 * CAP_SYS_NICE in W and no other capability, under policy/keeper.policy; one thread, no heap, no
 * stdio.
 *
 * 1. All copies die with the keeper.
 * 2. The keeper takes orders from the broker alone, and trusts nothing that a copy says.
 * 3. A keeper that cannot start says so in its first answer, and ends. */
#include "box/keep/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "box/wall/drop.h"
#include "box/wall/filter.h"
#include "box/wall/seccomp.h"
#include "box/park/park.h"
#include "box/fork/transplant.h"

#define TIMEOUT_MS 3000 /* a WAKE may take twice as long: less than the broker waits */
#define SETTLE_MS 1000
#define TRANSPLANT_MS 6000
#define FD_FIRST 3
#define KEPT_MAX (3 + 2 * BOX_CG_COUNT)
#define DYING_MAX 8
#define POWER (UINT64_C(1) << CAP_SYS_PTRACE | UINT64_C(1) << CAP_SYS_NICE)

struct keeper {
    int sock;
    struct park_session session;
    struct park_tasks live, parked;
    struct park state[BOX_STATES + 1];
    uint64_t ticket[BOX_STATES];
    uint32_t spare_of;
    uint64_t spare_ticket;
    bool moved; /* the broker moves the spare before a WAKE: no other copy may be woken */
    struct park dying[DYING_MAX];
};

#define SPARE BOX_STATES /* the last one: a copy for the next WAKE */

static const struct park_tasks stay = { .count = 0 };

/* --- start --- */

/* The kernel compares the effective uid of the opener with the uids of the process that moves. Only
 * parked copies have this uid. The file itself belongs to uid 0. Copies do not move to another CPU
 * group: they never run, and each move takes time. */
static int open_tasks(const struct cgroup *group, struct park_tasks *out)
{
    static const enum box_cg moved[] = { BOX_CG_MEMORY, BOX_CG_PIDS };
    for (size_t i = 0; i < array_len(moved); i++) {
        if (group->dir[moved[i]] < 0)
            continue;
        int fd = openat(group->dir[moved[i]], "tasks", O_WRONLY | O_CLOEXEC);
        if (fd < 0)
            return -1;
        out->controller[out->count] = moved[i] == BOX_CG_MEMORY ? "memory" : "pids";
        out->fd[out->count++] = fd;
    }
    out->name = group->name;
    return 0;
}

static int open_all_tasks(const struct keeper_plan *plan, struct keeper *out)
{
    const uid_t same = (uid_t)-1;
    if (out->session.warden >= 0) /* with one uid the groups are v2: the broker moves copies */
        return 0;
    if (syscall(SYS_setresuid, same, plan->holder, same) < 0)
        return -1;
    syscall(SYS_setfsuid, 0);
    int failed = open_tasks(plan->parked, &out->parked) < 0 ||
                 open_tasks(plan->live, &out->live) < 0;
    int saved = errno;
    if (syscall(SYS_setresuid, same, 0, same) < 0)
        return -1;
    errno = saved;
    return failed ? -1 : 0;
}

/* Close all descriptors but stdio, which is /dev/null, and these. */
static int settle_fds(struct keeper *out)
{
    int *kept[KEPT_MAX] = { &out->sock, &out->session.proc }, fds[KEPT_MAX], count = 2;
    if (out->session.warden >= 0)
        kept[count++] = &out->session.warden;
    for (size_t i = 0; i < out->parked.count; i++)
        kept[count++] = &out->parked.fd[i];
    for (size_t i = 0; i < out->live.count; i++)
        kept[count++] = &out->live.fd[i];
    for (int i = 0; i < count; i++) {
        fds[i] = *kept[i];
        *kept[i] = FD_FIRST + i;
    }
    return io_place(fds, count, FD_FIRST, /* inherited= */ 0) < 0 ? -1
                                                                  : io_close_from(FD_FIRST + count);
}

/* SIGCHLD stays blocked as in the broker, because box/park/inject.c waits for it. */
static int become(const struct keeper_plan *plan, struct keeper *out)
{
    prctl(PR_SET_NAME, "cupel-keeper");
    drop_signals();
    setsid();
    out->session.proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (out->session.proc < 0 || open_all_tasks(plan, out) < 0 || settle_fds(out) < 0 ||
        drop_power_but(POWER) < 0)
        return -1;
    /* A change of uid would reset both, so they come last. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return -1;
    if (seccomp_raise(box_filter_keeper, SECCOMP_FILTER_FLAG_SPEC_ALLOW) < 0)
        return -1;
    /* Where the keeper has one filter, an interpreter has two: its zygote's and its own. It has one
     * more if no cgroup counts its memory. */
    int filters = park_own_filters(out->session.proc);
    int more = 1 + !(plan->live->walls & BOX_WALL_BIT(MEMORY_CG));
    out->session.filters = filters > 0 ? filters + more : 0;
    return 0;
}

/* --- orders --- */

static enum inject_end refuse(int error)
{
    errno = error;
    return INJECT_REFUSED;
}

/* The copy that the order means, or NULL with errno. */
static struct park *find(struct keeper *keeper, const struct keeper_order *order)
{
    struct park *state = &keeper->state[order->state];
    errno = state->pid <= 0 ? ENOENT : ESTALE;
    return state->pid > 0 && keeper->ticket[order->state] == order->ticket ? state : NULL;
}

static enum inject_end do_park(struct keeper *keeper, const struct keeper_order *order,
                               const int *channel, struct keeper_answer *out)
{
    struct park *state = &keeper->state[order->state];
    (void)channel;
    if (state->pid > 0)
        return refuse(EEXIST);
    park_drop(&keeper->state[SPARE]); /* the expected WAKE did not follow */
    enum inject_end end = park_copy(&keeper->session, order->live, &keeper->parked, state);
    if (end == INJECT_OK) {
        keeper->ticket[order->state] = order->ticket;
        out->pid = state->pid;
        out->pause_us = state->pause_ns / 1000;
        out->lost = state->files.lost;
    }
    return end;
}

static enum inject_end do_copy(struct keeper *keeper, const struct keeper_order *order,
                               const int *channel, struct keeper_answer *out)
{
    struct park *state = find(keeper, order), *spare = &keeper->state[SPARE];
    int error = errno;
    (void)channel;
    park_drop(spare);
    if (!state)
        return refuse(error);
    enum inject_end end = park_copy_parked(&keeper->session, state, &stay, spare);
    if (end == INJECT_DIED || end == INJECT_LOST) {
        park_drop(state);
        return end;
    }
    keeper->spare_of = order->state;
    keeper->spare_ticket = order->ticket;
    if (end == INJECT_OK)
        out->pid = spare->pid;
    return end;
}

static enum inject_end wake_spare(struct keeper *keeper, const int *channel,
                                  struct keeper_answer *out)
{
    pid_t live = 0;
    enum inject_end end = park_wake(&keeper->session, &keeper->state[SPARE], channel, &keeper->live,
                                    &live, &out->lost);
    out->pid = end == INJECT_OK ? live : 0;
    return end;
}

static enum inject_end do_wake(struct keeper *keeper, const struct keeper_order *order,
                               const int *channel, struct keeper_answer *out)
{
    if (!channel)
        return refuse(EBADF);
    bool spared = keeper->state[SPARE].pid > 0 && keeper->spare_of == order->state &&
                  keeper->spare_ticket == order->ticket;
    enum inject_end end = spared ? wake_spare(keeper, channel, out) : INJECT_DIED;
    if (end != INJECT_DIED || keeper->moved)
        return spared ? end : refuse(ESTALE);
    /* With one uid, processes of the box may have killed the spare before the sweep. */
    end = do_copy(keeper, order, NULL, out);
    return end == INJECT_OK ? wake_spare(keeper, channel, out) : end;
}

static enum inject_end do_drop(struct keeper *keeper, const struct keeper_order *order,
                               const int *channel, struct keeper_answer *out)
{
    struct park *state = find(keeper, order);
    (void)channel;
    (void)out;
    if (!state)
        return errno == ENOENT ? INJECT_OK : INJECT_REFUSED;
    for (size_t i = 0; state->pid > 0 && i < DYING_MAX; i++) {
        if (keeper->dying[i].pid > 0)
            continue;
        park_let_die(state);
        keeper->dying[i] = *state;
        *state = PARK_NONE;
    }
    park_drop(state);
    return INJECT_OK;
}

static enum inject_end do_sweep(struct keeper *keeper, const struct keeper_order *order,
                                const int *channel, struct keeper_answer *out)
{
    (void)order;
    (void)channel;
    (void)out;
    if (keeper->session.warden < 0)
        return refuse(ENOTSUP);
    return park_sweep(&keeper->session, keeper->state, array_len(keeper->state)) < 0
               ? INJECT_REFUSED
               : INJECT_OK;
}

static enum inject_end do_transplant(struct keeper *keeper, const struct keeper_order *order,
                                     const int *channel, struct keeper_answer *out)
{
    static struct transplant_report report;
    struct park_session to = keeper->session;
    const struct park *state = find(keeper, order);
    (void)channel;
    memcpy(to.channel, order->channel, sizeof to.channel);
    if (!state)
        return INJECT_REFUSED;
    enum inject_end end = transplant(&keeper->session, state, &to, order->live, TRANSPLANT_MS,
                                     &report);
    out->lost = end == INJECT_OK ? report.lost_bits | park_lost_in_fork(state) : 0;
    return end;
}

static enum inject_end (*const orders[])(struct keeper *keeper, const struct keeper_order *order,
                                         const int *channel, struct keeper_answer *out) = {
    [KEEPER_PARK] = do_park,
    [KEEPER_PREPARE] = do_copy,
    [KEEPER_COPY] = do_copy,
    [KEEPER_WAKE] = do_wake,
    [KEEPER_DROP] = do_drop,
    [KEEPER_SWEEP] = do_sweep,
    [KEEPER_TRANSPLANT] = do_transplant,
};

/* Answer one order. failed: the errno of a failed start, or 0. */
static void serve(struct keeper *keeper, int failed)
{
    struct keeper_order order;
    size_t count = 0;
    int channel[BOX_CHANNEL] = { -1, -1 };
    int got = io_recv(keeper->sock, &order, sizeof order, channel, BOX_CHANNEL, &count);
    if (got != 1 || order.op < KEEPER_PARK || order.op > KEEPER_TRANSPLANT ||
        order.state >= BOX_STATES)
        _exit(got == 0 ? 0 : 73);
    struct keeper_answer answer = { .state = order.state };
    const int *given = count == BOX_CHANNEL ? channel : NULL;
    answer.end = failed ? refuse(failed) : orders[order.op](keeper, &order, given, &answer);
    answer.error = answer.end == INJECT_OK ? 0 : errno;
    own_close_fd(&channel[BOX_WORDS]);
    own_close_fd(&channel[BOX_REQUESTS]);
    if (io_send(keeper->sock, &answer, sizeof answer, NULL, 0) < 0)
        _exit(0);
}

/* Wait for the next order. The keeper must wait for dead copies before their parent can. */
static void await(struct keeper *keeper)
{
    struct pollfd waits[1 + BOX_STATES + DYING_MAX] = { { .fd = keeper->sock, .events = POLLIN } };
    struct park *whose[array_len(waits)] = { NULL };
    nfds_t count = 1;
    for (int i = 0; i < BOX_STATES; i++)
        whose[count++] = &keeper->state[i];
    for (int i = 0; i < DYING_MAX; i++)
        whose[count++] = &keeper->dying[i];
    for (nfds_t i = 1; i < count; i++)
        waits[i] = (struct pollfd){ .fd = whose[i]->pidfd, .events = POLLIN };
    if (poll(waits, count, -1) < 0 && errno != EINTR)
        _exit(74);
    for (nfds_t i = 1; i < count; i++) {
        if (waits[i].revents)
            park_drop(whose[i]);
    }
    if (waits[0].revents)
        serve(keeper, 0);
}

void keeper_run(const struct keeper_plan *plan)
{
    static struct keeper keeper;
    const bool one_uid = plan->warden >= 0;
    keeper.sock = plan->sock;
    keeper.moved = plan->moved;
    keeper.session = (struct park_session){
        .channel = { plan->channel[BOX_WORDS], plan->channel[BOX_REQUESTS] },
        .own = BOX_ID_OCCUPANT, .holder = one_uid ? BOX_ID_OCCUPANT : BOX_ID_HOLDER,
        .seen_own = one_uid ? 0 : plan->own, .seen_holder = one_uid ? 0 : plan->holder,
        .copies = BOX_STATES + 2, /* and the spare, and init if it has the same uid */
        .warden = plan->warden, .timeout_ms = TIMEOUT_MS,
        .settle_ms = SETTLE_MS, .pages = plan->pages,
    };
    for (int i = 0; i <= SPARE; i++)
        keeper.state[i] = PARK_NONE;
    for (int i = 0; i < DYING_MAX; i++)
        keeper.dying[i] = PARK_NONE;
    if (become(plan, &keeper) < 0) {
        serve(&keeper, errno ? errno : EPERM);
        _exit(70);
    }
    for (;;)
        await(&keeper);
}
