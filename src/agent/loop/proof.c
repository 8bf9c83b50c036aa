/* From a call of answer() to the task's status: the cells again, the trace of the values, a second
 * derivation, the judge, cheapest first. Runs in the task's process. Failures go back to the model,
 * at most three times. Invariant: `computed` needs a rerun that passed and a trace without problem;
 * `verified` needs a judge or a second derivation besides. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_int.h"
#include "agent/prompts.h"
#include "agent/read/observe.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"

#define REPAIRS 3
#define SECONDS_LEAST 1
#define TEXT_MAX (1u << 20)

double agent_proof_seconds(const struct agent *agent)
{
    double left = agent_budget_cell_s(&agent->spent, agent->box.timeout_s, clock_now_ns());
    return left < SECONDS_LEAST ? SECONDS_LEAST : left;
}

static size_t tell_checks(struct agent *agent, size_t from)
{
    for (; from < json_array_size(agent->checks); from++)
        agent_tell(agent, "check", json_incref(json_array_get(agent->checks, from)));
    return from;
}

static void set_answer(struct agent *agent, struct str text)
{
    free(agent->answer);
    agent->answer = buf_strdup(text);
}

/* --- the checks --- */

static void rerun_and_trace(struct agent *agent, const struct agent_claim *claim)
{
    int64_t before = clock_now_ns();
    struct agent_again calls;
    agent->box.artifact_bytes = 0; /* the rerun makes all files again */
    agent_again_of(agent, agent_calls_kept(agent->called, agent->steps), &calls);
    agent->box.again = &calls;
    own_json again = agent_check_rerun(claim, &agent->box, agent_proof_seconds(agent),
                                       agent->checks);
    agent->box.again = NULL;
    agent_again_done(&calls);
    json_decref(agent->trace);
    agent->trace = again ? agent_check_trace(claim, again, &agent->box, agent_proof_seconds(agent),
                                             agent->checks)
                         : NULL;
    agent->spent.execution_s += clock_ms_between(before, clock_now_ns()) / 1000;
    if (agent->trace) /* rendered again, in a box that ran nothing of the model's */
        set_answer(agent, json_get_str(agent->trace, "text"));
}

static void ask_judge(struct agent *agent, const struct agent_claim *claim)
{
    own_str instructions = agent_opening_prompt(agent, AGENT_PROMPT_JUDGE);
    own_str opening = agent_opening_text(agent);
    own_str text = agent_judge_text(claim, agent->trace, opening, agent->tag);
    own_json messages = json_pack("[{s:s, s:[{s:s, s:o}]}]", "role", "user", "content", "type",
                                  "text", "text", json_text(str_of(text)));
    const struct agent_call call = { .by = "judge",
                                     .model = agent->task.judge,
                                     .instructions = instructions,
                                     .messages = messages,
                                     .spare = true };
    struct llm_reply reply;
    agent_phase(agent, "judge");
    agent_call(agent, &call, &reply);
    agent_check_verdict(&reply, agent->checks);
    llm_reply_done(&reply);
}

static void check(struct agent *agent)
{
    const struct agent_claim claim = { .question = buf_str(&agent->asked).at,
                                       .steps = agent->steps,
                                       .payload = agent->payload,
                                       .artifacts = agent->artifacts,
                                       .schema = agent->task.schema,
                                       .files = agent->task.files,
                                       .file_count = agent->task.file_count };
    json_decref(agent->checks);
    agent->checks = json_array();
    rerun_and_trace(agent, &claim);
    size_t told = tell_checks(agent, 0);
    bool sound = agent->trace && !agent_checks_have(agent->checks, NULL, "fail") && !agent->ended;
    if (sound && agent->task.cross_check)
        agent_cross_check(agent, &claim);
    told = tell_checks(agent, told);
    sound = sound && !agent_checks_have(agent->checks, NULL, "fail") && !agent->ended;
    if (sound && agent->task.judge)
        ask_judge(agent, &claim);
    tell_checks(agent, told);
}

/* --- the conclusion --- */

static void name_failed(const json_t *checks, struct buf *out)
{
    size_t i;
    json_t *one;
    json_array_foreach (checks, i, one) {
        if (str_is(json_get_str(one, "outcome"), "fail"))
            buf_printf(out, "%s%.100s", out->len ? ", " : "", json_get_str(one, "check").at);
    }
}

/* Gives the failed checks to the model. False: no repair is left. */
static bool repair(struct agent *agent, const char *failed)
{
    own_str told = agent_checks_repair(agent->checks);
    own_buf text = BUF_INIT(TEXT_MAX);
    if (!told || agent->verify_repairs >= REPAIRS || agent->forced)
        return false;
    int64_t times = agent_repair_count(&agent->repair, agent_repair_print("verify", str_of(told)));
    if (times > AGENT_REPAIR_TRIES)
        return false;
    agent->verify_repairs++;
    buf_add_text(&text, "The answer was checked, and it is not proven. The checks found:\n");
    agent_observe_data(str_of(told), agent->tag, &text); /* it quotes files and outputs */
    agent_repair_again(times, &text);
    buf_add_text(&text, "Mend what the checks name, in a cell that calls answer() again.\n");
    agent_tell(agent, "repair",
               json_pack("{s:o, s:i, s:i}", "why", json_text(str_of(failed)), "attempt",
                         agent->verify_repairs, "of", REPAIRS));
    agent_history_say(&agent->history, text.at);
    return true;
}

static void conclude(struct agent *agent, const char *failed)
{
    const json_t *checks = agent->checks;
    bool seconded = agent_checks_have(checks, "judge", "pass") ||
                    agent_checks_have(checks, "cross_check", "pass");
    bool traced = agent_checks_have(checks, "rerun", "pass") &&
                  agent_checks_have(checks, "values", "pass") &&
                  !agent_checks_have(checks, "values", "no_verdict");
    if (failed[0] && agent->forced)
        agent_end(agent, AGENT_BUDGET, "give more with --budget or --max-steps",
                  "the budget of %s was used up before the answer was proven; failed: %.300s",
                  agent->forced_by, failed);
    else if (failed[0])
        agent_end(agent, AGENT_UNVERIFIED, NULL, "failed: %.400s", failed);
    else if (!traced)
        agent_end(agent, AGENT_UNVERIFIED, NULL, "the checks could not be made");
    else if (seconded)
        agent_end(agent, AGENT_VERIFIED, NULL,
                  "every value is traced, gave the same again, and was judged right");
    else if (agent->task.judge)
        agent_end(agent, AGENT_COMPUTED, NULL,
                  "every value is traced and gave the same again; the judge gave no verdict");
    else
        agent_end(agent, AGENT_COMPUTED, NULL,
                  "every value is traced and gave the same again; nobody judged whether the right "
                  "thing was computed");
}

static void prove(struct agent *agent, json_t *payload)
{
    own_buf failed = BUF_INIT(4096);
    json_decref(agent->payload);
    agent->payload = json_incref(payload);
    set_answer(agent, json_get_str(payload, "text"));
    if (!agent->task.verify) {
        agent_end(agent, AGENT_UNVERIFIED, NULL, "the checks were switched off");
        return;
    }
    agent_phase(agent, "verify");
    check(agent);
    if (agent_is_cancelled(agent))
        agent_end(agent, AGENT_FAILED, NULL, "cancelled");
    name_failed(agent->checks, &failed);
    if (!agent->ended && !(failed.len && repair(agent, failed.at)))
        conclude(agent, buf_str(&failed).at);
}

/* --- the other calls --- */

/* A refusal counts only from somebody who has looked at every file. */
static void refuse(struct agent *agent, const json_t *payload)
{
    own_buf unseen = BUF_INIT(4096), text = BUF_INIT(8192);
    for (size_t i = 0; i < agent->task.file_count; i++)
        if (!agent_payload_opened(payload, agent->task.files[i].path))
            buf_printf(&unseen, "%s%.200s", unseen.len ? ", " : "", agent->task.files[i].path);
    set_answer(agent, json_get_str(payload, "reason"));
    if (!unseen.len) {
        agent_end(agent, AGENT_UNANSWERABLE, NULL,
                  "the model looked, and found no answer in the data");
    } else if (agent->verify_repairs++ || agent->forced) {
        agent_end(agent, AGENT_UNVERIFIED, NULL,
                  "the model says that there is no answer, but has not opened %.300s", unseen.at);
    } else {
        buf_printf(&text,
                   "You have not opened %.3000s. Look before you say that there is no answer.\n",
                   unseen.at);
        agent_history_say(&agent->history, text.at);
    }
}

static void ask_user(struct agent *agent, const json_t *payload)
{
    struct str question = json_get_str(payload, "question");
    own_str asked = buf_strdup(question);
    own_str reply = NULL;
    if (!agent_tape_asked(agent, &reply) && agent->watch.ask)
        reply = agent->watch.ask(agent->watch.user, asked);
    own_buf text = BUF_INIT(TEXT_MAX);
    if (reply)
        buf_printf(&text, "The user replies: %.60000s\n", reply);
    else
        buf_add_text(&text, "Nobody can reply here: decide it yourself, and say in the answer what "
                            "you assumed; or call cannot_answer(reason).\n");
    agent_tell(agent, "asked",
               json_pack("{s:o, s:o}", "question", json_text(question), "reply",
                         json_text_or_null(reply)));
    agent_history_say(&agent->history, text.at);
}

void agent_proof(struct agent *agent, json_t *payload)
{
    if (agent_payload_is(payload, "answer"))
        prove(agent, payload);
    else if (agent_payload_is(payload, "cannot_answer"))
        refuse(agent, payload);
    else
        ask_user(agent, payload);
}

void agent_proof_forget(struct agent *agent)
{
    json_decref(take_ptr(agent->payload));
    json_decref(take_ptr(agent->trace));
    json_array_clear(agent->checks);
}

void agent_proof_typed(struct agent *agent, const struct agent_action *action)
{
    set_answer(agent, str_of(action->text));
    agent_proof_forget(agent);
    if (agent->typed_replies++ || agent->forced) {
        agent_end(agent, AGENT_UNVERIFIED, NULL, "typed, not computed");
        return;
    }
    agent_tell(agent, "repair",
               json_pack("{s:s, s:i, s:i}", "why", "the answer was typed", "attempt", 1, "of", 1));
    agent_history_observe(&agent->history, action,
                          "You typed your answer. Send it as a cell that calls answer(template, "
                          "**values), with every number, name and verdict as a value that the code "
                          "computes; or call cannot_answer(reason).\n",
                          NULL, NULL);
}
