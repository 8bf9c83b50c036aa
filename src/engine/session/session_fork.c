/* Forking a session: a second one from the state of the first, in a box of its own with
 * which it shares nothing. The new one is made as any other; then the files of what is
 * kept of the first are put into its box, and the memory into its interpreter. Runs in
 * the engine.
 *
 * Two sessions are at work. The new one is `coming` until it is whole, has the ask, and
 * does the steps; the first, its `parent`, goes on with cells meanwhile, for the state is
 * taken from a copy, which is pinned until then. Only to send files it waits its turn.
 * If either ends, the other one hears of it. One fork of a parent at a time; others wait
 * beside the line, with the state that was when they were asked for. */
#include "engine/session/session_ask.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "box/fork/transplant.h"
#include "engine/run/run.h"

#define CARRIED_SLOT (BOX_STATES - 1) /* the new session has nothing else there yet */

/* --- the end of it --- */

/* Else it was forgotten with all others, and another one may be there. */
static bool is_pinned(const struct session *parent, uint32_t at, uint64_t ticket)
{
    return parent->place[at].pins > 0 && parent->place[at].ticket == ticket;
}

static void unpin(struct session *parent, uint32_t at, uint64_t ticket)
{
    struct session_place *place = &parent->place[at];
    if (!is_pinned(parent, at, ticket))
        return;
    place->pins--;
    if (!place->pins && !place->level && !place->name[0])
        session_drop_place(parent, at);
}

static void begin(struct session *session, struct engine_ask *ask);

/* They are two sessions from now on; who waits to fork the parent as well has its turn. */
static void part(struct session *coming)
{
    struct session *parent = coming->parent;
    coming->parent = NULL;
    session_leave(&coming->carry);
    if (!parent)
        return;
    parent->coming = NULL;
    unpin(parent, coming->fork_place, coming->fork_ticket);
    struct engine_ask *next = parent->forks;
    if (next && parent->stage != SESSION_ENDED) {
        parent->forks = next->next_fork;
        begin(parent, next);
    }
}

static void fail(struct session *coming, enum err_kind kind, const char *why)
{
    struct engine_ask *ask = coming->fork_ask;
    struct err err = ERR_INIT;
    err_set(&err, kind, "the session could not be forked: %s", why);
    coming->fork_ask = NULL;
    part(coming);
    session_end(coming, err.text);
    if (ask)
        session_ask_reply(ask, &err);
}

/* What it is forked from may be lost between two steps. */
static bool is_still_kept(struct session *coming)
{
    if (is_pinned(coming->parent, coming->fork_place, coming->fork_ticket))
        return true;
    fail(coming, ERR_HOST, "what was kept is lost");
    return false;
}

static bool went_well(struct session *coming)
{
    if (coming->failed.kind == ERR_NONE)
        return true;
    struct err failed = coming->failed;
    fail(coming, failed.kind, failed.text);
    return false;
}

void session_fork_ended(struct session *session, const char *why)
{
    struct err gone = ERR_INIT;
    err_set(&gone, ERR_ABSENT, "session '%s' ended: %s", session->id, why);
    while (session->forks) {
        struct engine_ask *ask = session->forks;
        session->forks = ask->next_fork;
        session_ask_reply(ask, &gone);
    }
    if (session->coming)
        fail(session->coming, ERR_HOST, "the session ended");
    if (!session->parent)
        return;
    struct engine_ask *ask = session->fork_ask;
    struct err err = ERR_INIT;
    err_set(&err, ERR_HOST, "the session could not be forked: %s", why);
    session->fork_ask = NULL;
    part(session);
    if (ask)
        session_ask_reply(ask, &err);
}

static void on_renewed(struct session *coming)
{
    struct engine_ask *ask = coming->fork_ask;
    if (!went_well(coming))
        return;
    json_object_set_new(ask->answer, "session", session_info(coming));
    json_object_set_new(ask->answer, "from", json_string(coming->parent->id));
    json_object_set_new(ask->answer, "lost", session_lost_json(coming->lost));
    coming->fork_ask = NULL;
    coming->unkept = true;
    coming->opened_ns = session_files_now_ns();
    coming->state = coming->cells;
    part(coming);
    session_next(coming);
    session_ask_reply(ask, NULL);
}

/* --- memory --- */

static void on_forked_into(struct session *coming)
{
    if (coming->failed.kind == ERR_NONE && coming->kept.end != INJECT_OK)
        err_set(&coming->failed, ERR_HOST, "%s",
                transplant_reason(coming->kept.end, coming->kept.error));
    if (!went_well(coming))
        return;
    session_renew(coming, on_renewed);
}

/* After the files: its folder, and files that it has open, are opened by name. */
static void carry_memory(struct session *coming)
{
    if (!is_still_kept(coming))
        return;
    if (coming->parent->place[coming->fork_place].birth) {
        coming->failed = ERR_INIT;
        on_renewed(coming);
        return;
    }
    coming->fresh = false;
    session_fork_into(coming->parent, coming->fork_place, coming, on_forked_into);
}

/* --- files: out of the one porter, through a socket, into the other --- */

static void on_noted(struct session *coming)
{
    files_drop(&coming->files);
    if (went_well(coming))
        carry_memory(coming);
}

static void on_restored(struct session *coming)
{
    coming->lost |= coming->files.lost;
    files_drop(&coming->files);
    if (!went_well(coming))
        return;
    files_session_forget(coming->porter, CARRIED_SLOT);
    session_note_files(coming, on_noted);
}

/* One of the two ends is done; when both are, the new session has them. */
static void on_end(struct session *coming, const struct err *failed)
{
    if (coming->carry_failed.kind == ERR_NONE)
        coming->carry_failed = *failed;
    if (--coming->carrying > 0)
        return;
    files_drop(&coming->files);
    coming->failed = coming->carry_failed;
    if (!went_well(coming))
        return;
    session_await_files(coming, on_restored);
    files_session_restore(&coming->files, &coming->engine->loop, coming->porter, CARRIED_SLOT, 0,
                          session_files_done);
}

static void on_received(struct session *coming)
{
    struct err failed = coming->failed;
    on_end(coming, &failed);
}

static void on_sent(struct session *parent)
{
    struct session *coming = parent->coming;
    struct err failed = parent->failed;
    uint32_t lost = parent->files.lost;
    files_drop(&parent->files);
    if (coming)
        coming->lost |= lost;
    if (coming && coming->carrying > 0)
        on_end(coming, &failed);
    session_next(parent);
}

static void begin_carry(struct session_job *job)
{
    struct session *coming = loop_owner(job, struct session, carry), *parent = coming->parent;
    struct loop *loop = &parent->engine->loop;
    int ends[2];
    if (!is_still_kept(coming)) {
        session_next(parent);
        return;
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
        fail(coming, ERR_HOST, "its files could not be carried over");
        session_next(parent);
        return;
    }
    own_fd from = ends[0], to = ends[1];
    coming->carrying = 2;
    coming->carry_failed = ERR_INIT;
    session_await_files(parent, on_sent);
    session_await_files(coming, on_received);
    files_session_send(&parent->files, loop, parent->porter, coming->fork_place, to,
                       parent->opened_ns, session_files_done);
    files_session_receive(&coming->files, loop, coming->porter, CARRIED_SLOT, from,
                          session_files_done);
}

static void refuse_carry(struct session_job *job, const struct err *err)
{
    struct session *coming = loop_owner(job, struct session, carry);
    if (coming->parent)
        fail(coming, err->kind, err->text);
}

static void on_porter(struct session *coming)
{
    struct err err = ERR_INIT;
    if (!went_well(coming))
        return;
    coming->carry = (struct session_job){ .begin = begin_carry, .refuse = refuse_carry };
    if (session_enter(coming->parent, &coming->carry, &err) < 0)
        fail(coming, err.kind, err.text);
}

/* --- begin --- */

static void on_opened(struct session *coming)
{
    if (!went_well(coming) || !is_still_kept(coming))
        return;
    if (!coming->forked)
        fail(coming, ERR_HOST, "no zygote is there");
    else if (coming->parent->place[coming->fork_place].snapped)
        session_need_porter(coming, on_porter);
    else
        carry_memory(coming);
}

static struct session *make_child(struct session *session, struct err *err)
{
    const struct request_ceilings all = { .host_memory_bytes = INT64_MAX };
    const struct frame_session what = {
        .ttl_s = session->ttl_ns / 1000000000, .life_s = session->life_ns / 1000000000,
        .undo_levels = session->levels_most,
    };
    own_json root = json_copy(session->request.root);
    own_request request = REQUEST_INIT;
    json_object_del(root, "files"); /* they come with the rest */
    if (sessions_refuse_more(session->engine, err) < 0 ||
        request_from_json(root, &all, &request, err) < 0)
        return NULL;
    return session_make(session->engine, &what, &request);
}

static void begin(struct session *session, struct engine_ask *ask)
{
    struct err err = ERR_INIT;
    if (!is_pinned(session, ask->fork_place, ask->fork_ticket))
        err_set(&err, ERR_HOST, "the session could not be forked: what was kept is lost");
    struct session *coming = err.kind == ERR_NONE ? make_child(session, &err) : NULL;
    if (!coming) {
        unpin(session, ask->fork_place, ask->fork_ticket);
        session_ask_reply(ask, &err);
        return;
    }
    coming->parent = session;
    if (ask->fork_others)
        coming->lost |= BOX_LOST_BIT(OUTSIDE);
    coming->fork_ask = ask;
    coming->fork_place = ask->fork_place;
    coming->fork_ticket = ask->fork_ticket;
    coming->cells = coming->state = session->place[ask->fork_place].cell;
    session->coming = coming;
    session_open_box(coming, on_opened);
}

void session_fork(struct session *session)
{
    struct engine_ask *ask = session->ask, **end = &session->forks;
    struct err err = ERR_INIT;
    if (!session->is_protected) {
        err_set(&err, ERR_HOST, "the state of the session is not kept: %s", session->unprotected);
        session_ask_reply(ask, &err);
        return;
    }
    ask->fork_place = session_newest(session);
    ask->fork_ticket = session->place[ask->fork_place].ticket;
    session->place[ask->fork_place].pins++;
    /* Of a state with files the porter says more. */
    ask->fork_others = !session->place[ask->fork_place].snapped && session_has_others(session);
    session->ask = NULL;
    ask->session = NULL;
    while (*end)
        end = &(*end)->next_fork;
    if (session->coming)
        *end = ask;
    else
        begin(session, ask);
    session_next(session);
}
