/* Counts of runs: src/engine/tally.c. */
#include "check.h"

#include "engine/tally.h"

static void add(struct tally *tally, enum result_status status, double wall_ms)
{
    own_result result;
    result_init(&result);
    result.status = status;
    result.wall_ms = wall_ms;
    result.cpu_ms = 4;
    result.warm = true;
    tally_add(tally, REQUEST_PYTHON, &result, NULL);
}

TEST(engine_tally_counts_by_status_and_time)
{
    struct tally tally = { 0 };
    add(&tally, RESULT_OK, 1);
    add(&tally, RESULT_OK, 1.5);
    add(&tally, RESULT_TIMEOUT, 1e9);
    CHECK_INT(tally.ended[REQUEST_PYTHON][RESULT_OK], 2);
    CHECK_INT(tally.ended[REQUEST_PYTHON][RESULT_TIMEOUT], 1);
    CHECK_INT(tally.ended[REQUEST_BASH][RESULT_OK], 0);
    CHECK_INT(tally.bucket[TALLY_WALL][0], 1); /* an end belongs to its bucket */
    CHECK_INT(tally.bucket[TALLY_WALL][1], 1);
    CHECK_INT(tally.bucket[TALLY_WALL][TALLY_BUCKETS], 1);
    CHECK_INT(tally.bucket[TALLY_QUEUE][0], 3);
    CHECK_INT(tally.count, 3);
    CHECK_INT(tally.warm, 3);
    CHECK_INT((int)tally.cpu_ms, 12);
}

TEST(engine_tally_sees_failures_of_our_own_in_a_row)
{
    struct tally tally = { 0 };
    struct err ours = { .kind = ERR_BUG }, theirs = { .kind = ERR_CANCELLED };
    add(&tally, RESULT_INTERNAL, 1);
    tally_add(&tally, REQUEST_BASH, NULL, &ours);
    tally_add(&tally, REQUEST_BASH, NULL, &theirs); /* says nothing about us */
    CHECK_INT(tally.failed_in_a_row, 2);
    CHECK_INT(tally.refused[ERR_CANCELLED], 1);
    add(&tally, RESULT_ERROR, 1); /* the code failed, the box did not */
    CHECK_INT(tally.failed_in_a_row, 0);
}
