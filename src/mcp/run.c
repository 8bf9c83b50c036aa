/* run_code: from its arguments to a run of the engine. Runs in the process of a door, in its
 * loop. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "mcp/mcp_int.h"

#define TAIL_MAX ((size_t)8000) /* bytes of output that are kept while a run goes on */

static const char *text_arg(const struct mcp_call *call, const char *name)
{
    return json_string_value(json_object_get(call->args, name));
}

/* --- the engine's news --- */

static void keep_tail(struct buf *tail, struct str bytes)
{
    if (bytes.len > TAIL_MAX)
        bytes = (struct str){ bytes.at + bytes.len - TAIL_MAX, TAIL_MAX };
    if (tail->len + bytes.len > tail->max)
        buf_drop(tail, tail->len + bytes.len - TAIL_MAX);
    buf_add_str(tail, bytes);
}

static void on_news(struct embed_call *of, const struct frame_news *news, struct str text)
{
    struct mcp_run *run = of->user;
    (void)text;
    if (news->kind == FRAME_STDOUT || news->kind == FRAME_STDERR)
        keep_tail(&run->tail[news->kind == FRAME_STDERR], news->bytes);
}

/* The conversation's own session may have ended since its last cell: the run begins once more, in a
 * new one. */
static bool begins_again(struct mcp_run *run)
{
    for (struct mcp_call *call = run->mcp->calls; call; call = call->next) {
        if (call->run != run || run->of.err.kind != ERR_ABSENT || !mcp_session_lost(call))
            continue;
        call->run = NULL;
        call->tick_ns = 0;
        mcp_run_free(run);
        mcp_tool_run(call);
        return true;
    }
    return false;
}

static void on_end(struct embed_call *of)
{
    struct mcp_run *run = of->user;
    run->busy = false;
    if (!begins_again(run))
        mcp_run_over(run);
}

/* --- the request --- */

struct mcp_run *mcp_run_new(struct mcp_call *call)
{
    struct mcp_run *run = buf_alloc_zero(1, sizeof *run);
    *run = (struct mcp_run){
        .mcp = call->mcp, .peer = call->peer, .begun_ns = clock_now_ns(),
        .of = { .is_run = true, .on_news = on_news, .on_end = on_end, .user = run },
        .tail = { BUF_INIT(2 * TAIL_MAX), BUF_INIT(2 * TAIL_MAX) },
        .next = call->mcp->runs,
    };
    memcpy(run->id, "c_", 2);
    hash_random_hex(run->id + 2, 32);
    snprintf(run->session, sizeof run->session, "%s", call->session);
    if (call->own && call->own->note[0]) {
        snprintf(run->note, sizeof run->note, "%s", call->own->note);
        call->own->note[0] = 0;
    }
    call->mcp->runs = run;
    call->run = run;
    return run;
}

static json_t *request_of(const struct mcp_call *call, double timeout_s)
{
    json_t *request = json_pack("{s:O, s:{s:f, s:i, s:i}, s:{s:s}}", "code",
                                json_object_get(call->args, "code"), "limits", "timeout_s",
                                timeout_s, "stdout_bytes", MCP_STDOUT_BYTES, "stderr_bytes",
                                MCP_STDERR_BYTES, "env", "CUPEL_PICTURE_PX", MCP_PICTURE_TEXT);
    json_t *files = json_object_get(call->args, "files");
    const json_t *language = json_object_get(call->args, "language");
    if (json_array_size(files) > 0)
        json_object_set(request, "files", files);
    if (call->session[0])
        json_object_set_new(request, "session", json_string(call->session));
    if (language)
        json_object_set(request, "language", (json_t *)(uintptr_t)language);
    mcp_session_add_image(call, request);
    return request;
}

static void begin(struct mcp_call *call)
{
    struct mcp *mcp = call->mcp;
    struct err err = ERR_INIT;
    const json_t *given = json_object_get(call->args, "timeout_s");
    const double timeout_s = given ? json_number_value(given) : mcp->options.timeout_s;
    struct mcp_run *run = mcp_run_new(call);
    run->timeout_s = timeout_s;
    /* The files of a session stay in it; those of a single run are ours. */
    run->of.collects = !call->session[0];
    const bool events = call->token || timeout_s > (double)MCP_PATIENCE_NS / 1e9;
    own_json frame = json_pack("{s:s, s:o, s:b, s:b}", "op", "run", "request",
                               request_of(call, timeout_s), "events", events, "content",
                               run->of.collects);
    call->tick_ns = run->begun_ns + (call->token ? MCP_TICK_NS : MCP_PATIENCE_NS);
    if (mcp_reach(mcp, &err) == 0 && embed_client_begin(&mcp->client, &run->of, frame, &err) == 0) {
        run->busy = true;
        return;
    }
    mcp_run_free(run);
    mcp_call_refuse(call, &err);
}

static void begin_in_new(struct mcp_call *call)
{
    const char *id = mcp_session_took(call);
    if (!id)
        return;
    if (call->muted) {
        mcp_session_end(call->mcp, id);
        mcp_call_text(call, /* is_error= */ true, STR("cancelled"));
        return;
    }
    snprintf(call->session, sizeof call->session, "%s", id);
    begin(call);
}

static bool has_sessions(const char *language)
{
    int found = language ? request_language_find(language) : (int)REQUEST_PYTHON;
    return found < 0 || request_languages[found].sessions;
}

void mcp_tool_run(struct mcp_call *call)
{
    const char *session = text_arg(call, "session"), *language = text_arg(call, "language");
    struct err err = ERR_INIT;
    if (session && strcmp(session, "new") == 0) {
        json_t *frame = json_pack("{s:s, s:o}", "do", "new", "request",
                                  mcp_session_request(call, language ? language : "python"));
        if (mcp_session_new(call, frame, begin_in_new, &err) < 0)
            mcp_call_refuse(call, &err);
    } else if ((session && strcmp(session, "none") == 0) || (!session && !has_sessions(language))) {
        begin(call);
    } else {
        mcp_session_find(call, /* may_lack= */ true, begin);
    }
}

/* The run goes on until the engine has ended it; nobody waits for it. */
void mcp_tool_run_stop(struct mcp_call *call)
{
    struct mcp_run *run = call->run;
    if (call->task)
        mcp_tool_ask_stop(call);
    if (!run)
        return;
    call->run = NULL;
    if (run->busy)
        mcp_run_stop(run);
    mcp_call_text(call, /* is_error= */ true, STR("cancelled"));
}
