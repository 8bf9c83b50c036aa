/* The loop of a run. All descriptors are non-blocking and meet in one epoll: a box
 * that floods, drips, stalls or lies costs only itself. Runs in the engine. */
#include "engine/run.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "box/mutate.h"

#define CHUNK 65536
#define WEDGED_MS 10000 /* a killed box that lives on so long is given up, with its broker */
#define AGAIN_MS 250
#define CPU_LOOK_MS 10 /* the least time between two looks at the CPU counter */

void run_drop_source(struct run *run, enum run_source source)
{
    if (run->fd[source] < 0)
        return;
    epoll_ctl(run->epoll, EPOLL_CTL_DEL, run->fd[source], NULL);
    if (source <= RUN_LISTENER)
        close(run->fd[source]);
    run->fd[source] = -1;
}

int run_add_source(struct run *run, enum run_source source, int fd, uint32_t events)
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

static void set_timer(struct run *run)
{
    int64_t at = run->deadline_ns < run->cpu_look_ns ? run->deadline_ns : run->cpu_look_ns;
    at = at < run->again_ns ? at : run->again_ns;
    struct itimerspec when = { .it_value = { at / 1000000000, at % 1000000000 } };
    timerfd_settime(run->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

static void kill_box(struct run *run, enum result_status why)
{
    struct err err = ERR_INIT;
    if (run->killed)
        return;
    run->killed = true;
    run->facts.killed_for = why;
    run->deadline_ns = clock_now_ns() + WEDGED_MS * INT64_C(1000000);
    run->cpu_look_ns = run->again_ns = INT64_MAX;
    set_timer(run);
    if (call_broker(run, BOX_OP_KILL, &err) < 0)
        run->broken = run->empty = true;
}

/* --- streams --- */

static void take_output(struct run *run, enum run_source source, const char *bytes, size_t len)
{
    bool out = source == RUN_OUT;
    struct result_stream *stream = out ? &run->result->out : &run->result->err_stream;
    size_t cap = mutate(OUTPUT_CAP) ? SIZE_MAX / 8
                                    : (size_t)run_limit(run, out ? LIMITS_STDOUT : LIMITS_STDERR);
    struct buf *spill = &run->spill[out ? 0 : 1];
    result_stream_add(stream, cap, bytes, len);
    size_t room = spill->max - spill->len;
    buf_add(spill, bytes, len < room ? len : room);
    /* The caps are the result's: a door that streams gets every byte. */
    struct engine_event event = { .kind = out ? ENGINE_STDOUT : ENGINE_STDERR,
                                  .bytes = { bytes, len } };
    if (run->hooks->on_event)
        run->hooks->on_event(run->hooks->user, &event);
    if (!mutate(OUTPUT_STOP) && stream->truncated &&
        run->request->on_output_limit == REQUEST_STOP)
        kill_box(run, RESULT_OUTPUT_LIMIT);
}

/* Read once; false where there is no more to read now. */
static bool read_source(struct run *run, enum run_source source)
{
    char bytes[CHUNK];
    if (run->fd[source] < 0)
        return false;
    ssize_t n = read(run->fd[source], bytes, sizeof bytes);
    if (n < 0)
        return errno == EINTR;
    if (n == 0) {
        run_drop_source(run, source);
        return false;
    }
    if (source == RUN_CONTROL)
        driver_feed(&run->driver, bytes, (size_t)n);
    else
        take_output(run, source, bytes, (size_t)n);
    return true;
}

static void write_source(struct run *run, enum run_source source, struct str *left)
{
    ssize_t n = write(run->fd[source], left->at, left->len);
    if (n > 0) {
        left->at += n;
        left->len -= (size_t)n;
    }
    bool over = left->len == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
    if (!over)
        return;
    if (source == RUN_IN) {
        run_drop_source(run, RUN_IN);
    } else {
        struct epoll_event event = { .events = EPOLLIN, .data.u32 = RUN_CONTROL };
        left->len = 0;
        epoll_ctl(run->epoll, EPOLL_CTL_MOD, run->fd[RUN_CONTROL], &event);
    }
}

static void on_control(struct run *run, uint32_t events)
{
    if (events & EPOLLOUT && run->to_control.len > 0)
        write_source(run, RUN_CONTROL, &run->to_control);
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        read_source(run, RUN_CONTROL);
}

/* --- time --- */

/* The limit cannot be reached sooner than by using every allowed cpu fully. */
void run_plan_cpu_look(struct run *run)
{
    int64_t left_ms = run_limit(run, LIMITS_CPU) - run->stats.cpu_us / 1000;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    int64_t cpus = run_limit(run, LIMITS_CPUS);
    cpus = cpus < online * 1000 ? cpus : online * 1000;
    int64_t wait_ms = left_ms * 1000 / (cpus > 0 ? cpus : 1000);
    run->cpu_look_ns = clock_now_ns() + (wait_ms > CPU_LOOK_MS ? wait_ms : CPU_LOOK_MS) * 1000000;
    set_timer(run);
}

static void send_interrupt(struct run *run)
{
    struct err err = ERR_INIT;
    struct box_call call = { .op = BOX_OP_SIGNAL, .box = run->box, .signal.signal = SIGINT };
    if (box_send(&run->engine->broker, &call, NULL, 0, &err) < 0)
        run->broken = run->empty = true;
}

static void on_interrupt(struct run *run)
{
    char byte;
    if (read(run->hooks->interrupt_fd, &byte, 1) != 1) {
        run_drop_source(run, RUN_INTERRUPT);
        return;
    }
    run->facts.interrupt_sent = true;
    if (++run->interrupts > 1) {
        kill_box(run, RESULT_INTERRUPTED);
        return;
    }
    send_interrupt(run);
    /* While node changes from V8's watch for signals to its own it loses one that
     * comes just then: it is sent once more to a run that goes on. */
    if (run->request->language == REQUEST_JAVASCRIPT)
        run->again_ns = clock_now_ns() + AGAIN_MS * INT64_C(1000000);
    set_timer(run);
}

static void on_timer(struct run *run, struct err *err)
{
    uint64_t times;
    if (read(run->timer, &times, sizeof times) < 0)
        return;
    int64_t now = clock_now_ns();
    if (now >= run->deadline_ns && run->killed) {
        err_set(err, ERR_BUG, "the box is not empty %d ms after its kill", WEDGED_MS);
        run->broken = run->empty = true;
        return;
    }
    if (!mutate(WALL_TIMER) && now >= run->deadline_ns) {
        kill_box(run, RESULT_TIMEOUT);
        return;
    }
    if (now >= run->again_ns) {
        run->again_ns = INT64_MAX;
        send_interrupt(run);
    }
    if (now >= run->cpu_look_ns) {
        run->cpu_look_ns = INT64_MAX; /* until the answer */
        if (call_broker(run, BOX_OP_STAT, err) < 0)
            run->broken = run->empty = true;
    }
    set_timer(run);
}

static void on_stat(struct run *run, const struct box_stats *stats)
{
    run->stats = *stats;
    if (run->killed || run->occupant_gone)
        return;
    if (!mutate(CPU_TIMER) && stats->cpu_us / 1000 >= run_limit(run, LIMITS_CPU))
        kill_box(run, RESULT_CPU_LIMIT);
    else
        run_plan_cpu_look(run);
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

static void dispatch(struct run *run, const struct epoll_event *event, struct err *err)
{
    enum run_source source = (enum run_source)event->data.u32;
    if (run->fd[source] < 0)
        return; /* closed by an earlier event of the same round */
    if (source == RUN_IN)
        write_source(run, RUN_IN, &run->to_stdin);
    else if (source == RUN_OUT || source == RUN_ERR)
        read_source(run, source);
    else if (source == RUN_CONTROL)
        on_control(run, event->events);
    else if (source == RUN_BROKER)
        on_broker(run, err);
    else if (source == RUN_TIMER)
        on_timer(run, err);
    else if (source == RUN_INTERRUPT)
        on_interrupt(run);
    else if (source == RUN_LISTENER) {
        /* Before Linux 6.11 receiving blocks for ever once the last user has gone. */
        if (event->events & EPOLLIN)
            notify_serve(&run->notify);
        if (run->notify.fd < 0)
            run->fd[RUN_LISTENER] = -1; /* closing took it out of the epoll */
        else if (!(event->events & EPOLLIN))
            run_drop_source(run, RUN_LISTENER), run->notify.fd = -1; /* nobody is left to ask */
    }
}

void run_loop(struct run *run, struct err *err)
{
    struct epoll_event events[RUN_SOURCES];
    while (!run->empty) {
        int count = epoll_wait(run->epoll, events, RUN_SOURCES, -1);
        if (count < 0 && errno != EINTR) {
            err_sys(err, "wait for the box");
            run->broken = true;
            return;
        }
        for (int i = 0; i < count; i++)
            dispatch(run, &events[i], err);
    }
    /* Every writer is dead: what is in the pipes now is all there will be. */
    static const enum run_source last[] = { RUN_CONTROL, RUN_OUT, RUN_ERR };
    for (size_t i = 0; i < array_len(last); i++) {
        while (read_source(run, last[i]))
            continue;
    }
}
