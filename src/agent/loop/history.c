/* The conversation. Pure. Consecutive messages of one side are joined: wires require alternating
 * sides, and a result for every call. */
#include "agent/loop/history.h"

#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"

#define PICTURE_SIZE 3000 /* characters that a picture counts for */

void agent_history_init(struct agent_history *history)
{
    *history = (struct agent_history){ .messages = json_array(), .briefs = json_array() };
}

void agent_history_done(struct agent_history *history)
{
    json_decref(history->messages);
    json_decref(history->briefs);
    *history = (struct agent_history){ 0 };
}

static bool is_type(const json_t *part, const char *type)
{
    const char *got = json_string_value(json_object_get(part, "type"));
    return got && strcmp(got, type) == 0;
}

static json_t *text_part(struct str text)
{
    return json_pack("{s:s, s:o}", "type", "text", "text", json_text(text));
}

/* The content of the last message if it is that side's, else of a new one. */
static json_t *content_for(struct agent_history *history, const char *role)
{
    size_t count = json_array_size(history->messages);
    json_t *last = json_array_get(history->messages, count - 1);
    const char *whose = json_string_value(json_object_get(last, "role"));
    if (!whose || strcmp(whose, role) != 0) {
        last = json_pack("{s:s, s:[]}", "role", role, "content");
        json_array_append_new(history->messages, last);
        json_array_append_new(history->briefs, json_null());
    }
    return json_object_get(last, "content");
}

void agent_history_say(struct agent_history *history, const char *text)
{
    json_array_append_new(content_for(history, "user"), text_part(str_of(text)));
}

void agent_history_reply(struct agent_history *history, const json_t *content,
                         const struct agent_action *action)
{
    json_t *parts = content_for(history, "assistant"), *part;
    size_t left = action->tool ? SIZE_MAX : action->kept, i;
    json_array_foreach (content, i, part) {
        struct str text = json_str(json_object_get(part, "text"));
        if (!is_type(part, "text")) {
            json_array_append(parts, part);
            continue;
        }
        size_t len = text.len <= left ? text.len : str_cut_utf8(text, left);
        left -= len;
        if (len)
            json_array_append_new(parts, text_part((struct str){ text.at, len }));
    }
    if (json_array_size(parts) == 0) /* wires refuse an empty message */
        json_array_append_new(parts, text_part(STR("(nothing)")));
}

static json_t *observed(const char *text, json_t *pictures)
{
    json_t *content = json_array();
    json_array_append_new(content, text_part(str_of(text)));
    if (pictures)
        json_array_extend(content, pictures);
    return content;
}

void agent_history_observe(struct agent_history *history, const struct agent_action *action,
                           const char *text, const char *brief, json_t *pictures)
{
    json_t *said = json_object_get(
        json_array_get(history->messages, json_array_size(history->messages) - 1), "content");
    own_json calls = json_incref(said); /* content_for adds a message after it */
    json_t *parts = content_for(history, "user"), *part;
    own_json content = observed(text, pictures);
    size_t i;
    json_array_foreach (calls, i, part) {
        const char *id = json_string_value(json_object_get(part, "id"));
        if (!is_type(part, "tool_call") || !id)
            continue;
        bool ours = action->tool_id && strcmp(id, action->tool_id) == 0;
        json_t *result = ours ? json_incref(content)
                              : observed("not run: one call at a time, this was the second", NULL);
        json_array_append_new(parts, json_pack("{s:s, s:s, s:o, s:b}", "type", "tool_result", "id",
                                               id, "content", result, "is_error", !ours));
    }
    if (!action->tool)
        json_array_extend(parts, content);
    if (brief)
        json_array_set_new(history->briefs, json_array_size(history->briefs) - 1,
                           json_text(str_of(brief)));
}

static size_t size_of(const json_t *parts)
{
    size_t size = 0, i;
    json_t *part;
    json_array_foreach (parts, i, part) {
        size += json_string_length(json_object_get(part, "text"));
        size += is_type(part, "image") ? PICTURE_SIZE : 0;
        size += size_of(json_object_get(part, "content"));
        const json_t *arguments = json_object_get(part, "arguments");
        size += json_string_length(json_object_get(arguments, "code"));
    }
    return size;
}

size_t agent_history_size(const struct agent_history *history)
{
    size_t size = 0, i;
    json_t *message;
    json_array_foreach (history->messages, i, message)
        size += size_of(json_object_get(message, "content"));
    return size;
}

/* The first text of a message, or of its first result, is the observation; later texts stay. */
static void shrink_message(json_t *message, const json_t *brief)
{
    json_t *parts = json_object_get(message, "content"), *part;
    own_json kept = json_array();
    bool told = false;
    size_t i;
    json_array_foreach (parts, i, part) {
        json_t *short_text = json_pack("{s:s, s:O}", "type", "text", "text", brief);
        if (is_type(part, "tool_result")) {
            own_json copy = json_copy(part);
            json_object_set_new(copy, "content", json_pack("[o]", short_text));
            json_array_append(kept, copy);
            told = true;
        } else if (is_type(part, "text") && told) {
            json_array_append(kept, part);
            json_decref(short_text);
        } else if (is_type(part, "text")) {
            json_array_append_new(kept, short_text);
            told = true;
        } else {
            json_decref(short_text); /* a picture goes with the rest */
        }
    }
    json_object_set(message, "content", kept);
}

bool agent_history_shrink(struct agent_history *history, size_t spared)
{
    size_t observations = 0, i;
    json_t *brief;
    bool any = false;
    json_array_foreach (history->briefs, i, brief)
        observations += json_is_string(brief);
    json_array_foreach (history->briefs, i, brief) {
        if (!json_is_string(brief))
            continue;
        if (observations-- <= spared)
            break;
        shrink_message(json_array_get(history->messages, i), brief);
        json_array_set_new(history->briefs, i, json_null());
        any = true;
    }
    return any;
}

bool agent_history_drop(struct agent_history *history, size_t spared)
{
    if (json_array_size(history->messages) < spared + 3)
        return false;
    for (int i = 0; i < 2; i++) { /* a reply and its results: calls and results stay in pairs */
        json_array_remove(history->messages, 1);
        json_array_remove(history->briefs, 1);
    }
    return true;
}

json_t *agent_history_last(const struct agent_history *history)
{
    size_t count = json_array_size(history->messages);
    json_t *parts = json_object_get(json_array_get(history->messages, count - 1), "content");
    return json_array_get(parts, json_array_size(parts) - 1);
}

static void shorten(json_t *list, size_t count)
{
    while (json_array_size(list) > count)
        json_array_remove(list, json_array_size(list) - 1);
}

void agent_history_cut(struct agent_history *history, const json_t *part)
{
    size_t i, j, left = 1; /* if it was dropped, all but the first message is younger */
    json_t *message, *each;
    json_array_foreach (history->messages, i, message) {
        json_t *parts = json_object_get(message, "content");
        json_array_foreach (parts, j, each)
            if (each == part) {
                shorten(parts, j);
                left = i + (j > 0);
            }
    }
    shorten(history->messages, left);
    shorten(history->briefs, left);
}
