/* Adds up what runs took and how they ended. Runs in the engine. */
#include "engine/tally.h"

#include "base/attr.h"

const double tally_ends_ms[TALLY_BUCKETS] = { 1,   2,   5,    10,   20,   50,    100,
                                              200, 500, 1000, 2000, 5000, 20000, 100000 };
const char *const tally_time_names[TALLY_TIMES] = { "queue", "start", "wall" };

static void add_time(struct tally *tally, enum tally_time which, double ms)
{
    size_t i = 0;
    while (i < TALLY_BUCKETS && ms > tally_ends_ms[i])
        i++;
    tally->bucket[which][i]++;
    tally->sum_ms[which] += ms;
}

void tally_add(struct tally *tally, enum request_language language, const struct result *result,
               const struct err *err)
{
    bool ours = result ? result->status == RESULT_INTERNAL
                       : err->kind == ERR_BUG || err->kind == ERR_HOST;
    bool ran = result && !ours;
    tally->failed_in_a_row = ran ? 0 : tally->failed_in_a_row + ours;
    if (!result) {
        tally->refused[err->kind]++;
        return;
    }
    tally->ended[language][result->status]++;
    tally->count++;
    tally->warm += result->warm;
    tally->cpu_ms += result->cpu_ms;
    tally->output_bytes += result->out.total_bytes + result->err_stream.total_bytes;
    for (size_t i = 0; i < result->artifact_count; i++)
        tally->artifact_bytes += result->artifacts[i].size_bytes;
    add_time(tally, TALLY_QUEUE, result->queue_ms);
    add_time(tally, TALLY_START, result->start_ms);
    add_time(tally, TALLY_WALL, result->wall_ms);
}
