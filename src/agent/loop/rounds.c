/* The loop: plan, generate, execute, verify, answer. Runs in the task's process. Each turn handles
 * one reply of the model; every way out goes through agent_end. Replies have a limit beside the
 * steps, so that a model cannot loop for ever without running anything. */
#include <stdio.h>
#include <string.h>

#include "agent/agent_int.h"
#include "agent/read/observe.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"

#define LONG_CHARS 60000 /* of a conversation: older observations are shortened */
#define SPARED 4         /* observations that never are */
#define NAMES_SHOWN 40   /* of the session, in place of what was shortened */
#define STATE_MAX (16u << 10)
#define EMPTY_MAX 1      /* useless replies in a row before the task is stuck */

/* One step is left, or nine tenths of another budget are used: the next cell must answer. */
static void force_answer(struct agent *agent, const char *why)
{
    own_buf text = BUF_INIT(4096);
    agent->forced = true;
    agent->forced_by = why;
    buf_printf(
        &text,
        "The budget of %s is all but used up: one more cell is run. Call answer() in it with "
        "what the session holds, or cannot_answer(reason).\n",
        why);
    agent_history_say(&agent->history, text.at);
}

/* In place of what was dropped: the names and files that the session holds. */
static void tell_state(struct agent *agent)
{
    struct err unheard = ERR_INIT;
    own_json info = agent_box_names(&agent->box, &unheard);
    own_buf data = BUF_INIT(STATE_MAX), text = BUF_INIT(2 * STATE_MAX);
    size_t i;
    json_t *entry;
    json_array_foreach (json_object_get(info, "names"), i, entry) {
        if (i < NAMES_SHOWN)
            buf_printf(&data, "%.60s: %.40s %.200s\n", json_get_str(entry, "name").at,
                       json_get_str(entry, "type").at, json_get_str(entry, "text").at);
    }
    json_array_foreach (agent->artifacts, i, entry)
        buf_printf(&data, "file %.200s\n", json_get_str(entry, "path").at);
    buf_add_text(&text, "Older outputs were shortened or dropped. The session still holds:\n");
    agent_observe_data(buf_str(&data), agent->tag, &text);
    agent_history_say(&agent->history, text.at);
}

/* Old observations go first, then old replies. */
static void shorten(struct agent *agent)
{
    bool any = false;
    if (agent_history_size(&agent->history) > LONG_CHARS)
        any = agent_history_shrink(&agent->history, SPARED);
    while (agent_history_size(&agent->history) > 2 * LONG_CHARS &&
           agent_history_drop(&agent->history, 2 * SPARED))
        any = true;
    if (any)
        tell_state(agent);
}

/* One reply; tries once more with a shorter conversation if it is too long. */
static void generate(struct agent *agent, struct llm_reply *out)
{
    const struct agent_call call = { .by = "model",
                                     .model = agent->task.model,
                                     .instructions = agent->instructions,
                                     .messages = agent->history.messages,
                                     .tools = agent->tools,
                                     .heard = true };
    agent_phase(agent, "generate");
    shorten(agent);
    const char *why = agent_budget_must_answer(&agent->spent, clock_now_ns());
    if (!why && agent->turns > 1)
        why = agent_call_is_last(agent, &call);
    if (why && !agent->forced)
        force_answer(agent, why);
    agent_call(agent, &call, out);
    if (out->outcome != LLM_CONTEXT || agent->ended ||
        !agent_history_shrink(&agent->history, /* spared= */ 0))
        return;
    llm_reply_done(out);
    agent_call(agent, &call, out);
}

/* A reply with neither code nor answer: one warning, then the task is stuck. */
static void nudge(struct agent *agent, const struct agent_action *action, bool cut)
{
    const char *what = action->note[0] ? action->note
                       : cut           ? "your reply was cut because it was too long; be shorter"
                                       : "your reply had neither code nor an answer";
    own_buf text = BUF_INIT(4096);
    if (agent->empty_replies++ >= EMPTY_MAX) {
        agent_end(agent, AGENT_STUCK, "try another model", "the model gives no usable reply: %s",
                  what);
        return;
    }
    buf_printf(&text, "Nothing was run: %s. Send one cell.\n", what);
    agent_history_observe(&agent->history, action, text.at, NULL, NULL);
}

static void act(struct agent *agent, const struct llm_reply *reply, struct agent_action *action)
{
    bool cut = reply->stop == LLM_STOP_LENGTH;
    bool usable = action->act == AGENT_ACT_CODE || action->act == AGENT_ACT_ANSWER;
    if (action->plan || !agent->plan)
        agent_opening_plan(agent, action->plan);
    agent_history_reply(&agent->history, reply->content, action);
    if (!usable || (cut && !action->tool && action->kept >= strlen(reply->text))) {
        nudge(agent, action, cut);
        return;
    }
    agent->empty_replies = 0;
    if (action->act == AGENT_ACT_ANSWER)
        agent_proof_typed(agent, action);
    else
        agent_execute(agent, action);
    if (agent->forced && action->act == AGENT_ACT_CODE)
        agent_end(agent, AGENT_BUDGET, "give more with --budget or --max-steps",
                  "the budget of %s is used up, and the model did not answer", agent->forced_by);
}

static void fail(struct agent *agent, const struct llm_reply *reply)
{
    bool useless = reply->outcome == LLM_GARBAGE || reply->outcome == LLM_TOO_LONG;
    bool program = strncmp(llm_name(agent->task.model), "exec:", 5) == 0;
    bool broken = reply->outcome == LLM_BROKEN; /* nothing was run: ask again */
    if (reply->outcome == LLM_EXHAUSTED && agent->answer) {
        agent_end(agent, AGENT_UNVERIFIED, NULL, "%s, and the recorded replies are at their end",
                  agent->payload ? "the answer was not proven" : "typed, not computed");
    } else if (broken && agent->empty_replies++ < EMPTY_MAX) {
        agent_tell(agent, "wait",
                   json_pack("{s:s, s:f}", "why", "the reply broke off", "seconds", 0.0));
    } else if (useless && agent->empty_replies++ < EMPTY_MAX) {
        agent_history_say(&agent->history, "Your last reply could not be read. Send one cell.\n");
    } else if (useless && !(program && reply->outcome == LLM_GARBAGE)) {
        agent_end(agent, AGENT_STUCK, reply->hint, "the model gives no usable reply: %s",
                  reply->detail);
    } else { /* a failing program is not a model, like a server that is not there */
        agent_call_failed(agent, reply);
    }
}

static void turn(struct agent *agent)
{
    struct llm_reply reply;
    struct agent_action action = AGENT_ACTION_INIT;
    agent->turns++;
    generate(agent, &reply);
    if (reply.outcome == LLM_OK && !agent->ended) {
        agent_extract(reply.content, reply.text, &action);
        act(agent, &reply, &action);
    } else if (!agent->ended) {
        fail(agent, &reply);
    }
    agent_action_done(&action);
    llm_reply_done(&reply);
}

/* With a limit of money, a model of unknown price is refused before it is asked. */
static void refuse_unpriced(struct agent *agent)
{
    struct llm_model *const models[] = { agent->task.model, agent->task.planner,
                                         agent->task.judge };
    own_json nothing = json_array();
    const struct llm_request request = { .instructions = "", .messages = nothing };
    for (size_t i = 0; agent->spent.limit.money_usd >= 0 && i < array_len(models); i++)
        if (models[i] && llm_cost_bound(models[i], &request) < 0)
            agent_end(agent, AGENT_DENIED, "set its price, or ask without a limit of money",
                      "the price of '%.100s' is not known, so money cannot be limited",
                      llm_name(models[i]));
}

void agent_loop(struct agent *agent)
{
    refuse_unpriced(agent);
    if (!agent->ended)
        agent_opening(agent);
    while (!agent->ended) {
        if (agent_is_cancelled(agent))
            agent_end(agent, AGENT_FAILED, NULL, "cancelled");
        else if (agent->turns >= agent->spent.limit.steps * 2 + 4)
            agent_end(agent, AGENT_STUCK, "see the evidence for what was tried",
                      "the model used %lld replies without coming to an answer",
                      (long long)agent->turns);
        else
            turn(agent);
    }
    agent_phase(agent, "answer");
}
