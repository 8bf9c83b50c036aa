/* libcupel: the C API over one connection. Runs in a foreign process, which may have threads. One
 * thread inside cupel_run or cupel_ask leads: it waits on the socket, writes queued frames and
 * hands received ones to their calls; the others sleep until there is work for them. Callbacks run
 * without the lock and without the lead, so that a slow one delays nobody else. */
#include <cupel.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "contract/result.h"
#include "embed/client.h"

#define EXPORT __attribute__((visibility("default")))
#define DECISION_MAX (64u << 10)
#define WAITING_MAX (64u << 20) /* bytes of events that a slow callback has not taken */

struct item {
    struct item *next;
    char *text;
    size_t len;
};

struct call {
    struct embed_call of;
    bool wants_events;
    struct item *items, **items_end;
    size_t waiting;   /* bytes in items */
    uint64_t lost[2]; /* bytes of stdout and stderr dropped because of that */
};

struct cupel {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct embed_client client; /* under the lock */
    int wake;                   /* eventfd: the leader looks at the client again */
    bool leading;
    unsigned flags;
};

static char *error_text(const struct err *err)
{
    own_json refusal = result_refusal(err);
    return json_write(refusal, JSON_COMPACT);
}

/* --- under the lock --- */

static void add_item(struct call *call, char *text)
{
    struct item *item = buf_alloc_zero(1, sizeof *item);
    *item = (struct item){ .text = text, .len = strlen(text) };
    *call->items_end = item;
    call->items_end = &item->next;
    call->waiting += item->len;
}

static void add_event(struct call *call, json_t *made)
{
    own_json event = made;
    char *text = json_write(event, JSON_COMPACT);
    if (text)
        add_item(call, text);
}

static void tell_lost(struct call *call)
{
    static const char *const names[2] = { "stdout", "stderr" };
    for (int i = 0; i < 2; i++) {
        if (call->lost[i] > 0)
            add_event(call, json_pack("{s:s, s:s, s:s, s:I}", "id", call->of.id, "event", "lost",
                                      "stream", names[i], "bytes", (json_int_t)call->lost[i]));
        call->lost[i] = 0;
    }
}

static void on_news(struct embed_call *of, const struct frame_news *news, struct str text)
{
    struct call *call = of->user;
    bool output = news->kind == FRAME_STDOUT || news->kind == FRAME_STDERR;
    if (!call->wants_events)
        return;
    if (output && call->waiting > WAITING_MAX) {
        call->lost[news->kind == FRAME_STDERR] += news->bytes.len;
        return;
    }
    if ((news->kind == FRAME_VALUE || news->kind == FRAME_CLEAR) && call->waiting > WAITING_MAX)
        return; /* the result has all values */
    tell_lost(call);
    add_item(call, buf_strdup(text));
}

static void on_session(void *user, const struct frame_news *news, struct str text)
{
    const struct cupel *engine = user;
    bool output = str_is(json_get_str(news->root, "event"), "output"); /* a result has it, too */
    for (struct embed_call *of = engine->client.calls; of; of = of->next) {
        struct call *call = of->user;
        if (call->wants_events && !(output && call->waiting > WAITING_MAX))
            add_item(call, buf_strdup(text));
    }
}

/* The leader sends the bytes that the kernel has not taken yet. */
static void wake_leader(struct cupel *engine)
{
    const uint64_t one = 1;
    /* The write fails only if the leader wakes up anyway. */
    if ((embed_client_events(&engine->client) & POLLOUT) &&
        write(engine->wake, &one, sizeof one) < 0)
        return;
}

/* Waits once for the socket or for something to send; releases the lock meanwhile. */
static void lead(struct cupel *engine)
{
    uint64_t count;
    struct pollfd ready[] = {
        { .fd = engine->client.link.fd, .events = embed_client_events(&engine->client) },
        { .fd = engine->wake, .events = POLLIN },
    };
    engine->leading = true;
    pthread_mutex_unlock(&engine->lock);
    poll(ready, array_len(ready), -1); /* after EINTR, embed_client_ready finds nothing to do */
    pthread_mutex_lock(&engine->lock);
    if (ready[1].revents && read(engine->wake, &count, sizeof count) < 0)
        ready[1].revents = 0;
    embed_client_ready(&engine->client);
    engine->leading = false;
    pthread_cond_broadcast(&engine->changed);
}

/* --- runs --- */

static void call_back(struct cupel *engine, struct call *call, cupel_on_event *on_event, void *user)
{
    struct item *item = call->items;
    call->items = item->next;
    if (!call->items)
        call->items_end = &call->items;
    call->waiting -= item->len;
    pthread_mutex_unlock(&engine->lock);
    bool stop = on_event && on_event(user, item->text) != 0;
    if (stop && call->of.is_run)
        cupel_cancel(engine, call->of.id);
    free(item->text);
    free(item);
    pthread_mutex_lock(&engine->lock);
}

/* Called under the lock, which is released while there is nothing to do. */
static void wait_for_end(struct cupel *engine, struct call *call, cupel_on_event *on_event,
                         void *user)
{
    for (;;) {
        if (call->of.done)
            tell_lost(call);
        if (call->items)
            call_back(engine, call, on_event, user);
        else if (call->of.done)
            return;
        else if (engine->leading)
            pthread_cond_wait(&engine->changed, &engine->lock);
        else
            lead(engine);
    }
}

/* The frame of a call; `body` is the caller's request. NULL if it is invalid. */
static json_t *frame_of(const struct cupel *engine, const struct call *call, json_t *body)
{
    bool events = call->wants_events;
    if (call->of.is_run) {
        json_t *run = json_pack("{s:s, s:O, s:b, s:b}", "op", "run", "request", body, "events",
                                events, "content", events && (engine->flags & CUPEL_CONTENT));
        if (events && (engine->flags & CUPEL_APPROVE))
            json_object_set_new(run, "approve", json_true());
        return run;
    }
    if (!json_is_object(body) || json_object_get(body, "op") || json_object_get(body, "id"))
        return NULL;
    json_t *frame = json_pack("{s:s}", "op", "session");
    json_object_update(frame, body);
    return frame;
}

static int start(struct cupel *engine, struct call *call, json_t *body, struct err *err)
{
    own_json frame = frame_of(engine, call, body);
    if (!frame)
        return err_input(err, "", NULL, "an object without op and id",
                         "the request cannot be sent");
    return embed_client_begin(&engine->client, &call->of, frame, err);
}

/* The answer's text, or {"error":...}. */
static char *answer_of(const struct embed_call *of)
{
    if (of->err.kind == ERR_NONE)
        return json_write(of->answer, JSON_COMPACT);
    if (!of->answer)
        return error_text(&of->err);
    own_json refusal = json_pack("{s:O}", "error", of->answer);
    return json_write(refusal, JSON_COMPACT);
}

static int call_engine(struct cupel *engine, bool is_run, const char *text,
                       cupel_on_event *on_event, void *user, char **out_json)
{
    struct call call = { .of = { .is_run = is_run, .on_news = on_news, .user = &call },
                         .wants_events = on_event != NULL, .items_end = &call.items };
    if (!out_json)
        return -1;
    own_json body = NULL;
    if (!engine || !text)
        err_input(&call.of.err, "", NULL, "a handle and a request", "an argument of %s is NULL",
                  is_run ? "cupel_run" : "cupel_ask");
    else
        body = json_read(str_of(text), REQUEST_JSON_MAX, &call.of.err);
    if (!body) {
        *out_json = error_text(&call.of.err);
        return -1;
    }
    pthread_mutex_lock(&engine->lock);
    if (start(engine, &call, body, &call.of.err) == 0) {
        wake_leader(engine);
        if (on_event)
            add_event(&call, json_pack("{s:s, s:s}", "id", call.of.id, "event", "sent"));
        wait_for_end(engine, &call, on_event, user);
    }
    pthread_mutex_unlock(&engine->lock);
    *out_json = answer_of(&call.of);
    json_decref(call.of.answer);
    return call.of.err.kind == ERR_NONE ? 0 : -1;
}

EXPORT int cupel_run(struct cupel *engine, const char *request_json, cupel_on_event *on_event,
                     void *user, char **out_json)
{
    return call_engine(engine, /* is_run= */ true, request_json, on_event, user, out_json);
}

EXPORT int cupel_ask(struct cupel *engine, const char *ask_json, cupel_on_event *on_event,
                     void *user, char **out_json)
{
    return call_engine(engine, /* is_run= */ false, ask_json, on_event, user, out_json);
}

EXPORT int cupel_cancel(struct cupel *engine, const char *id)
{
    struct err ignored = ERR_INIT;
    int rc = -1;
    if (!engine)
        return -1;
    pthread_mutex_lock(&engine->lock);
    for (struct embed_call *of = engine->client.calls; of; of = of->next) {
        if (of->is_run && (!id || strcmp(id, of->id) == 0) &&
            embed_client_say(&engine->client, of, json_pack("{s:s}", "op", "cancel"), &ignored) ==
                0)
            rc = 0;
    }
    wake_leader(engine);
    pthread_mutex_unlock(&engine->lock);
    return rc;
}

/* The frame of an answer; NULL if it is no object, or has members of the frame. */
static json_t *answer_frame(const char *answer_json)
{
    struct err ignored = ERR_INIT;
    own_json answer = json_read(str_of(answer_json), REQUEST_JSON_MAX, &ignored);
    if (!json_is_object(answer) || json_object_get(answer, "op") || json_object_get(answer, "id"))
        return NULL;
    json_object_set_new(answer, "op", json_string("tool_result"));
    return json_incref(answer);
}

static struct embed_call *find_run(const struct cupel *engine, const char *id)
{
    struct embed_call *of = engine->client.calls;
    while (of && !(of->is_run && strcmp(id, of->id) == 0))
        of = of->next;
    return of;
}

EXPORT int cupel_answer(struct cupel *engine, const char *id, const char *answer_json)
{
    struct err ignored = ERR_INIT;
    int rc = -1;
    json_t *frame = engine && id && answer_json ? answer_frame(answer_json) : NULL;
    if (!frame)
        return -1;
    pthread_mutex_lock(&engine->lock);
    struct embed_call *of = find_run(engine, id);
    if (of)
        rc = embed_client_say(&engine->client, of, frame, &ignored);
    else
        json_decref(frame);
    wake_leader(engine);
    pthread_mutex_unlock(&engine->lock);
    return rc;
}

/* {"call","allow","reason"?}, and nothing else. */
static bool is_decision(const json_t *given)
{
    const json_t *reason = json_object_get(given, "reason");
    json_int_t call = json_integer_value(json_object_get(given, "call"));
    bool allow = json_is_true(json_object_get(given, "allow"));
    return call > 0 && call <= INT32_MAX && json_is_boolean(json_object_get(given, "allow")) &&
           (!reason || (json_is_string(reason) && !allow)) &&
           json_object_size(given) == (reason ? 3 : 2);
}

EXPORT int cupel_approve(struct cupel *engine, const char *id, const char *decision_json)
{
    struct err ignored = ERR_INIT;
    int rc = -1;
    own_json given = decision_json ? json_read(str_of(decision_json), DECISION_MAX, &ignored)
                                   : NULL;
    if (!engine || !id || !is_decision(given))
        return -1;
    pthread_mutex_lock(&engine->lock);
    const struct embed_call *of = find_run(engine, id);
    if (of)
        rc = embed_client_approve(&engine->client, of,
                                  json_integer_value(json_object_get(given, "call")),
                                  json_is_true(json_object_get(given, "allow")),
                                  json_string_value(json_object_get(given, "reason")), &ignored);
    wake_leader(engine);
    pthread_mutex_unlock(&engine->lock);
    return rc;
}

/* --- handles --- */

static int find_engine(const struct cupel_options *options, struct embed_link *out, struct err *err)
{
    const char *named = options->socket ? options->socket : embed_named();
    named = named && *named ? named : NULL;
    if (!(options->flags & CUPEL_SPAWN)) {
        if (embed_connect(named, out, err) == 0)
            return 0;
        if (named || (options->flags & CUPEL_NO_SPAWN))
            return -1;
    }
    return embed_spawn(options->program, /* options= */ NULL, /* errors= */ -1, out, err);
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
        embed_client_init(&engine->client, &link);
        engine->client.on_session = on_session;
        engine->client.user = engine;
        engine->wake = take_fd(&wake);
        engine->flags = how.flags;
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
    embed_client_close(&engine->client);
    own_close_fd(&engine->wake);
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
