/* Anthropic's Messages, version 2026-10-21. It requires:
 * 1. an assistant's blocks come back unchanged, thinking with its signature first;
 * 2. results of tools come first in the user message after their calls;
 * 3. a text block is never empty; max_tokens is always given; no temperature. Cache breakpoints:
 *    the system prompt, and one that moves with the conversation. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "llm/wire.h"

#define WIRE "anthropic"

/* ---- writing ---- */

static json_t *write_image(const json_t *part)
{
    return json_pack("{s:s,s:{s:s,s:O,s:O}}", "type", "image", "source", "type", "base64",
                     "media_type", json_object_get(part, "mime"), "data",
                     json_object_get(part, "base64"));
}

static bool is_blank(struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!strchr(" \t\r\n", text.at[i]) || text.at[i] == 0)
            return false;
    return true;
}

static json_t *write_part(const json_t *part);

static json_t *write_result(const json_t *part)
{
    json_t *blocks = json_array(), *inner;
    size_t i;
    json_array_foreach (json_object_get(part, "content"), i, inner) {
        json_t *block = write_part(inner);
        if (block)
            json_array_append_new(blocks, block);
    }
    if (json_array_size(blocks) == 0)
        json_array_append_new(blocks, json_pack("{s:s,s:s}", "type", "text", "text", "(nothing)"));
    /* A result with pictures cannot be an error. */
    bool error = json_is_true(json_object_get(part, "is_error")) &&
                 !llm_parts_have(blocks, "image");
    return json_pack("{s:s,s:O,s:o,s:b}", "type", "tool_result", "tool_use_id",
                     json_object_get(part, "id"), "content", blocks, "is_error", error);
}

/* A block, or NULL if this wire cannot express the part. */
static json_t *write_part(const json_t *part)
{
    if (llm_part_is(part, "text"))
        return is_blank(json_get_str(part, "text"))
                   ? NULL
                   : json_pack("{s:s,s:O}", "type", "text", "text", json_object_get(part, "text"));
    if (llm_part_is(part, "image"))
        return write_image(part);
    if (llm_part_is(part, "tool_call"))
        return json_pack("{s:s,s:O,s:O,s:O}", "type", "tool_use", "id", json_object_get(part, "id"),
                         "name", json_object_get(part, "name"), "input",
                         json_object_get(part, "arguments"));
    if (llm_part_is(part, "tool_result"))
        return write_result(part);
    if (llm_part_is(part, "raw") && str_is(json_get_str(part, "wire"), WIRE))
        return json_incref(json_object_get(part, "block"));
    return NULL;
}

/* Results first, then the rest, in order. A message may not end in thinking, so that is dropped. */
static void write_parts(const json_t *parts, json_t *blocks)
{
    size_t i;
    json_t *part;
    for (int rest = 0; rest < 2; rest++)
        json_array_foreach (parts, i, part) {
            json_t *block = llm_part_is(part, "tool_result") == !rest ? write_part(part) : NULL;
            if (block)
                json_array_append_new(blocks, block);
        }
    for (size_t last = json_array_size(blocks); last > 0; last--) {
        const json_t *block = json_array_get(blocks, last - 1);
        if (!llm_part_is(block, "thinking") && !llm_part_is(block, "redacted_thinking"))
            return;
        json_array_remove(blocks, last - 1);
    }
}

static json_t *write_messages(const json_t *messages)
{
    json_t *out = json_array(), *message;
    size_t i;
    json_array_foreach (messages, i, message) {
        own_json blocks = json_array();
        json_t *last = json_array_get(out, json_array_size(out) - 1);
        write_parts(json_object_get(message, "content"), blocks);
        if (json_array_size(blocks) == 0)
            continue;
        if (last && str_eq(json_get_str(last, "role"), json_get_str(message, "role")))
            json_array_extend(json_object_get(last, "content"), blocks);
        else
            json_array_append_new(out,
                                  json_pack("{s:O,s:O}", "role", json_object_get(message, "role"),
                                            "content", blocks));
    }
    return out;
}

static json_t *write_tools(const json_t *tools)
{
    json_t *out = json_array(), *tool;
    size_t i;
    json_array_foreach (tools, i, tool)
        json_array_append_new(out, json_pack("{s:O,s:O,s:O}", "name", json_object_get(tool, "name"),
                                             "description", json_object_get(tool, "description"),
                                             "input_schema", json_object_get(tool, "schema")));
    return out;
}

static json_t *encode(const struct llm_dialect *dialect, const struct llm_request *request)
{
    int64_t most = request->max_output_tokens > 0 ? request->max_output_tokens
                                                  : LLM_USUAL_OUTPUT_TOKENS;
    json_t *body = json_pack("{s:s,s:I,s:b,s:{s:s}}", "model", dialect->model, "max_tokens",
                             (json_int_t)most, "stream", 1, "cache_control", "type", "ephemeral");
    if (request->instructions && !is_blank(str_of(request->instructions)))
        json_object_set_new(body, "system",
                            json_pack("[{s:s,s:s,s:{s:s}}]", "type", "text", "text",
                                      request->instructions, "cache_control", "type", "ephemeral"));
    if (json_array_size(request->tools) > 0) {
        json_object_set_new(body, "tools", write_tools(request->tools));
        json_object_set_new(body, "tool_choice",
                            json_pack("{s:s,s:b}", "type", "auto", "disable_parallel_tool_use", 1));
    }
    json_object_set_new(body, "messages", write_messages(request->messages));
    return body;
}

/* ---- reading ---- */

/* Counts are cumulative: the last one holds. */
static void read_usage(struct llm_reader *reader, const json_t *usage)
{
    const json_t *details = json_object_get(usage, "output_tokens_details");
    const struct {
        int64_t *to, value;
    } rows[] = {
        { &reader->reply->usage.input, llm_count(usage, "input_tokens") },
        { &reader->reply->usage.cache_read, llm_count(usage, "cache_read_input_tokens") },
        { &reader->reply->usage.cache_write, llm_count(usage, "cache_creation_input_tokens") },
        { &reader->reply->usage.output, llm_count(usage, "output_tokens") },
        { &reader->reply->usage.reasoning, llm_count(details, "thinking_tokens") },
    };
    for (size_t i = 0; i < array_len(rows); i++)
        if (rows[i].value >= 0)
            *rows[i].to = rows[i].value;
}

static void read_refusal(struct llm_reply *reply, const json_t *details)
{
    struct str category = json_get_str(details, "category");
    snprintf(reply->detail, sizeof reply->detail, "the model declined to reply%s%.*s",
             category.len > 0 ? ": " : "", (int)str_cut_utf8(category, 100),
             category.len > 0 ? category.at : "");
}

static void read_stop(struct llm_reader *reader, const json_t *from)
{
    static const struct {
        const char *name;
        enum llm_stop stop;
    } rows[] = { { "end_turn", LLM_STOP_END },
                 { "stop_sequence", LLM_STOP_END },
                 { "tool_use", LLM_STOP_TOOLS },
                 { "max_tokens", LLM_STOP_LENGTH } };
    struct str reason = json_get_str(from, "stop_reason");
    if (reason.len == 0)
        return;
    reader->filtered = str_is(reason, "refusal");
    if (reader->filtered)
        read_refusal(reader->reply, json_object_get(from, "stop_details"));
    reader->overflowed = str_is(reason, "model_context_window_exceeded");
    reader->reply->stop = LLM_STOP_OTHER;
    for (size_t i = 0; i < array_len(rows); i++)
        if (str_is(reason, rows[i].name))
            reader->reply->stop = rows[i].stop;
}

static void read_block_start(struct llm_reader *reader, const json_t *data)
{
    json_t *block = json_object_get(data, "content_block");
    int64_t index = llm_count(data, "index");
    struct llm_piece *piece = json_is_object(block) ? llm_reader_new_piece(reader, index) : NULL;
    if (!piece)
        return;
    piece->block = json_deep_copy(block);
    llm_reader_say(reader, &piece->text, json_get_str(block, "text"));
    llm_reader_add(reader, &piece->text, json_get_str(block, "thinking"));
    llm_reader_add(reader, &piece->seal, json_get_str(block, "signature"));
}

static void read_delta(struct llm_reader *reader, const json_t *data)
{
    const json_t *delta = json_object_get(data, "delta");
    int64_t index = llm_count(data, "index");
    struct llm_piece *piece = NULL;
    for (size_t i = 0; i < reader->piece_count; i++)
        if (reader->pieces[i].index == index)
            piece = &reader->pieces[i];
    if (!piece)
        return;
    llm_reader_say(reader, &piece->text, json_get_str(delta, "text"));
    llm_reader_add(reader, &piece->text, json_get_str(delta, "partial_json"));
    llm_reader_add(reader, &piece->text, json_get_str(delta, "thinking"));
    llm_reader_add(reader, &piece->seal, json_get_str(delta, "signature"));
}

static void read_block_stop(struct llm_reader *reader, const json_t *data)
{
    for (size_t i = 0; i < reader->piece_count; i++)
        if (reader->pieces[i].index == llm_count(data, "index"))
            reader->pieces[i].ended = true;
}

static void read_message_start(struct llm_reader *reader, const json_t *data)
{
    read_usage(reader, json_object_get(json_object_get(data, "message"), "usage"));
}

static void read_message_delta(struct llm_reader *reader, const json_t *data)
{
    read_usage(reader, json_object_get(data, "usage"));
    read_stop(reader, json_object_get(data, "delta"));
}

static void read_message_stop(struct llm_reader *reader, const json_t *data)
{
    (void)data;
    reader->ended = true;
}

static void event(struct llm_reader *reader, const json_t *data)
{
    static const struct {
        const char *type;
        void (*read)(struct llm_reader *reader, const json_t *data);
    } rows[] = {
        { "message_start", read_message_start },
        { "content_block_start", read_block_start },
        { "content_block_delta", read_delta },
        { "content_block_stop", read_block_stop },
        { "message_delta", read_message_delta },
        { "message_stop", read_message_stop },
    };
    for (size_t i = 0; i < array_len(rows); i++)
        if (str_is(json_get_str(data, "type"), rows[i].type)) {
            reader->began = true;
            rows[i].read(reader, data);
        }
}

static void whole(struct llm_reader *reader, const json_t *body)
{
    size_t i;
    json_t *block;
    if (!json_is_array(json_object_get(body, "content")))
        return;
    json_array_foreach (json_object_get(body, "content"), i, block) {
        own_json start = json_pack("{s:I,s:O}", "index", (json_int_t)i, "content_block", block);
        read_block_start(reader, start);
        read_block_stop(reader, start);
    }
    read_usage(reader, json_object_get(body, "usage"));
    read_stop(reader, body);
    reader->began = reader->ended = true;
}

/* A call's input comes as pieces of JSON, or complete in its block. */
static json_t *read_input(const struct llm_piece *piece)
{
    own_json text = piece->text.len > 0 ? json_text(buf_str(&piece->text)) : NULL;
    return llm_call_arguments(text ? text : json_object_get(piece->block, "input"));
}

static int collect_piece(struct llm_reader *reader, struct llm_piece *piece, bool cut,
                         json_t *parts)
{
    json_t *block = piece->block;
    if (llm_part_is(block, "text")) {
        llm_parts_text(parts, buf_str(&piece->text));
        return 0;
    }
    if (llm_part_is(block, "tool_use")) {
        if (cut)
            return 0;
        return llm_parts_call(parts, json_get_str(block, "id"), json_get_str(block, "name"),
                              piece->ended ? read_input(piece) : NULL, reader->made_ids);
    }
    if (llm_part_is(block, "thinking")) {
        json_object_set_new(block, "thinking", json_text(buf_str(&piece->text)));
        json_object_set_new(block, "signature", json_text(buf_str(&piece->seal)));
    }
    json_t *input = piece->text.len > 0 && json_object_get(block, "input") ? read_input(piece)
                                                                           : NULL;
    if (input)
        json_object_set_new(block, "input", input);
    llm_parts_raw(parts, WIRE, json_incref(block));
    return 0;
}

/* If the reply ended at its length limit, its last call is cut, even if it looks complete. */
static int collect(struct llm_reader *reader, json_t *parts)
{
    for (size_t i = 0; i < reader->piece_count; i++) {
        bool cut = reader->reply->stop == LLM_STOP_LENGTH && i + 1 == reader->piece_count;
        if (collect_piece(reader, &reader->pieces[i], cut, parts) < 0)
            return -1;
    }
    return 0;
}

const struct llm_wire llm_wire_anthropic = { WIRE, "/v1/messages", encode, event, whole, collect };
