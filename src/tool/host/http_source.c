/* Tool files with "http": one tool each. Runs in the tool host. */
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "tool/host/http_tool.h"

struct http_source {
    json_t *definition;
    struct http_tool *tool;
};

static json_t *list(void *state, int64_t deadline_ns, json_t *faults, struct err *err)
{
    struct http_source *source = state;
    json_t *tools = json_array();
    (void)deadline_ns, (void)faults, (void)err;
    json_array_append_new(tools, json_deep_copy(source->definition));
    return tools;
}

static json_t *call(void *state, const char *tool, const json_t *arguments,
                    const struct source_context *context)
{
    struct http_source *source = state;
    (void)tool;
    return http_tool_call(source->tool, arguments, context);
}

static void close_source(void *state)
{
    struct http_source *source = state;
    json_decref(source->definition);
    http_tool_free(source->tool);
    free(source);
}

int http_source_open(const json_t *file, const struct source_from *from, struct source *out,
                     struct err *err)
{
    static const struct source_ops ops = { list, call, close_source, .is_slow = false };
    struct http_source *source = buf_alloc_zero(1, sizeof *source);
    if (http_tool_new(json_object_get(file, "http"), json_object_get(file, "input_schema"),
                      from->secrets, &source->tool, err) < 0) {
        free(source);
        return -1;
    }
    source->definition = json_deep_copy(file);
    json_object_del(source->definition, "http");
    *out = (struct source){ .ops = &ops, .state = source };
    snprintf(out->kind, sizeof out->kind, "http");
    return 0;
}
