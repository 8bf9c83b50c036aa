/* Requests of HTTP tools. Runs in the tool host; pure. Arguments have passed the tool's schema, and
 * are an attacker's all the same: each is encoded for its place, and a header refuses control
 * characters. */
#include "tool/host/http_request.h"

#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/own.h"
#include "tool/host/http_template.h"

#define HEADER_MAX 8192
#define SECRET_LEAST 8

struct making {
    const struct http_spec *spec;
    const json_t *arguments, *known_secrets;
    struct http_request *request;
    struct buf *to; /* of the template at hand */
    bool missing; /* an argument of it was not given */
    struct err *err;
};

static int too_long(struct making *making, const char *what, size_t most)
{
    return err_set(making->err, ERR_LIMIT, "%s exceeds %zu bytes", what, most);
}

/* ---- templates ---- */

static int add_secret(struct making *making, const char *name)
{
    const json_t *secret = json_object_get(making->known_secrets, name);
    if (!json_is_string(secret)) {
        err_set(making->err, ERR_ABSENT, "no secret '%.64s' is configured", name);
        return -1;
    }
    json_object_set_new(making->request->secrets, name, json_deep_copy(secret));
    return buf_add_str(making->to, json_str(secret));
}

static int add_piece(void *user, enum http_piece piece, struct str name)
{
    struct making *making = user;
    own_str key = buf_strdup(name);
    int rc = 0;
    if (piece == HTTP_TEXT)
        rc = buf_add_str(making->to, name);
    else if (piece == HTTP_SECRET)
        rc = add_secret(making, key);
    else {
        const json_t *value = json_object_get(making->arguments, key);
        if (!value || json_is_null(value))
            making->missing = true;
        else if (!http_scalar(value, making->to) && json_add(making->to, value) < 0)
            rc = -1;
    }
    if (rc < 0 && making->err->kind == ERR_NONE)
        too_long(making, "a header or a member of the query", making->to->max);
    return rc;
}

/* The text of a template; `missing` if it names an argument that was not given. */
static int fill(struct making *making, struct str template, struct buf *out)
{
    making->to = out;
    making->missing = false;
    return http_walk(template, add_piece, making, making->err);
}

/* ---- pairs: query and form ---- */

static int add_pair(struct making *making, struct buf *out, const char *name, struct str value)
{
    bool is_url = out == &making->request->url;
    const char *mark = !is_url ? (out->len > 0 ? "&" : "") : strchr(out->at, '?') ? "&" : "?";
    if (buf_add_text(out, mark) < 0 || http_encode(out, str_of(name)) < 0 ||
        buf_add_text(out, "=") < 0 || http_encode(out, value) < 0)
        return too_long(making, is_url ? "the URL" : "the body", out->max);
    return 0;
}

/* A list gives the name once for each member; an object is JSON. */
static int add_value(struct making *making, struct buf *out, const char *name, const json_t *value)
{
    own_buf text = BUF_INIT(HTTP_BODY_MAX);
    size_t i;
    json_t *inner;
    if (json_is_null(value))
        return 0;
    if (json_is_array(value)) {
        json_array_foreach ((json_t *)(uintptr_t)value, i, inner)
            if (json_is_array(inner) ? add_pair(making, out, name, STR("[]"))
                                     : add_value(making, out, name, inner))
                return -1;
        return 0;
    }
    if (!http_scalar(value, &text) && json_add(&text, value) < 0)
        return too_long(making, "an argument", text.max);
    return add_pair(making, out, name, buf_str(&text));
}

/* The argument of a template that is nothing else, or NULL. */
static const json_t *whole_argument(const struct making *making, struct str template)
{
    if (template.len < 3 || template.at[0] != '{' || template.at[template.len - 1] != '}')
        return NULL;
    own_str name = buf_strdup((struct str){ template.at + 1, template.len - 2 });
    return json_object_get(making->arguments, name);
}

static int add_query(struct making *making)
{
    struct buf *url = &making->request->url;
    const char *name;
    json_t *template;
    json_object_foreach (json_object_get(making->spec->text, "query"), name, template) {
        own_buf text = BUF_INIT(HTTP_URL_MAX);
        const json_t *whole = whole_argument(making, json_str(template));
        if (whole) {
            if (add_value(making, url, name, whole) < 0)
                return -1;
        } else if (fill(making, json_str(template), &text) < 0 ||
                   (!making->missing && add_pair(making, url, name, buf_str(&text)) < 0))
            return -1;
    }
    return 0;
}

/* ---- the rest: members of body or query ---- */

static int add_rest(struct making *making)
{
    const struct http_spec *spec = making->spec;
    struct http_request *request = making->request;
    own_json object = json_object();
    bool whole = spec->body == HTTP_JSON && !spec->body_argument;
    const char *name;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)making->arguments, name, value) {
        if (json_object_get(spec->named, name))
            continue;
        if (whole)
            json_object_set(object, name, value);
        else if (add_value(making, spec->body == HTTP_FORM ? &request->body : &request->url, name,
                           value) < 0)
            return -1;
    }
    const json_t *body = whole ? object
                         : spec->body_argument
                             ? json_object_get(making->arguments, spec->body_argument)
                             : NULL;
    if (body && json_add(&request->body, body) < 0)
        return too_long(making, "the body", HTTP_BODY_MAX);
    request->has_body = body || spec->body == HTTP_FORM;
    return 0;
}

/* ---- headers ---- */

static int add_header(struct making *making, const char *name, struct str value)
{
    struct http_request *request = making->request;
    own_buf line = BUF_INIT(HEADER_MAX);
    for (size_t i = 0; i < value.len; i++)
        if ((unsigned char)value.at[i] < ' ' || value.at[i] == 0x7f)
            return err_set(making->err, ERR_INPUT, "header '%.64s' would get a control character",
                           name);
    if (str_trim(value).len == 0)
        return 0;
    if (buf_printf(&line, "%s: ", name) < 0 || buf_add_str(&line, value) < 0 ||
        request->header_count == HTTP_HEADERS_MAX)
        return too_long(making, "a header", HEADER_MAX);
    request->headers[request->header_count++] = buf_take(&line);
    return 0;
}

static int add_usual(struct making *making, const char *name, const char *value)
{
    const char *given;
    json_t *template;
    json_object_foreach (json_object_get(making->spec->text, "headers"), given, template)
        if (strcasecmp(given, name) == 0)
            return 0;
    return add_header(making, name, str_of(value));
}

static int add_headers(struct making *making)
{
    const char *name;
    json_t *template;
    json_object_foreach (json_object_get(making->spec->text, "headers"), name, template) {
        own_buf text = BUF_INIT(HEADER_MAX);
        if (fill(making, json_str(template), &text) < 0)
            return -1;
        int rc = making->missing ? 0 : add_header(making, name, buf_str(&text));
        explicit_bzero(text.at ? text.at : (char[1]){ 0 }, text.len);
        if (rc < 0)
            return -1;
    }
    bool form = making->spec->body == HTTP_FORM;
    if (making->request->has_body &&
        add_usual(making, "content-type",
                  form ? "application/x-www-form-urlencoded" : "application/json") < 0)
        return -1;
    return add_usual(making, "accept", "application/json, text/*;q=0.9, */*;q=0.8");
}

int http_request_make(const struct http_spec *spec, const json_t *arguments, const json_t *secrets,
                      struct http_request *out, struct err *err)
{
    *out = (struct http_request){ .url = BUF_INIT(HTTP_URL_MAX), .body = BUF_INIT(HTTP_BODY_MAX),
                                  .secrets = json_object() };
    struct making making = { spec, arguments, secrets, out, NULL, false, err };
    if (http_url_fill(str_of(spec->url), arguments, &out->url, err) == 0 &&
        add_query(&making) == 0 && add_rest(&making) == 0 && add_headers(&making) == 0)
        return 0;
    http_request_done(out);
    return -1;
}

void http_request_done(struct http_request *request)
{
    for (size_t i = 0; i < request->header_count; i++) {
        explicit_bzero(request->headers[i], strlen(request->headers[i]));
        free(request->headers[i]);
    }
    buf_done(&request->url);
    buf_done(&request->body);
    json_decref(request->secrets);
    *request = (struct http_request){ .secrets = NULL };
}

void http_cut_out(const json_t *secrets, char *bytes, size_t len)
{
    const char *name;
    json_t *secret;
    json_object_foreach ((json_t *)(uintptr_t)secrets, name, secret) {
        struct str text = json_str(secret);
        char *at = bytes;
        while (text.len >= SECRET_LEAST &&
               (at = memmem(at, len - (size_t)(at - bytes), text.at, text.len))) {
            memset(at, '*', text.len);
            at += text.len;
        }
    }
}

/* clang-format on */