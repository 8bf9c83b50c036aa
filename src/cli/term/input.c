/* Input for code that asks for it. Runs in the cli process. Reads the terminal only then: text
 * typed before waits for the prompt. */
#include "cli/term/input.h"

#include <errno.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/term/term.h"

#define LINE_MAX_BYTES 4096 /* maximum of a terminal's line */

void cli_input_begin(struct cli_input *input, bool echo)
{
    input->open = true;
    if (echo || input->hidden || tcgetattr(STDIN_FILENO, &input->before) < 0)
        return;
    struct termios hidden = input->before;
    hidden.c_lflag &= ~(tcflag_t)ECHO;
    input->hidden = tcsetattr(STDIN_FILENO, TCSADRAIN, &hidden) == 0;
}

void cli_input_end(struct cli_input *input)
{
    if (input->hidden)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &input->before);
    input->open = input->hidden = false;
}

int cli_input_fd(const struct cli_input *input)
{
    return input && input->open ? STDIN_FILENO : -1;
}

int cli_input_read(struct cli_input *input, struct buf *out)
{
    char *room = buf_room(out, LINE_MAX_BYTES);
    ssize_t n;
    do {
        n = read(STDIN_FILENO, room, LINE_MAX_BYTES);
    } while (n < 0 && errno == EINTR);
    buf_grew(out, n > 0 ? (size_t)n : 0);
    if (input->hidden && n > 0)
        cli_term_write(STDOUT_FILENO, STR("\n"));
    cli_input_end(input);
    if (n > 0 && room[n - 1] == '\n')
        input->on_line(input->user);
    return n > 0;
}
