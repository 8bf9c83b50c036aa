/* What a task may spend, what it has spent, and what is left: reserved before it is spent, shown
 * to the model, and ended in time for an answer. Pure but for the clock. */
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
    bool tokens_unknown; /* some reply did not tell its tokens */
    int64_t guessed_tokens; /* charged for those that did not tell, beside what was told */
    double guessed_usd;
    double model_s, execution_s;
    int64_t artifact_bytes;
};

/* `now_ns` everywhere is base/clock.h's. */
void agent_budget_start(struct agent_spent *spent, const struct agent_budget *limit,
                        int64_t now_ns);
/* Account for a model's reply, and for a cell. */
void agent_budget_add_reply(struct agent_spent *spent, const struct llm_reply *reply,
                            double seconds);
/* The same for what a reply did not tell: as much as was reserved. Else whoever keeps silent
 * would cost nothing. */
void agent_budget_add_untold(struct agent_spent *spent, const struct llm_reply *reply,
                             size_t request_chars, double bound_usd);
void agent_budget_add_cell(struct agent_spent *spent, double seconds);

/* The budget for which the model must answer now: the last step is taken, or nine tenths of
 * another are gone; its name, or NULL. */
const char *agent_budget_must_answer(const struct agent_spent *spent, int64_t now_ns);
/* The budget of which nothing is left; its name, or NULL. Steps are none: answering needs none. */
const char *agent_budget_is_over(const struct agent_spent *spent, int64_t now_ns);

/* Seconds for the next cell: at most `wanted`, and what is left; 0: nothing is. */
double agent_budget_cell_s(const struct agent_spent *spent, double wanted, int64_t now_ns);
/* Tokens that a reply may have where the request is that long: 0 as many as it likes, -1: the
 * request itself is above what is left. */
int64_t agent_budget_output_tokens(const struct agent_spent *spent, size_t request_chars);
/* Is the coming request the last that can be had, because what it takes would not be there a second
 * time (its tokens, its price at most, the time that replies have taken)? The budget's name, or
 * NULL: then the model must answer now, while it can. */
const char *agent_budget_is_last(const struct agent_spent *spent, size_t request_chars,
                                 double bound_usd, int64_t now_ns);
/* May a request that could cost so much (negative: unknown) be sent? */
bool agent_budget_can_pay(const struct agent_spent *spent, double bound_usd);

/* One line for the model; from three quarters of a budget on it says so. */
void agent_budget_say(const struct agent_spent *spent, int64_t now_ns, struct buf *out);
/* {"steps_left","wall_s_left",...}: those that have a limit. */
json_t *agent_budget_left(const struct agent_spent *spent, int64_t now_ns);
/* {"steps","wall_s",...} of the limits; null: none. */
json_t *agent_budget_json(const struct agent_budget *limit);
/* "cost" of the report. */
json_t *agent_budget_cost(const struct agent_spent *spent, int64_t now_ns);

#endif
