/* The steps of a session's box: built, started, swept, copied, woken, asked. Each step
 * waits for one thing and ends once, with session->failed where it failed. Runs in the
 * engine. */
#include "engine/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "box/inject.h"
#include "box/zygote.h"
#include "engine/run.h"

#define LOOK_AGAIN_MS 10 /* for a zygote that is on its way */

static void on_news(struct house_tenant *tenant, const struct box_news *news,
                    int fds[BOX_NEWS_FDS]);
static void start(struct session *session);

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
    session->patience.due = on_patience;
    loop_set_timer(&session->engine->loop, &session->patience,
                   clock_now_ns() + SESSION_STEP_MS * INT64_C(1000000));
}

void session_step_done(struct session *session)
{
    session->wait = SESSION_NO_WAIT;
    loop_set_timer(&session->engine->loop, &session->patience, LOOP_NEVER);
    loop_remove(&session->engine->loop, &session->control);
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
    return session->porter >= 0 || disk < 0 || fstatfs(disk, &fs) < 0 ||
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

/* Both ends of a control channel: ours is kept, the other one returned. */
static int open_control(struct session *session)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return -1;
    own_close_fd(&session->fd[RUN_CONTROL]);
    session->fd[RUN_CONTROL] = ends[0];
    if (fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0) {
        close(ends[1]);
        return -1;
    }
    return ends[1];
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
    session->state = 0; /* a new interpreter knows nothing */
    session->since = 0;
    if (!session->forked)
        session_ask_driver(session, NULL, is_ready, session->goal_then);
    else
        session->goal_then(session);
}

static void on_look_again(struct loop_timer *timer)
{
    struct session *session = loop_owner(timer, struct session, patience);
    start(session);
}

static void start(struct session *session)
{
    struct box_call *order = &session->plan.start;
    if (session->request.language == REQUEST_PYTHON &&
        pools_zygote_is_coming(&session->engine->pools, &session->request)) {
        session->patience.due = on_look_again;
        loop_set_timer(&session->engine->loop, &session->patience,
                       clock_now_ns() + LOOK_AGAIN_MS * INT64_C(1000000));
        return;
    }
    session->forked = session->request.language == REQUEST_PYTHON &&
                      pools_session_zygote(&session->engine->pools, &session->request,
                                           &order->start.zygote);
    order->op = session->forked ? BOX_OP_FORK : BOX_OP_START;
    order->start.rehearsal = ZYGOTE_NO_REHEARSAL;
    own_fd control = open_control(session);
    if (control < 0) {
        err_sys(&session->failed, "make a channel for the session");
        session->goal_then(session);
        return;
    }
    order->start.has_control = 1;
    const int fds[] = { session->forked ? control : session->plan.exec_block, control };
    call(session, order, fds, session->forked ? 1 : 2, SESSION_STARTED, on_started);
}

static void on_built(struct session *session)
{
    if (session->failed.kind != ERR_NONE)
        session->goal_then(session);
    else
        start(session);
}

void session_open_box(struct session *session, void (*then)(struct session *session))
{
    struct engine *engine = session->engine;
    struct box_call *create = &session->plan.create;
    bool fonts = engine->font_fd >= 0;
    session->goal_then = then;
    session->tenant.news = on_news;
    if (plan_session(&session->request, fonts ? engine->font_list : NULL, engine->font_fd,
                     &session->plan, &session->failed) < 0) {
        then(session);
        return;
    }
    session->box = pools_take_box(&engine->pools, &session->request, &session->tenant);
    if (session->box != HOUSE_NOBODY) {
        session->failed = ERR_INIT;
        start(session);
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
    start(session);
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
    struct box_call order = { .op = BOX_OP_PARK, .keep.place = place };
    call(session, &order, NULL, 0, SESSION_PARKED, then);
}

void session_prepare(struct session *session, uint32_t place)
{
    struct box_call order = { .op = BOX_OP_PREPARE, .box = session->box, .keep.place = place };
    house_call(&session->engine->house, &order, NULL, 0);
}

void session_wake(struct session *session, uint32_t place, void (*then)(struct session *session))
{
    struct box_call order = { .op = BOX_OP_WAKE, .keep.place = place };
    session_go_to_lineage(session, session->place[place].lineage);
    own_fd control = open_control(session);
    if (control < 0) {
        err_sys(&session->failed, "make a channel for the session");
        then(session);
        return;
    }
    call(session, &order, &control, 1, SESSION_AWAKE, then);
}

void session_fork_into(struct session *parent, uint32_t place, struct session *coming,
                       void (*then)(struct session *session))
{
    struct box_call order = { .op = BOX_OP_FORK_INTO, .box = parent->box,
                              .keep = { .place = place, .to = coming->box } };
    await(coming, SESSION_FORKED_INTO, then);
    house_call(&parent->engine->house, &order, NULL, 0);
}

void session_drop_place(struct session *session, uint32_t place)
{
    struct box_call order = { .op = BOX_OP_DROP, .box = session->box, .keep.place = place };
    house_call(&session->engine->house, &order, NULL, 0);
    if (session->place[place].snapped && session->porter >= 0)
        files_session_forget(session->porter, place);
    session->place[place] = (struct session_place){ .used = false };
}

/* --- questions to the interpreter --- */

static void watch_control(struct session *session)
{
    uint32_t events = EPOLLIN | (session->to_control.len > 0 ? EPOLLOUT : 0);
    loop_change(&session->engine->loop, &session->control, events);
}

/* False: it is gone. */
static bool send_line(struct session *session)
{
    while (session->to_control.len > 0) {
        ssize_t n = send(session->control.fd, session->to_control.at, session->to_control.len,
                         MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        session->to_control.at += n;
        session->to_control.len -= (size_t)n;
    }
    return true;
}

static void on_control(struct loop_source *source, uint32_t events)
{
    static char bytes[65536];
    struct session *session = loop_owner(source, struct session, control);
    bool there = send_line(session);
    (void)events;
    ssize_t n = read(source->fd, bytes, sizeof bytes);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) || !there) {
        session_step_failed(session, ERR_HOST, "the interpreter has closed its channel");
        return;
    }
    if (n > 0)
        driver_feed(&session->driver, bytes, (size_t)n);
    if (session->answered(&session->driver))
        session_step_done(session);
    else if (session->driver.deaf)
        session_step_failed(session, ERR_LIMIT, "the interpreter says too much");
    else
        watch_control(session);
}

void session_ask_driver(struct session *session, char *line,
                        bool (*answered)(const struct driver *),
                        void (*then)(struct session *session))
{
    driver_done(&session->driver);
    session->driver = DRIVER_INIT;
    free(session->line);
    session->line = line;
    session->to_control = line ? str_of(line) : STR_NONE;
    session->answered = answered;
    await(session, SESSION_DRIVER, then);
    session->control = (struct loop_source){ .fd = session->fd[RUN_CONTROL], .ready = on_control };
    if (loop_add(&session->engine->loop, &session->control, EPOLLIN | EPOLLOUT) < 0)
        session_step_failed(session, ERR_HOST, "cannot watch the channel of the session");
}

static bool is_renewed(const struct driver *driver)
{
    return driver->renewed;
}

void session_renew(struct session *session, void (*then)(struct session *session))
{
    own_json line = json_pack("{s:s, s:b}", "op", "renew", "seeds", 0);
    session_ask_driver(session, plan_line(line), is_renewed, then);
}

/* --- news --- */

static void take_started(struct session *session, const struct box_news *news,
                         int fds[BOX_NEWS_FDS])
{
    int control = take_fd(&session->fd[RUN_CONTROL]);
    for (int i = 0; i < BOX_NEWS_FDS; i++) {
        own_close_fd(&session->fd[i]);
        session->fd[i] = take_fd(&fds[i]);
    }
    session->fd[RUN_CONTROL] = control;
    session->walls = news->walls;
    session->stats = news->stats;
    for (int i = RUN_OUT; i <= RUN_ERR; i++) {
        if (fcntl(session->fd[i], F_SETFL, O_NONBLOCK) < 0)
            err_sys(&session->failed, "set up the pipes of the session");
    }
}

static void on_exited(struct session *session, const struct box_news *news)
{
    session->gone = true;
    session->swept = false;
    if (session->cell && session->stage == SESSION_CELL)
        run_on_news(session->cell, news);
    else if (session->wait == SESSION_DRIVER)
        session_step_failed(session, ERR_HOST, "the interpreter has ended");
    else if (session->stage == SESSION_IDLE)
        session_died_idle(session, session_next);
}

static void on_swept(struct session *session, const struct box_news *news)
{
    session->swept = true;
    if (session->cell && session->stage == SESSION_CELL)
        run_on_news(session->cell, news);
}

static void on_failed(struct session *session, const struct box_news *news)
{
    struct err err = ERR_INIT;
    if (session->wait == SESSION_STARTED && session->forked) {
        pools_zygote_failed(&session->engine->pools, session->plan.start.start.zygote);
        start(session); /* it is exec'd then */
        return;
    }
    box_failure(news, &err);
    if (session->wait != SESSION_NO_WAIT && session->wait != SESSION_FILES)
        session_step_failed(session, ERR_HOST, err.text);
}

static void on_keeper_gone(struct session *session)
{
    session_forget_places(session);
    snprintf(session->unprotected, sizeof session->unprotected, "what was kept is lost");
    if (session->wait == SESSION_PARKED || session->wait == SESSION_AWAKE)
        session_step_failed(session, ERR_BUG, "the keeper died");
    else if (session->stage == SESSION_IDLE)
        session_protect(session);
}

/* Told of the parent's box, whose keeper did it. */
static void on_forked_into(struct session *parent, const struct box_news *news)
{
    struct session *coming = parent->coming;
    if (!coming || coming->wait != SESSION_FORKED_INTO)
        return;
    coming->kept.end = news->end;
    coming->kept.error = news->error;
    coming->lost_files = news->lost;
    session_step_done(coming);
}

static void on_news(struct house_tenant *tenant, const struct box_news *news,
                    int fds[BOX_NEWS_FDS])
{
    static const struct {
        enum box_news_kind kind;
        enum session_wait wait;
    } awaited[] = {
        { BOX_NEWS_READY, SESSION_BUILT },   { BOX_NEWS_STARTED, SESSION_STARTED },
        { BOX_NEWS_PORTER, SESSION_PORTER }, { BOX_NEWS_SWEPT, SESSION_SWEPT },
        { BOX_NEWS_AWAKE, SESSION_AWAKE },   { BOX_NEWS_PARKED, SESSION_PARKED },
    };
    struct session *session = loop_owner(tenant, struct session, tenant);
    if (news->kind == BOX_NEWS_EMPTY) {
        session_end(session, "its box died");
        return;
    }
    if (news->kind == BOX_NEWS_STARTED && session->wait == SESSION_STARTED)
        take_started(session, news, fds);
    if (news->kind == BOX_NEWS_PORTER && session->wait == SESSION_PORTER)
        session->porter = take_fd(&fds[0]);
    if (news->kind == BOX_NEWS_PARKED || news->kind == BOX_NEWS_AWAKE) {
        session->kept.end = news->end;
        session->kept.error = news->error;
        if (news->kind == BOX_NEWS_PARKED)
            session->held_bytes = news->held_bytes;
    }
    if (news->kind == BOX_NEWS_AWAKE && news->end == INJECT_OK)
        session->gone = session->swept = false;
    if (news->kind == BOX_NEWS_EXITED)
        on_exited(session, news);
    else if (news->kind == BOX_NEWS_SWEPT)
        on_swept(session, news);
    else if (news->kind == BOX_NEWS_FAILED)
        on_failed(session, news);
    else if (news->kind == BOX_NEWS_KEEPER_GONE)
        on_keeper_gone(session);
    else if (news->kind == BOX_NEWS_FORKED_INTO)
        on_forked_into(session, news);
    else if (news->kind == BOX_NEWS_STAT && session->cell && session->stage == SESSION_CELL)
        run_on_news(session->cell, news);
    for (size_t i = 0; i < array_len(awaited) && session->stage != SESSION_ENDED; i++) {
        if (awaited[i].kind == news->kind && awaited[i].wait == session->wait) {
            session_step_done(session);
            return;
        }
    }
}
