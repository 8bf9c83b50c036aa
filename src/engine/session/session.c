/* Sessions: how they begin and end, and whose turn it is. Runs in the engine, in its loop. */
#include "engine/session/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/own.h"
#include "engine/run/run.h"

#define BOXES_KEPT 8 /* that sessions leave to runs, beside those that may run at once */

const struct session_past *session_past_find(const struct engine *engine, const char *id)
{
    for (size_t i = 0; i < engine->past_count; i++) {
        if (strcmp(engine->past[i].id, id) == 0)
            return &engine->past[i];
    }
    return NULL;
}

static struct session *find(const struct engine *engine, const char *id, bool expired,
                            struct err *err)
{
    for (struct session *session = engine->sessions; session; session = session->after) {
        if (session->step.stage != SESSION_ENDED && session->life.expired == expired &&
            strcmp(session->id, id) == 0)
            return session;
    }
    const struct session_past *past = session_past_find(engine, id);
    char at[32];
    if (past) {
        session_write_time(past->ended_at, at);
        err_set(err, ERR_ABSENT, "session '%s' ended at %s: %s", id, at, past->why);
    } else {
        err_set(err, ERR_ABSENT, "there is no session '%s'", id);
    }
    err_hint(err, "make a new one ('cupel session new'), and run the earlier cells again");
    snprintf(err->field, sizeof err->field, "session");
    return NULL;
}

struct session *session_find(const struct engine *engine, const char *id, struct err *err)
{
    return find(engine, id, /* expired= */ false, err);
}

struct session *session_find_expired(const struct engine *engine, const char *id, struct err *err)
{
    return find(engine, id, /* expired= */ true, err);
}

/* --- time --- */

static void remember(struct session *session, const char *why);
static void refuse_waiting(struct session *session, const char *why);

static void set_timer(struct session *session)
{
    const struct session_life *life = &session->life;
    int64_t at = life->expired ? life->until_ns : life->created_ns + life->max_ns;
    int64_t idle = life->used_ns + life->ttl_ns;
    bool resting = session->step.stage == SESSION_IDLE && !life->expired;
    loop_set_timer(&session->engine->loop, &session->life.timer, resting && idle < at ? idle : at);
}

/* Does the door want the files? Not of a session that is still made, or forked. */
static bool has_heir(const struct session *session)
{
    const struct session_fork *fork = &session->fork;
    const struct engine *engine = session->engine;
    return engine->on_expiry && session->box.opened_ns > 0 && !fork->parent && !fork->child &&
           !fork->waiting && engine->on_expiry(engine->on_expiry_user, session->id);
}

/* For everyone but the door it has ended. */
static void expire(struct session *session, const char *why)
{
    session->life.expired = true;
    session->life.until_ns = clock_now_ns() + ENGINE_HEIR_S * CLOCK_S;
    snprintf(session->life.ended, sizeof session->life.ended, "%s", why);
    remember(session, why);
    refuse_waiting(session, why);
    if (session->queue.cell)
        engine_cancel(session->queue.cell);
    set_timer(session);
}

static void on_timer(struct loop_timer *timer)
{
    struct session *session = loop_owner(timer, struct session, life.timer);
    const struct session_life *life = &session->life;
    char why[96];
    if (life->expired) {
        session_end(session, life->ended);
        return;
    }
    if (clock_now_ns() >= life->created_ns + life->max_ns)
        snprintf(why, sizeof why, "its life of %lld s was over",
                 (long long)(life->max_ns / CLOCK_S));
    else
        snprintf(why, sizeof why, "nobody used it for %lld s", (long long)(life->ttl_ns / CLOCK_S));
    session->life.called_off = true;
    if (has_heir(session))
        expire(session, why);
    else
        session_end(session, why);
}

/* --- begin --- */

void session_on_opened(struct session *session)
{
    if (session->step.err.kind != ERR_NONE) {
        char why[128];
        snprintf(why, sizeof why, "it could not be made: %.96s", session->step.err.text);
        session_end(session, why);
        return;
    }
    session->box.opened_ns = session_files_now_ns();
    session_protect(session);
}

static void on_turn(struct loop_timer *timer)
{
    session_happens(loop_owner(timer, struct session, queue.turn), SESSION_E_TURN);
}

int sessions_refuse_more(const struct engine *engine, struct err *err)
{
    unsigned kept = engine->queue.going_max + BOXES_KEPT;
    if (engine->session_count + kept < engine->house.limit)
        return 0;
    err_set(err, ERR_BUSY, "session limit (%u) reached", engine->session_count);
    err_hint(err, "end one ('cupel session rm'), or wait until one ends by itself");
    return -1;
}

struct session *session_make(struct engine *engine, const struct frame_session *what,
                             struct request *request, struct engine_image *image)
{
    struct session *session = buf_alloc_zero(1, sizeof *session);
    int64_t now = clock_now_ns();
    *session = (struct session){
        .engine = engine,
        .request = *request,
        .image = images_hold(image),
        .life = { .ttl_ns = (what->ttl_s < 0 ? SESSION_TTL_S : what->ttl_s) * CLOCK_S,
                  .max_ns = (what->life_s < 0 ? SESSION_LIFE_S : what->life_s) * CLOCK_S,
                  .created_ns = now, .used_ns = now, .created_at = time(NULL),
                  .timer = { .due = LOOP_HANDLER(on_timer) } },
        .queue.turn = { .due = LOOP_HANDLER(on_turn) },
        .box = { .id = HOUSE_NOBODY, .plan = PLAN_INIT, .porter = -1, .files = FILES_JOB_INIT,
                 .uploads = { .due = LOOP_HANDLER(session_on_uploads) } },
        .streams = { .words.fd = -1, .requests.fd = -1, .driver = DRIVER_INIT },
        .states = { .levels_max = what->undo_levels < 0 ? SESSION_LEVELS
                                                        : (unsigned)what->undo_levels,
                    .goal = SESSION_NOBODY },
    };
    *request = REQUEST_INIT;
    memset(session->streams.fd, -1, sizeof session->streams.fd);
    memset(session->streams.aside, -1, sizeof session->streams.aside);
    session_late_init(session);
    memcpy(session->id, "s_", 2);
    hash_random_hex(session->id + 2, REQUEST_SESSION_LEN - 2);
    session->after = engine->sessions;
    if (session->after)
        session->after->before = session;
    engine->sessions = session;
    engine->session_count++;
    set_timer(session);
    return session;
}

struct session *session_new(struct engine *engine, const struct frame_session *what,
                            struct request *request, struct err *err)
{
    if (sessions_refuse_more(engine, err) < 0)
        return NULL;
    struct engine_image *image = engine_find_image(engine, request, err);
    if (!image || plan_check_installed(request, &image->image, err) < 0 ||
        (request->packages && request_set_image(request, image->asked, err) < 0))
        return NULL;
    struct session *session = session_make(engine, what, request, image);
    session_open_box(session, SESSION_T_NEW);
    if (session->step.stage != SESSION_ENDED)
        return session;
    *err = session->step.err;
    return NULL;
}

/* --- end --- */

static void remember(struct session *session, const char *why)
{
    struct engine *engine = session->engine;
    if (!engine->past)
        engine->past = buf_alloc_zero(SESSIONS_PAST, sizeof *engine->past);
    if (engine->past_count == SESSIONS_PAST)
        memmove(engine->past, engine->past + 1, --engine->past_count * sizeof *engine->past);
    struct session_past *past = &engine->past[engine->past_count++];
    *past = (struct session_past){ .language = session->request.language,
                                   .cells = session->queue.cells,
                                   .created_at = session->life.created_at,
                                   .ended_at = time(NULL) };
    memcpy(past->id, session->id, sizeof past->id);
    snprintf(past->why, sizeof past->why, "%s", why);
    if (engine->on_session_end)
        engine->on_session_end(engine->on_session_end_user, session->id);
}

static void set_ended(const struct session *session, const char *why, struct err *err)
{
    err_set(err, ERR_ABSENT, "session '%s' ended: %s", session->id, why);
    err_hint(err, "make a new one ('cupel session new'), and run the earlier cells again");
}

static void refuse_waiting(struct session *session, const char *why)
{
    struct err err = ERR_INIT;
    set_ended(session, why, &err);
    while (session->queue.jobs) {
        struct session_job *job = session->queue.jobs;
        session_leave(job);
        job->refuse(job, &err);
    }
}

static void refuse_all(struct session *session, const char *why)
{
    struct err err = ERR_INIT;
    set_ended(session, why, &err);
    refuse_waiting(session, why);
    if (session->queue.ask) {
        struct session_job *job = &session->queue.ask->job;
        session->queue.ask = NULL;
        job->refuse(job, &err);
    }
}

void session_end(struct session *session, const char *why)
{
    struct engine *engine = session->engine;
    struct loop_timer *timers[] = { &session->life.timer, &session->queue.turn,
                                    &session->box.uploads, &session->step.timer };
    if (session->step.stage == SESSION_ENDED)
        return;
    session->step.stage = SESSION_ENDED;
    if (!session->life.expired) {
        snprintf(session->life.ended, sizeof session->life.ended, "%s", why);
        remember(session, why);
    }
    session_late_unwatch(session);
    session_late_drain(session);
    session_late_forget(session);
    if (!session->life.called_off)
        session_tell_end(session, why);
    session_fork_ended(session, why);
    engine->session_count--;
    for (size_t i = 0; i < array_len(timers); i++)
        loop_set_timer(&engine->loop, timers[i], LOOP_NEVER);
    struct engine_run *cell = take_ptr(session->queue.cell);
    if (cell)
        run_session_ended(cell, why, session->life.called_off);
    refuse_all(session, why);
    files_drop(&session->box.files);
    loop_remove(&engine->loop, &session->streams.words);
    loop_remove(&engine->loop, &session->streams.requests);
    if (session->box.id == BOX_ATTACHED && session_has_folder(session))
        session_leave_folder(session);
    else if (session->box.id != HOUSE_NOBODY)
        house_vacate(&engine->house, session->box.id, /* clean= */ false, -1);
    session->box.id = HOUSE_NOBODY;
    engine_tidy_soon(engine);
}

static void session_free(struct session *session)
{
    struct engine *engine = session->engine;
    struct session_streams *streams = &session->streams;
    *(session->before ? &session->before->after : &engine->sessions) = session->after;
    if (session->after)
        session->after->before = session->before;
    for (int i = 0; i < BOX_NEWS_FDS; i++) {
        own_close_fd(&streams->fd[i]);
        for (size_t j = 0; j < array_len(streams->aside); j++)
            own_close_fd(&streams->aside[j][i]);
    }
    own_close_fd(&session->box.porter);
    files_seen_done(&session->box.seen);
    session_late_done(session);
    driver_done(&streams->driver);
    plan_done(&session->box.plan);
    request_done(&session->request);
    images_drop(session->engine, session->image);
    free(streams->line);
    free(session);
}

void sessions_tidy(struct engine *engine)
{
    for (struct session *session = engine->sessions, *after; session; session = after) {
        after = session->after;
        if (session->step.stage == SESSION_ENDED)
            session_free(session);
    }
}

void sessions_end_all(struct engine *engine, const char *why)
{
    for (struct session *session = engine->sessions; session; session = session->after)
        session_end(session, why);
}

void sessions_close(struct engine *engine)
{
    sessions_end_all(engine, "the engine ended");
    sessions_tidy(engine);
    free(engine->past);
    engine->past = NULL;
    engine->past_count = 0;
}

/* --- whose turn it is --- */

int session_enter(struct session *session, struct session_job *job, struct err *err)
{
    struct session_job **end = &session->queue.jobs;
    if (session->queue.count >= SESSION_JOBS_MAX) {
        err_set(err, ERR_BUSY, "session '%s': limit of waiting requests (%u) reached", session->id,
                session->queue.count);
        err_hint(err, "wait for one of them to end");
        return -1;
    }
    while (*end)
        end = &(*end)->after;
    *end = job;
    job->after = NULL;
    job->session = session;
    session->queue.count++;
    if (session->step.stage == SESSION_IDLE)
        loop_set_timer(&session->engine->loop, &session->queue.turn, 0);
    return 0;
}

void session_leave(struct session_job *job)
{
    struct session *session = job->session;
    if (!session)
        return;
    struct session_job **link = &session->queue.jobs;
    while (*link != job)
        link = &(*link)->after;
    *link = job->after;
    job->session = NULL;
    session->queue.count--;
}

void session_next(struct session *session)
{
    struct session_job *job = session->queue.jobs;
    if (session->step.stage == SESSION_ENDED)
        return;
    session_await(session, SESSION_IDLE);
    session->step.task = SESSION_T_ASK;
    session->life.used_ns = clock_now_ns();
    if (session_is_dead(session)) {
        session_mend(session);
        return;
    }
    if (job) {
        session_leave(job);
        session->step.stage = SESSION_BUSY;
        job->begin(job);
    } else {
        session_late_watch(session);
        session_let_tasks_run(session);
    }
    set_timer(session);
}

/* --- for doors --- */

void engine_on_session(struct engine *engine,
                       void (*told)(void *user, const char *session, const json_t *event),
                       void *user)
{
    engine->on_session = told;
    engine->on_session_user = user;
}

void engine_on_session_end(struct engine *engine, void (*ended)(void *user, const char *session),
                           void *user)
{
    engine->on_session_end = ended;
    engine->on_session_end_user = user;
}

void engine_on_expiry(struct engine *engine, bool (*due)(void *user, const char *session),
                      void *user)
{
    engine->on_expiry = due;
    engine->on_expiry_user = user;
}

unsigned engine_session_count(const struct engine *engine)
{
    return engine->session_count;
}

bool engine_session_is_known(const struct engine *engine, const char *id)
{
    struct err ignored = ERR_INIT;
    return session_find(engine, id, &ignored) || session_past_find(engine, id);
}

const struct request *engine_session_request(const struct engine *engine, const char *id,
                                             struct err *err)
{
    const struct session *session = session_find(engine, id, err);
    return session ? &session->request : NULL;
}
