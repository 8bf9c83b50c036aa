/* Chat Completions, with the variations of OpenAI, vLLM, llama.cpp, Ollama and others: ids may be
 * missing, arguments may be objects, reasoning has two names, usage may never come, and the finish
 * reason is only a hint. Tool results hold no images here: they follow in a user message. */
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "llm/llm_int.h"
#include "llm/wire.h"

#define WIRE "chat"

enum { TEXT_PIECE = -2, REASONING_PIECE = -3 }; /* calls have indexes from 0 on */

/* ---- writing ---- */

static json_t *write_input(const json_t *part)
{
    if (llm_part_is(part, "image"))
        return json_pack("{s:s,s:{s:o}}", "type", "image_url", "image_url", "url",
                         llm_data_url(part));
    return json_pack("{s:s,s:O}", "type", "text", "text", json_object_get(part, "text"));
}

/* A single string if there is only text, for the chat templates of local models. */
static json_t *write_content(const json_t *parts)
{
    json_t *content, *part;
    size_t i;
    if (!llm_parts_have(parts, "image"))
        return llm_joined_text(parts);
    content = json_array();
    json_array_foreach (parts, i, part)
        json_array_append_new(content, write_input(part));
    return content;
}

static void write_result(const json_t *part, json_t *messages, json_t *rest)
{
    const json_t *content = json_object_get(part, "content");
    own_json text = llm_joined_text(content);
    bool shows = llm_parts_have(content, "image");
    size_t i;
    json_t *inner;
    if (json_str(text).len == 0) {
        json_decref(text);
        text = json_string(shows ? "(a picture, in the next message)" : "(nothing)");
    }
    json_array_append_new(messages, json_pack("{s:s,s:O,s:O}", "role", "tool", "tool_call_id",
                                              json_object_get(part, "id"), "content", text));
    json_array_foreach (content, i, inner)
        if (llm_part_is(inner, "image"))
            json_array_append(rest, inner);
}

/* Some chat templates refuse two user messages in a row. */
static void add_user(json_t *messages, json_t *content)
{
    json_t *last = json_array_get(messages, json_array_size(messages) - 1);
    const json_t *before = json_object_get(last, "content");
    if (!str_is(json_get_str(last, "role"), "user") || !json_is_string(before) ||
        !json_is_string(content)) {
        json_array_append_new(messages, json_pack("{s:s,s:o}", "role", "user", "content", content));
        return;
    }
    own_buf text = BUF_INIT(SIZE_MAX / 2);
    buf_add_str(&text, json_str(before));
    buf_add_text(&text, "\n\n");
    buf_add_str(&text, json_str(content));
    json_object_set_new(last, "content", json_text(buf_str(&text)));
    json_decref(content);
}

static void write_user(const json_t *parts, json_t *messages)
{
    own_json rest = json_array();
    size_t i;
    json_t *part;
    json_array_foreach (parts, i, part)
        if (llm_part_is(part, "tool_result"))
            write_result(part, messages, rest);
    json_array_foreach (parts, i, part)
        if (llm_part_is(part, "image") ||
            (llm_part_is(part, "text") && json_get_str(part, "text").len > 0))
            json_array_append(rest, part);
    if (json_array_size(rest) > 0)
        add_user(messages, write_content(rest));
}

static json_t *write_call(const json_t *part)
{
    own_str arguments = json_write(json_object_get(part, "arguments"), JSON_COMPACT);
    return json_pack("{s:O,s:s,s:{s:O,s:s}}", "id", json_object_get(part, "id"), "type", "function",
                     "function", "name", json_object_get(part, "name"), "arguments", arguments);
}

static void write_assistant(const json_t *parts, json_t *messages)
{
    own_json calls = json_array();
    own_json text = llm_joined_text(parts);
    json_t *message = json_pack("{s:s}", "role", "assistant"), *part;
    size_t i;
    json_array_foreach (parts, i, part) {
        if (llm_part_is(part, "tool_call"))
            json_array_append_new(calls, write_call(part));
        else if (llm_part_is(part, "raw") && str_is(json_get_str(part, "wire"), WIRE))
            json_object_update(message, json_object_get(part, "block"));
    }
    bool silent = json_str(text).len == 0, calling = json_array_size(calls) > 0;
    json_object_set_new(message, "content", silent ? json_null() : json_incref(text));
    if (calling)
        json_object_set(message, "tool_calls", calls);
    if (!silent || calling) /* servers refuse an empty message */
        json_array_append(messages, message);
    json_decref(message);
}

static json_t *write_tools(const json_t *tools)
{
    json_t *out = json_array(), *tool;
    size_t i;
    json_array_foreach (tools, i, tool)
        json_array_append_new(out, json_pack("{s:s,s:{s:O,s:O,s:O}}", "type", "function",
                                             "function", "name", json_object_get(tool, "name"),
                                             "description", json_object_get(tool, "description"),
                                             "parameters", json_object_get(tool, "schema")));
    return out;
}

static json_t *encode(const struct llm_dialect *dialect, const struct llm_request *request)
{
    json_t *messages = json_array(), *message;
    size_t i;
    if (request->instructions && request->instructions[0])
        json_array_append_new(messages, json_pack("{s:s,s:s}", "role",
                                                  dialect->new_names ? "developer" : "system",
                                                  "content", request->instructions));
    json_array_foreach (request->messages, i, message) {
        const json_t *parts = json_object_get(message, "content");
        if (str_is(json_get_str(message, "role"), "assistant"))
            write_assistant(parts, messages);
        else
            write_user(parts, messages);
    }
    json_t *body = json_pack("{s:s,s:b,s:{s:b}}", "model", dialect->model, "stream", 1,
                             "stream_options", "include_usage", 1);
    if (request->max_output_tokens > 0)
        json_object_set_new(body, dialect->new_names ? "max_completion_tokens" : "max_tokens",
                            json_integer((json_int_t)request->max_output_tokens));
    if (json_array_size(request->tools) > 0) {
        json_object_set_new(body, "tools", write_tools(request->tools));
        json_object_set_new(body, "parallel_tool_calls", json_false());
    }
    json_object_set_new(body, "messages", messages);
    return body;
}

/* ---- reading ---- */

static void read_usage(struct llm_usage *to, const json_t *usage)
{
    const json_t *in = json_object_get(usage, "prompt_tokens_details");
    int64_t all = llm_count(usage, "prompt_tokens");
    if (!json_is_object(usage))
        return;
    to->cache_read = llm_count(in, "cached_tokens");
    to->cache_write = llm_count(in, "cache_write_tokens");
    to->output = llm_count(usage, "completion_tokens");
    to->reasoning = llm_count(json_object_get(usage, "completion_tokens_details"),
                              "reasoning_tokens");
    to->input = llm_input_without(all, to->cache_read, to->cache_write);
}

/* The piece of a call's delta. Some servers give every call index 0, or none. */
static struct llm_piece *call_piece(struct llm_reader *reader, const json_t *call, bool is_whole)
{
    struct llm_piece *last = NULL;
    struct str id = json_get_str(call, "id");
    int64_t index = llm_count(call, "index"), highest = -1;
    for (size_t i = 0; i < reader->piece_count; i++) {
        struct llm_piece *piece = &reader->pieces[i];
        highest = piece->index > highest ? piece->index : highest;
        if (piece->index >= 0 && (index < 0 || piece->index == index))
            last = piece;
    }
    bool other = last && id.len > 0 && last->id.len > 0 && !str_eq(id, buf_str(&last->id));
    if (!last || other || (is_whole && index < 0))
        last = llm_reader_new_piece(reader, index < 0 ? highest + 1 : index);
    return last;
}

static void read_call(struct llm_reader *reader, const json_t *call, bool is_whole)
{
    const json_t *function = json_object_get(call, "function");
    const json_t *arguments = json_object_get(function, "arguments");
    struct llm_piece *piece = json_is_object(call) ? call_piece(reader, call, is_whole) : NULL;
    if (!piece)
        return;
    if (piece->id.len == 0)
        llm_reader_add(reader, &piece->id, json_get_str(call, "id"));
    if (piece->name.len == 0)
        llm_reader_add(reader, &piece->name, json_get_str(function, "name"));
    if (json_is_object(arguments)) {
        own_str text = json_write(arguments, JSON_COMPACT);
        llm_reader_add(reader, &piece->text, str_of(text));
    } else {
        llm_reader_add(reader, &piece->text, json_str(arguments));
    }
}

static void read_text(struct llm_reader *reader, const json_t *content)
{
    struct llm_piece *piece;
    size_t i;
    json_t *part;
    if (json_str(content).len > 0 && (piece = llm_reader_piece(reader, TEXT_PIECE)))
        llm_reader_say(reader, &piece->text, json_str(content));
    json_array_foreach (content, i, part)
        if (llm_part_is(part, "text") && (piece = llm_reader_piece(reader, TEXT_PIECE)))
            llm_reader_say(reader, &piece->text, json_get_str(part, "text"));
}

static void read_reasoning(struct llm_reader *reader, const json_t *delta)
{
    static const char *const names[] = { "reasoning_content", "reasoning" };
    for (size_t i = 0; i < array_len(names); i++) {
        struct str text = json_get_str(delta, names[i]);
        struct llm_piece *piece = text.len > 0 ? llm_reader_piece(reader, REASONING_PIECE) : NULL;
        if (!piece)
            continue;
        if (piece->name.len == 0)
            llm_reader_add(reader, &piece->name, str_of(names[i]));
        if (str_is(buf_str(&piece->name), names[i])) /* both names at once: the same text twice */
            llm_reader_add(reader, &piece->text, text);
    }
}

static void read_finish(struct llm_reader *reader, struct str reason)
{
    static const struct {
        const char *name;
        enum llm_stop stop;
    } rows[] = { { "stop", LLM_STOP_END },
                 { "tool_calls", LLM_STOP_TOOLS },
                 { "function_call", LLM_STOP_TOOLS },
                 { "length", LLM_STOP_LENGTH } };
    if (reason.len == 0)
        return;
    reader->finished = true;
    reader->filtered = reader->filtered || str_is(reason, "content_filter");
    reader->reply->stop = LLM_STOP_OTHER;
    for (size_t i = 0; i < array_len(rows); i++)
        if (str_is(reason, rows[i].name))
            reader->reply->stop = rows[i].stop;
}

static void read_delta(struct llm_reader *reader, const json_t *delta, bool is_whole)
{
    struct str refusal = json_get_str(delta, "refusal");
    size_t i;
    json_t *call;
    read_reasoning(reader, delta);
    read_text(reader, json_object_get(delta, "content"));
    json_array_foreach (json_object_get(delta, "tool_calls"), i, call)
        read_call(reader, call, is_whole);
    if (refusal.len > 0 && reader->reply->outcome == LLM_OK) {
        size_t have = strlen(reader->reply->detail);
        reader->filtered = true;
        str_plain(reader->reply->detail + have, sizeof reader->reply->detail - have, refusal);
    }
}

static void event(struct llm_reader *reader, const json_t *data)
{
    const json_t *choice = json_array_get(json_object_get(data, "choices"), 0);
    read_usage(&reader->reply->usage, json_object_get(data, "usage"));
    if (!json_is_object(choice))
        return;
    reader->began = true;
    read_delta(reader, json_object_get(choice, "delta"), false);
    read_finish(reader, json_get_str(choice, "finish_reason"));
}

static void whole(struct llm_reader *reader, const json_t *body)
{
    const json_t *choice = json_array_get(json_object_get(body, "choices"), 0);
    read_usage(&reader->reply->usage, json_object_get(body, "usage"));
    if (!json_is_object(json_object_get(choice, "message")))
        return;
    read_delta(reader, json_object_get(choice, "message"), true);
    read_finish(reader, json_get_str(choice, "finish_reason"));
    reader->began = reader->ended = true;
}

static int collect_call(struct llm_reader *reader, const struct llm_piece *piece, bool is_last,
                        json_t *parts)
{
    bool length = reader->reply->stop == LLM_STOP_LENGTH;
    own_json text = json_text(buf_str(&piece->text));
    int rc = llm_parts_call(parts, buf_str(&piece->id), buf_str(&piece->name),
                            length && is_last ? NULL : llm_call_arguments(text), reader->made_ids);
    return length ? 0 : rc;
}

/* Servers that do not know a model's thinking tags leave them in its text. */
static struct str after_thinking(struct str text)
{
    static const struct str open = { "<think>", 7 }, close = { "</think>", 8 };
    struct str rest = text;
    while (rest.len > 0 && strchr(" \t\r\n", rest.at[0]))
        rest = (struct str){ rest.at + 1, rest.len - 1 };
    if (rest.len < open.len || memcmp(rest.at, open.at, open.len) != 0)
        return text;
    const char *end = memmem(rest.at, rest.len, close.at, close.len);
    if (!end)
        return text;
    rest = (struct str){ end + close.len, (size_t)(rest.at + rest.len - end) - close.len };
    while (rest.len > 0 && strchr("\r\n", rest.at[0]))
        rest = (struct str){ rest.at + 1, rest.len - 1 };
    return rest;
}

static int collect(struct llm_reader *reader, json_t *parts)
{
    size_t i, count = reader->piece_count;
    const struct llm_piece *pieces = reader->pieces;
    for (i = 0; i < count; i++)
        if (pieces[i].index == REASONING_PIECE) {
            json_t *block = json_object();
            json_object_set_new(block, buf_str(&pieces[i].name).at,
                                json_text(buf_str(&pieces[i].text)));
            llm_parts_raw(parts, WIRE, block);
        }
    for (i = 0; i < count; i++)
        if (pieces[i].index == TEXT_PIECE)
            llm_parts_text(parts, after_thinking(buf_str(&pieces[i].text)));
    for (i = 0; i < count; i++)
        if (pieces[i].index >= 0 && collect_call(reader, &pieces[i], i + 1 == count, parts) < 0)
            return -1;
    return 0;
}

const struct llm_wire llm_wire_chat = { WIRE, "/chat/completions", encode, event, whole, collect };
