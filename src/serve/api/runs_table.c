/* The table of runs. Runs in the serve process. Ended runs are kept within two caps, their number
 * and their bytes; the owner who keeps most loses the oldest. */
#include "serve/api/runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

static size_t bucket(const char *a, const char *b)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (; *a; a++)
        hash = (hash ^ (unsigned char)*a) * 16777619u;
    for (; *b; b++)
        hash = (hash ^ (unsigned char)*b) * 16777619u;
    return hash % RUNS_BUCKETS;
}

struct api_runs *api_runs_new(struct api *api)
{
    struct api_runs *runs = buf_alloc_zero(1, sizeof *runs);
    runs->api = api;
    return runs;
}

struct api_run *runs_add(struct api *api, const char *owner, const char *key)
{
    struct api_runs *runs = api->runs;
    struct api_run *run = buf_alloc_zero(1, sizeof *run);
    struct api_run **at;
    run->runs = runs;
    run->refs = 1;
    snprintf(run->owner, sizeof run->owner, "%s", owner);
    run->client = api_client(api, owner);
    if (key) {
        run->key = buf_strdup(str_of(key));
        at = &runs->keys[bucket(owner, key)];
        run->next_key = *at;
        *at = run;
    }
    run->going = true;
    run->after = runs->going;
    if (runs->going)
        runs->going->before = run;
    runs->going = run;
    return run;
}

void runs_name(struct api_run *run, const char *id)
{
    struct api_run **at = &run->runs->ids[bucket(id, "")];
    snprintf(run->id, sizeof run->id, "%s", id);
    run->next_id = *at;
    *at = run;
}

struct api_run *runs_find(const struct api_runs *runs, const char *id)
{
    struct api_run *run = runs->ids[bucket(id, "")];
    while (run && strcmp(run->id, id) != 0)
        run = run->next_id;
    return run;
}

struct api_run *runs_find_key(const struct api_runs *runs, const char *owner, const char *key)
{
    struct api_run *run = runs->keys[bucket(owner, key)];
    while (run && (strcmp(run->owner, owner) != 0 || strcmp(run->key, key) != 0))
        run = run->next_key;
    return run;
}

/* Takes it out of the list of those that run, or of those that have ended. */
static void leave_list(struct api_run *run)
{
    struct api_runs *runs = run->runs;
    *(run->before ? &run->before->after : run->going ? &runs->going : &runs->first) = run->after;
    if (run->after)
        run->after->before = run->before;
    else if (!run->going)
        runs->last = run->before;
    run->before = run->after = NULL;
}

static void unlink_run(struct api_run *run)
{
    struct api_runs *runs = run->runs;
    struct api_run **at = &runs->ids[bucket(run->id, "")];
    while (*at && *at != run)
        at = &(*at)->next_id;
    if (*at) /* one that was refused has no id */
        *at = run->next_id;
    if (run->key) {
        at = &runs->keys[bucket(run->owner, run->key)];
        while (*at != run)
            at = &(*at)->next_key;
        *at = run->next_key;
    }
    leave_list(run);
    if (!run->going) {
        runs->kept--;
        runs->bytes -= run->bytes;
        run->client->kept--;
        run->client->bytes -= run->bytes;
    }
}

struct api_run *runs_ref(struct api_run *run)
{
    run->refs++;
    return run;
}

void runs_unref(struct api_run *run)
{
    if (--run->refs > 0)
        return;
    result_artifacts_free(run->artifacts, run->artifact_count);
    while (run->waits) {
        struct api_wait *next = run->waits->next;
        free(run->waits);
        run->waits = next;
    }
    free(run->text[0].at);
    free(run->text[1].at);
    free(run->key);
    request_done(&run->request);
    events_unref(run->events);
    who_unref(run->who);
    free(run);
}

void runs_remove(struct api_run *run)
{
    unlink_run(run);
    runs_unref(run);
}

static bool is_over(const struct api_runs *runs)
{
    const int64_t *caps = runs->api->options.http.caps;
    return runs->kept > (size_t)caps[HTTP_KEPT_RUNS] || runs->bytes > (size_t)caps[HTTP_KEPT_BYTES];
}

/* The oldest run, except `latest`, of the owner who keeps most: nobody's runs go for another's. */
static struct api_run *find_victim(const struct api_runs *runs, const struct api_run *latest)
{
    const int64_t *caps = runs->api->options.http.caps;
    bool by_bytes = runs->bytes > (size_t)caps[HTTP_KEPT_BYTES];
    const struct api_client *most = latest->client;
    for (const struct api_client *at = runs->api->clients; at; at = at->next)
        if (by_bytes ? at->bytes > most->bytes : at->kept > most->kept)
            most = at;
    struct api_run *run = runs->first;
    while (run && (run == latest || run->client != most))
        run = run->after;
    return run;
}

/* Runs go until the caps hold, never `latest`. */
static void hold_caps(struct api_runs *runs, const struct api_run *latest)
{
    for (struct api_run *victim; is_over(runs) && (victim = find_victim(runs, latest));)
        runs_remove(victim);
}

void runs_keep(struct api_run *run)
{
    struct api_runs *runs = run->runs;
    request_done(&run->request); /* with its files: only what came of it is kept */
    run->bytes = sizeof *run + events_bytes(run->events);
    for (size_t i = 0; i < run->artifact_count; i++)
        run->bytes += run->artifacts[i].size_bytes;
    leave_list(run);
    run->going = false;
    run->before = runs->last;
    *(runs->last ? &runs->last->after : &runs->first) = run;
    runs->last = run;
    runs->kept++;
    runs->bytes += run->bytes;
    run->client->kept++;
    run->client->bytes += run->bytes;
    hold_caps(runs, run);
}

void runs_grew(struct api_run *run, size_t bytes)
{
    run->bytes += bytes;
    run->runs->bytes += bytes;
    run->client->bytes += bytes;
    hold_caps(run->runs, run);
}

bool api_runs_are_quiet(const struct api_runs *runs)
{
    return !runs->going;
}

void api_runs_free(struct api_runs *runs)
{
    if (!runs)
        return;
    while (runs->going)
        runs_remove(runs->going);
    while (runs->first)
        runs_remove(runs->first);
    free(runs);
}

/* A run that ends at once leaves the list, and may let another one end. */
void api_runs_cancel(struct api_runs *runs)
{
    struct api_run *run = runs->going;
    while (run) {
        bool asked = run->cancelled;
        run->cancelled = true;
        if (!asked)
            work_cancel(run->work);
        run = asked ? run->after : runs->going;
    }
}
