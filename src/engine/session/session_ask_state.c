/* Asks about the states of a session: checkpoint and undo. Runs in the engine. */
#include "engine/session/session.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"

static unsigned named_count(const struct session *session)
{
    unsigned count = 0;
    for (int i = 0; i < BOX_STATES; i++)
        count += session->states.kept[i].used && session->states.kept[i].name[0];
    return count;
}

/* The newest state is kept, once more if it had a name; or it could not be. */
void session_ask_on_kept(struct session *session)
{
    struct engine_ask *ask = session->queue.ask;
    if (!session->states.is_protected) {
        session_ask_refuse(ask, ERR_HOST, session->states.unprotected, NULL);
        return;
    }
    struct session_kept *kept = &session->states.kept[session_newest(session)];
    snprintf(kept->name, sizeof kept->name, "%s", ask->what->name);
    session_ask_info(ask);
}

void session_ask_checkpoint(struct session *session, struct engine_ask *ask)
{
    struct session_kept *kept = session->states.kept;
    uint32_t old = session_named(session, ask->what->name);
    char text[200];
    if (!session->states.is_protected) {
        snprintf(text, sizeof text, "the state of the session is not kept: %s",
                 session->states.unprotected);
        session_ask_refuse(ask, ERR_HOST, text, NULL);
        return;
    }
    if (old == SESSION_NOBODY && named_count(session) >= SESSION_NAMED_MAX) {
        session_ask_refuse(ask, ERR_LIMIT, "checkpoint limit (8) reached",
                           "use the name of one that exists: it is replaced");
        return;
    }
    if (old != SESSION_NOBODY) {
        kept[old].name[0] = 0;
        if (!kept[old].level && !kept[old].pins)
            session_drop_state(session, old);
    }
    if (!kept[session_newest(session)].name[0]) {
        session_ask_on_kept(session);
        return;
    }
    session_leave_level(session, session->states.levels - 1); /* each copy has one name */
    session_keep(session, SESSION_T_CHECKPOINT);
}

void session_ask_on_not_undone(struct session *session)
{
    char text[160], name[RESULT_STATE_TEXT];
    if (session->step.err.kind != ERR_NONE) {
        session_end(session, "its earlier state could not be brought back");
        return;
    }
    snprintf(text, sizeof text, "that state is lost; the session is in %s",
             result_state_text(session->states.cell, name));
    session_ask_refuse(session->queue.ask, ERR_HOST, text, NULL);
}

void session_ask_on_undone(struct session *session)
{
    struct engine_ask *ask = session->queue.ask;
    struct session_states *states = &session->states;
    char text[200], name[RESULT_STATE_TEXT];
    if (states->stayed[0]) {
        snprintf(text, sizeof text, "that state cannot be woken: %s; the session is as it was",
                 states->stayed);
        session_ask_refuse(ask, ERR_HOST, text, NULL);
        return;
    }
    if (session->step.err.kind != ERR_NONE) { /* mostly the newest state is where it was before */
        session_lost_state(session, states->goal, states->want.ticket);
        if (states->levels > 0)
            session_go_back(session, session_newest(session), SESSION_T_UNDO_AGAIN);
        else
            session_ask_on_not_undone(session);
        return;
    }
    if (states->cell != states->asked_cell) /* nothing had told yet that its copy was dead */
        snprintf(states->news, sizeof states->news,
                 "cupel: the state that undo asked for is lost; the session goes on from %s\n",
                 result_state_text(states->cell, name));
    states->last = RESULT_STATE_RESTORED;
    json_object_set_new(ask->answer, "state", json_string("restored"));
    json_object_set_new(ask->answer, "lost", session_lost_json(states->lost));
    session_ask_info(ask);
}

void session_ask_undo(struct session *session, struct engine_ask *ask)
{
    struct session_states *states = &session->states;
    const char *to = ask->what->to, *why = states->is_protected ? "" : states->unprotected;
    unsigned back = states->is_protected ? 2 : 1;
    uint32_t at = to ? session_named(session, to) : SESSION_NOBODY;
    char text[160];
    if (!to && states->levels >= back && states->since <= 1)
        at = states->stack[states->levels - back];
    if (at != SESSION_NOBODY) {
        states->asked_cell = states->kept[at].cell;
        session_go_back(session, at, SESSION_T_UNDO);
        return;
    }
    if (to) {
        snprintf(text, sizeof text, "the session has no checkpoint '%s'", to);
        session_ask_refuse(ask, ERR_ABSENT, text, "'info' lists the checkpoints");
        return;
    }
    snprintf(text, sizeof text, "the state after the last cell but one is not kept%s%s",
             why[0] ? ": " : "", why);
    session_ask_refuse(ask, ERR_ABSENT,
                       session->queue.cells == 0 ? "there is nothing to undo" : text,
                       "undo_levels says how many are kept; only Python's states can be");
}
