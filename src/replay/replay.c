/* Replays a run, or a session up to a cell. Runs in the process that asks for it. Everything that
 * is read (records, results) was written by others: types are checked at every step. */
#include "replay/replay.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "replay/calls.h"
#include "replay/diff.h"
#include "replay/lineage.h"
#include "replay/remake.h"
#include "replay/supplied.h"
#include "store/records/look.h"

#define ASK_S 300        /* for an answer that runs no code */
#define AROUND_S 120     /* beside a run's own seconds: queue, artifacts */
#define END_S 5          /* for the end of a session after a cancel */
#define PATIENCE_S 60    /* for an engine without room, or a token's other runs */
#define PAUSE_MS 100
#define PAD_MAX 2000     /* empty cells in a row */

/* --- the engine --- */

static void wait_for(const struct replay *how, struct embed_call *call)
{
    while (!call->done) {
        struct pollfd cancel = { .fd = call->stopped ? -1 : how->cancel_fd, .events = POLLIN };
        embed_client_poll(how->engine, &cancel, 1);
        if (cancel.revents)
            embed_client_stop(how->engine, call);
    }
}

/* False: cancelled meanwhile. */
static bool pause_for(const struct replay *how, int round)
{
    struct pollfd cancel = { .fd = how->cancel_fd, .events = POLLIN };
    return poll(&cancel, 1, PAUSE_MS << (round < 4 ? round : 4)) == 0;
}

static void on_news(struct embed_call *call, const struct frame_news *news, struct str text)
{
    (void)text;
    if (call->user)
        replay_calls_hear(call->user, call, news);
}

/* Sends a frame and waits for its end. `calls` answers those of a run; NULL: it makes none. */
static json_t *talk(const struct replay *how, const json_t *frame, bool is_run, double seconds,
                    struct replay_calls *calls, struct err *err)
{
    const int64_t until = clock_now_ns() + PATIENCE_S * CLOCK_S;
    for (int round = 0;; round++) {
        struct embed_call call = { .is_run = is_run, .collects = true,
                                   .until_ns = clock_now_ns() + (int64_t)(seconds * 1e9),
                                   .on_news = on_news, .user = calls };
        *err = ERR_INIT;
        if (embed_client_begin(how->engine, &call, (json_t *)(uintptr_t)frame, err) < 0)
            return NULL;
        wait_for(how, &call);
        *err = call.err;
        json_t *answer = err->kind == ERR_NONE ? json_incref(call.answer) : NULL;
        embed_call_done(how->engine, &call);
        bool full = err->kind == ERR_BUSY || err->kind == ERR_QUOTA;
        if (answer || !full || clock_now_ns() > until || !pause_for(how, round))
            return answer;
    }
}

static bool is_cancelled(const struct replay *how)
{
    struct pollfd cancel = { .fd = how->cancel_fd, .events = POLLIN };
    return poll(&cancel, 1, 0) > 0;
}

static json_t *ask(const struct replay *how, json_t *made, struct err *err)
{
    own_json frame = made;
    if (!frame) {
        err_set(err, ERR_CONFLICT, "a text of the record is not UTF-8");
        return NULL;
    }
    return talk(how, frame, /* is_run= */ false, ASK_S, /* calls= */ NULL, err);
}

/* --- one run --- */

static int read_content(void *user, const char *sha256, struct buf *out, struct err *err)
{
    const struct replay *how = user;
    return look_content(how->db, how->state_dir, sha256, out, err);
}

static struct remake remake_with(const struct replay *how)
{
    return (struct remake){ .content = read_content, .user = (void *)(uintptr_t)how,
                            .secrets = how->secrets, .any_image = how->any_image };
}

static const char *text_of(const json_t *from, const char *name)
{
    const char *text = json_string_value(json_object_get(from, name));
    return text ? text : "";
}

/* The new run's record: what is stored, as the other one was; else made of its result. */
static json_t *record_of(const struct replay *how, const json_t *record, json_t *result)
{
    struct err absent = ERR_INIT;
    json_t *stored = look_show(how->db, how->owner, text_of(result, "run"), &absent);
    if (json_is_object(json_object_get(stored, "result")))
        return stored;
    json_decref(stored);
    return json_pack("{s:O, s:O, s:O?}", "status", json_object_get(result, "status"), "result",
                     result, "request", json_object_get(record, "request"));
}

static void explain_gone(const json_t *record, struct err *err)
{
    const char *digest = remake_digest(record);
    const char *name = err->value + strspn(err->value, "\"");
    char value[sizeof err->value];
    snprintf(value, sizeof value, "%.*s", (int)strcspn(name, "\""), name);
    err_set(err, ERR_CONFLICT, "run '%.40s' was on image '%.80s', which is not here any more: %s",
            text_of(record, "run"), value, digest ? digest : "its digest is not recorded");
    snprintf(err->field, sizeof err->field, "image");
    snprintf(err->value, sizeof err->value, "%s", value);
    err_hint(err,
             "make it again, from its lock (cupel images add %.64s --lock FILE) or by 'cupel "
             "images import', until 'cupel images show %.64s' tells that digest",
             value, value);
}

/* A changed image is a refusal that says how to go on. */
static void explain(const struct replay *how, const json_t *record, struct err *err)
{
    bool image = err->kind == ERR_INPUT && strcmp(err->field, "image") == 0;
    if (!image || how->any_image)
        return;
    if (strncmp(err->value + strspn(err->value, "\""), "sha256:", 7) != 0) {
        explain_gone(record, err);
        return;
    }
    char value[sizeof err->value], bound[sizeof err->bound];
    snprintf(value, sizeof value, "%s", err->value);
    snprintf(bound, sizeof bound, "%s", err->bound);
    err_set(err, ERR_CONFLICT, "run '%.40s' was on another image: '%.80s', which is now '%.80s'",
            text_of(record, "run"), value, bound);
    snprintf(err->field, sizeof err->field, "image");
    snprintf(err->value, sizeof err->value, "%s", value);
    snprintf(err->bound, sizeof err->bound, "%s", bound);
    err_hint(err, "--any-image (\"any_image\": true over HTTP) runs it on the image as it is now");
}

/* [DIFFERENCE], of the calls of tools too. */
static json_t *differences_of(const struct replay *how, const json_t *record, json_t *stored,
                              json_t *result)
{
    own_json was = json_copy((json_t *)(uintptr_t)record);
    own_json is = record_of(how, record, result);
    json_object_set(was, LOOK_CALLS, stored);
    look_add_calls(how->db, how->owner, is, NULL);
    return diff_records(was, is);
}

/* The frame of a run, sent and answered. */
static json_t *result_of(const struct replay *how, const json_t *record, const char *session,
                         struct replay_calls *calls, struct err *err)
{
    const struct remake remake = remake_with(how);
    own_json frame = remake_run(&remake, record, session, err);
    if (!frame)
        return NULL;
    replay_calls_give(calls, frame);
    if (supplied_check(how->supplied, frame, err) < 0 ||
        (calls->whole && supplied_check(how->supplied, calls->whole, err) < 0))
        return NULL;
    const json_t *limits = json_object_get(json_object_get(frame, "request"), "limits");
    double seconds = json_number_value(json_object_get(limits, "timeout_s"));
    json_object_set_new(frame, "op", json_string("run"));
    json_object_set_new(frame, "replay_of", json_text(str_of(text_of(record, "run"))));
    json_t *result = talk(how, frame, /* is_run= */ true,
                          (seconds > 0 && seconds < 1e6 ? seconds : 3600) + AROUND_S, calls, err);
    if (calls->err.kind != ERR_NONE) {
        *err = calls->err;
        json_decref(take_ptr(result));
    } else if (!result) {
        explain(how, record, err);
    } else if (is_cancelled(how)) { /* its end is ours, not the code's */
        err_set(err, ERR_CANCELLED, "the replay was stopped");
        json_decref(take_ptr(result));
    }
    return result;
}

/* {"run","replayed_as","same","differences"} of a record, run again in `session` (NULL: none). */
static json_t *again(const struct replay *how, const json_t *record, const char *session,
                     struct err *err)
{
    const struct remake remake = remake_with(how);
    own_replay_calls calls = { 0 };
    own_json stored = look_calls(how->db, how->owner, text_of(record, "run"), err);
    if (!stored || replay_calls_open(&calls, &remake, record, stored, how->engine, err) < 0)
        return NULL;
    own_json result = result_of(how, record, session, &calls, err);
    if (!result)
        return NULL;
    json_t *differences = differences_of(how, record, stored, result);
    return json_pack("{s:O, s:O?, s:b, s:o}", "run", json_object_get(record, "run"), "replayed_as",
                     json_object_get(result, "run"), "same", json_array_size(differences) == 0,
                     "differences", differences);
}

/* --- a session's cell --- */

static json_t *read_history(void *user, const char *session, const char *until, struct err *err)
{
    const struct replay *how = user;
    return look_session(how->db, how->owner, session, until, err);
}

/* The image of the session: that of its first cell. */
static const char *digest_of(const json_t *steps)
{
    size_t i;
    json_t *step;
    json_array_foreach (steps, i, step)
        if (remake_digest(step))
            return remake_digest(step);
    return NULL;
}

static int begin_session(const struct replay *how, const json_t *steps, char *out, size_t room,
                         struct err *err)
{
    struct remake remake = remake_with(how);
    const json_t *act = json_array_get(steps, 0), *detail = json_object_get(act, "detail");
    remake.whole = remake_is_whole(act);
    own_json recorded = json_copy(json_object_get(detail, "request"));
    if (json_is_object(json_object_get(detail, "limits"))) /* those that held */
        json_object_set(recorded, "limits", json_object_get(detail, "limits"));
    json_t *request = remake_session(&remake, recorded, json_object_get(act, "files"),
                                     digest_of(steps), err);
    if (request && supplied_check(how->supplied, request, err) < 0)
        json_decref(take_ptr(request));
    if (!request)
        return -1;
    own_json answer = ask(
        how, json_pack("{s:s, s:s, s:o}", "op", "session", "do", "new", "request", request), err);
    if (!answer) {
        explain(how, json_array_get(steps, json_array_size(steps) - 1), err);
        return -1;
    }
    snprintf(out, room, "%s", text_of(json_object_get(answer, "session"), "session"));
    return *out ? 0 : err_set(err, ERR_BUG, "the engine did not describe the session");
}

static void end_session(const struct replay *how, const char *session)
{
    struct err unheard = ERR_INIT; /* it may have ended by itself */
    struct replay calm = *how;
    calm.cancel_fd = -1; /* also after a cancel */
    own_json frame = json_pack("{s:s, s:s, s:s}", "op", "session", "do", "end", "session", session);
    json_decref(talk(&calm, frame, /* is_run= */ false, is_cancelled(how) ? END_S : ASK_S,
                     /* calls= */ NULL, &unheard));
}

static int refuse_not_stored(const json_t *act, struct err *err)
{
    const json_t *lost = json_array_get(
        json_object_get(json_object_get(act, "detail"), "not_stored"), 0);
    if (!lost)
        return 0;
    err_set(err, ERR_ABSENT, "the bytes of '%.200s' were not stored", text_of(lost, "path"));
    err_hint(err, "an upload above limits.input_bytes is only named in the record");
    return -1;
}

/* A put or a remove. */
static int act_again(const struct replay *how, const json_t *act, const char *session,
                     struct err *err)
{
    struct remake remake = remake_with(how);
    json_t *frame = json_pack("{s:s, s:s, s:s}", "op", "session", "do", text_of(act, "act"),
                              "session", session);
    bool removes = strcmp(text_of(act, "act"), "remove") == 0;
    json_t *value = NULL;
    remake.whole = remake_is_whole(act);
    if (removes)
        value = remake_text(&remake, "path", json_get_str(json_object_get(act, "detail"), "path"),
                            err);
    else if (refuse_not_stored(act, err) == 0)
        value = remake_files(&remake, json_object_get(act, "files"), err);
    if (value && supplied_check(how->supplied, value, err) < 0)
        json_decref(take_ptr(value));
    if (!value) {
        json_decref(frame);
        return -1;
    }
    if (!removes && json_array_size(value) == 0) {
        json_decref(value);
        json_decref(frame);
        return 0;
    }
    json_object_set_new(frame, removes ? "path" : "files", value);
    own_json answer = ask(how, frame, err);
    return answer ? 0 : err_wrap(err, "%s a file of the session", text_of(act, "act"));
}

/* Cells that were undone still count: empty ones stand for them, so that each cell has the number
 * that it had, in tracebacks and in answers. */
static int pad(const struct replay *how, const char *session, json_int_t *last, const json_t *step,
               struct err *err)
{
    json_int_t cell = json_integer_value(json_object_get(step, "cell"));
    if (cell - *last > PAD_MAX)
        return 0; /* an edited store */
    for (; *last + 1 < cell; ++*last) {
        own_json frame = json_pack("{s:s, s:{s:s, s:s}}", "op", "run", "request", "session",
                                   session, "code", "");
        own_json result = talk(how, frame, /* is_run= */ true, ASK_S, /* calls= */ NULL, err);
        if (!result)
            return -1;
    }
    *last = cell;
    return 0;
}

/* The steps after the first. The last is the report of the cell itself. */
static json_t *steps_again(const struct replay *how, const json_t *steps, const char *session,
                           json_t *cells, struct err *err)
{
    json_int_t last = 0;
    for (size_t i = 1; i < json_array_size(steps); i++) {
        const json_t *step = json_array_get(steps, i);
        if (*text_of(step, "act")) {
            if (act_again(how, step, session, err) < 0)
                return NULL;
            continue;
        }
        json_t *cell = pad(how, session, &last, step, err) < 0 ? NULL
                                                               : again(how, step, session, err);
        if (!cell) {
            err_wrap(err, "cell %lld",
                     (long long)json_integer_value(json_object_get(step, "cell")));
            return NULL;
        }
        if (i + 1 == json_array_size(steps))
            return cell;
        json_object_set(cell, "cell", json_object_get(step, "cell"));
        json_array_append_new(cells, cell);
        if (how->on_step)
            how->on_step(how->user, cell);
    }
    err_set(err, ERR_BUG, "the cell is not among its session's steps");
    return NULL;
}

static json_t *cell_again(const struct replay *how, const json_t *record, json_t *cells,
                          struct err *err)
{
    const struct lineage_source source = { read_history, (void *)(uintptr_t)how };
    char session[64] = "";
    if (how->no_session) {
        *err = *how->no_session;
        return NULL;
    }
    own_json steps = lineage_of(&source, record, err);
    if (!steps || refuse_not_stored(json_array_get(steps, 0), err) < 0 ||
        begin_session(how, steps, session, sizeof session, err) < 0)
        return NULL;
    json_t *report = steps_again(how, steps, session, cells, err);
    end_session(how, session);
    return report;
}

/* --- the interface --- */

static json_t *replay_record(const struct replay *how, const char *id, struct err *err)
{
    own_json record = look_show(how->db, how->owner, id, err);
    if (!record)
        return NULL;
    json_t *session = json_object_get(record, "session");
    own_json cells = json_array();
    json_t *report = json_is_string(session) ? cell_again(how, record, cells, err)
                                             : again(how, record, NULL, err);
    if (!report)
        return NULL;
    json_object_set_new(report, "session",
                        json_is_string(session) ? json_incref(session) : json_null());
    json_object_set(report, "cells", cells);
    return report;
}

json_t *replay_run(const struct replay *how, const char *id, struct err *err)
{
    struct replay own = *how;
    struct supplied supplied;
    json_t *report = NULL;
    own.supplied = &supplied;
    if (supplied_open(&supplied, how->db, how->secrets, err) == 0)
        report = replay_record(&own, id, err);
    supplied_done(&supplied);
    return report;
}

json_t *replay_compare(struct db *db, json_t *was, json_t *is)
{
    look_add_calls(db, /* owner= */ NULL, was, NULL);
    look_add_calls(db, /* owner= */ NULL, is, NULL);
    json_t *differences = diff_records(was, is);
    return json_pack("{s:O?, s:O?, s:b, s:o}", "run", json_object_get(was, "run"), "with",
                     json_object_get(is, "run"), "same", json_array_size(differences) == 0,
                     "differences", differences);
}
