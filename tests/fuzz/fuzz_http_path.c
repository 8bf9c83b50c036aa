/* Fuzz the match of a path against the routes of the HTTP API. An argument that comes out is UTF-8
 * without NUL; none of its segments is empty, "." or ".."; only the last one of a route may have
 * slashes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "serve/api/api.h"
#include "serve/http/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_name(const char *at, size_t len)
{
    return len > 0 && !(len == 1 && at[0] == '.') && !(len == 2 && memcmp(at, "..", 2) == 0);
}

static void check_argument(const char *text, bool slashes)
{
    if (!str_is_utf8(str_of(text)) || (!slashes && strchr(text, '/')))
        abort();
    for (;;) {
        size_t len = strcspn(text, "/");
        if (!is_name(text, len))
            abort();
        if (!text[len])
            return;
        text += len + 1;
    }
}

static void check_route(const struct http_route *route, struct str path)
{
    char *args[HTTP_ARGS] = { NULL };
    size_t wanted = 0;
    for (const char *at = route->path; (at = strchr(at, '{')); at++)
        wanted++;
    if (!parse_path(route->path, path, args))
        return;
    for (size_t i = 0; i < HTTP_ARGS; i++) {
        if ((i < wanted) != (args[i] != NULL))
            abort();
        if (args[i])
            check_argument(args[i], strstr(route->path, "{*}") != NULL && i + 1 == wanted);
        free(args[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str path = { (const char *)data, size };
    for (const struct http_route *route = api_routes; route->method; route++)
        check_route(route, path);
    return 0;
}
