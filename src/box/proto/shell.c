/* Messages to the program `shell`. Runs in the engine, which writes them, and in the box, as the
 * user's code, which reads them. */
#include "box/proto/shell.h"

#include <string.h>

#define MARK 'S'

void shell_write(const struct shell_message *message, uint8_t out[SHELL_MESSAGE])
{
    const uint8_t bytes[SHELL_MESSAGE] = {
        MARK,
        (uint8_t)message->word,
        message->err_apart,
        0,
        (uint8_t)message->rows,
        (uint8_t)(message->rows >> 8),
        (uint8_t)message->columns,
        (uint8_t)(message->columns >> 8),
    };
    memcpy(out, bytes, sizeof bytes);
}

/* May this word come now? */
static bool is_in_place(const struct shell_inbox *inbox, const struct shell_message *message)
{
    switch (message->word) {
    case SHELL_PLAIN:
        return !inbox->begun && !message->err_apart && message->rows == 0 && message->columns == 0;
    case SHELL_TERMINAL: return !inbox->begun;
    case SHELL_RESIZE: return inbox->terminal && !message->err_apart;
    }
    return false;
}

static bool take(struct shell_inbox *inbox, struct shell_message *out)
{
    const uint8_t *at = inbox->bytes;
    if (at[0] != MARK || at[1] < SHELL_PLAIN || at[1] > SHELL_RESIZE || at[2] > 1 || at[3] != 0)
        return false;
    struct shell_message message = {
        .word = (enum shell_word)at[1],
        .err_apart = at[2] == 1,
        .rows = (uint16_t)(at[4] | at[5] << 8),
        .columns = (uint16_t)(at[6] | at[7] << 8),
    };
    if (!is_in_place(inbox, &message))
        return false;
    inbox->begun = true;
    inbox->terminal = message.word != SHELL_PLAIN;
    inbox->len = 0;
    *out = message;
    return true;
}

int shell_read(struct shell_inbox *inbox, const uint8_t *bytes, size_t len, size_t *out_used,
               struct shell_message *out)
{
    size_t room = sizeof inbox->bytes - inbox->len;
    size_t used = len < room ? len : room;
    *out_used = 0;
    if (inbox->broken)
        return -1;
    memcpy(inbox->bytes + inbox->len, bytes, used);
    inbox->len += used;
    *out_used = used;
    if (inbox->len < sizeof inbox->bytes)
        return 0;
    inbox->broken = !take(inbox, out);
    return inbox->broken ? -1 : 1;
}
