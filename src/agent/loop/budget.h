/* The limits, use and rest of a task's budget: reserved before spending, shown to the model, and
 * stopped in time for an answer. Pure except for the clock. */
#ifndef AGENT_LOOP_BUDGET_H
#define AGENT_LOOP_BUDGET_H

#include "agent/agent.h"
#include "base/buf.h"

struct agent_spent {
    struct agent_budget limit;
    int64_t began_ns;
    int64_t steps, requests;
    int64_t input_tokens, cached_tokens, output_tokens;
    double usd;
    bool usd_unknown;    /* some reply had no known price */
    bool tokens_unknown; /* some reply did not report its tokens */
    int64_t guessed_tokens; /* charged for replies without a report */
    double guessed_usd;
    double model_s, execution_s;
    int64_t artifact_bytes;
};

/* `now_ns` everywhere is base/clock.h's. */
void agent_budget_start(struct agent_spent *spent, const struct agent_budget *limit,
                        int64_t now_ns);
/* Accounts for a model's reply, and for a cell. */
void agent_budget_add_reply(struct agent_spent *spent, const struct llm_reply *reply,
                            double seconds);
/* A reply without a usage report costs its reservation: a silent model must not be free. */
void agent_budget_add_untold(struct agent_spent *spent, const struct llm_reply *reply,
                             size_t request_chars, double bound_usd);
void agent_budget_add_cell(struct agent_spent *spent, double seconds);

/* The budget that forces an answer now (one step is left, or nine tenths are used): its name,
 * or NULL. */
const char *agent_budget_must_answer(const struct agent_spent *spent, int64_t now_ns);
/* The used-up budget: its name, or NULL. Never steps: an answer needs none. */
const char *agent_budget_is_over(const struct agent_spent *spent, int64_t now_ns);

/* Seconds for the next cell: at most `wanted` and the rest; 0: none left. */
double agent_budget_cell_s(const struct agent_spent *spent, double wanted, int64_t now_ns);
/* Tokens for a reply to a request of that length: 0: any number, -1: the request itself exceeds the
 * rest. */
int64_t agent_budget_output_tokens(const struct agent_spent *spent, size_t request_chars);
/* Is the coming request the last one that can be paid (in tokens, maximum price, and usual time of
 * a reply)? The budget's name, or NULL. With a name, the model must answer now. */
const char *agent_budget_is_last(const struct agent_spent *spent, size_t request_chars,
                                 double bound_usd, int64_t now_ns);
/* When a reply must have come, in base/clock.h's milliseconds; 0: any time. */
int64_t agent_budget_reply_until_ms(const struct agent_spent *spent, int64_t now_ns);
/* May a request that could cost so much (negative: unknown) be sent? */
bool agent_budget_can_pay(const struct agent_spent *spent, double bound_usd);

/* One line for the model; it warns from three quarters on. */
void agent_budget_say(const struct agent_spent *spent, int64_t now_ns, struct buf *out);
/* {"steps_left","wall_s_left",...}: budgets with a limit. */
json_t *agent_budget_left(const struct agent_spent *spent, int64_t now_ns);
/* {"steps","wall_s",...}: the limits; null: none. */
json_t *agent_budget_json(const struct agent_budget *limit);
/* "cost" of the report. */
json_t *agent_budget_cost(const struct agent_spent *spent, int64_t now_ns);

#endif
