/* The kept states of a session, from the broker's side: its keeper (box/keep/keeper.h), started
 * with the first PARK, its orders, and a control group for all parked copies. Broker only. It waits
 * for answers only in its loop. Every PARK and every WAKE has one answer, whichever process dies.
 *
 * A woken copy never runs outside the live group. With v1 groups the copy moves itself before the
 * keeper lets it run. With v2 the broker moves the stopped copy between two orders, because moving
 * needs more privileges than a keeper has. */
#include "box/broker/broker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/own.h"
#include "box/park/inject.h"
#include "box/keep/keeper.h"
#include "box/wall/clone.h"

#define FIRST_GROUP (BOX_MAX + BOX_ZYGOTES_MAX)
#define PARKED_PIDS 4096 /* BOX_STATES is the real limit */
#define ROUND (INT64_C(4) << 20) /* the limit is not changed for less */

static void tell_kept(const struct broker *broker, const struct broker_box *box, uint32_t kind,
                      uint64_t ticket, const struct keeper_answer *answer)
{
    struct box_news news = { .kind = kind, .box = (uint32_t)(box - broker->box),
                             .state = answer->state, .end = answer->end, .error = answer->error,
                             .held_bytes = box->keep.held_bytes, .pause_us = answer->pause_us,
                             .lost = answer->lost, .ticket = ticket };
    broker_box_stats(box, &news.stats);
    if (!box->releasing)
        broker_tell(broker, &news, NULL, 0);
}

static void tell_refused(const struct broker *broker, const struct broker_box *box, uint32_t kind,
                         const struct broker_keep_order *order, int error)
{
    struct keeper_answer answer = { .state = order->state, .end = INJECT_REFUSED, .error = error };
    if (!INJECT_HERE)
        answer.end = INJECT_UNSUPPORTED;
    tell_kept(broker, box, kind, order->ticket, &answer);
}

/* --- the keeper --- */

static bool moves_here(const struct broker *broker)
{
    return broker->bases.v2_controllers != 0;
}

static int make_group(struct broker *broker, struct broker_box *box)
{
    const struct cgroup_limits limits = { box->memory_bytes, PARKED_PIDS, 1000 };
    const unsigned number = FIRST_GROUP + (unsigned)(box - broker->box);
    if (box->keep.cgroup.name[0])
        return 0;
    return cgroup_open(&broker->bases, number, &limits, &box->keep.cgroup);
}

/* With one uid only. out: the keeper's end of the socket with it, or -1. */
static int start_warden(const struct broker *broker, struct broker_box *box, int *out)
{
    int pair[2];
    if (broker->two_ids)
        return 0;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -1;
    io_refuse_fds(pair[0]);
    io_refuse_fds(pair[1]);
    long pid = broker_warden_start(broker, box, pair[1]);
    box->keep.warden = pid > 0 ? (pid_t)pid : 0;
    close(pair[1]);
    *out = pair[0];
    if (pid < 0)
        errno = ENOTSUP; /* this kernel does not allow choosing a process number */
    return pid < 0 ? -1 : 0;
}

static int start_keeper(struct broker *broker, struct broker_box *box)
{
    struct broker_keep *keep = &box->keep;
    int pair[2];
    own_fd warden = -1;
    if (make_group(broker, box) < 0 || start_warden(broker, box, &warden) < 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -1;
    io_refuse_fds(pair[0]);
    long pid = clone_child(0, NULL, -1);
    if (pid == 0) {
        const struct keeper_plan plan = {
            .sock = pair[1], .live = &box->cgroup, .parked = &keep->cgroup,
            .own = BOOT_ID_OCCUPANT(box - broker->box),
            .holder = BROKER_ID_HOLDER(box - broker->box), .channel = box->channel,
            .moved = moves_here(broker), .warden = warden, .pages = &box->cell_pages,
        };
        keeper_run(&plan);
    }
    int saved = errno;
    close(pair[1]);
    if (pid < 0)
        close(pair[0]);
    errno = saved;
    if (pid < 0)
        return -1;
    keep->keeper = (pid_t)pid;
    keep->kept = false;
    keep->sock = pair[0];
    return 0;
}

/* channel: for WAKE; else NULL. */
static int send_order(struct broker_box *box, const struct keeper_order *order, const int *channel)
{
    struct broker_keep *keep = &box->keep;
    if (io_send(keep->sock, order, sizeof *order, channel, channel ? BOX_CHANNEL : 0) < 0)
        return -1;
    if (keep->ordered == keep->answered)
        keep->until_ns = clock_now_ns() + BROKER_PATIENCE_MS * CLOCK_MS;
    keep->order[keep->ordered++ % BROKER_KEEP_ORDERS] =
        (struct broker_keep_order){ (uint8_t)order->op, (uint8_t)order->state, order->ticket };
    return 0;
}

void broker_keep_kill(struct broker_box *box)
{
    if (box->keep.keeper > 0)
        kill(box->keep.keeper, SIGKILL);
}

void broker_keep_hurry(struct broker_box *box, int64_t now_ns)
{
    if (box->used && box->keep.ordered != box->keep.answered && now_ns > box->keep.until_ns)
        broker_keep_kill(box);
}

/* --- orders --- */

/* Pages stay charged to the group that touched them first: the live process must not lack the
 * memory that it shares with a parked copy when it writes new pages. */
static void raise_limit(struct broker_box *box)
{
    bool held_by_group = box->cgroup.walls & BOX_WALL_BIT(MEMORY_CG);
    int64_t held = held_by_group ? cgroup_memory_now(&box->cgroup)
                                 : broker_tally(box, /* resting= */ true, INT64_MAX);
    box->keep.held_bytes = held;
    box->tally_void = true;
    held = held < 0 ? 0 : (held + ROUND - 1) / ROUND * ROUND;
    int64_t limit = box->memory_bytes + (held < box->memory_bytes ? held : box->memory_bytes);
    if (limit == box->memory_limit || (held_by_group && cgroup_set_memory(&box->cgroup, limit) < 0))
        return; /* after a failure the old limit holds */
    box->memory_limit = limit;
}

static bool is_busy(const struct broker_box *box)
{
    return box->stage != BROKER_STILL || box->sweep.on || box->keep.waking;
}

/* An errno; 0: allowed. */
static int refusal(const struct broker_box *box, uint32_t op)
{
    const struct broker_keep *keep = &box->keep;
    bool busy = is_busy(box) && op != BOX_OP_FORK_INTO;
    if (!INJECT_HERE)
        return ENOTSUP;
    if (!box->session)
        return EINVAL;
    if (!box->parkable)
        return EPERM;
    if (box->killed_at_ns || (op == BOX_OP_PARK && !busy && box->occupant <= 0))
        return ESRCH;
    if (busy || (op == BOX_OP_WAKE && box->occupant > 0))
        return EBUSY;
    if (op != BOX_OP_PARK && keep->keeper <= 0)
        return ENOENT;
    return keep->ordered - keep->answered < BROKER_KEEP_ORDERS ? 0 : EAGAIN;
}

static int order_park(struct broker *broker, struct broker_box *box, const struct box_call *call)
{
    if (box->keep.keeper <= 0 && start_keeper(broker, box) < 0)
        return -1;
    raise_limit(box);
    const struct keeper_order order = { KEEPER_PARK, call->keep.state, box->occupant, { 0 },
                                        call->keep.ticket };
    return send_order(box, &order, NULL);
}

bool broker_keep_sweep(struct broker_box *box)
{
    const struct keeper_order order = { .op = KEEPER_SWEEP };
    if (box->keep.keeper <= 0 || box->keep.warden <= 0)
        return false;
    /* One after the other: the broker does not know a copy in progress. */
    if (box->keep.ordered == box->keep.answered && send_order(box, &order, NULL) < 0)
        broker_keep_kill(box);
    return true;
}

static void forget_channel(struct broker_keep *keep)
{
    for (int i = 0; i < BOX_CHANNEL; i++)
        own_close_fd(&keep->channel[i]);
}

static struct keeper_order order_of(enum keeper_op op, const struct box_call *call)
{
    return (struct keeper_order){ .op = op, .state = call->keep.state,
                                  .ticket = call->keep.ticket };
}

static int order_wake(const struct broker *broker, struct broker_box *box,
                      const struct box_call *call, const int *channel)
{
    struct broker_keep *keep = &box->keep;
    const struct keeper_order wake = order_of(KEEPER_WAKE, call);
    const struct keeper_order copy = order_of(KEEPER_COPY, call);
    if (!moves_here(broker)) {
        keep->waking = send_order(box, &wake, channel) == 0;
        return keep->waking ? 0 : -1;
    }
    for (int i = 0; i < BOX_CHANNEL; i++)
        keep->channel[i] = fcntl(channel[i], F_DUPFD_CLOEXEC, 3);
    keep->waking = keep->channel[BOX_WORDS] >= 0 && keep->channel[BOX_REQUESTS] >= 0 &&
                   send_order(box, &copy, NULL) == 0;
    if (!keep->waking)
        forget_channel(keep);
    return keep->waking ? 0 : -1;
}

/* Between two sessions: the giving session's keeper does it. */
static int order_transplant(const struct broker *broker, struct broker_box *box,
                            const struct box_call *call)
{
    const struct broker_box *to = &broker->box[call->keep.to];
    errno = !to->used || !to->parkable || to->killed_at_ns || to->occupant <= 0 ? ESRCH
            : to == box || is_busy(to)                                          ? EBUSY
                                                                                : 0;
    if (errno)
        return -1;
    const struct keeper_order order = {
        KEEPER_TRANSPLANT, call->keep.state, to->occupant,
        { to->channel[BOX_WORDS], to->channel[BOX_REQUESTS] }, call->keep.ticket,
    };
    return send_order(box, &order, NULL);
}

static void order_drop(struct broker_box *box, uint32_t state, uint64_t ticket)
{
    struct broker_keep *keep = &box->keep;
    bool room = keep->ordered - keep->answered < BROKER_KEEP_ORDERS;
    const struct keeper_order drop = { .op = KEEPER_DROP, .state = state, .ticket = ticket };
    if (keep->keeper > 0 && (!room || send_order(box, &drop, NULL) < 0))
        broker_keep_kill(box); /* a state that cannot be dropped alone goes with all others */
}

void broker_keep_order(struct broker *broker, const struct box_call *call, const int *channel)
{
    struct broker_box *box = &broker->box[call->box];
    const struct broker_keep_order asked = { 0, (uint8_t)call->keep.state, call->keep.ticket };
    const struct keeper_order prepare = order_of(KEEPER_PREPARE, call);
    if (call->op == BOX_OP_DROP) {
        order_drop(box, call->keep.state, call->keep.ticket);
        return;
    }
    int error = refusal(box, call->op);
    uint32_t news = call->op == BOX_OP_PARK      ? BOX_NEWS_PARKED
                    : call->op == BOX_OP_PREPARE ? BOX_NEWS_PREPARED
                    : call->op == BOX_OP_WAKE    ? BOX_NEWS_AWAKE
                                                 : BOX_NEWS_FORKED_INTO;
    if (!error && (news == BOX_NEWS_PARKED     ? order_park(broker, box, call)
                   : news == BOX_NEWS_PREPARED ? send_order(box, &prepare, NULL)
                   : news == BOX_NEWS_AWAKE    ? order_wake(broker, box, call, channel)
                                               : order_transplant(broker, box, call)) < 0)
        error = errno;
    if (error)
        tell_refused(broker, box, news, &asked, error);
}

/* --- answers --- */

/* With v2 controllers the broker must move the stopped process itself. */
static int move(const struct broker *broker, const struct cgroup *group, pid_t pid)
{
    char text[16];
    if (!moves_here(broker))
        return 0;
    snprintf(text, sizeof text, "%d", (int)pid);
    return io_write_text(group->dir[BOX_CG_V2], "cgroup.procs", text);
}

static void on_parked(struct broker *broker, struct broker_box *box, uint64_t ticket,
                      struct keeper_answer *answer)
{
    if (answer->end == INJECT_OK && move(broker, &box->keep.cgroup, answer->pid) < 0) {
        answer->end = INJECT_REFUSED;
        answer->error = errno;
        order_drop(box, answer->state, ticket);
    }
    if (answer->end == INJECT_OK) {
        box->keep.parked[answer->state] = answer->pid;
        box->keep.ticket[answer->state] = ticket;
        box->keep.kept = true;
    }
    tell_kept(broker, box, BOX_NEWS_PARKED, ticket, answer);
    broker_recall_death(broker, answer->pid);
}

static void on_prepared(struct broker *broker, struct broker_box *box, uint64_t ticket,
                        struct keeper_answer *answer)
{
    box->keep.spare = answer->end == INJECT_OK ? answer->pid : 0;
    tell_kept(broker, box, BOX_NEWS_PREPARED, ticket, answer);
}

static void on_copied(struct broker *broker, struct broker_box *box, uint64_t ticket,
                      struct keeper_answer *answer)
{
    struct broker_keep *keep = &box->keep;
    own_fd words = take_fd(&keep->channel[BOX_WORDS]);
    own_fd requests = take_fd(&keep->channel[BOX_REQUESTS]);
    keep->spare = answer->end == INJECT_OK ? answer->pid : 0;
    const struct keeper_order wake = { .op = KEEPER_WAKE, .state = answer->state,
                                       .ticket = ticket };
    const int channel[BOX_CHANNEL] = { words, requests };
    if (answer->end == INJECT_OK &&
        (move(broker, &box->cgroup, answer->pid) < 0 || send_order(box, &wake, channel) < 0)) {
        answer->end = INJECT_REFUSED;
        answer->error = errno;
    }
    keep->waking = answer->end == INJECT_OK;
    if (!keep->waking)
        tell_kept(broker, box, BOX_NEWS_AWAKE, ticket, answer);
}

static void on_awake(struct broker *broker, struct broker_box *box, uint64_t ticket,
                     struct keeper_answer *answer)
{
    box->keep.waking = false;
    box->keep.spare = 0;
    if (answer->end == INJECT_OK) {
        box->occupant = answer->pid;
        box->started = true;
        box->sweep.again_ns = 0; /* a sweep in progress has not seen it */
    }
    tell_kept(broker, box, BOX_NEWS_AWAKE, ticket, answer);
    broker_recall_death(broker, answer->end == INJECT_OK ? answer->pid : 0);
}

static void on_dropped(struct broker *broker, struct broker_box *box, uint64_t ticket,
                       struct keeper_answer *answer)
{
    (void)broker;
    (void)ticket;
    if (answer->end == INJECT_OK) /* else there is another copy */
        box->keep.parked[answer->state] = 0;
}

/* The sweep looks for remaining processes in any case; without a warden no copy can be spared. */
static void on_swept(struct broker *broker, struct broker_box *box, uint64_t ticket,
                     struct keeper_answer *answer)
{
    (void)broker;
    (void)ticket;
    if (answer->end != INJECT_OK)
        broker_keep_kill(box);
}

/* If the other process died, its own box reports that. */
static void on_transplanted(struct broker *broker, struct broker_box *box, uint64_t ticket,
                            struct keeper_answer *answer)
{
    tell_kept(broker, box, BOX_NEWS_FORKED_INTO, ticket, answer);
}

static const struct {
    void (*take)(struct broker *broker, struct broker_box *box, uint64_t ticket,
                 struct keeper_answer *answer);
    uint32_t news; /* that reports a failure; 0: none */
} answers[] = {
    [KEEPER_PARK] = { on_parked, BOX_NEWS_PARKED },
    [KEEPER_PREPARE] = { on_prepared, BOX_NEWS_PREPARED },
    [KEEPER_COPY] = { on_copied, BOX_NEWS_AWAKE },
    [KEEPER_WAKE] = { on_awake, BOX_NEWS_AWAKE },
    [KEEPER_DROP] = { on_dropped, 0 },
    [KEEPER_SWEEP] = { on_swept, 0 },
    [KEEPER_TRANSPLANT] = { on_transplanted, BOX_NEWS_FORKED_INTO },
};

void broker_keep_hear(struct broker *broker, uint32_t id)
{
    struct broker_box *box = &broker->box[id];
    struct broker_keep *keep = &box->keep;
    struct keeper_answer answer;
    size_t none = 0;
    if (!box->used || keep->sock < 0)
        return; /* it ended in this same round */
    const struct broker_keep_order order = keep->order[keep->answered % BROKER_KEEP_ORDERS];
    if (io_recv(keep->sock, &answer, sizeof answer, NULL, 0, &none) != 1 ||
        keep->answered == keep->ordered || answer.state != order.state) {
        own_close_fd(&keep->sock);
        broker_keep_kill(box);
        return;
    }
    keep->answered++;
    keep->until_ns = clock_now_ns() + BROKER_PATIENCE_MS * CLOCK_MS;
    answers[order.op].take(broker, box, order.ticket, &answer);
}

void broker_keep_over(struct broker *broker, uint32_t id)
{
    struct broker_box *box = &broker->box[id];
    struct broker_keep *keep = &box->keep;
    struct box_news news = { .kind = BOX_NEWS_KEEPER_GONE, .box = id };
    struct pollfd last = { .fd = keep->sock, .events = POLLIN };
    /* The keeper's last answers still count. */
    while (keep->sock >= 0 && poll(&last, 1, 0) == 1)
        broker_keep_hear(broker, id);
    own_close_fd(&keep->sock);
    forget_channel(keep);
    while (keep->answered != keep->ordered) {
        const struct broker_keep_order order = keep->order[keep->answered++ % BROKER_KEEP_ORDERS];
        if (answers[order.op].news)
            tell_refused(broker, box, answers[order.op].news, &order, ECHILD);
    }
    keep->waking = false;
    keep->spare = 0;
    memset(keep->parked, 0, sizeof keep->parked);
    if (keep->kept && !box->releasing)
        broker_tell(broker, &news, NULL, 0);
}

/* An unanswered order may have dropped the state just now: then the engine ignores the ticket. */
static void tell_lost(const struct broker *broker, const struct broker_box *box, uint32_t state)
{
    struct box_news news = { .kind = BOX_NEWS_STATE_LOST, .box = (uint32_t)(box - broker->box),
                             .state = state, .ticket = box->keep.ticket[state] };
    if (!box->releasing)
        broker_tell(broker, &news, NULL, 0);
}

bool broker_keep_forget(struct broker *broker, pid_t pid)
{
    for (int i = 0; i < BOX_MAX; i++) {
        struct broker_box *box = &broker->box[i];
        if (box->used && box->keep.spare == pid)
            box->keep.spare = 0; /* WAKE makes another; or the copy was woken, and the answer is
                                  * on its way */
        for (uint32_t j = 0; box->used && box->keep.keeper && j < BOX_STATES; j++) {
            if (box->keep.parked[j] == pid) {
                box->keep.parked[j] = 0;
                tell_lost(broker, box, j);
                return true;
            }
        }
    }
    return false;
}

void broker_keep_release(struct broker *broker, struct broker_box *box, int64_t until_ns)
{
    struct broker_keep *keep = &box->keep;
    broker_child_reap(&keep->keeper, until_ns);
    broker_child_reap(&keep->warden, until_ns);
    own_close_fd(&keep->sock);
    forget_channel(keep);
    if (keep->cgroup.name[0])
        cgroup_close(&broker->bases, &keep->cgroup);
}
