/* Growing bytes under a ceiling. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

TEST(buf_starts_empty_and_ends_twice)
{
    struct buf buf = BUF_INIT(10);
    CHECK_TEXT(buf_str(&buf).at, "");
    CHECK_INT(buf_str(&buf).len, 0);
    buf_done(&buf);
    CHECK_INT(buf_add_text(&buf, "again"), 0);
    buf_done(&buf);
    buf_done(&buf);
}

TEST(buf_refuses_to_pass_its_ceiling)
{
    own_buf buf = BUF_INIT(5);
    CHECK_INT(buf_add_text(&buf, "abc"), 0);
    CHECK_INT(buf_add_text(&buf, "def"), -1);
    CHECK_TEXT(buf.at, "abc");
    CHECK_INT(buf_printf(&buf, "%d", 123), -1);
    CHECK_TEXT(buf.at, "abc");
    CHECK_INT(buf_printf(&buf, "%d", 12), 0);
    CHECK_TEXT(buf.at, "abc12");
    CHECK_INT(buf_add(&buf, "", 0), 0);
    CHECK_INT(buf_add(&buf, "x", 1), -1);
    CHECK(!buf_room(&buf, 1));
    CHECK(!buf_room(&buf, SIZE_MAX));
}

TEST(buf_grows_and_keeps_its_nul)
{
    own_buf buf = BUF_INIT(100000);
    for (int i = 0; i < 50000; i++)
        CHECK_INT(buf_add(&buf, "ab", 2), 0);
    CHECK_INT(buf.len, 100000);
    CHECK_INT(buf.at[100000], 0);
    CHECK_INT(buf.at[99999], 'b');
    CHECK_INT(buf_add(&buf, "c", 1), -1);
}

TEST(buf_drops_from_the_front)
{
    own_buf buf = BUF_INIT(10);
    buf_drop(&buf, 0);
    buf_add_text(&buf, "abcdef");
    buf_drop(&buf, 2);
    CHECK_TEXT(buf.at, "cdef");
    buf_drop(&buf, 4);
    CHECK_TEXT(buf.at, "");
    CHECK_INT(buf_add_text(&buf, "0123456789"), 0);
}

TEST(buf_hands_its_bytes_on)
{
    own_buf buf = BUF_INIT(10);
    char *none = buf_take(&buf);
    CHECK_TEXT(none, "");
    free(none);
    buf_add_str(&buf, STR("ab"));
    char *some = buf_take(&buf);
    CHECK_TEXT(some, "ab");
    CHECK_INT(buf.len, 0);
    free(some);
}

TEST(buf_room_is_filled_by_the_caller)
{
    own_buf buf = BUF_INIT(8);
    char *room = buf_room(&buf, 8);
    CHECK(room);
    memset(room, 'x', 3);
    buf_grew(&buf, 3);
    CHECK_TEXT(buf.at, "xxx");
}

TEST(buf_copies_bytes_with_nul)
{
    char *copy = buf_strdup((struct str){ "a\0b", 3 });
    CHECK(memcmp(copy, "a\0b", 4) == 0);
    free(copy);
    free(buf_strdup(STR_NONE));
    int *zeros = buf_alloc_zero(3, sizeof *zeros);
    CHECK_INT(zeros[0] | zeros[1] | zeros[2], 0);
    free(zeros);
}
