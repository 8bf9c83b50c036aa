/* Asks at the terminal whether a tool may be called. Runs in the cli process. The code, and so the
 * model, wrote tool, arguments and line: all of it is made visible, and nothing is hidden. */
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "cli/ask/ask.h"
#include "cli/term/term.h"
#include "cli/term/visible.h"

#define ARGUMENTS_SHOWN 4000 /* characters; longer ones are said to be cut */

static void add_arguments(const json_t *arguments, struct buf *out)
{
    own_str text = json_write(arguments, JSON_COMPACT | JSON_ENCODE_ANY);
    struct str whole = str_of(text ? text : "");
    size_t len = str_cut_utf8(whole, ARGUMENTS_SHOWN);
    cli_visible_line((struct str){ whole.at, len }, ARGUMENTS_SHOWN, out);
    if (len < whole.len)
        buf_printf(out, " … and %zu more bytes that are not shown", whole.len - len);
}

static void draw(struct cli_ask *ask, const json_t *call)
{
    struct buf *out = &ask->draw.out;
    struct str code = str_trim(json_get_str(call, "code"));
    own_buf shown = BUF_INIT(64u << 10);
    cli_visible_line(json_get_str(call, "tool"), 64, &shown);
    buf_add_text(&shown, " (");
    cli_visible_line(json_get_str(call, "effect"), 20, &shown);
    buf_add_text(&shown, ") ");
    add_arguments(json_object_get(call, "arguments"), &shown);
    cli_ask_draw_style(&ask->draw, CLI_YELLOW);
    buf_add_text(out, "  may the code call ");
    buf_add_str(out, buf_str(&shown));
    cli_ask_draw_style(&ask->draw, CLI_PLAIN);
    buf_add_text(out, "\n");
    if (code.len > 0) {
        char before[40];
        snprintf(before, sizeof before,
                 "    line %lld: ", (long long)json_integer_value(json_object_get(call, "line")));
        cli_ask_draw_line(&ask->draw, CLI_DIM, before, code);
    }
    buf_add_text(out, "  [y]es, [n]o, [a]lways this tool: ");
    cli_ask_draw_flush(&ask->draw);
}

static bool is_always(const struct cli_ask *ask, const json_t *tool)
{
    size_t i;
    json_t *one;
    json_array_foreach (ask->always, i, one)
        if (json_equal(one, tool))
            return true;
    return false;
}

/* Anything but y and a is no. */
bool cli_ask_approve(void *user, const json_t *call)
{
    struct cli_ask *ask = user;
    json_t *tool = json_object_get(call, "tool");
    if (is_always(ask, tool))
        return true;
    tcflush(STDIN_FILENO, TCIFLUSH); /* typed before: meant for something else */
    draw(ask, call);
    own_str line = cli_ask_read_line(ask);
    struct str word = str_trim(str_of(line ? line : ""));
    if (!line)
        cli_term_write(STDERR_FILENO, STR("\n"));
    bool always = str_is(word, "a") || str_is(word, "always");
    if (always && !ask->always)
        ask->always = json_array();
    if (always)
        json_array_append(ask->always, tool);
    return always || str_is(word, "y") || str_is(word, "yes");
}
