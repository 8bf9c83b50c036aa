/* Forking a session: a second one from the state of the first, in a box of its own with
 * which it shares nothing. The new one is made as any other; then the memory of what is
 * kept of the first is put into its interpreter, and the files into its box. Runs in the
 * engine.
 *
 * Two sessions are at work: the first has the ask and does the steps, the new one is
 * `coming` until it is whole. If either ends meanwhile, the other one hears of it. */
#include "engine/session.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "box/inject.h"
#include "engine/run.h"

static void fail(struct session *session, enum err_kind kind, const char *text)
{
    struct session *coming = session->coming;
    session->coming = NULL;
    if (coming) {
        coming->parent = NULL;
        session_end(coming, text);
    }
    struct err err = ERR_INIT;
    err_set(&err, kind, "%s", text);
    session_refuse_ask(session, &err);
}

static bool went_well(struct session *session, const struct session *step_of)
{
    if (step_of->failed.kind == ERR_NONE)
        return true;
    char text[200];
    snprintf(text, sizeof text, "the session could not be forked: %.150s", step_of->failed.text);
    fail(session, step_of->failed.kind, text);
    return false;
}

static bool is_renewed(const struct driver *driver)
{
    return driver->renewed;
}

static void on_renewed(struct session *coming)
{
    struct session *session = coming->parent;
    if (!went_well(session, coming))
        return;
    coming->parent = NULL;
    session->coming = NULL;
    coming->cells = session->cells;
    coming->state = session->state;
    json_t *answer = session->ask->answer;
    json_object_set_new(answer, "session", session_info(coming));
    json_object_set_new(answer, "from", json_string(session->id));
    json_object_set_new(answer, "lost", session_lost_json(session->lost_files));
    coming->unkept = true;
    session_next(coming);
    session_reply(session);
}

static void renew(struct session *session)
{
    own_json line = json_pack("{s:s, s:b}", "op", "renew", "seeds", 0);
    session_ask_driver(session->coming, plan_line(line), is_renewed, on_renewed);
}

/* --- memory --- */

static void on_forked_into(struct session *session)
{
    if (session->failed.kind == ERR_NONE && session->kept.end != INJECT_OK)
        err_set(&session->failed, ERR_HOST, "its memory could not be carried over (%s)",
                inject_end_name(session->kept.end));
    if (went_well(session, session))
        renew(session);
}

/* After the files: its folder, and files that it has open, are opened by name. */
static void carry_memory(struct session *session)
{
    session_fork_into(session, session_newest(session), session->coming->box, on_forked_into);
}

/* --- files: out of the one porter, through a socket, into the other --- */

#define CARRIED_SLOT (BOX_PLACES - 1) /* the new session has nothing else there yet */

static void on_noted(struct session *coming)
{
    struct session *session = coming->parent;
    bool well = went_well(session, coming);
    files_drop(&coming->files);
    if (well)
        carry_memory(session);
}

static void on_restored(struct session *coming)
{
    struct session *session = coming->parent;
    bool well = went_well(session, coming);
    files_drop(&coming->files);
    files_session_forget(coming->porter, CARRIED_SLOT);
    if (well)
        session_note_files(coming, on_noted);
}

static void on_carried(struct session *session)
{
    /* Both ends are done when both have answered. */
    if (--session->carrying > 0)
        return;
    struct session *coming = session->coming;
    if (session->failed.kind == ERR_NONE)
        session->failed = coming->failed;
    files_drop(&session->files);
    files_drop(&coming->files);
    if (!went_well(session, session))
        return;
    session_await_files(coming, on_restored);
    files_session_restore(&coming->files, &session->engine->loop, coming->porter, CARRIED_SLOT,
                          session_files_done);
}

static void on_sent(struct session *session)
{
    on_carried(session);
}

static void on_received(struct session *coming)
{
    on_carried(coming->parent);
}

static void carry(struct session *coming)
{
    struct session *session = coming->parent;
    uint32_t newest = session_newest(session);
    int ends[2];
    if (!went_well(session, coming))
        return;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
        fail(session, ERR_HOST, "the files of the session could not be carried over");
        return;
    }
    own_fd from = ends[0], to = ends[1];
    session->carrying = 2;
    session_await_files(session, on_sent);
    session_await_files(coming, on_received);
    files_session_send(&session->files, &session->engine->loop, session->porter, newest, to,
                       session_files_done);
    files_session_receive(&coming->files, &session->engine->loop, coming->porter, CARRIED_SLOT,
                          from, session_files_done);
}

static void on_opened(struct session *coming)
{
    struct session *session = coming->parent;
    if (!went_well(session, coming))
        return;
    if (!coming->forked) {
        fail(session, ERR_HOST, "the session could not be forked: no zygote is there");
        return;
    }
    if (session->place[session_newest(session)].snapped)
        session_need_porter(coming, carry);
    else
        carry_memory(session);
}

void session_fork(struct session *session)
{
    struct engine *engine = session->engine;
    const struct request_ceilings all = { .host_memory_bytes = INT64_MAX };
    const struct frame_session what = {
        .ttl_s = session->ttl_ns / 1000000000, .life_s = session->life_ns / 1000000000,
        .undo_levels = session->levels_most,
    };
    struct err err = ERR_INIT;
    char text[200];
    own_json root = json_copy(session->request.root);
    own_request request = REQUEST_INIT;
    json_object_del(root, "files"); /* they come with the rest */
    if (!session->is_protected) {
        snprintf(text, sizeof text, "the state of the session is not kept: %s",
                 session->unprotected);
        fail(session, ERR_HOST, text);
        return;
    }
    if (sessions_refuse_more(engine, &err) < 0 ||
        request_from_json(root, &all, &request, &err) < 0) {
        session_refuse_ask(session, &err);
        return;
    }
    struct session *coming = session_make(engine, &what, &request);
    coming->parent = session;
    session->coming = coming;
    session_open_box(coming, on_opened);
}

void session_fork_ended(struct session *session, const char *why)
{
    struct session *parent = session->parent, *coming = session->coming;
    session->parent = session->coming = NULL;
    if (coming) {
        coming->parent = NULL;
        session_end(coming, "the session that it was forked from ended");
    }
    if (parent && parent->coming == session) {
        parent->coming = NULL;
        char text[200];
        snprintf(text, sizeof text, "the session could not be forked: %.150s", why);
        struct err err = ERR_INIT;
        err_set(&err, ERR_HOST, "%s", text);
        session_refuse_ask(parent, &err);
    }
}
