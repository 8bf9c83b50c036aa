/* The memory of calls that stay done: which cells are undone, and which call is the same. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "tool/call/repeat.h"

static void add(struct repeats *repeats, int64_t cell, int64_t base, const char *same)
{
    const struct repeats_cell of = { "s_1", cell, base };
    struct repeats_call call = { .cell = cell };
    snprintf(call.same, sizeof call.same, "%s", same);
    snprintf(call.id, sizeof call.id, "%lld", (long long)cell);
    repeats_add(repeats, &of, &call);
    repeats_cell_over(repeats, &of, /* lost= */ false);
}

/* The cell of the earlier call; -1: none. */
static long long take(struct repeats *repeats, int64_t cell, int64_t base, const char *same)
{
    const struct repeats_cell of = { "s_1", cell, base };
    struct repeats_call found;
    return repeats_take(repeats, &of, same, &found) ? found.cell : -1;
}

static void pass(struct repeats *repeats, int64_t cell, int64_t base, bool lost)
{
    repeats_cell_over(repeats, &(struct repeats_cell){ "s_1", cell, base }, lost);
}

TEST(repeat_finds_a_call_of_an_undone_cell_once)
{
    struct repeats *repeats = repeats_new();
    add(repeats, 1, 0, "a");
    CHECK_INT(take(repeats, 2, 1, "a"), -1); /* cell 1 is part of the state */
    CHECK_INT(take(repeats, 3, 0, "b"), -1);
    CHECK_INT(take(repeats, 3, 0, "a"), 1);
    CHECK_INT(take(repeats, 3, 0, "a"), -1);
    repeats_free(repeats);
}

TEST(repeat_knows_which_cells_a_state_has)
{
    struct repeats *repeats = repeats_new();
    add(repeats, 1, 0, "a");
    add(repeats, 2, 1, "b");
    add(repeats, 3, 2, "c");
    pass(repeats, 4, 1, false); /* cells 2 and 3 were undone */
    CHECK_INT(take(repeats, 5, 4, "a"), -1);
    CHECK_INT(take(repeats, 5, 4, "c"), 3);
    pass(repeats, 5, 4, false);
    CHECK_INT(take(repeats, 6, 2, "b"), -1); /* a checkpoint: cell 2 is part of the state again */
    pass(repeats, 6, 2, false);
    CHECK_INT(take(repeats, 7, 4, "b"), 2);
    repeats_free(repeats);
}

TEST(repeat_takes_a_lost_state_for_undone)
{
    struct repeats *repeats = repeats_new();
    add(repeats, 4, 3, "a");
    add(repeats, 5, 4, "b");
    pass(repeats, 5, 4, /* lost= */ true);
    CHECK_INT(take(repeats, 6, 5, "a"), 4);
    add(repeats, 6, 5, "c");
    CHECK_INT(take(repeats, 7, 6, "b"), 5);
    CHECK_INT(take(repeats, 7, 6, "c"), -1);
    repeats_free(repeats);
}

TEST(repeat_forgets_the_oldest_calls_and_ended_sessions)
{
    struct repeats *repeats = repeats_new();
    add(repeats, 1, 0, "first");
    for (int i = 0; i < REPEATS_CALLS_MAX - 1; i++)
        add(repeats, 1, 0, "many");
    add(repeats, 1, 0, "last");
    CHECK_INT(take(repeats, 2, 0, "first"), -1);
    CHECK_INT(take(repeats, 2, 0, "last"), 1);
    for (int i = 0; i < REPEATS_CALLS_MAX - 1; i++)
        CHECK_INT(take(repeats, 2, 0, "many"), 1);
    CHECK_INT(take(repeats, 2, 0, "many"), -1);
    add(repeats, 3, 0, "a");
    repeats_forget(repeats, "s_2");
    repeats_forget(repeats, "s_1");
    CHECK_INT(take(repeats, 4, 0, "a"), -1);
    repeats_free(repeats);
}

TEST(repeat_bounds_the_ways_back)
{
    struct repeats *repeats = repeats_new();
    add(repeats, 1, 0, "a");
    for (int64_t cell = 2; cell < 3 * REPEATS_BACKS_MAX; cell++)
        pass(repeats, cell, 0, false);
    CHECK_INT(take(repeats, 3 * REPEATS_BACKS_MAX, 0, "a"), -1);
    add(repeats, 3 * REPEATS_BACKS_MAX, 0, "b");
    CHECK_INT(take(repeats, 3 * REPEATS_BACKS_MAX + 1, 0, "b"), 3 * REPEATS_BACKS_MAX);
    repeats_free(repeats);
}

TEST(repeat_compares_code_tool_and_arguments)
{
    char one[HASH_HEX_ROOM], other[HASH_HEX_ROOM];
    own_json a = json_pack("{s:i, s:i}", "x", 1, "y", 2);
    own_json b = json_pack("{s:i, s:i}", "y", 2, "x", 1);
    repeats_same(STR("f()"), STR("t"), a, one);
    repeats_same(STR("f()"), STR("t"), b, other);
    CHECK_TEXT(one, other);
    repeats_same(STR("f() "), STR("t"), a, other);
    CHECK(strcmp(one, other) != 0);
    repeats_same(STR("f()"), STR("u"), a, other);
    CHECK(strcmp(one, other) != 0);
    json_object_set_new(b, "y", json_integer(3));
    repeats_same(STR("f()"), STR("t"), b, other);
    CHECK(strcmp(one, other) != 0);
}
