/* Fuzz target: OpenAPI documents. Each tool that comes out has a request that an HTTP tool can
 * make, below the server of the configuration, and a definition without its own surprises. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "tool/define/define.h"
#include "tool/host/http_request.h"
#include "tool/host/http_spec.h"
#include "tool/host/openapi.h"

#define SERVER "https://api.example.org/v1"

static void check(const json_t *tool)
{
    struct err err = ERR_INIT;
    struct http_spec spec;
    struct http_request request;
    json_t *arguments = json_object(), *unused;
    const char *name;
    if (http_spec_read(json_object_get(tool, "http"), &spec, &err) < 0) {
        json_decref(arguments);
        return; /* the source names it as a fault */
    }
    if (strncmp(spec.url, SERVER "/", strlen(SERVER) + 1) != 0 || spec.private)
        abort();
    json_object_foreach (json_object_get(json_object_get(tool, "input_schema"), "properties"), name,
                         unused)
        json_object_set_new(arguments, name, json_string("../@evil.test/?#"));
    if (http_request_make(&spec, arguments, NULL, &request, &err) == 0) {
        if (strncmp(request.url.at, SERVER "/", strlen(SERVER) + 1) != 0)
            abort();
        http_request_done(&request);
    }
    http_spec_done(&spec);
    json_decref(arguments);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct err err = ERR_INIT;
    json_t *document = json_read((struct str){ (const char *)bytes, len }, 1 << 20, &err);
    struct openapi_options options = { .prefix = "p", .server = SERVER };
    json_t *faults = json_array(), *tools = openapi_tools(document, &options, faults, &err), *tool;
    size_t i;
    json_array_foreach (tools, i, tool) {
        if (!tool_name_is_good(json_get_str(tool, "name")))
            abort();
        check(tool);
    }
    json_decref(tools);
    json_decref(faults);
    json_decref(document);
    return 0;
}
