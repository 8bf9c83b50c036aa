/* The runs of a connection: those that go on, and the last results. Runs in the process of a door,
 * in its loop. */
#include <stdlib.h>
#include <string.h>

#include "mcp/answer.h"
#include "mcp/mcp_int.h"

/* --- the table --- */

void mcp_run_free(struct mcp_run *run)
{
    struct mcp_run **at = &run->mcp->runs;
    for (struct mcp_call *call = run->mcp->calls; call; call = call->next)
        if (call->run == run)
            call->run = NULL;
    while (*at != run)
        at = &(*at)->next;
    *at = run->next;
    embed_call_done(&run->mcp->client, &run->of);
    buf_done(&run->tail[0]);
    buf_done(&run->tail[1]);
    free(run);
}

static const char *record_of(const struct mcp_run *run)
{
    const char *id = json_string_value(json_object_get(run->of.answer, "run"));
    return id && strlen(id) < MCP_RUN_ROOM ? id : run->id;
}

struct mcp_run *mcp_run_find(struct mcp *mcp, struct str id)
{
    struct mcp_run *run = mcp->runs;
    while (run && !str_is(id, run->id) && !str_is(id, record_of(run)))
        run = run->next;
    return run;
}

static size_t bytes_of(const json_t *value)
{
    size_t bytes = 64, i;
    const char *name;
    json_t *member;
    if (json_is_string(value))
        return bytes + json_string_length(value);
    json_array_foreach (value, i, member)
        bytes += bytes_of(member);
    json_object_foreach ((json_t *)(uintptr_t)value, name, member)
        bytes += bytes_of(member);
    return bytes;
}

static void count_bytes(struct mcp_run *run)
{
    run->bytes = bytes_of(run->of.answer);
    for (size_t i = 0; i < run->of.artifact_count; i++)
        run->bytes += run->of.artifacts[i].content.len;
}

static void drop_oldest(struct mcp *mcp)
{
    size_t kept = 0, bytes = 0;
    for (struct mcp_run *run = mcp->runs, *next; run; run = next) {
        next = run->next;
        if (run->busy)
            continue;
        bytes += run->bytes;
        /* The latest one stays whatever its size: its links were just given out. */
        if (++kept > 1 && (kept > MCP_KEPT_RUNS || bytes > mcp->options.kept_bytes))
            mcp_run_free(run);
    }
}

/* --- answers --- */

static void tell(struct mcp_call *call, const struct mcp_run *run)
{
    struct mcp_answer answer;
    call->run = NULL;
    call->tick_ns = 0;
    if (run->of.err.kind != ERR_NONE) {
        mcp_call_refuse(call, &run->of.err);
        return;
    }
    mcp_answer_make(run->of.answer, run->told ? run->id : record_of(run),
                    run->session[0] ? run->session : NULL, run->note, &answer);
    mcp_call_answer(call, answer.content, answer.structured, answer.is_error);
}

void mcp_run_tell_running(struct mcp_call *call)
{
    struct mcp_run *run = call->run;
    struct mcp_answer answer;
    call->tick_ns = 0;
    if (!run)
        return;
    run->told = true;
    call->run = NULL;
    mcp_answer_running(run->id, run->session[0] ? run->session : NULL,
                       (double)(clock_now_ns() - run->begun_ns) / 1e9, buf_str(&run->tail[0]),
                       buf_str(&run->tail[1]), &answer);
    mcp_call_answer(call, answer.content, answer.structured, answer.is_error);
}

void mcp_run_over(struct mcp_run *run)
{
    struct mcp *mcp = run->mcp;
    buf_done(&run->tail[0]);
    buf_done(&run->tail[1]);
    count_bytes(run);
    for (struct mcp_call *call = mcp->calls, *next; call; call = next) {
        next = call->next;
        if (call->run == run)
            tell(call, run);
    }
    drop_oldest(mcp);
}

void mcp_run_stop(struct mcp_run *run)
{
    if (!run->of.stopped)
        embed_client_stop(&run->mcp->client, &run->of);
}

/* --- the tool --- */

void mcp_tool_runs(struct mcp_call *call)
{
    struct str id = json_get_str(call->args, "id");
    struct mcp_run *run = mcp_run_find(call->mcp, id);
    struct mcp_task *task = mcp_task_find(call->mcp, id);
    struct err err = ERR_INIT;
    if (task) {
        if (str_is(json_get_str(call->args, "do"), "stop"))
            mcp_task_stop(task);
        mcp_task_follow(call, task);
        return;
    }
    if (!run && mcp_stored_may_be(call->mcp, id)) {
        mcp_stored_show(call, id.at);
        return;
    }
    if (!run) {
        err_set(&err, ERR_ABSENT, "there is no run '%.80s' here", id.at);
        err_hint(&err,
                 "the id is the one that run_code returned; the last %d results are kept, "
                 "and those that are recorded",
                 MCP_KEPT_RUNS);
        mcp_call_refuse(call, &err);
        return;
    }
    if (!run->busy) {
        tell(call, run);
        return;
    }
    call->run = run;
    call->tick_ns = clock_now_ns() + (call->token ? MCP_TICK_NS : MCP_PATIENCE_NS);
    if (str_is(json_get_str(call->args, "do"), "stop"))
        mcp_run_stop(run);
}
