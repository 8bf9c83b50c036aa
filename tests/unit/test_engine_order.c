/* Marks in the output of a box: taken out exactly, and the pipes merged by them. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/talk/order.h"

#define SECRET "0123456789abcdef"
#define MARK(number) MARK_OF(number, "00000000")
#define MARK_OF(number, cell) "\001" SECRET number cell

static void tell(void *user, unsigned pipe, uint32_t cell, struct str bytes)
{
    struct buf *out = user;
    if (cell)
        buf_printf(out, "(%u)", (unsigned)cell);
    buf_printf(out, "%u:%.*s|", pipe, (int)bytes.len, bytes.at);
}

struct told {
    struct order order;
    struct buf out;
};

static void told_done(struct told *told)
{
    order_done(&told->order);
    buf_done(&told->out);
}
#define own_told __attribute__((cleanup(told_done))) struct told

static void begin(struct told *told)
{
    *told = (struct told){ .out = BUF_INIT(1 << 22) };
    order_init(&told->order, tell, &told->out);
    memcpy(told->order.secret, SECRET, sizeof SECRET);
}

static bool add(struct told *told, unsigned pipe, const char *text)
{
    return order_add(&told->order, pipe, str_of(text));
}

/* The end of a turn in which `read` was read first and the others after it. */
static void turn(struct told *told, unsigned read)
{
    order_settle(&told->order, order_newest(&told->order, read));
    order_tell(&told->order, 100);
}

static void check_told(struct told *told, const char *want)
{
    buf_add(&told->out, "", 0);
    CHECK_TEXT(told->out.at ? told->out.at : "", want);
    told->out.len = 0;
}

TEST(order_of_bytes_without_marks_is_that_of_arrival)
{
    own_told told;
    begin(&told);
    CHECK(add(&told, 1, "e") && add(&told, 0, "o") && add(&told, 1, "\001e"));
    check_told(&told, "1:e|0:o|1:\001e|");
}

TEST(order_of_three_pipes_is_that_of_their_marks)
{
    own_told told;
    begin(&told);
    CHECK(!add(&told, 2, MARK("00000003") "r" MARK("00000006") "s"));
    add(&told, 0, "a" MARK("00000002") "c" MARK("00000005") "e");
    add(&told, 1, MARK("00000001") "b" MARK("00000004") "d");
    turn(&told, 2);
    check_told(&told, "0:a|1:b|0:c|2:r|1:d|0:e|2:s|");
    CHECK(!order_waits(&told.order));
}

TEST(order_waits_for_what_may_still_be_in_another_pipe)
{
    own_told told;
    begin(&told);
    add(&told, 0, "a");
    add(&told, 1, MARK("00000001") "b");
    unsigned newest = order_newest(&told.order, 1);
    add(&told, 0, MARK("00000002") "c" MARK("00000004") "e");
    /* 0 was read after 1: what 1 got between them is not here yet. */
    order_settle(&told.order, newest);
    order_tell(&told.order, 100);
    check_told(&told, "0:a|1:b|");
    CHECK(order_waits(&told.order) && !order_is_settled(&told.order));
    CHECK_INT(order_newest(&told.order, 1), 0);
    add(&told, 1, MARK("00000003") "d");
    turn(&told, 1);
    check_told(&told, "0:c|1:d|0:e|");
}

TEST(order_of_bytes_that_come_after_their_mark_was_read)
{
    own_told told;
    begin(&told);
    add(&told, 1, MARK("00000001"));
    unsigned newest = order_newest(&told.order, 1);
    add(&told, 0, MARK("00000002")); /* b is in 1 by now, and was not read */
    order_settle(&told.order, newest);
    order_tell(&told.order, 100);
    CHECK(!order_waits(&told.order));
    CHECK(!add(&told, 0, "c"));
    CHECK_INT(order_newest(&told.order, 0), 0);
    add(&told, 1, "b");
    turn(&told, 0);
    check_told(&told, "1:b|0:c|");
    CHECK(add(&told, 0, "d"));
    check_told(&told, "0:d|");
}

TEST(order_tells_a_bounded_number_of_portions)
{
    own_told told;
    begin(&told);
    add(&told, 0, "a" MARK("00000002") "c");
    add(&told, 1, MARK("00000001") "b");
    order_settle(&told.order, 0);
    order_tell(&told.order, 2);
    check_told(&told, "0:a|1:b|");
    CHECK(order_is_settled(&told.order));
    order_tell(&told.order, 2);
    check_told(&told, "0:c|");
}

TEST(order_finds_a_mark_that_reads_have_torn)
{
    static const char text[] = "ab" MARK("00000001") "cd";
    for (size_t cut = 1; cut < sizeof text - 1; cut++) {
        own_told told;
        begin(&told);
        for (size_t at = 0; at < sizeof text - 1; at += cut)
            order_add(&told.order, 0,
                      (struct str){ text + at, sizeof text - 1 - at < cut ? sizeof text - 1 - at
                                                                          : cut });
        order_tell_all(&told.order, /* whole= */ true);
        CHECK_INT(told.order.marks, 1);
        CHECK_INT(told.order.pipe[0].epoch, 1);
        char kept[16] = "";
        size_t len = 0;
        for (size_t i = 0; i < told.out.len; i++)
            if (strchr("abcd", told.out.at[i]))
                kept[len++] = told.out.at[i];
        CHECK_TEXT(kept, "abcd");
    }
}

TEST(order_loses_no_byte_of_what_is_no_mark)
{
    static const char *const texts[] = {
        "\001", "\001\001" SECRET, "\001" SECRET "0000000", "\001" SECRET "0000000g",
        "\001" SECRET "0000000A", "\0010123456789abcdeX00000001", SECRET "00000001",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        for (size_t cut = 1; cut < 30; cut++) {
            own_told told;
            begin(&told);
            size_t total = 0, len = strlen(texts[i]);
            for (size_t at = 0; at < len; at += cut)
                order_add(&told.order, 1,
                          (struct str){ texts[i] + at, len - at < cut ? len - at : cut });
            order_tell_all(&told.order, /* whole= */ true);
            for (size_t at = 0; at + 1 < told.out.len; at++)
                total += memcmp(told.out.at + at, "1:", 2) == 0;
            CHECK_INT(told.out.len, len + 3 * total); /* each portion has "1:" and "|" around it */
            CHECK_INT(told.order.marks, 0);
        }
    }
}

TEST(order_of_numbers_that_go_back_stops_nothing)
{
    own_told told;
    begin(&told);
    add(&told, 0, MARK("ffffffff") "a" MARK("00000001") "b" MARK("00000000") "c");
    add(&told, 1, MARK("00000001") "d");
    turn(&told, 0);
    check_told(&told, "1:d|0:abc|");
    CHECK(!order_waits(&told.order));
}

TEST(order_takes_a_bounded_number_of_marks)
{
    own_told told;
    begin(&told);
    told.order.marks = ORDER_MARKS_MAX - 1;
    add(&told, 0, MARK("00000001") MARK("00000002") "a");
    order_tell_all(&told.order, /* whole= */ true);
    check_told(&told, "0:" MARK("00000002") "a|");
}

TEST(order_tells_pieces_of_one_writer_as_one_and_counts_no_mark_of_them)
{
    own_told told;
    begin(&told);
    add(&told, 0, "a");
    for (int i = 0; i < 3; i++)
        add(&told, 0, MARK_OF("00000000", "00000002") "b" MARK("00000000"));
    add(&told, 0, MARK_OF("00000000", "00000003") "c" MARK("00000000") "d");
    turn(&told, 0);
    check_told(&told, "0:a|(2)0:bbb|(3)0:c|0:d|");
    CHECK_INT(told.order.marks, 0);
}

TEST(order_without_a_secret_has_no_marks)
{
    own_told told;
    begin(&told);
    told.order.secret[0] = 0;
    CHECK(add(&told, 0, MARK("00000001") "a"));
    check_told(&told, "0:" MARK("00000001") "a|");
}

TEST(order_tells_the_cell_of_a_mark_until_the_next_one)
{
    own_told told;
    begin(&told);
    CHECK(!add(&told, 0, "a" MARK_OF("00000001", "00000002") "b"));
    turn(&told, 0);
    check_told(&told, "0:a|(2)0:b|");
    CHECK(add(&told, 0, "c"));
    CHECK(add(&told, 1, "e"));
    check_told(&told, "(2)0:c|1:e|");
    add(&told, 0, MARK_OF("00000002", "0000000a") "d" MARK("00000003") "f");
    turn(&told, 0);
    check_told(&told, "(10)0:d|0:f|");
}
