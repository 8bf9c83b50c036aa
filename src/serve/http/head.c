/* Checks the head of a request, before any byte of its body is read. Runs in the serve process.
 * The order is fixed: framing, Host and Origin, token, route, body. Until the token is known, an
 * answer tells nothing but which of these failed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/own.h"
#include "serve/http/http_int.h"
#include "serve/who/who.h"

#define KEY_HEADER "X-API-Key"

/* --- framing --- */

/* Headers that two readers could understand differently if they came twice. */
enum once { ONCE_LENGTH, ONCE_ENCODING, ONCE_HOST, ONCE_TOKEN, ONCE_KEY, ONCE_ORIGIN, ONCE_CODING,
            ONCE_IDEMPOTENCY, ONCE_RANGE, ONCE_COUNT };
static const char *const once_names[ONCE_COUNT] = {
    [ONCE_LENGTH] = "Content-Length",
    [ONCE_ENCODING] = "Transfer-Encoding",
    [ONCE_HOST] = "Host",
    [ONCE_TOKEN] = "Authorization",
    [ONCE_KEY] = KEY_HEADER,
    [ONCE_ORIGIN] = "Origin",
    [ONCE_CODING] = "Content-Encoding",
    [ONCE_IDEMPOTENCY] = "Idempotency-Key",
    [ONCE_RANGE] = "Range",
};

struct headers {
    unsigned counts[ONCE_COUNT];
    bool odd; /* one that another reader may take for something else */
};

/* libmicrohttpd 0.9.75 adds a folded line to the header's name: "Transfer-Encodingchunked". */
static bool is_folded(const char *name, enum once which)
{
    size_t len = strlen(once_names[which]);
    return strncasecmp(name, once_names[which], len) == 0 && name[len];
}

static enum MHD_Result look_at_header(void *cls, enum MHD_ValueKind kind, const char *name,
                                      size_t name_len, const char *value, size_t value_len)
{
    struct headers *headers = cls;
    struct str content = { value, value ? value_len : 0 };
    (void)kind;
    if (!parse_is_header((struct str){ name, name_len }, content) || is_folded(name, ONCE_LENGTH) ||
        is_folded(name, ONCE_ENCODING))
        headers->odd = true;
    for (int i = 0; i < ONCE_COUNT; i++)
        if (strcasecmp(name, once_names[i]) == 0)
            headers->counts[i]++;
    return MHD_YES;
}

static int check_headers(struct http_inner *inner, struct err *err)
{
    struct headers headers = { 0 };
    mhd.get_connection_values_n(inner->conn, MHD_HEADER_KIND, look_at_header, &headers);
    if (headers.odd)
        return err_input(err, "headers", NULL, "NAME: VALUE, of printable characters",
                         "a header has a name or a value that none may have");
    for (int i = 0; i < ONCE_COUNT; i++) {
        if (headers.counts[i] > 1)
            return err_input(err, once_names[i], NULL, "once", "header '%s' comes twice",
                             once_names[i]);
    }
    return 0;
}

static int check_framing(struct http_inner *inner, const char *version, struct err *err)
{
    if (check_headers(inner, err) < 0)
        return -1;
    const char *encoding = http_header(&inner->x, "Transfer-Encoding");
    const char *length = http_header(&inner->x, "Content-Length");
    uint64_t bytes = 0;
    if (encoding && length)
        return err_input(err, "Content-Length", NULL, "one of Content-Length and Transfer-Encoding",
                         "the request has both Content-Length and Transfer-Encoding");
    if (encoding && (strcasecmp(encoding, "chunked") != 0 || strcmp(version, "HTTP/1.1") != 0))
        return err_input(err, "Transfer-Encoding", NULL, "chunked",
                         "the only transfer encoding is 'chunked', in HTTP/1.1");
    if (length && (!str_to_u64(str_of(length), &bytes) || bytes > INT64_MAX))
        return err_input(err, "Content-Length", NULL, "a whole number",
                         "Content-Length is not a whole number");
    inner->expects = encoding || bytes > 0;
    inner->x.length = encoding ? -1 : (int64_t)bytes;
    return 0;
}

/* --- where it comes from --- */

static bool is_listed(const char *const *list, struct str name)
{
    for (; list && *list; list++)
        if (name.len == strlen(*list) && strncasecmp(*list, name.at, name.len) == 0)
            return true;
    return false;
}

static int check_source(struct http_inner *inner, struct err *err)
{
    const struct http_options *options = &inner->x.http->options;
    struct str host = str_of(http_header(&inner->x, "Host"));
    struct str name = parse_host(host);
    if (!parse_is_local_name(name) && !is_listed(options->hosts, name)) {
        err_set(err, ERR_FORBIDDEN, "host '%.*s' is not a name of this service",
                (int)(name.len < 80 ? name.len : 80), name.len ? name.at : "");
        err_hint(err, "start the service with --host NAME, or reach it by its address");
        return -1;
    }
    const char *origin = http_header(&inner->x, "Origin");
    if (!origin)
        return 0;
    if (!is_listed(options->origins, str_of(origin)) &&
        !parse_is_same_origin(str_of(origin), host)) {
        err_set(err, ERR_FORBIDDEN, "pages of origin '%.80s' may not use this service", origin);
        err_hint(err, "start the service with --origin URL");
        return -1;
    }
    http_add_header(&inner->x, "Access-Control-Allow-Origin", origin);
    http_add_header(&inner->x, "Vary", "Origin");
    return 0;
}

static int check_token(struct http_inner *inner, struct err *err)
{
    struct http_exchange *x = &inner->x;
    const char *header = http_header(x, "Authorization"), *key = http_header(x, KEY_HEADER);
    struct str secret = header ? parse_bearer(str_of(header)) : str_of(key);
    if (header && key)
        return err_input(err, "Authorization", NULL, "one of Authorization and " KEY_HEADER,
                         "the request has both Authorization and " KEY_HEADER);
    x->who = who_find(x->http->options.who, secret, err);
    if (x->who)
        return 0;
    http_add_header(x, "WWW-Authenticate", "Bearer");
    return -1;
}

/* --- route --- */

static bool is_method(const struct http_route *route, const char *method)
{
    return strcmp(route->method, method) == 0 ||
           (strcmp(method, "HEAD") == 0 && strcmp(route->method, "GET") == 0);
}

static bool is_open(const struct http *http, const char *method, const char *path)
{
    const struct http_route *route = http->options.routes;
    while (route->method &&
           !(route->open && is_method(route, method) && strcmp(route->path, path) == 0))
        route++;
    return route->method != NULL;
}

static int find_route(struct http_inner *inner, const char *method, struct err *err)
{
    struct http_exchange *x = &inner->x;
    char allow[128] = "";
    size_t len = 0;
    for (const struct http_route *route = x->http->options.routes; route->method; route++) {
        char *args[HTTP_ARGS] = { NULL };
        if (!parse_path(route->path, str_of(inner->path), args))
            continue;
        if (is_method(route, method)) {
            x->route = route;
            memcpy(x->arg, args, sizeof args);
            return 0;
        }
        for (size_t i = 0; i < HTTP_ARGS; i++)
            free(args[i]);
        len += (size_t)snprintf(allow + len, sizeof allow - len, "%s%s", len ? ", " : "",
                                route->method);
        if (len >= sizeof allow)
            break;
    }
    if (!*allow) {
        err_set(err, ERR_ABSENT, "there is nothing at this path");
        err_hint(err, "GET /openapi.json lists the routes");
        return -1;
    }
    http_add_header(x, "Allow", allow);
    return err_set(err, ERR_METHOD, "this path does not take method '%.20s', but %s", method,
                   allow);
}

/* A browser asks first whether a page of another origin may. */
static bool is_preflight(const struct http_inner *inner, const char *method)
{
    return strcmp(method, "OPTIONS") == 0 && http_header(&inner->x, "Origin") &&
           http_header(&inner->x, "Access-Control-Request-Method");
}

static void reply_preflight(struct http_exchange *x)
{
    http_add_header(x, "Access-Control-Allow-Methods", "GET, POST, PUT, DELETE");
    http_add_header(x, "Access-Control-Allow-Headers",
                    "Authorization, " KEY_HEADER ", Content-Type, Idempotency-Key, Last-Event-ID, "
                    "Range, Accept");
    http_reply_empty(x, MHD_HTTP_NO_CONTENT);
}

/* --- body --- */

static int check_body(struct http_inner *inner, struct err *err)
{
    struct http_exchange *x = &inner->x;
    const char *coding = http_header(x, "Content-Encoding");
    int64_t most =
        x->http->caps[x->route->body == HTTP_BYTES ? HTTP_UPLOAD_BYTES : HTTP_BODY_BYTES];
    if (inner->expects && x->route->body == HTTP_NO_BODY)
        return err_input(err, "body", NULL, "no body", "this route takes no body");
    if (x->length > most) {
        err_set(err, ERR_LIMIT, "the body has %lld bytes, at most %lld are taken",
                (long long)x->length, (long long)most);
        err_hint(err, "put large inputs as blobs or as files of a session");
        return -1;
    }
    if (coding && strcasecmp(coding, "gzip") == 0)
        inner->inflate = inflate_new();
    else if (coding && strcasecmp(coding, "identity") != 0)
        return err_input(err, "Content-Encoding", NULL, "gzip or identity",
                         "content encoding '%.40s' is not known", coding);
    return 0;
}

void http_head(struct http_inner *inner, const char *method, const char *version)
{
    struct http_exchange *x = &inner->x;
    struct err err = ERR_INIT;
    if (check_framing(inner, version, &err) < 0) {
        /* Where the request ends is in doubt: the reply goes at once, the connection with it. */
        inner->expects = true;
        http_add_header(x, "Connection", "close");
    } else if (check_source(inner, &err) == 0) {
        if (is_preflight(inner, method)) {
            reply_preflight(x);
            return;
        }
        if ((is_open(x->http, method, inner->path) || check_token(inner, &err) == 0) &&
            find_route(inner, method, &err) == 0 &&
            parse_query(str_of(inner->query_text), &inner->query, &err) == 0 &&
            check_body(inner, &err) == 0)
            return;
    }
    http_reply_err(x, &err);
}
