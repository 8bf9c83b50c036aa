/* Tool files with "openapi": reads or fetches the document, and keeps a tool for each operation.
 * Runs in the tool host. A document from a URL is fetched at the first list, guarded as the calls
 * are; its servers must be where it came from, or the tool file must name the server: the headers
 * that go there hold secrets. */
#include "tool/host/openapi_source.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "net/http.h"
#include "tool/define/define.h"
#include "tool/host/http_template.h"
#include "tool/host/http_tool.h"
#include "tool/host/openapi.h"
#include "tool/host/owned.h"

#define DOCUMENT_MAX ((size_t)8 << 20)
#define CONNECT_MS 10000
#define DOCUMENT_HEADERS_MAX 32

struct member {
    const char *name; /* borrowed from its definition */
    struct http_tool *tool;
};

struct openapi_source {
    json_t *file;
    const struct secrets *secrets;
    bool remote;
    pthread_mutex_t lock;
    /* With the lock, set once: */
    bool ready;
    json_t *definitions, *faults;
    struct member *members;
    size_t count;
};

/* ---- the document ---- */

static json_t *read_document(int folder, const char *path, struct err *err)
{
    own_buf text = BUF_INIT(DOCUMENT_MAX);
    own_fd fd = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        err_sys(err, "open '%.200s'", path);
        return NULL;
    }
    if (owned_check(fd, OWNED_FILE, err) < 0)
        return NULL;
    if (buf_read(&text, fd) < 0) {
        errno == EFBIG ? err_set(err, ERR_LIMIT, "'%.200s' exceeds 8 MiB", path)
                       : err_sys(err, "read '%.200s'", path);
        return NULL;
    }
    json_t *document = json_read(buf_str(&text), DOCUMENT_MAX, err);
    if (!document)
        err_wrap(err, "'%.200s' must be JSON", path);
    return document;
}

static int on_bytes(void *user, struct str bytes)
{
    return buf_add_str(user, bytes);
}

/* The file's headers, "name: value", for a document that lies on the server itself. -1 with err. */
static int header_lines(const struct openapi_source *source, char **lines, struct err *err)
{
    const json_t *file = source->file;
    const char *server = json_string_value(json_object_get(file, "server")), *name;
    const char *url = json_string_value(json_object_get(file, "openapi"));
    json_t *value;
    size_t count = 0;
    lines[count++] = buf_strdup(STR("accept: application/json"));
    if (server && !str_eq(http_url_origin(str_of(server)), http_url_origin(str_of(url))))
        return 0;
    json_object_foreach (json_object_get(file, "headers"), name, value) {
        own_buf line = BUF_INIT(HTTP_URL_MAX);
        own_str text = json_is_string(value)
                           ? secrets_expand(source->secrets, json_string_value(value), err)
                           : NULL;
        if (!text || count == DOCUMENT_HEADERS_MAX || strpbrk(name, ":\r\n ") ||
            strpbrk(text, "\r\n") || buf_printf(&line, "%s: %s", name, text) < 0)
            return err->kind == ERR_NONE
                       ? err_input(err, "headers", NULL, "names and texts",
                                   "'headers' must be an object of names and texts")
                       : -1;
        explicit_bzero(text, strlen(text));
        lines[count++] = buf_take(&line);
    }
    return 0;
}

static enum net_outcome get(struct net_http *http, struct net_call *call, int64_t deadline_ns)
{
    int left = clock_poll_ms(deadline_ns) + 1;
    call->inflate = true;
    call->cancel_fd = -1;
    call->deadline_ms = clock_now_ns() / CLOCK_MS + left;
    call->connect_ms = left < CONNECT_MS ? left : CONNECT_MS;
    call->first_byte_ms = call->idle_ms = left;
    call->max_bytes = DOCUMENT_MAX;
    call->on_bytes = on_bytes;
    return net_http_do(http, call);
}

static json_t *fetch(const struct openapi_source *source, int64_t deadline_ns, struct err *err)
{
    own_buf text = BUF_INIT(DOCUMENT_MAX);
    char *lines[DOCUMENT_HEADERS_MAX + 1] = { NULL }, detail[200];
    const char *url = json_string_value(json_object_get(source->file, "openapi"));
    bool private = json_is_true(json_object_get(source->file, "private"));
    struct net_call call = { .url = url, .headers = (const char *const *)lines, .user = &text,
                             .reach = private ? NET_REACH_PRIVATE : NET_REACH_PUBLIC };
    struct net_http *http = NULL;
    int rc = header_lines(source, lines, err);
    enum net_outcome outcome = NET_UNREACHED;
    if (rc == 0 && (rc = net_http_open(&http, err)) == 0)
        outcome = get(http, &call, deadline_ns);
    net_http_close(http);
    for (size_t i = 0; lines[i]; i++) {
        explicit_bzero(lines[i], strlen(lines[i]));
        free(lines[i]);
    }
    if (rc < 0)
        return NULL;
    str_plain(detail, sizeof detail, str_of(call.detail));
    if (outcome != NET_OK || call.status != 200) {
        err_set(err, ERR_HOST, "fetch '%.200s': %s %d", url,
                outcome == NET_TIMEOUT    ? "too slow; HTTP"
                : outcome == NET_TOO_LONG ? "it exceeds 8 MiB; HTTP"
                : outcome == NET_OK       ? "HTTP"
                                          : detail,
                call.status);
        return NULL;
    }
    json_t *document = json_read(buf_str(&text), DOCUMENT_MAX, err);
    if (!document)
        err_wrap(err, "'%.200s' must be JSON", url);
    return document;
}

/* ---- its tools ---- */

static void add_fault(json_t *faults, const char *tool, const struct err *err)
{
    json_array_append_new(
        faults, json_pack("{s:s,s:o}", "tool", tool, "message", json_text(str_of(err->text))));
}

/* Takes `tool`. One of a schema that cupel refuses is a fault of its own. */
static void add_tool(struct openapi_source *source, json_t *tool)
{
    struct err err = ERR_INIT;
    struct tool check = TOOL_INIT;
    struct http_tool *made = NULL;
    own_json http = json_incref(json_object_get(tool, "http"));
    const char *name = json_string_value(json_object_get(tool, "name"));
    json_object_del(tool, "http");
    if (http_tool_new(http, json_object_get(tool, "input_schema"), source->secrets, &made, &err) <
            0 ||
        tool_read(tool, &check, &err) < 0) {
        add_fault(source->faults, name, &err);
        http_tool_free(made);
        json_decref(tool);
        return;
    }
    tool_done(&check);
    source->members = buf_list_room(source->members, source->count, sizeof *source->members);
    source->members[source->count++] = (struct member){ name, made };
    json_array_append_new(source->definitions, tool);
}

/* With the lock. */
static int take_document(struct openapi_source *source, const json_t *document, struct err *err)
{
    const json_t *file = source->file;
    const char *url = json_string_value(json_object_get(file, "openapi"));
    own_str origin = source->remote ? buf_strdup(http_url_origin(str_of(url))) : NULL;
    const char *prefix = json_string_value(json_object_get(file, "name"));
    own_json extra = json_object();
    static const char *const passed[] = { "policy", "caps" };
    for (size_t i = 0; i < array_len(passed); i++)
        if (json_object_get(file, passed[i]))
            json_object_set(extra, passed[i], json_object_get(file, passed[i]));
    struct openapi_options options = {
        .prefix = prefix ? prefix : "",
        .server = json_string_value(json_object_get(file, "server")),
        .origin = origin,
        .headers = json_object_get(file, "headers"),
        .include = json_object_get(file, "include"),
        .exclude = json_object_get(file, "exclude"),
        .extra = extra,
        .private = json_is_true(json_object_get(file, "private")),
    };
    own_json tools = openapi_tools(document, &options, source->faults, err);
    size_t i;
    json_t *tool;
    if (!tools)
        return -1;
    json_array_foreach (tools, i, tool)
        add_tool(source, json_incref(tool));
    source->ready = true;
    return 0;
}

/* ---- the source ---- */

static json_t *list(void *state, int64_t deadline_ns, json_t *faults, struct err *err)
{
    struct openapi_source *source = state;
    json_t *definitions = NULL;
    pthread_mutex_lock(&source->lock);
    if (!source->ready) {
        own_json document = fetch(source, deadline_ns, err);
        if (document)
            take_document(source, document, err);
    }
    if (source->ready) {
        own_json wrong = json_deep_copy(source->faults);
        definitions = json_deep_copy(source->definitions);
        json_array_extend(faults, wrong);
    }
    pthread_mutex_unlock(&source->lock);
    return definitions;
}

static json_t *call(void *state, const char *tool, const json_t *arguments,
                    const struct source_context *context)
{
    struct openapi_source *source = state;
    struct http_tool *found = NULL;
    pthread_mutex_lock(&source->lock);
    for (size_t i = 0; i < source->count; i++)
        if (strcmp(source->members[i].name, tool) == 0)
            found = source->members[i].tool;
    pthread_mutex_unlock(&source->lock);
    return found ? http_tool_call(found, arguments, context)
                 : outcome_error(OUTCOME_ERROR, "no operation is called '%s'", tool);
}

static void close_source(void *state)
{
    struct openapi_source *source = state;
    for (size_t i = 0; i < source->count; i++)
        http_tool_free(source->members[i].tool);
    free(source->members);
    json_decref(source->file);
    json_decref(source->definitions);
    json_decref(source->faults);
    pthread_mutex_destroy(&source->lock);
    free(source);
}

/* ---- the file ---- */

static bool is_texts(const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!json_is_string(json_array_get(list, i)))
            return false;
    return json_is_array(list);
}

static int check_file(const json_t *file, struct err *err)
{
    static const struct {
        const char *name, *bound;
        char type; /* text, list of texts, boolean, object, any */
    } rows[] = {
        { "openapi", "a path or URL", 't' }, { "name", "the first part of the tools' names", 't' },
        { "server", "a URL", 't' },          { "headers", "an object", 'o' },
        { "include", "a list of patterns", 'l' }, { "exclude", "a list of patterns", 'l' },
        { "private", "true or false", 'b' }, { "policy", "a policy", 'a' },
        { "caps", "caps", 'a' },
    };
    const char *name;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)file, name, value) {
        size_t i = 0;
        while (i < array_len(rows) && strcmp(rows[i].name, name) != 0)
            i++;
        if (i == array_len(rows))
            return err_input(err, name, NULL, "a field of OpenAPI files",
                             "'%.60s' is no field of a file with 'openapi'", name);
        bool good = rows[i].type == 't'   ? json_is_string(value)
                    : rows[i].type == 'l' ? is_texts(value)
                    : rows[i].type == 'b' ? json_is_boolean(value)
                    : rows[i].type == 'o' ? json_is_object(value)
                                          : true;
        if (!good)
            return err_input(err, name, NULL, rows[i].bound, "'%s' must be %s", name,
                             rows[i].bound);
    }
    const json_t *prefix = json_object_get(file, "name");
    if (prefix && !tool_name_is_good(json_str(prefix)))
        return err_input(err, "name", NULL, "a name of tools", "'name' is no good name");
    return 0;
}

int openapi_source_open(const json_t *file, const struct source_from *from, struct source *out,
                        struct err *err)
{
    static const struct source_ops here = { list, call, close_source, .is_slow = false };
    static const struct source_ops there = { list, call, close_source, .is_slow = true };
    if (check_file(file, err) < 0)
        return -1;
    const char *place = json_string_value(json_object_get(file, "openapi"));
    struct openapi_source *source = buf_alloc_zero(1, sizeof *source);
    source->file = json_deep_copy(file);
    source->secrets = from->secrets;
    source->definitions = json_array();
    source->faults = json_array();
    source->remote = http_url_origin(str_of(place)).len > 8 && strstr(place, "://");
    pthread_mutex_init(&source->lock, NULL);
    own_json document = source->remote ? NULL : read_document(from->folder_fd, place, err);
    if (!source->remote && (!document || take_document(source, document, err) < 0)) {
        close_source(source);
        return -1;
    }
    *out = (struct source){ .ops = source->remote ? &there : &here, .state = source };
    snprintf(out->kind, sizeof out->kind, "openapi");
    return 0;
}
