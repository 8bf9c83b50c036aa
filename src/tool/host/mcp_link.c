/* Starting a server and asking it. Runs in the tool host, in threads of calls. The era is found by
 * asking: a modern server answers server/discover, a legacy one does not know it. A program that
 * says nothing within two seconds may be slow, so it gets initialize too; one that dies of the
 * first question is started once more without it. */
#include "tool/host/mcp_link.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"

#define PROBE_MS 2000
#define AGAIN_MS 5000
#define START_BYTES ((size_t)1 << 20)

/* ---- asking ---- */

static void cancel(struct mcp_link *link, int64_t id)
{
    json_t *params = json_pack("{s:I,s:s}", "requestId", (json_int_t)id, "reason",
                               "the caller gave up");
    json_t *notice = mcp_wire_notification("notifications/cancelled", params);
    if (link->stdio)
        mcp_stdio_tell(link->stdio, notice);
    else if (link->era == MCP_LEGACY)
        mcp_http_tell(link->http, notice);
    else
        json_decref(notice); /* the closed connection says it */
}

static enum mcp_end ask(struct mcp_link *link, enum mcp_era era, const char *method, json_t *params,
                        const json_t *headers, const struct mcp_wait *wait, json_t **out_response,
                        int *out_status, struct err *err)
{
    int64_t id = atomic_fetch_add(&link->last_id, 1) + 1;
    own_json request = mcp_wire_request(id, method, params, era);
    enum mcp_end end;
    if (link->stdio) {
        end = mcp_stdio_ask(link->stdio, id, request, wait, out_response, err);
    } else {
        struct mcp_http_call call = { .id = id, .request = request, .era = era,
                                      .headers = headers, .wait = *wait };
        end = mcp_http_ask(link->http, &call, err);
        *out_response = call.answer;
        *out_status = call.status;
    }
    if ((end == MCP_LATE || end == MCP_CANCELLED) && strcmp(method, "initialize") != 0)
        cancel(link, id);
    return end;
}

enum mcp_end mcp_link_ask(struct mcp_link *link, const char *method, json_t *params,
                          const json_t *headers, const struct mcp_wait *wait, json_t **out_response,
                          int *out_status, struct err *err)
{
    *out_status = 0;
    return ask(link, link->era, method, params, headers, wait, out_response, out_status, err);
}

/* ---- starting ---- */

static void note_abilities(struct mcp_link *link, const json_t *result)
{
    const json_t *abilities = json_object_get(result, "capabilities");
    link->has_resources = json_is_object(json_object_get(abilities, "resources"));
    link->has_tools = json_is_object(json_object_get(abilities, "tools"));
}

static enum mcp_end start_ask(struct mcp_link *link, enum mcp_era era, const char *method,
                              json_t *params, int64_t deadline_ns, json_t **out, int *out_status,
                              struct err *err)
{
    struct mcp_wait wait = { deadline_ns, link->cancel_fd, START_BYTES };
    *out_status = 0;
    return ask(link, era, method, params, NULL, &wait, out, out_status, err);
}

/* A server of the legacy era refuses the modern question by one of these. */
static bool is_legacy_status(int status)
{
    return status == 400 || status == 404 || status == 405 || status == 406 || status == 415 ||
           status == 422 || status == 501;
}

/* 1: modern; 0: not; -1: the server is lost. */
static int discover(struct mcp_link *link, int64_t deadline_ns, struct err *err)
{
    own_json response = NULL;
    struct err why = ERR_INIT;
    int status;
    enum mcp_end end = start_ask(link, MCP_MODERN, "server/discover", NULL, deadline_ns, &response,
                                 &status, err);
    if (end == MCP_LOST && (link->stdio || !is_legacy_status(status)))
        return -1;
    const json_t *result = end == MCP_ANSWERED ? mcp_result(response, MCP_LEGACY, &why) : NULL;
    if (!result || !mcp_is_discovery(result))
        return 0;
    link->era = MCP_MODERN;
    note_abilities(link, result);
    return 1;
}

static int initialize(struct mcp_link *link, int64_t deadline_ns, struct err *err)
{
    own_json response = NULL;
    int status;
    enum mcp_end end = start_ask(link, MCP_LEGACY, "initialize", mcp_wire_initialize_params(),
                                 deadline_ns, &response, &status, err);
    const json_t *result = end == MCP_ANSWERED ? mcp_result(response, MCP_LEGACY, err) : NULL;
    if (end == MCP_LATE || end == MCP_CANCELLED)
        err_set(err, ERR_SLOW, "it did not answer in time");
    if (!result)
        return -1;
    if (!mcp_is_known_revision(json_get_str(result, "protocolVersion"))) {
        char shown[40];
        str_plain(shown, sizeof shown, json_get_str(result, "protocolVersion"));
        return err_set(err, ERR_HOST, "it speaks revision '%s', which cupel does not know", shown);
    }
    link->era = MCP_LEGACY;
    note_abilities(link, result);
    if (link->http)
        mcp_http_agree(link->http, json_get_str(result, "protocolVersion"));
    json_t *ready = mcp_wire_notification("notifications/initialized", NULL);
    if (link->stdio)
        mcp_stdio_tell(link->stdio, ready);
    else
        mcp_http_tell(link->http, ready);
    return 0;
}

static int restart(struct mcp_link *link, struct err *err)
{
    mcp_stdio_close(link->stdio);
    link->stdio = NULL;
    *err = ERR_INIT;
    return mcp_stdio_open(link->config, link->secrets, &link->stdio, err);
}

static int64_t sooner(int64_t deadline_ns, int64_t ms)
{
    int64_t then = clock_now_ns() + ms * CLOCK_MS;
    return then < deadline_ns ? then : deadline_ns;
}

static int agree(struct mcp_link *link, enum mcp_era era, int64_t deadline_ns, struct err *err)
{
    int modern = 0;
    if (era != MCP_LEGACY) {
        int64_t until = era == MCP_MODERN || link->http ? deadline_ns
                                                        : sooner(deadline_ns, PROBE_MS);
        modern = discover(link, until, err);
    }
    if (modern > 0)
        return 0;
    if (modern < 0 && (!link->stdio || restart(link, err) < 0))
        return -1;
    *err = ERR_INIT;
    if (initialize(link, deadline_ns, err) == 0)
        return 0;
    /* A modern server that was slow to start knows no initialize. */
    struct err again = ERR_INIT;
    bool alive = link->stdio && !mcp_stdio_is_dead(link->stdio);
    return alive && discover(link, sooner(deadline_ns, AGAIN_MS), &again) > 0 ? 0 : -1;
}

struct mcp_link *mcp_link_open(const struct mcp_config *config, const struct secrets *secrets,
                               enum mcp_era *era, int64_t deadline_ns, int cancel_fd,
                               struct err *err)
{
    struct mcp_link *link = buf_alloc_zero(1, sizeof *link);
    link->refs = 1;
    link->config = config;
    link->cancel_fd = cancel_fd;
    link->secrets = secrets;
    if (config->url)
        link->http = mcp_http_new(config);
    if ((config->argv && mcp_stdio_open(config, secrets, &link->stdio, err) < 0) ||
        agree(link, *era, deadline_ns, err) < 0) {
        mcp_link_unref(link);
        return NULL;
    }
    *era = link->era;
    return link;
}

struct mcp_link *mcp_link_ref(struct mcp_link *link)
{
    atomic_fetch_add(&link->refs, 1);
    return link;
}

void mcp_link_unref(struct mcp_link *link)
{
    if (!link || atomic_fetch_sub(&link->refs, 1) != 1)
        return;
    mcp_stdio_close(link->stdio);
    if (link->http)
        mcp_http_forget(link->http, /* end= */ true);
    mcp_http_free(link->http);
    free(link);
}

bool mcp_link_is_dead(struct mcp_link *link)
{
    return link->stdio && mcp_stdio_is_dead(link->stdio);
}
