/* A second derivation: one further request sees the question, the files and the names and types of
 * the values, never the first program. Its program runs alone in a fresh box, and its values are
 * compared one by one. Runs in the task's process. */
#include <stdio.h>
#include <string.h>

#include "agent/agent_int.h"
#include "agent/prompts.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"

#define TEXT_MAX (1u << 20)
#define NEAR 1e-6 /* relative: another way to compute rounds otherwise */
#define CODE_SHOWN 4000

/* "mean=<number>, day=<date>": what the second program has to give. */
static char *names_of(const json_t *payload)
{
    own_buf out = BUF_INIT(TEXT_MAX);
    const char *name;
    json_t *type;
    json_object_foreach (json_object_get(payload, "types"), name, type)
        buf_printf(&out, "%s%.100s=<%.20s>", out.len ? ", " : "", name,
                   json_is_string(type) ? json_str(type).at : "value");
    return buf_take(&out);
}

static char *ask_for_code(struct agent *agent, const json_t *payload)
{
    own_str names = names_of(payload);
    own_str opening = agent_opening_text(agent);
    const struct agent_prompt_word words[] = { { "python", agent_opening_python() },
                                               { "tag", agent->tag },
                                               { "names", names } };
    own_str instructions = agent_prompt_fill(AGENT_PROMPT_CROSS, words, array_len(words));
    own_json messages = json_pack("[{s:s, s:[{s:s, s:o}]}]", "role", "user", "content", "type",
                                  "text", "text", json_text(str_of(opening)));
    const struct agent_call call = { .by = "cross",
                                     .model = agent->task.model,
                                     .instructions = instructions,
                                     .messages = messages,
                                     .spare = true };
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

/* The second payload with its program, made once for a task. */
static json_t *second_of(struct agent *agent, const struct agent_claim *claim)
{
    struct err unheard = ERR_INIT;
    if (agent->second)
        return agent->second;
    own_str code = ask_for_code(agent, claim->payload);
    own_json cells = code ? json_pack("[[i, o, b]]", 1, json_text(str_of(code)), 0) : NULL;
    int64_t before = clock_now_ns();
    own_json result = cells && !agent->ended
                          ? agent_rerun_cells(&agent->box, cells, agent_proof_seconds(agent),
                                              &unheard)
                          : NULL;
    agent->spent.execution_s += clock_ms_between(before, clock_now_ns()) / 1000;
    const json_t *payload = agent_payload_of(result);
    if (!str_is(json_get_str(result, "status"), "ok") || !agent_payload_is(payload, "answer"))
        return NULL;
    agent->second = json_deep_copy(payload);
    json_object_set_new(agent->second, "code", json_text(str_of(code)));
    return agent->second;
}

void agent_cross_check(struct agent *agent, const struct agent_claim *claim)
{
    json_t *second = second_of(agent, claim);
    own_buf differs = BUF_INIT(8192), repair = BUF_INIT(32u << 10);
    if (agent->ended)
        return;
    if (!second) {
        agent_checks_add(agent->checks, "cross_check", "no_verdict", "no second derivation was had",
                         NULL);
        return;
    }
    agent_payload_differs(claim->payload, second, NEAR, &differs);
    if (!differs.len) {
        agent_checks_add(agent->checks, "cross_check", "pass",
                         "a second derivation gives the same values", NULL);
        return;
    }
    struct str code = json_get_str(second, "code");
    buf_printf(&repair,
               "A second program, written without knowledge of yours, gives other values (yours "
               "and its): %.4000s. This is the second program:\n%.*s\nFind out which of the two is "
               "right, and why; then answer again.",
               differs.at, (int)str_cut_utf8(code, CODE_SHOWN), code.at);
    agent_checks_add(agent->checks, "cross_check", "fail", differs.at, repair.at);
}
