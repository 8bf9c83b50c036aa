/* Going back to a kept state of a session, and mending a death between cells. The end of going back
 * is BACK. Runs in the engine. */
#include "engine/session/session.h"

#include <errno.h>
#include <stdio.h>

#include "base/own.h"
#include "box/park/inject.h"
#include "engine/run/run.h"

/* --- going back --- */

/* The keeper may have died meanwhile, and all copies with it. */
static void end_back(struct session *session)
{
    session->states.going_back = false;
    if (session->states.keeper_gone)
        session_forget_lost(session);
    session_ends(session, SESSION_BACK);
}

/* The session is in no state now. A copy that could not be woken is dead: an older state is better
 * than none. */
void session_back_failed(struct session *session)
{
    struct session_states *states = &session->states;
    files_drop(&session->box.files);
    session->box.interpreter = SESSION_I_DEAD;
    if (states->levels <= 1 || session_newest(session) != states->goal) {
        end_back(session);
        return;
    }
    session_leave_level(session, states->levels - 1);
    session_go_back(session, session_newest(session), session->step.task);
}

void session_back_on_noted(struct session *session)
{
    files_drop(&session->box.files);
    if (!session->states.want.birth && session_renew_later(session) < 0) {
        err_set(&session->step.err, ERR_HOST, "the interpreter has closed its channel");
        session_back_failed(session);
        return;
    }
    session_is_at(session, session->states.goal);
    end_back(session);
}

void session_back_on_restored(struct session *session)
{
    session->states.lost |= session->box.files.lost;
    files_drop(&session->box.files);
    session_note_files(session, SESSION_BACK_NOTING);
}

void session_back_on_porter(struct session *session)
{
    const struct session_states *states = &session->states;
    files_session_restore(session_await_files(session, SESSION_RESTORING),
                          states->want.snapped ? states->goal : BOX_STATES, states->want.kept_ns);
}

void session_back_on_up(struct session *session)
{
    if (session->step.err.kind != ERR_NONE)
        session_back_failed(session);
    else if (session->states.goal_files)
        session_need_porter(session, SESSION_BACK_PORTER);
    else
        session_back_on_noted(session);
}

void session_back_on_awake(struct session *session)
{
    if (session->step.end != INJECT_OK)
        err_set(&session->step.err, ERR_BUG, "the copy could not be woken: %s",
                session_why_not(session));
    session_back_on_up(session);
}

static struct box_call order_of(const struct session_states *states, enum box_op op)
{
    return (struct box_call){ .op = op, .keep = { .state = states->goal,
                                                  .ticket = states->want.ticket } };
}

void session_back_on_swept(struct session *session)
{
    struct box_call wake = order_of(&session->states, BOX_OP_WAKE);
    session->states.goal_files = session->states.want.snapped || session_has_files(session);
    if (session->states.want.birth) {
        session_restart(session);
        return;
    }
    session_go_to_lineage(session, session->states.want.lineage);
    session_order_channel(session, &wake, -1, SESSION_WAKING);
}

/* The state cannot be woken: the session stays as it was. */
void session_back_refused(struct session *session)
{
    struct session_states *states = &session->states;
    snprintf(states->stayed, sizeof states->stayed, "%.120s", session->step.err.text);
    err_set(&session->step.err, ERR_HOST, "that state cannot be woken: %s", states->stayed);
    end_back(session);
}

/* The live interpreter is still there. If its processes alone leave no room for another (EAGAIN), a
 * sweep makes room: the limit for copies allows enough. */
void session_back_on_prepared(struct session *session)
{
    const struct session_states *states = &session->states;
    uint32_t end = session->step.end;
    int refusal = end == INJECT_REFUSED ? session->step.error : 0;
    bool dead = end == INJECT_DIED || end == INJECT_LOST || refusal == ENOENT || refusal == ESTALE;
    if (end == INJECT_OK || refusal == EAGAIN) {
        session_sweep(session, SESSION_SWEEPING);
        return;
    }
    err_set(&session->step.err, ERR_HOST, "%s",
            dead ? "its copy is lost" : session_why_not(session));
    session->states.going_back = false;
    if (dead)
        session_lost_state(session, states->goal, states->want.ticket);
    session_back_refused(session);
}

void session_go_back(struct session *session, uint32_t at, enum session_task task)
{
    struct session_states *states = &session->states;
    session->step.stage = SESSION_BUSY;
    session->step.task = task;
    states->goal = at;
    states->want = states->kept[at];
    states->going_back = true;
    states->stayed[0] = 0;
    states->lost = 0;
    struct box_call prepare = order_of(states, BOX_OP_PREPARE);
    if (session_is_dead(session) || states->want.birth)
        session_sweep(session, SESSION_SWEEPING);
    else
        session_order(session, &prepare, NULL, 0, SESSION_PREPARING);
}

/* --- a death between cells --- */

static void end_mend(struct session *session, enum result_state became)
{
    session_tell_death(session, "between cells", became);
    if (session->queue.cell)
        session_cell_go(session);
    else
        session_next(session);
}

void session_mend_on_anew(struct session *session)
{
    if (session->step.err.kind != ERR_NONE)
        session_end(session, "its interpreter died between cells, and no other could be started");
    else
        end_mend(session, RESULT_STATE_LOST);
}

void session_mend_on_back(struct session *session)
{
    if (session->step.err.kind != ERR_NONE)
        session_sweep(session, SESSION_EMPTYING);
    else
        end_mend(session, RESULT_STATE_ROLLED_BACK);
}

void session_mend(struct session *session)
{
    struct session_states *states = &session->states;
    session->step.stage = SESSION_BUSY;
    session->step.task = SESSION_T_MEND;
    if (session->box.interpreter == SESSION_I_STILLBORN && states->levels > 0 &&
        !session_drain_words(session)) { /* it would die again */
        session_leave_level(session, states->levels - 1);
        states->is_protected = false;
    }
    own_close_fd(&session->streams.fd[RUN_WORDS]);
    own_close_fd(&session->streams.fd[RUN_REQUESTS]);
    if (states->levels > 0)
        session_go_back(session, session_newest(session), SESSION_T_MEND);
    else
        session_sweep(session, SESSION_EMPTYING);
}
