/* MCP: POST and DELETE /mcp. Runs in the serve process, in its loop. Every token has one connection
 * to the engine, as a guest: its runs are the token's, in the queue, in the quota and in the
 * records; its sessions are those of /v1/sessions. */
#include "serve/api/mcp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "mcp/tool.h"
#include "serve/api/api.h"
#include "serve/api/guest.h"
#include "serve/api/tasks.h"

#define HALLS_MAX 64 /* tokens that use MCP at the same time */
#define SWEEP_NS (60 * CLOCK_S)
#define KEPT_BYTES ((size_t)16 << 20) /* of results, for each token */
#define TIMEOUT_S 30.0

struct api_mcp {
    struct api *api;
    struct api_mcp_owner *owners;
    size_t count;
    uint64_t last_serial;
    struct loop_timer sweep;
    char *languages;
};

/* --- the token's rights --- */

static bool may_use(void *user, const char *session)
{
    const struct api_mcp_owner *owner = user;
    return who_may_see(owner->who, api_session_owner(owner->api, session));
}

static int session_begins(void *user, json_t *request, struct err *err)
{
    const struct api_mcp_owner *owner = user;
    return api_session_count(owner->api, owner->who, request, err);
}

static void session_made(void *user, const char *id)
{
    const struct api_mcp_owner *owner = user;
    api_session_note(owner->api, id, owner->who);
}

static void session_failed(void *user)
{
    const struct api_mcp_owner *owner = user;
    who_session_ends(owner->who);
}

static void find_stored(void *user, uint64_t ticket, const char *run, const char *path)
{
    const struct api_mcp_owner *owner = user;
    api_mcp_find(owner->api, who_id(owner->who), &(struct api_mcp_place){ owner->serial, ticket },
                 run, path);
}

struct mcp_hall *api_mcp_hall(const struct api_mcp *all, uint64_t serial)
{
    const struct api_mcp_owner *owner = all->owners;
    while (owner && owner->serial != serial)
        owner = owner->next;
    return owner ? owner->hall : NULL;
}

void api_mcp_found(struct api_mcp *all, const struct api_mcp_place *place, const json_t *record,
                   struct str bytes, const struct err *err)
{
    struct mcp_hall *hall = api_mcp_hall(all, place->serial);
    if (hall)
        mcp_hall_found(hall, place->ticket, record, bytes, err);
}

/* --- owners --- */

static void owner_free(struct api_mcp_owner *owner)
{
    mcp_hall_free(owner->hall);
    who_unref(owner->who);
    free(owner);
}

static void drop(struct api_mcp *all, struct api_mcp_owner *owner)
{
    struct api_mcp_owner **at = &all->owners;
    while (*at != owner)
        at = &(*at)->next;
    *at = owner->next;
    all->count--;
    owner_free(owner);
}

static void on_sweep(struct loop_timer *timer)
{
    struct api_mcp *all = loop_owner(timer, struct api_mcp, sweep);
    const int64_t now = clock_now_ns();
    for (struct api_mcp_owner *owner = all->owners, *next; owner; owner = next) {
        next = owner->next;
        if (mcp_hall_sweep(owner->hall, now))
            drop(all, owner);
    }
    loop_set_timer(all->api->loop, timer, all->owners ? now + SWEEP_NS : LOOP_NEVER);
}

/* A quiet token that was not seen for longest makes room. */
static int make_room(struct api_mcp *all, struct err *err)
{
    struct api_mcp_owner *oldest = NULL;
    if (all->count < HALLS_MAX)
        return 0;
    for (struct api_mcp_owner *one = all->owners; one; one = one->next)
        if (mcp_hall_is_quiet(one->hall) &&
            (!oldest || mcp_hall_used_ns(one->hall) < mcp_hall_used_ns(oldest->hall)))
            oldest = one;
    if (!oldest) {
        err_set(err, ERR_BUSY, "%d tokens use MCP already, as many as may", HALLS_MAX);
        err_hint(err, "try again later");
        return -1;
    }
    drop(all, oldest);
    return 0;
}

static double timeout_s(const struct api *api)
{
    const struct limits *limits = api->ceilings.limits;
    const double most = limits ? (double)limits->value[LIMITS_TIMEOUT] / 1000 : TIMEOUT_S;
    return most < TIMEOUT_S ? most : TIMEOUT_S;
}

static struct api_mcp_owner *owner_new(struct api_mcp *all, struct who_token *who, struct err *err)
{
    struct api *api = all->api;
    if (make_room(all, err) < 0)
        return NULL;
    const int fd = guest_connect(api, GUEST_MCP, who, err);
    if (fd < 0)
        return NULL;
    struct embed_link link;
    embed_take_over(fd, &link);
    struct api_mcp_owner *owner = buf_alloc_zero(1, sizeof *owner);
    owner->api = api;
    owner->who = who_ref(who);
    owner->serial = ++all->last_serial;
    const struct mcp_options options = {
        .tools = mcp_tools, .definitions = mcp_definitions, .languages = all->languages,
        .agent = api_models_any(api->tasks->models) ? &api_mcp_agent : NULL,
        .timeout_s = timeout_s(api), .kept_bytes = KEPT_BYTES, .find = find_stored,
        .may_use = may_use, .session_begins = session_begins,
        .session_made = session_made, .session_failed = session_failed, .user = owner,
        .agent_user = owner,
    };
    owner->hall = mcp_hall_new(api->loop, &options, &link, err);
    if (!owner->hall) {
        owner_free(owner);
        return NULL;
    }
    owner->next = all->owners;
    all->owners = owner;
    if (all->count++ == 0)
        loop_set_timer(api->loop, &all->sweep, clock_now_ns() + SWEEP_NS);
    return owner;
}

static struct mcp_hall *hall_of(struct http_exchange *x, struct err *err)
{
    struct api *api = api_of(x);
    struct api_mcp_owner *owner = api->mcp->owners;
    if (api->draining) {
        err_set(err, ERR_BUSY, "the service is stopping");
        return NULL;
    }
    while (owner && strcmp(who_id(owner->who), who_id(x->who)) != 0)
        owner = owner->next;
    if (owner && (!mcp_hall_is_good(owner->hall) || owner->who != x->who)) {
        drop(api->mcp, owner); /* the engine closed it, or the token was changed */
        owner = NULL;
    }
    if (!owner)
        owner = owner_new(api->mcp, x->who, err);
    return owner ? owner->hall : NULL;
}

/* --- the routes --- */

static bool is_json(const struct http_exchange *x)
{
    const char *type = http_header(x, "Content-Type");
    return type && strncasecmp(type, "application/json", strlen("application/json")) == 0;
}

static void act(struct http_exchange *x, void (*act_on)(struct mcp_hall *, struct http_exchange *),
                struct err *err)
{
    static const char *const none[] = { NULL };
    struct mcp_hall *hall = http_query_only(x, none, err) < 0 ? NULL : hall_of(x, err);
    if (hall)
        act_on(hall, x);
    else
        http_reply_err(x, err);
}

void api_mcp_post(struct http_exchange *x)
{
    struct err err = ERR_INIT;
    if (is_json(x)) {
        act(x, mcp_hall_post, &err);
        return;
    }
    err_input(&err, "Content-Type", NULL, "application/json",
              "header 'Content-Type' is not application/json");
    http_reply_err(x, &err);
}

void api_mcp_delete(struct http_exchange *x)
{
    struct err err = ERR_INIT;
    act(x, mcp_hall_delete, &err);
}

/* --- begin and end --- */

struct api_mcp *api_mcp_new(struct api *api)
{
    struct api_mcp *all = buf_alloc_zero(1, sizeof *all);
    all->api = api;
    all->languages = mcp_host_languages();
    loop_due(&all->sweep, on_sweep);
    return all;
}

void api_mcp_end(struct api_mcp *all)
{
    while (all && all->owners)
        drop(all, all->owners);
    if (all)
        loop_set_timer(all->api->loop, &all->sweep, LOOP_NEVER);
}

void api_mcp_free(struct api_mcp *all)
{
    if (!all)
        return;
    free(all->languages);
    free(all);
}
