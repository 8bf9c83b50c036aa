/* Reads the engine's frames in a client. Pure. The engine is trusted, but its bytes are checked all
 * the same: the library's client lives in a foreign process. */
#include <stdlib.h>

#include "base/base64.h"
#include "base/json.h"
#include "contract/frame.h"

static const struct {
    const char *event;
    enum frame_kind kind;
} events[] = {
    { "start", FRAME_START }, { "stdout", FRAME_STDOUT },     { "stderr", FRAME_STDERR },
    { "lost", FRAME_LOST },   { "artifact", FRAME_ARTIFACT }, { "result", FRAME_VALUE },
    { "clear", FRAME_CLEAR }, { "tool_call", FRAME_CALL }, { "tool_result", FRAME_CALLED },
    { "approval", FRAME_APPROVAL },
    { "session", FRAME_SESSION_NEWS }, { "input", FRAME_ASKS },
    { "output", FRAME_SESSION_NEWS },
};

static int refuse(const char *field, const json_t *value, const char *bound, struct err *err)
{
    char brief[sizeof err->value] = "";
    if (value)
        json_brief(value, brief, sizeof brief);
    return err_input(err, field, brief, bound, "the engine's frame has a wrong field '%s'", field);
}

static int take_count(const json_t *root, const char *name, uint64_t *out, struct err *err)
{
    const json_t *value = json_object_get(root, name);
    if (value && (!json_is_integer(value) || json_integer_value(value) < 0))
        return refuse(name, value, "a whole number, not negative", err);
    *out = value ? (uint64_t)json_integer_value(value) : 0;
    return 0;
}

/* Exact bytes as base64, else text. */
static int take_bytes(const json_t *root, const char *text, const char *exact, char **owned,
                      struct str *out, struct err *err)
{
    const json_t *plain = json_object_get(root, text), *coded = json_object_get(root, exact);
    if (json_is_string(coded)) {
        size_t len = 0;
        *owned = base64_decode(json_str(coded), &len);
        if (!*owned)
            return refuse(exact, coded, "base64", err);
        *out = (struct str){ *owned, len };
        return 0;
    }
    if (!json_is_string(plain))
        return refuse(text, plain, "a string", err);
    *out = json_str(plain);
    return 0;
}

static int take_event(struct frame_news *out, const char *event, struct err *err)
{
    for (size_t i = 0; i < array_len(events); i++)
        if (strcmp(event, events[i].event) == 0)
            out->kind = events[i].kind;
    if (out->kind == FRAME_STDOUT || out->kind == FRAME_STDERR)
        return take_bytes(out->root, "text", "base64", &out->owned, &out->bytes, err);
    out->echo = json_is_true(json_object_get(out->root, "echo"));
    if (out->kind == FRAME_VALUE) {
        out->data = json_object_get(out->root, "data");
        out->updates = json_is_true(json_object_get(out->root, "update"));
        if (!json_is_object(out->data))
            return refuse("data", out->data, "an object", err);
        return take_count(out->root, "index", &out->index, err);
    }
    if (out->kind != FRAME_ARTIFACT)
        return 0;
    const json_t *sum = json_object_get(out->root, "sha256");
    if (!json_is_string(sum) || json_string_length(sum) != 64)
        return refuse("sha256", sum, "64 hexadecimal digits", err);
    out->sha256 = json_string_value(sum);
    if (take_bytes(out->root, "text", "base64", &out->owned, &out->bytes, err) < 0 ||
        take_bytes(out->root, "path", "path_base64", &out->path_owned, &out->path, err) < 0 ||
        take_count(out->root, "offset", &out->offset, err) < 0 ||
        take_count(out->root, "size_bytes", &out->size_bytes, err) < 0)
        return -1;
    if (out->offset > out->size_bytes || out->bytes.len > out->size_bytes - out->offset)
        return refuse("offset", json_object_get(out->root, "offset"), "within size_bytes", err);
    return 0;
}

int frame_news_read(struct str text, struct frame_news *out, struct err *err)
{
    out->root = json_read(text, FRAME_NEWS_MAX, err);
    if (!out->root)
        return -1;
    if (!json_is_object(out->root))
        return refuse("", out->root, "an object", err);
    const json_t *id = json_object_get(out->root, "id"), *op = json_object_get(out->root, "op");
    json_t *result = json_object_get(out->root, "result");
    json_t *error = json_object_get(out->root, "error");
    const char *event = json_string_value(json_object_get(out->root, "event"));
    if (id && (!json_is_string(id) || json_string_length(id) > FRAME_ID_MAX))
        return refuse("id", id, "text of 1 to 64 bytes", err);
    out->id = id ? json_str(id) : STR_NONE;
    out->body = result ? result : error;
    if (out->body && !json_is_object(out->body))
        return refuse(result ? "result" : "error", out->body, "an object", err);
    if (out->body) {
        out->kind = result ? FRAME_RESULT : FRAME_ERROR;
        return 0;
    }
    if (json_is_string(op) && str_is(json_str(op), "hello")) {
        out->kind = FRAME_HELLO;
        out->protocol = json_integer_value(json_object_get(out->root, "protocol"));
    }
    if (event)
        return take_event(out, event, err);
    if (out->id.len > 0) {
        out->kind = FRAME_ANSWER;
        out->body = out->root;
    }
    return 0;
}

void frame_news_done(struct frame_news *news)
{
    json_decref(news->root);
    free(news->owned);
    free(news->path_owned);
    *news = FRAME_NEWS_INIT;
}
