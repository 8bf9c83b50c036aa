/* Reads the "http" object of a tool file. Runs in the tool host; pure. A fault is found here, when
 * the file is read, and not at the first call. */
#include "tool/host/http_spec.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/own.h"
#include "tool/host/http_template.h"

#define PAIRS_MAX 64

struct reading {
    struct http_spec *spec;
    const char *field;
    bool secrets; /* may the template at hand hold some? */
    struct err *err;
};

static int refuse(struct reading *reading, const char *field, const json_t *value,
                  const char *bound)
{
    char shown[160] = "";
    if (value)
        json_brief(value, shown, sizeof shown);
    return err_input(reading->err, field, value ? shown : NULL, bound, "'%s' is %s; it must be %s",
                     field, value ? shown : "missing", bound);
}

/* ---- templates ---- */

static int note_piece(void *user, enum http_piece piece, struct str name)
{
    struct reading *reading = user;
    own_str key = buf_strdup(name);
    if (piece == HTTP_SECRET && !reading->secrets)
        return err_input(reading->err, reading->field, NULL, NULL, "'%s' may not hold a secret",
                         reading->field);
    if (piece != HTTP_TEXT)
        json_object_set_new(piece == HTTP_SECRET ? reading->spec->secrets : reading->spec->named,
                            key, json_true());
    return 0;
}

static int note_template(struct reading *reading, const char *field, struct str text, bool secrets)
{
    reading->field = field;
    reading->secrets = secrets;
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.at[i] < ' ' || text.at[i] == 0x7f)
            return err_input(reading->err, field, NULL, NULL, "'%s' has a control character",
                             field);
    if (http_walk(text, note_piece, reading, reading->err) == 0)
        return 0;
    if (!reading->err->field[0])
        snprintf(reading->err->field, sizeof reading->err->field, "%s", field);
    return -1;
}

static bool is_token(const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)name[i]) && !strchr("!#$%&'*+-.^_`|~", name[i]))
            return false;
    return len > 0 && len <= 128;
}

/* Headers that frame the message or choose the server are libcurl's. */
static bool is_reserved(const char *name)
{
    static const char *const names[] = { "host", "content-length", "transfer-encoding",
                                         "connection", "te", "trailer", "upgrade", "expect",
                                         "accept-encoding", "keep-alive" };
    for (size_t i = 0; i < array_len(names); i++)
        if (strcasecmp(name, names[i]) == 0)
            return true;
    return strncasecmp(name, "proxy-", 6) == 0;
}

/* ---- fields ---- */

static int take_method(struct reading *reading, const json_t *value)
{
    static const char *const methods[] = { "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE" };
    for (size_t i = 0; i < array_len(methods); i++)
        if (json_is_string(value) && str_is(json_str(value), methods[i])) {
            reading->spec->method = methods[i];
            return 0;
        }
    return refuse(reading, "http.method", value, "GET, HEAD, POST, PUT, PATCH or DELETE");
}

static int take_url(struct reading *reading, const json_t *value)
{
    if (!json_is_string(value) || strlen(json_string_value(value)) != json_string_length(value))
        return refuse(reading, "http.url", value, "a text");
    reading->spec->url = json_string_value(value);
    if (http_url_check(json_str(value), reading->err) == 0)
        return note_template(reading, "http.url", json_str(value), /* secrets= */ false);
    if (!reading->err->field[0])
        snprintf(reading->err->field, sizeof reading->err->field, "http.url");
    return -1;
}

static int take_pairs(struct reading *reading, const json_t *value, const char *field, bool headers)
{
    const char *name;
    json_t *text;
    if (!json_is_object(value) || json_object_size(value) > PAIRS_MAX)
        return refuse(reading, field, value, "an object of at most 64 texts");
    json_object_foreach ((json_t *)(uintptr_t)value, name, text) {
        char at[96];
        char shown[60];
        str_plain(shown, sizeof shown, str_of(name));
        snprintf(at, sizeof at, "%s.%s", field, shown);
        if (!json_is_string(text))
            return refuse(reading, at, text, "a text");
        if (headers && (!is_token(name) || is_reserved(name)))
            return err_input(reading->err, at, NULL, NULL, "'%s' is no header that a tool may set",
                             at);
        if (note_template(reading, at, json_str(text), /* secrets= */ true) < 0)
            return -1;
    }
    return 0;
}

static int take_query(struct reading *reading, const json_t *value)
{
    return take_pairs(reading, value, "http.query", /* headers= */ false);
}

static int take_headers(struct reading *reading, const json_t *value)
{
    return take_pairs(reading, value, "http.headers", /* headers= */ true);
}

static int take_body(struct reading *reading, const json_t *value)
{
    static const char *const forms[] = { [HTTP_JSON] = "json", [HTTP_FORM] = "form" };
    for (size_t i = HTTP_JSON; i < array_len(forms); i++)
        if (json_is_string(value) && str_is(json_str(value), forms[i])) {
            reading->spec->body = (enum http_body)i;
            return 0;
        }
    return refuse(reading, "http.body", value, "\"json\" or \"form\"");
}

static int take_body_argument(struct reading *reading, const json_t *value)
{
    if (!json_is_string(value) || json_string_length(value) == 0)
        return refuse(reading, "http.body_argument", value, "the name of an argument");
    reading->spec->body_argument = json_string_value(value);
    json_object_set_new(reading->spec->named, json_string_value(value), json_true());
    return 0;
}

static int take_private(struct reading *reading, const json_t *value)
{
    if (!json_is_boolean(value))
        return refuse(reading, "http.private", value, "true or false");
    reading->spec->private = json_is_true(value);
    return 0;
}

static const struct {
    const char *name;
    int (*take)(struct reading *reading, const json_t *value);
} fields[] = {
    { "method", take_method },
    { "url", take_url },
    { "query", take_query },
    { "headers", take_headers },
    { "body", take_body },
    { "body_argument", take_body_argument },
    { "private", take_private },
};

static int take_field(struct reading *reading, const char *name, const json_t *value)
{
    for (size_t i = 0; i < array_len(fields); i++)
        if (strcmp(name, fields[i].name) == 0)
            return fields[i].take(reading, value);
    char at[96], shown[60];
    str_plain(shown, sizeof shown, str_of(name));
    snprintf(at, sizeof at, "http.%s", shown);
    return err_input(reading->err, at, NULL,
                     "method, url, query, headers, body, body_argument, private",
                     "'%s' is not known", at);
}

static int read_all(struct reading *reading, const json_t *text)
{
    struct http_spec *spec = reading->spec;
    const char *name;
    json_t *value;
    if (!json_is_object(text))
        return refuse(reading, "http", text, "an object");
    json_object_foreach (spec->text, name, value)
        if (take_field(reading, name, value) < 0)
            return -1;
    if (!spec->url)
        return refuse(reading, "http.url", NULL, "a URL");
    bool plain = strcmp(spec->method, "GET") == 0 || strcmp(spec->method, "HEAD") == 0;
    if (plain && spec->body)
        return err_input(reading->err, "http.body", NULL, NULL, "'http.body' with method %s",
                         spec->method);
    if (spec->body_argument && spec->body != HTTP_JSON)
        return err_input(reading->err, "http.body_argument", NULL, NULL,
                         "'http.body_argument' needs \"body\":\"json\"");
    return 0;
}

int http_spec_read(const json_t *text, struct http_spec *out, struct err *err)
{
    struct http_spec spec = { .text = json_deep_copy(text), .named = json_object(),
                              .secrets = json_object(), .method = "GET" };
    struct reading reading = { .spec = &spec, .err = err };
    if (read_all(&reading, text) < 0) {
        http_spec_done(&spec);
        return -1;
    }
    *out = spec;
    return 0;
}

void http_spec_done(struct http_spec *spec)
{
    json_decref(spec->text);
    json_decref(spec->named);
    json_decref(spec->secrets);
    *spec = (struct http_spec){ .text = NULL };
}
