/* Connections to the engine for parts of the HTTP service. Runs in the serve process, in its loop.
 */
#include "serve/api/guest.h"

static int count(void *user, const struct request *request, struct err *err)
{
    return who_run_begins(user, request->limits.value[LIMITS_CPU], err);
}

static int check_and_count(void *user, const struct request *request, struct err *err)
{
    return who_allows(user, request, err) < 0 ? -1 : count(user, request, err);
}

static void ends(void *user, const struct request *request, double cpu_ms)
{
    who_run_ends(user, request->limits.value[LIMITS_CPU], cpu_ms);
}

static int allows_tool(void *user, const char *tool, struct err *err)
{
    return who_allows_tool(user, tool, err);
}

static void gone(void *user)
{
    who_unref(user);
}

static const struct {
    const char *door; /* NULL: that of tasks */
    int (*begins)(void *user, const struct request *request, struct err *err);
} kinds[] = {
    [GUEST_MCP] = { "http", check_and_count },
    [GUEST_REPLAY] = { "http", check_and_count },
    [GUEST_TASK] = { NULL, count },
};

int guest_connect(struct api *api, enum guest_kind kind, struct who_token *who, struct err *err)
{
    const struct serve_guest guest = {
        .client = &api_client(api, who_id(who))->client, .owner = who_id(who),
        .door = kinds[kind].door, .ceilings = &api->guest_ceilings,
        .begins = kinds[kind].begins, .ends = ends, .allows_tool = allows_tool,
        .gone = gone, .user = who_ref(who),
    };
    int fd = serve_connect(api->serve, &guest, err);
    if (fd < 0)
        who_unref(who);
    return fd;
}
