/* Drawing the progress of a build. Runs in the cli process. The lines are outside text: everything
 * passes through cli/term/visible.h. */
#include "cli/images/images_progress.h"

#include <unistd.h>

#include "cli/term/term.h"

#define LINE_MAX_BYTES ((size_t)8192)

void cli_progress_open(struct cli_progress *progress, bool verbose)
{
    *progress = (struct cli_progress){ .verbose = verbose && !cli_term_is_quiet(),
                                       .line = BUF_INIT(LINE_MAX_BYTES) };
    /* A style is there on a terminal alone. */
    progress->shows = !verbose && !cli_term_is_quiet() && isatty(STDERR_FILENO) &&
                      isatty(STDOUT_FILENO);
}

static void wipe(struct cli_progress *progress)
{
    if (progress->drawn)
        cli_term_write(STDERR_FILENO, STR("\r\033[K"));
    progress->drawn = false;
}

void cli_progress_close(struct cli_progress *progress)
{
    own_buf rest = BUF_INIT(64);
    wipe(progress);
    if (progress->verbose && cli_visible_end(&progress->visible, &rest) == 0)
        cli_term_write(STDERR_FILENO, buf_str(&rest));
    buf_done(&progress->line);
}

void cli_progress_step(void *user, const char *what)
{
    struct cli_progress *progress = user;
    wipe(progress);
    cli_term_note("%s", what);
}

static void draw(struct cli_progress *progress)
{
    own_buf text = BUF_INIT(LINE_MAX_BYTES * 6);
    struct str line = str_trim(buf_str(&progress->line));
    size_t columns = cli_term_size().columns;
    if (line.len == 0 || cli_visible_line(line, columns > 8 ? columns - 4 : 4, &text) < 0)
        return;
    wipe(progress);
    cli_term_write(STDERR_FILENO, STR("  "));
    cli_term_write(STDERR_FILENO, buf_str(&text));
    progress->drawn = true;
}

void cli_progress_said(void *user, struct str bytes)
{
    struct cli_progress *progress = user;
    if (progress->verbose) {
        own_buf text = BUF_INIT(bytes.len * 6 + 64);
        if (cli_visible_add(&progress->visible, bytes, &text) == 0)
            cli_term_write(STDERR_FILENO, buf_str(&text));
        return;
    }
    for (size_t i = 0; progress->shows && i < bytes.len; i++) {
        if (bytes.at[i] != '\n' && bytes.at[i] != '\r') {
            (void)!buf_add(&progress->line, bytes.at + i, 1);
            continue;
        }
        draw(progress);
        progress->line.len = 0;
    }
}
