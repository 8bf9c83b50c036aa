/* Messages for the program `shell`, which runs a command (src/box/shell). Pure. Runs in the
 * engine. */
#include "engine/talk/plan.h"

#include <string.h>

#include "base/buf.h"
#include "box/proto/shell.h"

_Static_assert(PLAN_COMMAND_MESSAGE == SHELL_MESSAGE, "the size of a message");

static uint16_t side(unsigned cells)
{
    return cells < UINT16_MAX ? (uint16_t)cells : UINT16_MAX;
}

static void write_message(const struct shell_message *message, char out[PLAN_COMMAND_MESSAGE])
{
    uint8_t bytes[SHELL_MESSAGE];
    shell_write(message, bytes);
    memcpy(out, bytes, sizeof bytes);
}

char *plan_command_message(const struct request_command *command)
{
    struct shell_message message = { .word = SHELL_PLAIN };
    char *out = buf_alloc_zero(1, PLAN_COMMAND_MESSAGE);
    if (command->terminal)
        message = (struct shell_message){ SHELL_TERMINAL, command->err_apart, command->rows,
                                          command->columns };
    write_message(&message, out);
    return out;
}

void plan_command_size(unsigned rows, unsigned columns, char out[PLAN_COMMAND_MESSAGE])
{
    write_message(&(struct shell_message){ .word = SHELL_RESIZE,
                                           .rows = side(rows),
                                           .columns = side(columns) },
                  out);
}
