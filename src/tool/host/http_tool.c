/* Calls of HTTP tools. Runs in the tool host, one thread for each call. The network is reached by
 * src/net alone: public addresses, also private ones where the tool file says "private", never a
 * redirect or a proxy; answer and time are capped, and the secrets are cut out of each answer. */
#include "tool/host/http_tool.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/own.h"
#include "net/pool.h"
#include "tool/define/outcome.h"
#include "tool/host/http_answer.h"
#include "tool/host/http_request.h"
#include "tool/host/http_template.h"

#define CONNECT_MS 10000
#define TYPE_MAX 128
#define LOCATION_MAX 256

struct http_tool {
    struct http_spec spec;
    json_t *secrets; /* {name: value} */
    struct net_pool pool;
};

struct hearing {
    char type[TYPE_MAX], location[LOCATION_MAX];
    struct buf body;
};

/* ---- from the file ---- */

static int find_secrets(struct http_tool *tool, const struct secrets *secrets, struct err *err)
{
    const char *name;
    json_t *unused;
    json_object_foreach (tool->spec.secrets, name, unused) {
        own_buf text = BUF_INIT(512);
        buf_printf(&text, "${secret:%s}", name);
        char *value = secrets_expand(secrets, buf_str(&text).at, err);
        if (!value)
            return -1;
        json_object_set_new(tool->secrets, name, json_string(value));
        explicit_bzero(value, strlen(value));
        free(value);
    }
    return 0;
}

/* Every argument that a template names must be one that a caller can give. */
static int check_named(const struct http_tool *tool, const json_t *input_schema, struct err *err)
{
    const json_t *properties = json_object_get(input_schema, "properties");
    const char *name;
    json_t *unused;
    json_object_foreach (tool->spec.named, name, unused)
        if (!json_object_get(properties, name))
            return err_input(err, "http", name, "a property of 'input_schema'",
                             "'http' names the argument '%.64s', which is no property of "
                             "'input_schema'",
                             name);
    return 0;
}

int http_tool_new(const json_t *text, const json_t *input_schema, const struct secrets *secrets,
                  struct http_tool **out, struct err *err)
{
    struct http_tool *tool = buf_alloc_zero(1, sizeof *tool);
    net_pool_init(&tool->pool);
    tool->secrets = json_object();
    if (http_spec_read(text, &tool->spec, err) < 0 || check_named(tool, input_schema, err) < 0 ||
        find_secrets(tool, secrets, err) < 0) {
        http_tool_free(tool);
        return -1;
    }
    *out = tool;
    return 0;
}

void http_tool_free(struct http_tool *tool)
{
    if (!tool)
        return;
    http_spec_done(&tool->spec);
    json_decref(tool->secrets);
    net_pool_done(&tool->pool);
    free(tool);
}

/* ---- the response ---- */

static void on_header(void *user, struct str name, struct str value)
{
    struct hearing *hearing = user;
    if (!name.at)
        hearing->type[0] = hearing->location[0] = 0;
    else if (name.len == 12 && strncasecmp(name.at, "content-type", 12) == 0)
        str_plain(hearing->type, sizeof hearing->type, value);
    else if (name.len == 8 && strncasecmp(name.at, "location", 8) == 0)
        str_plain(hearing->location, sizeof hearing->location, value);
}

static int on_bytes(void *user, struct str bytes)
{
    struct hearing *hearing = user;
    return buf_add_str(&hearing->body, bytes);
}

static json_t *loss(struct http_tool *tool, enum net_outcome outcome, struct net_call *call,
                    const struct http_request *request)
{
    struct str origin = http_url_origin(str_of(tool->spec.url));
    int len = (int)(origin.len < 200 ? origin.len : 200);
    char detail[200];
    http_cut_out(request->secrets, call->detail, strlen(call->detail));
    str_plain(detail, sizeof detail, str_of(call->detail));
    switch (outcome) {
    case NET_CANCELLED: return outcome_error(OUTCOME_CANCELLED, "cancelled");
    case NET_TIMEOUT:
        return outcome_error(OUTCOME_TIMEOUT, "no complete answer from %.*s in time", len,
                             origin.at);
    case NET_TOO_LONG:
        return outcome_error(OUTCOME_ERROR, "the answer from %.*s exceeds %zu bytes", len,
                             origin.at, call->max_bytes);
    case NET_REFUSED:
        return outcome_error(OUTCOME_DENIED, "%.*s: %s%s", len, origin.at, detail,
                             tool->spec.private ? "" : " (\"private\" is false)");
    case NET_BROKEN:
        return outcome_error(OUTCOME_ERROR, "the answer from %.*s broke off: %s", len, origin.at,
                             detail);
    case NET_OK:
    case NET_UNREACHED: break;
    }
    return outcome_error(OUTCOME_ERROR, "%.*s: %s", len, origin.at, detail);
}

static json_t *exchange(struct http_tool *tool, struct net_http *http, struct http_request *request,
                        const struct source_context *limits)
{
    struct hearing hearing = { .body = BUF_INIT(limits->result_bytes) };
    int wait = clock_poll_ms(limits->deadline_ns) + 1;
    bool bodiless = strcmp(tool->spec.method, "GET") == 0 || strcmp(tool->spec.method, "HEAD") == 0;
    struct net_call call = {
        .url = request->url.at,
        .method = tool->spec.method,
        .headers = (const char *const *)request->headers,
        .body = bodiless && !request->has_body ? STR_NONE : buf_str(&request->body),
        .reach = tool->spec.private ? NET_REACH_PRIVATE : NET_REACH_PUBLIC,
        .inflate = true,
        .deadline_ms = limits->deadline_ns / CLOCK_MS,
        .cancel_fd = limits->cancel_fd,
        .connect_ms = wait < CONNECT_MS ? wait : CONNECT_MS,
        .first_byte_ms = wait,
        .idle_ms = wait,
        .max_bytes = limits->result_bytes,
        .on_header = on_header,
        .on_bytes = on_bytes,
        .user = &hearing,
    };
    enum net_outcome outcome = net_http_do(http, &call);
    json_t *told;
    if (outcome != NET_OK)
        told = loss(tool, outcome, &call, request);
    else {
        http_cut_out(request->secrets, hearing.body.at, hearing.body.len);
        http_cut_out(request->secrets, hearing.location, strlen(hearing.location));
        struct http_answer answer = { call.status, str_of(hearing.type), str_of(hearing.location),
                                      buf_str(&hearing.body),
                                      http_url_origin(str_of(tool->spec.url)) };
        told = http_answer_outcome(&answer);
    }
    buf_done(&hearing.body);
    return told;
}

json_t *http_tool_call(struct http_tool *tool, const json_t *arguments,
                       const struct source_context *context)
{
    struct err err = ERR_INIT;
    struct http_request request;
    if (http_request_make(&tool->spec, arguments, tool->secrets, &request, &err) < 0)
        return outcome_error(OUTCOME_ERROR, "%s", err.text);
    struct net_http *http = net_pool_take(&tool->pool, &err);
    json_t *told = http ? exchange(tool, http, &request, context)
                        : outcome_error(OUTCOME_ERROR, "%s", err.text);
    if (http)
        net_pool_give(&tool->pool, http);
    http_request_done(&request);
    return told;
}
