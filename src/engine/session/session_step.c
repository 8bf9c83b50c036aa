/* The steps and events of a session, by the tables of session_table.h. News of the broker is noted
 * first; then the stage acts on it. Runs in the engine. */
#include "engine/session/session.h"

#include "base/clock.h"
#include "base/own.h"
#include "box/park/inject.h"
#include "engine/run/run.h"

static const struct {
    enum session_event event;
    int limit_ms;
    void (*action)(struct session *session);
    void (*failed)(struct session *session);
} steps[SESSION_ANY] = {
#define X(stage, event, limit, action, failed, text) \
    [SESSION_##stage] = { SESSION_E_##event, SESSION_##limit, session_##action, session_##failed },
    SESSION_STAGES(X)
#undef X
};

static const struct {
    enum session_stage stage;
    enum session_event event;
    void (*action)(struct session *session);
} extras[] = {
#define X(stage, event, action) { SESSION_##stage, SESSION_E_##event, session_##action },
    SESSION_EXTRAS(X)
#undef X
};

static const struct {
    enum session_task task;
    enum session_end end;
    void (*action)(struct session *session);
} tasks[] = {
#define X(task, end, action) { SESSION_T_##task, SESSION_##end, session_##action },
    SESSION_TASKS(X)
#undef X
};

static void on_time(struct loop_timer *timer)
{
    session_happens(loop_owner(timer, struct session, step.timer), SESSION_E_TIME);
}

void session_await(struct session *session, enum session_stage stage)
{
    int64_t limit_ns = steps[stage].limit_ms * CLOCK_MS;
    session->step.stage = stage;
    session->step.err = ERR_INIT;
    session_late_unwatch(session);
    loop_due(&session->step.timer, on_time);
    loop_set_timer(&session->engine->loop, &session->step.timer,
                   limit_ns ? clock_now_ns() + limit_ns : LOOP_NEVER);
}

void session_step_done(struct session *session)
{
    enum session_stage stage = session->step.stage;
    session->step.stage = SESSION_BUSY;
    loop_set_timer(&session->engine->loop, &session->step.timer, LOOP_NEVER);
    loop_remove(&session->engine->loop, &session->streams.words);
    loop_remove(&session->engine->loop, &session->streams.requests);
    bool failed = session->step.err.kind != ERR_NONE;
    (failed ? steps[stage].failed : steps[stage].action)(session);
}

void session_step_failed(struct session *session, enum err_kind kind, const char *text)
{
    if (session_awaits(session, SESSION_E_FILES))
        files_drop(&session->box.files);
    err_set(&session->step.err, kind, "%s", text);
    session_step_done(session);
}

bool session_awaits(const struct session *session, enum session_event event)
{
    return steps[session->step.stage].event == event;
}

void session_happens(struct session *session, enum session_event event)
{
    enum session_stage stage = session->step.stage;
    if (session_awaits(session, event)) {
        session_step_done(session);
        return;
    }
    for (size_t i = 0; i < array_len(extras) && stage != SESSION_ENDED; i++) {
        if ((extras[i].stage == stage || extras[i].stage == SESSION_ANY) &&
            extras[i].event == event) {
            extras[i].action(session);
            return;
        }
    }
}

void session_ends(struct session *session, enum session_end end)
{
    bool returning = end == SESSION_UP && session->states.going_back;
    enum session_task task = returning ? SESSION_T_RETURN : session->step.task;
    for (size_t i = 0; i < array_len(tasks); i++) {
        if (tasks[i].task == task && tasks[i].end == end) {
            tasks[i].action(session);
            return;
        }
    }
}

/* --- failures --- */

void session_fail_exited(struct session *session)
{
    session_step_failed(session, ERR_HOST, "the interpreter has ended");
}

void session_fail_late(struct session *session)
{
    session_step_failed(session, ERR_BUG, "it took too long");
}

/* The broker could not carry out an order. A porter's job does not depend on that. */
void session_fail_refused(struct session *session)
{
    struct err err = ERR_INIT;
    bool waits = steps[session->step.stage].limit_ms == SESSION_STEP_MS;
    box_failure(session->step.news, &err);
    if (waits && !session_awaits(session, SESSION_E_FILES))
        session_step_failed(session, ERR_HOST, err.text);
}

void session_on_empty(struct session *session)
{
    session_end(session, "its box died");
}

/* --- the broker's news --- */

static void note_started(struct session *session, const struct box_news *news, int *fds)
{
    for (int i = 0; i < BOX_NEWS_FDS; i++) {
        if (i == RUN_WORDS || i == RUN_REQUESTS)
            continue; /* the engine has made them */
        own_close_fd(&session->streams.fd[i]);
        session->streams.fd[i] = take_fd(&fds[i]);
    }
    session->box.walls = news->walls;
    session->box.stats = news->stats;
}

/* The keeper's answer. If its step was given up, nothing else knows of the copy. */
static bool note_answer(struct session *session, const struct box_news *news)
{
    struct session_states *states = &session->states;
    bool parked = news->kind == BOX_NEWS_PARKED, ok = news->end == INJECT_OK;
    if (!session_awaits(session, (enum session_event)news->kind) ||
        news->ticket != states->want.ticket) {
        if (parked && ok)
            session_drop_copy(session, news->state, news->ticket);
        return false;
    }
    session->step.end = news->end;
    session->step.error = news->error;
    if (parked) {
        states->held_bytes = news->held_bytes;
        states->maps[1] = states->maps[0];
        states->maps[0] = news->lost & BOX_MAPS_FILES;
    }
    if (news->kind == BOX_NEWS_AWAKE && ok) {
        session->box.interpreter = SESSION_I_USED;
        states->lost |= news->lost;
    }
    return true;
}

/* The broker answers the dead keeper's pending orders itself. */
static void note_keeper_gone(struct session *session)
{
    session->states.keeper_gone = session->states.going_back;
    if (session->states.going_back)
        return;
    session_forget_lost(session);
    session_happens(session, SESSION_E_LOST);
}

/* The news is of the parent's box, whose keeper did it; the child waits for it. */
static void note_forked_into(struct session *child, const struct box_news *news)
{
    if (!child || !session_awaits(child, SESSION_E_FORKED_INTO) ||
        child->fork.pin.ticket != news->ticket)
        return;
    child->step.end = news->end;
    child->step.error = news->error;
    child->states.lost |= news->lost;
    session_happens(child, SESSION_E_FORKED_INTO);
}

/* Note the facts. False: they are no event for this session. */
static bool note(struct session *session, const struct box_news *news, int *fds)
{
    struct session_box *box = &session->box;
    uint32_t kind = news->kind;
    if (kind == BOX_NEWS_PARKED || kind == BOX_NEWS_PREPARED || kind == BOX_NEWS_AWAKE)
        return note_answer(session, news);
    if (kind == BOX_NEWS_STARTED && session_awaits(session, SESSION_E_STARTED))
        note_started(session, news, fds);
    else if (kind == BOX_NEWS_PORTER && session_awaits(session, SESSION_E_PORTER))
        box->porter = take_fd(&fds[0]);
    else if (kind == BOX_NEWS_EXITED)
        box->interpreter = box->interpreter == SESSION_I_WOKEN ? SESSION_I_STILLBORN
                                                               : SESSION_I_DEAD;
    else if (kind == BOX_NEWS_SWEPT)
        box->interpreter = SESSION_I_SWEPT;
    else if (kind == BOX_NEWS_KEEPER_GONE)
        note_keeper_gone(session);
    else if (kind == BOX_NEWS_STATE_LOST)
        session_lost_state(session, news->state, news->ticket);
    else if (kind == BOX_NEWS_FORKED_INTO)
        note_forked_into(session->fork.child, news);
    return kind != BOX_NEWS_FORKED_INTO; /* it was an event of the child */
}

void session_on_news(struct house_tenant *tenant, const struct box_news *news,
                     int fds[BOX_NEWS_FDS])
{
    struct session *session = loop_owner(tenant, struct session, box.tenant);
    session->step.news = news;
    if (note(session, news, fds))
        session_happens(session, (enum session_event)news->kind);
    session->step.news = NULL;
}
