/* Serves recorded replies. Runs in the task's process. While the record is served the budget has no
 * limit; from then on the question has the budget that it was taken up with. A replay keeps the
 * limits that it had, and ends with its record. */
#include "agent/loop/tape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_int.h"
#include "agent/past.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"

#define TEXT_MAX (64u << 20)
#define STEPS_MOST 1000000

static const struct agent_past *past_of(const struct agent *agent)
{
    return agent->task.past;
}

void agent_take_up(struct agent *agent, const struct agent_past *past)
{
    agent->task.past = past;
    agent->tape.live = false;
}

void agent_tape_begin(struct agent *agent)
{
    struct agent_budget *limit = &agent->spent.limit;
    agent->tape = (struct agent_tape){ .live = !past_of(agent) };
    if (agent->tape.live)
        return;
    limit->wall_s = limit->money_usd = -1;
    if (!agent->task.replays)
        *limit = (struct agent_budget){ STEPS_MOST, -1, -1, -1, -1, -1, limit->artifact_bytes };
}

/* The rest of the task has the whole budget. */
static void go_live(struct agent *agent)
{
    struct agent_spent *spent = &agent->spent;
    struct agent_budget limit = agent->task.budget;
    if (agent->tape.live)
        return;
    agent->tape.live = true;
    if (limit.steps >= 0)
        limit.steps += spent->steps;
    if (limit.model_s >= 0)
        limit.model_s += spent->model_s;
    if (limit.execution_s >= 0)
        limit.execution_s += spent->execution_s;
    if (limit.tokens >= 0)
        limit.tokens += spent->input_tokens + spent->output_tokens + spent->guessed_tokens;
    if (limit.money_usd >= 0)
        limit.money_usd += spent->usd + spent->guessed_usd;
    spent->limit = limit;
    spent->began_ns = clock_now_ns() - (int64_t)(spent->model_s * 1e9);
    agent->turns = 0;
    agent->forced = false;
    agent_keep(agent, "resumed",
               json_pack("{s:I, s:I, s:o, s:o}", "replies", (json_int_t)agent->tape.replies,
                         "steps", (json_int_t)json_array_size(agent->steps), "model",
                         json_text(str_of(llm_name(agent->task.model))), "budget",
                         agent_budget_json(&agent->task.budget)));
}

/* --- replies --- */

static int64_t count_of(const json_t *usage, const char *name)
{
    const json_t *value = json_object_get(usage, name);
    return json_is_integer(value) && json_integer_value(value) >= 0 ? json_integer_value(value)
                                                                    : -1;
}

static char *text_of(const json_t *content)
{
    own_buf text = BUF_INIT(TEXT_MAX);
    size_t i;
    json_t *part;
    json_array_foreach (content, i, part)
        if (str_is(json_get_str(part, "type"), "text"))
            buf_add_str(&text, json_get_str(part, "text"));
    return buf_take(&text);
}

/* A damaged one reads as garbage. */
static void fill(const json_t *data, struct llm_reply *out)
{
    const json_t *usage = json_object_get(data, "usage"), *cost = json_object_get(data, "cost_usd");
    json_t *content = json_object_get(data, "content");
    struct str outcome = json_get_str(data, "outcome");
    int stop = (int)json_integer_value(json_object_get(data, "stop"));
    *out = (struct llm_reply){
        .outcome = LLM_GARBAGE,
        .stop = stop >= LLM_STOP_END && stop <= LLM_STOP_OTHER ? (enum llm_stop)stop
                                                               : LLM_STOP_OTHER,
        .usage = { count_of(usage, "input"), count_of(usage, "cache_read"),
                   count_of(usage, "cache_write"), count_of(usage, "output"),
                   count_of(usage, "reasoning") },
        .cost_usd = json_is_number(cost) ? json_number_value(cost) : -1,
        .tries = (int)json_integer_value(json_object_get(data, "tries")),
    };
    for (int i = 0; i < LLM_OUTCOME_COUNT; i++)
        if (str_is(outcome, llm_outcome_name((enum llm_outcome)i)))
            out->outcome = (enum llm_outcome)i;
    snprintf(out->detail, sizeof out->detail, "%.500s", json_get_str(data, "detail").at);
    snprintf(out->hint, sizeof out->hint, "%.250s", json_get_str(data, "hint").at);
    if (out->outcome == LLM_OK && !json_is_array(content))
        out->outcome = LLM_GARBAGE;
    if (out->outcome != LLM_OK)
        return;
    out->content = json_deep_copy(content);
    out->text = text_of(content);
}

static bool serve_nothing(struct llm_reply *out)
{
    *out = (struct llm_reply){ .outcome = LLM_EXHAUSTED,
                               .usage = LLM_USAGE_UNKNOWN,
                               .cost_usd = -1 };
    snprintf(out->detail, sizeof out->detail, "the record has no further reply for this");
    return true;
}

bool agent_tape_serve(struct agent *agent, const struct agent_call *call, struct llm_reply *out,
                      double *out_seconds)
{
    struct agent_tape *tape = &agent->tape;
    const json_t *data = tape->live ? NULL : json_array_get(past_of(agent)->replies, tape->replies);
    *out_seconds = 0;
    if (!data || !str_is(json_get_str(data, "by"), call->by)) {
        if (agent->task.replays)
            return serve_nothing(out);
        go_live(agent);
        return false;
    }
    tape->replies++;
    fill(data, out);
    *out_seconds = json_number_value(json_object_get(data, "seconds"));
    if (call->heard && out->outcome == LLM_OK && out->text[0])
        agent_tell(agent, "text", json_pack("{s:o}", "text", json_text(str_of(out->text))));
    return true;
}

void agent_tape_keep(struct agent *agent, const struct agent_call *call,
                     const struct llm_reply *reply, double seconds)
{
    const struct llm_usage *usage = &reply->usage;
    if (!agent->task.record.add)
        return;
    agent_keep(agent, "reply",
               json_pack("{s:s, s:s, s:O?, s:i, s:{s:I, s:I, s:I, s:I, s:I}, s:o, s:i, s:f, s:o, "
                         "s:o}",
                         "by", call->by, "outcome", llm_outcome_name(reply->outcome), "content",
                         reply->content, "stop", (int)reply->stop, "usage", "input",
                         (json_int_t)usage->input, "cache_read", (json_int_t)usage->cache_read,
                         "cache_write", (json_int_t)usage->cache_write, "output",
                         (json_int_t)usage->output, "reasoning", (json_int_t)usage->reasoning,
                         "cost_usd",
                         reply->cost_usd >= 0 ? json_real(reply->cost_usd) : json_null(), "tries",
                         reply->tries, "seconds", seconds, "detail",
                         json_text_or_null(reply->detail), "hint", json_text_or_null(reply->hint)));
}

bool agent_tape_asked(struct agent *agent, char **out)
{
    struct agent_tape *tape = &agent->tape;
    const json_t *asked = tape->live ? NULL : json_array_get(past_of(agent)->asked, tape->asked);
    *out = NULL;
    if (!asked)
        return agent->task.replays;
    tape->asked++;
    *out = json_is_string(asked) ? buf_strdup(json_str(asked)) : NULL;
    return true;
}

/* --- events --- */

static void check_step(struct agent *agent, const json_t *step)
{
    const json_t *was = json_array_get(past_of(agent)->steps, agent->tape.steps++);
    struct str then = json_get_str(was, "status"), now = json_get_str(step, "status");
    if (!was || str_is(now, then.at) || agent->task.replays)
        return;
    agent->tape.refused = true;
    agent_end(agent, AGENT_FAILED, "cupel tasks replay shows what differs",
              "cell %lld does not run as it did: it was %.40s, now it is %.40s",
              (long long)json_integer_value(json_object_get(step, "n")), then.at, now.at);
}

bool agent_tape_hears(struct agent *agent, const char *kind, const json_t *data)
{
    struct agent_tape *tape = &agent->tape;
    static const char *const passing[] = { "text", "wait", "output", "phase", "task", "setup" };
    if (tape->live)
        return true;
    if (strcmp(kind, "step") == 0)
        check_step(agent, data);
    if (agent->task.replays || tape->refused ||
        tape->replies < json_array_size(past_of(agent)->replies))
        return false;
    for (size_t i = 0; i < array_len(passing); i++)
        if (strcmp(kind, passing[i]) == 0)
            return false;
    if (str_is(json_str(json_array_get(past_of(agent)->after, tape->after)), kind)) {
        tape->after++;
        return false;
    }
    go_live(agent);
    return true;
}
