/* stdout and stderr: head, tail, the count between them, and whole characters. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "contract/result.h"

static void done(struct result_stream *stream)
{
    buf_done(&stream->head);
    buf_done(&stream->tail);
}
#define own_stream __attribute__((cleanup(done))) struct result_stream

/* Caller frees. */
static char *text_of(const struct result_stream *stream)
{
    struct buf out = BUF_INIT(result_stream_room(stream));
    result_stream_text(stream, &out);
    return buf_take(&out);
}

static void check_text(const char *given, size_t cap, size_t step, const char *want, bool cut)
{
    own_stream stream = { .total_bytes = 0 };
    for (size_t i = 0, len = strlen(given); i < len; i += step)
        result_stream_add(&stream, cap, given + i, len - i < step ? len - i : step);
    char *got = text_of(&stream);
    CHECK_TEXT(got, want);
    CHECK_INT(stream.truncated, cut);
    CHECK_INT(stream.total_bytes, strlen(given));
    free(got);
}

TEST(stream_within_the_cap_is_whole)
{
    for (size_t step = 1; step <= 8; step++) {
        check_text("", 8, step, "", false);
        check_text("abc", 8, step, "abc", false);
        check_text("12345678", 8, step, "12345678", false);
        check_text("1234é78", 8, step, "1234é78", false);
    }
}

TEST(stream_beyond_the_cap_is_head_and_tail)
{
    for (size_t step = 1; step <= 20; step++) {
        check_text("123456789", 8, step, "123456\n... 1 bytes left out ...\n89", true);
        check_text("abcdefghijklmnopqrstuvwxyz", 8, step, "abcdef\n... 18 bytes left out ...\nyz",
                   true);
        check_text("ab", 1, step, "a\n... 1 bytes left out ...\n", true);
        check_text("ab", 0, step, "\n... 2 bytes left out ...\n", true);
    }
}

TEST(stream_cuts_between_characters)
{
    for (size_t step = 1; step <= 20; step++) {
        /* head 6 holds two of three bytes of the second 日 */
        check_text("a日日xxxxxxxx日", 8, step, "a日\n... 14 bytes left out ...\n", true);
        check_text("a日日xxxxxxxx日", 16, step, "a日日xxxxx\n... 2 bytes left out ...\nx日", true);
        check_text("é😀é😀é😀é😀", 12, step, "é😀é\n... 16 bytes left out ...\n", true);
    }
}

TEST(stream_of_bytes_that_are_no_text_is_kept)
{
    own_stream stream = { .total_bytes = 0 };
    char bytes[100];
    memset(bytes, 0xff, sizeof bytes);
    result_stream_add(&stream, 8, bytes, sizeof bytes);
    char *got = text_of(&stream);
    CHECK(memcmp(got, "\xff\xff\xff\xff\xff\xff\n... 92 bytes left out ...\n\xff\xff", 36) == 0);
    free(got);
}

TEST(stream_takes_a_flood_of_single_bytes)
{
    own_stream stream = { .total_bytes = 0 };
    for (int i = 0; i < 8 << 20; i++)
        result_stream_add(&stream, 1 << 20, "x", 1);
    CHECK_INT(stream.total_bytes, 8 << 20);
    CHECK(stream.head.len + stream.tail.len <= 2u << 20);
    char *got = text_of(&stream);
    CHECK_INT(strlen(got), (1 << 20) + (long)strlen("\n... 7340032 bytes left out ...\n"));
    free(got);
}

TEST(stream_takes_one_large_write)
{
    own_stream stream = { .total_bytes = 0 };
    char *large = buf_alloc(1 << 20);
    memset(large, 'x', 1 << 20);
    memcpy(large + (1 << 20) - 4, "tail", 4);
    result_stream_add(&stream, 16, large, 1 << 20);
    result_stream_add(&stream, 16, NULL, 0);
    char *got = text_of(&stream);
    CHECK_TEXT(got, "xxxxxxxxxxxx\n... 1048560 bytes left out ...\ntail");
    free(got);
    free(large);
}
