/* The kept states of a session, and keeping one: after each cell, the interpreter is copied by the
 * keeper and its files by the porter. The end of keeping is KEPT. Runs in the engine. */
#include "engine/session/session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "box/park/inject.h"

#define STATES_LOST "what was kept is lost"

/* --- the kept states --- */

uint32_t session_newest(const struct session *session)
{
    const struct session_states *states = &session->states;
    return states->levels > 0 ? states->stack[states->levels - 1] : SESSION_NOBODY;
}

uint32_t session_named(const struct session *session, const char *name)
{
    for (uint32_t i = 0; i < BOX_STATES; i++) {
        if (session->states.kept[i].used && strcmp(session->states.kept[i].name, name) == 0)
            return i;
    }
    return SESSION_NOBODY;
}

static uint32_t unused(const struct session *session)
{
    uint32_t at = 0;
    while (session->states.kept[at].used)
        at++;
    return at;
}
_Static_assert(BOX_STATES > FRAME_LEVELS_MAX + 1 + SESSION_NAMED_MAX, "one is always unused");

void session_leave_level(struct session *session, unsigned level)
{
    struct session_states *states = &session->states;
    uint32_t at = states->stack[level];
    memmove(&states->stack[level], &states->stack[level + 1],
            (--states->levels - level) * sizeof states->stack[0]);
    states->kept[at].level = false;
    if (!states->kept[at].name[0] && !states->kept[at].pins)
        session_drop_state(session, at);
}

void session_forget_states(struct session *session)
{
    for (uint32_t i = 0; i < BOX_STATES; i++) {
        if (session->states.kept[i].used)
            session_drop_state(session, i);
    }
    session->states.levels = 0;
    session->states.is_protected = false;
}

void session_forget_lost(struct session *session)
{
    session->states.keeper_gone = false;
    session_forget_states(session);
    snprintf(session->states.unprotected, sizeof session->states.unprotected, STATES_LOST);
}

void session_lost_state(struct session *session, uint32_t at, uint64_t ticket)
{
    struct session_states *states = &session->states;
    struct session_kept *kept = &states->kept[at];
    if (!kept->used || kept->birth || kept->ticket != ticket ||
        (states->going_back && at == states->goal))
        return;
    bool newest = session_newest(session) == at;
    unsigned level = 0;
    while (level < states->levels && states->stack[level] != at)
        level++;
    /* Undo would take an older state for this one: they go, too. */
    unsigned older = !newest && level < states->levels ? level + 1 : 0;
    kept->name[0] = 0;
    if (newest)
        session_leave_level(session, level);
    while (older-- > 0)
        session_leave_level(session, 0);
    if (kept->used && !kept->level && !kept->pins)
        session_drop_state(session, at);
    if (!newest)
        return;
    states->since++;
    states->is_protected = false;
    snprintf(states->unprotected, sizeof states->unprotected, STATES_LOST);
    session_happens(session, SESSION_E_LOST);
}

void session_is_at(struct session *session, uint32_t at)
{
    struct session_states *states = &session->states;
    unsigned level = 0;
    while (level < states->levels &&
           states->kept[states->stack[level]].cell != states->kept[at].cell)
        level++;
    if (level == states->levels) /* a checkpoint: the states before it are not known any more */
        level = 0;
    bool listed = level < states->levels && states->stack[level] == at; /* else, other files */
    while (states->levels > level + listed)
        session_leave_level(session, states->levels - 1);
    if (!listed) {
        states->stack[states->levels++] = at;
        states->kept[at].level = true;
    }
    states->is_protected = true;
    states->since = 0;
    states->cell = states->kept[at].cell;
}

/* --- keeping --- */

static void stay_unprotected(struct session *session, const char *why)
{
    snprintf(session->states.unprotected, sizeof session->states.unprotected, "%.95s", why);
    session_ends(session, SESSION_KEPT);
}

static void accept(struct session *session, bool snapped)
{
    struct session_states *states = &session->states;
    states->kept[states->goal] = states->want;
    states->kept[states->goal].snapped = snapped;
    while (states->levels > states->levels_max)
        session_leave_level(session, 0);
    states->stack[states->levels++] = states->goal;
    /* States that differ much hold memory that the next cell needs. */
    bool full = states->held_bytes > session->request.limits.value[LIMITS_MEMORY];
    while (full && states->levels > 1)
        session_leave_level(session, 0);
    states->is_protected = true;
    states->since = 0;
    session_ends(session, SESSION_KEPT);
}

static void stay_without_files(struct session *session)
{
    char why[96];
    snprintf(why, sizeof why, "its files could not be kept: %.64s", session->step.err.text);
    files_drop(&session->box.files);
    stay_unprotected(session, why);
}

void session_keep_files_failed(struct session *session)
{
    if (!session->states.want.birth)
        session_drop_copy(session, session->states.goal, session->states.want.ticket);
    stay_without_files(session);
}

void session_keep_on_snapped(struct session *session)
{
    files_drop(&session->box.files);
    accept(session, true);
}

/* Files that are as in the newest snapshot need no second copy. */
static void snap(struct session *session, enum session_stage stage)
{
    const struct session_states *states = &session->states;
    uint32_t base = BOX_STATES;
    for (unsigned i = 0; i < states->levels; i++) {
        if (states->kept[states->stack[i]].snapped)
            base = states->stack[i];
    }
    files_session_snap(session_await_files(session, stage), states->goal, base,
                       states->maps[0] || states->maps[1]);
}

void session_keep_on_porter(struct session *session)
{
    snap(session, SESSION_SNAPPING);
}

const char *session_why_not(const struct session *session)
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
    uint32_t end = session->step.end;
    if (end == INJECT_NOT_QUIET && session->streams.tasks_run)
        return "its event loop runs tasks";
    for (size_t i = 0; end == INJECT_REFUSED && i < array_len(refusals); i++) {
        if (refusals[i].error == session->step.error)
            return refusals[i].why;
    }
    return end < array_len(whys) && whys[end] ? whys[end] : "it could not be copied";
}

static void keep_files(struct session *session)
{
    if (session_has_files(session))
        session_need_porter(session, SESSION_KEEP_PORTER);
    else
        accept(session, false);
}

void session_keep_failed(struct session *session)
{
    stay_unprotected(session, session->step.err.text);
}

void session_keep_on_parked(struct session *session)
{
    if (session->step.end == INJECT_OK)
        keep_files(session);
    else
        stay_unprotected(session, session_why_not(session));
}

void session_protect(struct session *session)
{
    session_keep(session, SESSION_T_KEEP);
}

static const char *why_alone(const struct request *request)
{
    return request->has_seed           ? "its interpreter was started for it alone, for its seed"
           : plan_may_be_late(request) ? "its interpreter was started without a zygote"
                                       : "its interpreter was started for it alone, for its "
                                         "environment";
}

void session_keep(struct session *session, enum session_task task)
{
    struct session_states *states = &session->states;
    if (session->step.stage == SESSION_ENDED)
        return;
    session->step.stage = SESSION_BUSY;
    session->step.task = task;
    states->is_protected = false;
    states->goal = unused(session);
    states->want = (struct session_kept){
        .used = true, .level = true, .birth = session->box.interpreter == SESSION_I_FRESH,
        .lineage = session->streams.lineage, .cell = states->cell, .ticket = ++states->tickets,
        .kept_ns = session_files_now_ns(),
    };
    struct box_call park = { .op = BOX_OP_PARK,
                             .keep = { .state = states->goal, .ticket = states->want.ticket } };
    if (session->request.language != REQUEST_PYTHON)
        stay_unprotected(session, "its interpreter cannot be copied");
    else if (!session->box.forked)
        stay_unprotected(session, why_alone(&session->request));
    else if (session_is_dead(session))
        session_ends(session, SESSION_KEPT);
    else if (states->want.birth)
        keep_files(session);
    else
        session_order(session, &park, NULL, 0, SESSION_PARKING);
}

/* --- files that were put --- */

void session_keep_on_resnapped(struct session *session)
{
    files_drop(&session->box.files);
    session->states.kept[session->states.goal].snapped = true;
    session_next(session);
}

void session_keep_put_failed(struct session *session)
{
    session->step.task = SESSION_T_KEEP;
    session->states.is_protected = false;
    if (session->states.levels > 0) /* the keeper may have died meanwhile, and all states with it */
        session_leave_level(session, session->states.levels - 1);
    stay_without_files(session);
}

void session_keep_put_files(struct session *session)
{
    uint32_t newest = session_newest(session);
    if (!session->states.is_protected) {
        session_next(session);
        return;
    }
    struct session_kept *kept = &session->states.kept[newest];
    if (kept->name[0] || kept->pins > 0) { /* a checkpoint stays what it is */
        session_leave_level(session, session->states.levels - 1);
        session_protect(session);
        return;
    }
    session->states.goal = newest;
    if (kept->snapped)
        files_session_forget(session->box.porter, newest);
    kept->snapped = false;
    snap(session, SESSION_RESNAPPING);
}
