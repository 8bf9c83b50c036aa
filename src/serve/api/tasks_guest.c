/* A task as a client of the engine: its runs are those of its token, in the queue and in the quota.
 * Runs in the serve process, in its loop. */
#include "serve/api/tasks.h"

static int begins(void *user, const struct request *request, struct err *err)
{
    return who_run_begins(user, request->limits.value[LIMITS_CPU], err);
}

static void ends(void *user, const struct request *request, double cpu_ms)
{
    who_run_ends(user, request->limits.value[LIMITS_CPU], cpu_ms);
}

static void gone(void *user)
{
    who_unref(user);
}

int tasks_connect(struct api *api, struct who_token *who, struct err *err)
{
    const struct serve_guest guest = {
        .client = &api_client(api, who_id(who))->client,
        .owner = who_id(who),
        .begins = begins,
        .ends = ends,
        .gone = gone,
        .user = who_ref(who),
    };
    int fd = serve_connect(api->serve, &guest, err);
    if (fd < 0)
        who_unref(who);
    return fd;
}
