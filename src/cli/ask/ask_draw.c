/* The table of events, a task's head, and the status line. Runs in the cli process. */
#include "cli/ask/ask_draw.h"

#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/json.h"
#include "cli/term/term.h"
#include "cli/term/visible.h"

#define DRAWN_MAX (16u << 20) /* of one event */
#define PASSING_NS INT64_C(100000000) /* between two updates of the status line */

void cli_ask_draw_init(struct cli_ask_draw *draw, int fd, int answer_fd, bool quiet, bool live)
{
    *draw = (struct cli_ask_draw){ .fd = fd, .answer_fd = answer_fd, .quiet = quiet, .live = live,
                                   .out = BUF_INIT(DRAWN_MAX) };
    for (size_t i = 0; i < array_len(draw->begun); i++)
        draw->begun[i] = BUF_INIT(DRAWN_MAX);
}

void cli_ask_draw_done(struct cli_ask_draw *draw)
{
    buf_done(&draw->out);
    json_decref(draw->repair);
    for (size_t i = 0; i < array_len(draw->begun); i++)
        buf_done(&draw->begun[i]);
}

void cli_ask_draw_style(struct cli_ask_draw *draw, int style)
{
    buf_add_text(&draw->out, cli_term_style(draw->fd, (enum cli_term_style)style));
}

void cli_ask_draw_line(struct cli_ask_draw *draw, int style, const char *before, struct str text)
{
    if (style != CLI_PLAIN)
        cli_ask_draw_style(draw, style);
    buf_add_text(&draw->out, before);
    while (text.len == 0 && draw->out.len > 0 && draw->out.at[draw->out.len - 1] == ' ')
        draw->out.len--; /* an empty line has no trailing spaces */
    cli_visible_line(text, CLI_ASK_DRAW_WIDTH, &draw->out);
    if (style != CLI_PLAIN)
        cli_ask_draw_style(draw, CLI_PLAIN);
    buf_add_text(&draw->out, "\n");
}

static void clear_passing(struct cli_ask_draw *draw)
{
    if (draw->passing)
        cli_term_write(draw->fd, STR("\r\033[K"));
    draw->passing = false;
}

void cli_ask_draw_flush(struct cli_ask_draw *draw)
{
    if (draw->out.len > 0 && !draw->quiet) {
        clear_passing(draw);
        cli_term_write(draw->fd, buf_str(&draw->out));
    }
    buf_drop(&draw->out, draw->out.len);
}

/* Only on an empty line; it stands until the next event is drawn. */
static void draw_passing(struct cli_ask_draw *draw, bool at_once)
{
    int64_t now = clock_now_ns();
    if (!draw->live || draw->quiet || !draw->phase ||
        (!at_once && now - draw->passing_ns < PASSING_NS))
        return;
    own_buf line = BUF_INIT(256);
    buf_printf(&line, "\r\033[K%s%s", cli_term_style(draw->fd, CLI_DIM), draw->phase);
    if (draw->written > 0)
        buf_printf(&line, " (%zu bytes)", draw->written);
    buf_printf(&line, "%s", cli_term_style(draw->fd, CLI_PLAIN));
    cli_term_write(draw->fd, buf_str(&line));
    draw->passing = true;
    draw->passing_ns = now;
}

/* The model's streaming text is not drawn: plan, code and answer follow as events. */
static void on_text(struct cli_ask_draw *draw, const json_t *data)
{
    draw->written += json_get_str(data, "text").len;
    draw_passing(draw, /* at_once= */ false);
}

static void on_phase(struct cli_ask_draw *draw, const json_t *data)
{
    static const struct {
        const char *name, *shown;
    } phases[] = { { "plan", "planning" },   { "generate", "the model is writing" },
                   { "execute", "running" }, { "verify", "checking" },
                   { "answer", "asking for the answer" } };
    struct str name = json_get_str(data, "phase");
    draw->phase = NULL;
    draw->written = 0;
    for (size_t i = 0; i < array_len(phases); i++)
        if (str_is(name, phases[i].name))
            draw->phase = phases[i].shown;
    draw_passing(draw, /* at_once= */ true);
}

static void on_task(struct cli_ask_draw *draw, const json_t *data)
{
    size_t i;
    json_t *file;
    cli_ask_draw_line(draw, CLI_BOLD, "", json_get_str(data, "question"));
    cli_ask_draw_style(draw, CLI_DIM);
    buf_add_text(&draw->out, "model  ");
    cli_visible_line(json_get_str(data, "model"), 100, &draw->out);
    cli_ask_draw_style(draw, CLI_PLAIN);
    if (json_is_true(json_object_get(data, "scripted"))) {
        cli_ask_draw_style(draw, CLI_YELLOW);
        buf_add_text(&draw->out, ", a scripted model: its replies are recorded, all else is real");
        cli_ask_draw_style(draw, CLI_PLAIN);
    }
    buf_add_text(&draw->out, "\n");
    cli_ask_draw_budget(draw, json_object_get(data, "budget"));
    json_array_foreach (json_object_get(data, "files"), i, file) {
        cli_ask_draw_style(draw, CLI_DIM);
        buf_add_text(&draw->out, "file   ");
        cli_visible_line(json_get_str(file, "path"), CLI_ASK_DRAW_WIDTH, &draw->out);
        buf_add_text(&draw->out, " (");
        cli_term_add_size(&draw->out, json_number_value(json_object_get(file, "size_bytes")));
        buf_add_text(&draw->out, ")");
        cli_ask_draw_style(draw, CLI_PLAIN);
        buf_add_text(&draw->out, "\n");
    }
}

static void on_plan(struct cli_ask_draw *draw, const json_t *data)
{
    size_t i;
    json_t *entry;
    json_array_foreach (json_object_get(data, "steps"), i, entry)
        if (json_is_string(entry))
            cli_ask_draw_line(draw, CLI_PLAIN, i == 0 ? "plan   " : "       ", json_str(entry));
}

void cli_ask_draw_repair(struct cli_ask_draw *draw, const json_t *data)
{
    char before[64];
    if (draw->in_cell) {
        json_decref(draw->repair);
        draw->repair = json_deep_copy(data);
        return;
    }
    draw->checking = false;
    snprintf(before, sizeof before, "repair %" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT ": ",
             json_integer_value(json_object_get(data, "attempt")),
             json_integer_value(json_object_get(data, "of")));
    cli_ask_draw_line(draw, CLI_YELLOW, before, json_get_str(data, "why"));
}

static void on_wait(struct cli_ask_draw *draw, const json_t *data)
{
    char before[64];
    snprintf(before, sizeof before,
             "wait   %.1f s: ", json_number_value(json_object_get(data, "seconds")));
    cli_ask_draw_line(draw, CLI_YELLOW, before, json_get_str(data, "why"));
}

static const struct {
    const char *kind;
    void (*draw)(struct cli_ask_draw *draw, const json_t *data);
    bool passing; /* updates the status line, and draws for itself */
} kinds[] = {
    { "task", on_task, false },
    { "phase", on_phase, true },
    { "text", on_text, true },
    { "plan", on_plan, false },
    { "code", cli_ask_draw_code, false },
    { "output", cli_ask_draw_output, false },
    { "step", cli_ask_draw_step, false },
    { "repair", cli_ask_draw_repair, false },
    { "wait", on_wait, false },
    { "check", cli_ask_draw_check, false },
    { "budget", cli_ask_draw_budget, false },
    { "end", cli_ask_draw_end, false },
};

void cli_ask_draw_event(struct cli_ask_draw *draw, const char *kind, const json_t *data)
{
    for (size_t i = 0; i < array_len(kinds); i++) {
        if (strcmp(kind, kinds[i].kind) != 0)
            continue;
        kinds[i].draw(draw, data);
        if (!kinds[i].passing)
            cli_ask_draw_flush(draw);
        return;
    }
}
