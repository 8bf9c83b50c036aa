/* The steps of a session's box: built, started, swept, copied, woken, asked. Each step
 * waits for one thing and ends once, with session->failed where it failed. Runs in the
 * engine. */
#include "engine/session/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "box/park/inject.h"
#include "box/zygote/zygote.h"
#include "engine/run/run.h"

#define LOOK_AGAIN_MS 10 /* for a zygote that is on its way */
#define FORK_MS 10000    /* for a fork from a zygote; then the interpreter is exec'd */

/* --- one step --- */

static void on_patience(struct loop_timer *timer)
{
    struct session *session = loop_owner(timer, struct session, patience);
    session_step_failed(session, ERR_BUG, "it took too long");
}

static void await(struct session *session, enum session_wait wait,
                  void (*then)(struct session *session))
{
    session->wait = wait;
    session->then = then;
    session->failed = ERR_INIT;
    loop_due(&session->patience, on_patience);
    loop_set_timer(&session->engine->loop, &session->patience,
                   clock_now_ns() + SESSION_STEP_MS * INT64_C(1000000));
}

void session_step_done(struct session *session)
{
    session->wait = SESSION_NO_WAIT;
    loop_set_timer(&session->engine->loop, &session->patience, LOOP_NEVER);
    loop_remove(&session->engine->loop, &session->words);
    loop_remove(&session->engine->loop, &session->requests);
    if (session->stage != SESSION_ENDED)
        session->then(session);
}

void session_step_failed(struct session *session, enum err_kind kind, const char *text)
{
    if (session->wait == SESSION_FILES)
        files_drop(&session->files);
    err_set(&session->failed, kind, "%s", text);
    session_step_done(session);
}

static void call(struct session *session, struct box_call *call, const int *fds, size_t count,
                 enum session_wait wait, void (*then)(struct session *session))
{
    call->box = session->box;
    await(session, wait, then);
    house_call(&session->engine->house, call, fds, count); /* where it fails, all end */
}

/* --- files --- */

void session_await_files(struct session *session, void (*then)(struct session *session))
{
    await(session, SESSION_FILES, then);
}

void session_files_done(struct files_job *job)
{
    struct session *session = loop_owner(job, struct session, files);
    session->failed = job->err;
    if (job->err.kind == ERR_BUG) { /* the porter died, and the files that it kept with it */
        own_close_fd(&session->porter);
        session_forget_places(session);
    }
    session_step_done(session);
}

bool session_has_files(const struct session *session)
{
    struct statfs fs;
    int disk = session->fd[RUN_PIPES + BOX_COUNTER_DISK];
    return session->porter >= 0 || disk < 0 ||
           counters_work_size(disk, "") != session->stats.work_at_start ||
           fstatfs(disk, &fs) < 0 || (int64_t)fs.f_bfree != session->stats.blocks_at_start ||
           (int64_t)fs.f_ffree != session->stats.inodes_at_start; /* in /tmp: undo names it */
}

/* By what the disk has left: of all that is writable, and so of /workspace, too. */
bool session_has_others(const struct session *session)
{
    struct statfs fs;
    int disk = session->fd[RUN_PIPES + BOX_COUNTER_DISK];
    return disk < 0 || fstatfs(disk, &fs) < 0 ||
           (int64_t)fs.f_bfree != session->stats.blocks_at_start ||
           (int64_t)fs.f_ffree != session->stats.inodes_at_start;
}

void session_note_files(struct session *session, void (*then)(struct session *session))
{
    session_await_files(session, then);
    files_session_collect(&session->files, &session->engine->loop, session->porter,
                          &session->request, NULL, session_files_now_ns(), &session->seen,
                          session_files_done);
}

int64_t session_files_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME_COARSE, &now); /* what files are stamped with */
    return (int64_t)now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

void session_need_porter(struct session *session, void (*then)(struct session *session))
{
    struct box_call ask = { .op = BOX_OP_PORTER, .porter.resident = 1 };
    if (session->porter >= 0) {
        session->failed = ERR_INIT;
        then(session);
        return;
    }
    call(session, &ask, NULL, 0, SESSION_PORTER, then);
}

/* --- start --- */

/* A new channel: our ends are kept, the other ones go along with an order. */
static int open_channel(struct session *session, int theirs[BOX_CHANNEL])
{
    int ours[BOX_CHANNEL];
    if (house_open_channel(ours, theirs) < 0)
        return err_sys(&session->failed, "make a channel for the session");
    for (int i = 0; i < BOX_CHANNEL; i++) {
        own_close_fd(&session->fd[RUN_WORDS + i]);
        session->fd[RUN_WORDS + i] = ours[i];
    }
    return 0;
}

static void close_channel(int theirs[BOX_CHANNEL])
{
    close(theirs[BOX_WORDS]);
    close(theirs[BOX_REQUESTS]);
}

void session_open_streams(struct session *session)
{
    for (int i = RUN_OUT; i <= RUN_ERR; i++) {
        if (fcntl(session->fd[i], F_SETFL, O_NONBLOCK) < 0)
            err_sys(&session->failed, "set up the pipes of the session");
    }
}

static bool is_ready(const struct driver *driver)
{
    return driver->ready;
}

/* The interpreter is there; one that was exec'd says when it waits. */
static void on_started(struct session *session)
{
    if (session->failed.kind != ERR_NONE) {
        session->goal_then(session);
        return;
    }
    own_close_fd(&session->fd[RUN_IN]); /* each cell has its own */
    session->gone = session->swept = false;
    session->fresh = true;
    session->state = session->cells; /* with the files that are there; nothing else of it */
    session->since = 0;
    if (!session->forked)
        session_ask_driver(session, NULL, is_ready, session->goal_then);
    else
        session->goal_then(session);
}

static void on_look_again(struct loop_timer *timer)
{
    struct session *session = loop_owner(timer, struct session, patience);
    session_start_again(session);
}

/* A zygote may hang, or die again and again: after a time the session needs none. */
void session_start_again(struct session *session)
{
    struct box_call *order = &session->plan.start;
    bool may_fork = session->request.language == REQUEST_PYTHON &&
                    clock_now_ns() < session->fork_until_ns;
    if (may_fork && pools_zygote_is_coming(&session->engine->pools, &session->request)) {
        loop_due(&session->patience, on_look_again);
        loop_set_timer(&session->engine->loop, &session->patience,
                       clock_now_ns() + LOOK_AGAIN_MS * INT64_C(1000000));
        return;
    }
    session->forked = may_fork && pools_session_zygote(&session->engine->pools, &session->request,
                                                       &order->start.zygote);
    order->op = session->forked ? BOX_OP_FORK : BOX_OP_START;
    order->start.rehearsal = ZYGOTE_NO_REHEARSAL;
    int fds[1 + BOX_CHANNEL] = { session->plan.exec_block };
    if (open_channel(session, fds + 1) < 0) {
        session->goal_then(session);
        return;
    }
    call(session, order, fds + session->forked, array_len(fds) - session->forked,
         SESSION_STARTED, on_started);
    close_channel(fds + 1);
}

static void session_start(struct session *session)
{
    session->fork_until_ns = clock_now_ns() + FORK_MS * INT64_C(1000000);
    session_start_again(session);
}

static void on_built(struct session *session)
{
    if (session->failed.kind != ERR_NONE)
        session->goal_then(session);
    else
        session_start(session);
}

/* An interpreter that waits. */
static bool take_waiting(struct session *session)
{
    struct pool_taken taken;
    if (!pools_take_session(&session->engine->pools, &session->request, &session->tenant, &taken))
        return false;
    session->box = taken.box;
    session->forked = true;
    session->walls = taken.walls;
    session->stats = taken.stats;
    session->failed = ERR_INIT;
    for (int i = 0; i < BOX_NEWS_FDS; i++)
        session->fd[i] = taken.fd[i];
    session_open_streams(session);
    return true;
}

void session_open_box(struct session *session, void (*then)(struct session *session))
{
    struct engine *engine = session->engine;
    struct box_call *create = &session->plan.create;
    bool fonts = engine->font_fd >= 0;
    session->goal_then = then;
    session->tenant.news = session_on_news;
    if (plan_session(&session->request, fonts ? engine->font_list : NULL, engine->font_fd,
                     &session->plan, &session->failed) < 0) {
        then(session);
        return;
    }
    if (take_waiting(session)) {
        on_started(session);
        return;
    }
    session->box = pools_take_box(&engine->pools, &session->request, &session->tenant);
    if (session->box != HOUSE_NOBODY) {
        session->failed = ERR_INIT;
        session_start(session);
        return;
    }
    session->box = house_take(&engine->house, &session->tenant);
    if (session->box == HOUSE_NOBODY) {
        err_set(&session->failed, ERR_BUSY, "every box is taken");
        err_hint(&session->failed, "end a session ('cupel session rm'), or try again later");
        then(session);
        return;
    }
    create->box = session->box;
    await(session, SESSION_BUILT, on_built);
    house_call(&engine->house, create, session->plan.plant_fds, create->create.plants.count);
}

void session_restart(struct session *session, void (*then)(struct session *session))
{
    session_begin_lineage(session);
    for (int i = 0; i < BOX_NEWS_FDS; i++)
        own_close_fd(&session->fd[i]);
    session->goal_then = then;
    session_start(session);
}

/* --- sweep, park, wake --- */

void session_sweep(struct session *session, void (*then)(struct session *session))
{
    struct box_call order = { .op = BOX_OP_SWEEP };
    if (session->swept) {
        session->failed = ERR_INIT;
        then(session);
        return;
    }
    call(session, &order, NULL, 0, SESSION_SWEPT, then);
}

void session_park(struct session *session, uint32_t place, void (*then)(struct session *session))
{
    struct box_call order = { .op = BOX_OP_PARK,
                              .keep = { .state = place, .ticket = session->ticket } };
    call(session, &order, NULL, 0, SESSION_PARKED, then);
}

void session_prepare(struct session *session, void (*then)(struct session *session))
{
    session->ticket = session->goal_state.ticket;
    struct box_call order = { .op = BOX_OP_PREPARE,
                              .keep = { .state = session->goal, .ticket = session->ticket } };
    call(session, &order, NULL, 0, SESSION_PREPARED, then);
}

void session_wake(struct session *session, void (*then)(struct session *session))
{
    session->ticket = session->goal_state.ticket;
    struct box_call order = { .op = BOX_OP_WAKE,
                              .keep = { .state = session->goal, .ticket = session->ticket } };
    session_go_to_lineage(session, session->goal_state.lineage);
    int channel[BOX_CHANNEL];
    if (open_channel(session, channel) < 0) {
        then(session);
        return;
    }
    call(session, &order, channel, BOX_CHANNEL, SESSION_AWAKE, then);
    close_channel(channel);
}

void session_fork_into(struct session *parent, uint32_t place, struct session *coming,
                       void (*then)(struct session *session))
{
    struct box_call order = { .op = BOX_OP_FORK_INTO, .box = parent->box,
                              .keep = { .state = place, .to = coming->box,
                                        .ticket = coming->fork_ticket } };
    await(coming, SESSION_FORKED_INTO, then);
    house_call(&parent->engine->house, &order, NULL, 0);
}

void session_drop_copy(struct session *session, uint32_t place, uint64_t ticket)
{
    struct box_call order = { .op = BOX_OP_DROP, .box = session->box,
                              .keep = { .state = place, .ticket = ticket } };
    house_call(&session->engine->house, &order, NULL, 0);
}

void session_drop_place(struct session *session, uint32_t place)
{
    if (!session->place[place].birth)
        session_drop_copy(session, place, session->place[place].ticket);
    if (session->place[place].snapped && session->porter >= 0)
        files_session_forget(session->porter, place);
    session->place[place] = (struct session_place){ .used = false };
}

/* --- questions to the interpreter --- */

/* The rest of a long line. */
static void on_requests(struct loop_source *source, uint32_t events)
{
    struct session *session = loop_owner(source, struct session, requests);
    bool gone = events & EPOLLERR;
    if (run_write_some(source->fd, &session->to_driver))
        loop_remove(&session->engine->loop, source);
    if (gone)
        session_step_failed(session, ERR_HOST, "the interpreter has closed its channel");
}

static void on_words(struct loop_source *source, uint32_t events)
{
    static char bytes[65536];
    struct session *session = loop_owner(source, struct session, words);
    (void)events;
    ssize_t n = read(source->fd, bytes, sizeof bytes);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        session_step_failed(session, ERR_HOST, "the interpreter has closed its channel");
        return;
    }
    if (n > 0)
        driver_feed(&session->driver, bytes, (size_t)n);
    if (session->answered(&session->driver))
        session_step_done(session);
    else if (session->driver.deaf)
        session_step_failed(session, ERR_LIMIT, "the interpreter says too much");
}

const char *session_expect(struct session *session)
{
    driver_expect(&session->driver);
    return session->driver.nonce;
}

void session_ask_driver(struct session *session, char *line,
                        bool (*answered)(const struct driver *),
                        void (*then)(struct session *session))
{
    if (!line) { /* nothing is asked of one that starts, in which no code has run */
        driver_done(&session->driver);
        session->driver = DRIVER_INIT;
    }
    free(session->line);
    session->line = line;
    session->to_driver = line ? str_of(line) : STR_NONE;
    session->answered = answered;
    await(session, SESSION_DRIVER, then);
    struct loop *loop = &session->engine->loop;
    session->words = (struct loop_source){ .fd = session->fd[RUN_WORDS],
                                           .ready = LOOP_HANDLER(on_words) };
    bool failed = loop_add(loop, &session->words, EPOLLIN) < 0;
    if (!run_write_some(session->fd[RUN_REQUESTS], &session->to_driver)) {
        session->requests = (struct loop_source){ .fd = session->fd[RUN_REQUESTS],
                                                  .ready = LOOP_HANDLER(on_requests) };
        failed |= loop_add(loop, &session->requests, EPOLLOUT) < 0;
    }
    if (failed)
        session_step_failed(session, ERR_HOST, "cannot watch the channel of the session");
}

static bool is_renewed(const struct driver *driver)
{
    return driver->renewed;
}

static char *renew_line(struct session *session)
{
    own_json line = json_pack("{s:s, s:s, s:b}", "op", "renew", "nonce", session_expect(session),
                              "seeds", 0);
    return plan_line(line);
}

int session_renew_later(struct session *session)
{
    own_str line = renew_line(session);
    ssize_t len = (ssize_t)strlen(line);
    session->unproven = true;
    return write(session->fd[RUN_REQUESTS], line, (size_t)len) == len ? 0 : -1;
}

void session_renew(struct session *session, void (*then)(struct session *session))
{
    session_ask_driver(session, renew_line(session), is_renewed, then);
}
