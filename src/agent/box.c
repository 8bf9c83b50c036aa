/* Frames to the engine and back: the session's cells, and fresh boxes. The task's process. One
 * frame is under way at a time, so every answer belongs to it or is passed over. The engine is
 * ours; what its results hold was written by code that is not, and is checked for its type
 * wherever it is used.
 * When the caller cancels, the cell gets an interrupt, then its end; nothing waits for ever. */
#include "agent/box.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "contract/result.h"

#define ASK_S 300         /* for an answer that needs no code to run: the engine may be busy */
#define AROUND_CELL_S 120 /* beside a cell's own seconds: queueing, restoring, artifacts */
#define GRACE_S 2         /* after an interrupt */
#define ARTIFACTS_MAX 4096
#define PAUSE_MS 100      /* before an engine without room is asked again; doubles a few times */

struct waiting {
    char id[FRAME_ID_MAX];
    int64_t until;
    bool is_run;
    int asked; /* interrupts and cancels that were sent */
    void (*on_output)(void *user, const char *stream, struct str text);
    void *user;
    json_t *out;
};

static void forget_artifacts(struct agent_box *box)
{
    for (size_t i = 0; i < box->artifact_count; i++) {
        free(box->artifacts[i].path);
        buf_done(&box->artifacts[i].content);
    }
    free(box->artifacts);
    box->artifacts = NULL;
    box->artifact_count = 0;
}

/* A part of an artifact: the first begins one, the others go on where it ended. */
static int add_artifact(struct agent_box *box, const struct frame_news *news, struct err *err)
{
    size_t count = box->artifact_count;
    if (news->offset == 0 && count < ARTIFACTS_MAX) {
        struct agent_box_artifact *more = buf_alloc_zero(count + 1, sizeof *more);
        if (count)
            memcpy(more, box->artifacts, count * sizeof *more);
        free(box->artifacts);
        box->artifacts = more;
        more[count] = (struct agent_box_artifact){ .path = buf_strdup(news->path),
                                                   .content = BUF_INIT(news->size_bytes) };
        box->artifact_count = ++count;
    }
    struct agent_box_artifact *last = count ? &box->artifacts[count - 1] : NULL;
    if (!last || last->content.len != news->offset || !str_is(news->path, last->path) ||
        buf_add_str(&last->content, news->bytes) < 0)
        return err_set(err, ERR_BUG, "the engine's artifacts do not fit together");
    return 0;
}

/* 1: this was the end; 0: more comes; -1. */
static int take(struct agent_box *box, struct waiting *wait, const struct frame_news *news,
                struct err *err)
{
    bool ours = str_is(news->id, wait->id);
    if (news->kind == FRAME_ERROR && (ours || (news->id.len == 0 && !wait->asked))) {
        result_refusal_read(news->body, err);
        return -1;
    }
    if (!ours)
        return 0;
    if (news->kind == FRAME_ARTIFACT)
        return add_artifact(box, news, err);
    if ((news->kind == FRAME_STDOUT || news->kind == FRAME_STDERR) && wait->on_output)
        wait->on_output(wait->user, news->kind == FRAME_STDOUT ? "stdout" : "stderr", news->bytes);
    if (news->kind != FRAME_RESULT && news->kind != FRAME_ANSWER)
        return 0;
    if ((news->kind == FRAME_RESULT) != wait->is_run)
        return err_set(err, ERR_BUG, "the engine answers something else");
    wait->out = json_incref(news->body);
    return 1;
}

static int take_all(struct agent_box *box, struct waiting *wait, struct err *err)
{
    struct str text;
    int got, rc = 0;
    while (rc == 0 && (got = embed_next(box->link, &text, err)) != 0) {
        own_frame_news news = FRAME_NEWS_INIT;
        rc = got < 0 || frame_news_read(text, &news, err) < 0 ? -1 : take(box, wait, &news, err);
    }
    return rc;
}

/* First an interrupt, which the code may answer; then the end of the run; then we go. */
static int give_up(struct agent_box *box, struct waiting *wait, bool cancelled, struct err *err)
{
    static const char *const ops[] = { "interrupt", "cancel" };
    if (!wait->is_run || wait->asked >= (int)array_len(ops))
        return err_set(err, cancelled ? ERR_CANCELLED : ERR_HOST, "%s",
                       cancelled ? "cancelled" : "the engine does not answer in time");
    own_json frame = json_pack("{s:s, s:s}", "op", ops[wait->asked], "id", wait->id);
    wait->asked++;
    wait->until = clock_now_ns() + GRACE_S * CLOCK_S;
    return embed_send(box->link, frame, err);
}

static int poll_ms(int64_t until)
{
    int64_t left = until - clock_now_ns();
    return left <= 0 ? 0 : left > 3600 * CLOCK_S ? 3600 * 1000 : (int)(left / 1000000 + 1);
}

static int wait_for(struct agent_box *box, struct waiting *wait, struct err *err)
{
    bool cancelled = false;
    for (;;) {
        int rc = take_all(box, wait, err);
        if (rc != 0)
            return rc < 0 ? -1 : 0;
        struct pollfd ready[] = { { .fd = box->link->fd, .events = POLLIN },
                                  { .fd = cancelled ? -1 : box->cancel_fd, .events = POLLIN } };
        int n = poll(ready, array_len(ready), poll_ms(wait->until));
        if (n < 0 && errno != EINTR)
            return err_sys(err, "wait for the engine");
        bool newly = n > 0 && ready[1].revents != 0;
        cancelled = cancelled || newly;
        if ((newly || (n == 0 && clock_now_ns() >= wait->until)) &&
            give_up(box, wait, cancelled, err) < 0)
            return -1;
        int filled = n > 0 && ready[0].revents ? embed_fill(box->link, err) : 1;
        if (filled < 0)
            return -1;
        if (filled == 0)
            return err_set(err, ERR_HOST, "the engine ended before it answered");
    }
}

/* Others have all that there is: how long until it is asked for again. False: no more. */
static bool pause_for(const struct agent_box *box, int64_t until, int round)
{
    struct pollfd cancel = { .fd = box->cancel_fd, .events = POLLIN };
    const int ms = PAUSE_MS << (round < 4 ? round : 4);
    return clock_now_ns() < until && poll(&cancel, 1, ms) == 0;
}

/* Send a frame under a new id and wait for its end; again where the engine has no room now. */
static json_t *talk(struct agent_box *box, json_t *made, struct waiting *wait, double seconds,
                    struct err *err)
{
    own_json frame = made;
    const int64_t patience = clock_now_ns() + ASK_S * CLOCK_S;
    if (!frame) {
        err_input(err, "code", NULL, "UTF-8 text", "a text for the engine is no UTF-8");
        return NULL;
    }
    for (int round = 0;; round++) {
        snprintf(wait->id, sizeof wait->id, "a%lld", (long long)++box->counter);
        json_object_set_new(frame, "id", json_string(wait->id));
        wait->until = clock_now_ns() + (int64_t)(seconds * 1e9);
        forget_artifacts(box);
        if (embed_send(box->link, frame, err) == 0 && wait_for(box, wait, err) == 0)
            return wait->out;
        json_decref(wait->out);
        wait->out = NULL;
        if (err->kind != ERR_BUSY || !pause_for(box, patience, round))
            return NULL;
        *err = ERR_INIT;
    }
}

static json_t *ask(struct agent_box *box, json_t *frame, struct err *err)
{
    struct waiting wait = { .is_run = false };
    return talk(box, frame, &wait, ASK_S, err);
}

/* --- requests --- */

static json_t *files_of(const struct agent_box *box, struct err *err)
{
    json_t *files = json_array();
    for (size_t i = 0; i < box->file_count; i++) {
        struct str content = box->files[i].content;
        json_t *row = json_pack("{s:s, s:b}", "path", box->files[i].path, "readonly", 1);
        json_t *text = json_stringn(content.at ? content.at : "", content.len);
        if (!row) {
            json_decref(text);
            json_decref(files);
            err_input(err, "files.path", NULL, "UTF-8 text", "a path is no UTF-8 text");
            return NULL;
        }
        json_object_set_new(row, text ? "text" : "base64", text ? text : base64_json(content));
        json_array_append_new(files, row);
    }
    return files;
}

/* What every box of the task is made of: its profile and limits, its files. */
static json_t *request_of(const struct agent_box *box, struct err *err)
{
    json_t *request = box->limits ? json_deep_copy(box->limits) : json_object();
    json_t *files = files_of(box, err);
    if (!files) {
        json_decref(request);
        return NULL;
    }
    if (!json_object_get(request, "profile"))
        json_object_set_new(request, "profile", json_string("analysis"));
    json_object_set_new(request, "files", files);
    return request;
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

static json_t *run(struct agent_box *box, json_t *request, double timeout_s,
                   struct waiting *wait, struct err *err)
{
    if (timeout_s > 0)
        set_limit(request, "timeout_s", json_real(timeout_s));
    if (box->artifact_bytes > 0)
        set_limit(request, "artifact_bytes", json_integer(box->artifact_bytes));
    json_t *frame = json_pack("{s:s, s:o, s:b, s:b}", "op", "run", "request", request, "content", 1,
                              "events", wait->on_output != NULL);
    wait->is_run = true;
    return talk(box, frame, wait, (timeout_s > 0 ? timeout_s : 3600) + AROUND_CELL_S, err);
}

/* --- what is offered --- */

int agent_box_open(struct agent_box *box, struct err *err)
{
    json_t *request = request_of(box, err);
    int cancel_fd = box->cancel_fd;
    if (!request)
        return -1;
    box->cancel_fd = -1; /* a session whose id nobody has heard would be left behind */
    own_json answer = ask(box,
                          json_pack("{s:s, s:s, s:o}", "op", "session", "do", "new", "request",
                                    request),
                          err);
    box->cancel_fd = cancel_fd;
    const json_t *info = json_object_get(answer, "session");
    const json_t *limits = json_object_get(info, "limits");
    const char *id = json_string_value(json_object_get(info, "session"));
    if (!answer)
        return -1;
    if (!id || strlen(id) >= sizeof box->session)
        return err_set(err, ERR_BUG, "the engine says nothing of the session");
    snprintf(box->session, sizeof box->session, "%s", id);
    box->timeout_s = json_number_value(json_object_get(limits, "timeout_s"));
    box->memory_bytes = json_integer_value(json_object_get(limits, "memory_bytes"));
    return 0;
}

json_t *agent_box_cell(struct agent_box *box, const char *code, double timeout_s,
                       void (*on_output)(void *user, const char *stream, struct str text),
                       void *user, struct err *err)
{
    struct waiting wait = { .on_output = on_output, .user = user };
    /* A cell that fails has not happened: else the final program, which has only the cells that
     * succeeded, would not be what made the state. */
    json_t *request = json_pack("{s:s, s:s, s:b, s:s}", "session", box->session, "code", code,
                                "names", 1, "on_error", "rollback");
    if (!request) {
        err_input(err, "code", NULL, "UTF-8 text", "the code is no UTF-8 text");
        return NULL;
    }
    return run(box, request, timeout_s, &wait, err);
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
        err_set(err, ERR_BUG, "the engine says nothing of the code");
        return NULL;
    }
    return json_pack("{s:O}", "problems", problems);
}

json_t *agent_box_names(struct agent_box *box, struct err *err)
{
    own_json answer = ask(box,
                          json_pack("{s:s, s:s, s:s, s:b}", "op", "session", "do", "info",
                                    "session", box->session, "names", 1),
                          err);
    return answer ? json_incref(json_object_get(answer, "session")) : NULL;
}

json_t *agent_box_fresh(struct agent_box *box, const char *code, double timeout_s, struct err *err)
{
    struct waiting wait = { .on_output = NULL };
    json_t *request = request_of(box, err);
    json_t *text = json_string(code);
    if (!request || !text) {
        json_decref(request);
        json_decref(text);
        if (err->kind == ERR_NONE)
            err_input(err, "code", NULL, "UTF-8 text", "the code is no UTF-8 text");
        return NULL;
    }
    json_object_set_new(request, "code", text);
    return run(box, request, timeout_s, &wait, err);
}

void agent_box_close(struct agent_box *box)
{
    struct err unheard = ERR_INIT; /* it may have ended by itself */
    int cancel_fd = box->cancel_fd;
    forget_artifacts(box);
    if (!box->session[0])
        return;
    box->cancel_fd = -1; /* what was cancelled is ended all the same */
    json_decref(ask(box,
                    json_pack("{s:s, s:s, s:s}", "op", "session", "do", "end", "session",
                              box->session),
                    &unheard));
    box->cancel_fd = cancel_fd;
    box->session[0] = 0;
}
