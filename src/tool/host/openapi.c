/* OpenAPI documents as tools. Runs in the tool host; pure. */
#include "tool/host/openapi.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"
#include "tool/define/define.h"
#include "tool/host/http_template.h"
#include "tool/host/openapi_int.h"

#define REFERENCES_MAX 8
#define POINTER_MAX 512

static const struct {
    const char *name, *upper;
    bool reads;
} methods[] = {
    { "get", "GET", true },    { "head", "HEAD", true },    { "post", "POST", false },
    { "put", "PUT", false },   { "patch", "PATCH", false }, { "delete", "DELETE", false },
};

/* ---- references ---- */

/* One step of a JSON pointer; "~1" is '/', "~0" is '~'. */
static const json_t *step(const json_t *value, const char **pointer)
{
    char name[POINTER_MAX];
    size_t len = 0;
    const char *at = *pointer + 1;
    for (; *at && *at != '/' && len + 1 < sizeof name; at++) {
        bool escape = *at == '~' && (at[1] == '0' || at[1] == '1');
        name[len++] = escape ? (at[1] == '1' ? '/' : '~') : *at;
        at += escape;
    }
    name[len] = 0;
    *pointer = at;
    return len + 1 < sizeof name ? json_object_get(value, name) : NULL;
}

const json_t *openapi_resolve(const json_t *document, const json_t *value)
{
    for (int hops = 0; hops < REFERENCES_MAX; hops++) {
        const json_t *reference = json_object_get(value, "$ref");
        const char *at = json_string_value(reference);
        if (!reference)
            return value;
        if (!at || strncmp(at, "#/", 2) != 0)
            return NULL;
        value = document;
        for (at++; value && *at;)
            value = step(value, &at);
    }
    return NULL;
}

/* ---- the server ---- */

/* Variables in braces get their defaults. */
static int fill_server(const json_t *server, struct buf *out)
{
    const json_t *variables = json_object_get(server, "variables");
    struct str url = json_get_str(server, "url");
    for (size_t i = 0; i < url.len; i++) {
        const char *end = url.at[i] == '{' ? memchr(url.at + i, '}', url.len - i) : NULL;
        if (!end) {
            if (buf_add(out, url.at + i, 1) < 0)
                return -1;
            continue;
        }
        own_str name = buf_strdup((struct str){ url.at + i + 1, (size_t)(end - url.at) - i - 1 });
        if (buf_add_str(out, json_get_str(json_object_get(variables, name), "default")) < 0)
            return -1;
        i = (size_t)(end - url.at);
    }
    return 0;
}

/* The base URL without a slash at its end; heap, or NULL with err. */
static char *base_url(const json_t *document, const struct openapi_options *options,
                      struct err *err)
{
    own_buf url = BUF_INIT(HTTP_URL_MAX);
    const json_t *server = json_array_get(json_object_get(document, "servers"), 0);
    if (options->server)
        buf_add_text(&url, options->server);
    else if (fill_server(server, &url) == 0 && options->origin && buf_str(&url).at[0] == '/') {
        own_str path = buf_take(&url);
        url = BUF_INIT(HTTP_URL_MAX);
        buf_printf(&url, "%s%s", options->origin, path);
    }
    while (url.len > 0 && url.at[url.len - 1] == '/')
        url.at[--url.len] = 0;
    struct str origin = http_url_origin(buf_str(&url));
    if (url.len == 0 || http_url_check(buf_str(&url), err) < 0) {
        err->kind = ERR_NONE;
        err_input(err, "server", NULL, "a URL",
                  "the document names no server with a whole URL; give one as 'server'");
        return NULL;
    }
    if (!options->server && options->origin && !str_is(origin, options->origin)) {
        err_input(
            err, "server", NULL, options->origin,
            "the document is from %.100s, but its server is %.*s; give it as 'server' if that "
            "is right",
            options->origin, (int)(origin.len & 0x7f), origin.at);
        return NULL;
    }
    return buf_take(&url);
}

/* ---- one operation ---- */

static void add_fault(json_t *faults, const char *tool, const char *text)
{
    json_array_append_new(faults, json_pack("{s:o,s:o}", "tool", json_text(str_of(tool)), "message",
                                            json_text(str_of(text))));
}

static bool is_among(const json_t *patterns, struct str id, struct str place)
{
    for (size_t i = 0; i < json_array_size(patterns); i++) {
        struct str pattern = json_str(json_array_get(patterns, i));
        if (tool_glob_fits(id, pattern) || tool_glob_fits(place, pattern))
            return true;
    }
    return false;
}

/* "/pets/{pet id}" with the arguments' names in the braces. -1 with err for an unknown one. */
static int add_path(const struct operation *operation, struct buf *out, struct err *err)
{
    for (const char *at = operation->path; *at;) {
        const char *end = *at == '{' ? strchr(at, '}') : NULL;
        int rc;
        if (end) {
            own_buf key = BUF_INIT(1024);
            buf_printf(&key, "%.*s in path", (int)(end - at) - 1 < 900 ? (int)(end - at) - 1 : 900,
                       at + 1);
            const json_t *argument = json_object_get(operation->places, buf_str(&key).at);
            if (!argument)
                return err_set(err, ERR_INPUT,
                               "its path has a parameter that it does not describe");
            rc = buf_printf(out, "{%s}", json_string_value(argument));
        } else
            rc = buf_add(out, at, 1);
        if (rc < 0)
            return err_set(err, ERR_LIMIT, "its URL exceeds %d bytes", HTTP_URL_MAX);
        at = end ? end + 1 : at + 1;
    }
    return 0;
}

static json_t *description_of(const struct operation *operation)
{
    own_buf text = BUF_INIT(2 * FOREIGN_TEXT_MAX);
    struct str summary = json_get_str(operation->itself, "summary");
    struct str rest = json_get_str(operation->itself, "description");
    buf_add_str(&text, summary);
    if (summary.len > 0 && rest.len > 0)
        buf_add_text(&text, "\n");
    rest.len = str_cut_utf8(rest, FOREIGN_TEXT_MAX);
    buf_add_str(&text, rest);
    return foreign_text(buf_str(&text));
}

static json_t *schema_of(struct operation *operation)
{
    json_t *schema = json_pack("{s:s,s:O,s:b}", "type", "object", "properties",
                               operation->properties, "additionalProperties", 0);
    if (json_array_size(operation->required) > 0)
        json_object_set(schema, "required", operation->required);
    if (operation->foreign.definitions)
        json_object_set(schema, "$defs", operation->foreign.definitions);
    return schema;
}

/* The tool of one operation; NULL with err. */
static json_t *make(struct operation *operation, size_t method, const char *base,
                    const struct openapi_options *options, struct err *err)
{
    own_buf url = BUF_INIT(HTTP_URL_MAX / 2);
    json_object_set_new(operation->http, "method", json_string(methods[method].upper));
    if (options->headers)
        json_object_set_new(operation->http, "headers", json_deep_copy(options->headers));
    if (options->private)
        json_object_set_new(operation->http, "private", json_true());
    if (openapi_parameters(operation, err) < 0 || openapi_body(operation, err) < 0)
        return NULL;
    if (buf_add_text(&url, base) < 0 || add_path(operation, &url, err) < 0)
        return NULL;
    json_object_set_new(operation->http, "url", json_text(buf_str(&url)));
    json_t *tool = json_object();
    if (options->extra)
        json_object_update(tool, (json_t *)(uintptr_t)options->extra);
    json_object_set_new(tool, "description", description_of(operation));
    json_object_set_new(tool, "input_schema", schema_of(operation));
    json_object_set_new(tool, "effect", json_string(methods[method].reads ? "read" : "write"));
    json_object_set(tool, "http", operation->http);
    return tool;
}

struct walk {
    const json_t *document;
    const struct openapi_options *options;
    const char *base;
    json_t *taken, *tools, *faults;
    size_t seen;
};

static void take_operation(struct walk *walk, const char *path, const json_t *item, size_t method)
{
    const json_t *itself = json_object_get(item, methods[method].name);
    struct err err = ERR_INIT;
    own_buf place = BUF_INIT(8192);
    char name[TOOL_NAME_MAX + 1];
    buf_printf(&place, "%s %.4096s", methods[method].upper, path);
    struct str id = json_get_str(itself, "operationId");
    const struct openapi_options *options = walk->options;
    if (!json_is_object(itself) ||
        (options->include && !is_among(options->include, id, buf_str(&place))) ||
        is_among(options->exclude, id, buf_str(&place)) || walk->seen++ >= OPENAPI_OPERATIONS_MAX)
        return;
    own_buf made = BUF_INIT(8192);
    buf_printf(&made, "%s%.4096s", methods[method].name, path);
    foreign_name(options->prefix, id.len > 0 ? id : buf_str(&made), walk->taken, name);
    struct operation operation = { .document = walk->document, .path = path,
                                   .method = methods[method].name, .item = item, .itself = itself,
                                   .foreign = { .document = walk->document },
                                   .properties = json_object(), .required = json_array(),
                                   .places = json_object(), .http = json_object() };
    json_t *tool = make(&operation, method, walk->base, options, &err);
    if (tool) {
        json_object_set_new(tool, "name", json_string(name));
        json_object_set_new(walk->taken, name, json_true());
        json_array_append_new(walk->tools, tool);
    } else
        add_fault(walk->faults, name, err.text);
    json_decref(operation.properties);
    json_decref(operation.required);
    json_decref(operation.places);
    json_decref(operation.http);
    json_decref(operation.foreign.definitions);
}

json_t *openapi_tools(const json_t *document, const struct openapi_options *options, json_t *faults,
                      struct err *err)
{
    struct str version = json_get_str(document, "openapi");
    const json_t *paths = json_object_get(document, "paths");
    const char *path;
    json_t *item;
    bool known = version.len > 4 &&
                 (memcmp(version.at, "3.0.", 4) == 0 || memcmp(version.at, "3.1.", 4) == 0);
    if (!known || !json_is_object(paths)) {
        err_input(err, "openapi", NULL, "3.0 or 3.1",
                  "the document is no OpenAPI 3.0 or 3.1 with 'paths'");
        return NULL;
    }
    own_str base = base_url(document, options, err);
    if (!base)
        return NULL;
    own_json taken = json_object();
    struct walk walk = { document, options, base, taken, json_array(), faults, 0 };
    json_object_foreach ((json_t *)(uintptr_t)paths, path, item) {
        const json_t *whole = openapi_resolve(document, item);
        for (size_t i = 0; path[0] == '/' && i < array_len(methods); i++)
            take_operation(&walk, path, whole, i);
    }
    if (walk.seen > OPENAPI_OPERATIONS_MAX)
        add_fault(faults, options->prefix, "it has more than 1000 operations: use 'include'");
    return walk.tools;
}
