/* Starting an interpreter: in a box from a pool or a new one, forked from a zygote or exec'd. The
 * end is UP, with session->step.err where there is no interpreter. Runs in the engine. */
#include "engine/session/session.h"

#include <fcntl.h>

#include "base/clock.h"
#include "base/own.h"
#include "box/zygote/zygote.h"
#include "engine/run/run.h"

#define FORK_MS 10000 /* for a fork from a zygote; then the interpreter is exec'd */

/* --- streams --- */

/* A lineage is an interpreter that was started, and its copies: they share its streams. */
static bool lineage_is_kept(const struct session *session, unsigned lineage)
{
    for (int i = 0; i < BOX_STATES; i++) {
        const struct session_kept *kept = &session->states.kept[i];
        if (kept->used && !kept->birth && kept->lineage == lineage)
            return true;
    }
    return false;
}

/* The streams of the live interpreter are put aside, or closed if no copy has them. */
void session_go_to_lineage(struct session *session, unsigned lineage)
{
    struct session_streams *streams = &session->streams;
    if (lineage == streams->lineage)
        return;
    session_late_drain(session);
    session_late_forget(session);
    bool kept = lineage_is_kept(session, streams->lineage);
    for (int i = 0; i < RUN_PIPES; i++) {
        int *aside = &streams->aside[streams->lineage][i];
        own_close_fd(aside);
        if (kept)
            *aside = take_fd(&streams->fd[i]);
        own_close_fd(&streams->fd[i]);
        streams->fd[i] = take_fd(&streams->aside[lineage][i]);
    }
    streams->lineage = lineage;
}

static void begin_lineage(struct session *session)
{
    unsigned lineage = 0; /* there are more lineages than kept states */
    while (lineage == session->streams.lineage || lineage_is_kept(session, lineage))
        lineage++;
    session_go_to_lineage(session, lineage);
}

/* The output must not block the engine. */
static void open_streams(struct session *session)
{
    for (int i = RUN_OUT; i <= RUN_ERR; i++) {
        if (fcntl(session->streams.fd[i], F_SETFL, O_NONBLOCK) < 0)
            err_sys(&session->step.err, "set up the pipes of the session");
    }
}

/* --- starting --- */

/* The interpreter waits, or a step failed. */
void session_start_done(struct session *session)
{
    session_ends(session, SESSION_UP);
}

/* An interpreter that was exec'd says when it is ready. */
void session_start_on_started(struct session *session)
{
    open_streams(session);
    if (session->step.err.kind != ERR_NONE) {
        session_start_done(session);
        return;
    }
    own_close_fd(&session->streams.fd[RUN_IN]); /* each cell has its own */
    session->box.interpreter = SESSION_I_FRESH;
    session->states.cell = session->queue.cells; /* of the files; the rest of it is gone */
    session->states.since = 0;
    if (!session->box.forked)
        session_ask_driver(session, NULL, SESSION_GREETING);
    else
        session_start_done(session);
}

/* A zygote may hang, or die again and again: after FORK_MS the session does without. */
void session_start_again(struct session *session)
{
    struct pools *pools = &session->engine->pools;
    struct box_call *order = &session->box.plan.start;
    bool may_fork = session->request.language == REQUEST_PYTHON &&
                    clock_now_ns() < session->box.fork_until_ns;
    if (may_fork && pools_zygote_is_coming(pools, session->image, &session->request)) {
        session_await(session, SESSION_LOOKING);
        return;
    }
    session->box.forked = may_fork && pools_session_zygote(pools, session->image, &session->request,
                                                           &order->start.zygote);
    order->op = session->box.forked ? BOX_OP_FORK : BOX_OP_START;
    order->start.rehearsal = ZYGOTE_NO_REHEARSAL;
    session_order_channel(session, order, session->box.forked ? -1 : session->box.plan.exec_block,
                          SESSION_STARTING);
}

void session_start_on_failed(struct session *session)
{
    if (!session->box.forked) {
        session_fail_refused(session);
        return;
    }
    pools_zygote_failed(&session->engine->pools, session->box.plan.start.start.zygote);
    session_start_again(session);
}

/* In a box that is built. */
void session_start_begin(struct session *session)
{
    session->step.err = ERR_INIT;
    session->box.fork_until_ns = clock_now_ns() + FORK_MS * CLOCK_MS;
    session_start_again(session);
}

/* Take an interpreter of the pool. */
static bool take_waiting(struct session *session)
{
    struct pool_taken taken;
    if (!pools_take_session(&session->engine->pools, session->image, &session->request,
                            &session->box.tenant, &taken))
        return false;
    session->box.id = taken.box;
    session->box.forked = true;
    session->box.walls = taken.walls;
    session->box.stats = taken.stats;
    for (int i = 0; i < BOX_NEWS_FDS; i++)
        session->streams.fd[i] = taken.fd[i];
    return true;
}

void session_open_box(struct session *session, enum session_task task)
{
    struct engine *engine = session->engine;
    struct session_box *box = &session->box;
    struct box_call *create = &box->plan.create;
    const struct plan_image in = plan_image_of(session->image, /* fonts= */ true);
    session->step.task = task;
    box->tenant.news = session_on_news;
    if (plan_session(&session->request, &in, &box->plan, &session->step.err) < 0) {
        session_start_done(session);
        return;
    }
    if (session_has_folder(session)) {
        session_open_folder(session);
        return;
    }
    if (take_waiting(session)) {
        session_start_on_started(session);
        return;
    }
    box->id = pools_take_box(&engine->pools, session->image, &session->request, &box->tenant);
    if (box->id != HOUSE_NOBODY) {
        session_start_begin(session);
        return;
    }
    box->id = house_take(&engine->house, &box->tenant);
    if (box->id == HOUSE_NOBODY) {
        err_set(&session->step.err, ERR_BUSY, "every box is taken");
        err_hint(&session->step.err, "end a session ('cupel session rm'), or try again later");
        session_start_done(session);
        return;
    }
    session_order(session, create, box->plan.plant_fds, create->create.plants.count,
                  SESSION_BUILDING);
}

void session_restart(struct session *session)
{
    begin_lineage(session);
    for (int i = 0; i < BOX_NEWS_FDS; i++)
        own_close_fd(&session->streams.fd[i]);
    session_start_begin(session);
}

void session_start_on_swept(struct session *session)
{
    session_forget_states(session);
    session_restart(session);
}
