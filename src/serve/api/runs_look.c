/* Looks at runs: their state, events, output and files; cancels them. Runs in the serve process. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/own.h"
#include "serve/api/bodies.h"
#include "serve/api/records.h"
#include "serve/api/runs.h"

/* The run of the path, or NULL: after a reply, or where its record gives the reply. A run in memory
 * that the token may not see takes the same way as one that does not exist. */
static struct api_run *find(struct http_exchange *x, enum records_part part, bool is_err)
{
    struct err err = ERR_INIT;
    static const char *const known[] = { "from", NULL };
    struct api_run *run = runs_find(api_of(x)->runs, x->arg[0]);
    if (http_query_only(x, part == RECORDS_EVENTS ? known : known + 1, &err) < 0) {
        http_reply_err(x, &err);
        return NULL;
    }
    if (!run || !who_may_see(x->who, run->owner)) {
        records_answer(x, part, is_err);
        return NULL;
    }
    snprintf(x->run, sizeof x->run, "%s", run->id);
    return run;
}

/* The same, for what a run has only after its end. */
static struct api_run *find_ended(struct http_exchange *x, enum records_part part, bool is_err)
{
    struct err err = ERR_INIT;
    struct api_run *run = find(x, part, is_err);
    if (!run || !run->going)
        return run;
    err_set(&err, ERR_CONFLICT, "run '%s' has not ended", run->id);
    err_hint(&err, "follow /v1/runs/%s/events, whose last event is the end", run->id);
    http_reply_err(x, &err);
    return NULL;
}

void api_run_show(struct http_exchange *x)
{
    struct api_run *run = find(x, RECORDS_RESULT, /* is_err= */ false);
    if (run && !run->going)
        runs_answer(x, run);
    if (!run || !run->going)
        return;
    json_t *state = json_pack("{s:s, s:s}", "run", run->id, "status", "running");
    own_json asking = work_asking(run->work);
    if (json_array_size(asking) > 0)
        json_object_set(state, "asking", asking);
    http_reply_json(x, 200, state);
}

void api_run_events(struct http_exchange *x)
{
    struct err err = ERR_INIT;
    uint64_t from = 1;
    struct api_run *run = find(x, RECORDS_EVENTS, /* is_err= */ false);
    if (!run)
        return;
    if (http_events_from(x, &from, &err) < 0)
        http_reply_err(x, &err);
    else
        http_reply_events(x, run->events, from);
}

static const struct result_artifact *find_artifact(const struct api_run *run, const char *path)
{
    for (size_t i = 0; i < run->artifact_count; i++) {
        const struct result_artifact *one = &run->artifacts[i];
        if (one->content && str_is((struct str){ one->path, one->path_len }, path))
            return one;
    }
    return NULL;
}

static void reply_file(struct http_exchange *x, struct api_run *run, const char *mime,
                       struct str content)
{
    /* The bytes are those of untrusted code: no browser may show them as a page of ours. */
    http_add_header(x, "Content-Security-Policy", "sandbox");
    http_add_header(x, "Content-Disposition", "attachment");
    runs_reply(x, run, mime, content);
}

/* The bytes of a stream as the result has them, made once for all who ask. -1: it has none. */
static int make_text(struct api_run *run, bool is_err)
{
    struct str value = events_value(run->events);
    struct api_text *out = &run->text[is_err];
    own_json result = json_loadb(value.at, value.len, JSON_ALLOW_NUL, NULL);
    const json_t *text = json_object_get(result, is_err ? "stderr" : "stdout");
    const json_t *coded = json_object_get(result, is_err ? "stderr_base64" : "stdout_base64");
    if (!text)
        return -1;
    out->at = coded ? base64_decode(json_str(coded), &out->len) : NULL;
    if (!out->at) {
        out->at = buf_strdup(json_str(text));
        out->len = json_str(text).len;
    }
    runs_grew(run, out->len);
    return 0;
}

/* All of it where it was kept, else head and tail as the result has them. */
static void reply_stream(struct http_exchange *x, bool is_err)
{
    struct api_run *run = find_ended(x, RECORDS_OUTPUT, is_err);
    struct err err = ERR_INIT;
    if (!run)
        return;
    const struct result_artifact *whole = find_artifact(run,
                                                        is_err ? ".cupel/stderr" : ".cupel/stdout");
    if (!whole && !run->text[is_err].at && make_text(run, is_err) < 0) {
        err_set(&err, ERR_ABSENT, "run '%s' has no output: it did not begin", run->id);
        http_reply_err(x, &err);
        return;
    }
    reply_file(x, run, "text/plain; charset=utf-8",
               whole ? (struct str){ whole->content, whole->size_bytes }
                     : (struct str){ run->text[is_err].at, run->text[is_err].len });
}

void api_run_stdout(struct http_exchange *x)
{
    reply_stream(x, /* is_err= */ false);
}

void api_run_stderr(struct http_exchange *x)
{
    reply_stream(x, /* is_err= */ true);
}

void api_run_artifact(struct http_exchange *x)
{
    struct api_run *run = find_ended(x, RECORDS_ARTIFACT, /* is_err= */ false);
    struct err err = ERR_INIT;
    if (!run)
        return;
    const struct result_artifact *one = find_artifact(run, x->arg[1]);
    if (!one) {
        api_absent(&err, "artifact", x->arg[1]);
        http_reply_err(x, &err);
        return;
    }
    reply_file(x, run, one->mime, (struct str){ one->content, one->size_bytes });
}

static int answer(struct api_run *run, int64_t call, const json_t *body, struct err *err)
{
    return work_answer(run->work, call, body, err);
}

static int decide(struct api_run *run, int64_t call, const json_t *body, struct err *err)
{
    struct str reason;
    bool allow;
    return bodies_decision(body, &allow, &reason, err) < 0
               ? -1
               : work_approve(run->work, call, allow, reason, err);
}

/* The client answers a call of a tool, or decides on it. */
static void say_to_call(struct http_exchange *x, const char *status,
                        int (*say)(struct api_run *, int64_t, const json_t *, struct err *))
{
    struct err err = ERR_INIT;
    static const char *const none[] = { NULL };
    struct api_run *run = runs_find(api_of(x)->runs, x->arg[0]);
    long long call = strtoll(x->arg[1], NULL, 10);
    if (http_query_only(x, none, &err) < 0) {
        http_reply_err(x, &err);
        return;
    }
    if (!run || !who_may_see(x->who, run->owner)) {
        api_absent(&err, "run", x->arg[0]);
        http_reply_err(x, &err);
        return;
    }
    snprintf(x->run, sizeof x->run, "%s", run->id);
    if (!run->going)
        api_absent(&err, "call", x->arg[1]);
    if (!run->going || say(run, call, x->json, &err) < 0)
        http_reply_err(x, &err);
    else
        http_reply_json(x, 200,
                        json_pack("{s:s, s:I, s:s}", "run", run->id, "call", (json_int_t)call,
                                  "status", status));
}

void api_run_answer(struct http_exchange *x)
{
    say_to_call(x, "answered", answer);
}

void api_run_approve(struct http_exchange *x)
{
    say_to_call(x, "decided", decide);
}

void api_run_cancel(struct http_exchange *x)
{
    struct api_run *run = find(x, RECORDS_OUTCOME, /* is_err= */ false);
    if (!run)
        return;
    if (run->going)
        work_cancel(run->work);
    http_reply_json(x, run->going ? 202 : 200,
                    json_pack("{s:s, s:s}", "run", run->id, "status",
                              run->going ? "cancelling" : run->outcome));
}
