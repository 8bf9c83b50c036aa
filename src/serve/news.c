/* The news of a run as events. Runs in the serve process. */
#include "serve/news.h"

#include <string.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/own.h"

static const char *const stream_names[2] = { "stdout", "stderr" };

static void say_lost(struct serve_news *news, int which)
{
    struct serve_held *held = &news->held[which];
    if (held->lost == 0)
        return;
    news->say(
        news->user, "lost",
        json_pack("{s:s, s:I}", "stream", stream_names[which], "bytes", (json_int_t)held->lost));
    held->lost = 0;
}

static void say_bytes(struct serve_news *news, int which, struct str bytes)
{
    struct serve_held *held = &news->held[which];
    if (bytes.len == 0)
        return;
    if (!news->has_room(news->user)) {
        held->lost += bytes.len; /* reported when there is room again, or at the end */
        return;
    }
    say_lost(news, which);
    json_t *members = json_object(), *text = json_stringn(bytes.at, bytes.len);
    json_object_set_new(members, text ? "text" : "base64", text ? text : base64_json(bytes));
    news->say(news->user, stream_names[which], members);
}

/* Values as they are shown. None if there is no room: the result has them. */
static void say_value(struct serve_news *news, const struct engine_event *value)
{
    if (!news->has_room(news->user))
        return;
    json_t *members = json_object();
    if (value->data) {
        json_object_set_new(members, "index", json_integer((json_int_t)value->index));
        json_object_set(members, "data", value->data);
    }
    if (value->about)
        json_object_update(members, value->about);
    if (value->updates)
        json_object_set_new(members, "update", json_true());
    news->say(news->user, value->data ? "result" : "clear", members);
}

static void on_bytes(struct serve_news *news, int which, struct str bytes)
{
    struct serve_held *held = &news->held[which];
    own_buf joined = BUF_INIT(held->len + bytes.len);
    if (held->len > 0) {
        buf_add(&joined, held->bytes, held->len);
        buf_add_str(&joined, bytes);
        bytes = buf_str(&joined);
    }
    size_t rest = str_unfinished_utf8(bytes);
    bytes.len -= rest;
    say_bytes(news, which, bytes);
    memcpy(held->bytes, bytes.at + bytes.len, rest);
    held->len = rest;
}

void serve_news_event(struct serve_news *news, const struct engine_event *event)
{
    switch (event->kind) {
    case ENGINE_START: news->say(news->user, "start", NULL); break;
    case ENGINE_RESULT:
    case ENGINE_CLEAR: say_value(news, event); break;
    case ENGINE_INPUT:
        news->say(news->user, "input", json_pack("{s:b}", "echo", event->echo));
        break;
    case ENGINE_CALL:
    case ENGINE_CALL_OVER:
    case ENGINE_ROOM: /* of commands, which no client of ours can ask for */
    case ENGINE_THAWED: break; /* of src/tool/call alone */
    case ENGINE_APPROVAL: news->say(news->user, "approval", json_incref(event->data)); break;
    case ENGINE_TOOL_CALL: news->say(news->user, "tool_call", json_incref(event->data)); break;
    case ENGINE_TOOL_RESULT:
        if (news->has_room(news->user))
            news->say(news->user, "tool_result", json_incref(event->data));
        break;
    case ENGINE_STDOUT:
    case ENGINE_STDERR: on_bytes(news, event->kind == ENGINE_STDERR, event->bytes); break;
    }
}

void serve_news_end(struct serve_news *news)
{
    for (int which = 0; which < 2; which++) {
        struct serve_held *held = &news->held[which];
        say_bytes(news, which, (struct str){ held->bytes, held->len });
        held->len = 0;
        say_lost(news, which);
    }
}
