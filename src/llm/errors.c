/* Classifies a server's refusal by its status and text. Servers of the same wire word it
 * differently, so one table serves all: the first matching row wins. Runs in the task's process. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "llm/llm_int.h"
#include "llm/wire.h"

#define HINT_QUOTA "add credit or raise the spending limit at the provider, or use another model"
#define HINT_CONTEXT "ask with less data, or use a model with a larger window"
#define HINT_AUTH "check the model's key: its variable or keys.json (see cupel models)"
#define HINT_MODEL "check the model's name, e.g. with cupel models"
#define HINT_WAIT "wait a little, or use another model"
#define HINT_REFUSED "rephrase the question"
#define HINT_REDIRECT "set the base URL to the redirect's target: redirects are not followed"

struct row {
    int from, to;     /* HTTP status; 0: any, and errors inside a stream */
    const char *word; /* an exact type or code, or a part of the message; NULL: any */
    enum llm_outcome outcome;
    const char *hint;
};

static const struct row rows[] = {
    { 0, 0, "insufficient_quota", LLM_QUOTA, HINT_QUOTA },
    { 0, 0, "enforced_spend_limit_reached", LLM_QUOTA, HINT_QUOTA },
    { 0, 0, "credit_balance_exhausted", LLM_QUOTA, HINT_QUOTA },
    { 0, 0, "organization_spend_limit_exceeded", LLM_QUOTA, HINT_QUOTA },
    { 0, 0, "project_spend_limit_exceeded", LLM_QUOTA, HINT_QUOTA },
    { 0, 0, "organization_usage_limit_exceeded", LLM_QUOTA, HINT_QUOTA },
    { 0, 0, "billing_hard_limit_reached", LLM_QUOTA, HINT_QUOTA },
    { 0, 0, "billing_error", LLM_QUOTA, HINT_QUOTA },
    { 0, 0, "credit balance is too low", LLM_QUOTA, HINT_QUOTA },
    { 0, 0, "API usage limits", LLM_QUOTA, HINT_QUOTA },
    { 402, 402, NULL, LLM_QUOTA, HINT_QUOTA },
    { 0, 0, "context_length_exceeded", LLM_CONTEXT, HINT_CONTEXT },
    { 0, 0, "exceed_context_size_error", LLM_CONTEXT, HINT_CONTEXT },
    { 0, 0, "request_too_large", LLM_CONTEXT, HINT_CONTEXT },
    { 0, 0, "prompt is too long", LLM_CONTEXT, HINT_CONTEXT },
    { 0, 0, "maximum context length", LLM_CONTEXT, HINT_CONTEXT },
    { 0, 0, "context window", LLM_CONTEXT, HINT_CONTEXT },
    { 0, 0, "context size", LLM_CONTEXT, HINT_CONTEXT },
    { 413, 413, NULL, LLM_CONTEXT, HINT_CONTEXT },
    { 0, 0, "authentication_error", LLM_AUTH, HINT_AUTH },
    { 0, 0, "permission_error", LLM_AUTH, HINT_AUTH },
    { 0, 0, "invalid_api_key", LLM_AUTH, HINT_AUTH },
    { 401, 401, NULL, LLM_AUTH, HINT_AUTH },
    { 403, 403, NULL, LLM_AUTH, HINT_AUTH },
    { 407, 407, NULL, LLM_AUTH, "the proxy requires a name and a password: see https_proxy" },
    { 0, 0, "model_not_found", LLM_UNKNOWN_MODEL, HINT_MODEL },
    { 0, 0, "not_found_error", LLM_UNKNOWN_MODEL, HINT_MODEL },
    { 404, 404, NULL, LLM_UNKNOWN_MODEL, HINT_MODEL },
    { 0, 0, "content_policy_violation", LLM_REFUSED, HINT_REFUSED },
    { 0, 0, "content_filter", LLM_REFUSED, HINT_REFUSED },
    { 0, 0, "rate_limit_error", LLM_RATE, HINT_WAIT },
    { 0, 0, "rate_limit_exceeded", LLM_RATE, HINT_WAIT },
    { 0, 0, "slow_down", LLM_RATE, HINT_WAIT },
    { 429, 429, NULL, LLM_RATE, HINT_WAIT },
    { 0, 0, "overloaded_error", LLM_OVERLOADED, HINT_WAIT },
    { 0, 0, "server_is_overloaded", LLM_OVERLOADED, HINT_WAIT },
    { 0, 0, "unavailable_error", LLM_OVERLOADED, HINT_WAIT },
    { 0, 0, "timeout_error", LLM_OVERLOADED, HINT_WAIT },
    { 0, 0, "api_error", LLM_OVERLOADED, HINT_WAIT },
    { 0, 0, "server_error", LLM_OVERLOADED, HINT_WAIT },
    { 408, 409, NULL, LLM_OVERLOADED, HINT_WAIT },
    { 500, 599, NULL, LLM_OVERLOADED, HINT_WAIT },
    { 300, 399, NULL, LLM_GARBAGE, HINT_REDIRECT },
    { 400, 499, NULL, LLM_BAD_REQUEST, "the server rejects this request: see the detail" },
    { 0, 0, "invalid_request_error", LLM_BAD_REQUEST,
      "the server rejects this request: see the detail" },
    { 0, 0, NULL, LLM_OVERLOADED, HINT_WAIT },
};

/* The strings of an error object; views of the body. */
struct words {
    struct str said[4]; /* type, code, the code in its details, message */
};
enum { MESSAGE = 3 };

static struct words read_words(const json_t *body)
{
    const json_t *error = json_object_get(body, "error");
    const json_t *from = json_is_object(error) ? error : body;
    struct words words = { { json_get_str(from, "type"), json_get_str(from, "code"),
                             json_get_str(json_object_get(from, "details"), "error_code"),
                             json_get_str(from, "message") } };
    if (json_is_string(error))
        words.said[MESSAGE] = json_str(error);
    if (words.said[MESSAGE].len == 0) /* servers made with FastAPI */
        words.said[MESSAGE] = json_get_str(body, "detail");
    return words;
}

static bool fits(const struct row *row, int status, const struct words *words)
{
    if (row->from > 0 && (status < row->from || status > row->to))
        return false;
    if (!row->word)
        return true;
    for (size_t i = 0; i < MESSAGE; i++)
        if (str_is(words->said[i], row->word))
            return true;
    struct str message = words->said[MESSAGE];
    return message.len > 0 && memmem(message.at, message.len, row->word, strlen(row->word));
}

void llm_error_judge(struct llm_reply *reply, int status, const json_t *body)
{
    struct words words = read_words(body);
    const struct row *row = rows;
    char where[32] = "in the stream";
    while (!fits(row, status, &words))
        row++;
    if (status > 0)
        snprintf(where, sizeof where, "HTTP %d", status);
    struct str type = words.said[0].len > 0 ? words.said[0] : words.said[1];
    struct str message = words.said[MESSAGE];
    llm_fail(reply, row->outcome, row->hint, "%s%s%.*s%s%.*s", where, type.len > 0 ? ", " : "",
             (int)str_cut_utf8(type, 100), type.len > 0 ? type.at : "", message.len > 0 ? ": " : "",
             (int)str_cut_utf8(message, 380), message.len > 0 ? message.at : "");
}
