/* The session's cells and fresh boxes, through the engine's client (embed/client.h). Runs in the
 * task's process, one call at a time. Untrusted code wrote the content of results, so every reader
 * checks its types. On a cancel, the cell gets an interrupt, then its end. */
#include "agent/box.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"

#define ASK_S 300         /* for an answer that needs no code to run: the engine may be busy */
#define AROUND_CELL_S 120 /* beside a cell's own seconds: queueing, restoring, artifacts */
#define LOOK_BYTES (1u << 20)        /* of a request beside its files */
#define LOOK_BYTES_USUAL (60u << 20) /* that the default profile takes */
#define QUOTA_S 60        /* for a token's other runs to end, where it may have few at once */
#define PAUSE_MS 100      /* before an engine without room is asked again; doubles a few times */

static void forget_artifacts(struct agent_box *box)
{
    embed_artifacts_free(box->artifacts, box->artifact_count);
    box->artifacts = NULL;
    box->artifact_count = 0;
}

/* The call's time stands still, as the box's does. False: there is no decision. */
static bool decide(struct agent_box *box, struct embed_call *call)
{
    struct err unheard = ERR_INIT; /* a call that waits no more */
    json_t *first = json_array_get(box->asking, 0);
    json_int_t number = json_integer_value(json_object_get(first, "call"));
    int64_t before = clock_now_ns();
    if (!first || call->stopped)
        return false;
    box->asked = true;
    enum agent_decision said = box->approve(box->approve_user, first);
    int64_t waited = clock_now_ns() - before;
    box->asked_s += (double)waited / 1e9;
    call->until_ns += call->until_ns ? waited : 0;
    if (said == AGENT_NOT_YET)
        return false;
    embed_client_approve(box->engine, call, number, said == AGENT_APPROVES, /* reason= */ NULL,
                         &unheard);
    json_array_remove(box->asking, 0);
    box->asked = false;
    return true;
}

/* That call waits no more; -1: none does. */
static void decide_no_more(struct agent_box *box, json_int_t number)
{
    size_t i = json_array_size(box->asking);
    while (i-- > 0) {
        const json_t *one = json_array_get(box->asking, i);
        if (number >= 0 && json_integer_value(json_object_get(one, "call")) != number)
            continue;
        json_array_remove(box->asking, i);
        if (i == 0 && box->asked)
            box->approve(box->approve_user, NULL);
        box->asked = box->asked && i > 0;
    }
}

/* The first byte on cancel_fd stops the call. */
static void wait_for(struct agent_box *box, struct embed_call *call)
{
    while (!call->done) {
        if (decide(box, call))
            continue;
        struct pollfd cancel = { .fd = call->stopped ? -1 : box->cancel_fd, .events = POLLIN };
        embed_client_poll(box->engine, &cancel, 1);
        if (cancel.revents)
            embed_client_stop(box->engine, call);
    }
    decide_no_more(box, -1);
}

/* All room is taken: wait before asking again. False: not again. */
static bool pause_for(const struct agent_box *box, int64_t until, int round)
{
    struct pollfd cancel = { .fd = box->cancel_fd, .events = POLLIN };
    const int ms = PAUSE_MS << (round < 4 ? round : 4);
    return clock_now_ns() < until && poll(&cancel, 1, ms) == 0;
}

/* Send a frame and wait for its end; again if the engine has no room now. */
static json_t *talk(struct agent_box *box, json_t *made, struct embed_call *call, double seconds,
                    struct err *err)
{
    own_json frame = made;
    const int64_t began = clock_now_ns();
    if (!frame) {
        err_input(err, "code", NULL, "UTF-8 text", "a text for the engine is not UTF-8");
        return NULL;
    }
    call->collects = true;
    for (int round = 0;; round++) {
        call->until_ns = clock_now_ns() + (int64_t)(seconds * 1e9);
        forget_artifacts(box);
        if (embed_client_begin(box->engine, call, frame, err) < 0)
            return NULL;
        wait_for(box, call);
        *err = call->err;
        box->artifacts = take_ptr(call->artifacts);
        box->artifact_count = call->artifact_count;
        call->artifact_count = 0;
        json_t *answer = err->kind == ERR_NONE ? json_incref(call->answer) : NULL;
        embed_call_done(box->engine, call);
        const int64_t patience = err->kind == ERR_BUSY    ? ASK_S
                                 : err->kind == ERR_QUOTA ? QUOTA_S
                                                          : 0;
        if (answer || !patience || !pause_for(box, began + patience * CLOCK_S, round))
            return answer;
        *err = ERR_INIT;
    }
}

static json_t *ask(struct agent_box *box, json_t *frame, struct err *err)
{
    struct embed_call call = { .is_run = false };
    return talk(box, frame, &call, ASK_S, err);
}

/* --- requests --- */

static json_t *files_of(const struct agent_box *box, size_t from, struct err *err)
{
    json_t *files = json_array();
    for (size_t i = from; i < box->file_count; i++) {
        json_t *row = embed_file(box->files[i].path, box->files[i].content, /* readonly= */ true);
        if (!row) {
            json_decref(files);
            err_input(err, "files.path", NULL, "UTF-8 text", "a path is not UTF-8");
            return NULL;
        }
        json_array_append_new(files, row);
    }
    return files;
}

/* The request of every box of the task: its profile, limits, files, and answer() for its code. */
static json_t *request_of(const struct agent_box *box, struct err *err)
{
    json_t *request = box->limits ? json_deep_copy(box->limits) : json_object();
    json_t *files = files_of(box, 0, err);
    if (!files) {
        json_decref(request);
        return NULL;
    }
    if (!json_object_get(request, "profile"))
        json_object_set_new(request, "profile", json_string("analysis"));
    json_object_set_new(request, "files", files);
    json_object_set_new(request, "env", json_pack("{s:s}", "CUPEL_AGENT", "1"));
    return request;
}

/* A wish above the session's own limit could be above the operator's ceiling. 0: not known. */
static int64_t least(int64_t wanted, int64_t most)
{
    return most > 0 && most < wanted ? most : wanted;
}

static void set_limit(json_t *request, const char *name, json_t *value)
{
    json_t *limits = json_object_get(request, "limits");
    if (!json_is_object(limits)) {
        json_object_set_new(request, "limits", json_object());
        limits = json_object_get(request, "limits");
    }
    json_object_set_new(limits, name, value);
}

struct output {
    struct agent_box *box;
    void (*on)(void *user, const char *stream, struct str text); /* or NULL */
    void *user;
};

static void on_news(struct embed_call *call, const struct frame_news *news, struct str text)
{
    const struct output *output = call->user;
    struct agent_box *box = output->box;
    struct err unheard = ERR_INIT; /* the call times out */
    (void)text;
    if (news->kind == FRAME_CALL && box->again)
        embed_client_say(box->engine, call, agent_again_answer(box->again, news->root), &unheard);
    else if ((news->kind == FRAME_CALL || news->kind == FRAME_CALLED) && !box->again)
        agent_heard_event(&box->heard, news->root);
    if (news->kind == FRAME_CALLED)
        decide_no_more(box, json_integer_value(json_object_get(news->root, "call")));
    if (news->kind == FRAME_APPROVAL && box->approve)
        json_array_append(box->asking, news->root);
    if (output->on && (news->kind == FRAME_STDOUT || news->kind == FRAME_STDERR))
        output->on(output->user, news->kind == FRAME_STDOUT ? "stdout" : "stderr", news->bytes);
}

bool agent_box_has_tools(const struct agent_box *box)
{
    return json_array_size(json_object_get(box->limits, "tools")) > 0;
}

/* Cells that run again have the tools, and reach none. */
static void set_tools(const struct agent_box *box, json_t *request)
{
    if (!agent_box_has_tools(box))
        return;
    if (box->again)
        json_object_set(request, "tools", box->again->definitions);
    else if (!json_object_get(request, "session"))
        json_object_del(request, "tools");
}

static json_t *run(struct agent_box *box, json_t *request, double timeout_s, struct output *output,
                   struct err *err)
{
    struct embed_call call = { .is_run = true, .on_news = on_news, .user = output };
    bool calls = agent_box_has_tools(box) && (box->again || json_object_get(request, "session"));
    output->box = box;
    set_tools(box, request);
    agent_heard_begin(&box->heard);
    if (timeout_s > 0)
        set_limit(request, "timeout_s", json_real(timeout_s));
    if (box->artifact_bytes > 0)
        set_limit(request, "artifact_bytes",
                  json_integer(least(box->artifact_bytes, box->artifact_most)));
    json_t *frame = json_pack("{s:s, s:o, s:b, s:b}", "op", "run", "request", request, "content", 1,
                              "events", output->on || calls);
    if (calls && !box->again)
        json_object_set_new(frame, "outcomes", json_true());
    if (calls && !box->again && box->approve)
        json_object_set_new(frame, "approve", json_true());
    box->asked_s = 0;
    if (!box->asking)
        box->asking = json_array();
    if (box->task) /* for the run's record */
        json_object_set_new(frame, "task", json_string(box->task));
    if (box->task && box->step > 0)
        json_object_set_new(frame, "step", json_integer(box->step));
    return talk(box, frame, &call, (timeout_s > 0 ? timeout_s : 3600) + AROUND_CELL_S, err);
}

/* --- the interface --- */

json_t *agent_box_tools(struct agent_box *box, struct err *err)
{
    own_json answer = embed_tools(box->engine, json_object_get(box->limits, "tools"),
                                  (int64_t)ASK_S * 1000, err);
    json_t *tools = json_object_get(answer, "tools");
    if (answer && !json_is_array(tools))
        err_set(err, ERR_BUG, "the engine did not list its tools");
    return json_is_array(tools) ? json_incref(tools) : NULL;
}

int agent_box_open(struct agent_box *box, struct err *err)
{
    json_t *request = request_of(box, err);
    int cancel_fd = box->cancel_fd;
    if (!request)
        return -1;
    box->cancel_fd = -1; /* a cancel now would leave a session without a known id */
    own_json answer = ask(
        box, json_pack("{s:s, s:s, s:o}", "op", "session", "do", "new", "request", request), err);
    box->cancel_fd = cancel_fd;
    const json_t *info = json_object_get(answer, "session");
    const json_t *limits = json_object_get(info, "limits");
    const char *id = json_string_value(json_object_get(info, "session"));
    if (!answer)
        return -1;
    if (!id || strlen(id) >= sizeof box->session)
        return err_set(err, ERR_BUG, "the engine did not describe the session");
    snprintf(box->session, sizeof box->session, "%s", id);
    box->timeout_s = json_number_value(json_object_get(limits, "timeout_s"));
    box->memory_bytes = json_integer_value(json_object_get(limits, "memory_bytes"));
    box->artifact_most = json_integer_value(json_object_get(limits, "artifact_bytes"));
    box->input_most = json_integer_value(json_object_get(limits, "input_bytes"));
    return 0;
}

json_t *agent_box_cell(struct agent_box *box, const char *code, double timeout_s,
                       void (*on_output)(void *user, const char *stream, struct str text),
                       void *user, struct err *err)
{
    struct output output = { .on = on_output, .user = user };
    /* A failed cell is undone: the final program has only the cells that succeeded, and must make
     * the same state. */
    json_t *request = json_pack("{s:s, s:s, s:b, s:s}", "session", box->session, "code", code,
                                "names", 1, "on_error", "rollback");
    if (!request) {
        err_input(err, "code", NULL, "UTF-8 text", "the code is not UTF-8");
        return NULL;
    }
    return run(box, request, timeout_s, &output, err);
}

json_t *agent_box_check(struct agent_box *box, const char *code, struct err *err)
{
    own_json answer = ask(box,
                          json_pack("{s:s, s:s, s:s, s:s}", "op", "session", "do", "check",
                                    "session", box->session, "code", code),
                          err);
    if (!answer)
        return NULL;
    json_t *problems = json_object_get(answer, "problems");
    if (!json_is_array(problems)) {
        err_set(err, ERR_BUG, "the engine did not check the code");
        return NULL;
    }
    return json_pack("{s:O}", "problems", problems);
}

int agent_box_put(struct agent_box *box, size_t from, struct err *err)
{
    json_t *files = files_of(box, from, err);
    if (!files)
        return -1;
    own_json answer = ask(box,
                          json_pack("{s:s, s:s, s:s, s:o}", "op", "session", "do", "put", "session",
                                    box->session, "files", files),
                          err);
    return answer ? 0 : -1;
}

/* `member` names the state. */
static int move_state(struct agent_box *box, const char *what, const char *member, const char *name,
                      struct err *err)
{
    own_json answer = ask(box,
                          json_pack("{s:s, s:s, s:s, s:s}", "op", "session", "do", what, "session",
                                    box->session, member, name),
                          err);
    return answer ? 0 : -1;
}

int agent_box_checkpoint(struct agent_box *box, const char *name, struct err *err)
{
    return move_state(box, "checkpoint", "name", name, err);
}

int agent_box_undo(struct agent_box *box, const char *name, struct err *err)
{
    return move_state(box, "undo", "to", name, err);
}

json_t *agent_box_names(struct agent_box *box, struct err *err)
{
    own_json answer = ask(box,
                          json_pack("{s:s, s:s, s:s, s:b}", "op", "session", "do", "info",
                                    "session", box->session, "names", 1),
                          err);
    return answer ? json_incref(json_object_get(answer, "session")) : NULL;
}

/* Takes `request`. */
static json_t *run_fresh(struct agent_box *box, json_t *request, const char *code, double timeout_s,
                         struct err *err)
{
    struct output output = { .on = NULL };
    json_t *text = json_string(code);
    if (!request || !text) {
        json_decref(request);
        json_decref(text);
        if (err->kind == ERR_NONE)
            err_input(err, "code", NULL, "UTF-8 text", "the code is not UTF-8");
        return NULL;
    }
    json_object_set_new(request, "code", text);
    return run(box, request, timeout_s, &output, err);
}

json_t *agent_box_fresh(struct agent_box *box, const char *code, double timeout_s, struct err *err)
{
    return run_fresh(box, request_of(box, err), code, timeout_s, err);
}

json_t *agent_box_look(struct agent_box *box, const char *code, double timeout_s, struct err *err)
{
    json_t *request = request_of(box, err);
    size_t bytes = LOOK_BYTES;
    for (size_t i = 0; i < box->file_count; i++)
        bytes += box->files[i].content.len;
    json_object_del(request, "profile");
    json_object_del(request, "limits");
    json_object_del(request, "tools");
    if (request && bytes > LOOK_BYTES_USUAL)
        set_limit(request, "input_bytes", json_integer(least((int64_t)bytes, box->input_most)));
    return run_fresh(box, request, code, timeout_s, err);
}

void agent_box_close(struct agent_box *box)
{
    struct err unheard = ERR_INIT; /* it may have ended by itself */
    int cancel_fd = box->cancel_fd;
    forget_artifacts(box);
    agent_heard_done(&box->heard);
    json_decref(box->asking);
    box->asking = NULL;
    if (!box->session[0])
        return;
    box->cancel_fd = -1; /* a cancelled session is ended all the same */
    json_decref(ask(
        box, json_pack("{s:s, s:s, s:s}", "op", "session", "do", "end", "session", box->session),
        &unheard));
    box->cancel_fd = cancel_fd;
    box->session[0] = 0;
}
