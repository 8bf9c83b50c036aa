/* A run of any door: the engine holds it until its start is stored; the door hears of the end when
 * that is stored. Runs in the serve process, in its loop. */
#include "serve/work/work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/own.h"
#include "serve/work/work_int.h"

struct works *works_new(struct engine *engine, struct records *records, struct shed *shed)
{
    struct works *works = buf_alloc_zero(1, sizeof *works);
    works->engine = engine;
    works->loop = engine_loop(engine);
    works->records = records;
    works->shed = shed;
    works->repeats = repeats_new();
    works->readies = readies_new();
    works->cache = cache_new(records);
    works->last_hit = &works->hits;
    works->last_landed = &works->landed;
    return works;
}

static void free_work(struct work *work)
{
    *(work->before ? &work->before->after : &work->works->all) = work->after;
    if (work->after)
        work->after->before = work->before;
    calls_free(work->calls);
    result_done(&work->result);
    buf_done(&work->json);
    free(work);
}

void works_stop(struct works *works, bool quietly)
{
    for (struct work *work = works->all; work && quietly; work = work->after)
        work->deaf = true;
    works->stopping = true;
    cache_stop(works->cache);
    records_close(take_ptr(works->records));
    for (struct work *work = works->all; work; work = work->after) {
        work->record = NULL;
        if (work->calls)
            calls_stop(work->calls);
    }
    shed_free(take_ptr(works->shed));
}

void works_free(struct works *works)
{
    if (!works)
        return;
    while (works->all)
        free_work(works->all);
    works_end_flights(works);
    cache_free(works->cache);
    repeats_free(works->repeats);
    readies_free(works->readies);
    free(works);
}

void works_session_ended(struct works *works, const char *session)
{
    repeats_forget(works->repeats, session);
    readies_forget(works->readies, session);
}

void works_forget(struct works *works, const char *run)
{
    cache_forget(works->cache, run);
}

json_t *works_describe(const struct works *works)
{
    json_t *out = cache_describe(works->cache);
    json_object_set_new(out, "hits", json_integer((json_int_t)works->hit_count));
    json_object_set_new(out, "shared", json_integer((json_int_t)works->shared_count));
    return out;
}

json_t *works_list_tools(const struct works *works, const json_t *names, struct str words,
                         int (*allows)(void *user, const char *tool, struct err *err), void *user)
{
    const struct shed_want want = {
        .names = names, .words = words, .allows = allows, .user = user
    };
    return shed_list(works->shed, &want);
}

struct records *works_records(const struct works *works)
{
    return works->records;
}

void work_tell(struct work *work, const struct err *err)
{
    const struct work_hooks hooks = work->hooks;
    struct err kept = err ? *err : ERR_INIT;
    if (!work->deaf)
        hooks.on_end(hooks.user, err ? NULL : &work->result, buf_str(&work->json),
                     err ? &kept : NULL);
    free_work(work);
}

/* --- the end --- */

/* The same text with another end. */
static void retail(struct work *work, bool recorded)
{
    char was[RESULT_TAIL_ROOM], is[RESULT_TAIL_ROOM];
    size_t old = result_tail(work->result.recorded, work->result.cached_age_s, was).len;
    work->result.recorded = recorded;
    work->json.len -= old;
    buf_add_str(&work->json, result_tail(recorded, work->result.cached_age_s, is));
}

static void finish(struct work *work)
{
    work_spread(work);
    work_tell(work, NULL);
}

static void on_end_stored(void *user, const struct err *err)
{
    struct work *work = user;
    bool redacted = work->record && record_was_redacted(work->record);
    work->record = NULL;
    if (err->kind != ERR_NONE)
        retail(work, /* recorded= */ false);
    if (redacted || err->kind != ERR_NONE)
        work->key[0] = 0; /* the store has another text, or none */
    finish(work);
}

static bool may_be_reused(const struct work *work)
{
    enum result_status status = work->result.status;
    return work->key[0] && (status == RESULT_OK || status == RESULT_ERROR) &&
           json_array_size(work->result.limits_hit) == 0;
}

static void end_with_result(struct work *work, struct result *result)
{
    result_done(&work->result);
    work->result = *result;
    result_init(result);
    work->result.recorded = work->record != NULL;
    if (result_to_text(&work->result, &work->json) < 0) {
        struct err err = ERR_INIT;
        err_set(&err, ERR_LIMIT, "the result is longer than an answer may be");
        err_hint(&err, "lower limits.stdout_bytes and limits.stderr_bytes");
        if (work->record)
            record_fail(work->record, &err);
        work_leave(work);
        work_tell(work, &err);
        return;
    }
    if (!may_be_reused(work))
        work->key[0] = 0;
    work->stage = WORK_ENDS;
    const struct record_cache cache = { work->key, work->request->cache_ttl_s };
    if (work->record)
        record_end(work->record, &work->result, buf_str(&work->json), work->key[0] ? &cache : NULL,
                   on_end_stored, work);
    else
        finish(work);
}

/* It did not run. While its start is being stored, the store reads the request. */
static void end_without(struct work *work, const struct err *err)
{
    if (work->err.kind == ERR_NONE)
        work->err = *err;
    if (work->stage == WORK_BEGINS && work->record)
        return;
    if (work->record)
        record_fail(work->record, &work->err);
    work_leave(work);
    work_tell(work, &work->err);
}

static void on_engine_end(void *user, struct result *result, const struct err *err)
{
    struct work *work = user;
    if (work->calls)
        calls_end(work->calls, result);
    if (result && result->cell > 0)
        repeats_cell_over(
            work->works->repeats,
            &(struct repeats_cell){ result->session, result->cell, result->base_cell },
            result->state == RESULT_STATE_LOST);
    work->run = NULL;
    if (result)
        end_with_result(work, result);
    else
        end_without(work, err);
}

static void on_engine_event(void *user, const struct engine_event *event)
{
    struct work *work = user;
    bool of_gate = event->kind == ENGINE_CALL || event->kind == ENGINE_CALL_OVER ||
                   event->kind == ENGINE_THAWED;
    if (of_gate && work->calls)
        calls_event(work->calls, event);
    else if (!of_gate && work->hooks.on_event && !work->deaf)
        work->hooks.on_event(work->hooks.user, event);
}

static int on_wish(void *user, const char *tool, struct err *err)
{
    const struct work *work = user;
    return work->hooks.allows ? work->hooks.allows(work->hooks.user, tool, err) : 0;
}

static bool has_room(void *user)
{
    const struct work *work = user;
    return !work->hooks.has_room || work->hooks.has_room(work->hooks.user);
}

/* The session whose own tools the cell has, or NULL. */
static const char *session_of_tools(const struct work *work)
{
    const struct request *request = work->request;
    struct err gone = ERR_INIT;
    const struct request *session = request->session
                                        ? engine_session_request(work->works->engine,
                                                                 request->session, &gone)
                                        : NULL;
    return session && session->tools == request->tools ? request->session : NULL;
}

/* The gate for a request with tools. */
static int open_calls(struct work *work, struct err *err)
{
    const struct calls_hooks hooks = { .on_event = on_engine_event,
                                       .allows = on_wish,
                                       .has_room = has_room,
                                       .user = work,
                                       .shed = work->works->shed,
                                       .repeats = work->works->repeats,
                                       .readies = work->works->readies,
                                       .session = session_of_tools(work),
                                       .code = work->request->code,
                                       .answers = work->hooks.answers && work->hooks.on_event,
                                       .approves = work->hooks.approves && work->hooks.on_event,
                                       .outcomes = work->hooks.outcomes,
                                       .records = work->works->records != NULL };
    if (!work->request->tools || work->calls)
        return 0;
    work->calls = calls_new(work->request->tools, work->works->loop, &hooks, err);
    return work->calls ? 0 : -1;
}

/* --- the start --- */

static void on_start_stored(void *user, const struct err *err)
{
    struct work *work = user;
    work->stage = WORK_RUNS;
    if (err->kind != ERR_NONE) {
        work->record = NULL;
        work->err = work->run ? *err : work->err;
    }
    if (!work->run)
        end_without(work, &work->err);
    else if (err->kind != ERR_NONE)
        engine_cancel(work->run); /* its end comes at once */
    else
        engine_release(work->run);
}

int work_start(struct work *work, struct err *err)
{
    struct works *works = work->works;
    if (open_calls(work, err) < 0)
        return -1;
    const struct engine_hooks hooks = {
        .on_event = work->hooks.on_event || work->calls ? on_engine_event : NULL,
        .on_end = on_engine_end,
        .user = work,
        .input = work->hooks.input,
        .held = works->records != NULL,
        .tools = work->calls ? calls_told(work->calls) : NULL,
        .id = work->id,
    };
    work->run = engine_begin(works->engine, work->request, work->client, &hooks, err);
    if (!work->run)
        return -1;
    if (work->calls)
        calls_of_run(work->calls, work->run);
    work->stage = works->records ? WORK_BEGINS : WORK_RUNS;
    const struct record_about about = { .run = work->id,
                                        .owner = work->owner,
                                        .door = work->door,
                                        .task = work->task[0] ? work->task : NULL,
                                        .step = work->step,
                                        .replay_of = work->replay_of[0] ? work->replay_of : NULL };
    if (works->records)
        work->record = records_begin(works->records, work->request, &about, on_start_stored, work);
    return 0;
}

static void copy(char *to, size_t room, const char *from)
{
    snprintf(to, room, "%s", from ? from : "");
}

struct work *work_begin(struct works *works, const struct request *request, const void *client,
                        const struct work_about *about, const struct work_hooks *hooks,
                        struct err *err)
{
    struct work *work = buf_alloc_zero(1, sizeof *work);
    work->works = works;
    work->after = works->all;
    if (works->all)
        works->all->before = work;
    works->all = work;
    work->request = request;
    work->client = client;
    work->hooks = *hooks;
    work->door = about->door;
    work->step = about->step;
    work->json = BUF_INIT(WORK_JSON_MAX);
    result_init(&work->result);
    engine_make_id(work->id);
    copy(work->owner, sizeof work->owner, about->owner);
    copy(work->task, sizeof work->task, about->task);
    copy(work->replay_of, sizeof work->replay_of, about->replay_of);
    if (work_share(work) || work_start(work, err) == 0)
        return work;
    work_leave(work);
    free_work(work);
    return NULL;
}

const char *work_id(const struct work *work)
{
    return work->id;
}

/* --- the door's wishes --- */

static void give_up(struct work *work)
{
    struct err err = ERR_INIT;
    err_set(&err, ERR_CANCELLED, "cancelled before the code began");
    work_leave(work);
    work_tell(work, &err);
}

void work_interrupt(struct work *work)
{
    if (work->run)
        engine_interrupt(work->run);
    else if (work->stage == WORK_WAITS && work_follows(work))
        give_up(work);
    else if (work->stage == WORK_WAITS && work->err.kind == ERR_NONE) /* the store answers soon */
        err_set(&work->err, ERR_CANCELLED, "cancelled before the code began");
}

void work_cancel(struct work *work)
{
    if (work->run)
        engine_cancel(work->run);
    else
        work_interrupt(work);
}

int work_input(struct work *work, struct str text, bool end, struct err *err)
{
    if (work->run)
        return engine_input(work->run, text, end, err);
    err_set(err, ERR_ABSENT, "the code does not wait for input");
    err_hint(err, "answer each 'input' event once");
    return -1;
}

int work_answer(struct work *work, int64_t call, const json_t *outcome, struct err *err)
{
    if (work->run && work->calls)
        return calls_answer(work->calls, call, outcome, err);
    err_set(err, ERR_ABSENT, "the code waits for no call of a tool");
    err_hint(err, "answer each 'tool_call' event once, while its run goes on");
    return -1;
}

int work_approve(struct work *work, int64_t call, bool allow, struct str reason, struct err *err)
{
    if (work->run && work->calls)
        return calls_approve(work->calls, call, allow, reason, err);
    err_set(err, ERR_ABSENT, "no call of this run waits for a decision");
    err_hint(err, "decide once on each 'approval' event, while its call waits");
    return -1;
}

json_t *work_asking(const struct work *work)
{
    return work->run && work->calls ? calls_asking(work->calls) : NULL;
}

void work_abandon(struct work *work)
{
    work->deaf = true;
}
