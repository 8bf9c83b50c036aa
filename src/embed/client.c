/* The calls of one connection. Runs in any client, also inside a foreign threaded process: no
 * global state, nothing printed. The engine is trusted to keep the protocol; untrusted code wrote
 * the results, so their readers check every type. */
#include "embed/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "contract/result.h"

#define OUT_MAX ((size_t)1 << 30) /* queued frames that the engine has not taken */
#define ARTIFACTS_MAX 4096        /* of one call */
#define GRACE_MS 2000             /* after an interrupt, and after a cancel */

void embed_artifacts_free(struct embed_artifact *artifacts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(artifacts[i].path);
        buf_done(&artifacts[i].content);
    }
    free(artifacts);
}

static void unlink_call(struct embed_client *client, const struct embed_call *call)
{
    struct embed_call **at = &client->calls;
    while (*at && *at != call)
        at = &(*at)->next;
    if (*at)
        *at = call->next;
}

void embed_call_done(struct embed_client *client, struct embed_call *call)
{
    unlink_call(client, call);
    json_decref(call->answer);
    embed_artifacts_free(call->artifacts, call->artifact_count);
    call->answer = NULL;
    call->artifacts = NULL;
    call->artifact_count = 0;
    call->asked = 0;
    call->done = call->stopped = false;
    call->err = ERR_INIT;
}

void embed_client_init(struct embed_client *client, const struct embed_link *link)
{
    client->link = *link;
    client->out = BUF_INIT(OUT_MAX);
    client->sent = 0;
    client->broken = ERR_INIT;
}

/* --- ends --- */

static void end_call(struct embed_client *client, struct embed_call *call, const struct err *err,
                     json_t *answer)
{
    unlink_call(client, call);
    call->err = err ? *err : ERR_INIT;
    call->answer = json_incref(answer);
    call->done = true;
    if (call->on_end)
        call->on_end(call);
}

static void end_all(struct embed_client *client, const struct err *err)
{
    while (client->calls)
        end_call(client, client->calls, err, NULL);
}

void embed_client_close(struct embed_client *client)
{
    embed_close(&client->link);
    buf_done(&client->out);
    client->calls = NULL;
}

/* --- sending --- */

static void send_some(struct embed_client *client)
{
    while (client->sent < client->out.len) {
        ssize_t n = send(client->link.fd, client->out.at + client->sent,
                         client->out.len - client->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return; /* full; or gone, which reading tells as well */
        client->sent += (size_t)n;
    }
    buf_done(&client->out);
    client->sent = 0;
}

int embed_client_say(struct embed_client *client, const struct embed_call *call, json_t *frame,
                     struct err *err)
{
    own_json whole = frame;
    json_object_set_new(whole, "id", json_string(call->id));
    if (frame_add(&client->out, whole, FRAME_ASK_MAX) < 0) {
        err_set(err, ERR_LIMIT, "the request is longer than the %zu bytes of a frame%s",
                FRAME_ASK_MAX, client->out.len ? ", or too many wait" : "");
        return -1;
    }
    send_some(client);
    return 0;
}

int embed_client_approve(struct embed_client *client, const struct embed_call *call, int64_t number,
                         bool allow, const char *reason, struct err *err)
{
    json_t *frame = json_pack("{s:s, s:I, s:b}", "op", "approve", "call", (json_int_t)number,
                              "allow", allow);
    struct str why = str_of(reason);
    why.len = str_cut_utf8(why, FRAME_REASON_MAX);
    if (!allow && why.len > 0)
        json_object_set_new(frame, "reason", json_text(why));
    return embed_client_say(client, call, frame, err);
}

int embed_client_begin(struct embed_client *client, struct embed_call *call, json_t *frame,
                       struct err *err)
{
    if (client->broken.kind != ERR_NONE) {
        *err = client->broken;
        return -1;
    }
    snprintf(call->id, sizeof call->id, "%lu", ++client->last_id);
    if (embed_client_say(client, call, json_incref(frame), err) < 0)
        return -1;
    call->next = client->calls;
    client->calls = call;
    return 0;
}

static void press(struct embed_client *client, struct embed_call *call)
{
    static const char *const ops[] = { "interrupt", "cancel" };
    struct err err = ERR_INIT;
    if (call->is_run && call->asked < (int)array_len(ops) &&
        embed_client_say(client, call, json_pack("{s:s}", "op", ops[call->asked++]), &err) == 0) {
        call->until_ns = clock_now_ns() + GRACE_MS * CLOCK_MS;
        return;
    }
    err_set(&err, call->stopped ? ERR_CANCELLED : ERR_HOST, "%s",
            call->stopped ? "cancelled" : "the engine does not answer in time");
    end_call(client, call, &err, NULL);
}

void embed_client_stop(struct embed_client *client, struct embed_call *call)
{
    call->stopped = true;
    if (!call->done)
        press(client, call);
}

/* --- news --- */

/* A part of an artifact: the first begins one, the others continue it. */
static int add_artifact(struct embed_call *call, const struct frame_news *news, struct err *err)
{
    size_t count = call->artifact_count;
    if (news->offset == 0 && count < ARTIFACTS_MAX) {
        struct embed_artifact *more = buf_alloc_zero(count + 1, sizeof *more);
        if (count)
            memcpy(more, call->artifacts, count * sizeof *more);
        free(call->artifacts);
        call->artifacts = more;
        more[count] = (struct embed_artifact){ .path = buf_strdup(news->path),
                                               .path_len = news->path.len,
                                               .content = BUF_INIT(news->size_bytes) };
        call->artifact_count = ++count;
    }
    struct embed_artifact *last = count ? &call->artifacts[count - 1] : NULL;
    if (!last || last->content.len != news->offset ||
        !str_eq(news->path, (struct str){ last->path, last->path_len }) ||
        buf_add_str(&last->content, news->bytes) < 0)
        return err_set(err, ERR_BUG, "the engine's artifacts do not fit together");
    return 0;
}

static void take_of_call(struct embed_client *client, struct embed_call *call,
                         const struct frame_news *news, struct str text)
{
    struct err err = ERR_INIT;
    bool is_end = news->kind == FRAME_RESULT || news->kind == FRAME_ANSWER;
    if (news->kind == FRAME_ERROR) {
        result_refusal_read(news->body, &err);
        end_call(client, call, &err, news->body);
    } else if (is_end && (news->kind == FRAME_RESULT) != call->is_run) {
        err_set(&err, ERR_BUG, "the engine answers something else");
        end_call(client, call, &err, NULL);
    } else if (is_end) {
        if (news->kind == FRAME_ANSWER)
            json_object_del(news->body, "id");
        end_call(client, call, NULL, news->body);
    } else if (news->kind == FRAME_ARTIFACT && call->collects) {
        if (add_artifact(call, news, &err) < 0)
            end_call(client, call, &err, NULL);
    } else if (call->on_news) {
        call->on_news(call, news, text);
    }
}

static void take(struct embed_client *client, const struct frame_news *news, struct str text)
{
    struct err err = ERR_INIT;
    if (news->kind == FRAME_SESSION_NEWS) {
        if (client->on_session)
            client->on_session(client->user, news, text);
        return;
    }
    if (news->kind == FRAME_ERROR && news->id.len == 0) {
        /* Of no call. ERR_ABSENT answers a wish or decision that came too late. */
        result_refusal_read(news->body, &err);
        if (err.kind != ERR_ABSENT)
            end_all(client, &err);
        return;
    }
    for (struct embed_call *call = client->calls; call; call = call->next) {
        if (str_is(news->id, call->id)) {
            take_of_call(client, call, news, text);
            return;
        }
    }
}

static int read_some(struct embed_client *client, struct err *err)
{
    struct str text;
    int got = embed_fill(&client->link, err);
    if (got == 0) {
        err_set(err, ERR_HOST, "the engine ended before it answered");
        err_hint(err, "the code may have run; 'cupel serve' says why it ended");
    }
    if (got <= 0)
        return -1;
    while ((got = embed_next(&client->link, &text, err)) > 0) {
        own_frame_news news = FRAME_NEWS_INIT;
        if (frame_news_read(text, &news, err) < 0)
            return -1;
        take(client, &news, text);
    }
    return got;
}

/* --- waiting --- */

short embed_client_events(const struct embed_client *client)
{
    return (short)(POLLIN | (client->out.len > client->sent ? POLLOUT : 0));
}

int64_t embed_client_due_ns(const struct embed_client *client)
{
    int64_t due = 0;
    for (const struct embed_call *call = client->calls; call; call = call->next)
        if (call->until_ns > 0 && (due == 0 || call->until_ns < due))
            due = call->until_ns;
    return due;
}

bool embed_client_ready(struct embed_client *client)
{
    if (client->broken.kind == ERR_NONE) {
        send_some(client);
        if (read_some(client, &client->broken) < 0)
            end_all(client, &client->broken);
    }
    const int64_t now = clock_now_ns();
    for (struct embed_call *call = client->calls; call;) {
        bool overdue = call->until_ns > 0 && call->until_ns <= now;
        if (overdue)
            press(client, call); /* it may end, and its on_end may end others */
        call = overdue ? client->calls : call->next;
    }
    return client->broken.kind == ERR_NONE;
}

void embed_client_poll(struct embed_client *client, struct pollfd *more, size_t count)
{
    struct pollfd ready[1 + EMBED_POLL_MAX] = {
        { .fd = client->link.fd, .events = embed_client_events(client) }
    };
    if (count)
        memcpy(ready + 1, more, count * sizeof *more);
    int64_t due_ns = embed_client_due_ns(client);
    int n = poll(ready, 1 + count, due_ns ? clock_poll_ms(due_ns) : -1);
    for (size_t i = 0; i < count; i++)
        more[i].revents = n > 0 ? ready[1 + i].revents : 0;
    if (n < 0 && errno != EINTR) {
        err_sys(&client->broken, "wait for the engine");
        end_all(client, &client->broken);
    }
    embed_client_ready(client);
}

json_t *embed_tools(struct embed_client *client, const json_t *names, int64_t wait_ms,
                    struct err *err)
{
    struct embed_call call = { .until_ns = clock_now_ns() + wait_ms * CLOCK_MS };
    own_json frame = json_pack("{s:s}", "op", "tools");
    if (names)
        json_object_set(frame, "names", (json_t *)(uintptr_t)names);
    if (embed_client_begin(client, &call, frame, err) < 0)
        return NULL;
    while (!call.done)
        embed_client_poll(client, NULL, 0);
    *err = call.err;
    json_t *answer = json_incref(call.answer);
    embed_call_done(client, &call);
    if (err->kind == ERR_NONE)
        return answer;
    json_decref(answer);
    return NULL;
}

json_t *embed_file(const char *path, struct str bytes, bool readonly)
{
    json_t *row = json_pack("{s:s}", "path", path);
    if (!row)
        return NULL;
    /* As text, a NUL takes six bytes. */
    bool plain = bytes.len == 0 || !memchr(bytes.at, 0, bytes.len);
    json_t *text = plain ? json_stringn(bytes.at ? bytes.at : "", bytes.len) : NULL;
    json_object_set_new(row, text ? "text" : "base64", text ? text : base64_json(bytes));
    if (readonly)
        json_object_set_new(row, "readonly", json_true());
    return row;
}
