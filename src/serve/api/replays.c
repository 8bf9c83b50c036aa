/* Replays over HTTP: POST /v1/runs/{id}/replay, GET /v1/replays/{id}. Runs in the serve process, in
 * its loop.
 * 1. A replay belongs to the token that asked for it; its runs are that token's, in the queue and
 *    in the quota, and are recorded as its own.
 * 2. It is cancelled when its client goes, unless it was begun to be looked at later. */
#include "serve/api/replays.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/own.h"
#include "contract/frame.h"
#include "contract/result.h"
#include "replay/remake.h"
#include "serve/api/guest.h"

static void replay_free(struct api_replay *replay)
{
    own_close_fd(&replay->cancel_fd);
    own_close_fd(&replay->engine);
    json_decref(replay->secrets);
    json_decref(replay->answer);
    who_unref(replay->who);
    free(replay);
}

/* --- answers --- */

/* {"replay","run","status"}, and the report or the error. */
static json_t *describe(const struct api_replay *replay)
{
    bool failed = !replay->runs && !replay->answer;
    json_t *out = json_pack("{s:s, s:s, s:s}", "replay", replay->id, "run", replay->run, "status",
                            replay->runs ? "running"
                            : failed     ? "refused"
                                         : "done");
    if (replay->answer)
        json_object_update(out, replay->answer);
    if (failed) {
        own_json refusal = result_refusal(&replay->err);
        json_object_update(out, refusal);
    }
    return out;
}

static void answer(struct http_exchange *x, const struct api_replay *replay)
{
    if (replay->answer)
        http_reply_json(x, 200, describe(replay));
    else
        http_reply_err(x, &replay->err);
}

/* --- the table --- */

static void hold_caps(struct api_replays *all)
{
    size_t kept = 0, bytes = 0;
    for (struct api_replay **at = &all->first; *at;) {
        struct api_replay *one = *at;
        kept += !one->runs;
        bytes += one->bytes;
        if (!one->runs && !one->x && (kept > REPLAYS_KEPT || bytes > REPLAYS_BYTES) &&
            one != all->first) {
            *at = one->next;
            replay_free(one);
        } else {
            at = &one->next;
        }
    }
}

static void finish(struct api_replay *replay)
{
    own_buf text = BUF_INIT(REPLAYS_BYTES);
    replays_join(replay);
    replay->all->running--;
    if (replay->counted)
        who_session_ends(replay->who);
    replay->counted = false;
    if (replay->answer && json_add(&text, replay->answer) < 0)
        err_set(&replay->err, ERR_LIMIT, "the report is longer than an answer may be");
    if (replay->answer && text.len == 0)
        json_decref(take_ptr(replay->answer));
    replay->bytes = text.len;
    if (replay->x) {
        struct http_exchange *x = take_ptr(replay->x);
        x->state = NULL;
        answer(x, replay);
    }
}

static void on_ready(struct loop_source *source, uint32_t events)
{
    struct api_replays *all = loop_owner(source, struct api_replays, ready);
    uint64_t count;
    (void)events;
    if (read(source->fd, &count, sizeof count) < 0)
        return;
    for (struct api_replay *one = all->first; one; one = one->next)
        if (one->runs && __atomic_load_n(&one->over, __ATOMIC_ACQUIRE))
            finish(one);
    hold_caps(all);
}

struct api_replays *api_replays_open(struct api *api, struct err *err)
{
    struct api_replays *all = buf_alloc_zero(1, sizeof *all);
    all->api = api;
    all->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    all->ready = (struct loop_source){ .fd = all->wake_fd, .ready = LOOP_HANDLER(on_ready) };
    if (all->wake_fd >= 0 && loop_add(api->loop, &all->ready, EPOLLIN) == 0)
        return all;
    err_sys(err, "watch the threads of replays");
    own_close_fd(&all->wake_fd);
    free(all);
    return NULL;
}

void api_replays_cancel(struct api_replays *all)
{
    for (struct api_replay *one = all ? all->first : NULL; one; one = one->next)
        replays_cancel(one);
}

bool api_replays_are_quiet(const struct api_replays *all)
{
    return !all || all->running == 0;
}

void api_replays_close(struct api_replays *all)
{
    if (!all)
        return;
    api_replays_cancel(all);
    loop_remove(all->api->loop, &all->ready);
    while (all->first) {
        struct api_replay *one = all->first;
        all->first = one->next;
        if (one->runs)
            replays_join(one);
        replay_free(one);
    }
    own_close_fd(&all->wake_fd);
    free(all);
}

/* --- POST /v1/runs/{id}/replay --- */

struct wish {
    bool any_image, wait;
    const json_t *secrets;
};

static int refuse(const char *field, const json_t *value, const char *bound, struct err *err)
{
    char brief[sizeof err->value] = "";
    json_brief(value, brief, sizeof brief);
    return err_input(err, field, brief, bound, "field '%.80s' is not %s", field, bound);
}

static int check_secrets(const json_t *secrets, struct err *err)
{
    const char *name;
    json_t *value;
    if (secrets && !json_is_object(secrets))
        return refuse("secrets", secrets, "an object of HASH and text", err);
    json_object_foreach ((json_t *)(uintptr_t)secrets, name, value)
        if (strlen(name) != REMAKE_HASH || strspn(name, "0123456789abcdef") != REMAKE_HASH ||
            !json_is_string(value))
            /* Never its value. */
            return err_input(err, "secrets", NULL, "8 hexadecimal digits and a text",
                             "a member of 'secrets' is not a marker's hash with a text");
    return 0;
}

static int read_wish(const json_t *body, struct wish *out, struct err *err)
{
    static const char *const known[] = { "any_image", "secrets", "wait" };
    const char *name;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)body, name, value) {
        size_t i = 0;
        while (i < array_len(known) && strcmp(known[i], name) != 0)
            i++;
        if (i == array_len(known))
            return err_input(err, name, NULL, "any_image, secrets, wait",
                             "field '%.80s' is unknown", name);
        if (i != 1 && !json_is_boolean(value))
            return refuse(name, value, "true or false", err);
    }
    const json_t *wait = json_object_get(body, "wait");
    *out = (struct wish){ .any_image = json_is_true(json_object_get(body, "any_image")),
                          .wait = !wait || json_is_true(wait),
                          .secrets = json_object_get(body, "secrets") };
    return check_secrets(out->secrets, err);
}

static bool is_run_id(const char *id)
{
    return strlen(id) == FRAME_RECORD_LEN && strncmp(id, "r_", 2) == 0 &&
           strspn(id + 2, "0123456789abcdef") == FRAME_RECORD_LEN - 2;
}

static unsigned count_running(const struct api_replays *replays, const char *owner)
{
    unsigned count = 0;
    for (const struct api_replay *one = replays->first; one; one = one->next)
        count += one->runs && strcmp(one->owner, owner) == 0;
    return count;
}

static int check_open(const struct api *api, const char *owner, const char *id, struct err *err)
{
    if (!is_run_id(id) || !api->replays)
        return api_absent(err, "run", id);
    if (api->draining)
        return err_set(err, ERR_BUSY, "the service is stopping");
    if (count_running(api->replays, owner) >= REPLAYS_OWNER) {
        err_set(err, ERR_QUOTA, "%d replays of this token run already, as many as may",
                REPLAYS_OWNER);
        err_hint(err, "wait for the end of one, then try again");
        return -1;
    }
    if (api->replays->running < REPLAYS_RUNNING)
        return 0;
    err_set(err, ERR_BUSY, "%d replays run already, as many as may", REPLAYS_RUNNING);
    err_hint(err, "try again later");
    return -1;
}

static struct api_replay *replay_new(struct http_exchange *x, const struct wish *wish)
{
    struct api *api = api_of(x);
    struct api_replay *replay = buf_alloc_zero(1, sizeof *replay);
    *replay = (struct api_replay){
        .all = api->replays, .who = who_ref(x->who), .engine = -1, .cancel_fd = -1,
        .state_dir = api->options.state_dir, .any_owner = who_is_operator(x->who),
        .any_image = wish->any_image,
        .secrets = wish->secrets ? json_deep_copy(wish->secrets) : NULL,
    };
    memcpy(replay->id, "p_", 2);
    hash_random_hex(replay->id + 2, 24);
    snprintf(replay->run, sizeof replay->run, "%s", x->arg[0]);
    snprintf(replay->owner, sizeof replay->owner, "%s", who_id(x->who));
    /* A cell needs a session; nobody knows yet whether it is one. */
    replay->counted = who_session_begins(x->who, &replay->no_session) == 0;
    return replay;
}

static void on_gone(struct http_exchange *x)
{
    struct api_replay *replay = x->state;
    if (!replay)
        return;
    replay->x = NULL;
    replays_cancel(replay);
}

void api_run_replay(struct http_exchange *x)
{
    static const char *const none[] = { NULL };
    struct api *api = api_of(x);
    struct err err = ERR_INIT;
    struct wish wish = { 0 };
    char where[64];
    if (http_query_only(x, none, &err) < 0 || read_wish(x->json, &wish, &err) < 0 ||
        check_open(api, who_id(x->who), x->arg[0], &err) < 0) {
        http_reply_err(x, &err);
        return;
    }
    struct api_replay *replay = replay_new(x, &wish);
    replay->engine = guest_connect(api, GUEST_REPLAY, x->who, &err);
    if (replay->engine < 0 || replays_start(replay, &err) < 0) {
        if (replay->counted)
            who_session_ends(x->who);
        replay_free(replay);
        http_reply_err(x, &err);
        return;
    }
    replay->next = api->replays->first;
    api->replays->first = replay;
    api->replays->running++;
    snprintf(where, sizeof where, "/v1/replays/%s", replay->id);
    http_add_header(x, "Location", where);
    snprintf(x->run, sizeof x->run, "%s", replay->run);
    if (!wish.wait) {
        http_reply_json(x, 202, describe(replay));
        return;
    }
    replay->x = x;
    x->state = replay;
    x->gone = on_gone;
}

/* --- GET /v1/replays/{id} --- */

void api_replay_show(struct http_exchange *x)
{
    static const char *const none[] = { NULL };
    const struct api *api = api_of(x);
    struct err err = ERR_INIT;
    const struct api_replay *one = api->replays ? api->replays->first : NULL;
    while (one && strcmp(one->id, x->arg[0]) != 0)
        one = one->next;
    if (http_query_only(x, none, &err) < 0)
        http_reply_err(x, &err);
    else if (!one || !who_may_see(x->who, who_id(one->who))) {
        api_absent(&err, "replay", x->arg[0]);
        http_reply_err(x, &err);
    } else
        http_reply_json(x, 200, describe(one));
}
