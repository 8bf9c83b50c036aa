/* Runs over HTTP. Runs in the serve process.
 * 1. A run belongs to the token that began it; for every other token it does not exist.
 * 2. Its events are kept from the first one on, so that a stream can be taken up again.
 * 3. It is cancelled when the last exchange that waits for its result goes, unless it was begun to
 *    be followed ("wait": false, or an event stream). */
#include "serve/api/runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "serve/api/bodies.h"

#define REFUSAL_MAX (64u << 10)
#define COPIED_MAX (64u << 10) /* a reply that is copied rather than shared */

/* --- replies --- */

/* Bytes of a run that a client reads at its own speed: shared, however many read them. */
struct reading {
    struct api_run *run;
    struct str left;
};

static ssize_t pull_bytes(struct http_exchange *x, char *to, size_t room)
{
    struct reading *reading = x->state;
    size_t n = reading->left.len < room ? reading->left.len : room;
    if (n == 0)
        return HTTP_END;
    memcpy(to, reading->left.at, n);
    reading->left = (struct str){ reading->left.at + n, reading->left.len - n };
    return (ssize_t)n;
}

static void on_read(struct http_exchange *x)
{
    struct reading *reading = x->state;
    runs_unref(reading->run);
    free(reading);
}

void runs_reply(struct http_exchange *x, struct api_run *run, const char *mime, struct str bytes)
{
    if (bytes.len <= COPIED_MAX) {
        http_reply_text(x, 200, mime, bytes);
        return;
    }
    struct reading *reading = buf_alloc_zero(1, sizeof *reading);
    *reading = (struct reading){ runs_ref(run), bytes };
    x->state = reading;
    x->gone = on_read;
    http_reply_pull(x, 200, mime, bytes.len, pull_bytes);
}

void runs_answer(struct http_exchange *x, struct api_run *run)
{
    own_buf text = BUF_INIT(COPIED_MAX + 16);
    struct str value = events_value(run->events);
    bool ok = run->status == 200;
    http_add_header(x, "X-Run", run->id);
    if (ok && value.len > COPIED_MAX) {
        runs_reply(x, run, "application/json", value);
        return;
    }
    buf_add_text(&text, ok ? "" : "{\"error\":");
    buf_add_str(&text, value);
    buf_add_text(&text, ok ? "\n" : "}\n");
    http_reply_text(x, run->status, "application/json", buf_str(&text));
}

/* --- the end of a run --- */

static void finish(struct api_run *run, struct str json, const char *name)
{
    serve_news_end(&run->news);
    events_end(run->events, name, json);
    while (run->waits) {
        struct api_wait *wait = run->waits;
        run->waits = wait->next;
        wait->x->state = NULL;
        wait->x->gone = NULL;
        runs_answer(wait->x, run);
        free(wait);
    }
    runs_keep(run);
}

static void on_end(void *user, struct result *result, struct str json, const struct err *err)
{
    struct api_run *run = user;
    own_buf text = BUF_INIT(REFUSAL_MAX);
    run->work = NULL;
    who_run_ends(run->who, run->reserved_ms, result ? result->cpu_ms : 0);
    if (result) {
        run->status = 200;
        snprintf(run->outcome, sizeof run->outcome, "%s", result_status_name(result->status));
        run->artifacts = take_ptr(result->artifacts);
        run->artifact_count = result->artifact_count;
        result->artifact_count = 0;
        finish(run, json, "result");
        return;
    }
    own_json refusal = result_refusal(err);
    run->status = (unsigned)err_http_status(err->kind);
    snprintf(run->outcome, sizeof run->outcome, "%s", err_kind_name(err->kind));
    if (json_add(&text, json_object_get(refusal, "error")) < 0)
        buf_add_text(&text, "null");
    finish(run, buf_str(&text), "error");
}

void api_runs_fail(struct api_runs *runs, const struct err *err)
{
    while (runs->going) {
        work_abandon(runs->going->work);
        on_end(runs->going, NULL, STR_NONE, err);
    }
}

/* --- its events --- */

static void say(void *user, const char *name, json_t *members)
{
    struct api_run *run = user;
    events_add(run->events, name, members);
}

static bool has_room(void *user)
{
    (void)user;
    return true; /* the log drops its oldest lines */
}

static void on_event(void *user, const struct engine_event *event)
{
    struct api_run *run = user;
    serve_news_event(&run->news, event);
}

/* --- exchanges that wait --- */

static void on_gone(struct http_exchange *x)
{
    struct api_run *run = x->state;
    if (!run)
        return;
    struct api_wait **at = &run->waits;
    while (*at && (*at)->x != x)
        at = &(*at)->next;
    struct api_wait *mine = *at;
    if (mine) {
        *at = mine->next;
        free(mine);
    }
    x->state = NULL;
    if (run->going && !run->waits && !run->kept)
        work_cancel(run->work);
}

static void reply(struct http_exchange *x, struct api_run *run, bool wait)
{
    char where[64];
    snprintf(x->run, sizeof x->run, "%s", run->id);
    if (http_wants(x) != HTTP_PLAIN) {
        run->kept = true;
        http_add_header(x, "X-Run", run->id);
        http_reply_events(x, run->events, 1);
    } else if (!wait) {
        run->kept = true;
        snprintf(where, sizeof where, "/v1/runs/%s", run->id);
        http_add_header(x, "Location", where);
        http_reply_json(x, 202, json_pack("{s:s, s:s}", "run", run->id, "status", "running"));
    } else if (!run->going) {
        runs_answer(x, run);
    } else {
        struct api_wait *mine = buf_alloc_zero(1, sizeof *mine);
        *mine = (struct api_wait){ run->waits, x };
        run->waits = mine;
        x->state = run;
        x->gone = on_gone;
    }
}

/* --- begin --- */

/* The run that this exchange's Idempotency-Key names already: 1, 0 if there is none, or -1. */
static int find_same(const struct http_exchange *x, const char **out_key, char *sum,
                     struct api_run **out, struct err *err)
{
    const char *key = http_header(x, "Idempotency-Key");
    *out_key = key;
    if (!key)
        return 0;
    if (!*key || strlen(key) > RUNS_KEY_MAX)
        return err_input(err, "Idempotency-Key", NULL, "text of 1 to 255 bytes",
                         "header 'Idempotency-Key' has %zu bytes", strlen(key));
    struct hash hash;
    hash_start(&hash);
    hash_add(&hash, x->route->path, strlen(x->route->path) + 1);
    hash_add(&hash, x->arg[0] ? x->arg[0] : "", x->arg[0] ? strlen(x->arg[0]) : 0);
    hash_add(&hash, x->body.at, x->body.len);
    hash_end_hex(&hash, sum);
    *out = runs_find_key(api_of(x)->runs, who_id(x->who), key);
    if (!*out)
        return 0;
    if (strcmp((*out)->body_sum, sum) == 0)
        return 1;
    err_set(err, ERR_CONFLICT, "this Idempotency-Key belongs to another request");
    err_hint(err, "use a new key for a new request");
    return -1;
}

static int read_request(struct http_exchange *x, json_t *body, struct request *out, struct err *err)
{
    struct api *api = api_of(x);
    const char *id = json_string_value(json_object_get(body, "session"));
    own_json request = json_incref(body);
    if (id) {
        const struct request *session = NULL;
        if (api_session_check(x, id, err) == 0)
            session = engine_session_request(api->engine, id, err);
        json_decref(request);
        request = session ? request_of_cell(body, session, err) : NULL;
        if (!request)
            return -1;
    }
    return request_from_json(request, &api->ceilings, out, err) < 0 ||
                   who_allows(x->who, out, err) < 0 || api_blobs_fill(api, x->who, out, err) < 0
               ? -1
               : 0;
}

/* Of the tools of the engine's owner. */
static int allows(void *user, const char *tool, struct err *err)
{
    const struct api_run *run = user;
    return who_allows_tool(run->who, tool, err);
}

/* Takes the request over. NULL with an err. */
static struct api_run *start(struct http_exchange *x, struct request *request, const char *key,
                             struct bodies_run own, struct err *err)
{
    struct api *api = api_of(x);
    const bool hears = !own.wait || http_wants(x) != HTTP_PLAIN; /* of events */
    const char *owner = who_id(x->who);
    int64_t cpu_ms = request->limits.value[LIMITS_CPU];
    if (api->draining) {
        err_set(err, ERR_BUSY, "the service is stopping");
        return NULL;
    }
    if (own.approve && !hears) {
        err_input(err, "approve", "true", "an event stream, or \"wait\": false",
                  "a client that waits for the result alone hears of no call");
        err_hint(err, "ask for an event stream, or follow the events of a run with "
                      "\"wait\": false");
        return NULL;
    }
    if (who_run_begins(x->who, cpu_ms, err) < 0)
        return NULL;
    struct api_run *run = runs_add(api, owner, key);
    run->who = who_ref(x->who);
    run->reserved_ms = cpu_ms;
    run->request = *request;
    *request = REQUEST_INIT;
    run->events = events_new((size_t)http_cap(x, HTTP_EVENTS_BYTES));
    run->news = (struct serve_news){ .say = say, .has_room = has_room, .user = run };
    const struct work_hooks hooks = { .on_event = on_event, .on_end = on_end, .user = run,
                                      .answers = hears, .approves = own.approve, .allows = allows };
    const struct work_about about = { .owner = owner, .door = "http" };
    run->work = work_begin(serve_works(api->serve), &run->request, api_client(api, owner), &about,
                           &hooks, err);
    if (run->work) {
        runs_name(run, work_id(run->work));
        return run;
    }
    who_run_ends(run->who, cpu_ms, 0);
    runs_remove(run);
    return NULL;
}

void api_run_begin(struct http_exchange *x, json_t *body, const char *session)
{
    struct err err = ERR_INIT;
    own_request request = REQUEST_INIT;
    const char *key = NULL;
    char sum[HASH_HEX_ROOM] = "";
    struct bodies_run own = { .wait = true };
    struct api_run *run = NULL;
    static const char *const none[] = { NULL };
    int same = http_query_only(x, none, &err) < 0 ? -1 : find_same(x, &key, sum, &run, &err);
    if (same == 0) {
        if (session)
            json_object_set_new(body, "session", json_string(session));
        if (bodies_run(body, &own, &err) == 0 && read_request(x, body, &request, &err) == 0)
            run = start(x, &request, key, own, &err);
        if (run)
            memcpy(run->body_sum, sum, sizeof run->body_sum);
    } else if (same > 0 && bodies_run(body, &own, &err) < 0) {
        run = NULL;
    }
    if (same < 0 || !run)
        http_reply_err(x, &err);
    else
        reply(x, run, own.wait);
}

void api_run(struct http_exchange *x)
{
    api_run_begin(x, x->json, NULL);
}

/* The smallest door: {"code","files"?,"timeout_ms"?}. */
void api_run_python(struct http_exchange *x)
{
    struct err err = ERR_INIT;
    own_json request = bodies_python(x->json, &err);
    if (request)
        api_run_begin(x, request, NULL);
    else
        http_reply_err(x, &err);
}
