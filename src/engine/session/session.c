/* Sessions: beginning, end, and whose turn it is. Runs in the engine, in its loop. */
#include "engine/session/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/own.h"
#include "engine/run/run.h"

#define SECOND INT64_C(1000000000)
#define BOXES_KEPT 8 /* that sessions leave to runs, beside those that may run at once */

static void name_session(char out[32])
{
    unsigned char bytes[(REQUEST_SESSION_LEN - 2) / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        abort(); /* it gives so many at once, always */
    snprintf(out, 32, "s_");
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(out + 2 + 2 * i, 3, "%02x", bytes[i]);
}

static void write_time(int64_t at, char out[32])
{
    time_t seconds = (time_t)at;
    struct tm parts;
    if (!gmtime_r(&seconds, &parts) || strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0)
        out[0] = 0;
}

const struct session_past *session_past_find(const struct engine *engine, const char *id)
{
    for (size_t i = 0; i < engine->past_count; i++) {
        if (strcmp(engine->past[i].id, id) == 0)
            return &engine->past[i];
    }
    return NULL;
}

struct session *session_find(const struct engine *engine, const char *id, struct err *err)
{
    for (struct session *session = engine->sessions; session; session = session->after) {
        if (session->stage != SESSION_ENDED && strcmp(session->id, id) == 0)
            return session;
    }
    const struct session_past *past = session_past_find(engine, id);
    char at[32];
    if (past) {
        write_time(past->ended_at, at);
        err_set(err, ERR_ABSENT, "session '%s' ended at %s: %s", id, at, past->why);
    } else {
        err_set(err, ERR_ABSENT, "there is no session '%s'", id);
    }
    err_hint(err, "make a new one ('cupel session new'), and run the earlier cells again");
    snprintf(err->field, sizeof err->field, "session");
    return NULL;
}

/* --- time --- */

static void set_timer(struct session *session)
{
    int64_t at = session->created_ns + session->life_ns, idle = session->used_ns + session->ttl_ns;
    bool resting = session->stage == SESSION_IDLE;
    loop_set_timer(&session->engine->loop, &session->timer, resting && idle < at ? idle : at);
}

static void on_timer(struct loop_timer *timer)
{
    struct session *session = loop_owner(timer, struct session, timer);
    char why[96];
    int64_t now = clock_now_ns();
    if (now >= session->created_ns + session->life_ns)
        snprintf(why, sizeof why, "its life of %lld s was over",
                 (long long)(session->life_ns / SECOND));
    else
        snprintf(why, sizeof why, "nobody used it for %lld s",
                 (long long)(session->ttl_ns / SECOND));
    session->called_off = true;
    session_end(session, why);
}

/* --- begin and end --- */

static void on_opened(struct session *session)
{
    if (session->failed.kind != ERR_NONE) {
        char why[128];
        snprintf(why, sizeof why, "it could not be made: %.96s", session->failed.text);
        session_end(session, why);
        return;
    }
    session->unkept = true;
    session->opened_ns = session_files_now_ns();
    session_next(session);
}

static void on_turn(struct loop_timer *timer)
{
    struct session *session = loop_owner(timer, struct session, turn);
    if (session->stage == SESSION_IDLE)
        session_next(session);
}

/* Runs need boxes, too. */
int sessions_refuse_more(const struct engine *engine, struct err *err)
{
    unsigned kept = engine->queue.going_max + BOXES_KEPT;
    if (engine->session_count + kept < engine->house.limit)
        return 0;
    err_set(err, ERR_BUSY, "there are %u sessions already, which is the most",
            engine->session_count);
    err_hint(err, "end one ('cupel session rm'), or wait until one ends by itself");
    return -1;
}

struct session *session_make(struct engine *engine, const struct frame_session *what,
                             struct request *request)
{
    struct session *session = buf_alloc_zero(1, sizeof *session);
    int64_t now = clock_now_ns();
    *session = (struct session){
        .engine = engine, .request = *request, .created_ns = now, .used_ns = now,
        .created_at = time(NULL),
        .ttl_ns = (what->ttl_s < 0 ? SESSION_TTL_S : what->ttl_s) * SECOND,
        .life_ns = (what->life_s < 0 ? SESSION_LIFE_S : what->life_s) * SECOND,
        .levels_most = what->undo_levels < 0 ? SESSION_LEVELS : (unsigned)what->undo_levels,
        .timer = { .due = LOOP_HANDLER(on_timer) }, .turn = { .due = LOOP_HANDLER(on_turn) },
        .uploads = { .due = LOOP_HANDLER(session_on_uploads) },
        .box = HOUSE_NOBODY, .plan = PLAN_INIT,
        .porter = -1,
        .files = FILES_JOB_INIT, .words.fd = -1, .requests.fd = -1,
        .driver = DRIVER_INIT, .goal = SESSION_NOBODY,
    };
    *request = REQUEST_INIT;
    for (int i = 0; i < BOX_NEWS_FDS; i++)
        session->fd[i] = -1;
    memset(session->streams, -1, sizeof session->streams);
    name_session(session->id);
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
    struct session *session = session_make(engine, what, request);
    session_open_box(session, on_opened);
    if (session->stage != SESSION_ENDED)
        return session;
    *err = session->failed;
    return NULL;
}

static void remember(struct session *session, const char *why)
{
    struct engine *engine = session->engine;
    if (!engine->past)
        engine->past = buf_alloc_zero(SESSIONS_PAST, sizeof *engine->past);
    if (engine->past_count == SESSIONS_PAST)
        memmove(engine->past, engine->past + 1, --engine->past_count * sizeof *engine->past);
    struct session_past *past = &engine->past[engine->past_count++];
    *past = (struct session_past){ .language = session->request.language, .cells = session->cells,
                                   .created_at = session->created_at, .ended_at = time(NULL) };
    memcpy(past->id, session->id, sizeof past->id);
    snprintf(past->why, sizeof past->why, "%s", why);
}

static void refuse_all(struct session *session, const char *why)
{
    struct err err = ERR_INIT;
    err_set(&err, ERR_ABSENT, "session '%s' ended: %s", session->id, why);
    err_hint(&err, "make a new one ('cupel session new'), and run the earlier cells again");
    while (session->jobs) {
        struct session_job *job = session->jobs;
        session_leave(job);
        job->refuse(job, &err);
    }
    if (session->ask) {
        struct session_job *job = &session->ask->job;
        session->ask = NULL;
        job->refuse(job, &err);
    }
}

void session_end(struct session *session, const char *why)
{
    struct engine *engine = session->engine;
    if (session->stage == SESSION_ENDED)
        return;
    session->stage = SESSION_ENDED;
    snprintf(session->ended, sizeof session->ended, "%s", why);
    remember(session, why);
    if (!session->called_off)
        session_tell_end(session, why);
    session_fork_ended(session, why);
    engine->session_count--;
    loop_set_timer(&engine->loop, &session->timer, LOOP_NEVER);
    loop_set_timer(&engine->loop, &session->turn, LOOP_NEVER);
    loop_set_timer(&engine->loop, &session->uploads, LOOP_NEVER);
    loop_set_timer(&engine->loop, &session->patience, LOOP_NEVER);
    struct engine_run *cell = session->cell;
    session->cell = NULL;
    if (cell)
        run_session_ended(cell, why);
    refuse_all(session, why);
    files_drop(&session->files);
    loop_remove(&engine->loop, &session->words);
    loop_remove(&engine->loop, &session->requests);
    if (session->box != HOUSE_NOBODY)
        house_vacate(&engine->house, session->box, /* clean= */ false, -1);
    session->box = HOUSE_NOBODY;
    engine_tidy_soon(engine);
}

static void session_free(struct session *session)
{
    struct engine *engine = session->engine;
    *(session->before ? &session->before->after : &engine->sessions) = session->after;
    if (session->after)
        session->after->before = session->before;
    for (int i = 0; i < BOX_NEWS_FDS; i++)
        own_close_fd(&session->fd[i]);
    for (size_t i = 0; i < array_len(session->streams); i++) {
        for (int j = 0; j < RUN_PIPES; j++)
            own_close_fd(&session->streams[i][j]);
    }
    own_close_fd(&session->porter);
    files_seen_done(&session->seen);
    driver_done(&session->driver);
    plan_done(&session->plan);
    request_done(&session->request);
    free(session->line);
    free(session);
}

void sessions_tidy(struct engine *engine)
{
    for (struct session *session = engine->sessions, *after; session; session = after) {
        after = session->after;
        if (session->stage == SESSION_ENDED)
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
    struct session_job **end = &session->jobs;
    if (session->job_count >= SESSION_JOBS_MAX) {
        err_set(err, ERR_BUSY, "session '%s' has %u requests that wait, the most it may",
                session->id, session->job_count);
        err_hint(err, "wait for one of them to end");
        return -1;
    }
    while (*end)
        end = &(*end)->after;
    *end = job;
    job->after = NULL;
    job->session = session;
    session->job_count++;
    if (session->stage == SESSION_IDLE)
        loop_set_timer(&session->engine->loop, &session->turn, 0);
    return 0;
}

void session_leave(struct session_job *job)
{
    struct session *session = job->session;
    if (!session)
        return;
    struct session_job **link = &session->jobs;
    while (*link != job)
        link = &(*link)->after;
    *link = job->after;
    job->session = NULL;
    session->job_count--;
}

void session_next(struct session *session)
{
    struct session_job *job = session->jobs;
    if (session->stage == SESSION_ENDED)
        return;
    session->stage = SESSION_IDLE;
    session->used_ns = clock_now_ns();
    if (session->gone && session->box != HOUSE_NOBODY) {
        session_died_idle(session, session_next);
        return;
    }
    if (session->unkept && !(job && job->first)) {
        session->unkept = false;
        session_protect(session);
        return;
    }
    if (job) {
        session_leave(job);
        session->stage = SESSION_WORKING;
        job->begin(job);
    }
    set_timer(session);
}

/* --- what is told of it --- */

static json_t *time_json(int64_t at)
{
    char text[32];
    write_time(at, text);
    return json_string(text);
}

static json_t *checkpoints_json(const struct session *session)
{
    json_t *list = json_array();
    for (int i = 0; i < BOX_STATES; i++) {
        const struct session_place *place = &session->place[i];
        if (place->used && place->name[0])
            json_array_append_new(list, json_pack("{s:s, s:I}", "name", place->name, "cell",
                                                  (json_int_t)place->cell));
    }
    return list;
}

/* How many steps back `undo` can go now. */
static int undo_levels(const struct session *session)
{
    int steps = (int)session->levels - (session->is_protected ? 1 : 0);
    return session->is_protected || session->since == 1 ? (steps > 0 ? steps : 0) : 0;
}

json_t *session_info(const struct session *session)
{
    static const char *const statuses[] = {
        [SESSION_OPENING] = "busy", [SESSION_IDLE] = "idle",   [SESSION_CELL] = "running",
        [SESSION_WORKING] = "busy", [SESSION_ENDED] = "ended",
    };
    int64_t now = clock_now_ns();
    bool asked = session->ask && session->ask->what->what == FRAME_DO_INFO; /* by who is told */
    bool resting = session->stage == SESSION_IDLE || asked;
    json_t *info = json_pack(
        "{s:s, s:s, s:s, s:b, s:o, s:I, s:o, s:I, s:I, s:I, s:I, s:s, s:o}", "session", session->id,
        "language", request_languages[session->request.language].name, "status",
        statuses[asked ? SESSION_IDLE : session->stage], "protected", session->is_protected,
        "unprotected",
        session->is_protected || !session->unprotected[0] ? json_null()
                                                          : json_string(session->unprotected),
        "cell", (json_int_t)session->cells, "created_at", time_json(session->created_at), "idle_s",
        (json_int_t)(resting ? (now - session->used_ns) / SECOND : 0), "ttl_s",
        (json_int_t)(session->ttl_ns / SECOND), "age_s",
        (json_int_t)((now - session->created_ns) / SECOND), "life_s",
        (json_int_t)(session->life_ns / SECOND), "profile", session->request.profile->name,
        "limits", limits_to_json(&session->request.limits));
    json_object_set_new(info, "undo", json_pack("{s:i, s:i}", "levels", undo_levels(session),
                                                "most", (int)session->levels_most));
    json_object_set_new(info, "checkpoints", checkpoints_json(session));
    const int *counter = session->stage == SESSION_CELL ? session->cell->counter
                                                        : session->fd + RUN_PIPES;
    int64_t peak = counters_memory_peak(counter[BOX_COUNTER_PEAK]);
    json_object_set_new(info, "memory_peak_bytes", peak < 0 ? json_null() : json_integer(peak));
    session_tell_state(session, info);
    json_object_set_new(info, "shares", json_array());
    json_object_set_new(info, "ended", json_null());
    return info;
}

json_t *session_past_info(const struct session_past *past)
{
    json_t *info = json_pack("{s:s, s:s, s:s, s:I, s:o}", "session", past->id, "language",
                             request_languages[past->language].name, "status", "ended", "cell",
                             (json_int_t)past->cells, "created_at", time_json(past->created_at));
    json_object_set_new(info, "ended", json_pack("{s:o, s:s}", "at", time_json(past->ended_at),
                                                 "why", past->why));
    return info;
}

void engine_on_session(struct engine *engine,
                       void (*told)(void *user, const char *session, const json_t *event),
                       void *user)
{
    engine->on_session = told;
    engine->on_session_user = user;
}

unsigned engine_session_count(const struct engine *engine)
{
    return engine->session_count;
}

const struct request *engine_session_request(const struct engine *engine, const char *id,
                                             struct err *err)
{
    const struct session *session = session_find(engine, id, err);
    return session ? &session->request : NULL;
}
