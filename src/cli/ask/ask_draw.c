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
#define STREAMED_MAX (1u << 20) /* of one reply */
#define PASSING_NS INT64_C(100000000) /* between two updates of the status line */

void cli_ask_draw_init(struct cli_ask_draw *draw, int fd, int answer_fd, bool quiet, bool live)
{
    *draw = (struct cli_ask_draw){ .fd = fd, .answer_fd = answer_fd, .quiet = quiet, .live = live,
                                   .out = BUF_INIT(DRAWN_MAX),
                                   .streamed = BUF_INIT(STREAMED_MAX) };
    for (size_t i = 0; i < array_len(draw->begun); i++)
        draw->begun[i] = BUF_INIT(DRAWN_MAX);
}

void cli_ask_draw_done(struct cli_ask_draw *draw)
{
    buf_done(&draw->out);
    buf_done(&draw->streamed);
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

static void stream(struct cli_ask_draw *draw, struct str text)
{
    own_buf shown = BUF_INIT(DRAWN_MAX);
    buf_add_text(&shown, cli_term_style(draw->fd, CLI_DIM));
    cli_visible_add(&draw->shown, text, &shown);
    buf_add_text(&shown, cli_term_style(draw->fd, CLI_PLAIN));
    clear_passing(draw);
    cli_term_write(draw->fd, buf_str(&shown));
    buf_add_str(&draw->streamed, text);
}

/* The reply is whole: what follows begins a line. */
static void end_stream(struct cli_ask_draw *draw)
{
    struct str text = buf_str(&draw->streamed);
    draw->shown = (struct cli_visible){ 0 };
    if (text.len > 0 && text.at[text.len - 1] != '\n') {
        cli_term_write(draw->fd, STR("\n"));
        buf_add_text(&draw->streamed, "\n");
    }
}

/* Without `streams` the text is not drawn: plan, code and answer follow as events. */
static void on_text(struct cli_ask_draw *draw, const json_t *data)
{
    struct str text = json_get_str(data, "text");
    draw->written += text.len;
    if (draw->streams && !draw->quiet)
        stream(draw, text);
    else
        draw_passing(draw, /* at_once= */ false);
}

static void on_phase(struct cli_ask_draw *draw, const json_t *data)
{
    static const struct {
        const char *name, *shown;
    } phases[] = { { "plan", "planning" },   { "generate", "the model is writing" },
                   { "execute", "running" }, { "verify", "checking" },
                   { "judge", "judging" },    { "answer", "asking for the answer" } };
    struct str name = json_get_str(data, "phase");
    draw->phase = NULL;
    draw->written = 0;
    if (str_is(name, "generate"))
        buf_drop(&draw->streamed, draw->streamed.len);
    for (size_t i = 0; i < array_len(phases); i++)
        if (str_is(name, phases[i].name))
            draw->phase = phases[i].shown;
    draw_passing(draw, /* at_once= */ true);
}

static void on_task(struct cli_ask_draw *draw, const json_t *data)
{
    size_t i;
    json_t *file;
    if (draw->brief && draw->streams) /* the question was typed just now */
        return;
    cli_ask_draw_line(draw, CLI_BOLD, "", json_get_str(data, "question"));
    if (draw->brief)
        return;
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

void cli_ask_draw_pause(struct cli_ask_draw *draw)
{
    end_stream(draw);
    cli_ask_draw_flush(draw);
    clear_passing(draw);
}

void cli_ask_draw_question(struct cli_ask_draw *draw, const char *question)
{
    end_stream(draw);
    cli_ask_draw_line(draw, CLI_YELLOW, "the model asks: ", str_of(question));
    buf_add_text(&draw->out, "reply: ");
    cli_ask_draw_flush(draw);
    draw->asked = true;
}

static void on_asked(struct cli_ask_draw *draw, const json_t *data)
{
    const json_t *reply = json_object_get(data, "reply");
    if (draw->asked) {
        draw->asked = false;
        return;
    }
    cli_ask_draw_line(draw, CLI_YELLOW, "the model asks: ", json_get_str(data, "question"));
    cli_ask_draw_line(draw, CLI_PLAIN,
                      "reply: ", json_is_string(reply) ? json_str(reply) : STR("nobody is there"));
}

static void on_budget(struct cli_ask_draw *draw, const json_t *data)
{
    if (!draw->brief)
        cli_ask_draw_budget(draw, data);
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
    { "budget", on_budget, false },
    { "asked", on_asked, false },
    { "end", cli_ask_draw_end, false },
};

void cli_ask_draw_event(struct cli_ask_draw *draw, const char *kind, const json_t *data)
{
    for (size_t i = 0; i < array_len(kinds); i++) {
        if (strcmp(kind, kinds[i].kind) != 0)
            continue;
        if (strcmp(kind, "text") != 0)
            end_stream(draw);
        kinds[i].draw(draw, data);
        if (!kinds[i].passing)
            cli_ask_draw_flush(draw);
        return;
    }
}
