/* The states of a session that are kept: made after each cell, gone back to after a death
 * or by `undo`. Runs in the engine. */
#include "engine/session/session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "box/park/inject.h"

/* --- places --- */

uint32_t session_newest(const struct session *session)
{
    return session->levels > 0 ? session->stack[session->levels - 1] : SESSION_NOBODY;
}

uint32_t session_named(const struct session *session, const char *name)
{
    for (uint32_t i = 0; i < BOX_STATES; i++) {
        if (session->place[i].used && strcmp(session->place[i].name, name) == 0)
            return i;
    }
    return SESSION_NOBODY;
}

/* There are more places than levels and names together. */
static uint32_t free_place(const struct session *session)
{
    for (uint32_t i = 0; i < BOX_STATES; i++) {
        if (!session->place[i].used)
            return i;
    }
    return SESSION_NOBODY;
}
_Static_assert(BOX_STATES > FRAME_LEVELS_MAX + 1 + SESSION_NAMED_MAX, "one is always free");

static void leave_level(struct session *session, unsigned at)
{
    uint32_t place = session->stack[at];
    memmove(&session->stack[at], &session->stack[at + 1],
            (--session->levels - at) * sizeof session->stack[0]);
    session->place[place].level = false;
    if (!session->place[place].name[0] && !session->place[place].pins)
        session_drop_place(session, place);
}

void session_leave_newest(struct session *session)
{
    leave_level(session, session->levels - 1);
    session->is_protected = false;
}

void session_keep_again(struct session *session, void (*then)(struct session *session))
{
    leave_level(session, session->levels - 1);
    session_protect_then(session, then);
}

void session_forget_places(struct session *session)
{
    for (uint32_t i = 0; i < BOX_STATES; i++) {
        if (session->place[i].used)
            session_drop_place(session, i);
    }
    session->levels = 0;
    session->is_protected = false;
}

/* A copy has died, by no order of ours. */
void session_lost_place(struct session *session, uint32_t at, uint64_t ticket)
{
    struct session_place *place = &session->place[at];
    if (!place->used || place->birth || place->ticket != ticket ||
        (session->going_back && at == session->goal))
        return;
    bool newest = session_newest(session) == at;
    unsigned level = 0;
    while (level < session->levels && session->stack[level] != at)
        level++;
    /* What is before it would be taken for it by undo. */
    unsigned older = !newest && level < session->levels ? level + 1 : 0;
    place->name[0] = 0;
    if (newest)
        leave_level(session, level);
    while (older-- > 0)
        leave_level(session, 0);
    if (place->used && !place->level && !place->pins)
        session_drop_place(session, at);
    if (!newest)
        return;
    session->since++;
    session->is_protected = false;
    snprintf(session->unprotected, sizeof session->unprotected, "what was kept is lost");
    if (session->stage == SESSION_IDLE)
        session_protect(session);
}

void session_is_at(struct session *session, uint32_t place)
{
    unsigned at = 0;
    const int64_t cell = session->place[place].cell;
    while (at < session->levels && session->place[session->stack[at]].cell != cell)
        at++;
    if (at == session->levels) { /* a checkpoint: what was before it is not known any more */
        at = 0;
        while (session->levels > 0)
            leave_level(session, 0);
    }
    if (at == session->levels || session->stack[at] != place) { /* or with other files put */
        while (session->levels > at)
            leave_level(session, session->levels - 1);
        session->stack[session->levels++] = place;
        session->place[place].level = true;
    }
    while (session->levels > at + 1)
        leave_level(session, session->levels - 1);
    session->is_protected = true;
    session->since = 0;
    session->state = session->place[place].cell;
}

/* --- keeping --- */

static void stay_unprotected(struct session *session, const char *why)
{
    snprintf(session->unprotected, sizeof session->unprotected, "%.95s", why);
    session->kept_then(session);
}

static void accept(struct session *session, bool snapped)
{
    struct session_place *place = &session->place[session->goal];
    *place = (struct session_place){ .used = true, .level = true, .snapped = snapped,
                                     .birth = session->fresh, .lineage = session->lineage,
                                     .cell = session->state, .ticket = session->ticket,
                                     .kept_ns = session->kept_ns };
    while (session->levels > session->levels_most)
        leave_level(session, 0);
    session->stack[session->levels++] = session->goal;
    /* States that differ much hold what the next cell needs. */
    bool full = session->held_bytes > session->request.limits.value[LIMITS_MEMORY];
    while (full && session->levels > 1)
        leave_level(session, 0);
    session->is_protected = true;
    session->since = 0;
    session->kept_then(session);
}

static void on_snapped(struct session *session)
{
    struct err failed = session->failed;
    files_drop(&session->files);
    if (failed.kind == ERR_NONE) {
        accept(session, true);
        return;
    }
    char why[96];
    snprintf(why, sizeof why, "its files could not be kept: %.64s", failed.text);
    if (!session->fresh) /* else there is no copy */
        session_drop_copy(session, session->goal, session->ticket);
    stay_unprotected(session, why);
}

static uint32_t newest_slot(const struct session *session)
{
    for (unsigned i = session->levels; i > 0; i--) {
        if (session->place[session->stack[i - 1]].snapped)
            return session->stack[i - 1];
    }
    return BOX_STATES;
}

static void on_porter(struct session *session)
{
    if (session->failed.kind != ERR_NONE) {
        on_snapped(session);
        return;
    }
    session_await_files(session, on_snapped);
    files_session_snap(&session->files, &session->engine->loop, session->porter, session->goal,
                       newest_slot(session), session->maps[0] || session->maps[1],
                       session_files_done);
}

static const char *why_not(uint32_t end, int error)
{
    static const char *const whys[] = {
        [INJECT_NOT_QUIET] = "its interpreter does not wait as it should",
        [INJECT_THREADS] = "it has threads that run",
        [INJECT_DIED] = "its interpreter died", [INJECT_LOST] = "its interpreter did not answer",
        [INJECT_UNSUPPORTED] = "this processor is not supported",
    };
    static const struct {
        int error;
        const char *why;
    } refusals[] = {
        { ENOTSUP, "this host does not let us choose the numbers of its processes" },
        { EPERM, "its interpreter was started anew, or gave up its saved uid" },
        { EMFILE, "its limit of open files leaves no room to wake a copy" },
        { EBADF, "its limit of open files leaves no room to wake a copy" },
        { ENOMEM, "its limits of memory or mappings leave no room to wake a copy" },
        { EAGAIN, "its limit of processes leaves no room for copies" },
        { EPROTOTYPE, "it has a system call filter of its own" },
        { EPROTO, "its copy is not what it should be" },
    };
    for (size_t i = 0; end == INJECT_REFUSED && i < array_len(refusals); i++) {
        if (refusals[i].error == error)
            return refusals[i].why;
    }
    return end < array_len(whys) && whys[end] ? whys[end] : "it could not be copied";
}

static void keep_files(struct session *session)
{
    if (session_has_files(session))
        session_need_porter(session, on_porter);
    else
        accept(session, false);
}

static void on_parked(struct session *session)
{
    if (session->failed.kind == ERR_NONE && session->kept.end == INJECT_OK)
        keep_files(session);
    else
        stay_unprotected(session, session->failed.kind != ERR_NONE
                                      ? session->failed.text
                                      : why_not(session->kept.end, session->kept.error));
}

void session_protect(struct session *session)
{
    session_protect_then(session, session_next);
}

void session_protect_then(struct session *session, void (*then)(struct session *session))
{
    session->kept_then = then;
    session->kept_ns = session_files_now_ns();
    session->stage = SESSION_WORKING;
    session->is_protected = false;
    session->goal = free_place(session);
    session->ticket = ++session->tickets;
    if (session->request.language != REQUEST_PYTHON)
        stay_unprotected(session, "its interpreter cannot be copied");
    else if (!session->forked)
        stay_unprotected(session, plan_env_is_late(&session->request)
                                      ? "its interpreter was started without a zygote"
                                      : "its interpreter was started for it alone, for its "
                                        "environment");
    else if (session->gone)
        then(session);
    else if (session->fresh)
        keep_files(session);
    else
        session_park(session, session->goal, on_parked);
}

/* --- files that were put --- */

static void on_snapped_again(struct session *session)
{
    struct err failed = session->failed;
    files_drop(&session->files);
    session->place[session->goal].snapped = failed.kind == ERR_NONE;
    session->kept_then = session_next;
    if (failed.kind == ERR_NONE) {
        session_next(session);
        return;
    }
    char why[96];
    snprintf(why, sizeof why, "its files could not be kept: %.64s", failed.text);
    session->is_protected = false;
    leave_level(session, session->levels - 1);
    stay_unprotected(session, why);
}

void session_renew_newest(struct session *session)
{
    uint32_t newest = session_newest(session);
    if (!session->is_protected || session->unkept) {
        session_next(session);
        return;
    }
    if (session->place[newest].name[0] || session->place[newest].pins > 0) {
        session_keep_again(session, session_next); /* a checkpoint stays what it is */
        return;
    }
    session->goal = newest;
    if (session->place[newest].snapped)
        files_session_forget(session->porter, newest);
    session->place[newest].snapped = false;
    session->stage = SESSION_WORKING;
    session_await_files(session, on_snapped_again);
    files_session_snap(&session->files, &session->engine->loop, session->porter, newest,
                       newest_slot(session), session->maps[0] || session->maps[1],
                       session_files_done);
}

/* --- going back --- */

/* The end of it. A copy that could not be woken is dead: an older state is better than
 * none. The keeper may have died meanwhile, and all copies with it: the state is back
 * nevertheless. */
static void back(struct session *session)
{
    bool level = session->levels > 0 && session_newest(session) == session->goal;
    if (session->failed.kind != ERR_NONE && level && session->levels > 1) {
        leave_level(session, session->levels - 1);
        session_go_back(session, session_newest(session), session->back_then);
        return;
    }
    session->going_back = false;
    if (session->failed.kind == ERR_NONE)
        session_is_at(session, session->goal);
    if (session->keeper_gone) {
        session_forget_places(session);
        snprintf(session->unprotected, sizeof session->unprotected, "what was kept is lost");
    }
    session->keeper_gone = false;
    session->back_then(session);
}

static void on_files_back(struct session *session);

static void on_files_restored(struct session *session)
{
    struct err failed = session->failed;
    session->lost |= session->files.lost;
    files_drop(&session->files);
    session->failed = failed;
    if (failed.kind != ERR_NONE)
        back(session);
    else
        session_note_files(session, on_files_back);
}

static void on_files_back(struct session *session)
{
    struct err failed = session->failed;
    files_drop(&session->files);
    session->failed = failed;
    if (failed.kind != ERR_NONE) {
        back(session);
        return;
    }
    if (!session->fresh && session_renew_later(session) < 0)
        err_set(&session->failed, ERR_HOST, "the interpreter has closed its channel");
    back(session);
}

static void on_porter_back(struct session *session)
{
    if (session->failed.kind != ERR_NONE) {
        on_files_back(session);
        return;
    }
    session_await_files(session, on_files_restored);
    const uint32_t slot = session->goal_state.snapped ? session->goal : BOX_STATES;
    files_session_restore(&session->files, &session->engine->loop, session->porter, slot,
                          session->goal_state.kept_ns, session_files_done);
}

static void on_there(struct session *session)
{
    if (session->failed.kind != ERR_NONE)
        back(session);
    else if (session->goal_files)
        session_need_porter(session, on_porter_back);
    else
        on_files_back(session);
}

static void on_awake(struct session *session)
{
    if (session->failed.kind == ERR_NONE && session->kept.end != INJECT_OK)
        err_set(&session->failed, ERR_BUG, "what was kept could not be woken: %s",
                why_not(session->kept.end, session->kept.error));
    if (session->failed.kind != ERR_NONE)
        session->swept = false; /* who was to wake it may have died just after */
    on_there(session);
}

static void on_swept(struct session *session)
{
    session->goal_files = session->goal_state.snapped || session_has_files(session) ||
                          session_has_others(session);
    if (session->failed.kind != ERR_NONE)
        back(session);
    else if (session->goal_state.birth)
        session_restart(session, on_there);
    else
        session_wake(session, on_awake);
}

static bool is_dead(uint32_t end, int error)
{
    return end == INJECT_DIED || end == INJECT_LOST ||
           (end == INJECT_REFUSED && (error == ENOENT || error == ESTALE));
}

/* The live interpreter is there still. Where its processes alone leave no room for another
 * (EAGAIN), a sweep makes it: the limit of what is kept allows enough. */
static void on_prepared(struct session *session)
{
    bool crowded = session->kept.end == INJECT_REFUSED && session->kept.error == EAGAIN;
    if (session->failed.kind == ERR_NONE && (session->kept.end == INJECT_OK || crowded)) {
        session_sweep(session, on_swept);
        return;
    }
    bool answered = session->failed.kind == ERR_NONE;
    bool dead = answered && is_dead(session->kept.end, session->kept.error);
    snprintf(session->stayed, sizeof session->stayed, "%.120s",
             dead       ? "its copy is lost"
             : answered ? why_not(session->kept.end, session->kept.error)
                        : session->failed.text);
    err_set(&session->failed, ERR_HOST, "that state cannot be woken: %s", session->stayed);
    session->going_back = false;
    if (dead)
        session_lost_place(session, session->goal, session->goal_state.ticket);
    if (session->keeper_gone) {
        session_forget_places(session);
        snprintf(session->unprotected, sizeof session->unprotected, "what was kept is lost");
    }
    session->keeper_gone = false;
    session->back_then(session);
}

void session_go_back(struct session *session, uint32_t place,
                     void (*then)(struct session *session))
{
    session->goal = place;
    session->goal_state = session->place[place];
    session->going_back = true;
    session->stayed[0] = 0;
    session->lost = 0;
    session->back_then = then;
    if (session->gone || session->swept || session->place[place].birth)
        session_sweep(session, on_swept);
    else
        session_prepare(session, on_prepared);
}
