/* The broker: the only process that builds, starts, kills and measures boxes. It
 * is pid 1 of its own pid namespace, so its death takes everything with it; uid 0
 * of the user namespace W; single-threaded; and parses nothing free-form: fixed
 * structs from the engine, fixed structs from its own children before they exec,
 * numbers from the kernel. A message that is not as agreed ends it. */
#include "box/broker.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/securebits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/own.h"
#include "box/boot.h"
#include "box/mutate.h"

#define WATCH_MS 50

static struct broker broker;

static void tell(const struct box_news *news, const int *fds, size_t count)
{
    if (io_send(broker.engine, news, sizeof *news, fds, count) < 0)
        _exit(0); /* the engine is gone: so is everything else, with us */
}

static void tell_failure(uint32_t id, enum box_step step)
{
    struct box_news news = { .kind = BOX_NEWS_FAILED, .box = id, .step = step, .error = errno };
    tell(&news, NULL, 0);
}

static void tell_zygote_gone(uint32_t id, enum box_step step)
{
    struct box_news news = { .kind = BOX_NEWS_ZYGOTE_GONE, .box = id, .step = step,
                             .error = errno };
    tell(&news, NULL, 0);
}

static void on_create(const struct box_call *call, const int *fds)
{
    struct box_news news = { .kind = BOX_NEWS_READY, .box = call->box };
    enum box_step step = broker_box_create(&broker, call->box, call, fds);
    if (step) {
        tell_failure(call->box, step);
        return;
    }
    news.walls = broker.box[call->box].walls;
    tell(&news, NULL, 0);
}

static void on_start(const struct box_call *call, const int *fds)
{
    struct box_news news = { .kind = BOX_NEWS_STARTED, .box = call->box };
    int out[BOX_NEWS_FDS], sent[BOX_NEWS_FDS];
    size_t count = 0;
    for (int i = 0; i < BOX_NEWS_FDS; i++)
        out[i] = -1;
    enum box_step step = broker_box_start(&broker, call->box, call,
                                          call->op == BOX_OP_START ? fds[0] : -1, &news, out);
    if (step) {
        tell_failure(call->box, step);
        return;
    }
    for (int i = 0; i < BOX_NEWS_FDS; i++) {
        if (out[i] >= 0) {
            news.fds |= 1u << i;
            sent[count++] = out[i];
        }
    }
    tell(&news, sent, count);
    broker_child_close(sent, (int)count);
}

static void on_zygote(const struct box_call *call, const int *fds)
{
    enum box_step step = broker_zygote_start(&broker, call->box, call, fds);
    if (step)
        tell_zygote_gone(call->box, step);
}

static void on_retire(const struct box_call *call, const int *fds)
{
    (void)fds;
    broker_zygote_end(&broker, call->box);
}

static void on_porter(const struct box_call *call, const int *fds)
{
    struct box_news news = { .kind = BOX_NEWS_PORTER, .box = call->box };
    own_fd sock = -1;
    (void)fds;
    enum box_step step = broker_box_porter(&broker, call->box, call->porter.collect, &sock);
    if (step)
        tell_failure(call->box, step);
    else
        tell(&news, &sock, 1);
}

static void on_begin(const struct box_call *call, const int *fds)
{
    struct broker_box *box = &broker.box[call->box];
    (void)fds;
    box->started = true;
    if (broker_watch_wanted(box))
        box->cpu_us_waited = broker_watch_cpu_us(box);
}

static void on_signal(const struct box_call *call, const int *fds)
{
    const struct broker_box *box = &broker.box[call->box];
    (void)fds;
    /* The occupant leads a session of its own: its group is what it started. */
    if (box->occupant > 0 && (call->signal.signal == SIGINT || call->signal.signal == SIGTERM))
        kill(-box->occupant, call->signal.signal);
}

static void on_stat(const struct box_call *call, const int *fds)
{
    struct box_news news = { .kind = BOX_NEWS_STAT, .box = call->box };
    struct broker_box *box = &broker.box[call->box];
    (void)fds;
    if (broker_watch_wanted(box)) {
        int64_t seen = broker_watch_cpu_us(box) - box->cpu_us_waited;
        box->cpu_us_seen = seen > box->cpu_us_seen ? seen : box->cpu_us_seen;
    }
    broker_box_stats(box, &news.stats);
    tell(&news, NULL, 0);
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

/* A zygote may die while a call for it is on its way; boxes live until they are
 * released, whatever dies in them. */
enum target { FREE_BOX, USED_BOX, FREE_ZYGOTE, ANY_ZYGOTE };

static const struct {
    void (*run)(const struct box_call *call, const int *fds);
    enum target target;
    size_t fds; /* exactly so many beside the plants */
} calls[] = {
    [BOX_OP_CREATE] = { on_create, FREE_BOX, 0 },
    [BOX_OP_PORTER] = { on_porter, USED_BOX, 0 },
    [BOX_OP_START] = { on_start, USED_BOX, 1 },
    [BOX_OP_SIGNAL] = { on_signal, USED_BOX, 0 },
    [BOX_OP_STAT] = { on_stat, USED_BOX, 0 },
    [BOX_OP_KILL] = { on_kill, USED_BOX, 0 },
    [BOX_OP_RELEASE] = { on_release, USED_BOX, 0 },
    [BOX_OP_BEGIN] = { on_begin, USED_BOX, 0 },
    [BOX_OP_FORK] = { on_start, USED_BOX, 0 },
    [BOX_OP_ZYGOTE] = { on_zygote, FREE_ZYGOTE, 1 },
    [BOX_OP_RETIRE] = { on_retire, ANY_ZYGOTE, 0 },
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
    if (is_box)
        return broker.box[call->box].used == (target == USED_BOX);
    return target == ANY_ZYGOTE || !broker.zygote[call->box].used;
}

static bool well_formed(const struct box_call *call, size_t fds)
{
    static const struct box_plants none;
    if (call->op < BOX_OP_CREATE || call->op >= sizeof calls / sizeof calls[0] ||
        !target_fits(call))
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

static struct broker_box *box_of(pid_t pid, pid_t **out_place)
{
    for (int i = 0; i < BOX_MAX; i++) {
        struct broker_box *box = &broker.box[i];
        pid_t *places[] = { &box->init, &box->occupant, &box->porter };
        for (size_t j = 0; box->used && j < 3; j++) {
            if (*places[j] == pid) {
                *out_place = places[j];
                return box;
            }
        }
    }
    return NULL;
}

static void on_zygote_death(pid_t pid)
{
    for (uint32_t i = 0; i < BOX_ZYGOTES_MAX; i++) {
        if (broker.zygote[i].used && broker.zygote[i].pid == pid) {
            broker.zygote[i].pid = 0;
            broker_zygote_end(&broker, i);
            errno = ECHILD;
            tell_zygote_gone(i, BOX_STEP_ZYGOTE);
        }
    }
}

static void on_death(pid_t pid, int status, const struct rusage *used)
{
    pid_t *place = NULL;
    struct broker_box *box = box_of(pid, &place);
    if (!box) {
        on_zygote_death(pid);
        return;
    }
    uint32_t id = (uint32_t)(box - broker.box);
    *place = 0;
    if (place == &box->occupant) {
        int64_t spent = (used->ru_utime.tv_sec + used->ru_stime.tv_sec) * 1000000ll +
                        used->ru_utime.tv_usec + used->ru_stime.tv_usec - box->cpu_us_waited;
        box->cpu_us_seen = spent > box->cpu_us_seen ? spent : box->cpu_us_seen;
        struct box_news news = { .kind = BOX_NEWS_EXITED, .box = id };
        news.by_signal = WIFSIGNALED(status);
        news.status = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
        broker_box_stats(box, &news.stats);
        tell(&news, NULL, 0);
    }
    if (place == &box->init)
        /* Whoever killed it: the rest must go, and be waited for. */
        broker_box_kill(box, /* lift= */ true);
    if (!box->init && !box->occupant && !box->empty && box->killed_at_ns) {
        struct box_news news = { .kind = BOX_NEWS_EMPTY, .box = id };
        box->empty = true;
        box->kill_to_empty_us = (clock_now_ns() - box->killed_at_ns) / 1000;
        broker_box_stats(box, &news.stats);
        tell(&news, NULL, 0);
    }
}

static void on_children(int signals)
{
    struct signalfd_siginfo info[8];
    if (read(signals, info, sizeof info) < 0 && errno != EAGAIN)
        _exit(74);
    for (;;) {
        int status;
        struct rusage used;
        pid_t pid = wait4(-1, &status, WNOHANG | __WALL, &used);
        if (pid < 0 && errno == EINTR)
            continue;
        if (pid <= 0)
            return;
        on_death(pid, status, &used);
    }
}

static void on_oom(struct broker_box *box)
{
    uint64_t times;
    if (read(box->cgroup.oom_event, &times, sizeof times) == sizeof times) {
        box->oom_seen = true;
        if (!mutate(OOM_KILLS_ALL))
            broker_box_kill(box, /* lift= */ true);
    }
}

static void watch(void)
{
    for (int i = 0; i < BOX_MAX; i++) {
        struct broker_box *box = &broker.box[i];
        if (broker_watch_wanted(box) && broker_watch_memory(box) > box->memory_bytes) {
            box->oom_seen = true;
            broker_box_kill(box, /* lift= */ true);
        }
    }
}

static void on_zygote_word(uint32_t id)
{
    struct broker_zygote *zygote = &broker.zygote[id];
    struct box_news news = { .kind = BOX_NEWS_ZYGOTE, .box = id };
    if (broker_zygote_hear(zygote)) {
        tell(&news, NULL, 0);
        return;
    }
    int why = errno;
    broker_zygote_end(&broker, id);
    errno = why;
    tell_zygote_gone(id, BOX_STEP_ZYGOTE);
}

/* Many boxes need many descriptors; the occupants get a limit of their own. Pids of
 * ours should not look like those in a box, where they start at 1: what remembers
 * its pid to notice a fork would not notice the one from a zygote. */
static void make_room(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    own_fd last = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
    if (last >= 0 && io_write_all(last, "1000", 4) < 0)
        return; /* a comfort, not a need: what we know of is told of the fork */
}

static void set_up(int signals[1])
{
    struct box_call call;
    int fds[1 + BOX_CG_COUNT];
    size_t count = 0, next = 1;
    prctl(PR_SET_NAME, "cupel-broker");
    umask(022); /* what we lay out is for boxes to read; the caller's may forbid it */
    if (mutate(USER_NS)) /* boxes change uids in our own user namespace, and go on with power */
        prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0);
    broker.engine = BOOT_FD_ENGINE;
    if (io_recv(broker.engine, &call, sizeof call, fds, 1 + BOX_CG_COUNT, &count) != 1 ||
        call.op != BOX_OP_SETUP || count < 1)
        _exit(73);
    broker.init_program = fds[0];
    broker.two_ids = call.setup.uid_count > 1;
    broker.bases.v2_controllers = call.setup.v2_controllers;
    for (int i = 0; i < BOX_CG_COUNT; i++) {
        bool given = (call.setup.cgroups & 1u << i) && next < count;
        broker.bases.fd[i] = given ? fds[next++] : -1;
    }
    char first = 0;
    make_room();
    own_fd pattern = open("/proc/sys/kernel/core_pattern", O_RDONLY | O_CLOEXEC);
    broker.piped_core = pattern >= 0 && read(pattern, &first, 1) == 1 && first == '|';
    broker.own_pid_ns = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
    signal(SIGCHLD, SIG_DFL); /* ignored by our caller, it would reap behind our back */
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    sigprocmask(SIG_SETMASK, &children, NULL);
    signals[0] = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    if (broker.own_pid_ns < 0 || posture_read_ns(&broker.outside) < 0 || signals[0] < 0 ||
        (!mutate(BROKER_DUMPABLE) && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0))
        _exit(74);
}

/* What there is to wait for: the engine, our children, v1 groups that run out of
 * memory, zygotes that are not ready yet. */
struct waits {
    struct pollfd at[2 + BOX_MAX + BOX_ZYGOTES_MAX];
    uint32_t id[2 + BOX_MAX + BOX_ZYGOTES_MAX];
    nfds_t boxes, count; /* the first two, then boxes, then zygotes */
    int patience_ms;
};

static void gather(struct waits *waits, int signals)
{
    waits->at[0] = (struct pollfd){ .fd = broker.engine, .events = POLLIN };
    waits->at[1] = (struct pollfd){ .fd = signals, .events = POLLIN };
    waits->count = 2;
    waits->patience_ms = -1;
    for (uint32_t i = 0; i < BOX_MAX; i++) {
        const struct broker_box *box = &broker.box[i];
        if (broker_watch_wanted(box))
            waits->patience_ms = WATCH_MS;
        if (!box->used || box->cgroup.oom_event < 0)
            continue;
        waits->id[waits->count] = i;
        waits->at[waits->count++] = (struct pollfd){ box->cgroup.oom_event, POLLIN, 0 };
    }
    waits->boxes = waits->count;
    for (uint32_t i = 0; i < BOX_ZYGOTES_MAX; i++) {
        if (!broker.zygote[i].used || broker.zygote[i].ready)
            continue;
        waits->id[waits->count] = i;
        waits->at[waits->count++] = (struct pollfd){ broker.zygote[i].sock, POLLIN, 0 };
    }
}

int main(void)
{
    static struct waits waits;
    int signals[1];
    set_up(signals);
    for (;;) {
        gather(&waits, signals[0]);
        int ready = poll(waits.at, waits.count, waits.patience_ms);
        if (ready < 0 && errno != EINTR)
            _exit(74);
        if (waits.patience_ms >= 0)
            watch();
        for (nfds_t i = 2; ready > 0 && i < waits.count; i++) {
            if (waits.at[i].revents && i < waits.boxes)
                on_oom(&broker.box[waits.id[i]]);
            else if (waits.at[i].revents)
                on_zygote_word(waits.id[i]);
        }
        if (ready > 0 && waits.at[1].revents)
            on_children(signals[0]);
        if (ready > 0 && waits.at[0].revents)
            on_engine();
    }
}
