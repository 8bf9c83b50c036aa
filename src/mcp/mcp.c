/* The connection to an engine, the conversations on it, and what is due. Runs in the process of a
 * door, in its loop. */
#include "mcp/mcp.h"

#include <stdlib.h>
#include <string.h>

#include "mcp/mcp_int.h"

struct mcp *mcp_open(const struct mcp_options *options, const struct embed_link *link,
                     struct err *err)
{
    struct mcp *mcp = buf_alloc_zero(1, sizeof *mcp);
    mcp->options = *options;
    mcp->client = EMBED_CLIENT_INIT;
    if (link)
        mcp_connect(mcp, link);
    if (mcp_definitions_open(mcp, err) == 0)
        return mcp;
    mcp_close(mcp);
    return NULL;
}

void mcp_connect(struct mcp *mcp, const struct embed_link *link)
{
    embed_client_init(&mcp->client, link);
}

static void end_all_calls(struct mcp *mcp)
{
    while (mcp->calls) {
        struct mcp_fault fault = MCP_FAULT_INIT;
        struct mcp_call *call = mcp->calls;
        embed_call_done(&mcp->client, &call->of);
        mcp_fault_set(&fault, MCP_E_INTERNAL, 503, "the server is stopping");
        mcp_call_fault(call, &fault);
    }
}

void mcp_close(struct mcp *mcp)
{
    if (!mcp)
        return;
    end_all_calls(mcp);
    embed_client_close(&mcp->client);
    while (mcp->runs)
        mcp_run_free(mcp->runs);
    while (mcp->tasks)
        mcp_task_free(mcp->tasks);
    while (mcp->peers) {
        struct mcp_peer *next = mcp->peers->next;
        free(mcp->peers);
        mcp->peers = next;
    }
    for (int era = 0; era < 2; era++) {
        json_decref(mcp->tools[era]);
        json_decref(mcp->instructions[era]);
    }
    free(mcp);
}

int mcp_fd(const struct mcp *mcp)
{
    return mcp->client.broken.kind == ERR_NONE ? mcp->client.link.fd : -1;
}

short mcp_events(const struct mcp *mcp)
{
    return embed_client_events(&mcp->client);
}

bool mcp_is_answered(const struct mcp *mcp)
{
    for (const struct mcp_call *call = mcp->calls; call; call = call->next)
        if (!call->muted)
            return false;
    return true;
}

bool mcp_is_quiet(const struct mcp *mcp)
{
    for (const struct mcp_task *task = mcp->tasks; task; task = task->next)
        if (!task->over)
            return false;
    return !mcp->client.calls && !mcp->calls && mcp->errands == 0;
}

int mcp_reach(struct mcp *mcp, struct err *err)
{
    struct embed_link link = EMBED_LINK_INIT;
    if (mcp->client.broken.kind == ERR_NONE)
        return 0;
    if (!mcp->options.reopen) {
        *err = mcp->client.broken;
        return -1;
    }
    if (mcp->options.reopen(mcp->options.user, &link, err) < 0)
        return -1;
    const unsigned long last_id = mcp->client.last_id;
    embed_client_close(&mcp->client);
    embed_client_init(&mcp->client, &link);
    mcp->client.last_id = last_id;
    return 0;
}

/* --- time --- */

int64_t mcp_due_ns(const struct mcp *mcp)
{
    int64_t due = embed_client_due_ns(&mcp->client);
    for (const struct mcp_call *call = mcp->calls; call; call = call->next)
        if (call->tick_ns > 0 && (due == 0 || call->tick_ns < due))
            due = call->tick_ns;
    return due;
}

static void tick(struct mcp_call *call, int64_t now)
{
    if (call->task) {
        mcp_task_tick(call, now);
        return;
    }
    if (!call->token) {
        mcp_run_tell_running(call);
        return;
    }
    char text[64];
    const double seconds = (double)(now - call->run->begun_ns) / 1e9;
    const double most = call->run->timeout_s > seconds ? call->run->timeout_s : 0;
    snprintf(text, sizeof text, "running for %.0f s", seconds);
    call->tick_ns = now + MCP_TICK_NS;
    mcp_call_progress(call, seconds, most, text);
}

void mcp_ready(struct mcp *mcp)
{
    if (mcp->client.broken.kind == ERR_NONE)
        embed_client_ready(&mcp->client);
    const int64_t now = clock_now_ns();
    for (struct mcp_call *call = mcp->calls, *next; call; call = next) {
        next = call->next; /* a tick frees no other call */
        if (call->tick_ns > 0 && call->tick_ns <= now)
            tick(call, now);
    }
}

/* --- errands --- */

struct errand {
    struct embed_call of;
    struct mcp *mcp;
};

static void errand_over(struct embed_call *of)
{
    struct errand *errand = of->user;
    errand->mcp->errands--;
    embed_call_done(&errand->mcp->client, of);
    free(errand);
}

void mcp_forget(struct mcp *mcp, json_t *frame)
{
    own_json whole = frame;
    struct err unheard = ERR_INIT;
    struct errand *errand = buf_alloc_zero(1, sizeof *errand);
    *errand = (struct errand){ .of = { .on_end = errand_over, .user = errand }, .mcp = mcp };
    if (embed_client_begin(&mcp->client, &errand->of, whole, &unheard) < 0)
        free(errand);
    else
        mcp->errands++;
}

/* --- conversations --- */

struct mcp_peer *mcp_peer_new(struct mcp *mcp, bool keeps)
{
    struct mcp_peer *peer = buf_alloc_zero(1, sizeof *peer);
    *peer = (struct mcp_peer){ .mcp = mcp, .keeps = keeps, .next = mcp->peers };
    for (size_t i = 0; i < array_len(peer->defaults); i++)
        peer->defaults[i].peer = peer;
    mcp->peers = peer;
    return peer;
}

static bool is_making(const struct mcp_peer *peer)
{
    for (size_t i = 0; i < array_len(peer->defaults); i++)
        if (peer->defaults[i].making)
            return true;
    return false;
}

void mcp_peer_look(struct mcp_peer *peer)
{
    struct mcp_peer **at = &peer->mcp->peers;
    if (!peer->ended || peer->calls > 0 || is_making(peer))
        return;
    while (*at != peer)
        at = &(*at)->next;
    *at = peer->next;
    free(peer);
}

/* A cancelled call is muted; it may end at once, and others with it. */
static void cancel_all(struct mcp *mcp, const struct mcp_peer *peer)
{
    for (struct mcp_call *call = mcp->calls; call;) {
        bool ours = call->peer == peer && !call->muted;
        if (ours)
            mcp_call_cancel(call);
        call = ours ? mcp->calls : call->next;
    }
}

void mcp_peer_end(struct mcp_peer *peer)
{
    struct mcp *mcp = peer->mcp;
    peer->ended = true;
    peer->calls++; /* it stays until we are through */
    cancel_all(mcp, peer);
    for (struct mcp_run *run = mcp->runs; run; run = run->next) {
        if (run->peer != peer)
            continue;
        run->peer = NULL;
        if (run->busy)
            mcp_run_stop(run);
    }
    for (struct mcp_task *task = mcp->tasks; task; task = task->next) {
        if (task->peer != peer)
            continue;
        task->peer = NULL;
        mcp_task_stop(task);
    }
    for (size_t i = 0; i < array_len(peer->defaults); i++) {
        if (peer->defaults[i].id[0])
            mcp_session_end(mcp, peer->defaults[i].id);
        peer->defaults[i].id[0] = 0;
    }
    peer->calls--;
    mcp_peer_look(peer);
}

void mcp_leave(struct mcp *mcp, const void *sink_user, bool stops)
{
    mcp_take_leave(mcp, sink_user);
    for (struct mcp_call *call = mcp->calls; call;) {
        bool ours = !call->muted && call->sink.user == sink_user;
        if (ours) {
            call->sink = (struct mcp_sink){ 0 };
            call->muted = true;
            if (stops)
                mcp_call_cancel(call);
        }
        call = ours ? mcp->calls : call->next;
    }
}
