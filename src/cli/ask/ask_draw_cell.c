/* Draws a cell of a task: its code, its output as it arrives, and its outcome in one line. Runs in
 * the cli process. The texts come from a model and its code. */
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/json.h"
#include "base/own.h"
#include "cli/ask/ask_draw.h"
#include "cli/term/term.h"
#include "cli/term/visible.h"

#define CODE_LINES 16 /* longer code is cut in its middle, and numbered */
#define CODE_HEAD 10
#define CODE_TAIL 4
#define OUTPUT_LINES 30 /* of one cell; the record has all that the agent saw */
#define NAMES_MAX 8
#define ANSWER_FORM "application/vnd.cupel.answer+json"
#define FILES_MAX 8
#define CALLS_MAX 8 /* of one cell */
#define PART_MAX 80 /* characters of a call's arguments or outcome */

static size_t count_lines(struct str text)
{
    size_t count = text.len > 0 && text.at[text.len - 1] != '\n';
    for (size_t i = 0; i < text.len; i++)
        count += text.at[i] == '\n';
    return count;
}

struct str cli_ask_draw_next(struct str *rest)
{
    const char *end = memchr(rest->at, '\n', rest->len);
    struct str line = { rest->at, end ? (size_t)(end - rest->at) : rest->len };
    size_t taken = line.len + (end ? 1 : 0);
    *rest = (struct str){ rest->at + taken, rest->len - taken };
    return line;
}

/* Does the code stand on the screen, as a part of the model's text? */
static bool is_streamed(const struct cli_ask_draw *draw, struct str code)
{
    struct str text = buf_str(&draw->streamed);
    code = str_trim(code);
    return text.len > 0 && code.len > 0 && memmem(text.at, text.len, code.at, code.len);
}

void cli_ask_draw_code(struct cli_ask_draw *draw, const json_t *data)
{
    struct str purpose = json_get_str(data, "purpose");
    struct str rest = json_get_str(data, "code");
    size_t count = count_lines(rest);
    bool cut = count > CODE_LINES;
    char before[48];
    if (is_streamed(draw, rest))
        purpose = rest = STR("");
    snprintf(before, sizeof before, "step %" JSON_INTEGER_FORMAT "%s",
             json_integer_value(json_object_get(data, "n")), purpose.len > 0 ? ": " : "");
    cli_ask_draw_line(draw, CLI_BOLD, before, purpose);
    for (size_t number = 1; rest.len > 0; number++) {
        struct str line = cli_ask_draw_next(&rest);
        if (cut && number == CODE_HEAD + 1) {
            snprintf(before, sizeof before, "    … %zu more lines", count - CODE_HEAD - CODE_TAIL);
            cli_ask_draw_line(draw, CLI_DIM, before, STR(""));
        }
        if (cut && number > CODE_HEAD && number <= count - CODE_TAIL)
            continue;
        snprintf(before, sizeof before, cut ? "  %3zu " : "    ", number);
        cli_ask_draw_line(draw, CLI_DIM, before, line);
    }
    draw->lines = draw->left_out = 0;
    draw->checking = false;
    draw->in_cell = true;
}

static void draw_line_of(struct cli_ask_draw *draw, struct buf *line)
{
    if (draw->lines < OUTPUT_LINES)
        cli_ask_draw_line(draw, CLI_PLAIN, "  | ", buf_str(line));
    else
        draw->left_out++;
    draw->lines++;
    buf_drop(line, line->len);
}

/* Draws whole lines as they arrive; an incomplete one waits for its end, or for the cell's. A line
 * keeps only as many bytes as are shown. */
void cli_ask_draw_output(struct cli_ask_draw *draw, const json_t *data)
{
    bool second = str_is(json_get_str(data, "stream"), "stderr");
    struct buf *begun = &draw->begun[second];
    struct str rest = json_get_str(data, "text");
    while (rest.len > 0) {
        bool ends = memchr(rest.at, '\n', rest.len) != NULL;
        struct str line = cli_ask_draw_next(&rest);
        size_t room = 8 * CLI_ASK_DRAW_WIDTH;
        size_t taken = begun->len < room ? room - begun->len : 0;
        buf_add(begun, line.at, line.len < taken ? line.len : taken);
        if (ends)
            draw_line_of(draw, begun);
    }
}

static void end_output(struct cli_ask_draw *draw)
{
    char text[64];
    for (size_t i = 0; i < array_len(draw->begun); i++)
        if (draw->begun[i].len > 0)
            draw_line_of(draw, &draw->begun[i]);
    if (draw->left_out == 0)
        return;
    snprintf(text, sizeof text, "  | … %zu more lines", draw->left_out);
    cli_ask_draw_line(draw, CLI_DIM, text, STR(""));
    draw->left_out = 0;
}

static void add_time(struct buf *out, double ms)
{
    if (ms < 1000)
        buf_printf(out, " in %.0f ms", ms);
    else
        buf_printf(out, " in %.1f s", ms / 1000);
}

static void add_name(struct buf *out, const json_t *entry)
{
    const json_t *shape = json_object_get(entry, "shape");
    const json_t *length = json_object_get(entry, "length");
    size_t i;
    json_t *side;
    cli_visible_line(json_get_str(entry, "name"), 40, out);
    buf_add_text(out, " (");
    cli_visible_line(json_get_str(entry, "type"), 30, out);
    json_array_foreach (shape, i, side)
        buf_printf(out, "%s%" JSON_INTEGER_FORMAT, i == 0 ? " " : "×", json_integer_value(side));
    if (!json_is_array(shape) && json_is_integer(length))
        buf_printf(out, " %" JSON_INTEGER_FORMAT, json_integer_value(length));
    buf_add_text(out, ")");
}

static void add_names(struct buf *out, const json_t *result, const char *member, const char *title)
{
    const json_t *names = json_object_get(result, member);
    size_t i;
    json_t *entry;
    json_array_foreach (names, i, entry) {
        if (i == NAMES_MAX) {
            buf_printf(out, " and %zu more", json_array_size(names) - NAMES_MAX);
            return;
        }
        buf_add_text(out, i == 0 ? title : ", ");
        add_name(out, entry);
    }
}

static void add_files(struct buf *out, const json_t *result)
{
    const json_t *files = json_object_get(result, "artifacts");
    size_t i;
    json_t *file;
    json_array_foreach (files, i, file) {
        if (i == FILES_MAX) {
            buf_printf(out, " and %zu more", json_array_size(files) - FILES_MAX);
            return;
        }
        buf_add_text(out, i == 0 ? "; made " : ", ");
        cli_visible_line(json_get_str(file, "path"), 80, out);
    }
}

/* The cell's changes; none after a roll back. */
static void add_changes(struct buf *out, const json_t *result, struct str state)
{
    if (str_is(state, "rolled_back")) {
        buf_add_text(out, "; state rolled back");
        return;
    }
    add_names(out, result, "names_added", "; new ");
    add_names(out, result, "names_changed", "; changed ");
    add_files(out, result);
    if (str_is(state, "lost"))
        buf_add_text(out, "; state lost");
}

static void add_error(struct buf *out, const json_t *error)
{
    const json_t *line = json_object_get(error, "line");
    if (!json_is_object(error))
        return;
    buf_add_text(out, ": ");
    if (json_get_str(error, "name").len > 0) {
        cli_visible_line(json_get_str(error, "name"), 60, out);
        buf_add_text(out, ": ");
    }
    cli_visible_line(json_get_str(error, "message"), CLI_ASK_DRAW_WIDTH, out);
    if (json_is_integer(line))
        buf_printf(out, " (line %" JSON_INTEGER_FORMAT ")", json_integer_value(line));
}

/* The first line of the model's observation that is neither a title nor a mark. */
static struct str fault_of(struct str observation)
{
    struct str whole = observation;
    while (observation.len > 0) {
        struct str line = cli_ask_draw_next(&observation);
        if (line.len > 0 && !strchr("[<", line.at[0]))
            return line;
    }
    return whole;
}

static void draw_value(struct cli_ask_draw *draw, const json_t *result)
{
    const json_t *values = json_object_get(result, "results");
    size_t count = json_array_size(values);
    const json_t *last = count > 0 ? json_array_get(values, count - 1) : NULL;
    struct str text = json_get_str(last, "text/plain");
    if (json_object_get(last, ANSWER_FORM)) /* it is drawn at the end */
        return;
    for (size_t i = 0; text.len > 0 && i < 6; i++)
        cli_ask_draw_line(draw, CLI_PLAIN, i == 0 ? "  = " : "    ", cli_ask_draw_next(&text));
    if (text.len > 0)
        cli_ask_draw_line(draw, CLI_DIM, "    …", STR(""));
}

static void add_part(const json_t *value, const json_t *bytes, struct buf *out)
{
    own_str text = value && !json_is_null(value) ? json_write(value, JSON_COMPACT | JSON_ENCODE_ANY)
                                                 : NULL;
    if (text)
        cli_visible_line(str_of(text), PART_MAX, out);
    else if (json_is_integer(bytes))
        buf_printf(out, "%" JSON_INTEGER_FORMAT " bytes", json_integer_value(bytes));
    else
        buf_add_text(out, "null");
}

/* A tool, its arguments, and what it gave. */
static void draw_call(struct cli_ask_draw *draw, const json_t *call)
{
    const json_t *outcome = json_object_get(call, "outcome");
    const json_t *error = json_object_get(outcome, "error");
    own_buf line = BUF_INIT(4096);
    cli_visible_line(json_get_str(call, "tool"), 64, &line);
    buf_add_text(&line, " ");
    add_part(json_object_get(call, "arguments"), json_object_get(call, "arguments_bytes"), &line);
    buf_add_text(&line, " → ");
    if (error) {
        cli_visible_line(json_get_str(error, "kind"), 20, &line);
        buf_add_text(&line, ": ");
        cli_visible_line(json_get_str(error, "message"), PART_MAX, &line);
    } else {
        add_part(json_object_get(outcome, "value"), json_object_get(call, "outcome_bytes"), &line);
    }
    cli_ask_draw_line(draw, error ? CLI_YELLOW : CLI_DIM, "  call ", buf_str(&line));
}

static void draw_calls(struct cli_ask_draw *draw, const json_t *result)
{
    const json_t *calls = json_object_get(result, "calls");
    size_t i, count = json_array_size(calls);
    json_t *call;
    char more[64];
    json_array_foreach (calls, i, call) {
        if (i == CALLS_MAX)
            break;
        draw_call(draw, call);
    }
    count += (size_t)json_integer_value(json_object_get(result, "calls_more"));
    if (count <= CALLS_MAX)
        return;
    snprintf(more, sizeof more, "  … %zu more calls", count - CALLS_MAX);
    cli_ask_draw_line(draw, CLI_DIM, more, STR(""));
}

void cli_ask_draw_step(struct cli_ask_draw *draw, const json_t *data)
{
    const json_t *result = json_object_get(data, "result");
    const json_t *wall = json_object_get(json_object_get(result, "metrics"), "wall_ms");
    struct str status = json_get_str(data, "status");
    bool good = str_is(status, "ok");
    end_output(draw);
    if (!json_is_true(json_object_get(data, "repeated")))
        draw_calls(draw, result);
    draw_value(draw, result);
    cli_ask_draw_style(draw, good ? CLI_GREEN : CLI_RED);
    buf_add_text(&draw->out, "  ");
    cli_visible_line(status, 40, &draw->out);
    cli_ask_draw_style(draw, CLI_PLAIN);
    if (json_is_true(json_object_get(data, "repeated"))) {
        buf_add_text(&draw->out, ", as before: the same code on an unchanged state");
    } else if (!json_is_object(result)) {
        buf_add_text(&draw->out, ": ");
        cli_visible_line(fault_of(json_get_str(data, "observation")), CLI_ASK_DRAW_WIDTH,
                         &draw->out);
    } else {
        if (json_is_number(wall))
            add_time(&draw->out, json_number_value(wall));
        add_error(&draw->out, json_object_get(result, "error"));
        add_changes(&draw->out, result, json_get_str(data, "state"));
    }
    buf_add_text(&draw->out, "\n");
    draw->in_cell = false;
    if (draw->repair)
        cli_ask_draw_repair(draw, draw->repair);
    json_decref(take_ptr(draw->repair));
}
