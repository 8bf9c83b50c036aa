/* States of a session on request: checkpoint, undo, fork. Runs in the engine. */
#include "engine/session/session_ask.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "engine/run/run.h"

static unsigned named_count(const struct session *session)
{
    unsigned count = 0;
    for (int i = 0; i < BOX_STATES; i++)
        count += session->place[i].used && session->place[i].name[0];
    return count;
}

static void give_name(struct session *session)
{
    struct session_place *place = &session->place[session_newest(session)];
    snprintf(place->name, sizeof place->name, "%s", session->ask->what->name);
    session_ask_info(session->ask);
}

static void on_kept_again(struct session *session)
{
    if (session->is_protected)
        give_name(session);
    else
        session_ask_refuse(session->ask, ERR_HOST, session->unprotected, NULL);
}

void session_ask_checkpoint(struct session *session, struct engine_ask *ask)
{
    const char *name = ask->what->name;
    uint32_t old = session_named(session, name), now = session_newest(session);
    char text[200];
    if (!session->is_protected) {
        snprintf(text, sizeof text, "the state of the session is not kept: %s",
                 session->unprotected);
        session_ask_refuse(ask, ERR_HOST, text, NULL);
        return;
    }
    if (old == SESSION_NOBODY && named_count(session) >= SESSION_NAMED_MAX) {
        session_ask_refuse(ask, ERR_LIMIT, "the session has 8 checkpoints, the most it may",
                   "use one of the names that are there: it is replaced");
        return;
    }
    if (old != SESSION_NOBODY) {
        session->place[old].name[0] = 0;
        if (!session->place[old].level && !session->place[old].pins)
            session_drop_place(session, old);
    }
    if (session->place[now].name[0])
        session_keep_again(session, on_kept_again); /* one state with two names is kept twice */
    else
        give_name(session);
}

static void on_not_undone(struct session *session)
{
    char text[160], name[RESULT_STATE_TEXT];
    if (session->failed.kind != ERR_NONE) {
        session_end(session, "its earlier state could not be brought back");
        return;
    }
    snprintf(text, sizeof text, "that state is lost; the session is in %s",
             result_state_text(session->state, name));
    session_ask_refuse(session->ask, ERR_HOST, text, NULL);
}

static void on_undone(struct session *session)
{
    struct engine_ask *ask = session->ask;
    char name[RESULT_STATE_TEXT];
    if (session->stayed[0]) {
        char text[200];
        snprintf(text, sizeof text, "that state cannot be woken: %s; the session is as it was",
                 session->stayed);
        session_ask_refuse(ask, ERR_HOST, text, NULL);
        return;
    }
    if (session->failed.kind != ERR_NONE) { /* the newest state is mostly the one that it was in */
        session_lost_place(session, session->goal, session->goal_state.ticket);
        if (session->levels > 0)
            session_go_back(session, session_newest(session), on_not_undone);
        else
            on_not_undone(session);
        return;
    }
    if (session->state != session->asked_state) /* its copy had died, and was not missed yet */
        snprintf(session->news, sizeof session->news,
                 "cupel: the state that undo asked for is lost; the session goes on from %s\n",
                 result_state_text(session->state, name));
    session->last = RESULT_STATE_RESTORED;
    json_object_set_new(ask->answer, "state", json_string("restored"));
    json_object_set_new(ask->answer, "lost", session_lost_json(session->lost));
    session_ask_info(ask);
}

void session_ask_undo(struct session *session, struct engine_ask *ask)
{
    const char *to = ask->what->to;
    unsigned back = session->is_protected ? 2 : 1;
    uint32_t place = to ? session_named(session, to) : SESSION_NOBODY;
    char text[160];
    if (!to && session->levels >= back && session->since <= 1)
        place = session->stack[session->levels - back];
    if (place != SESSION_NOBODY) {
        session->asked_state = session->place[place].cell;
        session_go_back(session, place, on_undone);
        return;
    }
    if (to) {
        snprintf(text, sizeof text, "the session has no checkpoint '%s'", to);
        session_ask_refuse(ask, ERR_ABSENT, text, "'info' lists the checkpoints");
        return;
    }
    bool none = session->request.language != REQUEST_PYTHON || session->cells == 0;
    snprintf(text, sizeof text, "the state after the last cell but one is not kept%s%s",
             session->unprotected[0] && !session->is_protected ? ": " : "",
             session->is_protected ? "" : session->unprotected);
    session_ask_refuse(ask, ERR_ABSENT,
                       none && session->cells == 0 ? "there is nothing to undo" : text,
                       "undo_levels says how many are kept; only Python's states can be");
}

void session_ask_fork(struct session *session, struct engine_ask *ask)
{
    (void)ask;
    session_fork(session);
}
