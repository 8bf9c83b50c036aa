/* Models behind a server: writes and sends a request, reads the reply as it streams. Runs in the
 * task's process. The key lives in the model's memory and in the request's header, and is cut out
 * of every answer. */
#include "llm/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"
#include "llm/http.h"
#include "llm/llm_int.h"
#include "net/sse.h"
#include "llm/target.h"
#include "llm/wire.h"

#define CONNECT_MS 10000
#define FIRST_BYTE_MS 300000 /* a local model may still load, another one thinks */
#define IDLE_MS 120000
#define PROBE_MS 3000
#define STREAM_MAX ((size_t)64 << 20)
#define BODY_MAX ((size_t)8 << 20)
#define SECRET_MIN 16
#define PART_MIN 4 /* so many bytes of a key give it away */
#define HINT_NETWORK "check the network, the proxy settings and the base URL"
#define HINT_TRUST "check the base URL; SSL_CERT_FILE names a file of certificates to trust"
#define HINT_PAGE "a proxy or a web site answered: check the base URL and the proxy settings"

struct server {
    struct net_http *http;
    struct llm_target target;
    struct llm_dialect dialect;
    bool shares; /* the target is another model's, which stays open for longer */
};

enum shape { UNSEEN, EVENTS, OBJECT, PAGE };

struct hearing {
    struct llm_http_call call;
    struct llm_reader reader;
    struct net_sse sse;
    enum shape shape;
    struct buf body; /* of an answer that is not a stream */
    bool full;
    const char *key; /* as sent; NULL: none */
};

/* ---- the request ---- */

/* Anthropic's base URL has no version, but some people add it. */
static char *url_of(const struct llm_target *target, const char *path)
{
    own_buf url = BUF_INIT(8192);
    size_t len = strlen(target->base_url);
    bool versioned = len > 3 && strcmp(target->base_url + len - 3, "/v1") == 0;
    if (versioned && strncmp(path, "/v1/", 4) == 0)
        path += 3;
    buf_printf(&url, "%s%s", target->base_url, path);
    return buf_take(&url);
}

/* The header with the key; heap, or NULL. */
static char *key_line(const struct llm_target *target)
{
    own_buf line = BUF_INIT(8192);
    if (!target->key)
        return NULL;
    buf_printf(&line, "%s%s",
               target->wire == &llm_wire_anthropic ? "x-api-key: " : "authorization: Bearer ",
               target->key);
    return buf_take(&line);
}

static const char *version_line(const struct llm_target *target)
{
    return target->wire == &llm_wire_anthropic ? "anthropic-version: 2026-10-21" : "accept: */*";
}

static void forget_line(char **line)
{
    if (*line)
        explicit_bzero(*line, strlen(*line));
    free(*line);
}

/* ---- the reply ---- */

static void on_event(void *user, struct str name, struct str data)
{
    struct hearing *hearing = user;
    (void)name; /* the data names its type too */
    llm_reader_event(&hearing->reader, data);
}

static enum shape shape_of(struct str bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        if (!memchr(" \t\r\n\xef\xbb\xbf", bytes.at[i], 7))
            return bytes.at[i] == '{' ? OBJECT : bytes.at[i] == '<' ? PAGE : EVENTS;
    return UNSEEN;
}

/* A server that echoes its request must not put the key into texts, transcripts and code.
 * Placeholder keys ("ollama", "EMPTY") are no secret and stay. True if there was one. */
static bool cut_out_of_reply(struct str bytes, const char *key)
{
    size_t len = key ? strlen(key) : 0;
    bool found = false;
    for (char *at; len >= SECRET_MIN && (at = memmem(bytes.at, bytes.len, key, len));) {
        memset(at, '*', len);
        found = true;
    }
    return found;
}

/* For the joined pieces. Blocks that go back unchanged stay. */
static void cut_out_of_parts(json_t *value, const char *key)
{
    size_t i;
    const char *name;
    json_t *inner;
    if (llm_part_is(value, "raw"))
        return;
    json_array_foreach (value, i, inner)
        cut_out_of_parts(inner, key);
    json_object_foreach (value, name, inner)
        cut_out_of_parts(inner, key);
    if (!json_is_string(value))
        return;
    own_str text = buf_strdup(json_str(value));
    size_t len = json_str(value).len;
    if (cut_out_of_reply((struct str){ text, len }, key))
        json_string_setn(value, text, len);
}

static int on_bytes(void *user, struct str bytes)
{
    struct hearing *hearing = user;
    cut_out_of_reply(bytes, hearing->key);
    struct llm_reply *reply = hearing->reader.reply;
    bool good = hearing->call.status >= 200 && hearing->call.status < 300;
    if (good && hearing->shape == UNSEEN)
        hearing->shape = shape_of(bytes);
    if (!good || hearing->shape == OBJECT || hearing->shape == PAGE) {
        hearing->full = buf_add_str(&hearing->body, bytes) < 0;
        return hearing->full ? 1 : 0;
    }
    if (net_sse_feed(&hearing->sse, bytes) < 0)
        llm_fail(reply, LLM_TOO_LONG, "use another model", "an event exceeds %zu MiB",
                 NET_SSE_EVENT_MAX >> 20);
    if (reply->outcome != LLM_OK)
        return -1;
    return hearing->reader.ended ? 1 : 0;
}

static void judge_status(const struct hearing *hearing, struct llm_reply *reply)
{
    struct err err = ERR_INIT;
    const struct llm_http_call *call = &hearing->call;
    own_json body = json_read(buf_str(&hearing->body), BODY_MAX, &err);
    llm_error_judge(reply, call->status, body);
    if (!body && shape_of(buf_str(&hearing->body)) == PAGE)
        llm_fail(reply, reply->outcome, HINT_PAGE, "HTTP %d with a web page", call->status);
    /* Anthropic names a time to retry, except for a spending limit. */
    if (call->status == 429 && reply->outcome == LLM_RATE && call->retry_after_s < 0 &&
        hearing->reader.wire == &llm_wire_anthropic)
        reply->outcome = LLM_QUOTA;
    if (reply->outcome == LLM_RATE && call->retry_after_s > 0)
        snprintf(reply->hint, sizeof reply->hint,
                 "the server asks to wait %.0f s; or use another model", call->retry_after_s);
}

static void judge_body(struct hearing *hearing)
{
    struct llm_reply *reply = hearing->reader.reply;
    if (hearing->shape == PAGE)
        llm_fail(reply, LLM_GARBAGE, HINT_PAGE, "the reply is a web page");
    else if (hearing->full)
        llm_fail(reply, LLM_TOO_LONG, "use another model", "the reply exceeds %zu MiB",
                 BODY_MAX >> 20);
    else if (hearing->shape == OBJECT)
        llm_reader_whole(&hearing->reader, buf_str(&hearing->body));
    llm_reader_end(&hearing->reader);
}

static void judge_loss(const struct hearing *hearing, enum llm_outcome outcome, int64_t deadline_ms,
                       struct llm_reply *reply)
{
    const struct llm_http_call *call = &hearing->call;
    const char *url = call->url;
    if (reply->outcome != LLM_OK)
        return; /* the reader's verdict comes first */
    if (outcome == LLM_TIMEOUT && llm_is_late(deadline_ms))
        llm_fail(reply, outcome, "give the task more time", "no complete reply in time");
    else if (outcome == LLM_TIMEOUT)
        llm_fail(reply, outcome, "try again, or use another model", "silence for %d s from %.200s",
                 (call->bytes > 0 ? call->idle_ms : call->first_byte_ms) / 1000, url);
    else if (outcome == LLM_CANCELLED)
        llm_fail(reply, outcome, NULL, "cancelled while the model replied");
    else if (outcome == LLM_TOO_LONG)
        llm_fail(reply, outcome, "use another model", "the reply exceeds %zu MiB",
                 call->max_bytes >> 20);
    else if (outcome == LLM_BROKEN)
        llm_fail(reply, outcome, "try again", "the reply was cut off: %s", call->detail);
    else
        llm_fail(reply, outcome, call->never_retry ? HINT_TRUST : HINT_NETWORK, "%.200s: %s", url,
                 call->detail);
}

static void cut_out(char *text, const char *key)
{
    size_t len = key ? strlen(key) : 0, left = strlen(text);
    for (char *at; len > 0 && (at = strstr(text, key));)
        memset(at, '*', len);
    /* A cut text may end in the first bytes of the key. */
    for (size_t most = len < left ? len : left; most >= PART_MIN; most--)
        if (memcmp(text + left - most, key, most) == 0) {
            memset(text + left - most, '*', most);
            return;
        }
}

static void ask(struct llm_model *model, struct llm_try *try)
{
    struct server *server = model->state;
    const struct llm_target *target = &server->target;
    struct llm_reply *reply = try->reply;
    own_json request = target->wire->encode(&server->dialect, try->request);
    own_str body = json_write(request, JSON_COMPACT);
    own_str url = url_of(target, target->wire->path);
    attr_cleanup(forget_line) char *key = key_line(target);
    struct hearing hearing = { .body = BUF_INIT(BODY_MAX), .key = target->key };
    hearing.call = (struct llm_http_call){
        .url = url,
        .headers = { "content-type: application/json", version_line(target), key },
        .body = str_of(body),
        .deadline_ms = try->request->deadline_ms,
        .cancel_fd = try->watch->cancel_fd,
        .connect_ms = CONNECT_MS,
        .first_byte_ms = FIRST_BYTE_MS,
        .idle_ms = IDLE_MS,
        .max_bytes = STREAM_MAX,
        .on_bytes = on_bytes,
        .user = &hearing,
    };
    net_sse_start(&hearing.sse, on_event, &hearing);
    llm_reader_start(&hearing.reader, target->wire, try->watch, reply, &model->made_ids);
    enum llm_outcome outcome = llm_http_do(server->http, &hearing.call);
    bool whole = hearing.reader.ended || hearing.reader.finished;
    int status = hearing.call.status;
    if (outcome == LLM_OK && (status < 200 || status >= 300))
        judge_status(&hearing, reply);
    else if (outcome == LLM_OK || (whole && outcome != LLM_CANCELLED))
        judge_body(&hearing);
    else
        judge_loss(&hearing, outcome, try->request->deadline_ms, reply);
    try->streamed = hearing.reader.began;
    try->least_wait_s = hearing.call.retry_after_s;
    try->never_retry = hearing.call.never_retry;
    str_plain(reply->id, sizeof reply->id, str_of(hearing.call.id));
    cut_out(reply->detail, target->key);
    cut_out(reply->id, target->key);
    if (reply->outcome == LLM_OK) {
        cut_out_of_parts(reply->content, target->key);
        cut_out_of_reply(str_of(reply->text), target->key);
    }
    llm_reader_done(&hearing.reader);
    net_sse_done(&hearing.sse);
    buf_done(&hearing.body);
}

/* ---- open, close ---- */

static void close_server(void *state)
{
    struct server *server = state;
    net_http_close(server->http);
    if (!server->shares)
        llm_target_done(&server->target);
    free(server);
}

static void *again(struct llm_model *model, struct err *err)
{
    const struct server *from = model->state;
    struct net_http *http = NULL;
    if (net_http_again(from->http, &http, err) < 0)
        return NULL;
    struct server *server = buf_alloc_zero(1, sizeof *server);
    *server = (struct server){ http, from->target, from->dialect, .shares = true };
    return server;
}

/* A core file would hold the key. Done after rights are dropped: programs started before have their
 * own limit. */
static int ready(struct llm_model *model, struct err *err)
{
    const struct rlimit none = { 0, 0 };
    if (setrlimit(RLIMIT_CORE, &none) < 0)
        return err_sys(err, "disable core files for the key of '%.200s'", model->name);
    return 0;
}

/* "gpt-6.1-sol" and "o4-mini", on any server; "gpt-oss" is served by anybody. */
static bool is_openai_name(const char *model)
{
    const char *slash = strrchr(model, '/'), *name = slash ? slash + 1 : model;
    size_t skip = strncmp(name, "gpt-", 4) == 0 ? 4 : name[0] == 'o' ? 1 : 0;
    return skip > 0 && name[skip] >= '0' && name[skip] <= '9';
}

/* Models without reasoning refuse this option. */
static bool seals_reasoning(const char *model)
{
    static const char *const without[] = { "gpt-3", "gpt-4", "chatgpt-" };
    for (size_t i = 0; i < array_len(without); i++)
        if (strncmp(model, without[i], strlen(without[i])) == 0)
            return false;
    return true;
}

static int check_key(const struct llm_target *target, struct err *err)
{
    if (target->key_from != LLM_KEY_MISSING)
        return 0;
    own_str path = llm_config_path("keys.json");
    err_set(err, ERR_ABSENT, "no key for '%s'", target->provider->name);
    err_hint(err, "set %s, or put {\"%s\":\"...\"} into '%.200s' with mode 600",
             target->provider->key_variable, target->provider->name, path ? path : "keys.json");
    return -1;
}

int llm_server_open(const char *spec, struct llm_model *model, struct err *err)
{
    static const struct llm_backend backend = { ready, again, ask, close_server };
    struct server *server = buf_alloc_zero(1, sizeof *server);
    struct llm_target *target = &server->target;
    if (llm_target_find(spec, target, err) < 0 || llm_target_find_key(target, err) < 0 ||
        check_key(target, err) < 0 || net_http_open(&server->http, err) < 0) {
        close_server(server);
        return -1;
    }
    server->dialect = (struct llm_dialect){
        .model = target->model,
        .new_names = is_openai_name(target->model),
        .seals = seals_reasoning(target->model),
    };
    free(model->name);
    model->name = buf_strdup(str_of(target->name));
    model->backend = &backend;
    model->state = server;
    model->sees = target->sees;
    model->calls_tools = target->calls_tools;
    return 0;
}

/* ---- probing ---- */

static int on_probe_bytes(void *user, struct str bytes)
{
    return buf_add_str(user, bytes) < 0 ? 1 : 0;
}

int llm_server_probe(const struct llm_target *target, json_t **out_models, char *detail,
                     size_t room)
{
    struct err err = ERR_INIT;
    struct net_http *http = NULL;
    own_buf body = BUF_INIT(BODY_MAX);
    own_str url = url_of(target, target->wire == &llm_wire_anthropic ? "/v1/models" : "/models");
    attr_cleanup(forget_line) char *key = key_line(target);
    struct llm_http_call call = { .url = url,
                                  .headers = { version_line(target), key },
                                  .cancel_fd = -1,
                                  .connect_ms = PROBE_MS,
                                  .first_byte_ms = PROBE_MS,
                                  .idle_ms = PROBE_MS,
                                  .deadline_ms = llm_now_ms() + 2 * PROBE_MS,
                                  .max_bytes = BODY_MAX,
                                  .on_bytes = on_probe_bytes,
                                  .user = &body };
    *out_models = NULL;
    if (net_http_open(&http, &err) < 0) {
        str_plain(detail, room, str_of(err.text));
        return -1;
    }
    enum llm_outcome outcome = llm_http_do(http, &call);
    net_http_close(http);
    own_json listed = json_read(buf_str(&body), BODY_MAX, &err);
    if (outcome == LLM_OK && call.status == 200 && json_is_object(listed)) {
        *out_models = take_ptr(listed);
        str_plain(detail, room, STR(""));
        return 0;
    }
    struct llm_reply reply = { .outcome = LLM_OK };
    if (outcome == LLM_OK)
        llm_error_judge(&reply, call.status, listed);
    else
        llm_fail(&reply, outcome, NULL, "%s",
                 call.detail[0] ? call.detail : llm_outcome_name(outcome));
    cut_out(reply.detail, target->key);
    str_plain(detail, room, str_of(reply.detail));
    /* A server without a model list is fine; one that denies access is useless. */
    return reply.outcome == LLM_UNKNOWN_MODEL ? 0 : -1;
}
