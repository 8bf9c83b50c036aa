/* Reads lines. Runs in the cli process. Without a terminal that can place its cursor, lines are
 * read as they come. Ctrl-C arrives as a byte in a pipe, so that nothing here is asynchronous. */
#include "cli/repl/repl_edit.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "cli/repl/repl_editor.h"
#include "cli/term/term.h"

#define INPUT_MAX (8u << 20)
#define READ_PART 4096
#define REST_MS 300000

void cli_repl_reader_open(struct cli_repl_reader *reader)
{
    reader->prompts = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    reader->input = BUF_INIT(INPUT_MAX);
    if (!reader->prompts)
        return;
    reader->history_fd = cli_repl_history_open(reader->history ? reader->history : "history");
    reader->editor = cli_repl_editor_new(reader);
}

void cli_repl_reader_close(struct cli_repl_reader *reader)
{
    cli_repl_editor_free(reader->editor);
    reader->editor = NULL;
    own_close_fd(&reader->history_fd);
    buf_done(&reader->input);
}

/* News goes below the line that is being typed, which is drawn again. */
static void hear_news(struct cli_repl_reader *reader)
{
    struct cli_repl_editor *editor = reader->editor;
    size_t cursor = editor ? editor->line.cursor : 0;
    if (reader->prompts) {
        if (editor)
            cli_repl_screen_leave(editor);
        cli_term_write(STDOUT_FILENO, STR("\r\n"));
    }
    if (!reader->news(reader->user))
        reader->news = NULL;
    if (editor) {
        editor->line.cursor = cursor;
        cli_repl_screen_draw(editor);
    } else if (reader->prompts) {
        cli_term_write(STDOUT_FILENO, str_of(reader->prompt));
    }
}

/* Waits for input or an interrupt. 1: input. */
static int wait_for_input(struct cli_repl_reader *reader)
{
    for (;;) {
        struct pollfd ready[] = { { .fd = STDIN_FILENO, .events = POLLIN },
                                  { .fd = reader->interrupt_fd, .events = POLLIN },
                                  { .fd = reader->news ? reader->news_fd : -1,
                                    .events = POLLIN } };
        int count = poll(ready, array_len(ready), reader->rest ? REST_MS : -1);
        if (count == 0)
            reader->rest(reader->user);
        if (count == 0 || (count < 0 && errno == EINTR))
            continue;
        if (count < 0)
            return 0;
        if (ready[1].revents) {
            char wishes[64];
            ssize_t n = read(reader->interrupt_fd, wishes, sizeof wishes);
            reader->interrupted = true;
            reader->ended = n > 0 && memchr(wishes, 'k', (size_t)n);
            return -1;
        }
        if (ready[0].revents)
            return 1;
        if (ready[2].revents)
            hear_news(reader);
    }
}

int cli_repl_reader_byte(struct cli_repl_reader *reader, char *out)
{
    int rc = wait_for_input(reader);
    if (rc <= 0)
        return rc;
    ssize_t n;
    do {
        n = read(STDIN_FILENO, out, 1);
    } while (n < 0 && errno == EINTR);
    return n > 0;
}

static bool take_line(struct cli_repl_reader *reader, bool at_end, struct buf *out)
{
    struct buf *in = &reader->input;
    const char *newline = in->len ? memchr(in->at, '\n', in->len) : NULL;
    if (!newline && !(at_end && in->len > 0))
        return false;
    size_t len = newline ? (size_t)(newline - in->at) + 1 : in->len;
    buf_add(out, in->at, len);
    buf_drop(in, len);
    if (!newline)
        buf_add_text(out, "\n");
    return true;
}

static enum cli_repl_read next_plain(struct cli_repl_reader *reader, struct buf *out)
{
    if (reader->prompts)
        cli_term_write(STDOUT_FILENO, str_of(reader->prompt));
    for (;;) {
        if (take_line(reader, /* at_end= */ false, out))
            return CLI_REPL_LINE;
        int rc = wait_for_input(reader);
        if (rc < 0)
            return reader->ended ? CLI_REPL_END : CLI_REPL_INTERRUPTED;
        char *room = rc > 0 ? buf_room(&reader->input, READ_PART) : NULL;
        ssize_t n = room ? read(STDIN_FILENO, room, READ_PART) : 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return take_line(reader, /* at_end= */ true, out) ? CLI_REPL_LINE : CLI_REPL_END;
        buf_grew(&reader->input, (size_t)n);
    }
}

enum cli_repl_read cli_repl_reader_next(struct cli_repl_reader *reader, struct buf *out)
{
    size_t max = out->max;
    buf_done(out);
    *out = BUF_INIT(max);
    reader->interrupted = false;
    enum cli_repl_read got = reader->editor ? cli_repl_editor_next(reader->editor, out)
                                            : next_plain(reader, out);
    if (got == CLI_REPL_INTERRUPTED && reader->prompts)
        cli_term_write(STDOUT_FILENO, STR("^C\n"));
    else if (got == CLI_REPL_END && reader->prompts)
        cli_term_write(STDOUT_FILENO, STR("\n"));
    else if (got == CLI_REPL_LINE && reader->prompts && out->len > 1)
        cli_repl_history_add(reader->history_fd, (struct str){ out->at, out->len - 1 });
    return got;
}
