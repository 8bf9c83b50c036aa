/* A second method: one further call sees the question and the files, never the first result. Its
 * program runs alone in a fresh box, and must print the answer's numbers. Runs in the task's
 * process. */
#include <stdio.h>
#include <string.h>

#include "agent/agent_int.h"
#include "agent/prompts.h"
#include "agent/read/observe.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"

#define TEXT_MAX (1u << 20)
#define SHOWN 1500 /* characters of the second method's output */

/* The columns and sizes of tables that were read, without their values. */
static void add_schema(struct agent *agent, struct buf *out)
{
    struct err unheard = ERR_INIT;
    own_json info = agent_box_names(&agent->box, &unheard);
    own_buf tables = BUF_INIT(TEXT_MAX);
    size_t i;
    json_t *entry;
    json_array_foreach (json_object_get(info, "names"), i, entry) {
        const char *type = json_string_value(json_object_get(entry, "type"));
        const char *text = json_string_value(json_object_get(entry, "text"));
        const json_t *rows = json_array_get(json_object_get(entry, "shape"), 0);
        if (type && text && json_is_integer(rows) && strcmp(type, "DataFrame") == 0)
            buf_printf(&tables, "a table of %lld rows, %.300s\n",
                       (long long)json_integer_value(rows), text);
    }
    if (!tables.len)
        return;
    buf_add_text(out, "Tables that were made of the data before:\n");
    agent_observe_data(buf_str(&tables), agent->tag, out);
}

static char *ask_for_code(struct agent *agent)
{
    own_str instructions = agent_opening_prompt(agent, AGENT_PROMPT_CROSS);
    own_str opening = agent_opening_text(agent);
    own_buf text = BUF_INIT(TEXT_MAX * 8);
    buf_add_text(&text, opening);
    add_schema(agent, &text);
    own_json messages = json_pack("[{s:s, s:[{s:s, s:o}]}]", "role", "user", "content", "type",
                                  "text", "text", json_text(buf_str(&text)));
    const struct agent_call call = { .model = agent->task.model,
                                     .instructions = instructions,
                                     .messages = messages };
    struct llm_reply reply;
    struct agent_action action = AGENT_ACTION_INIT;
    agent_call(agent, &call, &reply);
    if (reply.outcome == LLM_OK)
        agent_extract(reply.content, reply.text, &action);
    char *code = action.act == AGENT_ACT_CODE ? take_ptr(action.code) : NULL;
    agent_action_done(&action);
    llm_reply_done(&reply);
    return code;
}

/* "pass", "fail" or "skip": are the numbers of `text` in the output of `steps`? */
static const char *numbers_in(const struct agent *agent, const char *text, const json_t *steps)
{
    const struct agent_claim claim = { .question = agent->task.question,
                                       .answer = text,
                                       .steps = steps };
    own_json found = json_array();
    size_t i;
    json_t *one;
    agent_check_numbers(&claim, found);
    json_array_foreach (found, i, one) {
        const char *name = json_string_value(json_object_get(one, "check"));
        const char *outcome = json_string_value(json_object_get(one, "outcome"));
        if (name && outcome && strcmp(name, "numbers") == 0)
            return strcmp(outcome, "fail") == 0   ? "fail"
                   : strcmp(outcome, "pass") == 0 ? "pass"
                                                  : "skip";
    }
    return "skip";
}

/* The answer may say more than the second method prints, which may print more digits: one must
 * contain all numbers of the other. */
static const char *outcome_of(const struct agent *agent, const char *answer, json_t *result)
{
    const char *printed = json_string_value(json_object_get(result, "stdout"));
    own_json second = json_pack("[{s:i, s:s, s:s, s:s, s:s, s:b, s:O}]", "n", 1, "code", "", "run",
                                "r_second", "status", "ok", "state", "kept", "repeated", 0,
                                "result", result);
    const char *outcome = numbers_in(agent, answer, second);
    if (strcmp(outcome, "fail") != 0 || !printed)
        return outcome;
    return strcmp(numbers_in(agent, printed, agent->steps), "pass") == 0 ? "pass" : "fail";
}

void agent_cross_check(struct agent *agent, const char *answer, json_t *checks)
{
    struct err err = ERR_INIT;
    own_str code = ask_for_code(agent);
    double seconds = agent_proof_seconds(agent);
    if (agent->ended)
        return;
    if (!code) {
        agent_checks_add(checks, "cross_check", "no_verdict", "no second method was given", NULL);
        return;
    }
    int64_t before = clock_now_ns();
    own_json result = agent_box_fresh(&agent->box, code, seconds, &err);
    agent->spent.execution_s += clock_ms_between(before, clock_now_ns()) / 1000;
    const char *status = json_string_value(json_object_get(result, "status"));
    if (!status || strcmp(status, "ok") != 0) {
        agent_checks_add(checks, "cross_check", "no_verdict", "the second method failed", NULL);
        return;
    }
    const char *outcome = outcome_of(agent, answer, result);
    own_buf printed = BUF_INIT(TEXT_MAX), repair = BUF_INIT(TEXT_MAX);
    agent_observe_text(json_str(json_object_get(result, "stdout")), SHOWN, &printed);
    buf_printf(&repair,
               "A second method, written without knowledge of yours, printed this:\n%s"
               "Find out which of the two is right, and why.\n",
               buf_str(&printed).at);
    bool failed = strcmp(outcome, "fail") == 0;
    agent_checks_add(checks, "cross_check", outcome,
                     failed ? "a second method gives other numbers"
                            : "a second method gives the same numbers",
                     failed ? repair.at : NULL);
}
