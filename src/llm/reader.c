/* Reading a reply, common to all wires: pieces that grow up to a cap, errors inside a stream, and
 * the end. Runs in the task's process. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "llm/llm_int.h"
#include "llm/wire.h"

#define PIECES_MAX 256
#define EVENT_MAX ((size_t)8 << 20)

const struct llm_wire *llm_wire_find(struct str name)
{
    static const struct llm_wire *const wires[] = { &llm_wire_anthropic, &llm_wire_responses,
                                                    &llm_wire_chat };
    for (size_t i = 0; i < array_len(wires); i++)
        if (str_is(name, wires[i]->name))
            return wires[i];
    return NULL;
}

json_t *llm_data_url(const json_t *image)
{
    own_buf url = BUF_INIT(SIZE_MAX / 2);
    buf_add_text(&url, "data:");
    buf_add_str(&url, json_get_str(image, "mime"));
    buf_add_text(&url, ";base64,");
    buf_add_str(&url, json_get_str(image, "base64"));
    return json_text(buf_str(&url));
}

json_t *llm_joined_text(const json_t *parts)
{
    own_buf text = BUF_INIT(SIZE_MAX / 2);
    size_t i;
    json_t *part;
    json_array_foreach (parts, i, part) {
        if (!llm_part_is(part, "text"))
            continue;
        if (text.len > 0)
            buf_add_text(&text, "\n");
        buf_add_str(&text, json_get_str(part, "text"));
    }
    return json_text(buf_str(&text));
}

void llm_reader_start(struct llm_reader *reader, const struct llm_wire *wire,
                      const struct llm_watch *watch, struct llm_reply *reply, unsigned *made_ids)
{
    *reader = (struct llm_reader){
        .wire = wire, .watch = watch, .reply = reply, .made_ids = made_ids
    };
    reader->pieces = buf_alloc_zero(PIECES_MAX, sizeof *reader->pieces);
    reply->usage = LLM_USAGE_UNKNOWN;
}

void llm_reader_done(struct llm_reader *reader)
{
    for (size_t i = 0; i < reader->piece_count; i++) {
        struct llm_piece *piece = &reader->pieces[i];
        json_decref(piece->block);
        buf_done(&piece->text);
        buf_done(&piece->seal);
        buf_done(&piece->id);
        buf_done(&piece->name);
    }
    free(reader->pieces);
    *reader = (struct llm_reader){ 0 };
}

static void fail_too_long(struct llm_reader *reader)
{
    llm_fail(reader->reply, LLM_TOO_LONG, "ask for less at a time, or use another model",
             "the reply exceeded %u MiB and was cut off", LLM_CONTENT_MAX >> 20);
}

struct llm_piece *llm_reader_new_piece(struct llm_reader *reader, int64_t index)
{
    if (reader->piece_count == PIECES_MAX) {
        fail_too_long(reader);
        return NULL;
    }
    struct llm_piece *piece = &reader->pieces[reader->piece_count++];
    *piece = (struct llm_piece){ .index = index,
                                 .text = BUF_INIT(LLM_CONTENT_MAX),
                                 .seal = BUF_INIT(LLM_CONTENT_MAX),
                                 .id = BUF_INIT(LLM_CONTENT_MAX),
                                 .name = BUF_INIT(LLM_CONTENT_MAX) };
    return piece;
}

struct llm_piece *llm_reader_piece(struct llm_reader *reader, int64_t index)
{
    for (size_t i = reader->piece_count; i > 0; i--)
        if (reader->pieces[i - 1].index == index)
            return &reader->pieces[i - 1];
    return llm_reader_new_piece(reader, index);
}

void llm_reader_add(struct llm_reader *reader, struct buf *to, struct str text)
{
    if (text.len > LLM_CONTENT_MAX - reader->bytes || buf_add_str(to, text) < 0) {
        fail_too_long(reader);
        return;
    }
    reader->bytes += text.len;
}

void llm_reader_say(struct llm_reader *reader, struct buf *to, struct str text)
{
    llm_reader_add(reader, to, text);
    if (reader->reply->outcome == LLM_OK && text.len > 0 && reader->watch->on_text)
        reader->watch->on_text(reader->watch->user, text);
}

void llm_reader_show(struct llm_reader *reader, struct str text, bool is_text)
{
    reader->shown += text.len;
    if (reader->shown > LLM_CONTENT_MAX)
        fail_too_long(reader);
    else if (is_text && text.len > 0 && reader->watch->on_text)
        reader->watch->on_text(reader->watch->user, text);
}

static bool is_error(const json_t *data)
{
    const json_t *error = json_object_get(data, "error");
    return (error && !json_is_null(error)) || str_is(json_get_str(data, "type"), "error") ||
           str_is(json_get_str(data, "object"), "error");
}

void llm_reader_event(struct llm_reader *reader, struct str data)
{
    struct err err = ERR_INIT;
    if (reader->reply->outcome != LLM_OK || reader->ended)
        return;
    if (str_is(data, "[DONE]")) {
        reader->ended = reader->began;
        return;
    }
    own_json value = json_read(data, EVENT_MAX, &err);
    if (!json_is_object(value)) {
        llm_fail(reader->reply, LLM_GARBAGE, "check that the base URL is a model's server",
                 "an event of the stream is not a JSON object: %.*s", (int)str_cut_utf8(data, 100),
                 data.at);
        return;
    }
    if (is_error(value)) {
        llm_error_judge(reader->reply, 0, value);
        return;
    }
    reader->wire->event(reader, value);
}

void llm_reader_whole(struct llm_reader *reader, struct str body)
{
    struct err err = ERR_INIT;
    own_json value = json_read(body, EVENT_MAX, &err);
    if (!json_is_object(value))
        llm_fail(reader->reply, LLM_GARBAGE, "check that the base URL is a model's server",
                 "the reply is not a JSON object: %.*s", (int)str_cut_utf8(body, 100), body.at);
    else if (is_error(value))
        llm_error_judge(reader->reply, 0, value);
    else
        reader->wire->whole(reader, value);
}

/* Some ends decide more than the content. */
static bool fail_by_end(struct llm_reader *reader)
{
    struct llm_reply *reply = reader->reply;
    if (reader->filtered && reply->detail[0] == 0)
        str_plain(reply->detail, sizeof reply->detail, STR("the model declined to reply"));
    if (reader->filtered) {
        reply->outcome = LLM_REFUSED;
        str_plain(reply->hint, sizeof reply->hint, STR("rephrase the question"));
    } else if (reader->overflowed) {
        llm_fail(reply, LLM_CONTEXT, "ask with less data, or use a model with a larger window",
                 "the conversation filled the model's context window");
    }
    return reply->outcome != LLM_OK;
}

void llm_reader_end(struct llm_reader *reader)
{
    struct llm_reply *reply = reader->reply;
    if (reply->outcome != LLM_OK)
        return;
    if (!reader->ended && !reader->finished) {
        bool cut = reader->began;
        llm_fail(reply, cut ? LLM_BROKEN : LLM_GARBAGE,
                 cut ? "try again" : "check that the base URL is a model's server",
                 cut ? "the stream ended before the reply was complete"
                     : "the server's reply does not look like a model's");
        return;
    }
    if (fail_by_end(reader))
        return;
    own_json parts = json_array();
    if (reader->wire->collect(reader, parts) < 0) {
        llm_fail(reply, LLM_GARBAGE, "try again, or use a model that is known to call tools",
                 "the model made a tool call whose arguments are not a JSON object");
        return;
    }
    /* Servers refuse trailing reasoning that was cut. */
    while (reply->stop == LLM_STOP_LENGTH && json_array_size(parts) > 0 &&
           llm_part_is(json_array_get(parts, json_array_size(parts) - 1), "raw"))
        json_array_remove(parts, json_array_size(parts) - 1);
    if (reply->stop != LLM_STOP_LENGTH && llm_parts_have(parts, "tool_call"))
        reply->stop = LLM_STOP_TOOLS;
    llm_reply_take(reply, take_ptr(parts));
}
