/* Budgets: reserved before they are spent, shown, and ended in time for an answer. */
#include <string.h>

#include "agent/loop/budget.h"
#include "base/json.h"
#include "base/own.h"
#include "check.h"

#define S INT64_C(1000000000)

static struct agent_spent spent_of(struct agent_budget limit)
{
    struct agent_spent spent;
    agent_budget_start(&spent, &limit, 0);
    return spent;
}

static struct agent_budget no_limits(void)
{
    return (struct agent_budget){ 12, -1, -1, -1, -1, -1, -1 };
}

TEST(budget_of_steps_has_always_a_limit)
{
    struct agent_budget limit = no_limits();
    limit.steps = -1;
    struct agent_spent spent = spent_of(limit);
    CHECK_INT(spent.limit.steps, 12);
    for (int i = 0; i < 11; i++) {
        CHECK(!agent_budget_must_answer(&spent, 0));
        agent_budget_add_cell(&spent, 1);
    }
    CHECK_TEXT(agent_budget_must_answer(&spent, 0), "steps"); /* the last one is the answer's */
    agent_budget_add_cell(&spent, 1);
    CHECK(!agent_budget_is_over(&spent, 0)); /* its proof needs no step */
}

TEST(budget_of_time_forces_an_answer_before_its_end)
{
    struct agent_budget limit = no_limits();
    limit.wall_s = 100;
    struct agent_spent spent = spent_of(limit);
    CHECK(!agent_budget_must_answer(&spent, 89 * S));
    CHECK_TEXT(agent_budget_must_answer(&spent, 91 * S), "time");
    CHECK(!agent_budget_is_over(&spent, 99 * S));
    CHECK_TEXT(agent_budget_is_over(&spent, 100 * S), "time");
}

TEST(budget_of_time_does_not_count_the_models_replies)
{
    struct agent_budget limit = no_limits();
    limit.wall_s = 100;
    limit.model_s = 1000;
    struct agent_spent spent = spent_of(limit);
    struct llm_reply slow = { .usage = LLM_USAGE_UNKNOWN, .cost_usd = -1 };
    agent_budget_add_reply(&spent, &slow, 800);
    CHECK(!agent_budget_must_answer(&spent, 889 * S));
    CHECK_TEXT(agent_budget_must_answer(&spent, 891 * S), "time");
    CHECK_INT(agent_budget_reply_until_ms(&spent, 0), 200 * 1000 + 1);
    agent_budget_add_reply(&spent, &slow, 100);
    CHECK_TEXT(agent_budget_must_answer(&spent, 900 * S), "reply time");
    CHECK(!agent_budget_is_over(&spent, 900 * S));
    agent_budget_add_reply(&spent, &slow, 100);
    CHECK_TEXT(agent_budget_is_over(&spent, 1000 * S), "reply time");
    spent.limit.model_s = -1;
    CHECK(!agent_budget_is_over(&spent, 1000 * S));
    CHECK_INT(agent_budget_reply_until_ms(&spent, 0), 0); /* no deadline */
    CHECK(AGENT_BUDGET_DEFAULT.model_s == 3600);
}

TEST(budget_gives_a_cell_only_what_is_left)
{
    struct agent_budget limit = no_limits();
    limit.wall_s = 100;
    limit.execution_s = 10;
    struct agent_spent spent = spent_of(limit);
    CHECK(agent_budget_cell_s(&spent, 120, 0) == 10);
    CHECK(agent_budget_cell_s(&spent, 5, 0) == 5);
    CHECK(agent_budget_cell_s(&spent, 120, 97 * S) == 3);
    agent_budget_add_cell(&spent, 10);
    CHECK(agent_budget_cell_s(&spent, 120, 0) == 0);
    CHECK_TEXT(agent_budget_must_answer(&spent, 0), "execution time");
}

TEST(budget_of_tokens_is_reserved_before_a_request)
{
    struct agent_budget limit = no_limits();
    struct agent_spent spent = spent_of(limit);
    CHECK_INT(agent_budget_output_tokens(&spent, 1u << 20), 0);
    spent.limit.tokens = 1000;
    CHECK_INT(agent_budget_output_tokens(&spent, 300), 900);
    CHECK_INT(agent_budget_output_tokens(&spent, 3000), -1);
    struct llm_reply reply = { .usage = { 500, 100, -1, 310, -1 }, .cost_usd = 0.5, .tries = 2 };
    agent_budget_add_reply(&spent, &reply, 1.5);
    CHECK_INT(spent.input_tokens, 600);
    CHECK_INT(spent.cached_tokens, 100);
    CHECK_INT(spent.requests, 2);
    CHECK_TEXT(agent_budget_must_answer(&spent, 0), "tokens");
    CHECK_INT(agent_budget_output_tokens(&spent, 300), -1);
}

TEST(budget_of_money_refuses_unknown_prices)
{
    struct agent_spent spent = spent_of(no_limits());
    CHECK(agent_budget_can_pay(&spent, -1));
    spent.limit.money_usd = 1;
    CHECK(!agent_budget_can_pay(&spent, -1));
    CHECK(agent_budget_can_pay(&spent, 0.9));
    CHECK(!agent_budget_can_pay(&spent, 1.1));
    spent.usd = 0.95;
    CHECK(!agent_budget_can_pay(&spent, 0.1));
    CHECK_TEXT(agent_budget_must_answer(&spent, 0), "money");
}

TEST(budget_says_which_request_is_the_last)
{
    struct agent_spent spent = spent_of(no_limits());
    spent.requests = 2;
    spent.model_s = 20;
    CHECK(!agent_budget_is_last(&spent, 1u << 20, 100, 1000 * S));
    spent.limit.tokens = 3000;
    CHECK(!agent_budget_is_last(&spent, 3000, 0, 0)); /* 1,000 and a reply, twice */
    CHECK_TEXT(agent_budget_is_last(&spent, 3600, 0, 0), "tokens");
    spent.limit.tokens = -1;
    spent.limit.money_usd = 1;
    CHECK(!agent_budget_is_last(&spent, 0, 0.5, 0));
    CHECK_TEXT(agent_budget_is_last(&spent, 0, 0.6, 0), "money");
    spent.limit.money_usd = -1;
    spent.limit.model_s = 40; /* a reply takes ten seconds */
    CHECK(!agent_budget_is_last(&spent, 0, 0, 1000 * S));
    spent.limit.model_s = 39;
    CHECK_TEXT(agent_budget_is_last(&spent, 0, 0, 0), "reply time");
}

TEST(budget_cost_is_null_where_a_price_is_unknown)
{
    struct agent_spent spent = spent_of(no_limits());
    struct llm_reply known = { .usage = LLM_USAGE_UNKNOWN, .cost_usd = 0.25 };
    struct llm_reply unknown = { .usage = LLM_USAGE_UNKNOWN, .cost_usd = -1 };
    agent_budget_add_reply(&spent, &known, 0);
    own_json first = agent_budget_cost(&spent, S);
    CHECK(json_real_value(json_object_get(first, "usd")) == 0.25);
    CHECK_INT(json_integer_value(json_object_get(first, "input_tokens")), 0);
    agent_budget_add_reply(&spent, &unknown, 0);
    agent_budget_add_untold(&spent, &unknown, 300, 0.25);
    CHECK_INT(spent.guessed_tokens, 100);
    CHECK(spent.guessed_usd == 0.25);
    own_json second = agent_budget_cost(&spent, S);
    CHECK(json_is_null(json_object_get(second, "usd")));
}

TEST(budget_is_said_and_warns_from_three_quarters_on)
{
    struct agent_budget limit = no_limits();
    limit.steps = 4;
    struct agent_spent spent = spent_of(limit);
    own_buf out = BUF_INIT(1000);
    agent_budget_say(&spent, 0, &out);
    CHECK_TEXT(out.at, "budget left: 4 of 4 steps\n");
    spent.steps = 3;
    out.len = 0;
    agent_budget_say(&spent, 0, &out);
    CHECK_TEXT(out.at, "budget left: 1 of 4 steps; that is little: come to the answer\n");
    own_json left = agent_budget_left(&spent, 0);
    CHECK_INT(json_integer_value(json_object_get(left, "steps_left")), 1);
    CHECK_INT(json_object_size(left), 1);
}
