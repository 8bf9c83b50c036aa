/* Adds up what runs took and how they ended. Runs in the engine. */
#include "engine/ledger.h"

#include "base/attr.h"

const double ledger_ends_ms[LEDGER_BUCKETS] = { 1,   2,   5,    10,   20,   50,    100,
                                              200, 500, 1000, 2000, 5000, 20000, 100000 };
const char *const ledger_time_names[LEDGER_TIMES] = { "queue", "start", "wall" };

static void add_time(struct ledger *ledger, enum ledger_time which, double ms)
{
    size_t i = 0;
    while (i < LEDGER_BUCKETS && ms > ledger_ends_ms[i])
        i++;
    ledger->bucket[which][i]++;
    ledger->sum_ms[which] += ms;
}

void ledger_add(struct ledger *ledger, enum request_language language, const struct result *result,
                const struct err *err)
{
    bool ours = result ? result->status == RESULT_INTERNAL
                       : err->kind == ERR_BUG || err->kind == ERR_HOST;
    bool ran = result && !ours;
    ledger->failed_in_a_row = ran ? 0 : ledger->failed_in_a_row + ours;
    if (!result) {
        ledger->refused[err->kind]++;
        return;
    }
    ledger->ended[language][result->status]++;
    ledger->count++;
    ledger->warm += result->warm;
    ledger->cpu_ms += result->cpu_ms;
    ledger->output_bytes += result->out.total_bytes + result->err_stream.total_bytes;
    for (size_t i = 0; i < result->artifact_count; i++)
        ledger->artifact_bytes += result->artifacts[i].size_bytes;
    add_time(ledger, LEDGER_QUEUE, result->queue_ms);
    add_time(ledger, LEDGER_START, result->start_ms);
    add_time(ledger, LEDGER_WALL, result->wall_ms);
}
