/* Messages to the program `shell`: what is written is read, in any pieces; what breaks a rule ends
 * the reading. */
#include "check.h"

#include <string.h>

#include "base/attr.h"
#include "box/proto/shell.h"

/* Everything that those bytes hold, in pieces of that size; the last outcome of shell_read. */
static int read_all(const uint8_t *bytes, size_t len, size_t piece, struct shell_message *out,
                    size_t *out_count)
{
    struct shell_inbox inbox = { .len = 0 };
    int rc = 0;
    *out_count = 0;
    for (size_t at = 0, used; at < len; at += used) {
        size_t rest = len - at;
        rc = shell_read(&inbox, bytes + at, rest < piece ? rest : piece, &used, out);
        if (rc < 0)
            return rc;
        *out_count += (size_t)rc;
    }
    return rc;
}

static const struct shell_message terminal = { SHELL_TERMINAL, true, 33, 477 };
static const struct shell_message size = { SHELL_RESIZE, false, 65535, 1 };

TEST(shell_messages_are_read_as_they_were_written_in_any_pieces)
{
    uint8_t bytes[2 * SHELL_MESSAGE];
    shell_write(&terminal, bytes);
    shell_write(&size, bytes + SHELL_MESSAGE);
    for (size_t piece = 1; piece <= sizeof bytes; piece++) {
        struct shell_message got;
        size_t count;
        CHECK_INT(read_all(bytes, SHELL_MESSAGE, piece, &got, &count), 1);
        CHECK(got.word == SHELL_TERMINAL && got.err_apart && got.rows == 33 && got.columns == 477);
        CHECK_INT(read_all(bytes, sizeof bytes, piece, &got, &count), 1);
        CHECK_INT(count, 2);
        CHECK(got.word == SHELL_RESIZE && !got.err_apart && got.rows == 65535 && got.columns == 1);
    }
}

TEST(shell_a_part_of_a_message_is_none_yet)
{
    uint8_t bytes[SHELL_MESSAGE];
    struct shell_message got;
    size_t count;
    shell_write(&terminal, bytes);
    CHECK_INT(read_all(bytes, sizeof bytes - 1, 3, &got, &count), 0);
    CHECK_INT(count, 0);
}

TEST(shell_bytes_that_break_a_rule_end_the_reading)
{
    static const struct {
        size_t at;
        uint8_t value;
    } rows[] = { { 0, 's' }, { 1, 0 }, { 1, SHELL_RESIZE }, { 1, 4 }, { 1, 255 },
                 { 2, 2 },   { 3, 1 } };
    for (size_t i = 0; i < array_len(rows); i++) {
        uint8_t bytes[2 * SHELL_MESSAGE];
        struct shell_message got;
        size_t count;
        shell_write(&terminal, bytes);
        shell_write(&size, bytes + SHELL_MESSAGE);
        bytes[rows[i].at] = rows[i].value;
        CHECK_INT(read_all(bytes, sizeof bytes, 5, &got, &count), -1);
        CHECK_INT(count, 0);
    }
}

TEST(shell_words_come_in_their_order)
{
    static const struct shell_message plain = { .word = SHELL_PLAIN };
    static const struct shell_message wrong[][2] = {
        { { SHELL_PLAIN, true, 0, 0 }, { SHELL_PLAIN, false, 0, 0 } },
        { { SHELL_PLAIN, false, 1, 0 }, { SHELL_PLAIN, false, 0, 0 } },
        { { SHELL_PLAIN, false, 0, 0 }, { SHELL_RESIZE, false, 1, 1 } },
        { { SHELL_TERMINAL, false, 1, 1 }, { SHELL_TERMINAL, false, 1, 1 } },
        { { SHELL_TERMINAL, false, 1, 1 }, { SHELL_RESIZE, true, 1, 1 } },
        { { SHELL_TERMINAL, false, 1, 1 }, { SHELL_PLAIN, false, 0, 0 } },
    };
    uint8_t bytes[2 * SHELL_MESSAGE];
    struct shell_message got;
    size_t count;
    shell_write(&plain, bytes);
    CHECK_INT(read_all(bytes, SHELL_MESSAGE, 8, &got, &count), 1);
    for (size_t i = 0; i < array_len(wrong); i++) {
        shell_write(&wrong[i][0], bytes);
        shell_write(&wrong[i][1], bytes + SHELL_MESSAGE);
        CHECK_INT(read_all(bytes, sizeof bytes, 8, &got, &count), -1);
    }
}

TEST(shell_nothing_is_read_behind_a_broken_message)
{
    struct shell_inbox inbox = { .len = 0 };
    struct shell_message got;
    uint8_t bytes[SHELL_MESSAGE] = { 0 };
    size_t used;
    CHECK_INT(shell_read(&inbox, bytes, sizeof bytes, &used, &got), -1);
    shell_write(&terminal, bytes);
    CHECK_INT(shell_read(&inbox, bytes, sizeof bytes, &used, &got), -1);
    CHECK_INT(used, 0);
}
