/* One request to a model: reserves its cost, shows the streaming reply, accounts for it. Runs in
 * the task's process; blocks. */
#include <stdio.h>
#include <string.h>

#include "agent/agent_int.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"

static void on_text(void *user, struct str text)
{
    agent_tell(user, "text", json_pack("{s:o}", "text", json_text(text)));
}

static void on_wait(void *user, const char *why, double seconds)
{
    agent_tell(user, "wait", json_pack("{s:s, s:f}", "why", why, "seconds", seconds));
}

static size_t chars_of(const struct agent_call *call)
{
    own_str messages = json_dumps(call->messages, JSON_COMPACT);
    return strlen(call->instructions) + (messages ? strlen(messages) : 0);
}

/* A payable length of the reply: the usual one, else a shorter one; 0: none. */
static int64_t payable(const struct agent *agent, const struct agent_call *call,
                       struct llm_request request)
{
    static const int64_t lengths[] = { 8000, 4000, 2000, 1000 };
    for (size_t i = 0; i < array_len(lengths); i++) {
        int64_t most = request.max_output_tokens;
        struct llm_request shorter = request;
        shorter.max_output_tokens = most > 0 && most < lengths[i] ? most : lengths[i];
        if (agent_budget_can_pay(&agent->spent, llm_cost_bound(call->model, &shorter)))
            return shorter.max_output_tokens;
    }
    return 0;
}

/* Sets the reply's maximum, within tokens and money. NULL, or why it cannot be paid. */
static const char *reserve(const struct agent *agent, const struct agent_call *call,
                           struct llm_request *request)
{
    if (agent->spent.limit.tokens >= 0)
        request->max_output_tokens = agent_budget_output_tokens(&agent->spent, chars_of(call));
    if (request->max_output_tokens < 0)
        return "not enough tokens are left for another reply";
    if (agent->spent.limit.money_usd < 0)
        return NULL;
    request->max_output_tokens = payable(agent, call, *request);
    return request->max_output_tokens == 0
               ? "another reply could cost more than the money that is left"
               : NULL;
}

const char *agent_call_is_last(const struct agent *agent, const struct agent_call *call)
{
    const struct llm_request request = { .instructions = call->instructions,
                                         .messages = call->messages,
                                         .tools = call->tools,
                                         .max_output_tokens = 4000 };
    size_t chars = agent->spent.limit.tokens >= 0 ? chars_of(call) : 0;
    double bound = agent->spent.limit.money_usd >= 0 ? llm_cost_bound(call->model, &request) : 0;
    return agent_budget_is_last(&agent->spent, chars, bound, clock_now_ns());
}

void agent_call(struct agent *agent, const struct agent_call *call, struct llm_reply *out)
{
    const struct llm_watch watch = { .on_text = call->heard ? on_text : NULL,
                                     .on_wait = on_wait,
                                     .cancel_fd = agent->watch.cancel_fd,
                                     .user = agent };
    struct llm_request request = { .instructions = call->instructions,
                                   .messages = call->messages,
                                   .tools = call->tools };
    *out = (struct llm_reply){ .outcome = LLM_CANCELLED };
    int64_t before = clock_now_ns();
    const char *over = agent_budget_is_over(&agent->spent, before);
    const char *why = over ? over : reserve(agent, call, &request);
    if (why && call->spare)
        snprintf(out->detail, sizeof out->detail, "the budget is used up: %s", why);
    else if (why)
        agent_end(agent, AGENT_BUDGET, "give more with --budget",
                  over ? "the budget of %s is used up" : "%s", why);
    if (agent->ended || why)
        return;
    request.deadline_ms = agent_budget_reply_until_ms(&agent->spent, before);
    bool paid = agent->spent.limit.money_usd >= 0;
    double bound = paid ? llm_cost_bound(call->model, &request) : -1;
    double seconds;
    if (!agent_tape_serve(agent, call, out, &seconds)) {
        llm_ask(call->model, &request, &watch, out);
        seconds = clock_ms_between(before, clock_now_ns()) / 1000;
        agent_tape_keep(agent, call, out, seconds);
    }
    agent_budget_add_reply(&agent->spent, out, seconds);
    agent_budget_add_untold(&agent->spent, out, chars_of(call), bound);
    if (agent_is_cancelled(agent)) {
        if (out->outcome != LLM_OK)
            out->outcome = LLM_CANCELLED;
        agent_end(agent, AGENT_FAILED, NULL, "cancelled");
    } else if (out->outcome == LLM_TIMEOUT && !call->spare &&
               (over = agent_budget_is_over(&agent->spent, clock_now_ns()))) {
        agent_end(agent, AGENT_BUDGET, "give more with --budget", "the budget of %s is used up",
                  over);
    }
}

void agent_call_failed(struct agent *agent, const struct llm_reply *reply)
{
    const char *name = llm_outcome_name(reply->outcome);
    if (reply->outcome == LLM_REFUSED)
        agent_end(agent, AGENT_DENIED, reply->hint, "the model declined: %s", reply->detail);
    else if (reply->outcome == LLM_CANCELLED)
        agent_end(agent, AGENT_FAILED, reply->hint, "cancelled");
    else
        agent_end(agent, AGENT_FAILED, reply->hint, "%s: %s", name, reply->detail);
}
