/* Asks: requests of clients about sessions, except cells. Each ask has one answer. It waits for its
 * turn if it needs the interpreter or the box. Runs in the engine. */
#include "engine/session/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"
#include "engine/run/run.h"

/* --- the end of an ask --- */

static void ask_free(struct engine_ask *ask)
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

/* The hook may ask for more: this ask is out of the way by then. */
void session_ask_reply(struct engine_ask *ask, const struct err *err)
{
    struct session *session = ask->session;
    bool had_turn = session && session->queue.ask == ask;
    if (had_turn)
        session->queue.ask = NULL;
    if (!ask->silent)
        ask->hooks.on_answer(ask->hooks.user, err ? NULL : ask->answer, err ? NULL : ask->file,
                             err);
    ask_free(ask);
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

void session_ask_failed(struct session *session)
{
    struct err err = session->step.err;
    files_drop(&session->box.files);
    session_ask_reply(session->queue.ask, &err);
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

/* --- names, completion and code before it is run --- */

static void reply_problems(struct engine_ask *ask, json_t *problems)
{
    own_json kept = json_is_array(problems) ? json_incref(problems) : json_array();
    hint_problems(ask->engine, &ask->session->image->image, kept);
    json_object_set(ask->answer, "problems", kept);
    session_ask_reply(ask, NULL);
}

void session_ask_on_answer(struct session *session)
{
    struct engine_ask *ask = session->queue.ask;
    json_t *said = session->streams.driver.answer;
    if (ask->what->what == FRAME_DO_CHECK) {
        reply_problems(ask, json_object_get(said, "problems"));
        return;
    }
    if (ask->what->what == FRAME_DO_INFO) {
        json_t *info = session_info(session);
        json_object_update(info, said);
        json_object_set_new(ask->answer, "session", info);
    } else {
        json_object_update(ask->answer, said);
    }
    session_ask_reply(ask, NULL);
}

/* The offset of the character with that number. */
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

static char *question(struct session *session, const struct frame_session *what)
{
    static const char *const ops[FRAME_DOS] = {
        [FRAME_DO_INFO] = "names", [FRAME_DO_COMPLETE] = "complete", [FRAME_DO_CHECK] = "check",
    };
    const char *op = ops[what->what], *nonce = session->streams.driver.nonce;
    struct str code = what->code;
    driver_expect(&session->streams.driver);
    if (session->request.language == REQUEST_BASH) {
        /* Bash gets the text up to the cursor, which counts characters. */
        struct str before = { code.at, offset_of(code, what->cursor) };
        return plan_bash_question(op, nonce, before);
    }
    own_json line = json_pack("{s:s, s:s}", "op", op, "nonce", nonce);
    if (code.at) {
        json_object_set_new(line, "code", json_text(code));
        json_object_set_new(line, "cursor", json_integer(what->cursor));
        json_object_set_new(line, "tools", json_boolean(session->request.tools != NULL));
    }
    return plan_line(line);
}

static void begin_question(struct session *session, struct engine_ask *ask)
{
    /* Only Python's interpreter can check code. */
    if (ask->what->what == FRAME_DO_CHECK && session->request.language != REQUEST_PYTHON)
        reply_problems(ask, NULL);
    else
        session_ask_driver(session, question(session, ask->what), SESSION_ANSWERING);
}

/* `new`, the first job of a session, with files or without; put, remove, get, files. */
static void begin_files(struct session *session, struct engine_ask *ask)
{
    enum frame_do what = ask->what->what;
    if (what == FRAME_DO_NEW && ask->request.file_count == 0)
        session_ask_info(ask);
    else
        session_need_porter(session, what == FRAME_DO_GET || what == FRAME_DO_FILES
                                         ? SESSION_GET_PORTER
                                         : SESSION_PUT_PORTER);
}

/* --- asking --- */

static void (*const begins[FRAME_DOS])(struct session *session, struct engine_ask *ask) = {
    [FRAME_DO_NEW] = begin_files,         [FRAME_DO_INFO] = begin_question,
    [FRAME_DO_PUT] = begin_files,         [FRAME_DO_GET] = begin_files,
    [FRAME_DO_FILES] = begin_files,       [FRAME_DO_CHECKPOINT] = session_ask_checkpoint,
    [FRAME_DO_UNDO] = session_ask_undo,   [FRAME_DO_FORK] = session_fork,
    [FRAME_DO_COMPLETE] = begin_question, [FRAME_DO_CHECK] = begin_question,
    [FRAME_DO_REMOVE] = begin_files,
};

static void begin(struct session_job *job)
{
    struct engine_ask *ask = loop_owner(job, struct engine_ask, job);
    ask->session->queue.ask = ask;
    begins[ask->what->what](ask->session, ask);
}

static json_t *list_all(const struct engine *engine)
{
    json_t *list = json_array();
    for (const struct session *session = engine->sessions; session; session = session->after) {
        if (session->step.stage != SESSION_ENDED && !session->life.expired)
            json_array_append_new(list, session_info(session));
    }
    for (size_t i = engine->past_count; i > 0; i--)
        json_array_append_new(list, session_past_info(&engine->past[i - 1]));
    return list;
}

/* Answer an ask that needs no turn, also while a cell runs. False: it needs one, or err says why it
 * cannot be done. */
static bool answer_now(struct engine_ask *ask, struct err *err)
{
    struct session *session = ask->session;
    enum frame_do what = ask->what->what;
    if (what == FRAME_DO_LIST) {
        json_object_set_new(ask->answer, "sessions", list_all(ask->engine));
    } else if (what == FRAME_DO_INFO &&
               (!ask->what->names || session->step.stage == SESSION_RUNNING)) {
        json_object_set_new(ask->answer, "session", session_info(session));
    } else if (what == FRAME_DO_INTERRUPT) {
        if (session->step.stage != SESSION_RUNNING) {
            err_set(err, ERR_ABSENT, "session '%s' runs no cell", session->id);
            err_hint(err, "there is nothing to interrupt");
            return false;
        }
        engine_interrupt(session->queue.cell);
        json_object_set_new(ask->answer, "session", session_info(session));
    } else if (what == FRAME_DO_DROP) {
        if (!session_ask_drop(session, (uint32_t)ask->what->upload)) {
            err_set(err, ERR_BUSY, "session '%s' has no time for it now", session->id);
            return false;
        }
        json_object_set_new(ask->answer, "session", session_info(session));
    } else if (what == FRAME_DO_END) {
        session->life.called_off = true;
        session_end(session,
                    session->life.expired ? session->life.ended : "it was ended on request");
        json_object_set_new(ask->answer, "session",
                            session_past_info(session_past_find(ask->engine, session->id)));
    } else {
        return false;
    }
    return true;
}

/* Find or make the session; false with an err. */
static bool find_session(struct engine_ask *ask, struct err *err)
{
    const struct frame_session *what = ask->what;
    if (what->what == FRAME_DO_LIST)
        return true;
    if (session_check_folder(ask->engine, &ask->request, (int)what->what, err) < 0)
        return false;
    if (what->what == FRAME_DO_NEW) {
        /* The files are put once the box is there. */
        struct request made = ask->request;
        ask->request = (struct request){ .files = made.files, .file_count = made.file_count,
                                         .root = json_incref(made.root) };
        made.files = NULL;
        made.file_count = 0;
        ask->session = session_new(ask->engine, what, &made, err);
    } else {
        ask->session = what->is_heir ? session_find_expired(ask->engine, what->session, err)
                                     : session_find(ask->engine, what->session, err);
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
    *ask = (struct engine_ask){ .job = { .begin = begin, .refuse = refuse }, .engine = engine,
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
        ask_free(ask);
        return -1;
    } else if (!answer_now(ask, err)) {
        if (err->kind == ERR_NONE && session_enter(ask->session, &ask->job, err) == 0) {
            *out = ask;
            return 0;
        }
        ask_free(ask);
        return -1;
    }
    hooks->on_answer(hooks->user, ask->answer, NULL, NULL);
    ask_free(ask);
    return 0;
}

void engine_asks_silence(struct engine *engine)
{
    for (struct engine_ask *ask = engine->asks; ask; ask = ask->after)
        ask->silent = true;
}
