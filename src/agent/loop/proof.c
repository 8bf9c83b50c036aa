/* Proves the answer: runs the checks, cheapest first, and draws the conclusion. Runs in the task's
 * process. Failures go back to the model, at most three times; an unproven answer is never called
 * verified. */
#include <stdio.h>
#include <string.h>

#include "agent/agent_int.h"
#include "agent/read/observe.h"
#include "agent/loop/plan_reply.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"

#define REPAIRS 3
#define SECONDS_LEAST 1

static struct str content_of(void *user, const char *path)
{
    return agent_artifact(user, path);
}

static bool has_run(const struct agent *agent)
{
    size_t i;
    json_t *step;
    json_array_foreach (agent->steps, i, step)
        if (json_is_string(json_object_get(step, "run")))
            return true;
    return false;
}

static bool has_failed(const json_t *checks)
{
    size_t i;
    json_t *check;
    json_array_foreach (checks, i, check) {
        const char *outcome = json_string_value(json_object_get(check, "outcome"));
        if (outcome && strcmp(outcome, "fail") == 0)
            return true;
    }
    return false;
}

double agent_proof_seconds(const struct agent *agent)
{
    double left = agent_budget_cell_s(&agent->spent, agent->box.timeout_s, clock_now_ns());
    return left < SECONDS_LEAST ? SECONDS_LEAST : left;
}

/* Without a further cell the program is unchanged, and so is its outcome. */
static void rerun(struct agent *agent, const struct agent_claim *claim)
{
    size_t steps = json_array_size(agent->steps);
    if (!agent->rerun || agent->rerun_steps != steps) {
        int64_t before = clock_now_ns();
        json_decref(agent->rerun);
        agent->rerun = json_array();
        agent->box.artifact_bytes = 0; /* it makes all files again */
        agent->rerun_steps = steps;
        agent_check_rerun(claim, &agent->box, agent_proof_seconds(agent), agent->rerun);
        agent->spent.execution_s += clock_ms_between(before, clock_now_ns()) / 1000;
    }
    json_array_extend(agent->checks, agent->rerun);
}

static void ask_verifier(struct agent *agent, const struct agent_claim *claim)
{
    const struct llm_watch watch = { .cancel_fd = agent->watch.cancel_fd };
    struct llm_reply reply = { .outcome = LLM_CANCELLED };
    int64_t before = clock_now_ns();
    int64_t until = agent->spent.limit.wall_s < 0
                        ? 0
                        : (agent->spent.began_ns + (int64_t)(agent->spent.limit.wall_s * 1e9)) /
                              CLOCK_MS;
    agent_check_model(claim, agent->task.verifier, &watch, until, &reply, agent->checks);
    agent_budget_add_reply(&agent->spent, &reply, clock_ms_between(before, clock_now_ns()) / 1000);
    llm_reply_done(&reply);
}

static size_t tell_checks(struct agent *agent, size_t from)
{
    for (; from < json_array_size(agent->checks); from++)
        agent_tell(agent, "check", json_incref(json_array_get(agent->checks, from)));
    return from;
}

static void check(struct agent *agent, bool ran)
{
    const struct agent_claim claim = { .question = agent->task.question,
                                       .answer = agent->answer,
                                       .requirements = json_object_get(agent->plan, "requirements"),
                                       .steps = agent->steps,
                                       .artifacts = agent->artifacts,
                                       .content = content_of,
                                       .user = agent,
                                       .files = agent->task.files,
                                       .file_count = agent->task.file_count };
    json_decref(agent->checks);
    agent->checks = json_array();
    agent_check_list(&claim, agent->checks);
    agent_check_inputs(&claim, agent->checks);
    agent_check_numbers(&claim, agent->checks);
    size_t told = tell_checks(agent, 0);
    if (ran && !has_failed(agent->checks))
        rerun(agent, &claim);
    told = tell_checks(agent, told);
    if (ran && agent->task.cross_check && !has_failed(agent->checks))
        agent_cross_check(agent, agent->answer, agent->checks);
    told = tell_checks(agent, told);
    const char *spent = agent_budget_is_over(&agent->spent, clock_now_ns());
    if (agent->task.verifier && spent)
        agent_checks_add(agent->checks, "verifier", "skip", "the budget is used up", NULL);
    else if (agent->task.verifier && !has_failed(agent->checks) && !agent->ended)
        ask_verifier(agent, &claim);
    tell_checks(agent, told);
}

static void name_failed(const json_t *checks, struct buf *out)
{
    size_t i;
    json_t *one;
    json_array_foreach (checks, i, one) {
        const char *outcome = json_string_value(json_object_get(one, "outcome"));
        const char *name = json_string_value(json_object_get(one, "check"));
        if (outcome && name && strcmp(outcome, "fail") == 0)
            buf_printf(out, "%s%.100s", out->len ? ", " : "", name);
    }
}

/* Gives the failed checks to the model. False: no repair is left. */
static bool repair(struct agent *agent, const struct agent_action *action, const char *failed)
{
    own_str told = agent_checks_repair(agent->checks);
    own_buf text = BUF_INIT(1u << 20);
    const char *forced = agent_budget_must_answer(&agent->spent, clock_now_ns());
    if (!told || agent->verify_repairs >= REPAIRS || (forced && strcmp(forced, "steps") != 0))
        return false;
    int64_t times = agent_repair_count(&agent->repair, agent_repair_print("verify", str_of(told)));
    if (times > AGENT_REPAIR_TRIES)
        return false;
    agent->verify_repairs++;
    buf_add_text(&text, "The answer was checked, and it is not proven. What the checks found:\n");
    agent_observe_data(str_of(told), agent->tag, &text); /* it quotes files and outputs */
    agent_repair_again(times, &text);
    buf_add_text(&text, forced ? "No cell can be run any more: mend the answer itself.\n"
                               : "Mend what is wrong, with a cell if one is needed, and answer "
                                 "again.\n");
    agent_tell(agent, "repair",
               json_pack("{s:o, s:i, s:i}", "why", json_text(str_of(failed)), "attempt",
                         agent->verify_repairs, "of", REPAIRS));
    agent_history_observe(&agent->history, action, text.at, NULL, NULL);
    return true;
}

void agent_proof(struct agent *agent, const struct agent_action *action)
{
    own_buf failed = BUF_INIT(4096);
    bool ran = has_run(agent);
    free(agent->answer);
    agent->answer = buf_strdup(str_of(action->text));
    if (!ran && agent_plan_is_plain(agent->plan)) {
        agent_end(agent, AGENT_UNVERIFIED, NULL, "nothing was computed");
        return;
    }
    if (!agent->task.verify) {
        agent_end(agent, AGENT_UNVERIFIED, NULL, "the checks were switched off");
        return;
    }
    agent_phase(agent, "verify");
    check(agent, ran);
    if (agent_is_cancelled(agent))
        agent_end(agent, AGENT_FAILED, NULL, "cancelled");
    name_failed(agent->checks, &failed);
    if (agent->ended || (failed.len && repair(agent, action, failed.at)))
        return;
    if (!failed.len && ran && agent_checks_prove(agent->checks))
        agent_end(agent, AGENT_VERIFIED, NULL, "every check that applies has passed");
    else if (agent->forced)
        agent_end(agent, AGENT_BUDGET, "give more with --budget or --max-steps",
                  "the budget of %s was used up before the answer was proven%s%.300s",
                  agent->forced_by, failed.len ? "; failed: " : "", buf_str(&failed).at);
    else if (failed.len)
        agent_end(agent, AGENT_UNVERIFIED, NULL, "failed: %.400s", failed.at);
    else if (!ran)
        agent_end(agent, AGENT_UNVERIFIED, NULL, "nothing was computed");
    else
        agent_end(agent, AGENT_UNVERIFIED, NULL, "no check could prove the answer");
}
