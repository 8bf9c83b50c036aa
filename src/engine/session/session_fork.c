/* Forking a session: a second session from a state of the first, in a box of its own, with which it
 * shares nothing. The child is made as any session. Then the files of the state are put into its
 * box, and the memory into its interpreter. Runs in the engine.
 *
 * The child has the ask and does the steps. Its parent goes on with cells meanwhile, for the state
 * is taken from a copy, which is pinned until then; only to send files the parent spends a turn. If
 * one of the two ends, the fork fails. A parent has one child at a time; other forks wait beside
 * the line, with the state that the session was in when they were asked for. */
#include "engine/session/session.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "box/fork/transplant.h"
#include "engine/run/run.h"

#define CARRIED_SNAPSHOT (BOX_STATES - 1) /* the child has nothing else there yet */

/* --- the end of a fork --- */

/* If not, the state was forgotten with all others, and its index may have another one. */
static bool is_pinned(const struct session *parent, const struct session_pin *pin)
{
    const struct session_kept *kept = &parent->states.kept[pin->at];
    return kept->pins > 0 && kept->ticket == pin->ticket;
}

static void unpin(struct session *parent, const struct session_pin *pin)
{
    struct session_kept *kept = &parent->states.kept[pin->at];
    if (!is_pinned(parent, pin))
        return;
    kept->pins--;
    if (!kept->pins && !kept->level && !kept->name[0])
        session_drop_state(parent, pin->at);
}

static void begin(struct session *session, struct engine_ask *ask);

/* Parent and child are independent from now on; the next fork of the parent begins. */
static void part(struct session *child)
{
    struct session *parent = child->fork.parent;
    child->fork.parent = NULL;
    session_leave(&child->fork.carry);
    if (!parent)
        return;
    parent->fork.child = NULL;
    unpin(parent, &child->fork.pin);
    struct engine_ask *next = parent->fork.waiting;
    if (next && parent->step.stage != SESSION_ENDED) {
        parent->fork.waiting = next->next_fork;
        begin(parent, next);
    }
}

static void fail(struct session *child, enum err_kind kind, const char *why)
{
    struct engine_ask *ask = child->fork.ask;
    struct err err = ERR_INIT;
    err_set(&err, kind, "the session could not be forked: %s", why);
    child->fork.ask = NULL;
    part(child);
    session_end(child, err.text);
    if (ask)
        session_ask_reply(ask, &err);
}

/* The state may be lost between two steps. */
static bool is_still_kept(struct session *child)
{
    if (is_pinned(child->fork.parent, &child->fork.pin))
        return true;
    fail(child, ERR_HOST, "what was kept is lost");
    return false;
}

void session_fork_failed(struct session *child)
{
    struct err err = child->step.err;
    files_drop(&child->box.files);
    fail(child, err.kind, err.text);
}

void session_fork_ended(struct session *session, const char *why)
{
    struct err gone = ERR_INIT;
    err_set(&gone, ERR_ABSENT, "session '%s' ended: %s", session->id, why);
    while (session->fork.waiting) {
        struct engine_ask *ask = session->fork.waiting;
        session->fork.waiting = ask->next_fork;
        session_ask_reply(ask, &gone);
    }
    if (session->fork.child)
        fail(session->fork.child, ERR_HOST, "the session ended");
    if (session->fork.parent)
        fail(session, ERR_HOST, why);
}

void session_fork_on_renewed(struct session *child)
{
    struct engine_ask *ask = child->fork.ask;
    json_object_set_new(ask->answer, "from", json_string(child->fork.parent->id));
    json_object_set_new(ask->answer, "lost", session_lost_json(child->states.lost));
    child->fork.ask = NULL;
    child->box.opened_ns = session_files_now_ns();
    child->states.cell = child->queue.cells;
    child->streams.tasks_wait = child->streams.driver.tasks;
    part(child);
    session_protect(child);
    json_object_set_new(ask->answer, "session", session_info(child));
    session_ask_reply(ask, NULL);
}

/* --- memory --- */

void session_fork_on_memory(struct session *child)
{
    if (child->step.end == INJECT_OK) {
        session_ask_driver(child, session_renew_line(child), SESSION_RENEWING);
        return;
    }
    err_set(&child->step.err, ERR_HOST, "%s",
            transplant_reason(child->step.end, child->step.error));
    session_fork_failed(child);
}

/* After the files: the interpreter opens its folder and its open files by name. */
static void carry_memory(struct session *child)
{
    struct session *parent = child->fork.parent;
    const struct session_pin *pin = &child->fork.pin;
    if (!is_still_kept(child))
        return;
    if (parent->states.kept[pin->at].birth) {
        session_fork_on_renewed(child);
        return;
    }
    struct box_call order = { .op = BOX_OP_FORK_INTO, .box = parent->box.id,
                              .keep = { .state = pin->at, .to = child->box.id,
                                        .ticket = pin->ticket } };
    child->box.interpreter = SESSION_I_USED;
    session_await(child, SESSION_FORKING);
    house_call(&parent->engine->house, &order, NULL, 0);
}

/* --- files: out of the parent's porter, through a socket, into the child's --- */

void session_fork_on_noted(struct session *child)
{
    files_drop(&child->box.files);
    carry_memory(child);
}

void session_fork_on_restored(struct session *child)
{
    child->states.lost |= child->box.files.lost;
    files_drop(&child->box.files);
    files_session_forget(child->box.porter, CARRIED_SNAPSHOT);
    session_note_files(child, SESSION_FORK_NOTING);
}

/* One of the two porters is done; when both are, the child has the snapshot. */
void session_fork_on_received(struct session *child)
{
    if (--child->fork.carrying > 0)
        return;
    files_drop(&child->box.files);
    files_session_restore(session_await_files(child, SESSION_FORK_RESTORING), CARRIED_SNAPSHOT, 0);
}

void session_fork_on_sent(struct session *parent)
{
    struct session *child = parent->fork.child;
    struct err err = parent->step.err;
    uint32_t lost = parent->box.files.lost;
    files_drop(&parent->box.files);
    if (child && child->fork.carrying > 0) {
        child->states.lost |= lost;
        if (err.kind == ERR_NONE)
            session_fork_on_received(child);
        else
            fail(child, err.kind, err.text);
    }
    session_next(parent);
}

void session_fork_on_turn(struct session *child)
{
    struct session *parent = child->fork.parent;
    int ends[2];
    bool kept = is_still_kept(child);
    if (!kept || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
        if (kept)
            fail(child, ERR_HOST, "its files could not be carried over");
        session_next(parent);
        return;
    }
    own_fd from = ends[0], to = ends[1];
    child->fork.carrying = 2;
    files_session_send(session_await_files(parent, SESSION_SENDING), child->fork.pin.at, to,
                       parent->box.opened_ns);
    files_session_receive(session_await_files(child, SESSION_RECEIVING), CARRIED_SNAPSHOT, from);
}

static void begin_carry(struct session_job *job)
{
    session_happens(loop_owner(job, struct session, fork.carry), SESSION_E_TURN);
}

static void refuse_carry(struct session_job *job, const struct err *err)
{
    struct session *child = loop_owner(job, struct session, fork.carry);
    if (child->fork.parent)
        fail(child, err->kind, err->text);
}

void session_fork_on_porter(struct session *child)
{
    struct err err = ERR_INIT;
    child->fork.carry = (struct session_job){ .begin = begin_carry, .refuse = refuse_carry };
    session_await(child, SESSION_FORK_LINE);
    if (session_enter(child->fork.parent, &child->fork.carry, &err) < 0)
        fail(child, err.kind, err.text);
}

/* --- begin --- */

void session_fork_on_opened(struct session *child)
{
    if (child->step.err.kind != ERR_NONE)
        session_fork_failed(child);
    else if (!is_still_kept(child))
        return;
    else if (!child->box.forked)
        fail(child, ERR_HOST, "no zygote is there");
    else if (child->fork.parent->states.kept[child->fork.pin.at].snapped)
        session_need_porter(child, SESSION_FORK_PORTER);
    else
        carry_memory(child);
}

static struct session *make_child(struct session *session, struct err *err)
{
    const struct request_ceilings all = { .host_memory_bytes = INT64_MAX };
    const struct frame_session what = {
        .ttl_s = session->life.ttl_ns / CLOCK_S, .life_s = session->life.max_ns / CLOCK_S,
        .undo_levels = session->states.levels_max,
    };
    own_json root = json_copy(session->request.root);
    own_request request = REQUEST_INIT;
    json_object_del(root, "files"); /* they come with the rest */
    if (sessions_refuse_more(session->engine, err) < 0 ||
        request_from_json(root, &all, &request, err) < 0 ||
        request_set_image(&request, session->request.image, err) < 0)
        return NULL;
    return session_make(session->engine, &what, &request, session->image);
}

static void begin(struct session *session, struct engine_ask *ask)
{
    struct err err = ERR_INIT;
    if (!is_pinned(session, &ask->pin))
        err_set(&err, ERR_HOST, "the session could not be forked: what was kept is lost");
    struct session *child = err.kind == ERR_NONE ? make_child(session, &err) : NULL;
    if (!child) {
        unpin(session, &ask->pin);
        session_ask_reply(ask, &err);
        return;
    }
    if (ask->fork_others)
        child->states.lost |= BOX_LOST_BIT(OUTSIDE);
    child->fork = (struct session_fork){ .parent = session, .ask = ask, .pin = ask->pin };
    child->queue.cells = child->states.cell = session->states.kept[ask->pin.at].cell;
    /* Tasks in the copy know it. */
    memcpy(child->streams.secret, session->streams.secret, sizeof child->streams.secret);
    session->fork.child = child;
    session_open_box(child, SESSION_T_FORK);
}

void session_fork(struct session *session, struct engine_ask *ask)
{
    struct engine_ask **end = &session->fork.waiting;
    struct err err = ERR_INIT;
    uint32_t newest = session_newest(session);
    if (!session->states.is_protected) {
        err_set(&err, ERR_HOST, "the state of the session is not kept: %s",
                session->states.unprotected);
        session_ask_reply(ask, &err);
        return;
    }
    struct session_kept *kept = &session->states.kept[newest];
    ask->pin = (struct session_pin){ newest, kept->ticket };
    kept->pins++;
    /* If the state has files, the porter says more. */
    ask->fork_others = !kept->snapped && session_has_others(session);
    session->queue.ask = NULL;
    ask->session = NULL;
    while (*end)
        end = &(*end)->next_fork;
    if (session->fork.child)
        *end = ask;
    else
        begin(session, ask);
    session_next(session);
}
