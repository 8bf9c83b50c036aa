/* Fuzz the messages to the program `shell`: any bytes, in pieces; the first byte is their size.
 * What is read is written as the bytes that were read, and comes in its order. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "box/proto/shell.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_in_place(const struct shell_message *message, size_t count, bool terminal)
{
    return count == 0 ? message->word == SHELL_PLAIN || message->word == SHELL_TERMINAL
                      : message->word == SHELL_RESIZE && terminal;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct shell_inbox inbox = { .len = 0 };
    size_t piece = size > 0 ? data[0] % 23 + 1 : 1, count = 0;
    bool terminal = false;
    for (size_t at = 1, used; at < size; at += used) {
        struct shell_message message;
        uint8_t again[SHELL_MESSAGE];
        size_t rest = size - at;
        int rc = shell_read(&inbox, data + at, rest < piece ? rest : piece, &used, &message);
        if (rc < 0)
            return 0;
        if (used == 0 || used > rest)
            abort();
        if (rc == 0)
            continue;
        if (!is_in_place(&message, count++, terminal))
            abort();
        terminal = terminal || message.word == SHELL_TERMINAL;
        shell_write(&message, again);
        if (memcmp(again, data + 1 + (count - 1) * SHELL_MESSAGE, SHELL_MESSAGE) != 0)
            abort();
    }
    return 0;
}
