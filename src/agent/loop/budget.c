/* Budgets as one table: each row has a limit and its use. Runs in the task's process. */
#include "agent/loop/budget.h"

#include <string.h>

#include "base/clock.h"

#define SOFT 0.75 /* the model is warned from here on */
#define HARD 0.90 /* the model must answer from here on */
#define TOKEN_CHARS 3 /* a token has at least about so many characters: a careful guess */
#define REPLY_TOKENS_LEAST 64
#define REPLY_TOKENS_USUAL 400

enum { STEPS, WALL, REPLIES, EXECUTION, TOKENS, MONEY, ARTIFACTS, BUDGETS };

static const struct {
    const char *name, *left, *unit;
    bool ends; /* the task cannot continue without it */
} rows[BUDGETS] = {
    [STEPS] = { "steps", "steps_left", "steps", false },
    [WALL] = { "time", "wall_s_left", "s of time", true },
    [REPLIES] = { "reply time", "model_s_left", "s of replies", true },
    [EXECUTION] = { "execution time", "execution_s_left", "s of execution", false },
    [TOKENS] = { "tokens", "tokens_left", "tokens", true },
    [MONEY] = { "money", "money_usd_left", "USD", true },
    [ARTIFACTS] = { "artifact bytes", "artifact_bytes_left", "bytes of files", false },
};

static double limit_of(const struct agent_spent *spent, int row)
{
    const struct agent_budget *limit = &spent->limit;
    const double limits[BUDGETS] = { (double)limit->steps,
                                     limit->wall_s,
                                     limit->model_s,
                                     limit->execution_s,
                                     (double)limit->tokens,
                                     limit->money_usd,
                                     (double)limit->artifact_bytes };
    return limits[row];
}

static int64_t tokens_of(const struct agent_spent *spent)
{
    return spent->input_tokens + spent->output_tokens + spent->guessed_tokens;
}

static double used_of(const struct agent_spent *spent, int row, int64_t now_ns)
{
    const double used[BUDGETS] = { (double)spent->steps,
                                   clock_ms_between(spent->began_ns, now_ns) / 1000 -
                                       spent->model_s,
                                   spent->model_s,
                                   spent->execution_s,
                                   (double)tokens_of(spent),
                                   spent->usd + spent->guessed_usd,
                                   (double)spent->artifact_bytes };
    return used[row];
}

static double left_of(const struct agent_spent *spent, int row, int64_t now_ns)
{
    double left = limit_of(spent, row) - used_of(spent, row, now_ns);
    return left > 0 ? left : 0;
}

static bool is_used(const struct agent_spent *spent, int row, double share, int64_t now_ns)
{
    double limit = limit_of(spent, row);
    return limit >= 0 && used_of(spent, row, now_ns) >= limit * share;
}

void agent_budget_start(struct agent_spent *spent, const struct agent_budget *limit, int64_t now_ns)
{
    *spent = (struct agent_spent){ .limit = *limit, .began_ns = now_ns };
    if (spent->limit.steps < 0)
        spent->limit.steps = AGENT_BUDGET_DEFAULT.steps;
}

void agent_budget_add_reply(struct agent_spent *spent, const struct llm_reply *reply,
                            double seconds)
{
    const struct llm_usage *usage = &reply->usage;
    const int64_t read = usage->cache_read > 0 ? usage->cache_read : 0;
    const int64_t written = usage->cache_write > 0 ? usage->cache_write : 0;
    spent->requests += reply->tries > 0 ? reply->tries : 1;
    spent->model_s += seconds;
    spent->input_tokens += (usage->input > 0 ? usage->input : 0) + read + written;
    spent->cached_tokens += read;
    spent->output_tokens += usage->output > 0 ? usage->output : 0;
    if (reply->cost_usd >= 0)
        spent->usd += reply->cost_usd;
    else
        spent->usd_unknown = true;
}

void agent_budget_add_untold(struct agent_spent *spent, const struct llm_reply *reply,
                             size_t request_chars, double bound_usd)
{
    static const bool has_begun[LLM_OUTCOME_COUNT] = {
        [LLM_OK] = true, [LLM_REFUSED] = true, [LLM_BROKEN] = true, [LLM_TIMEOUT] = true,
        [LLM_GARBAGE] = true, [LLM_TOO_LONG] = true,
    };
    const struct llm_usage *usage = &reply->usage;
    if (!has_begun[reply->outcome])
        return;
    if (usage->input < 0 || usage->output < 0) {
        size_t chars = request_chars + (reply->text ? strlen(reply->text) : 0);
        spent->guessed_tokens += (int64_t)(chars / TOKEN_CHARS);
        spent->tokens_unknown = true;
    }
    if (reply->cost_usd < 0 && bound_usd > 0)
        spent->guessed_usd += bound_usd;
}

void agent_budget_add_cell(struct agent_spent *spent, double seconds)
{
    spent->steps++;
    spent->execution_s += seconds;
}

const char *agent_budget_must_answer(const struct agent_spent *spent, int64_t now_ns)
{
    if (spent->steps + 1 >= spent->limit.steps) /* the last step is the answer's */
        return rows[STEPS].name;
    for (int row = WALL; row < ARTIFACTS; row++)
        if (is_used(spent, row, HARD, now_ns))
            return rows[row].name;
    return NULL;
}

const char *agent_budget_is_over(const struct agent_spent *spent, int64_t now_ns)
{
    for (int row = 0; row < BUDGETS; row++)
        if (rows[row].ends && is_used(spent, row, 1, now_ns))
            return rows[row].name;
    return NULL;
}

double agent_budget_cell_s(const struct agent_spent *spent, double wanted, int64_t now_ns)
{
    const int in_seconds[] = { WALL, EXECUTION };
    double seconds = wanted;
    for (size_t i = 0; i < array_len(in_seconds); i++) {
        double left = left_of(spent, in_seconds[i], now_ns);
        if (limit_of(spent, in_seconds[i]) >= 0 && left < seconds)
            seconds = left;
    }
    return seconds;
}

int64_t agent_budget_output_tokens(const struct agent_spent *spent, size_t request_chars)
{
    if (spent->limit.tokens < 0)
        return 0;
    int64_t used = tokens_of(spent);
    int64_t room = spent->limit.tokens - used - (int64_t)(request_chars / TOKEN_CHARS);
    return room < REPLY_TOKENS_LEAST ? -1 : room;
}

const char *agent_budget_is_last(const struct agent_spent *spent, size_t request_chars,
                                 double bound_usd, int64_t now_ns)
{
    int64_t request = (int64_t)(request_chars / TOKEN_CHARS) + REPLY_TOKENS_USUAL;
    int64_t used = tokens_of(spent);
    double usd = spent->usd + spent->guessed_usd;
    double reply_s = spent->requests ? spent->model_s / (double)spent->requests : 0;
    if (spent->limit.tokens >= 0 && used + 2 * request > spent->limit.tokens)
        return rows[TOKENS].name;
    if (spent->limit.money_usd >= 0 && usd + 2 * bound_usd > spent->limit.money_usd)
        return rows[MONEY].name;
    if (spent->limit.model_s >= 0 && left_of(spent, REPLIES, now_ns) < 2 * reply_s)
        return rows[REPLIES].name;
    return NULL;
}

int64_t agent_budget_reply_until_ms(const struct agent_spent *spent, int64_t now_ns)
{
    double left = left_of(spent, REPLIES, now_ns);
    return spent->limit.model_s < 0 ? 0 : now_ns / CLOCK_MS + (int64_t)(left * 1000) + 1;
}

bool agent_budget_can_pay(const struct agent_spent *spent, double bound_usd)
{
    if (spent->limit.money_usd < 0)
        return true;
    return bound_usd >= 0 && spent->usd + spent->guessed_usd + bound_usd <= spent->limit.money_usd;
}

void agent_budget_say(const struct agent_spent *spent, int64_t now_ns, struct buf *out)
{
    bool low = false;
    const char *between = "budget left: ";
    for (int row = 0; row < BUDGETS; row++) {
        double limit = limit_of(spent, row), left = left_of(spent, row, now_ns);
        if (limit < 0 || row == ARTIFACTS || row == REPLIES)
            continue;
        bool money = row == MONEY;
        buf_printf(out, "%s%.*f of %.*f %s", between, money ? 4 : 0, left, money ? 4 : 0, limit,
                   rows[row].unit);
        between = ", ";
        low = low || is_used(spent, row, SOFT, now_ns);
    }
    buf_add_text(out, low ? "; that is little: come to the answer\n" : "\n");
}

json_t *agent_budget_left(const struct agent_spent *spent, int64_t now_ns)
{
    json_t *left = json_object();
    for (int row = 0; row < BUDGETS; row++) {
        double value = left_of(spent, row, now_ns);
        bool whole = row == STEPS || row == TOKENS || row == ARTIFACTS;
        if (limit_of(spent, row) >= 0)
            json_object_set_new(left, rows[row].left,
                                whole ? json_integer((json_int_t)value) : json_real(value));
    }
    return left;
}

static json_t *real_or_null(double value)
{
    return value < 0 ? json_null() : json_real(value);
}

static json_t *count_or_null(int64_t value)
{
    return value < 0 ? json_null() : json_integer(value);
}

json_t *agent_budget_json(const struct agent_budget *limit)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "steps", count_or_null(limit->steps),
                     "wall_s", real_or_null(limit->wall_s), "model_s", real_or_null(limit->model_s),
                     "execution_s", real_or_null(limit->execution_s), "tokens",
                     count_or_null(limit->tokens), "money_usd", real_or_null(limit->money_usd),
                     "artifact_bytes", count_or_null(limit->artifact_bytes));
}

json_t *agent_budget_cost(const struct agent_spent *spent, int64_t now_ns)
{
    json_t *usd = spent->usd_unknown ? json_null() : json_real(spent->usd);
    bool told = !spent->tokens_unknown;
    return json_pack("{s:o, s:o, s:o, s:o, s:I, s:f, s:f, s:f}", "usd", usd, "input_tokens",
                     count_or_null(told ? spent->input_tokens : -1), "cached_tokens",
                     count_or_null(told ? spent->cached_tokens : -1), "output_tokens",
                     count_or_null(told ? spent->output_tokens : -1), "requests",
                     (json_int_t)spent->requests, "model_s", spent->model_s, "execution_s",
                     spent->execution_s, "wall_s",
                     clock_ms_between(spent->began_ns, now_ns) / 1000);
}
