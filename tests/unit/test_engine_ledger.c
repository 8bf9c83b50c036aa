/* Counts of runs: src/engine/ledger.c. */
#include "check.h"

#include "engine/ledger.h"

static void add(struct ledger *ledger, enum result_status status, double wall_ms)
{
    own_result result;
    result_init(&result);
    result.status = status;
    result.wall_ms = wall_ms;
    result.cpu_ms = 4;
    result.warm = true;
    ledger_add(ledger, REQUEST_PYTHON, &result, NULL);
}

TEST(engine_ledger_counts_by_status_and_time)
{
    struct ledger ledger = { 0 };
    add(&ledger, RESULT_OK, 1);
    add(&ledger, RESULT_OK, 1.5);
    add(&ledger, RESULT_TIMEOUT, 1e9);
    CHECK_INT(ledger.ended[REQUEST_PYTHON][RESULT_OK], 2);
    CHECK_INT(ledger.ended[REQUEST_PYTHON][RESULT_TIMEOUT], 1);
    CHECK_INT(ledger.ended[REQUEST_BASH][RESULT_OK], 0);
    CHECK_INT(ledger.bucket[LEDGER_WALL][0], 1); /* an end belongs to its bucket */
    CHECK_INT(ledger.bucket[LEDGER_WALL][1], 1);
    CHECK_INT(ledger.bucket[LEDGER_WALL][LEDGER_BUCKETS], 1);
    CHECK_INT(ledger.bucket[LEDGER_QUEUE][0], 3);
    CHECK_INT(ledger.count, 3);
    CHECK_INT(ledger.warm, 3);
    CHECK_INT((int)ledger.cpu_ms, 12);
}

TEST(engine_ledger_sees_failures_of_our_own_in_a_row)
{
    struct ledger ledger = { 0 };
    struct err ours = { .kind = ERR_BUG }, theirs = { .kind = ERR_CANCELLED };
    add(&ledger, RESULT_INTERNAL, 1);
    ledger_add(&ledger, REQUEST_BASH, NULL, &ours);
    ledger_add(&ledger, REQUEST_BASH, NULL, &theirs); /* says nothing about us */
    CHECK_INT(ledger.failed_in_a_row, 2);
    CHECK_INT(ledger.refused[ERR_CANCELLED], 1);
    add(&ledger, RESULT_ERROR, 1); /* the code failed, the box did not */
    CHECK_INT(ledger.failed_in_a_row, 0);
}
