/* Turns frames into runs, and the news of runs into frames. Runs in the serve process. The contract
 * checks the request; code passes through as bytes only. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/own.h"
#include "serve/serve_int.h"

void serve_run_free(struct serve_run *run)
{
    struct serve_conn *conn = run->conn;
    *(run->before ? &run->before->after : &conn->runs) = run->after;
    if (run->after)
        run->after->before = run->before;
    conn->run_count--;
    if (run->counted && conn->guest.ends)
        conn->guest.ends(conn->guest.user, &run->request, run->cpu_ms);
    request_done(&run->request);
    free(run->stdin_bytes);
    serve_unclaim(conn->serve, run->claim);
    free(run);
}

/* A run that ends at once leaves the list, and may let another one end. */
void serve_run_cancel_all(struct serve_conn *conn)
{
    struct serve_run *run = conn->runs;
    while (run) {
        bool asked = run->cancelled;
        run->cancelled = true;
        if (!asked)
            work_cancel(run->work);
        run = asked ? run->after : conn->runs;
    }
}

static struct serve_run *find(struct serve_conn *conn, struct str id)
{
    for (struct serve_run *run = conn->runs; run; run = run->after)
        if (str_is(id, run->id))
            return run;
    return NULL;
}

bool serve_run_has_id(const struct serve_conn *conn, struct str id)
{
    for (const struct serve_ask *ask = conn->asks; ask; ask = ask->after)
        if (str_is(id, ask->id))
            return true;
    return find((struct serve_conn *)(uintptr_t)conn, id) != NULL;
}

static json_t *error_frame(struct str id, const struct err *err)
{
    json_t *frame = json_object();
    own_json refusal = result_refusal(err);
    if (id.len > 0)
        json_object_set_new(frame, "id", json_stringn(id.at, id.len));
    json_object_update(frame, refusal);
    return frame;
}

void serve_say_error(struct serve_conn *conn, struct str id, const struct err *err)
{
    serve_conn_say(conn, error_frame(id, err));
}

/* --- the engine's news --- */

static void say_event(void *user, const char *name, json_t *members)
{
    struct serve_run *run = user;
    own_json owned = members;
    if (run->conn->source.fd < 0)
        return;
    json_t *event = json_pack("{s:s, s:s, s:I}", "id", run->id, "event", name, "seq",
                              (json_int_t)++run->seq);
    if (owned)
        json_object_update(event, owned);
    serve_conn_say(run->conn, event);
}

static bool has_room(void *user)
{
    const struct serve_run *run = user;
    return serve_conn_unsent(run->conn) <= serve_conn_room(run->conn);
}

/* A client that reads may have as many calls at once as wait in a run, of 1 MiB each. */
static bool has_room_for_calls(void *user)
{
    const struct serve_run *run = user;
    return serve_conn_unsent(run->conn) <= SERVE_CALLS_MAX;
}

static void on_event(void *user, const struct engine_event *event)
{
    struct serve_run *run = user;
    if (run->events && run->conn->source.fd >= 0)
        serve_news_event(&run->news, event);
}

static struct serve_answer *new_answer(const char *id)
{
    struct serve_answer *answer = buf_alloc_zero(1, sizeof *answer);
    snprintf(answer->id, sizeof answer->id, "%s", id);
    answer->last = BUF_INIT(FRAME_NEWS_MAX + FRAME_HEAD);
    return answer;
}

static struct serve_answer *too_long(struct serve_answer *answer)
{
    struct err err = ERR_INIT;
    err_set(&err, ERR_LIMIT, "the result is longer than a frame may be");
    err_hint(&err, "lower limits.stdout_bytes and limits.stderr_bytes");
    own_json refusal = error_frame(str_of(answer->id), &err);
    frame_add(&answer->last, refusal, FRAME_NEWS_MAX);
    return answer;
}

struct serve_answer *serve_answer_new(const char *id, json_t *value)
{
    struct serve_answer *answer = new_answer(id);
    own_json owned = value;
    return frame_add(&answer->last, owned, FRAME_NEWS_MAX) == 0 ? answer : too_long(answer);
}

struct serve_answer *serve_answer_result(const char *id, struct str json)
{
    struct serve_answer *answer = new_answer(id);
    return frame_add_result(&answer->last, id, json, FRAME_NEWS_MAX) == 0 ? answer
                                                                          : too_long(answer);
}

static void finish(struct serve_run *run, struct result *result, struct str json,
                   const struct err *err)
{
    struct serve_conn *conn = run->conn;
    if (conn->source.fd >= 0) {
        serve_news_end(&run->news);
        struct serve_answer *answer = result ? serve_answer_result(run->id, json)
                                             : serve_answer_new(run->id,
                                                                error_frame(str_of(run->id), err));
        if (result && run->content) {
            answer->artifacts = take_ptr(result->artifacts);
            answer->count = result->artifact_count;
            result->artifact_count = 0;
        }
        serve_conn_answer(conn, answer);
    }
    run->cpu_ms = result ? result->cpu_ms : 0;
    serve_run_free(run);
}

static void on_end(void *user, struct result *result, struct str json, const struct err *err)
{
    finish(user, result, json, err);
}

void serve_run_fail(struct serve_run *run, const struct err *err)
{
    work_abandon(run->work);
    finish(run, NULL, STR_NONE, err);
}

/* --- the client's frames --- */

static int take_stdin(struct serve_run *run, const json_t *coded, struct err *err)
{
    size_t len = 0;
    uint64_t most = (uint64_t)run->request.limits.value[LIMITS_INPUT], total = 0;
    if (!coded)
        return 0;
    run->stdin_bytes = base64_decode(json_str(coded), &len);
    if (!run->stdin_bytes)
        return err_input(err, "stdin_base64", NULL, "base64", "field 'stdin_base64' is not base64");
    for (size_t i = 0; i < run->request.file_count; i++)
        total += run->request.files[i].data.len;
    if (len > most || total > most - len) {
        char value[32], bound[64];
        snprintf(value, sizeof value, "%llu", (unsigned long long)(total + len));
        snprintf(bound, sizeof bound, "at most %llu bytes in stdin and files together",
                 (unsigned long long)most);
        err_input(err, "stdin_base64", value, bound, "stdin and files have %s bytes together",
                  value);
        err_hint(err, "send less, or raise limits.input_bytes");
        return -1;
    }
    run->request.stdin_text = (struct str){ run->stdin_bytes, len };
    return 0;
}

static struct serve_run *run_new(struct serve_conn *conn, const struct frame_ask *ask)
{
    struct serve_run *run = buf_alloc_zero(1, sizeof *run);
    run->conn = conn;
    run->news = (struct serve_news){ .say = say_event, .has_room = has_room, .user = run };
    memcpy(run->id, ask->id.at, ask->id.len);
    run->events = ask->events;
    run->content = ask->content;
    run->after = conn->runs;
    if (conn->runs)
        conn->runs->before = run;
    conn->runs = run;
    conn->run_count++;
    return run;
}

static int may_use(void *user, const char *tool, struct err *err)
{
    const struct serve_guest *guest = &((struct serve_conn *)user)->guest;
    return guest->allows_tool ? guest->allows_tool(guest->user, tool, err) : 0;
}

static int allows(void *user, const char *tool, struct err *err)
{
    const struct serve_run *run = user;
    return may_use(run->conn, tool, err);
}

static int count(struct serve_run *run, struct err *err)
{
    const struct serve_guest *guest = &run->conn->guest;
    if (guest->begins && guest->begins(guest->user, &run->request, err) < 0)
        return -1;
    run->counted = true;
    return 0;
}

static struct work_about about_of(const struct serve_conn *conn, const struct frame_ask *ask)
{
    return (struct work_about){
        .owner = conn->guest.owner ? conn->guest.owner : "",
        .door = conn->guest.door ? conn->guest.door : conn->is_guest ? "task" : "socket",
        .task = ask->task[0] ? ask->task : NULL,
        .step = ask->step,
        .replay_of = ask->replay_of[0] ? ask->replay_of : NULL,
    };
}

static void begin(struct serve_conn *conn, const struct frame_ask *ask, size_t claim)
{
    struct serve *serve = conn->serve;
    struct err err = ERR_INIT;
    struct serve_run *run = run_new(conn, ask);
    const struct work_hooks hooks = { .on_event = run->events ? on_event : NULL, .on_end = on_end,
                                      .user = run, .input = run->events && ask->input,
                                      .answers = run->events, .outcomes = ask->outcomes,
                                      .approves = run->events && ask->approves,
                                      .allows = allows, .has_room = has_room_for_calls };
    const struct work_about about = about_of(conn, ask);
    run->claim = claim;
    own_json request = serve_cell_request(serve, ask->request, &err);
    const struct serve_client *client = conn->guest.client ? conn->guest.client : &conn->client;
    if (request &&
        request_from_json(request, serve_conn_ceilings(conn), &run->request, &err) == 0 &&
        take_stdin(run, ask->stdin_base64, &err) == 0 && count(run, &err) == 0)
        run->work = work_begin(serve->works, &run->request, client, &about, &hooks, &err);
    if (run->work) {
        if (run->request.session)
            serve_session_used(conn, run->request.session);
        return;
    }
    serve_say_error(conn, ask->id, &err);
    serve_run_free(run);
}

static json_t *info_frame(const struct serve *serve)
{
    json_t *listen = serve->listen ? json_deep_copy(serve->listen) : json_array();
    const struct records *records = works_records(serve->works);
    json_t *state = engine_describe(serve->engine);
    json_object_set_new(state, "records", records ? records_describe(records) : json_null());
    json_object_set_new(state, "cache", works_describe(serve->works));
    return json_pack("{s:s, s:s, s:s, s:i, s:I, s:i, s:o, s:o}", "op", "info", "engine",
                     "cupel " CUPEL_VERSION, "version", CUPEL_VERSION, "protocol", FRAME_PROTOCOL,
                     "pid", (json_int_t)getpid(), "connections", (int)serve->conn_count, "listen",
                     listen, "state", state);
}

static json_t *tools_frame(struct serve_conn *conn, const struct frame_ask *ask)
{
    json_t *frame = works_list_tools(conn->serve->works, ask->names, STR(""), may_use, conn);
    if (ask->id.len > 0)
        json_object_set_new(frame, "id", json_stringn(ask->id.at, ask->id.len));
    else
        json_object_set_new(frame, "op", json_string("tools"));
    return frame;
}

static int refuse_id(const struct frame_ask *ask, enum err_kind kind, const char *bound,
                     const char *why, struct err *err)
{
    own_json value = json_stringn(ask->id.at, ask->id.len);
    char brief[sizeof err->value];
    json_brief(value, brief, sizeof brief);
    err_input(err, "id", brief, bound, "field 'id' of a frame is %s", why);
    err->kind = kind;
    return -1;
}

/* Checks a run's frame; *of_run says whether a refusal ends its id. */
static int check_run(struct serve_conn *conn, const struct frame_ask *ask, bool *of_run,
                     struct err *err)
{
    *of_run = !serve_run_has_id(conn, ask->id);
    if (!*of_run)
        return refuse_id(ask, ERR_INPUT, "an id that no run of this connection has",
                         "that of a run under way", err);
    if (conn->run_count < SERVE_RUNS_MAX)
        return 0;
    err_set(err, ERR_BUSY, "run limit (%u) of this connection reached", conn->run_count);
    err_hint(err, "wait for one of them to end");
    return -1;
}

void serve_run_take(struct serve_conn *conn, struct str frame, size_t claim)
{
    own_frame_ask ask = FRAME_ASK_INIT;
    struct err err = ERR_INIT;
    bool of_run = false;
    int rc = frame_ask_read(frame, &ask, &err);
    bool has_end = ask.op == FRAME_RUN || ask.op == FRAME_SESSION || ask.op == FRAME_TOOLS;
    if (has_end && ask.id.len > 0) {
        struct err other = ERR_INIT;
        if (check_run(conn, &ask, &of_run, &other) < 0) {
            rc = -1;
            err = other;
        }
    }
    struct serve_run *run = rc == 0 && !has_end ? find(conn, ask.id) : NULL;
    if (rc == 0 && ask.op == FRAME_RUN) {
        begin(conn, &ask, claim);
        return;
    }
    if (rc == 0 && ask.op == FRAME_SESSION) {
        serve_ask_take(conn, &ask, claim);
        return;
    }
    serve_unclaim(conn->serve, claim);
    if (rc == 0 && ask.op == FRAME_TOOLS)
        serve_conn_say(conn, tools_frame(conn, &ask));
    else if (rc == 0 && ask.op == FRAME_PING)
        serve_conn_say(conn, json_pack("{s:s}", "op", "pong"));
    else if (rc == 0 && ask.op == FRAME_INFO)
        serve_conn_say(conn, info_frame(conn->serve));
    else if (run && ask.op == FRAME_CANCEL)
        work_cancel(run->work);
    else if (run && ask.op == FRAME_TOOL_RESULT)
        work_answer(run->work, ask.call, ask.outcome, &err);
    else if (run && ask.op == FRAME_APPROVE)
        work_approve(run->work, ask.call, ask.allow, ask.reason, &err);
    else if (run && ask.op == FRAME_INPUT)
        work_input(run->work, ask.text, ask.end, &err);
    else if (run)
        work_interrupt(run->work);
    else if (rc == 0)
        refuse_id(&ask, ERR_ABSENT, "the id of a run under way", "of no run that goes on", &err);
    if (err.kind != ERR_NONE)
        serve_say_error(conn, of_run ? ask.id : STR_NONE, &err);
}
