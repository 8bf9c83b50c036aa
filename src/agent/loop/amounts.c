/* The keys of a budget, and budgets from JSON. Pure. */
#include <stdio.h>

#include "agent/agent.h"
#include "base/json.h"

#define AT(member) offsetof(struct agent_budget, member)

const struct agent_budget_row agent_budget_rows[AGENT_BUDGET_ROWS] = {
    { "steps", AGENT_WHOLE, 1, 1000, "a whole number, 1 to 1000", AT(steps), false },
    { "wall_s", AGENT_NUMBER, 1, 86400, "seconds, 1 to 86400, or none", AT(wall_s), true },
    { "model_s", AGENT_NUMBER, 1, 864000, "seconds, 1 to 864000, or none", AT(model_s), true },
    { "execution_s", AGENT_NUMBER, 0.1, 86400, "seconds, 0.1 to 86400, or none", AT(execution_s),
      true },
    { "tokens", AGENT_WHOLE, 1, 1e12, "a whole number, 1 to 1000000000000, or none", AT(tokens),
      true },
    { "usd", AGENT_NUMBER, 0.0001, 1e6, "US dollars, 0.0001 to 1000000, or none", AT(money_usd),
      true },
    { "artifact_bytes", AGENT_BYTES, 0, (double)(INT64_C(1) << 40), "a size, 0 to 1024G, or none",
      AT(artifact_bytes), true },
};

void agent_budget_set(const struct agent_budget_row *row, double value, struct agent_budget *out)
{
    char *at = (char *)out + row->offset;
    if (row->amount == AGENT_NUMBER)
        *(double *)(void *)at = value;
    else
        *(int64_t *)(void *)at = (int64_t)value;
}

static const struct agent_budget_row *find(const char *key)
{
    for (size_t i = 0; i < AGENT_BUDGET_ROWS; i++)
        if (str_is(str_of(key), agent_budget_rows[i].key))
            return &agent_budget_rows[i];
    return NULL;
}

static bool fits(const struct agent_budget_row *row, const json_t *value)
{
    double number = json_number_value(value);
    bool whole = row->amount == AGENT_NUMBER || json_is_integer(value);
    return json_is_number(value) && whole && number >= row->least && number <= row->most;
}

int agent_budget_read(const json_t *value, struct agent_budget *out, struct err *err)
{
    const char *key;
    json_t *member;
    char field[48], given[80];
    json_brief(value, given, sizeof given);
    if (!json_is_object(value))
        return err_input(err, "budget", given, "an object", "field 'budget' is not an object");
    json_object_foreach ((json_t *)(uintptr_t)value, key, member) {
        const struct agent_budget_row *row = find(key);
        snprintf(field, sizeof field, "budget.%.40s", key);
        json_brief(member, given, sizeof given);
        if (!row)
            return err_input(err, field, given, AGENT_BUDGET_KEYS, "unknown budget '%.40s'", key);
        bool endless = row->endless && json_is_null(member);
        if (!endless && !fits(row, member)) {
            err_input(err, field, given, row->bound, "field '%s' is %.70s: allowed is %s", field,
                      given, row->bound);
            if (row->endless)
                err_hint(err, "null lifts it");
            return -1;
        }
        agent_budget_set(row, endless ? -1 : json_number_value(member), out);
    }
    return 0;
}
