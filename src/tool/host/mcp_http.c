/* Servers by streamable HTTP. Runs in the tool host, in the threads of calls. Addresses, redirects
 * and sizes are guarded by src/net, as for HTTP tools. A response is one JSON message or a stream
 * of events; of a stream the message with our id counts, and a request in it gets its reply. */
#include "tool/host/mcp_http.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "net/pool.h"
#include "net/sse.h"

#define CONNECT_MS 10000
#define TELL_MS 2000
#define SESSION_MAX 1024
#define HEADERS_MAX 160
#define VALUE_MAX 4096
#define REPLIES_MAX 16 /* to requests of the server within one response */

struct mcp_http {
    const struct mcp_config *config;
    struct net_pool pool;
    pthread_mutex_t lock;
    char session[SESSION_MAX + 1]; /* of the legacy era, "" for none */
    char revision[16]; /* of the legacy era */
};

struct hearing {
    struct mcp_http *http;
    struct mcp_http_call *call;
    struct net_call net;
    struct net_sse sse;
    struct buf body;
    bool stream;
    unsigned replies;
    char session[SESSION_MAX + 1];
};

struct mcp_http *mcp_http_new(const struct mcp_config *config)
{
    struct mcp_http *http = buf_alloc_zero(1, sizeof *http);
    http->config = config;
    snprintf(http->revision, sizeof http->revision, "%s", MCP_LEGACY_REVISION);
    net_pool_init(&http->pool);
    pthread_mutex_init(&http->lock, NULL);
    return http;
}

void mcp_http_free(struct mcp_http *http)
{
    if (!http)
        return;
    net_pool_done(&http->pool);
    pthread_mutex_destroy(&http->lock);
    free(http);
}

/* ---- headers of a request ---- */

struct headers {
    char *at[HEADERS_MAX + 1];
    size_t count;
};

static void headers_done(struct headers *headers)
{
    for (size_t i = 0; i < headers->count; i++) {
        explicit_bzero(headers->at[i], strlen(headers->at[i]));
        free(headers->at[i]);
    }
}

/* A value that is no plain ASCII goes as "=?base64?...?=". */
static void add(struct headers *headers, const char *prefix, const char *name, struct str value)
{
    own_buf line = BUF_INIT(3 * VALUE_MAX);
    bool plain = value.len > 0 && value.at[0] != ' ' && value.at[value.len - 1] != ' ' &&
                 memmem(value.at, value.len, "=?", 2) != value.at;
    for (size_t i = 0; i < value.len; i++)
        plain = plain && value.at[i] >= ' ' && value.at[i] < 0x7f;
    if (value.len > VALUE_MAX || headers->count == HEADERS_MAX)
        return;
    own_json code = plain ? NULL : base64_json(value);
    if (plain)
        buf_printf(&line, "%s%s: %.*s", prefix, name, (int)value.len, value.at);
    else
        buf_printf(&line, "%s%s: =?base64?%s?=", prefix, name, json_string_value(code));
    headers->at[headers->count++] = buf_take(&line);
}

/* Arguments that the server's schema wants mirrored. */
static void add_mirrors(struct headers *headers, const struct mcp_http_call *call)
{
    const json_t *arguments = json_object_get(json_object_get(call->request, "params"),
                                              "arguments");
    const char *name;
    json_t *header;
    json_object_foreach ((json_t *)(uintptr_t)call->headers, name, header) {
        const json_t *value = json_object_get(arguments, name);
        own_buf text = BUF_INIT(VALUE_MAX);
        if (json_is_string(value))
            buf_add_str(&text, json_str(value));
        else if (json_is_integer(value) || json_is_boolean(value))
            json_add(&text, value);
        if (text.len > 0)
            add(headers, "mcp-param-", json_string_value(header), buf_str(&text));
    }
}

static void add_usual(struct mcp_http *http, struct headers *headers, const json_t *message,
                      enum mcp_era era)
{
    const json_t *params = json_object_get(message, "params");
    struct str method = json_get_str(message, "method"), name = json_get_str(params, "name");
    name = name.len > 0 ? name : json_get_str(params, "uri");
    for (size_t i = 0; http->config->headers && http->config->headers[i]; i++)
        headers->at[headers->count++] = buf_strdup(str_of(http->config->headers[i]));
    add(headers, "", "content-type", STR("application/json"));
    add(headers, "", "accept", STR("application/json, text/event-stream"));
    if (era == MCP_MODERN) {
        add(headers, "", "mcp-protocol-version", STR(MCP_MODERN_REVISION));
        add(headers, "", "mcp-method", method);
        if (name.len > 0)
            add(headers, "", "mcp-name", name);
        return;
    }
    char revision[sizeof http->revision];
    pthread_mutex_lock(&http->lock);
    if (http->session[0] && !str_is(method, "initialize"))
        add(headers, "", "mcp-session-id", str_of(http->session));
    memcpy(revision, http->revision, sizeof revision);
    pthread_mutex_unlock(&http->lock);
    if (!str_is(method, "initialize"))
        add(headers, "", "mcp-protocol-version", str_of(revision));
}

/* ---- the response ---- */

/* Takes the message. */
static void take_message(struct hearing *hearing, json_t *message)
{
    struct mcp_http_call *call = hearing->call;
    int64_t id = 0;
    enum mcp_kind kind = mcp_wire_kind_of(message, &id);
    bool error = json_object_get(message, "error") != NULL;
    bool ours = id == call->id || (id == 0 && error && call->status >= 400);
    if (kind == MCP_RESPONSE && ours && !call->answer) {
        call->answer = message;
        return;
    }
    if (kind == MCP_REQUEST && call->era != MCP_MODERN && hearing->replies++ < REPLIES_MAX)
        mcp_http_tell(hearing->http, mcp_wire_reply(message));
    json_decref(message);
}

static void on_event(void *user, struct str name, struct str data)
{
    struct hearing *hearing = user;
    struct err err = ERR_INIT;
    json_t *message = json_read(data, MCP_MESSAGE_MAX, &err);
    (void)name; /* "message" or nothing */
    if (message)
        take_message(hearing, message);
}

static void on_header(void *user, struct str name, struct str value)
{
    struct hearing *hearing = user;
    char text[64];
    if (!name.at) {
        hearing->stream = false;
        hearing->session[0] = 0;
        return;
    }
    str_plain(text, sizeof text, value);
    if (name.len == 12 && strncasecmp(name.at, "content-type", 12) == 0)
        hearing->stream = strncasecmp(text, "text/event-stream", 17) == 0;
    if (name.len != 14 || strncasecmp(name.at, "mcp-session-id", 14) != 0)
        return;
    for (size_t i = 0; i < value.len; i++)
        if (value.at[i] <= ' ' || value.at[i] >= 0x7f || value.len > SESSION_MAX)
            return;
    snprintf(hearing->session, sizeof hearing->session, "%.*s", (int)value.len, value.at);
}

static int on_bytes(void *user, struct str bytes)
{
    struct hearing *hearing = user;
    hearing->call->status = hearing->net.status;
    if (!hearing->stream)
        return buf_add_str(&hearing->body, bytes);
    if (net_sse_feed(&hearing->sse, bytes) < 0)
        return -1;
    return hearing->call->answer ? 1 : 0;
}

/* ---- an exchange ---- */

static enum net_outcome exchange(struct mcp_http *http, struct hearing *hearing,
                                 struct headers *headers, const char *method, struct str body,
                                 const struct mcp_wait *wait, struct err *err)
{
    struct net_http *handle = net_pool_take(&http->pool, err);
    int left = clock_poll_ms(wait->deadline_ns) + 1;
    hearing->net = (struct net_call){ .url = http->config->url,
                                      .method = method,
                                      .headers = (const char *const *)headers->at,
                                      .body = body,
                                      .reach = http->config->reach,
                                      .inflate = true,
                                      .deadline_ms = wait->deadline_ns / CLOCK_MS,
                                      .cancel_fd = wait->cancel_fd,
                                      .connect_ms = left < CONNECT_MS ? left : CONNECT_MS,
                                      .first_byte_ms = left,
                                      .idle_ms = left,
                                      .max_bytes = wait->max_bytes,
                                      .on_header = on_header,
                                      .on_bytes = on_bytes,
                                      .user = hearing };
    if (!handle)
        return NET_UNREACHED;
    enum net_outcome outcome = net_http_do(handle, &hearing->net);
    net_pool_give(&http->pool, handle);
    return outcome;
}

static void hearing_done(struct hearing *hearing)
{
    buf_done(&hearing->body);
    net_sse_done(&hearing->sse);
}

/* An exchange whose answer nobody reads. */
static void send_off(struct mcp_http *http, const char *method, struct headers *headers,
                     struct str body)
{
    struct err err = ERR_INIT;
    struct mcp_http_call call = { .id = -1, .era = MCP_MODERN };
    struct hearing hearing = { .http = http, .call = &call, .body = BUF_INIT(65536) };
    struct mcp_wait wait = { clock_now_ns() + TELL_MS * CLOCK_MS, -1, 65536 };
    net_sse_start(&hearing.sse, on_event, &hearing);
    exchange(http, &hearing, headers, method, body, &wait, &err);
    json_decref(call.answer);
    hearing_done(&hearing);
}

void mcp_http_tell(struct mcp_http *http, json_t *message)
{
    struct headers headers = { .count = 0 };
    own_str body = json_write(message, JSON_COMPACT);
    add_usual(http, &headers, message, MCP_LEGACY);
    send_off(http, "POST", &headers, str_of(body));
    headers_done(&headers);
    json_decref(message);
}

void mcp_http_agree(struct mcp_http *http, struct str revision)
{
    pthread_mutex_lock(&http->lock);
    str_plain(http->revision, sizeof http->revision, revision);
    pthread_mutex_unlock(&http->lock);
}

void mcp_http_forget(struct mcp_http *http, bool end)
{
    struct headers headers = { .count = 0 };
    pthread_mutex_lock(&http->lock);
    bool had = http->session[0];
    pthread_mutex_unlock(&http->lock);
    if (had && end) {
        add_usual(http, &headers, NULL, MCP_LEGACY);
        send_off(http, "DELETE", &headers, STR_NONE);
        headers_done(&headers);
    }
    pthread_mutex_lock(&http->lock);
    http->session[0] = 0;
    pthread_mutex_unlock(&http->lock);
}

static enum mcp_end judge(struct hearing *hearing, enum net_outcome outcome, struct err *err)
{
    struct mcp_http_call *call = hearing->call;
    char detail[200];
    str_plain(detail, sizeof detail, str_of(hearing->net.detail));
    call->status = hearing->net.status;
    if (call->answer)
        return MCP_ANSWERED;
    switch (outcome) {
    case NET_CANCELLED: return MCP_CANCELLED;
    case NET_TIMEOUT: return MCP_LATE;
    case NET_TOO_LONG:
        err_set(err, ERR_HOST, "its answer exceeds %zu bytes", hearing->net.max_bytes);
        return MCP_LOST;
    case NET_REFUSED:
        err_set(err, ERR_HOST, "%s", detail);
        err_hint(err, "\"private\": true allows it");
        return MCP_LOST;
    case NET_UNREACHED:
    case NET_BROKEN:
        if (err->kind == ERR_NONE)
            err_set(err, ERR_HOST, "%s", detail);
        return MCP_LOST;
    case NET_OK: break;
    }
    bool closed = call->status == 401 || call->status == 403;
    err_set(err, ERR_HOST, "HTTP %d without an answer%s", call->status,
            closed ? ": it wants an authorization header" : "");
    return MCP_LOST;
}

enum mcp_end mcp_http_ask(struct mcp_http *http, struct mcp_http_call *call, struct err *err)
{
    struct headers headers = { .count = 0 };
    struct err why = ERR_INIT;
    struct hearing hearing = { .http = http, .call = call, .body = BUF_INIT(MCP_MESSAGE_MAX) };
    own_str body = json_write(call->request, JSON_COMPACT);
    net_sse_start(&hearing.sse, on_event, &hearing);
    call->answer = NULL;
    add_usual(http, &headers, call->request, call->era);
    if (call->era == MCP_MODERN && call->headers)
        add_mirrors(&headers, call);
    enum net_outcome outcome = exchange(http, &hearing, &headers, "POST", str_of(body), &call->wait,
                                        err);
    call->status = hearing.net.status;
    json_t *message = hearing.body.len > 0
                          ? json_read(buf_str(&hearing.body), MCP_MESSAGE_MAX, &why)
                          : NULL;
    if (message)
        take_message(&hearing, message);
    if (hearing.session[0] && str_is(json_get_str(call->request, "method"), "initialize")) {
        pthread_mutex_lock(&http->lock);
        memcpy(http->session, hearing.session, sizeof http->session);
        pthread_mutex_unlock(&http->lock);
    }
    headers_done(&headers);
    hearing_done(&hearing);
    return judge(&hearing, outcome, err);
}
