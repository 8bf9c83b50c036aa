/* OpenAI's Responses, storing nothing there: encrypted reasoning is sent back unchanged, before the
 * items it led to. Items are read when complete; their pieces are only shown. */
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "llm/llm_int.h"
#include "llm/wire.h"

#define WIRE "responses"

static json_t *write_input(const json_t *part)
{
    if (llm_part_is(part, "image"))
        return json_pack("{s:s,s:s,s:o}", "type", "input_image", "detail", "auto", "image_url",
                         llm_data_url(part));
    return json_pack("{s:s,s:O}", "type", "input_text", "text", json_object_get(part, "text"));
}

static json_t *write_result(const json_t *part)
{
    const json_t *content = json_object_get(part, "content");
    json_t *output = NULL, *inner;
    size_t i;
    if (llm_parts_have(content, "image")) {
        output = json_array();
        json_array_foreach (content, i, inner)
            json_array_append_new(output, write_input(inner));
    }
    return json_pack("{s:s,s:O,s:o}", "type", "function_call_output", "call_id",
                     json_object_get(part, "id"), "output",
                     output ? output : llm_joined_text(content));
}

static json_t *write_call(const json_t *part)
{
    own_str arguments = json_write(json_object_get(part, "arguments"), JSON_COMPACT);
    return json_pack("{s:s,s:O,s:O,s:s}", "type", "function_call", "call_id",
                     json_object_get(part, "id"), "name", json_object_get(part, "name"),
                     "arguments", arguments);
}

static void write_user(const json_t *parts, json_t *items)
{
    json_t *content = json_array(), *part;
    size_t i;
    json_array_foreach (parts, i, part) {
        if (llm_part_is(part, "tool_result"))
            json_array_append_new(items, write_result(part));
        else if (llm_part_is(part, "image") ||
                 (llm_part_is(part, "text") && json_get_str(part, "text").len > 0))
            json_array_append_new(content, write_input(part));
    }
    if (json_array_size(content) > 0)
        json_array_append_new(items, json_pack("{s:s,s:O}", "role", "user", "content", content));
    json_decref(content);
}

/* Reasoning without a following item is refused. */
static void drop_loose_reasoning(json_t *items)
{
    size_t last = json_array_size(items);
    while (last > 0 && llm_part_is(json_array_get(items, last - 1), "reasoning"))
        json_array_remove(items, --last);
}

static void write_assistant(const json_t *parts, json_t *items)
{
    json_t *part;
    size_t i;
    json_array_foreach (parts, i, part) {
        if (llm_part_is(part, "text") && json_get_str(part, "text").len > 0)
            json_array_append_new(items, json_pack("{s:s,s:O}", "role", "assistant", "content",
                                                   json_object_get(part, "text")));
        else if (llm_part_is(part, "tool_call"))
            json_array_append_new(items, write_call(part));
        else if (llm_part_is(part, "raw") && str_is(json_get_str(part, "wire"), WIRE))
            json_array_append(items, json_object_get(part, "block"));
    }
    drop_loose_reasoning(items);
}

static json_t *write_tools(const json_t *tools)
{
    json_t *out = json_array(), *tool;
    size_t i;
    json_array_foreach (tools, i, tool)
        json_array_append_new(out, json_pack("{s:s,s:O,s:O,s:O,s:b}", "type", "function", "name",
                                             json_object_get(tool, "name"), "description",
                                             json_object_get(tool, "description"), "parameters",
                                             json_object_get(tool, "schema"), "strict", 0));
    return out;
}

static json_t *encode(const struct llm_dialect *dialect, const struct llm_request *request)
{
    json_t *items = json_array(), *message;
    size_t i;
    json_array_foreach (request->messages, i, message) {
        const json_t *parts = json_object_get(message, "content");
        if (str_is(json_get_str(message, "role"), "assistant"))
            write_assistant(parts, items);
        else
            write_user(parts, items);
    }
    int64_t most = request->max_output_tokens > 0 ? request->max_output_tokens
                                                  : LLM_USUAL_OUTPUT_TOKENS;
    json_t *body = json_pack("{s:s,s:b,s:b,s:I}", "model", dialect->model, "stream", 1, "store", 0,
                             "max_output_tokens", (json_int_t)most);
    if (dialect->seals)
        json_object_set_new(body, "include", json_pack("[s]", "reasoning.encrypted_content"));
    if (request->instructions && request->instructions[0])
        json_object_set_new(body, "instructions", json_string(request->instructions));
    if (json_array_size(request->tools) > 0) {
        json_object_set_new(body, "tools", write_tools(request->tools));
        json_object_set_new(body, "parallel_tool_calls", json_false());
    }
    json_object_set_new(body, "input", items);
    return body;
}

static void read_usage(struct llm_usage *to, const json_t *usage)
{
    const json_t *in = json_object_get(usage, "input_tokens_details");
    int64_t all = llm_count(usage, "input_tokens");
    to->cache_read = llm_count(in, "cached_tokens");
    to->cache_write = llm_count(in, "cache_write_tokens");
    to->output = llm_count(usage, "output_tokens");
    to->reasoning = llm_count(json_object_get(usage, "output_tokens_details"), "reasoning_tokens");
    to->input = llm_input_without(all, to->cache_read, to->cache_write);
}

static void read_item(struct llm_reader *reader, const json_t *item)
{
    struct llm_piece *piece = json_is_object(item) ? llm_reader_new_piece(reader, -1) : NULL;
    if (!piece)
        return;
    piece->block = json_deep_copy(item);
    const json_t *content = json_object_get(item, "content");
    size_t i;
    json_t *inner;
    json_array_foreach (content, i, inner) {
        if (llm_part_is(inner, "output_text"))
            llm_reader_add(reader, &piece->text, json_get_str(inner, "text"));
        if (llm_part_is(inner, "refusal") && reader->reply->outcome == LLM_OK) {
            reader->filtered = true;
            str_plain(reader->reply->detail, sizeof reader->reply->detail,
                      json_get_str(inner, "refusal"));
        }
    }
}

/* The last event, or the complete reply: how it ended, and all items if none came before. */
static void read_response(struct llm_reader *reader, const json_t *response)
{
    struct str status = json_get_str(response, "status");
    struct str why = json_get_str(json_object_get(response, "incomplete_details"), "reason");
    size_t i;
    json_t *item;
    if (str_is(status, "failed")) {
        llm_error_judge(reader->reply, 0, response);
        return;
    }
    if (reader->piece_count == 0)
        json_array_foreach (json_object_get(response, "output"), i, item)
            read_item(reader, item);
    read_usage(&reader->reply->usage, json_object_get(response, "usage"));
    reader->reply->stop = LLM_STOP_OTHER;
    if (str_is(status, "completed"))
        reader->reply->stop = LLM_STOP_END;
    else if (str_is(why, "max_output_tokens"))
        reader->reply->stop = LLM_STOP_LENGTH;
    else if (str_is(why, "content_filter"))
        reader->filtered = true;
    reader->began = reader->ended = true;
}

static void event(struct llm_reader *reader, const json_t *data)
{
    static const char *const last[] = { "response.completed", "response.incomplete",
                                        "response.failed" };
    struct str type = json_get_str(data, "type");
    if (type.len > 9 && memcmp(type.at, "response.", 9) == 0)
        reader->began = true;
    llm_reader_show(reader, json_get_str(data, "delta"),
                    str_is(type, "response.output_text.delta"));
    if (str_is(type, "response.output_item.done"))
        read_item(reader, json_object_get(data, "item"));
    for (size_t i = 0; i < array_len(last); i++)
        if (str_is(type, last[i]))
            read_response(reader, json_object_get(data, "response"));
}

static void whole(struct llm_reader *reader, const json_t *body)
{
    if (!json_is_array(json_object_get(body, "output")))
        return;
    read_response(reader, body);
    for (size_t i = 0; i < reader->piece_count; i++)
        llm_reader_show(reader, buf_str(&reader->pieces[i].text), true);
}

static int collect(struct llm_reader *reader, json_t *parts)
{
    for (size_t i = 0; i < reader->piece_count; i++) {
        struct llm_piece *piece = &reader->pieces[i];
        const json_t *item = piece->block;
        if (llm_part_is(item, "message")) {
            llm_parts_text(parts, buf_str(&piece->text));
        } else if (llm_part_is(item, "function_call")) {
            bool cut = str_is(json_get_str(item, "status"), "incomplete") ||
                       (reader->reply->stop == LLM_STOP_LENGTH && i + 1 == reader->piece_count);
            json_t *arguments = cut ? NULL : llm_call_arguments(json_object_get(item, "arguments"));
            if (llm_parts_call(parts, json_get_str(item, "call_id"), json_get_str(item, "name"),
                               arguments, reader->made_ids) < 0 &&
                reader->reply->stop != LLM_STOP_LENGTH)
                return -1;
        } else {
            llm_parts_raw(parts, WIRE, json_deep_copy(item));
        }
    }
    return 0;
}

const struct llm_wire llm_wire_responses = { WIRE, "/responses", encode, event, whole, collect };
