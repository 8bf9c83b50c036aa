/* libcupel: the C API over one connection. It lives in somebody else's process,
 * which may have threads. Of the threads inside of cupel_run and cupel_ask one at a time
 * leads: it waits on the socket, writes what is queued and hands frames to the calls they
 * belong to; the others sleep until there is something for them. Callbacks run
 * without the lock and without the lead, so that a slow one holds up nobody else. */
#include <cupel.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "contract/result.h"
#include "embed/link.h"

#define EXPORT __attribute__((visibility("default")))
#define OUT_MAX ((size_t)1 << 30)   /* queued requests that the engine has not taken */
#define WAITING_MAX (64u << 20)     /* events that a slow callback has not taken */

struct item {
    struct item *next;
    char *text;
    size_t len;
};

/* One cupel_run or cupel_ask. */
struct call {
    struct call *next;
    char id[24];
    bool wants_events;
    bool is_run; /* can be cancelled */
    struct item *items, **items_end;
    size_t waiting;      /* bytes in items */
    uint64_t lost[2];    /* bytes of stdout and stderr dropped because of that */
    bool done;
    int rc;
    char *answer;
};

struct cupel {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct embed_link link; /* the leader's, but for its fd */
    int wake;               /* eventfd: the leader looks at `out` again */
    bool leading;
    struct buf out;
    size_t sent;
    struct call *calls;
    unsigned long next_id;
    unsigned flags;
    bool broken;
    struct err why;
};

static char *error_text(const struct err *err)
{
    own_json refusal = result_refusal(err);
    return json_write(refusal, JSON_COMPACT);
}

/* --- under the lock --- */

static void add_item(struct call *call, char *text, size_t len)
{
    struct item *item = buf_alloc_zero(1, sizeof *item);
    *item = (struct item){ .text = text, .len = len };
    *call->items_end = item;
    call->items_end = &item->next;
    call->waiting += len;
}

static void add_event(struct call *call, const json_t *event)
{
    char *text = json_write(event, JSON_COMPACT);
    if (text)
        add_item(call, text, strlen(text));
}

static void tell_lost(struct call *call)
{
    static const char *const names[2] = { "stdout", "stderr" };
    for (int i = 0; i < 2; i++) {
        if (call->lost[i] == 0)
            continue;
        own_json event = json_pack("{s:s, s:s, s:s, s:I}", "id", call->id, "event", "lost",
                                   "stream", names[i], "bytes", (json_int_t)call->lost[i]);
        call->lost[i] = 0;
        add_event(call, event);
    }
}

static void end_call(struct call *call, int rc, char *answer)
{
    tell_lost(call);
    call->rc = rc;
    call->answer = answer;
    call->done = true;
}

static void end_all(struct cupel *engine, const struct err *err)
{
    engine->broken = true;
    engine->why = *err;
    for (struct call *call = engine->calls; call; call = call->next)
        if (!call->done)
            end_call(call, -1, error_text(err));
}

static struct call *find(struct cupel *engine, struct str id)
{
    for (struct call *call = engine->calls; call; call = call->next)
        if (!call->done && str_is(id, call->id))
            return call;
    return NULL;
}

/* Queue a frame for whoever leads. */
static int queue(struct cupel *engine, const json_t *frame, struct err *err)
{
    const uint64_t one = 1;
    if (frame_add(&engine->out, frame, FRAME_ASK_MAX) < 0) {
        err_set(err, ERR_LIMIT, "the request is longer than the %zu bytes of a frame, or too many "
                "wait", FRAME_ASK_MAX);
        return -1;
    }
    if (write(engine->wake, &one, sizeof one) < 0 && errno != EAGAIN)
        return err_sys(err, "wake the thread that leads");
    return 0;
}

static void send_some(struct cupel *engine)
{
    while (engine->sent < engine->out.len) {
        ssize_t n = send(engine->link.fd, engine->out.at + engine->sent,
                         engine->out.len - engine->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            break; /* full; or gone, which reading tells as well */
        engine->sent += (size_t)n;
    }
    if (engine->sent == engine->out.len) {
        buf_done(&engine->out);
        engine->sent = 0;
    }
}

static void hand_over(struct cupel *engine, const struct frame_news *news, struct str text)
{
    struct call *call = find(engine, news->id);
    for (struct call *one = engine->calls; news->kind == FRAME_SESSION_NEWS && one; one = one->next)
        if (one->wants_events && !one->done)
            add_item(one, buf_strdup(text), text.len);
    if (!call)
        return; /* of the connection: an answer to a cancel that came too late */
    if (news->kind == FRAME_RESULT) {
        end_call(call, 0, json_write(news->body, JSON_COMPACT));
    } else if (news->kind == FRAME_ANSWER) {
        own_json answer = json_copy(news->body);
        json_object_del(answer, "id");
        end_call(call, 0, json_write(answer, JSON_COMPACT));
    } else if (news->kind == FRAME_ERROR) {
        own_json refusal = json_pack("{s:O}", "error", news->body);
        end_call(call, -1, json_write(refusal, JSON_COMPACT));
    } else if (call->wants_events) {
        bool output = news->kind == FRAME_STDOUT || news->kind == FRAME_STDERR;
        if (output && call->waiting > WAITING_MAX) {
            call->lost[news->kind == FRAME_STDERR] += news->bytes.len;
            return;
        }
        tell_lost(call);
        add_item(call, buf_strdup(text), text.len);
    }
}

/* --- the leader, without the lock --- */

static int take_frames(struct cupel *engine, struct err *err)
{
    struct str text;
    int got;
    while ((got = embed_next(&engine->link, &text, err)) > 0) {
        own_frame_news news = FRAME_NEWS_INIT;
        if (frame_news_read(text, &news, err) < 0)
            return -1;
        pthread_mutex_lock(&engine->lock);
        hand_over(engine, &news, text);
        pthread_mutex_unlock(&engine->lock);
    }
    return got;
}

/* Wait once for the socket or for something to send. */
static int lead(struct cupel *engine, struct err *err)
{
    pthread_mutex_lock(&engine->lock);
    send_some(engine);
    bool more = engine->sent < engine->out.len;
    pthread_mutex_unlock(&engine->lock);
    struct pollfd ready[] = {
        { .fd = engine->link.fd, .events = (short)(POLLIN | (more ? POLLOUT : 0)) },
        { .fd = engine->wake, .events = POLLIN },
    };
    if (poll(ready, array_len(ready), -1) < 0)
        return errno == EINTR ? 0 : err_sys(err, "wait for the engine");
    if (ready[1].revents) {
        uint64_t count;
        if (read(engine->wake, &count, sizeof count) < 0 && errno != EAGAIN)
            return err_sys(err, "wait for the engine");
    }
    if (!(ready[0].revents & ~POLLOUT))
        return 0;
    int filled = embed_fill(&engine->link, err);
    if (filled == 0) {
        err_set(err, ERR_HOST, "the engine ended before it answered");
        err_hint(err, "open another handle; the code may have run");
        return -1;
    }
    return filled < 0 ? -1 : take_frames(engine, err);
}

/* --- runs --- */

static void call_back(struct cupel *engine, struct call *call, cupel_on_event *on_event,
                      void *user)
{
    struct item *item = call->items;
    call->items = item->next;
    if (!call->items)
        call->items_end = &call->items;
    call->waiting -= item->len;
    pthread_mutex_unlock(&engine->lock);
    bool stop = on_event && on_event(user, item->text) != 0;
    if (stop && call->is_run)
        cupel_cancel(engine, call->id);
    free(item->text);
    free(item);
    pthread_mutex_lock(&engine->lock);
}

/* Under the lock, which is let go of while there is nothing to do. */
static void wait_for_end(struct cupel *engine, struct call *call, cupel_on_event *on_event,
                         void *user)
{
    while (call->items || !call->done) {
        if (call->items) {
            call_back(engine, call, on_event, user);
        } else if (engine->leading) {
            pthread_cond_wait(&engine->changed, &engine->lock);
        } else {
            struct err err = ERR_INIT;
            engine->leading = true;
            pthread_mutex_unlock(&engine->lock);
            int rc = lead(engine, &err);
            pthread_mutex_lock(&engine->lock);
            engine->leading = false;
            if (rc < 0)
                end_all(engine, &err);
            pthread_cond_broadcast(&engine->changed);
        }
    }
}

/* The whole frame of a call; `body` is what the caller asks. NULL where it is none. */
static json_t *frame_of(const struct cupel *engine, const struct call *call, json_t *body)
{
    bool events = call->wants_events;
    if (call->is_run)
        return json_pack("{s:s, s:s, s:O, s:b, s:b}", "op", "run", "id", call->id, "request", body,
                         "events", events, "content", events && (engine->flags & CUPEL_CONTENT));
    if (!json_is_object(body) || json_object_get(body, "op") || json_object_get(body, "id"))
        return NULL;
    json_t *frame = json_pack("{s:s, s:s}", "op", "session", "id", call->id);
    json_object_update(frame, body);
    return frame;
}

static int start(struct cupel *engine, struct call *call, json_t *body, struct err *err)
{
    own_json frame = frame_of(engine, call, body);
    if (engine->broken) {
        *err = engine->why;
        return -1;
    }
    if (!frame)
        return err_input(err, "", NULL, "an object without op and id",
                         "the request cannot be sent");
    return queue(engine, frame, err);
}

static void forget(struct cupel *engine, const struct call *call)
{
    struct call **at = &engine->calls;
    while (*at != call)
        at = &(*at)->next;
    *at = call->next;
}

/* From a caller's JSON to the answer. `name` is the function that was called. */
static int call_engine(struct cupel *engine, struct call *call, const char *name,
                       const char *text, cupel_on_event *on_event, void *user)
{
    struct err err = ERR_INIT;
    own_json body = NULL;
    call->wants_events = on_event != NULL;
    call->items_end = &call->items;
    if (!engine || !text)
        err_input(&err, "", NULL, "a handle and a request", "an argument of %s is NULL", name);
    else
        body = json_read(str_of(text), REQUEST_JSON_MAX, &err);
    if (!body) {
        call->answer = error_text(&err);
        return -1;
    }
    pthread_mutex_lock(&engine->lock);
    snprintf(call->id, sizeof call->id, "%lu", ++engine->next_id);
    if (start(engine, call, body, &err) == 0) {
        call->next = engine->calls;
        engine->calls = call;
        own_json sent = json_pack("{s:s, s:s}", "id", call->id, "event", "sent");
        if (on_event)
            add_event(call, sent);
        wait_for_end(engine, call, on_event, user);
        forget(engine, call);
    } else {
        end_call(call, -1, error_text(&err));
    }
    pthread_mutex_unlock(&engine->lock);
    return call->rc;
}

EXPORT int cupel_run(struct cupel *engine, const char *request_json, cupel_on_event *on_event,
                     void *user, char **out_json)
{
    struct call call = { .is_run = true };
    if (!out_json)
        return -1;
    int rc = call_engine(engine, &call, "cupel_run", request_json, on_event, user);
    *out_json = call.answer;
    return rc;
}

EXPORT int cupel_ask(struct cupel *engine, const char *ask_json, cupel_on_event *on_event,
                     void *user, char **out_json)
{
    struct call call = { .is_run = false };
    if (!out_json)
        return -1;
    int rc = call_engine(engine, &call, "cupel_ask", ask_json, on_event, user);
    *out_json = call.answer;
    return rc;
}

EXPORT int cupel_cancel(struct cupel *engine, const char *id)
{
    struct err ignored = ERR_INIT;
    int rc = -1;
    if (!engine)
        return -1;
    pthread_mutex_lock(&engine->lock);
    for (struct call *call = engine->calls; call && !engine->broken; call = call->next) {
        if (call->done || !call->is_run || (id && strcmp(id, call->id) != 0))
            continue;
        own_json frame = json_pack("{s:s, s:s}", "op", "cancel", "id", call->id);
        if (queue(engine, frame, &ignored) == 0)
            rc = 0;
    }
    pthread_mutex_unlock(&engine->lock);
    return rc;
}

/* --- handles --- */

static int find_engine(const struct cupel_options *options, struct embed_link *out,
                       struct err *err)
{
    const char *named = options->socket ? options->socket : getenv("CUPEL_SOCKET");
    bool is_named = named && *named;
    if (!(options->flags & CUPEL_SPAWN)) {
        if (embed_connect(is_named ? named : NULL, out, err) == 0)
            return 0;
        if (is_named || (options->flags & CUPEL_NO_SPAWN))
            return -1;
    }
    return embed_spawn(options->program, out, err);
}

EXPORT struct cupel *cupel_open(const struct cupel_options *options, char **out_error)
{
    struct cupel_options how = { .size = sizeof how };
    struct err err = ERR_INIT;
    struct embed_link link = EMBED_LINK_INIT;
    own_fd wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    /* A caller built against another version has another size. */
    if (options && options->size >= sizeof(size_t))
        memcpy(&how, options, options->size < sizeof how ? options->size : sizeof how);
    if (out_error)
        *out_error = NULL;
    if (wake < 0)
        err_sys(&err, "make an event descriptor");
    else if (find_engine(&how, &link, &err) == 0) {
        struct cupel *engine = buf_alloc_zero(1, sizeof *engine);
        pthread_mutex_init(&engine->lock, NULL);
        pthread_cond_init(&engine->changed, NULL);
        engine->link = link;
        engine->wake = take_fd(&wake);
        engine->flags = how.flags;
        engine->out = BUF_INIT(OUT_MAX);
        return engine;
    }
    if (out_error)
        *out_error = error_text(&err);
    return NULL;
}

EXPORT void cupel_close(struct cupel *engine)
{
    if (!engine)
        return;
    embed_close(&engine->link);
    own_close_fd(&engine->wake);
    buf_done(&engine->out);
    pthread_cond_destroy(&engine->changed);
    pthread_mutex_destroy(&engine->lock);
    free(engine);
}

EXPORT void cupel_free(char *text)
{
    free(text);
}

EXPORT const char *cupel_version(void)
{
    return CUPEL_VERSION;
}
