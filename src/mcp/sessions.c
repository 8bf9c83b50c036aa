/* The sessions of a conversation: its own, which are made when they are first needed, and those
 * that it names. Runs in the process of a door, in its loop. */
#include <stdlib.h>
#include <string.h>

#include "mcp/mcp_int.h"

void mcp_session_add_image(const struct mcp_call *call, json_t *request)
{
    static const char *const names[] = { "image", "packages" };
    for (size_t i = 0; i < array_len(names); i++) {
        json_t *value = json_object_get(call->args, names[i]);
        if (value)
            json_object_set(request, names[i], value);
    }
}

json_t *mcp_session_request(const struct mcp_call *call, const char *language)
{
    json_t *request = json_pack("{s:s}", "language", language);
    mcp_session_add_image(call, request);
    return request;
}

static json_t *frame_with(const char *what, const char *session)
{
    json_t *frame = json_pack("{s:s, s:s}", "op", "session", "do", what);
    if (session)
        json_object_set_new(frame, "session", json_string(session));
    return frame;
}

void mcp_session_end(struct mcp *mcp, const char *id)
{
    mcp_forget(mcp, frame_with("end", id));
}

bool mcp_session_may(const struct mcp_call *call, const char *id)
{
    const struct mcp_options *options = &call->mcp->options;
    return !options->may_use || options->may_use(options->user, id);
}

int mcp_session_language(const char *name)
{
    int found = request_language_find(name);
    return found >= 0 && request_languages[found].sessions ? found : -1;
}

/* --- making one --- */

static int count_begins(struct mcp *mcp, json_t *request, struct err *err)
{
    const struct mcp_options *options = &mcp->options;
    return options->session_begins ? options->session_begins(options->user, request, err) : 0;
}

static void count_made(struct mcp *mcp, const char *id)
{
    if (id && mcp->options.session_made)
        mcp->options.session_made(mcp->options.user, id);
    else if (!id && mcp->options.session_failed)
        mcp->options.session_failed(mcp->options.user);
}

/* Its id in the answer to `new` and `fork`; NULL: it failed. */
static const char *id_of(const struct embed_call *of)
{
    const json_t *info = of->err.kind == ERR_NONE ? json_object_get(of->answer, "session") : NULL;
    const char *id = json_string_value(json_object_get(info, "session"));
    return id && strlen(id) == REQUEST_SESSION_LEN ? id : NULL;
}

static void add_life(json_t *frame)
{
    json_object_set_new(frame, "op", json_string("session"));
    if (!str_is(json_get_str(frame, "do"), "new"))
        return;
    json_object_set_new(frame, "ttl_s", json_integer(MCP_SESSION_TTL_S));
    json_object_set_new(frame, "life_s", json_integer(MCP_SESSION_LIFE_S));
}

int mcp_session_new(struct mcp_call *call, json_t *frame, void (*then)(struct mcp_call *call),
                    struct err *err)
{
    if (count_begins(call->mcp, json_object_get(frame, "request"), err) < 0) {
        json_decref(frame);
        return -1;
    }
    add_life(frame);
    if (mcp_call_ask(call, frame, then, err) == 0)
        return 0;
    count_made(call->mcp, NULL);
    return -1;
}

const char *mcp_session_took(struct mcp_call *call)
{
    const char *id = id_of(&call->of);
    count_made(call->mcp, id);
    if (id)
        return id;
    if (call->of.err.kind == ERR_NONE)
        err_set(&call->of.err, ERR_BUG, "the engine did not describe the session");
    const struct err err = call->of.err;
    mcp_call_refuse(call, &err);
    return NULL;
}

/* --- the conversation's own --- */

static void resume(struct mcp_call *call, const struct mcp_default *own, const struct err *err)
{
    call->waits = false;
    if (err || call->muted) {
        const struct err cancelled = { .kind = ERR_CANCELLED, .text = "cancelled" };
        mcp_call_refuse(call, err ? err : &cancelled);
        return;
    }
    snprintf(call->session, sizeof call->session, "%s", own->id);
    call->then(call);
}

static void own_is_made(struct embed_call *of)
{
    struct mcp_default *own = of->user;
    struct mcp_peer *peer = own->peer;
    struct mcp *mcp = peer->mcp;
    const char *id = id_of(of);
    struct err err = of->err;
    if (!id && err.kind == ERR_NONE)
        err_set(&err, ERR_BUG, "the engine did not describe the session");
    count_made(mcp, id);
    snprintf(own->id, sizeof own->id, "%s", id ? id : "");
    embed_call_done(&mcp->client, of);
    peer->calls++; /* it stays while calls go on */
    for (struct mcp_call *call = mcp->calls; call;) {
        bool waits = call->waits && call->own == own;
        if (waits)
            resume(call, own, own->id[0] ? NULL : &err);
        call = waits ? mcp->calls : call->next;
    }
    own->making = false;
    if (peer->ended && own->id[0]) {
        mcp_session_end(mcp, own->id);
        own->id[0] = 0;
    }
    peer->calls--;
    mcp_peer_look(peer);
}

/* In the image of the first call; a later one that names another is refused by the engine. */
static int make_own(const struct mcp_call *call, struct mcp_default *own, const char *language,
                    struct err *err)
{
    struct mcp *mcp = own->peer->mcp;
    own_json frame = json_pack("{s:s, s:o}", "do", "new", "request",
                               mcp_session_request(call, language));
    if (mcp_reach(mcp, err) < 0 || count_begins(mcp, json_object_get(frame, "request"), err) < 0)
        return -1;
    add_life(frame);
    own->of = (struct embed_call){ .on_end = own_is_made, .user = own };
    if (embed_client_begin(&mcp->client, &own->of, frame, err) == 0) {
        own->making = true;
        return 0;
    }
    count_made(mcp, NULL);
    return -1;
}

bool mcp_session_lost(struct mcp_call *call)
{
    struct mcp_default *own = call->own;
    if (!own || call->again || call->muted)
        return false;
    call->again = true;
    if (own->id[0] && strcmp(own->id, call->session) == 0) {
        own->id[0] = 0;
        snprintf(own->note, sizeof own->note,
                 "the session before has ended, with its variables and files; this one is new");
    }
    call->session[0] = 0;
    return true;
}

/* --- which one a call means --- */

static void find_own(struct mcp_call *call, void (*then)(struct mcp_call *call))
{
    const char *name = json_string_value(json_object_get(call->args, "language"));
    const int language = mcp_session_language(name ? name : "python");
    struct err err = ERR_INIT;
    if (language < 0) {
        err_set(&err, ERR_INPUT, "language '%.40s' has no sessions", name);
        mcp_call_refuse(call, &err);
        return;
    }
    struct mcp_default *own = &call->peer->defaults[language];
    call->own = own;
    call->then = then;
    if (own->id[0] && !own->making) {
        snprintf(call->session, sizeof call->session, "%s", own->id);
        then(call);
    } else if (own->making || make_own(call, own, request_languages[language].name, &err) == 0) {
        call->waits = true;
    } else {
        mcp_call_refuse(call, &err);
    }
}

void mcp_session_find(struct mcp_call *call, bool may_lack, void (*then)(struct mcp_call *call))
{
    const char *id = json_string_value(json_object_get(call->args, "session"));
    struct err err = ERR_INIT;
    if (id && (strlen(id) != REQUEST_SESSION_LEN || !mcp_session_may(call, id))) {
        err_set(&err, ERR_ABSENT, "there is no session '%.80s'", id);
        err_hint(&err, "session with do=new makes one, do=list shows those that live");
        mcp_call_refuse(call, &err);
    } else if (id) {
        snprintf(call->session, sizeof call->session, "%s", id);
        then(call);
    } else if (call->era == MCP_LEGACY && call->peer->keeps) {
        find_own(call, then);
    } else if (may_lack) {
        then(call);
    } else {
        err_input(&err, "session", NULL, "the id of a session", "argument 'session' is missing");
        err_hint(&err, "run_code with session 'new' makes one and returns its id");
        mcp_call_refuse(call, &err);
    }
}
