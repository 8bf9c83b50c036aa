/* What is asked of sessions beside cells: each ask has one answer, and waits for its turn
 * where it needs the interpreter or the box. Runs in the engine. */
#include "engine/session/session_ask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"
#include "engine/run/run.h"

/* --- the end of an ask --- */

void session_ask_free(struct engine_ask *ask)
{
    *(ask->before ? &ask->before->after : &ask->engine->asks) = ask->after;
    if (ask->after)
        ask->after->before = ask->before;
    request_done(&ask->request);
    json_decref(ask->answer);
    if (ask->file) {
        free(ask->file->path);
        free(ask->file->content);
        free(ask->file);
    }
    free(ask);
}

/* The hook may ask for more: this one is out of the way. */
void session_ask_reply(struct engine_ask *ask, const struct err *err)
{
    struct session *session = ask->session;
    bool had_turn = session && session->ask == ask;
    if (had_turn)
        session->ask = NULL;
    if (!ask->silent)
        ask->hooks.on_answer(ask->hooks.user, err ? NULL : ask->answer, err ? NULL : ask->file,
                             err);
    session_ask_free(ask);
    if (had_turn)
        session_next(session);
}

void session_ask_info(struct engine_ask *ask)
{
    json_object_set_new(ask->answer, "session", session_info(ask->session));
    session_ask_reply(ask, NULL);
}

static void refuse(struct session_job *job, const struct err *err)
{
    struct engine_ask *ask = loop_owner(job, struct engine_ask, job);
    struct err kept = *err;
    ask->session = NULL;
    session_ask_reply(ask, &kept);
}

/* After a step: the ask that it was for, or NULL where it failed and is answered. */
struct engine_ask *session_ask_after(struct session *session)
{
    struct engine_ask *ask = session->ask;
    struct err err = session->failed;
    if (err.kind == ERR_NONE)
        return ask;
    files_drop(&session->files);
    session_ask_reply(ask, &err);
    return NULL;
}

void session_ask_refuse(struct engine_ask *ask, enum err_kind kind, const char *text,
                       const char *hint)
{
    struct err err = ERR_INIT;
    err_set(&err, kind, "%s", text);
    if (hint)
        err_hint(&err, "%s", hint);
    session_ask_reply(ask, &err);
}

/* --- new --- */

/* The first in line of its own session: the interpreter waits, the files are in. */
static void begin_new(struct session *session, struct engine_ask *ask)
{
    if (ask->request.file_count > 0)
        session_ask_put(session, ask);
    else
        session_ask_info(ask);
}

/* --- names, completion and code before it is run --- */

static bool has_answer(const struct driver *driver)
{
    return driver->answer;
}

static void on_names(struct session *session)
{
    struct engine_ask *ask = session_ask_after(session);
    if (!ask)
        return;
    json_t *info = session_info(session);
    json_object_update(info, session->driver.answer);
    json_object_set_new(ask->answer, "session", info);
    session_ask_reply(ask, NULL);
}

static void on_completed(struct session *session)
{
    struct engine_ask *ask = session_ask_after(session);
    if (!ask)
        return;
    json_object_update(ask->answer, session->driver.answer);
    session_ask_reply(ask, NULL);
}

static void reply_problems(struct engine_ask *ask, json_t *problems)
{
    const struct request *request = &ask->session->request;
    own_json kept = json_is_array(problems) ? json_incref(problems) : json_array();
    hint_problems(request->image, kept);
    json_object_set(ask->answer, "problems", kept);
    session_ask_reply(ask, NULL);
}

static void on_checked(struct session *session)
{
    struct engine_ask *ask = session_ask_after(session);
    if (ask)
        reply_problems(ask, json_object_get(session->driver.answer, "problems"));
}

/* Where the character of that number begins. */
static size_t offset_of(struct str text, int64_t character)
{
    size_t at = 0;
    for (; character > 0 && at < text.len; character--) {
        uint32_t point;
        size_t len = str_decode_utf8((struct str){ text.at + at, text.len - at }, &point);
        at += len ? len : 1;
    }
    return at;
}

static char *question(struct session *session, const char *op,
                      const struct frame_session *what)
{
    struct str code = what->code;
    const char *nonce = session_expect(session);
    if (session->request.language == REQUEST_BASH) {
        /* It gets the text up to the cursor, which counts characters. */
        struct str before = { code.at, offset_of(code, what->cursor) };
        return plan_bash_question(op, nonce, before);
    }
    own_json line = json_pack("{s:s, s:s}", "op", op, "nonce", nonce);
    if (code.at) {
        json_object_set_new(line, "code", json_text(code));
        json_object_set_new(line, "cursor", json_integer(what->cursor));
    }
    return plan_line(line);
}

static void begin_info(struct session *session, struct engine_ask *ask)
{
    if (!ask->what->names)
        session_ask_info(ask);
    else
        session_ask_driver(session, question(session, "names", ask->what), has_answer, on_names);
}

static void begin_complete(struct session *session, struct engine_ask *ask)
{
    session_ask_driver(session, question(session, "complete", ask->what), has_answer,
                       on_completed);
}

/* Only Python's interpreter can say it: of others nothing is known to be wrong. */
static void begin_check(struct session *session, struct engine_ask *ask)
{
    if (session->request.language != REQUEST_PYTHON)
        reply_problems(ask, NULL);
    else
        session_ask_driver(session, question(session, "check", ask->what), has_answer, on_checked);
}

/* --- asking --- */

static void (*const begins[FRAME_DOS])(struct session *session, struct engine_ask *ask) = {
    [FRAME_DO_NEW] = begin_new,       [FRAME_DO_INFO] = begin_info,
    [FRAME_DO_PUT] = session_ask_put,       [FRAME_DO_GET] = session_ask_files,
    [FRAME_DO_FILES] = session_ask_files,   [FRAME_DO_CHECKPOINT] = session_ask_checkpoint,
    [FRAME_DO_UNDO] = session_ask_undo,     [FRAME_DO_FORK] = session_ask_fork,
    [FRAME_DO_COMPLETE] = begin_complete,   [FRAME_DO_CHECK] = begin_check,
};

static void begin(struct session_job *job)
{
    struct engine_ask *ask = loop_owner(job, struct engine_ask, job);
    struct session *session = ask->session;
    session->ask = ask;
    session->failed = ERR_INIT;
    begins[ask->what->what](session, ask);
}

static json_t *list_all(const struct engine *engine)
{
    json_t *list = json_array();
    for (const struct session *session = engine->sessions; session; session = session->after) {
        if (session->stage != SESSION_ENDED)
            json_array_append_new(list, session_info(session));
    }
    for (size_t i = engine->past_count; i > 0; i--)
        json_array_append_new(list, session_past_info(&engine->past[i - 1]));
    return list;
}

/* Whatever needs no turn is answered at once, also while a cell runs. True: it was. */
static bool answer_now(struct engine_ask *ask, struct err *err)
{
    struct session *session = ask->session;
    enum frame_do what = ask->what->what;
    if (what == FRAME_DO_LIST) {
        json_object_set_new(ask->answer, "sessions", list_all(ask->engine));
    } else if (what == FRAME_DO_INFO && (!ask->what->names || session->stage == SESSION_CELL)) {
        json_object_set_new(ask->answer, "session", session_info(session));
    } else if (what == FRAME_DO_INTERRUPT) {
        if (!session->cell || session->stage != SESSION_CELL) {
            err_set(err, ERR_ABSENT, "session '%s' runs no cell", session->id);
            err_hint(err, "nothing is to be done");
            return false;
        }
        engine_interrupt(session->cell);
        json_object_set_new(ask->answer, "session", session_info(session));
    } else if (what == FRAME_DO_END) {
        session->called_off = true;
        session_end(session, "it was ended on request");
        json_object_set_new(ask->answer, "session",
                            session_past_info(&ask->engine->past[ask->engine->past_count - 1]));
    } else {
        return false;
    }
    return true;
}

/* The session that is asked; false with an err where there is none that could be. */
static bool find_session(struct engine_ask *ask, struct err *err)
{
    const struct frame_session *what = ask->what;
    if (what->what == FRAME_DO_LIST)
        return true;
    if (what->what == FRAME_DO_NEW) {
        /* Its files are put once its box is there. */
        struct request made = ask->request;
        ask->request = (struct request){ .files = made.files, .file_count = made.file_count,
                                         .root = json_incref(made.root) };
        made.files = NULL;
        made.file_count = 0;
        ask->session = session_new(ask->engine, what, &made, err);
    } else {
        ask->session = session_find(ask->engine, what->session, err);
    }
    return ask->session != NULL;
}

int engine_ask(struct engine *engine, const struct frame_session *what, struct request *request,
               const struct engine_ask_hooks *hooks, struct engine_ask **out, struct err *err)
{
    const struct session_past *past = what->what == FRAME_DO_INFO
                                          ? session_past_find(engine, what->session)
                                          : NULL;
    *out = NULL;
    if (engine_is_broken(engine, err))
        return -1;
    struct engine_ask *ask = buf_alloc_zero(1, sizeof *ask);
    *ask = (struct engine_ask){ .job = { .begin = begin, .refuse = refuse,
                                         .first = what->what == FRAME_DO_NEW }, .engine = engine,
                                .what = what, .hooks = *hooks, .answer = json_object(),
                                .request = *request };
    *request = REQUEST_INIT;
    ask->after = engine->asks;
    if (ask->after)
        ask->after->before = ask;
    engine->asks = ask;
    if (past) {
        json_object_set_new(ask->answer, "session", session_past_info(past));
    } else if (!find_session(ask, err)) {
        session_ask_free(ask);
        return -1;
    } else if (!answer_now(ask, err)) {
        if (err->kind == ERR_NONE && session_enter(ask->session, &ask->job, err) == 0) {
            *out = ask;
            return 0;
        }
        session_ask_free(ask);
        return -1;
    }
    hooks->on_answer(hooks->user, ask->answer, NULL, NULL);
    session_ask_free(ask);
    return 0;
}

void engine_asks_silence(struct engine *engine)
{
    for (struct engine_ask *ask = engine->asks; ask; ask = ask->after)
        ask->silent = true;
}
