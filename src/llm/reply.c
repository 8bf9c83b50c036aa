/* Fills, fails and frees replies, and reads the plain JSON of exec: and replay:. Runs in the task's
 * process; every byte of a reply is hostile. */
#include "llm/reply.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/own.h"
#include "llm/llm_int.h"

#define NAME_MAX_BYTES 64 /* of a tool */
#define COUNT_MAX INT64_C(1000000000000) /* tokens of one reply */

const char *llm_outcome_name(enum llm_outcome outcome)
{
    static const char *const names[] = {
#define X(id, name, retried) name,
        LLM_OUTCOMES(X)
#undef X
    };
    return (size_t)outcome < array_len(names) ? names[outcome] : "unknown";
}

static void forget_content(struct llm_reply *reply)
{
    json_decref(reply->content);
    free(reply->text);
    reply->content = NULL;
    reply->text = NULL;
}

void llm_fail(struct llm_reply *reply, enum llm_outcome outcome, const char *hint, const char *fmt,
              ...)
{
    char detail[2048];
    va_list args;
    va_start(args, fmt);
    vsnprintf(detail, sizeof detail, fmt, args);
    va_end(args);
    forget_content(reply);
    reply->outcome = outcome;
    str_plain(reply->detail, sizeof reply->detail, str_of(detail));
    str_plain(reply->hint, sizeof reply->hint, str_of(hint ? hint : ""));
}

void llm_reply_done(struct llm_reply *reply)
{
    forget_content(reply);
}

void llm_parts_text(json_t *parts, struct str text)
{
    own_buf plain = BUF_INIT(SIZE_MAX / 2);
    const char *nul;
    while (text.len > 0 && (nul = memchr(text.at, 0, text.len))) {
        buf_add(&plain, text.at, (size_t)(nul - text.at));
        buf_add_text(&plain, "\xef\xbf\xbd");
        text = (struct str){ nul + 1, text.len - (size_t)(nul - text.at) - 1 };
    }
    buf_add_str(&plain, text);
    if (plain.len > 0)
        json_array_append_new(
            parts, json_pack("{s:s,s:o}", "type", "text", "text", json_text(buf_str(&plain))));
}

json_t *llm_call_arguments(const json_t *value)
{
    struct err err = ERR_INIT;
    if (json_is_object(value))
        return json_deep_copy(value);
    if (!value || json_is_null(value) || (json_is_string(value) && json_str(value).len == 0))
        return json_object();
    json_t *read = json_is_string(value) ? json_read(json_str(value), LLM_CONTENT_MAX, &err) : NULL;
    if (json_is_object(read))
        return read;
    json_decref(read);
    return NULL;
}

int llm_parts_call(json_t *parts, struct str id, struct str name, json_t *arguments,
                   unsigned *made_ids)
{
    char made[32], plain[NAME_MAX_BYTES + 1];
    size_t len = name.len < NAME_MAX_BYTES ? name.len : NAME_MAX_BYTES;
    if (len == 0 || !arguments) {
        json_decref(arguments);
        return -1;
    }
    for (size_t i = 0; i < len; i++) {
        bool allowed = isascii(name.at[i]) && (isalnum(name.at[i]) || strchr("_-", name.at[i]));
        plain[i] = allowed ? name.at[i] : '_';
    }
    plain[len] = 0;
    snprintf(made, sizeof made, "call_%u", ++*made_ids);
    json_array_append_new(parts, json_pack("{s:s,s:o,s:s,s:o}", "type", "tool_call", "id",
                                           json_text(id.len > 0 ? id : str_of(made)), "name", plain,
                                           "arguments", arguments));
    return 0;
}

void llm_parts_raw(json_t *parts, const char *wire, json_t *block)
{
    json_array_append_new(parts,
                          json_pack("{s:s,s:s,s:o}", "type", "raw", "wire", wire, "block", block));
}

bool llm_part_is(const json_t *part, const char *type)
{
    return str_is(json_str(json_object_get(part, "type")), type);
}

bool llm_parts_have(const json_t *parts, const char *type)
{
    size_t i;
    json_t *part;
    json_array_foreach (parts, i, part)
        if (llm_part_is(part, type))
            return true;
    return false;
}

void llm_reply_take(struct llm_reply *reply, json_t *parts)
{
    own_buf text = BUF_INIT(8 * LLM_CONTENT_MAX); /* an invalid byte becomes three */
    size_t i;
    json_t *part;
    json_array_foreach (parts, i, part)
        if (llm_part_is(part, "text"))
            buf_add_str(&text, json_str(json_object_get(part, "text")));
    forget_content(reply);
    reply->outcome = LLM_OK;
    reply->content = parts;
    reply->text = buf_take(&text);
}

int64_t llm_count(const json_t *object, const char *field)
{
    const json_t *value = json_object_get(object, field);
    int64_t count = json_is_integer(value) ? json_integer_value(value) : -1;
    return count >= 0 && count <= COUNT_MAX ? count : -1;
}

int64_t llm_input_without(int64_t all, int64_t cache_read, int64_t cache_write)
{
    int64_t cached = (cache_read > 0 ? cache_read : 0) + (cache_write > 0 ? cache_write : 0);
    return all < 0 ? -1 : cached > all ? 0 : all - cached;
}

/* -1 if a call is malformed. */
static int plain_calls(const json_t *calls, json_t *parts, unsigned *made_ids)
{
    size_t i;
    json_t *call;
    if (calls && !json_is_null(calls) && !json_is_array(calls))
        return -1;
    json_array_foreach (calls, i, call) {
        if (llm_parts_call(parts, json_str(json_object_get(call, "id")),
                           json_str(json_object_get(call, "name")),
                           llm_call_arguments(json_object_get(call, "arguments")), made_ids) < 0)
            return -1;
    }
    return 0;
}

static bool fail_by_length(struct str text, struct llm_reply *reply)
{
    if (text.len > LLM_CONTENT_MAX)
        llm_fail(reply, LLM_TOO_LONG, "a reply is readable text",
                 "the reply has %zu bytes of text, the maximum is %u", text.len, LLM_CONTENT_MAX);
    return text.len > LLM_CONTENT_MAX;
}

void llm_plain_reply(struct llm_model *model, const json_t *value, struct llm_try *try)
{
    const json_t *text = json_object_get(value, "text"), *usage = json_object_get(value, "usage");
    const json_t *calls = json_object_get(value, "tool_calls");
    struct llm_reply *reply = try->reply;
    if ((text && !json_is_string(text) && !json_is_null(text)) || (!text && !calls)) {
        llm_fail(reply, LLM_GARBAGE, "a reply is {\"text\",\"tool_calls\"?,\"usage\"?}",
                 "field 'text' of a reply is not a string");
        return;
    }
    if (fail_by_length(json_str(text), reply))
        return;
    own_json parts = json_array();
    llm_parts_text(parts, json_str(text));
    if (plain_calls(calls, parts, &model->made_ids) < 0) {
        llm_fail(reply, LLM_GARBAGE, "a tool call is {\"name\",\"arguments\":{...}}",
                 "a reply has a tool call that is malformed");
        return;
    }
    reply->stop = llm_parts_have(parts, "tool_call") ? LLM_STOP_TOOLS : LLM_STOP_END;
    reply->usage = (struct llm_usage){
        .input = llm_count(usage, "input_tokens"),
        .cache_read = llm_count(usage, "cache_read_tokens"),
        .cache_write = llm_count(usage, "cache_write_tokens"),
        .output = llm_count(usage, "output_tokens"),
        .reasoning = llm_count(usage, "reasoning_tokens"),
    };
    llm_reply_take(reply, take_ptr(parts));
    if (try->watch->on_text && json_str(text).len > 0)
        try->watch->on_text(try->watch->user, json_str(text));
}

void llm_plain_text(struct str text, struct llm_try *try)
{
    if (fail_by_length(text, try->reply))
        return;
    json_t *parts = json_array();
    llm_parts_text(parts, text);
    try->reply->stop = LLM_STOP_END;
    llm_reply_take(try->reply, parts);
    if (try->watch->on_text && text.len > 0)
        try->watch->on_text(try->watch->user, str_of(try->reply->text));
}
