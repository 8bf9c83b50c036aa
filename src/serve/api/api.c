/* The HTTP API: its table of routes, and its parts put together. Runs in the serve process. */
#include "serve/api/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/own.h"
#include "serve/api/asks.h"
#include "store/errands.h"

#define GET "GET"
#define POST "POST"
#define PUT "PUT"
#define DELETE "DELETE"

const struct http_route api_routes[] = {
    { POST, "/v1/run", HTTP_JSON, .handle = api_run },
    { POST, "/v1/run_python", HTTP_JSON, .handle = api_run_python },
    { GET, "/v1/runs", .handle = api_records_list },
    { GET, "/v1/runs/stats", .handle = api_records_stats },
    { GET, "/v1/runs/{}", .handle = api_run_show },
    { DELETE, "/v1/runs/{}", .handle = api_run_cancel },
    { GET, "/v1/runs/{}/events", .handle = api_run_events },
    { POST, "/v1/runs/{}/calls/{}", HTTP_JSON, .handle = api_run_answer },
    { POST, "/v1/runs/{}/calls/{}/approve", HTTP_JSON, .handle = api_run_approve },
    { GET, "/v1/runs/{}/stdout", .handle = api_run_stdout },
    { GET, "/v1/runs/{}/stderr", .handle = api_run_stderr },
    { GET, "/v1/runs/{}/record", .handle = api_record_show },
    { DELETE, "/v1/runs/{}/record", .handle = api_record_remove },
    { POST, "/v1/runs/{}/pin", HTTP_JSON, .handle = api_record_pin },
    { GET, "/v1/runs/{}/export", .handle = api_record_export },
    { GET, "/v1/runs/{}/artifacts/{*}", .handle = api_run_artifact },
    { POST, "/v1/runs/{}/replay", HTTP_JSON, .handle = api_run_replay },
    { GET, "/v1/replays/{}", .handle = api_replay_show },
    { POST, "/v1/sessions", HTTP_JSON, .handle = api_session_new },
    { GET, "/v1/sessions", .handle = api_session_list },
    { GET, "/v1/sessions/{}", .handle = api_session_show },
    { DELETE, "/v1/sessions/{}", .handle = api_session_end },
    { POST, "/v1/sessions/{}/run", HTTP_JSON, .handle = api_session_run },
    { POST, "/v1/sessions/{}/interrupt", HTTP_JSON, .handle = api_session_interrupt },
    { POST, "/v1/sessions/{}/checkpoint", HTTP_JSON, .handle = api_session_checkpoint },
    { POST, "/v1/sessions/{}/undo", HTTP_JSON, .handle = api_session_undo },
    { POST, "/v1/sessions/{}/fork", HTTP_JSON, .handle = api_session_fork },
    { POST, "/v1/tasks", HTTP_JSON, .handle = api_task_new },
    { GET, "/v1/tasks", .handle = api_task_list },
    { GET, "/v1/tasks/{}", .handle = api_task_show },
    { DELETE, "/v1/tasks/{}", .handle = api_task_end },
    { GET, "/v1/tasks/{}/events", .handle = api_task_events },
    { POST, "/v1/tasks/{}/reply", HTTP_JSON, .handle = api_task_reply },
    { GET, "/v1/tasks/{}/artifacts/{*}", .handle = api_task_artifact },
    { POST, "/v1/tasks/{}/resume", HTTP_JSON, .handle = api_task_resume },
    { POST, "/v1/tasks/{}/replay", HTTP_JSON, .handle = api_task_replay },
    { GET, "/v1/tasks/{}/export", .handle = api_task_export },
    { POST, "/mcp", HTTP_TEXT, .handle = api_mcp_post },
    { DELETE, "/mcp", .handle = api_mcp_delete },
    { GET, "/v1/languages", .handle = api_languages },
    { GET, "/v1/images", .handle = api_images },
    { GET, "/v1/profiles", .handle = api_profiles },
    { GET, "/v1/health", .open = true, .handle = api_health },
    { GET, "/metrics", .handle = api_metrics },
    { GET, "/openapi.json", .handle = api_openapi },
    { GET, "/v1/sessions/{}/files", .handle = api_files_list },
    { GET, "/v1/sessions/{}/files/{*}", .handle = api_file_get },
    { PUT, "/v1/sessions/{}/files/{*}", HTTP_BYTES, .begin = api_file_put_begin,
      .take = api_file_put_take, .handle = api_file_put },
    { DELETE, "/v1/sessions/{}/files/{*}", .handle = api_file_delete },
    { PUT, "/v1/blobs", HTTP_BYTES, .begin = api_blob_put_begin, .take = api_blob_put_take,
      .handle = api_blob_put },
    { GET, "/v1/blobs/{}", .handle = api_blob_get },
    { DELETE, "/v1/blobs/{}", .handle = api_blob_delete },
    { .method = NULL },
};

struct api_client *api_client(struct api *api, const char *owner)
{
    struct api_client *client = api->clients;
    while (client && strcmp(client->owner, owner) != 0)
        client = client->next;
    if (client)
        return client;
    client = buf_alloc_zero(1, sizeof *client);
    snprintf(client->owner, sizeof client->owner, "%s", owner);
    client->next = api->clients;
    api->clients = client;
    return client;
}

int api_absent(struct err *err, const char *what, const char *id)
{
    err_set(err, ERR_ABSENT, "there is no %s '%.80s'", what, id);
    snprintf(err->field, sizeof err->field, "%s", what);
    return -1;
}

/* --- the door --- */

static void pump(void *user)
{
    struct api *api = user;
    http_pump(api->http);
}

static void drain(void *user)
{
    struct api *api = user;
    api->draining = true;
    api_runs_cancel(api->runs);
    api_tasks_cancel(api->tasks);
    api_replays_cancel(api->replays);
    api_mcp_end(api->mcp);
    http_drain(api->http);
}

static bool is_quiet(const void *user)
{
    const struct api *api = user;
    return api_runs_are_quiet(api->runs) && api_tasks_are_quiet(api->tasks) &&
           api_replays_are_quiet(api->replays) && http_is_quiet(api->http);
}

static bool is_used(const void *user)
{
    return !is_quiet(user);
}

static void fail(void *user, const struct err *err)
{
    struct api *api = user;
    api_runs_fail(api->runs, err);
    api_tasks_cancel(api->tasks);
    api_replays_cancel(api->replays);
    api_mcp_end(api->mcp);
    http_drain(api->http);
}

struct serve_door api_door(struct api *api)
{
    return (struct serve_door){ .pump = pump, .drain = drain, .is_quiet = is_quiet,
                                .is_used = is_used, .fail = fail, .user = api };
}

static struct http_options http_options_of(struct api *api, const struct api_options *options)
{
    struct http_options http = options->http;
    http.loop = api->loop;
    http.routes = api_routes;
    http.who = api->who;
    http.user = api;
    return http;
}

static int open_stores(struct api *api, struct err *err)
{
    if (api->options.state_dir < 0)
        return 0;
    api->errands = errands_open(api->loop, err);
    api->asks = api->errands ? asks_open(api, err) : NULL;
    api->replays = api->asks ? api_replays_open(api, err) : NULL;
    return api->replays && api_blobs_open(api, err) == 0 && api_shelf_open(api, err) == 0 ? 0 : -1;
}

static void take_ceilings(struct api *api)
{
    api->ceilings.limits = api->options.ceilings;
    api->ceilings.cache_ttl_s = api->options.cache_ttl_s;
    api->ceilings.profile = api->options.profile ? limits_profile_find(api->options.profile) : NULL;
    snprintf(api->image, sizeof api->image, "%s", api->options.image ? api->options.image : "host");
    api->ceilings.image = strcmp(api->image, "host") == 0 ? NULL : api->image;
    api->guest_ceilings = api->ceilings;
    api->guest_ceilings.blobs = false;
}

struct api *api_open(const struct api_options *options, struct err *err)
{
    struct api *api = buf_alloc_zero(1, sizeof *api);
    api->options = *options;
    api->engine = options->engine;
    api->serve = options->serve;
    api->loop = engine_loop(options->engine);
    api->ceilings.host_memory_bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    take_ceilings(api);
    api->runs = api_runs_new(api);
    api->sessions = api_sessions_new();
    api->mcp = api_mcp_new(api);
    api->who = who_open(api->loop, options->state_dir, err);
    api->tasks = api_tasks_new(api, options->models, err);
    struct http_options http = http_options_of(api, options);
    if (api->who && api->tasks && open_stores(api, err) == 0)
        api->http = http_open(&http, err);
    if (api->http)
        return api;
    api_close(api);
    api_free(api);
    return NULL;
}

int api_reload(struct api *api, const struct api_options *options, struct err *err)
{
    struct http_options http = http_options_of(api, options);
    if (http_reload(api->http, &http, err) < 0)
        return -1;
    api->options = *options;
    api_blobs_reload(api);
    api_shelf_reload(api);
    take_ceilings(api);
    return 0;
}

void api_close(struct api *api)
{
    if (!api)
        return;
    api_mcp_end(api->mcp);
    http_close(api->http);
    api->http = NULL;
    api_tasks_close(api->tasks);
    api_replays_close(take_ptr(api->replays));
    api_shelf_close(api);
    api_blobs_close(api);
    asks_close(take_ptr(api->asks));
    errands_close(take_ptr(api->errands));
    who_close(api->who); /* before its loop goes; tokens stay while runs hold them */
    api->who = NULL;
}

void api_free(struct api *api)
{
    if (!api)
        return;
    api_runs_free(api->runs);
    api_tasks_free(api->tasks);
    api_sessions_free(api->sessions);
    api_mcp_free(api->mcp);
    api_about_free(api->about);
    api_shelf_free(api->shelf);
    while (api->clients) {
        struct api_client *next = api->clients->next;
        free(api->clients);
        api->clients = next;
    }
    free(api);
}
