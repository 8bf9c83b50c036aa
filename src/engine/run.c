/* One run: the engine's loop around one box. All descriptors are non-blocking and
 * meet in one epoll: a box that floods, drips, stalls or lies costs only itself.
 *
 * Order: build, files in, start, loop until the occupant ended and the box is
 * empty, drain, collect, decide. Whatever ends a run, the box is killed and seen
 * empty before its result is made: nothing can change afterwards. */
#include "engine/engine_int.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "engine/driver.h"
#include "engine/files.h"
#include "engine/notify.h"
#include "engine/plan.h"

#define CHUNK 65536
#define CPU_LOOK_MS 10 /* the least time between two looks at the CPU counter */

enum source { IN, OUT, ERR, CONTROL, LISTENER, BROKER, TIMER, INTERRUPT, SOURCES };

struct run {
    struct engine *engine;
    const struct request *request;
    const struct engine_hooks *hooks;
    struct result *result;
    struct result_facts facts;
    uint32_t box;
    int epoll, timer;
    int fd[SOURCES]; /* -1: closed or none; BROKER, TIMER and INTERRUPT are not ours */
    struct str to_stdin, to_control;
    struct driver driver;
    struct notify notify;
    struct buf spill[2]; /* whole stdout and stderr, up to the artifact cap */
    struct box_stats stats;
    int64_t started_ns, deadline_ns, cpu_look_ns;
    int interrupts;
    bool created, occupant_gone, empty, killed;
    bool broken; /* we failed: err says how */
};

static int64_t limit(const struct run *run, enum limits_id id)
{
    return run->request->limits.value[id];
}

static void drop_source(struct run *run, enum source source)
{
    if (run->fd[source] < 0)
        return;
    epoll_ctl(run->epoll, EPOLL_CTL_DEL, run->fd[source], NULL);
    if (source <= LISTENER)
        close(run->fd[source]);
    run->fd[source] = -1;
}

static int add_source(struct run *run, enum source source, int fd, uint32_t events)
{
    struct epoll_event event = { .events = events, .data.u32 = source };
    run->fd[source] = fd;
    return epoll_ctl(run->epoll, EPOLL_CTL_ADD, fd, &event);
}

static int call_broker(struct run *run, enum box_op op, struct err *err)
{
    struct box_call call = { .op = op, .box = run->box };
    return box_send(&run->engine->broker, &call, NULL, 0, err);
}

static void kill_box(struct run *run, enum result_status why)
{
    struct err err = ERR_INIT;
    if (run->killed)
        return;
    run->killed = true;
    run->facts.killed_for = why;
    if (call_broker(run, BOX_OP_KILL, &err) < 0)
        run->broken = run->empty = true;
}

/* --- streams --- */

static void take_output(struct run *run, enum source source, const char *bytes, size_t len)
{
    bool out = source == OUT;
    struct result_stream *stream = out ? &run->result->out : &run->result->err_stream;
    size_t cap = (size_t)limit(run, out ? LIMITS_STDOUT : LIMITS_STDERR);
    struct buf *spill = &run->spill[out ? 0 : 1];
    size_t head = stream->head.len;
    result_stream_add(stream, cap, bytes, len);
    size_t room = spill->max - spill->len;
    buf_add(spill, bytes, len < room ? len : room);
    /* Doors show the head as it comes; the tail is theirs to show at the end. */
    struct engine_event event = {
        .kind = out ? ENGINE_STDOUT : ENGINE_STDERR,
        .bytes = { bytes, stream->head.len - head },
    };
    if (run->hooks->on_event && event.bytes.len > 0)
        run->hooks->on_event(run->hooks->user, &event);
    if (stream->truncated && run->request->on_output_limit == REQUEST_STOP)
        kill_box(run, RESULT_OUTPUT_LIMIT);
}

/* Read once; false where there is no more to read now. */
static bool read_source(struct run *run, enum source source)
{
    char bytes[CHUNK];
    ssize_t n = run->fd[source] < 0 ? -1 : read(run->fd[source], bytes, sizeof bytes);
    if (n < 0)
        return errno == EINTR;
    if (n == 0) {
        drop_source(run, source);
        return false;
    }
    if (source == CONTROL)
        driver_feed(&run->driver, bytes, (size_t)n);
    else
        take_output(run, source, bytes, (size_t)n);
    return true;
}

static void write_source(struct run *run, enum source source, struct str *left)
{
    ssize_t n = write(run->fd[source], left->at, left->len);
    if (n > 0) {
        left->at += n;
        left->len -= (size_t)n;
    }
    bool over = left->len == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
    if (!over)
        return;
    if (source == IN) {
        drop_source(run, IN);
    } else {
        struct epoll_event event = { .events = EPOLLIN, .data.u32 = CONTROL };
        left->len = 0;
        epoll_ctl(run->epoll, EPOLL_CTL_MOD, run->fd[CONTROL], &event);
    }
}

static void on_control(struct run *run, uint32_t events)
{
    if (events & EPOLLOUT && run->to_control.len > 0)
        write_source(run, CONTROL, &run->to_control);
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        read_source(run, CONTROL);
}

/* --- time --- */

static void set_timer(struct run *run)
{
    int64_t at = run->deadline_ns < run->cpu_look_ns ? run->deadline_ns : run->cpu_look_ns;
    struct itimerspec when = { .it_value = { at / 1000000000, at % 1000000000 } };
    timerfd_settime(run->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

/* The limit cannot be reached sooner than by using every allowed cpu fully. */
static void plan_cpu_look(struct run *run)
{
    int64_t left_ms = limit(run, LIMITS_CPU) - run->stats.cpu_us / 1000;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    int64_t cpus = limit(run, LIMITS_CPUS) < online * 1000 ? limit(run, LIMITS_CPUS) : online * 1000;
    int64_t wait_ms = left_ms * 1000 / (cpus > 0 ? cpus : 1000);
    run->cpu_look_ns = clock_now_ns() + (wait_ms > CPU_LOOK_MS ? wait_ms : CPU_LOOK_MS) * 1000000;
    set_timer(run);
}

static void on_timer(struct run *run)
{
    uint64_t times;
    struct err err = ERR_INIT;
    if (read(run->timer, &times, sizeof times) < 0 || run->killed)
        return;
    int64_t now = clock_now_ns();
    if (now >= run->deadline_ns) {
        kill_box(run, RESULT_TIMEOUT);
        return;
    }
    if (now >= run->cpu_look_ns) {
        run->cpu_look_ns = INT64_MAX; /* until the answer */
        if (call_broker(run, BOX_OP_STAT, &err) < 0)
            run->broken = run->empty = true;
    }
    set_timer(run);
}

static void on_stat(struct run *run, const struct box_stats *stats)
{
    run->stats = *stats;
    if (run->killed || run->occupant_gone)
        return;
    if (stats->cpu_us / 1000 >= limit(run, LIMITS_CPU))
        kill_box(run, RESULT_CPU_LIMIT);
    else
        plan_cpu_look(run);
}

/* --- news --- */

static void on_exited(struct run *run, const struct box_news *news)
{
    run->occupant_gone = true;
    run->stats = news->stats;
    run->facts.exited = !news->by_signal;
    run->facts.exit_code = news->by_signal ? -1 : news->status;
    run->facts.signal = news->by_signal ? news->status : 0;
    run->facts.disk_full = news->stats.blocks_free == 0 || news->stats.inodes_free == 0;
    run->result->wall_ms = clock_ms_between(run->started_ns, clock_now_ns());
    if (!run->killed) /* background processes end with the run */
        kill_box(run, RESULT_OK);
}

static void on_broker(struct run *run, struct err *err)
{
    struct box_news news;
    int fds[5];
    if (box_receive(&run->engine->broker, &news, fds, err) < 0) {
        run->broken = run->empty = true;
        return;
    }
    for (int i = 0; i < 5; i++)
        own_close_fd(&fds[i]); /* none are due once the run is on its way */
    if (news.box != run->box)
        return; /* the last word of an earlier box */
    if (news.kind == BOX_NEWS_EXITED)
        on_exited(run, &news);
    else if (news.kind == BOX_NEWS_STAT)
        on_stat(run, &news.stats);
    else if (news.kind == BOX_NEWS_EMPTY) {
        run->empty = true;
        run->stats = news.stats;
    }
}

static void on_interrupt(struct run *run)
{
    char byte;
    struct err err = ERR_INIT;
    struct box_call call = { .op = BOX_OP_SIGNAL, .box = run->box, .signal.signal = SIGINT };
    if (read(run->hooks->interrupt_fd, &byte, 1) != 1) {
        drop_source(run, INTERRUPT);
        return;
    }
    run->facts.interrupt_sent = true;
    if (++run->interrupts > 1)
        kill_box(run, RESULT_INTERRUPTED);
    else if (box_send(&run->engine->broker, &call, NULL, 0, &err) < 0)
        run->broken = run->empty = true;
}

static void dispatch(struct run *run, const struct epoll_event *event, struct err *err)
{
    enum source source = (enum source)event->data.u32;
    if (run->fd[source] < 0)
        return; /* closed by an earlier event of the same round */
    if (source == IN)
        write_source(run, IN, &run->to_stdin);
    else if (source == OUT || source == ERR)
        read_source(run, source);
    else if (source == CONTROL)
        on_control(run, event->events);
    else if (source == BROKER)
        on_broker(run, err);
    else if (source == TIMER)
        on_timer(run);
    else if (source == INTERRUPT)
        on_interrupt(run);
    else if (source == LISTENER) {
        notify_serve(&run->notify);
        if (run->notify.fd < 0)
            run->fd[LISTENER] = -1; /* closing took it out of the epoll */
        else if (!(event->events & EPOLLIN))
            drop_source(run, LISTENER), run->notify.fd = -1; /* nobody is left to ask */
    }
}

static void loop(struct run *run, struct err *err)
{
    struct epoll_event events[SOURCES];
    while (!run->empty) {
        int count = epoll_wait(run->epoll, events, SOURCES, -1);
        if (count < 0 && errno != EINTR) {
            err_sys(err, "wait for the box");
            run->broken = true;
            return;
        }
        for (int i = 0; i < count; i++)
            dispatch(run, &events[i], err);
    }
    /* Every writer is dead: what is in the pipes now is all there will be. */
    static const enum source last[] = { CONTROL, OUT, ERR };
    for (size_t i = 0; i < array_len(last); i++) {
        while (read_source(run, last[i]))
            continue;
    }
}

/* --- the stages before and after the loop --- */

/* Wait for one kind of news while nothing else can happen yet. */
static int await(struct run *run, enum box_news_kind kind, struct box_news *news, int fds[5],
                 struct err *err)
{
    for (;;) {
        if (box_receive(&run->engine->broker, news, fds, err) < 0)
            return -1;
        if (news->box == run->box && news->kind == BOX_NEWS_FAILED)
            return box_failure(news, err);
        if (news->box == run->box && news->kind == kind)
            return 0;
        for (int i = 0; i < 5; i++)
            own_close_fd(&fds[i]);
    }
}

static int porter(struct run *run, bool collect, struct err *err)
{
    struct box_call call = { .op = BOX_OP_PORTER, .box = run->box };
    struct box_news news;
    int fds[5];
    call.porter.collect = collect;
    if (box_send(&run->engine->broker, &call, NULL, 0, err) < 0 ||
        await(run, BOX_NEWS_PORTER, &news, fds, err) < 0)
        return -1;
    return fds[0];
}

static int build(struct run *run, struct plan *plan, struct err *err)
{
    struct box_news news;
    int fds[5];
    plan->create.box = plan->start.box = run->box;
    if (box_send(&run->engine->broker, &plan->create, plan->plant_fds,
                 plan->create.create.plant_count, err) < 0 ||
        await(run, BOX_NEWS_READY, &news, fds, err) < 0)
        return -1;
    run->created = true;
    if (run->request->file_count == 0)
        return 0;
    own_fd sock = porter(run, /* collect= */ false, err);
    return sock < 0 ? -1 : files_put(sock, run->request, err);
}

static void note_walls(struct run *run, uint32_t walls)
{
    for (int i = 0; i < BOX_WALL_COUNT; i++) {
        json_t *list = walls & 1u << i ? run->result->walls : run->result->missing;
        json_array_append_new(list, json_string(box_wall_names[i]));
    }
}

static int start(struct run *run, struct plan *plan, struct err *err)
{
    struct box_news news;
    int fds[5];
    if (box_send(&run->engine->broker, &plan->start, &plan->exec_block, 1, err) < 0 ||
        await(run, BOX_NEWS_STARTED, &news, fds, err) < 0)
        return -1;
    run->started_ns = clock_now_ns();
    run->deadline_ns = run->started_ns + limit(run, LIMITS_TIMEOUT) * 1000000;
    run->facts.started = true;
    note_walls(run, news.walls);
    static const enum source places[] = { IN, OUT, ERR, CONTROL, LISTENER };
    static const uint32_t events[] = { EPOLLOUT, EPOLLIN, EPOLLIN, EPOLLIN | EPOLLOUT, EPOLLIN };
    for (size_t i = 0; i < array_len(places); i++) {
        if (fcntl(fds[i], F_SETFL, O_NONBLOCK) < 0 && places[i] != LISTENER)
            return err_sys(err, "set a pipe non-blocking");
        if (add_source(run, places[i], fds[i], events[i]) < 0)
            return err_sys(err, "watch a pipe of the box");
    }
    run->notify.fd = run->fd[LISTENER];
    if (run->to_stdin.len == 0)
        drop_source(run, IN);
    plan_cpu_look(run);
    return 0;
}

static void add_spill(struct run *run, int which, const struct result_stream *stream,
                      const char *path)
{
    struct buf *spill = &run->spill[which];
    if (!stream->truncated || spill->len == 0)
        return;
    uint64_t len = spill->len;
    result_add_artifact(run->result, str_of(path), buf_take(spill), len, NULL);
}

/* With nothing written since the start there is nothing to collect. */
static bool wrote_files(const struct run *run)
{
    return run->request->file_count > 0 || run->stats.blocks_free != run->stats.blocks_at_start ||
           run->stats.inodes_free != run->stats.inodes_at_start;
}

static int collect(struct run *run, struct err *err)
{
    struct files_caps caps = { 0 };
    if (wrote_files(run)) {
        own_fd sock = porter(run, /* collect= */ true, err);
        if (sock < 0 || files_collect(sock, run->request, run->result, &caps, err) < 0)
            return -1;
    }
    add_spill(run, 0, &run->result->out, ".cupel/stdout");
    add_spill(run, 1, &run->result->err_stream, ".cupel/stderr");
    run->facts.artifact_bytes_hit = caps.bytes_hit;
    run->facts.artifact_files_hit = caps.count_hit;
    return 0;
}

static void conclude(struct run *run)
{
    struct result *result = run->result;
    struct result_facts *facts = &run->facts;
    facts->oom_kills = (uint64_t)run->stats.oom_kills;
    facts->pids_hits = (uint64_t)run->stats.pids_hits;
    facts->stdout_hit = result->out.truncated;
    facts->stderr_hit = result->err_stream.truncated;
    facts->driver_exception = run->driver.error.kind != RESULT_E_NONE;
    facts->driver_interrupted = run->driver.interrupted;
    result->cpu_ms = (double)run->stats.cpu_us / 1000;
    result->memory_peak_bytes = run->stats.memory_peak_bytes;
    if (run->driver.results) {
        json_decref(result->results);
        result->results = take_ptr(run->driver.results);
    }
    result->error = run->driver.error;
    memset(&run->driver.error, 0, sizeof run->driver.error);
    if (result->error.kind == RESULT_E_NONE)
        result->error.line = run->driver.fail_line;
    notify_report(&run->notify, result);
    if (facts->signal == SIGSYS)
        result_add_denied(result, "foreign_abi", 1);
    result_decide(result, facts);
    result_explain(result, facts);
}

static int run_stages(struct run *run, struct plan *plan, struct err *err)
{
    int64_t began = clock_now_ns();
    if (build(run, plan, err) < 0 || start(run, plan, err) < 0)
        return -1;
    run->result->start_ms = clock_ms_between(began, run->started_ns);
    own_str line = plan_driver_line(run->request);
    run->to_control = str_of(line);
    loop(run, err);
    int64_t ended = clock_now_ns();
    if (run->broken || collect(run, err) < 0) {
        /* It ran, so there is a result; it says that the failure is ours. */
        run->facts.killed_for = RESULT_INTERNAL;
        run->result->error = (struct result_error){ .kind = RESULT_E_INTERNAL,
                                                    .message = buf_strdup(str_of(err->text)) };
    }
    run->result->collect_ms = clock_ms_between(ended, clock_now_ns());
    conclude(run);
    if (run->engine->trace)
        fprintf(stderr, "trace: kill_to_empty_ms=%.3f\n",
                (double)run->stats.kill_to_empty_us / 1000);
    return 0;
}

int run_on_box(struct engine *engine, const struct request *request, const char *font_list,
               int font_fd, const struct engine_hooks *hooks, struct result *out, struct err *err)
{
    struct plan plan attr_cleanup(plan_done) = PLAN_INIT;
    size_t spill = (size_t)request->limits.value[LIMITS_ARTIFACT_BYTES];
    struct run run = {
        .engine = engine, .request = request, .hooks = hooks, .result = out,
        .box = engine->next_box++ % BOX_MAX, .fd = { -1, -1, -1, -1, -1, -1, -1, -1 },
        .to_stdin = request->stdin_text, .driver = DRIVER_INIT, .notify.fd = -1,
        .spill = { BUF_INIT(spill), BUF_INIT(spill) },
        .deadline_ns = INT64_MAX, .cpu_look_ns = INT64_MAX,
    };
    if (plan_make(request, font_list, font_fd, &plan, err) < 0)
        return -1;
    own_fd epoll = epoll_create1(EPOLL_CLOEXEC);
    own_fd timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    run.epoll = epoll;
    run.timer = timer;
    if (epoll < 0 || timer < 0 || add_source(&run, BROKER, engine->broker.sock, EPOLLIN) < 0 ||
        add_source(&run, TIMER, timer, EPOLLIN) < 0 ||
        (hooks->interrupt_fd >= 0 && add_source(&run, INTERRUPT, hooks->interrupt_fd, EPOLLIN) < 0))
        return err_sys(err, "make the event loop");
    int failed = run_stages(&run, &plan, err);
    struct err ignored = ERR_INIT;
    for (int source = IN; source <= LISTENER; source++)
        drop_source(&run, (enum source)source);
    driver_done(&run.driver);
    buf_done(&run.spill[0]);
    buf_done(&run.spill[1]);
    if (run.created)
        call_broker(&run, BOX_OP_RELEASE, &ignored);
    return failed;
}
