/* The broker: the only process that builds, starts, kills and measures boxes. It is pid 1 of its
 * own pid namespace, so its death ends everything; uid 0 of the user namespace W; single-threaded.
 * It parses nothing free-form: fixed structs from the engine, fixed structs from its own children
 * before they exec, numbers from the kernel. Any other message ends it. */
#include "box/broker/broker.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/own.h"
#include "box/broker/broker_store.h"
#include "box/inside/mount_image.h"

#define FIRST_LOOK_MS 50
#define LATE_LOOK_MS 1000
#define SWEEP_LOOK_MS 1

static struct broker broker;

static void on_create(const struct box_call *call, const int *fds)
{
    enum box_step step = broker_box_create(&broker, call->box, call, fds);
    if (step)
        broker_tell_failure(&broker, call->box, step);
}

static void on_start(const struct box_call *call, const int *fds)
{
    bool execs = call->op == BOX_OP_START;
    enum box_step step = broker_box_start(&broker, call->box, call, execs ? fds[0] : -1,
                                          fds + execs);
    if (step)
        broker_tell_failure(&broker, call->box, step);
}

static void on_zygote(const struct box_call *call, const int *fds)
{
    broker_zygote_over(&broker, call->box); /* a retired zygote that has not ended yet */
    enum box_step step = broker_zygote_start(&broker, call->box, call, fds);
    if (step)
        broker_tell_zygote_gone(&broker, call->box, step);
}

static void on_retire(const struct box_call *call, const int *fds)
{
    struct broker_zygote *zygote = &broker.zygote[call->box];
    (void)fds;
    zygote->retired = true;
    if (zygote->answered == zygote->ordered)
        broker_zygote_over(&broker, call->box);
}

static void on_porter(const struct box_call *call, const int *fds)
{
    struct box_news news = { .kind = BOX_NEWS_PORTER, .box = call->box };
    own_fd sock = -1;
    (void)fds;
    enum box_step step = broker_store_porter(&broker, call, &sock);
    if (step)
        broker_tell_failure(&broker, call->box, step);
    else
        broker_tell(&broker, &news, &sock, 1);
}

static void on_begin(const struct box_call *call, const int *fds)
{
    struct broker_box *box = &broker.box[call->box];
    (void)fds;
    box->started = true;
    box->cpu_us_waited += broker_watch_cpu_us(box, /* brief= */ true); /* the occupant is still
                                                                        * alone */
}

static void on_signal(const struct box_call *call, const int *fds)
{
    const struct broker_box *box = &broker.box[call->box];
    (void)fds;
    /* The occupant leads its own session: its group holds the processes it started. */
    if (box->occupant > 0 && (call->signal.signal == SIGINT || call->signal.signal == SIGURG))
        kill(-box->occupant, call->signal.signal);
}

static void on_stat(const struct box_call *call, const int *fds)
{
    struct box_news news = { .kind = BOX_NEWS_STAT, .box = call->box };
    struct broker_box *box = &broker.box[call->box];
    (void)fds;
    if (broker_watch_wanted(box)) {
        int64_t seen = broker_watch_cpu_us(box, call->stat.brief) - box->cpu_us_waited;
        box->cpu_us_seen = seen > box->cpu_us_seen ? seen : box->cpu_us_seen;
        if (!call->stat.brief)
            broker_watch_glance(box, /* gone= */ false);
    }
    broker_box_stats(box, &news.stats);
    broker_tell(&broker, &news, NULL, 0);
}

static void on_keep(const struct box_call *call, const int *fds)
{
    broker_keep_order(&broker, call, call->op == BOX_OP_WAKE ? fds : NULL);
}

static void on_sweep(const struct box_call *call, const int *fds)
{
    (void)fds;
    broker_sweep(&broker, call->box, /* asked= */ true);
}

static void on_freeze(const struct box_call *call, const int *fds)
{
    (void)fds;
    broker_freeze(&broker, call->box, call->freeze.on);
}

static void on_kill(const struct box_call *call, const int *fds)
{
    (void)fds;
    broker_box_kill(&broker.box[call->box], !call->kill.plain);
}

static void on_release(const struct box_call *call, const int *fds)
{
    (void)fds;
    broker_box_release(&broker, call->box);
}

/* A zygote may die while a call for it is on its way; a box exists until it is released. */
enum target { FREE_BOX, USED_BOX, FREE_ZYGOTE, ANY_ZYGOTE };

static const struct {
    void (*run)(const struct box_call *call, const int *fds);
    enum target target;
    size_t fds; /* exact number beside the plants */
} calls[] = {
    [BOX_OP_CREATE] = { on_create, FREE_BOX, 0 },
    [BOX_OP_PORTER] = { on_porter, USED_BOX, 0 },
    [BOX_OP_START] = { on_start, USED_BOX, 1 + BOX_CHANNEL },
    [BOX_OP_SIGNAL] = { on_signal, USED_BOX, 0 },
    [BOX_OP_STAT] = { on_stat, USED_BOX, 0 },
    [BOX_OP_KILL] = { on_kill, USED_BOX, 0 },
    [BOX_OP_RELEASE] = { on_release, USED_BOX, 0 },
    [BOX_OP_BEGIN] = { on_begin, USED_BOX, 0 },
    [BOX_OP_FORK] = { on_start, USED_BOX, BOX_CHANNEL },
    [BOX_OP_ZYGOTE] = { on_zygote, FREE_ZYGOTE, 1 },
    [BOX_OP_RETIRE] = { on_retire, ANY_ZYGOTE, 0 },
    [BOX_OP_PARK] = { on_keep, USED_BOX, 0 },
    [BOX_OP_WAKE] = { on_keep, USED_BOX, BOX_CHANNEL },
    [BOX_OP_DROP] = { on_keep, USED_BOX, 0 },
    [BOX_OP_PREPARE] = { on_keep, USED_BOX, 0 },
    [BOX_OP_FORK_INTO] = { on_keep, USED_BOX, 0 },
    [BOX_OP_SWEEP] = { on_sweep, USED_BOX, 0 },
    [BOX_OP_FREEZE] = { on_freeze, USED_BOX, 0 },
};

static bool names_are_plain(const struct box_plants *plants)
{
    for (uint32_t i = 0; i < plants->count; i++) {
        const char *name = plants->name[i];
        if (!memchr(name, 0, BOX_PLANT_NAME) || strchr(name, '/') || name[0] == '.' || !name[0])
            return false;
    }
    const char *list = plants->font_list;
    return memchr(list, 0, BOX_PLANT_NAME) && !strchr(list, '/') && list[0] != '.';
}

static bool target_fits(const struct box_call *call)
{
    enum target target = calls[call->op].target;
    bool is_box = target == FREE_BOX || target == USED_BOX;
    if (call->box >= (is_box ? BOX_MAX : BOX_ZYGOTES_MAX))
        return false;
    if (call->op == BOX_OP_FORK && call->start.zygote >= BOX_ZYGOTES_MAX)
        return false;
    bool keeps = call->op >= BOX_OP_PARK && call->op <= BOX_OP_FORK_INTO;
    if (keeps && (call->keep.state >= BOX_STATES || call->keep.to >= BOX_MAX))
        return false;
    if (is_box)
        return broker.box[call->box].used == (target == USED_BOX);
    const struct broker_zygote *zygote = &broker.zygote[call->box];
    return target == ANY_ZYGOTE || !zygote->used || zygote->retired;
}

static bool shape_fits(const struct box_call *call, size_t *fds)
{
    if (call->op == BOX_OP_ZYGOTE)
        return mount_is_host(&call->zygote.image); /* no zygote runs files that are anybody's */
    if (call->op != BOX_OP_CREATE)
        return true;
    const struct box_folder *folder = &call->create.folder;
    if (folder->places)
        *fds -= 1; /* it follows the plants */
    return mount_image_valid(&call->create.image) && folder->mode <= BOX_FOLDER_WRITE &&
           folder->places <= 1;
}

static bool well_formed(const struct box_call *call, size_t fds)
{
    static const struct box_plants none;
    if (call->op < BOX_OP_CREATE || call->op >= sizeof calls / sizeof calls[0] ||
        !target_fits(call) || !shape_fits(call, &fds))
        return false;
    const struct box_plants *plants = call->op == BOX_OP_CREATE   ? &call->create.plants
                                      : call->op == BOX_OP_ZYGOTE ? &call->zygote.plants
                                                                  : &none;
    return plants->count <= BOX_PLANTS_MAX && names_are_plain(plants) &&
           fds == plants->count + calls[call->op].fds;
}

static void on_engine(void)
{
    struct box_call call;
    int fds[IO_FDS_MAX];
    size_t count = 0;
    int got = io_recv(broker.engine, &call, sizeof call, fds, IO_FDS_MAX, &count);
    if (got <= 0 || !well_formed(&call, count))
        _exit(got == 0 ? 0 : 73);
    calls[call.op].run(&call, fds);
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
}

static void on_children(int signals)
{
    struct signalfd_siginfo info[8];
    if (read(signals, info, sizeof info) < 0 && errno != EAGAIN)
        _exit(74);
    while (broker_reap(&broker))
        continue;
}

static void on_oom(uint32_t id)
{
    broker_take_oom(&broker, id);
}

static void on_keeper(uint32_t id)
{
    broker_keep_hear(&broker, id);
}

static void on_zygote_word(uint32_t id)
{
    struct broker_zygote *zygote = &broker.zygote[id];
    struct box_news news = { .kind = BOX_NEWS_ZYGOTE, .box = id };
    uint32_t box;
    pid_t pid;
    if (!zygote->used)
        return; /* it ended in this same round */
    if (zygote->ready && broker_zygote_answer(zygote, &box, &pid)) {
        broker_take_fork(&broker, box, pid);
        if (zygote->retired && zygote->answered == zygote->ordered)
            broker_zygote_over(&broker, id);
        return;
    }
    if (!zygote->ready && broker_zygote_hear(zygote)) {
        broker_tell(&broker, &news, NULL, 0);
        return;
    }
    int why = errno;
    bool retired = zygote->retired;
    broker_zygote_over(&broker, id);
    errno = why;
    if (!retired)
        broker_tell_zygote_gone(&broker, id, BOX_STEP_ZYGOTE);
}

/* Everything the loop waits for: the engine, children, v1 groups that run out of memory, reports of
 * boxes under construction, keepers, zygotes. */
struct waits {
    struct pollfd at[2 + 3 * BOX_MAX + BOX_ZYGOTES_MAX];
    struct wait {
        void (*serve)(uint32_t id);
        uint32_t id;
    } whose[2 + 3 * BOX_MAX + BOX_ZYGOTES_MAX];
    nfds_t count;
    int patience_ms;
};

static void add_wait(struct waits *waits, int fd, void (*serve)(uint32_t id), uint32_t id)
{
    waits->whose[waits->count] = (struct wait){ serve, id };
    waits->at[waits->count++] = (struct pollfd){ .fd = fd, .events = POLLIN };
}

static void on_word_in_time(uint32_t id)
{
    if (broker.box[id].stage != BROKER_STILL)
        broker_take_word(&broker, id, /* late= */ false);
}

static void gather(struct waits *waits, int signals)
{
    waits->count = 0;
    waits->patience_ms = -1;
    add_wait(waits, broker.engine, NULL, 0);
    if (broker_tell_waits())
        waits->at[0].events |= POLLOUT;
    add_wait(waits, signals, NULL, 0);
    for (uint32_t i = 0; i < BOX_ZYGOTES_MAX; i++) {
        if (broker.zygote[i].used)
            add_wait(waits, broker.zygote[i].sock, on_zygote_word, i);
    }
    for (uint32_t i = 0; i < BOX_MAX; i++) {
        const struct broker_box *box = &broker.box[i];
        if (!box->used)
            continue;
        if (broker_watch_wanted(box))
            waits->patience_ms = (int)broker.pause_ms;
        else if (box->stage != BROKER_STILL && waits->patience_ms < 0)
            waits->patience_ms = LATE_LOOK_MS;
        if (box->keep.ordered != box->keep.answered && waits->patience_ms < 0)
            waits->patience_ms = LATE_LOOK_MS;
        if (box->cgroup.oom_event >= 0)
            add_wait(waits, box->cgroup.oom_event, on_oom, i);
        if (box->keep.sock >= 0)
            add_wait(waits, box->keep.sock, on_keeper, i);
        if (box->stage != BROKER_STILL && box->stage != BROKER_FORKING)
            add_wait(waits, box->word, on_word_in_time, i);
    }
}

/* Kills a zygote that does not answer: other boxes cannot use it either. */
static void look(void)
{
    int64_t now = clock_now_ns();
    broker.pause_ms = broker_watch_all(&broker);
    for (uint32_t i = 0; i < BOX_MAX; i++) {
        struct broker_box *box = &broker.box[i];
        bool late = box->used && box->stage != BROKER_STILL && now > box->word_until_ns;
        broker_keep_hurry(box, now);
        if (late && box->stage != BROKER_FORKING)
            broker_take_word(&broker, i, /* late= */ true);
        for (uint32_t j = 0; late && j < BOX_ZYGOTES_MAX; j++) {
            const struct broker_zygote *zygote = &broker.zygote[j];
            if (zygote->pid > 0 && zygote->answered != zygote->ordered &&
                zygote->order[zygote->answered % BOX_MAX] == i)
                kill(zygote->pid, SIGKILL);
        }
    }
}

static int patience_ms(const struct waits *waits)
{
    int due_ms = broker_due_patience_ms(&broker), freeze_ms = broker_freeze_patience_ms(&broker);
    due_ms = freeze_ms < due_ms ? freeze_ms : due_ms;
    return waits->patience_ms >= 0 && waits->patience_ms < due_ms ? waits->patience_ms : due_ms;
}

int main(void)
{
    static struct waits waits;
    int signals[1];
    broker_set_up(&broker, signals);
    broker.pause_ms = FIRST_LOOK_MS;
    for (;;) {
        gather(&waits, signals[0]);
        bool sweeping = broker_sweep_active(&broker);
        int ready = poll(waits.at, waits.count, sweeping ? SWEEP_LOOK_MS : patience_ms(&waits));
        if (ready < 0 && errno != EINTR)
            _exit(74);
        int64_t now = clock_now_ns();
        if (waits.patience_ms >= 0 && now >= broker.watch_ns)
            look();
        if (waits.patience_ms < 0 || now >= broker.watch_ns)
            broker.watch_ns = clock_now_ns() + broker.pause_ms * CLOCK_MS;
        for (nfds_t i = 2; ready > 0 && i < waits.count; i++) {
            if (waits.at[i].revents)
                waits.whose[i].serve(waits.whose[i].id);
        }
        if (ready > 0 && waits.at[1].revents)
            on_children(signals[0]);
        broker_sweep_look(&broker);
        if (ready > 0 && waits.at[0].revents & POLLOUT)
            broker_tell_rest(&broker);
        if (ready > 0 && waits.at[0].revents & ~POLLOUT)
            on_engine();
        broker_freeze_look(&broker);
        broker_due_look(&broker); /* last: the engine's own calls come first */
    }
}
