/* Notes, refusals and colour. Runs in the cli process. An err may quote foreign text, so it passes
 * through the same filter as output. */
#include "cli/term/term.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/io.h"
#include "base/json.h"
#include "base/own.h"
#include "cli/term/visible.h"
#include "cli/term/words.h"
#include "contract/result.h"

static bool is_quiet;

void cli_term_set_quiet(bool quiet)
{
    is_quiet = quiet;
}

bool cli_term_is_quiet(void)
{
    return is_quiet;
}

static bool has_colour(int fd)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    return !(no_color && no_color[0]) && term && strcmp(term, "dumb") != 0 && isatty(fd);
}

const char *cli_term_style(int fd, enum cli_term_style style)
{
    static const char *const sequences[] = {
        [CLI_PLAIN] = "\033[0m", [CLI_BOLD] = "\033[1m",   [CLI_DIM] = "\033[2m",
        [CLI_RED] = "\033[31m",  [CLI_GREEN] = "\033[32m", [CLI_YELLOW] = "\033[33m",
    };
    return has_colour(fd) ? sequences[style] : "";
}

struct cli_term_size cli_term_size(void)
{
    struct winsize now = { 0 };
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &now) == 0 && now.ws_col > 0 && now.ws_row > 0;
    return known ? (struct cli_term_size){ now.ws_col, now.ws_row }
                 : (struct cli_term_size){ 80, 24 };
}

static bool lost_output; /* a write to stdout failed */

void cli_term_write(int fd, struct str bytes)
{
    if (io_write_all(fd, bytes.at ? bytes.at : "", bytes.len) < 0 && fd == STDOUT_FILENO)
        lost_output = true;
}

bool cli_term_lost_output(void)
{
    return lost_output;
}

void cli_term_note(const char *fmt, ...)
{
    if (is_quiet)
        return;
    char text[2048];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    own_buf line = BUF_INIT(16384);
    buf_printf(&line, "%scupel:%s ", cli_term_style(STDERR_FILENO, CLI_BOLD),
               cli_term_style(STDERR_FILENO, CLI_PLAIN));
    cli_visible_text(str_of(text), &line);
    buf_add_text(&line, "\n");
    cli_term_write(STDERR_FILENO, buf_str(&line));
}

/* A separate line for the accepted values, or for a hint. */
static void add_aside(struct buf *line, const char *title, const char *text)
{
    if (!text[0])
        return;
    own_buf words = BUF_INIT(32768);
    cli_words(str_of(text), /* at_prompt= */ false, &words);
    buf_printf(line, "  %s: ", title);
    cli_visible_text(buf_str(&words), line);
    buf_add_text(line, "\n");
}

int cli_term_refuse(const struct err *err, bool json)
{
    struct err unsaid = ERR_INIT;
    if (err->kind == ERR_NONE) { /* a failure without a reason is still a failure */
        err_set(&unsaid, ERR_BUG, "fail without a reason");
        err = &unsaid;
    }
    int code = err_exit_code(err->kind);
    if (json) {
        own_json refusal = result_refusal(err);
        cli_term_json(refusal);
        return code;
    }
    /* A refusal is the answer: -q does not hide it. */
    own_buf line = BUF_INIT(32768);
    buf_printf(&line, "%scupel:%s ", cli_term_style(STDERR_FILENO, CLI_RED),
               cli_term_style(STDERR_FILENO, CLI_PLAIN));
    own_buf words = BUF_INIT(32768);
    cli_words(str_of(err->text), /* at_prompt= */ false, &words);
    cli_visible_text(buf_str(&words), &line);
    buf_add_text(&line, "\n");
    if (!strstr(err->text, err->bound))
        add_aside(&line, "allowed", err->bound);
    add_aside(&line, "hint", err->hint);
    cli_term_write(STDERR_FILENO, buf_str(&line));
    return code;
}

int cli_term_json(const json_t *value)
{
    own_str text = json_write(value, JSON_COMPACT);
    if (!text)
        return 125;
    size_t len = strlen(text);
    text[len] = '\n'; /* in place of the NUL: one write, one line */
    if (io_write_all(STDOUT_FILENO, text, len + 1) == 0)
        return 0;
    if (errno != EPIPE) /* a reader that is gone does not read the reason either */
        cli_term_note("write the answer: %s", strerror(errno));
    return 125;
}

void cli_term_add_size(struct buf *out, double bytes)
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
    size_t unit = 0;
    while (bytes >= 1024 && unit + 1 < array_len(units)) {
        bytes /= 1024;
        unit++;
    }
    buf_printf(out, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
}
