/* Frames that ask something of sessions. Runs in the serve process: the contract checks, the engine
 * acts. A request outlives its client, because its action continues. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "serve/serve_int.h"

void serve_ask_free(struct serve_ask *ask)
{
    struct serve_conn *conn = ask->conn;
    *(ask->before ? &ask->before->after : &conn->asks) = ask->after;
    if (ask->after)
        ask->after->before = ask->before;
    conn->run_count--;
    act_end(ask->act, "", NULL);
    frame_ask_done(&ask->ask);
    serve_unclaim(conn->serve, ask->claim);
    free(ask);
}

void serve_session_used(struct serve_conn *conn, const char *id)
{
    size_t at = 0;
    while (at < SERVE_SESSIONS_TOLD - 1 && strcmp(conn->used[at], id) != 0)
        at++;
    memmove(conn->used[1], conn->used[0], at * sizeof conn->used[0]);
    snprintf(conn->used[0], sizeof conn->used[0], "%s", id);
}

static bool has_used(const struct serve_conn *conn, const char *id)
{
    for (size_t i = 0; i < SERVE_SESSIONS_TOLD; i++)
        if (strcmp(conn->used[i], id) == 0)
            return true;
    return false;
}

void serve_session_told(void *user, const char *id, const json_t *event)
{
    const struct serve *serve = user;
    bool output = str_is(json_get_str(event, "event"), "output"); /* a result has it, too */
    for (struct serve_conn *conn = serve->conns, *next; conn; conn = next) {
        next = conn->after;
        size_t room = output ? serve_conn_room(conn) : SERVE_OUT_MAX;
        if (conn->source.fd >= 0 && has_used(conn, id) && serve_conn_unsent(conn) <= room)
            serve_conn_say(conn, json_deep_copy(event));
    }
}

static void say(struct serve_ask *ask, json_t *members, struct result_artifact *file)
{
    struct serve_conn *conn = ask->conn;
    if (conn->source.fd < 0)
        return;
    const char *id = json_string_value(
        json_object_get(json_object_get(members, "session"), "session"));
    if (id) /* also a new one */
        serve_session_used(conn, id);
    json_t *frame = json_pack("{s:s}", "id", ask->id);
    json_object_update(frame, members);
    struct serve_answer *answer = serve_answer_new(ask->id, frame);
    if (file) {
        answer->artifacts = buf_alloc_zero(1, sizeof *answer->artifacts);
        answer->artifacts[0] = *file;
        answer->count = 1;
        file->path = file->content = NULL;
    }
    serve_conn_answer(conn, answer);
}

static void on_answer(void *user, json_t *members, struct result_artifact *file,
                      const struct err *err)
{
    struct serve_ask *ask = user;
    const char *owner = ask->conn->guest.owner;
    act_end(take_ptr(ask->act), owner ? owner : "", err ? NULL : members);
    if (err)
        serve_say_error(ask->conn, str_of(ask->id), err);
    else
        say(ask, members, file);
    serve_ask_free(ask);
}

void serve_ask_fail(struct serve_ask *ask, const struct err *err)
{
    on_answer(ask, NULL, NULL, err);
}

/* The engine needs more than the frame: a new session's request, files to put. */
static int make_request(const struct serve_conn *conn, const struct frame_session *what,
                        struct request *out, struct err *err)
{
    const struct request_ceilings *ceilings = serve_conn_ceilings(conn);
    if (what->what == FRAME_DO_NEW) {
        own_json none = json_object();
        return request_from_session_json(what->request ? what->request : none, ceilings, out, err);
    }
    if (what->what != FRAME_DO_PUT)
        return 0;
    own_json carrier = json_pack("{s:s, s:O}", "code", "", "files", what->files);
    return request_from_json(carrier, ceilings, out, err);
}

void serve_ask_take(struct serve_conn *conn, struct frame_ask *frame, size_t claim)
{
    struct serve *serve = conn->serve;
    struct err err = ERR_INIT;
    own_request request = REQUEST_INIT;
    struct engine_ask *begun = NULL;
    struct serve_ask *ask = buf_alloc_zero(1, sizeof *ask);
    *ask = (struct serve_ask){ .conn = conn, .ask = *frame, .claim = claim, .after = conn->asks };
    *frame = FRAME_ASK_INIT;
    memcpy(ask->id, ask->ask.id.at, ask->ask.id.len);
    if (conn->asks)
        conn->asks->before = ask;
    conn->asks = ask;
    conn->run_count++;
    const struct engine_ask_hooks hooks = { on_answer, ask };
    if (frame_session_read(&ask->ask, &ask->what, &err) == 0 &&
        make_request(conn, &ask->what, &request, &err) == 0) {
        ask->act = act_begin(serve->acts, &ask->what, &request);
        if (engine_ask(serve->engine, &ask->what, &request, &hooks, &begun, &err) == 0)
            return;
    }
    serve_ask_fail(ask, &err);
}

json_t *serve_cell_request(struct serve *serve, json_t *request, struct err *err)
{
    const char *id = json_string_value(json_object_get(request, "session"));
    if (!id)
        return json_incref(request);
    const struct request *session = engine_session_request(serve->engine, id, err);
    return session ? request_of_cell(request, session, err) : NULL;
}
