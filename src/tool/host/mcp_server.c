/* Servers between their calls. Runs in the tool host. A thread of its own starts a server and asks
 * for its tools, so that no caller's deadline cuts that short; callers wait for it as long as they
 * like. A server that dies is started again by the next call: at once the first time, then after a
 * pause that doubles up to a minute. A call that was lost is never sent twice. */
#include "tool/host/mcp_server.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "tool/host/mcp_link.h"
#include "tool/host/mcp_map.h"

#define START_NS (60 * CLOCK_S)
#define PAUSE_MAX_NS (60 * CLOCK_S)
#define PAGES_MAX 100
#define TTL_NS (60 * CLOCK_S)
#define TTL_LEAST_NS (5 * CLOCK_S)
#define LIST_BYTES MCP_MESSAGE_MAX
#define TICK_MS 20

struct mcp_server {
    struct mcp_config config;
    const struct secrets *secrets;
    int closing; /* an event */
    pthread_mutex_t lock;
    struct mcp_link *link;
    struct mcp_map map; /* of the last list that came */
    bool listed, busy;
    int64_t fresh_until_ns, not_before_ns;
    unsigned failures; /* in a row */
    enum mcp_era era;
    struct err why; /* of the last failure */
};

struct mcp_server *mcp_server_new(struct mcp_config *config, const struct secrets *secrets,
                                  struct err *err)
{
    struct mcp_server *server = buf_alloc_zero(1, sizeof *server);
    server->config = *config;
    *config = (struct mcp_config){ .argv = NULL };
    server->secrets = secrets;
    server->closing = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&server->lock, NULL);
    mcp_map_init(&server->map, server->config.alias, server->config.wishes);
    if (server->closing >= 0)
        return server;
    err_sys(err, "make an event");
    mcp_server_free(server);
    return NULL;
}

const char *mcp_server_alias(const struct mcp_server *server)
{
    return server->config.alias;
}

static void tick(int cancel_fd)
{
    struct pollfd fds[] = { { cancel_fd, POLLIN, 0 } };
    poll(fds, 1, TICK_MS);
}

void mcp_server_free(struct mcp_server *server)
{
    eventfd_write(server->closing, 1);
    for (bool busy = true; busy;) {
        pthread_mutex_lock(&server->lock);
        busy = server->busy;
        pthread_mutex_unlock(&server->lock);
        if (busy)
            tick(-1);
    }
    mcp_link_unref(server->link);
    mcp_map_done(&server->map);
    own_close_fd(&server->closing);
    pthread_mutex_destroy(&server->lock);
    mcp_config_done(&server->config);
    free(server);
}

/* ---- failures ---- */

/* With the lock. Drops the link and sets the pause before the next start. */
static void note_failure(struct mcp_server *server, const struct err *why)
{
    int64_t pause = server->failures == 0 ? 0 : CLOCK_S;
    for (unsigned i = 1; i < server->failures && pause < PAUSE_MAX_NS; i++)
        pause *= 2;
    server->failures++;
    server->not_before_ns = clock_now_ns() + (pause < PAUSE_MAX_NS ? pause : PAUSE_MAX_NS);
    server->why = *why;
}

/* A link that is of no use any more. */
static void drop(struct mcp_server *server, struct mcp_link *link, const struct err *why)
{
    struct mcp_link *dropped = NULL;
    pthread_mutex_lock(&server->lock);
    if (server->link == link) {
        dropped = take_ptr(server->link);
        if (why)
            note_failure(server, why);
    }
    pthread_mutex_unlock(&server->lock);
    mcp_link_unref(dropped);
}

/* ---- the thread that starts and lists ---- */

static int64_t fresh_until(const struct mcp_link *link, const json_t *result)
{
    const json_t *ttl = json_object_get(result, "ttlMs");
    int64_t now = clock_now_ns();
    if (link->stdio && link->era == MCP_LEGACY)
        return INT64_MAX; /* it says when its list changes */
    if (!json_is_integer(ttl) || json_integer_value(ttl) > 3600 * 1000)
        return now + TTL_NS;
    int64_t ns = json_integer_value(ttl) * CLOCK_MS;
    return now + (ns < TTL_LEAST_NS ? TTL_LEAST_NS : ns);
}

/* One page. 1: there are more, and *cursor is the next; 0: no more; -1 with err. */
static int take_page(struct mcp_link *link, struct mcp_map *map, json_t **cursor,
                     const struct mcp_wait *wait, int64_t *out_fresh_ns, struct err *err)
{
    own_json response = NULL;
    int status;
    json_t *params = *cursor ? json_pack("{s:O}", "cursor", *cursor) : NULL;
    enum mcp_end end = mcp_link_ask(link, "tools/list", params, NULL, wait, &response, &status,
                                    err);
    if (end == MCP_LATE || end == MCP_CANCELLED)
        return err_set(err, ERR_SLOW, "it did not list its tools in time");
    const json_t *result = end == MCP_ANSWERED ? mcp_result(response, link->era, err) : NULL;
    if (!result || mcp_map_tools(map, json_object_get(result, "tools"), err) < 0)
        return -1;
    json_decref(*cursor);
    *cursor = json_incref(json_object_get(result, "nextCursor"));
    *out_fresh_ns = fresh_until(link, result);
    return json_is_string(*cursor);
}

static int list_tools(struct mcp_server *server, struct mcp_link *link, struct mcp_map *map,
                      int64_t *out_fresh_ns, struct err *err)
{
    struct mcp_wait wait = { clock_now_ns() + START_NS, server->closing, LIST_BYTES };
    own_json cursor = NULL;
    int more = link->has_tools || !link->has_resources;
    *out_fresh_ns = clock_now_ns() + TTL_NS;
    for (int pages = 0; more > 0; pages++) {
        if (pages == PAGES_MAX)
            return err_set(err, ERR_LIMIT, "its list of tools has more than %d pages", PAGES_MAX);
        more = take_page(link, map, &cursor, &wait, out_fresh_ns, err);
    }
    if (more == 0 && link->has_resources)
        mcp_map_resources(map);
    return more;
}

/* A link that works: the one there is, or a new one. */
static struct mcp_link *ready_link(struct mcp_server *server, struct err *err)
{
    pthread_mutex_lock(&server->lock);
    struct mcp_link *link = server->link ? mcp_link_ref(server->link) : NULL;
    enum mcp_era era = server->era;
    pthread_mutex_unlock(&server->lock);
    if (link)
        return link;
    link = mcp_link_open(&server->config, server->secrets, &era, clock_now_ns() + START_NS,
                         server->closing, err);
    pthread_mutex_lock(&server->lock);
    server->era = link ? era : server->era;
    server->link = link ? mcp_link_ref(link) : NULL;
    pthread_mutex_unlock(&server->lock);
    return link;
}

static void *work(void *user)
{
    struct mcp_server *server = user;
    struct err err = ERR_INIT;
    struct mcp_map map, before;
    int64_t fresh_ns = 0;
    mcp_map_init(&map, server->config.alias, server->config.wishes);
    struct mcp_link *link = ready_link(server, &err), *dropped = NULL;
    bool good = link && list_tools(server, link, &map, &fresh_ns, &err) == 0;
    pthread_mutex_lock(&server->lock);
    before = good ? server->map : map;
    if (good) {
        server->map = map;
        server->listed = true;
        server->fresh_until_ns = fresh_ns;
    } else {
        dropped = take_ptr(server->link);
        note_failure(server, &err);
    }
    pthread_mutex_unlock(&server->lock);
    mcp_map_done(&before);
    mcp_link_unref(dropped);
    mcp_link_unref(link);
    pthread_mutex_lock(&server->lock);
    server->busy = false;
    pthread_mutex_unlock(&server->lock);
    return NULL;
}

/* ---- waiting for it ---- */

/* With the lock: is there a link that works, and for `fresh` a list that is not old? */
static bool is_ready(struct mcp_server *server, bool fresh)
{
    if (!server->link || !server->listed)
        return false;
    if (server->link->stdio && mcp_stdio_has_news(server->link->stdio))
        server->fresh_until_ns = 0;
    return !fresh || clock_now_ns() < server->fresh_until_ns;
}

/* A server that died while nobody called. */
static void bury(struct mcp_server *server)
{
    struct err why = ERR_INIT;
    pthread_mutex_lock(&server->lock);
    struct mcp_link *dead = server->link && mcp_link_is_dead(server->link) ? server->link : NULL;
    pthread_mutex_unlock(&server->lock);
    err_set(&why, ERR_HOST, "it ended");
    if (dead)
        drop(server, dead, &why);
}

/* With the lock: start the thread, unless it is too early. -1 with err. */
static int start(struct mcp_server *server, struct err *err)
{
    pthread_t thread;
    int64_t left = server->not_before_ns - clock_now_ns();
    if (left > 0) {
        *err = server->why;
        return -1;
    }
    server->busy = pthread_create(&thread, NULL, work, server) == 0;
    if (!server->busy)
        return err_set(err, ERR_HOST, "start a thread");
    pthread_detach(thread);
    return 0;
}

static int begin(struct mcp_server *server, bool fresh, struct err *err)
{
    bury(server);
    pthread_mutex_lock(&server->lock);
    int rc = is_ready(server, fresh) || server->busy ? 0 : start(server, err);
    pthread_mutex_unlock(&server->lock);
    return rc;
}

static bool is_readable(int fd)
{
    struct pollfd fds[] = { { fd, POLLIN, 0 } };
    return fd >= 0 && poll(fds, 1, 0) > 0;
}

/* Until it is ready. One start: a second failure is the answer. */
static enum mcp_end ensure(struct mcp_server *server, bool fresh, int64_t deadline_ns,
                           int cancel_fd, struct err *err)
{
    if (begin(server, fresh, err) < 0)
        return MCP_LOST;
    for (;;) {
        pthread_mutex_lock(&server->lock);
        bool busy = server->busy, usable = server->link && server->listed;
        if (!busy && !usable)
            *err = server->why;
        pthread_mutex_unlock(&server->lock);
        if (usable && (!busy || !fresh)) /* also if the list has changed again meanwhile */
            return MCP_ANSWERED;
        if (!busy)
            return MCP_LOST;
        if (is_readable(cancel_fd))
            return MCP_CANCELLED;
        if (clock_now_ns() >= deadline_ns)
            return MCP_LATE;
        tick(cancel_fd);
    }
}

void mcp_server_begin(struct mcp_server *server)
{
    struct err unused = ERR_INIT;
    begin(server, /* fresh= */ true, &unused);
}

void mcp_server_list(struct mcp_server *server, int64_t deadline_ns, json_t *definitions,
                     json_t *faults)
{
    struct err err = ERR_INIT;
    own_buf text = BUF_INIT(2048);
    enum mcp_end end = ensure(server, /* fresh= */ true, deadline_ns, -1, &err);
    if (end == MCP_LATE)
        err_set(&err, ERR_SLOW, "it did not list its tools in time");
    if (end != MCP_ANSWERED) {
        buf_printf(&text, "server '%s': %s", server->config.alias, err.text);
        json_array_append_new(faults, json_pack("{s:o}", "message", json_text(buf_str(&text))));
    }
    pthread_mutex_lock(&server->lock);
    own_json tools = json_deep_copy(server->map.definitions);
    own_json wrong = json_deep_copy(server->map.faults);
    pthread_mutex_unlock(&server->lock);
    json_array_extend(definitions, tools);
    json_array_extend(faults, wrong);
}

/* ---- calls ---- */

struct calling {
    struct mcp_server *server;
    struct mcp_link *link;
    json_t *way; /* of mcp_map's names */
    const json_t *arguments;
    const struct source_context *context;
};

static json_t *refuse(const struct calling *calling, enum mcp_end end, const struct err *err)
{
    const char *alias = calling->server->config.alias;
    if (end == MCP_CANCELLED)
        return outcome_error(OUTCOME_CANCELLED, "cancelled");
    if (end == MCP_LATE)
        return outcome_error(OUTCOME_TIMEOUT, "server '%s' did not answer within %.3g s", alias,
                             (double)calling->context->timeout_ms / 1000);
    return outcome_error(OUTCOME_ERROR, "server '%s': %s%s%s", alias, err->text,
                         err->hint[0] ? "; " : "", err->hint);
}

/* Takes params. MCP_ANSWERED: *out_result is the result within *out_response. */
static enum mcp_end ask(struct calling *calling, const char *method, json_t *params,
                        json_t **out_response, const json_t **out_result, int *out_status,
                        struct err *err)
{
    const struct source_context *context = calling->context;
    size_t most = context->result_bytes < MCP_MESSAGE_MAX / 4 ? 3 * context->result_bytes + 65536
                                                              : MCP_MESSAGE_MAX;
    struct mcp_wait wait = { context->deadline_ns, context->cancel_fd, most };
    enum mcp_end end = mcp_link_ask(calling->link, method, params,
                                    json_object_get(calling->way, "headers"), &wait, out_response,
                                    out_status, err);
    *out_result = end == MCP_ANSWERED ? mcp_result(*out_response, calling->link->era, err) : NULL;
    return end == MCP_ANSWERED && !*out_result ? MCP_LOST : end;
}

/* All pages of resources/list, in one result. */
static enum mcp_end list_resources(struct calling *calling, json_t **out, int *out_status,
                                   struct err *err)
{
    own_json all = json_array();
    own_json cursor = NULL;
    size_t bytes = 0;
    for (int pages = 0; pages < PAGES_MAX; pages++) {
        own_json response = NULL;
        const json_t *result;
        json_t *params = cursor ? json_pack("{s:O}", "cursor", cursor) : NULL;
        enum mcp_end end = ask(calling, "resources/list", params, &response, &result, out_status,
                               err);
        if (end != MCP_ANSWERED)
            return end;
        bytes += json_dumpb(json_object_get(result, "resources"), NULL, 0, JSON_COMPACT);
        if (bytes > MCP_MESSAGE_MAX) {
            err_set(err, ERR_LIMIT, "its list of resources exceeds %zu bytes", MCP_MESSAGE_MAX);
            return MCP_LOST;
        }
        json_array_extend(all, json_object_get(result, "resources"));
        json_decref(cursor);
        cursor = json_incref(json_object_get(result, "nextCursor"));
        if (!json_is_string(cursor))
            break;
    }
    own_json whole = json_pack("{s:O}", "resources", all);
    *out = mcp_outcome_list(whole);
    return MCP_ANSWERED;
}

static enum mcp_end send_call(struct calling *calling, json_t **out, int *out_status,
                              struct err *err)
{
    own_json response = NULL;
    const json_t *result;
    const char *resources = json_string_value(json_object_get(calling->way, "resources"));
    *out_status = 0;
    if (resources && strcmp(resources, "resources/list") == 0)
        return list_resources(calling, out, out_status, err);
    json_t *params = resources
                         ? json_pack("{s:O}", "uri", json_object_get(calling->arguments, "uri"))
                         : json_pack("{s:O,s:O}", "name", json_object_get(calling->way, "tool"),
                                     "arguments", calling->arguments);
    enum mcp_end end = ask(calling, resources ? resources : "tools/call", params, &response,
                           &result, out_status, err);
    if (end == MCP_ANSWERED)
        *out = resources ? mcp_outcome_read(result) : mcp_outcome(result);
    return end;
}

/* The link and the server's own name of the tool. */
static enum mcp_end find(struct calling *calling, const char *tool, struct err *err)
{
    struct mcp_server *server = calling->server;
    enum mcp_end end = ensure(server, /* fresh= */ false, calling->context->deadline_ns,
                              calling->context->cancel_fd, err);
    if (end != MCP_ANSWERED)
        return end;
    pthread_mutex_lock(&server->lock);
    calling->link = server->link ? mcp_link_ref(server->link) : NULL;
    calling->way = json_deep_copy(json_object_get(server->map.names, tool));
    pthread_mutex_unlock(&server->lock);
    if (calling->link && calling->way)
        return MCP_ANSWERED;
    err_set(err, ERR_ABSENT, "it has no such tool any more");
    return MCP_LOST;
}

static void calling_done(struct calling *calling)
{
    mcp_link_unref(take_ptr(calling->link));
    json_decref(take_ptr(calling->way));
}

json_t *mcp_server_call(struct mcp_server *server, const char *tool, const json_t *arguments,
                        const struct source_context *context)
{
    struct calling calling = { server, NULL, NULL, arguments, context };
    json_t *outcome = NULL;
    for (int tries = 0; !outcome; tries++) {
        struct err err = ERR_INIT;
        int status = 0;
        enum mcp_end end = find(&calling, tool, &err);
        bool found = end == MCP_ANSWERED;
        if (found)
            end = send_call(&calling, &outcome, &status, &err);
        /* A server that forgot the session did nothing with the call. */
        bool forgotten = found && status == 404 && calling.link->era == MCP_LEGACY;
        if (forgotten)
            drop(server, calling.link, NULL);
        else if (found && end == MCP_LOST &&
                 (mcp_link_is_dead(calling.link) || err.kind == ERR_BUSY))
            drop(server, calling.link, &err);
        pthread_mutex_lock(&server->lock);
        server->failures = end == MCP_ANSWERED ? 0 : server->failures;
        pthread_mutex_unlock(&server->lock);
        calling_done(&calling);
        if (end != MCP_ANSWERED && (!forgotten || tries > 0))
            outcome = refuse(&calling, end, &err);
    }
    return outcome;
}
