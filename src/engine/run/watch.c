/* Watches the running code. All descriptors are non-blocking and polled in the engine's loop: a box
 * that floods, drips, stalls or lies harms only itself. Runs in the engine. Functions that may end
 * the run say so: it is `over` then, and nothing counts afterwards. */
#include "engine/run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"

#define LINES_STEP ((size_t)1 << 20) /* sent lines leave the memory in such steps */
#define WEDGED_MS 10000 /* a killed box that lives longer is given up, with its broker */
#define CPU_LOOK_MS 10 /* the minimum between two reads of the CPU counter */
#define AWAKE_NS INT64_C(400000) /* a single pooled Python run is often done within this */

void run_close_pipe(struct engine_run *run, enum run_pipe_id id)
{
    int fd = run->pipe[id].source.fd;
    loop_remove(&run->engine->loop, &run->pipe[id].source);
    own_close_fd(&fd);
}

void run_set_timer(struct engine_run *run)
{
    int64_t at = run->deadline_ns < run->cpu_look_ns ? run->deadline_ns : run->cpu_look_ns;
    at = at < run->again_ns ? at : run->again_ns;
    loop_set_timer(&run->engine->loop, &run->timer, at < run->hear_ns ? at : run->hear_ns);
}

void run_hear_again(struct engine_run *run, int64_t at_ns)
{
    if (run->hear_ns == at_ns)
        return;
    run->hear_ns = at_ns;
    run_set_timer(run);
}

void run_kill(struct engine_run *run, enum result_status why)
{
    if (run->killed)
        return;
    run->killed = true;
    run->facts.killed_for = why;
    run_forget_freeze(run);
    run->deadline_ns = clock_now_ns() + WEDGED_MS * CLOCK_MS;
    run->cpu_look_ns = run->again_ns = LOOP_NEVER;
    run_set_timer(run);
    house_ask(&run->engine->house, run->session ? BOX_OP_SWEEP : BOX_OP_KILL, run->box);
}

/* --- pipes --- */

bool run_write_some(int fd, struct str *left)
{
    ssize_t n = left->len ? write(fd, left->at, left->len) : 0;
    if (n > 0) {
        left->at += n;
        left->len -= (size_t)n;
    }
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        left->len = 0;
    return left->len == 0;
}

void run_let_exit(struct engine_run *run)
{
    run_close_pipe(run, RUN_REQUESTS);
}

static struct engine_run *run_of(struct loop_source *source)
{
    return loop_owner(source, struct run_pipe, source)->run;
}

static void on_stdin(struct loop_source *source, uint32_t events)
{
    struct engine_run *run = run_of(source);
    (void)events;
    if (!run->over && run_write_some(source->fd, &run->to_stdin))
        run_close_pipe(run, RUN_IN);
}

/* The lines after the request; then, each in a turn of its own, the parts of large values. */
static bool write_lines(struct engine_run *run, int fd)
{
    struct buf *lines = &run->lines;
    struct str left = { lines->at + run->lines_sent, lines->len - run->lines_sent };
    bool done = lines->len == 0 || run_write_some(fd, &left);
    run->lines_sent = lines->len - left.len;
    if (!done && run->lines_sent < LINES_STEP)
        return false;
    buf_drop(lines, run->lines_sent);
    run->lines_sent = 0;
    if (lines->len == 0 && lines->room > LINES_STEP)
        buf_done(lines);
    return done && !run_next_part(run);
}

/* A cell's stdin follows its line. */
static bool write_request(struct engine_run *run)
{
    int fd = run->pipe[RUN_REQUESTS].source.fd;
    return run_write_some(fd, &run->to_driver) &&
           (!run->session || run_write_some(fd, &run->to_stdin)) && write_lines(run, fd);
}

/* The rest of a long request, or of answers. The pipe stays open: its end would end a session. */
static void on_requests(struct loop_source *source, uint32_t events)
{
    struct engine_run *run = run_of(source);
    (void)events;
    if (run->over || !write_request(run))
        return;
    int fd = source->fd;
    loop_remove(&run->engine->loop, source);
    source->fd = fd;
    run->writes = false;
}

/* A question for the person at the client. A later question replaces an unanswered one, and is sent
 * again only if it asks for a secret: at most two events per answer. */
static void hand_on_question(struct engine_run *run)
{
    struct engine_event event = { .kind = ENGINE_INPUT, .echo = run->driver.input_echo };
    if (!run->hooks.input || run->asked == run->driver.input_number)
        return;
    bool told = run->asked > 0 && !(run->asked_openly && !event.echo);
    run->asked_openly = event.echo && (run->asked == 0 || run->asked_openly);
    run->asked = run->driver.input_number;
    if (!told && run->hooks.on_event)
        run->hooks.on_event(run->hooks.user, &event);
}

int run_say_line(struct engine_run *run, struct str line)
{
    struct loop_source *source = &run->pipe[RUN_REQUESTS].source;
    if (source->fd < 0)
        return 0; /* nobody reads it */
    if (run->lines_sent > 0) {
        buf_drop(&run->lines, run->lines_sent);
        run->lines_sent = 0;
    }
    if (buf_add_str(&run->lines, line) < 0)
        return -1;
    if (run->writes || write_request(run))
        return 0;
    run->writes = true;
    if (loop_add(&run->engine->loop, source, EPOLLOUT) < 0)
        run_kill(run, RESULT_INTERNAL);
    return 0;
}

/* Some output, in order. May end the run. */
static void hear(struct engine_run *run, enum run_pipe_id id)
{
    bool was_done = run->driver.done;
    run_hear(run, id);
    hand_on_question(run);
    if (run->driver.done && !was_done)
        run_is_done(run);
}

/* May end the run. */
static void on_output(struct loop_source *source, uint32_t events)
{
    struct run_pipe *pipe = loop_owner(source, struct run_pipe, source);
    (void)events;
    if (!pipe->run->over)
        hear(pipe->run, (enum run_pipe_id)(pipe - pipe->run->pipe));
}

static void on_listener(struct loop_source *source, uint32_t events)
{
    struct engine_run *run = run_of(source);
    if (run->over)
        return;
    /* Before Linux 6.11 receiving blocks for ever once the last user is gone. */
    if (events & EPOLLIN)
        notify_serve(&run->notify);
    if (run->notify.fd < 0) {
        loop_forget(&run->engine->loop, source); /* closing has already removed it */
    } else if (!(events & EPOLLIN)) {
        run_close_pipe(run, RUN_LISTENER); /* no process is left to ask */
        run->notify.fd = -1;
    }
}

/* --- time --- */

void run_set_due(const struct engine_run *run, int64_t late_ns)
{
    bool counts = run->counter[BOX_COUNTER_CPU] >= 0;
    int64_t most_us = run->stats.cpu_us_at_start + run_limit(run, LIMITS_CPU) * 1000;
    due_set(run->engine->house.broker.due, run->box, run->deadline_ns + late_ns,
            counts ? most_us : 0);
}

/* The limit cannot be reached sooner than with every allowed CPU fully used. */
static void plan_cpu_look(struct engine_run *run)
{
    static long online;
    if (!online)
        online = sysconf(_SC_NPROCESSORS_ONLN);
    int64_t left_ms = run_limit(run, LIMITS_CPU) - run->stats.cpu_us / 1000;
    int64_t cpus = run_limit(run, LIMITS_CPUS);
    cpus = cpus < online * 1000 ? cpus : online * 1000;
    int64_t wait_ms = left_ms * 1000 / (cpus > 0 ? cpus : 1000);
    run->cpu_look_ns = clock_now_ns() + (wait_ms > CPU_LOOK_MS ? wait_ms : CPU_LOOK_MS) * CLOCK_MS;
    run_set_timer(run);
}

/* The kernel or the broker takes too long to end the box. An engine for several clients gives up
 * only this run: its box stays taken until it is empty. */
static void on_wedged(struct engine_run *run)
{
    static const char why[] = "the box is still not empty 10 s after its kill";
    struct err err = ERR_INIT;
    if (!run->engine->options.warm) {
        house_break(&run->engine->house, why);
        return;
    }
    err_set(&err, ERR_BUG, "%s", why);
    run_give_up(run, &err);
}

/* May end the run. */
static void on_timer(struct loop_timer *timer)
{
    struct engine_run *run = loop_owner(timer, struct engine_run, timer);
    int64_t now = run->engine->loop.now_ns; /* an end up to then is known */
    if (now >= run->deadline_ns && run->killed) {
        on_wedged(run);
        return;
    }
    if (now >= run->deadline_ns && run->frozen.since_ns) {
        run_is_frozen_out(run);
        return;
    }
    if (now >= run->deadline_ns) {
        run_is_late(run);
        return;
    }
    if (now >= run->again_ns)
        run_interrupt_again(run, now);
    if (now >= run->cpu_look_ns) {
        run->cpu_look_ns = LOOP_NEVER; /* until the answer */
        house_ask(&run->engine->house, BOX_OP_STAT, run->box);
    }
    bool waits = now >= run->hear_ns;
    run->hear_ns = waits ? LOOP_NEVER : run->hear_ns;
    run_set_timer(run);
    if (waits)
        hear(run, RUN_OUT);
}

/* --- news --- */

/* The broker counts from an occupant's start; a pooled one used time before its request. */
static void take_stats(struct engine_run *run, const struct box_stats *stats)
{
    const struct box_stats before = run->stats;
    int64_t began = before.cpu_us_at_start;
    run->stats = *stats;
    /* The broker counts for the box's life. */
    if (run->session && run->counter[BOX_COUNTER_CPU] >= 0) {
        run->stats = before;
        run_read_counters(run);
        return;
    }
    if (run->pooled && began >= 0) {
        run->stats.cpu_us -= began - stats->cpu_us_at_start;
        run->stats.cpu_us_at_start = began;
    }
}

void run_read_counters(struct engine_run *run)
{
    if (counters_read(run->counter, &run->stats) < 0)
        run->stats.blocks_free = run->stats.inodes_free = -1;
}

/* May end the run. */
static void on_stat(struct engine_run *run, const struct box_stats *stats)
{
    take_stats(run, stats);
    if (run->asked_at_done && run_final_if_clean(run))
        return;
    if (run->asked_at_done)
        run_let_exit(run);
    run->asked_at_done = false;
    if (run->killed || run->occupant_gone)
        return;
    if (run->stats.cpu_us / 1000 >= run_limit(run, LIMITS_CPU))
        run_kill(run, RESULT_CPU_LIMIT);
    else
        plan_cpu_look(run);
}

static void on_exited(struct engine_run *run, const struct box_news *news)
{
    run->occupant_gone = true;
    take_stats(run, &news->stats);
    run->facts.exited = !news->by_signal;
    run->facts.exit_code = news->by_signal ? -1 : news->status;
    run->facts.signal = news->by_signal ? news->status : 0;
    run->facts.disk_full = news->stats.blocks_free == 0 || news->stats.inodes_free == 0;
    run->result.wall_ms = run_wall_ms(run, clock_now_ns());
    /* Background processes end with the run, or the dead session. */
    static const enum result_status why[] = {
        [BOX_OVERDUE_NOT] = RESULT_OK,
        [BOX_OVERDUE_WALL] = RESULT_TIMEOUT,
        [BOX_OVERDUE_CPU] = RESULT_CPU_LIMIT,
        [BOX_OVERDUE_LOOSE] = RESULT_KILLED,
    };
    if (news->overdue == BOX_OVERDUE_LOOSE)
        run_say(run, "cupel: the code did not stand still while a call waited, and was ended\n");
    run_kill(run, news->overdue < array_len(why) ? why[news->overdue] : RESULT_INTERNAL);
}

/* May end the run. */
void run_on_news(struct engine_run *run, const struct box_news *news)
{
    if (news->kind == BOX_NEWS_EXITED) {
        on_exited(run, news);
    } else if (news->kind == BOX_NEWS_STAT) {
        on_stat(run, &news->stats);
    } else if (news->kind == BOX_NEWS_SWEPT) {
        take_stats(run, &news->stats);
        run->cell_ops->swept(run);
    } else if (news->kind == BOX_NEWS_EMPTY) {
        run->empty = true;
        take_stats(run, &news->stats);
        /* Every writer is dead: the pipes hold all there will be. */
        run_drain(run);
        run_unwatch(run);
        run_box_is_empty(run);
    }
}

/* --- begin and end --- */

/* That the box has no file of the host says something of its image: a box of the image 'host' does
 * not lack it. */
static void note_walls(struct engine_run *run, uint32_t walls)
{
    for (int i = 0; i < BOX_WALL_COUNT; i++) {
        if (i == BOX_WALL_OWN_IMAGE && !(walls & 1u << i))
            continue;
        json_t *list = walls & 1u << i ? run->result.walls : run->result.missing;
        json_array_append_new(list, json_string(box_wall_names[i]));
    }
}

static void begin(struct engine_run *run, const struct box_news *news)
{
    static const struct engine_event started = { .kind = ENGINE_START };
    run->stage = RUN_GOING;
    run->stats = news->stats;
    run->started_ns = clock_now_ns();
    run->deadline_ns = run->started_ns + run_limit(run, LIMITS_TIMEOUT) * CLOCK_MS;
    run->result.start_ms = clock_ms_between(run->began_ns, run->started_ns);
    run->facts.started = true;
    loop_due(&run->timer, on_timer);
    run->memory_counted = news->walls & BOX_WALL_BIT(MEMORY_CG);
    note_walls(run, news->walls);
    if (run->hooks.on_event)
        run->hooks.on_event(run->hooks.user, &started);
    run_set_due(run, run_grace_ns(run));
    plan_cpu_look(run);
}

int run_watch(struct engine_run *run, int fds[BOX_NEWS_FDS], const struct box_news *news)
{
    static const struct {
        void (*ready)(struct loop_source *source, uint32_t events);
        const char *name;
        uint32_t events;
    } pipes[RUN_PIPES] = {
        [RUN_IN] = { LOOP_HANDLER(on_stdin), EPOLLOUT },
        [RUN_OUT] = { LOOP_HANDLER(on_output), EPOLLIN },
        [RUN_ERR] = { LOOP_HANDLER(on_output), EPOLLIN },
        [RUN_WORDS] = { LOOP_HANDLER(on_output), EPOLLIN },
        [RUN_REQUESTS] = { LOOP_HANDLER(on_requests), EPOLLOUT },
        [RUN_LISTENER] = { LOOP_HANDLER(on_listener), EPOLLIN },
    };
    int failed = 0;
    for (int i = 0; i < BOX_COUNTERS; i++)
        run->counter[i] = take_fd(&fds[RUN_PIPES + i]);
    begin(run, news);
    for (int i = 0; i < RUN_PIPES; i++)
        run->pipe[i].source = (struct loop_source){ take_fd(&fds[i]), pipes[i].ready,
                                                    pipes[i].name };
    /* The request first: the occupant works while we prepare to listen. */
    if (run->pooled && run->request->language == REQUEST_PYTHON && run->engine->queue.going == 1)
        run->engine->loop.awake_until_ns = run->started_ns + AWAKE_NS;
    bool written = write_request(run);
    for (int i = 0; i < RUN_PIPES; i++) {
        struct loop_source *source = &run->pipe[i].source;
        bool ours = i == RUN_WORDS || i == RUN_REQUESTS; /* they are non-blocking */
        if (i == RUN_IN && run->to_stdin.len == 0)
            own_close_fd(&source->fd);
        if ((i == RUN_IN && source->fd < 0) || (i == RUN_REQUESTS && written))
            continue;
        if (source->fd < 0 && run->session)
            continue; /* closed by an earlier cell, or after too many reports */
        failed |= !ours && i != RUN_LISTENER && fcntl(source->fd, F_SETFL, O_NONBLOCK) < 0;
        failed |= loop_add(&run->engine->loop, source, pipes[i].events) < 0;
        run->writes |= i == RUN_REQUESTS;
    }
    run->notify.fd = run->pipe[RUN_LISTENER].source.fd;
    return failed ? -1 : 0;
}

int run_take_pipe(struct engine_run *run, enum run_pipe_id id)
{
    int fd = run->pipe[id].source.fd;
    loop_remove(&run->engine->loop, &run->pipe[id].source);
    return fd;
}

void run_unwatch(struct engine_run *run)
{
    loop_set_timer(&run->engine->loop, &run->timer, LOOP_NEVER);
    for (int i = 0; i < RUN_PIPES; i++)
        run_close_pipe(run, (enum run_pipe_id)i);
    run->notify.fd = -1;
    for (int i = 0; i < BOX_COUNTERS; i++)
        own_close_fd(&run->counter[i]);
}
