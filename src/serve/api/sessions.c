/* Sessions over HTTP. Runs in the serve process. A session belongs to the token that made it, or
 * from whose session it was forked; one that came by the socket has no owner, and only operators
 * see it. Each request becomes the frame that the socket takes (docs/protocol.md), so that both
 * doors check and do the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "contract/frame.h"
#include "serve/api/api.h"
#include "serve/api/bodies.h"
#include "serve/work/acts.h"

struct owned {
    struct owned *next;
    char id[32], owner[WHO_ID_ROOM];
    struct who_token *who; /* until it has ended */
};

struct api_sessions {
    struct owned *first;
};

struct api_sessions *api_sessions_new(void)
{
    return buf_alloc_zero(1, sizeof(struct api_sessions));
}

void api_sessions_free(struct api_sessions *sessions)
{
    if (!sessions)
        return;
    while (sessions->first) {
        struct owned *next = sessions->first->next;
        who_unref(sessions->first->who);
        free(sessions->first);
        sessions->first = next;
    }
    free(sessions);
}

static struct owned *find(const struct api *api, const char *id)
{
    struct owned *one = api->sessions->first;
    while (one && strcmp(one->id, id) != 0)
        one = one->next;
    return one;
}

const char *api_session_owner(const struct api *api, const char *id)
{
    const struct owned *one = find(api, id);
    return one ? one->owner : "";
}

int api_session_check(const struct http_exchange *x, const char *id, struct err *err)
{
    const struct api *api = api_of(x);
    if (strlen(id) != REQUEST_SESSION_LEN || !who_may_see(x->who, api_session_owner(api, id)))
        return api_absent(err, "session", id);
    /* An operator may name what never was: the same words. */
    if (!engine_session_is_known(api->engine, id))
        return api_absent(err, "session", id);
    return 0;
}

/* Gives back the quota of sessions that have ended by themselves. The owner of an ended session is
 * remembered as long as the engine remembers the session. */
static void look_for_ended(struct api *api)
{
    struct err err = ERR_INIT;
    for (struct owned **at = &api->sessions->first; *at;) {
        struct owned *one = *at;
        bool lives = engine_session_request(api->engine, one->id, &err) != NULL;
        if (!lives && one->who) {
            who_session_ends(one->who);
            who_unref(one->who);
            one->who = NULL;
        }
        if (!lives && !engine_session_is_known(api->engine, one->id)) {
            *at = one->next;
            free(one);
        } else {
            at = &one->next;
        }
    }
}

void api_session_note(struct api *api, const char *id, struct who_token *who)
{
    struct owned *one = buf_alloc_zero(1, sizeof *one);
    snprintf(one->id, sizeof one->id, "%s", id);
    snprintf(one->owner, sizeof one->owner, "%s", who_id(who));
    one->who = who_ref(who);
    one->next = api->sessions->first;
    api->sessions->first = one;
}

int api_session_count(struct api *api, struct who_token *who, json_t *given, struct err *err)
{
    own_request request = REQUEST_INIT;
    if (given && (request_from_session_json(given, &api->ceilings, &request, err) < 0 ||
                  who_allows(who, &request, err) < 0))
        return -1;
    look_for_ended(api);
    return who_session_begins(who, err);
}

/* --- asks --- */

/* An action under way: it outlives its exchange, because the engine finishes it. */
struct ask {
    struct api *api;
    struct http_exchange *x; /* NULL: the client is gone */
    struct frame_ask frame;
    struct frame_session what;
    struct who_token *who;
    unsigned status;
    bool counted; /* a session was counted for it */
    struct act *act;
};

static void ask_free(struct ask *ask)
{
    frame_ask_done(&ask->frame);
    who_unref(ask->who);
    act_end(ask->act, "", NULL);
    free(ask);
}

static void on_gone(struct http_exchange *x)
{
    struct ask *ask = x->state;
    if (ask)
        ask->x = NULL;
}

static bool is_seen(const struct ask *ask, const json_t *info)
{
    const char *id = json_string_value(json_object_get(info, "session"));
    return id && who_may_see(ask->who, api_session_owner(ask->api, id));
}

/* Only the sessions that this token may see. */
static json_t *seen_of(const struct ask *ask, const json_t *list)
{
    json_t *seen = json_array(), *info;
    size_t i;
    json_array_foreach (list, i, info)
        if (is_seen(ask, info))
            json_array_append(seen, info);
    return json_pack("{s:o}", "sessions", seen);
}

static json_t *reply_of(const struct ask *ask, json_t *answer)
{
    const json_t *list = json_object_get(answer, "sessions");
    json_t *info = json_object_get(answer, "session");
    if (list)
        return seen_of(ask, list);
    if (!info)
        return json_incref(answer);
    json_t *reply = json_copy(info);
    const char *const beside[] = { "from", "lost" };
    for (size_t i = 0; i < array_len(beside); i++)
        if (json_object_get(answer, beside[i]))
            json_object_set(reply, beside[i], json_object_get(answer, beside[i]));
    return reply;
}

static void add_location(struct http_exchange *x, const char *id)
{
    char where[64];
    snprintf(where, sizeof where, "/v1/sessions/%s", id ? id : "");
    http_add_header(x, "Location", where);
}

static void on_answer(void *user, json_t *answer, struct result_artifact *file,
                      const struct err *err)
{
    struct ask *ask = user;
    (void)file;
    const char *id = json_string_value(
        json_object_get(json_object_get(answer, "session"), "session"));
    if (ask->counted && !err && id)
        api_session_note(ask->api, id, ask->who);
    else if (ask->counted)
        who_session_ends(ask->who);
    act_end(take_ptr(ask->act), id ? api_session_owner(ask->api, id) : "", err ? NULL : answer);
    if (ask->x) {
        ask->x->state = NULL;
        if (!err && ask->status == 201)
            add_location(ask->x, id);
        if (err)
            http_reply_err(ask->x, err);
        else
            http_reply_json(ask->x, ask->status, reply_of(ask, answer));
    }
    if (!err && ask->what.what == FRAME_DO_END)
        look_for_ended(ask->api);
    ask_free(ask);
}

/* `frame` has the members of the socket's frame but op and id; it is taken over. */
static void begin(struct http_exchange *x, json_t *frame, unsigned status, bool counts)
{
    struct api *api = api_of(x);
    struct err err = ERR_INIT;
    own_request request = REQUEST_INIT;
    struct engine_ask *begun = NULL;
    struct ask *ask = buf_alloc_zero(1, sizeof *ask);
    *ask = (struct ask){ .api = api, .x = x, .frame = FRAME_ASK_INIT, .who = who_ref(x->who),
                         .status = status };
    ask->frame.root = frame;
    const struct engine_ask_hooks hooks = { on_answer, ask };
    static const char *const known[] = { "names", NULL };
    int rc = http_query_only(x, x->route->handle == api_session_show ? known : known + 1, &err);
    if (rc == 0)
        rc = frame_session_read(&ask->frame, &ask->what, &err);
    if (rc == 0 && ask->what.what == FRAME_DO_NEW)
        rc = request_from_session_json(ask->what.request, &api->ceilings, &request, &err) < 0 ||
                     who_allows(x->who, &request, &err) < 0 ||
                     api_blobs_fill(api, x->who, &request, &err) < 0
                 ? -1
                 : 0;
    if (rc == 0 && counts) {
        look_for_ended(api);
        rc = who_session_begins(x->who, &err);
        ask->counted = rc == 0;
    }
    x->state = ask;
    x->gone = on_gone;
    if (rc == 0)
        ask->act = act_begin(serve_acts(api->serve), &ask->what, &request);
    if (rc == 0 && engine_ask(api->engine, &ask->what, &request, &hooks, &begun, &err) == 0)
        return;
    on_answer(ask, NULL, NULL, &err);
}

/* The frame of an action on the session of the path, with the members of the body; NULL after a
 * reply. */
static json_t *frame_of(struct http_exchange *x, const char *what)
{
    struct err err = ERR_INIT;
    if (api_session_check(x, x->arg[0], &err) < 0) {
        http_reply_err(x, &err);
        return NULL;
    }
    json_t *frame = json_pack("{s:s, s:s}", "do", what, "session", x->arg[0]);
    json_object_update_missing(frame, x->json);
    return frame;
}

static void act(struct http_exchange *x, const char *what, unsigned status, bool counts)
{
    json_t *frame = frame_of(x, what);
    if (frame)
        begin(x, frame, status, counts);
}

void api_session_new(struct http_exchange *x)
{
    begin(x, bodies_session(x->json), 201, /* counts= */ true);
}

void api_session_list(struct http_exchange *x)
{
    begin(x, json_pack("{s:s}", "do", "list"), 200, /* counts= */ false);
}

/* The names are asked of the interpreter: that waits for its cell. */
void api_session_show(struct http_exchange *x)
{
    struct err err = ERR_INIT;
    const char *names = http_query(x, "names");
    if (names && strcmp(names, "true") != 0 && strcmp(names, "false") != 0) {
        err_input(&err, "names", NULL, "true or false", "parameter 'names' is not a boolean");
        http_reply_err(x, &err);
        return;
    }
    json_t *frame = frame_of(x, "info");
    if (!frame)
        return;
    if (names && strcmp(names, "true") == 0)
        json_object_set_new(frame, "names", json_true());
    begin(x, frame, 200, /* counts= */ false);
}

void api_session_end(struct http_exchange *x)
{
    if (!api_shelf_remove(x))
        act(x, "end", 200, /* counts= */ false);
}

void api_session_interrupt(struct http_exchange *x)
{
    act(x, "interrupt", 200, /* counts= */ false);
}

void api_session_checkpoint(struct http_exchange *x)
{
    act(x, "checkpoint", 200, /* counts= */ false);
}

void api_session_undo(struct http_exchange *x)
{
    act(x, "undo", 200, /* counts= */ false);
}

void api_session_fork(struct http_exchange *x)
{
    act(x, "fork", 201, /* counts= */ true);
}

void api_session_run(struct http_exchange *x)
{
    struct err err = ERR_INIT;
    const json_t *named = json_object_get(x->json, "session");
    if (named && !str_is(json_str(named), x->arg[0])) {
        err_input(&err, "session", NULL, "the session of the path",
                  "field 'session' is not the session of the path");
        http_reply_err(x, &err);
    } else if (api_session_check(x, x->arg[0], &err) < 0) {
        http_reply_err(x, &err);
    } else {
        api_run_begin(x, x->json, x->arg[0]);
    }
}
