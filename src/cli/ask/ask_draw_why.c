/* Draws the proof of an answer: each value with its origin, its files and the lines of code that
 * made it. Runs in the cli process. The texts come from a model's code and from its analysis. */
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/json.h"
#include "base/own.h"
#include "cli/ask/ask_draw.h"
#include "cli/term/term.h"
#include "cli/term/visible.h"

#define VALUES_MAX 8 /* without the code; further ones are counted */
#define SLICE_LINES 16 /* longer slices are cut in their middle */
#define SLICE_HEAD 9
#define SLICE_TAIL 6
#define VALUE_WIDTH 48
#define NAME_WIDTH 24
#define SHARED_MIN 2 /* parts that two values share, from which they are drawn once */
#define PLACE_WIDTH 11 /* "cell 12:345" */

static const struct {
    const char *name;
    enum cli_term_style style;
    bool sound;
} origins[] = {
    { "data", CLI_GREEN, true },
    { "computed", CLI_GREEN, true },
    { "typed", CLI_RED, false },
    { "invented", CLI_RED, false },
    { "unknown", CLI_YELLOW, false },
};

/* A value on one line: a text as it is, a table by its size, others as JSON. */
static void add_value(struct buf *out, const json_t *value)
{
    const json_t *rows = json_object_get(value, "rows");
    if (json_is_array(rows) && json_is_array(json_object_get(value, "columns"))) {
        buf_printf(out, "a table of %zu row%s", json_array_size(rows),
                   json_array_size(rows) == 1 ? "" : "s");
    } else if (json_is_string(value)) {
        cli_visible_line(json_str(value), VALUE_WIDTH, out);
    } else if (value) {
        own_str text = json_write(value, JSON_COMPACT | JSON_ENCODE_ANY);
        cli_visible_line(str_of(text ? text : "?"), VALUE_WIDTH, out);
    }
}

static void add_origin(struct cli_ask_draw *draw, const json_t *traced)
{
    struct str origin = json_get_str(traced, "origin");
    const json_t *files = json_object_get(traced, "files");
    size_t i = 0, j;
    json_t *file;
    while (i + 1 < array_len(origins) && !str_is(origin, origins[i].name))
        i++;
    cli_ask_draw_style(draw, origins[i].style);
    cli_visible_line(origin, 20, &draw->out);
    cli_ask_draw_style(draw, CLI_PLAIN);
    json_array_foreach (files, j, file) {
        buf_add_text(&draw->out, j == 0 ? ": " : ", ");
        if (j == 4) {
            buf_printf(&draw->out, "%zu more", json_array_size(files) - j);
            break;
        }
        cli_visible_line(json_is_string(file) ? json_str(file) : STR("?"), 60, &draw->out);
    }
    if (!origins[i].sound && json_get_str(traced, "why").len > 0) {
        buf_add_text(&draw->out, json_array_size(files) ? "; " : ": ");
        cli_visible_line(json_get_str(traced, "why"), CLI_ASK_DRAW_WIDTH, &draw->out);
    }
    buf_add_text(&draw->out, "\n");
}

static void draw_value(struct cli_ask_draw *draw, const json_t *traced, const json_t *values,
                       size_t width)
{
    struct str name = json_get_str(traced, "name");
    own_str key = buf_strdup(name);
    own_buf shown = BUF_INIT(4096);
    add_value(&shown, json_object_get(values, key));
    buf_add_text(&draw->out, "  ");
    cli_ask_draw_style(draw, CLI_BOLD);
    cli_visible_line(name, NAME_WIDTH, &draw->out);
    cli_ask_draw_style(draw, CLI_PLAIN);
    buf_printf(&draw->out, "%*s = %s  ", (int)(name.len < width ? width - name.len : 0), "",
               buf_str(&shown).at);
    add_origin(draw, traced);
}

/* How many parts at its beginning a slice shares with the same ones of another. */
static size_t shared_by(const json_t *slice, const json_t *other)
{
    size_t i = 0;
    while (i < json_array_size(slice) && i < json_array_size(other) &&
           json_equal(json_array_get(slice, i), json_array_get(other, i)))
        i++;
    return i;
}

/* The value drawn before that shares most of its beginning; NULL: not worth a word. */
static const json_t *sharer_of(const json_t *trace, size_t at, size_t *out_shared)
{
    const json_t *best = NULL, *slice = json_object_get(json_array_get(trace, at), "slice");
    *out_shared = 0;
    for (size_t i = 0; i < at; i++) {
        const json_t *other = json_array_get(trace, i);
        size_t shared = shared_by(slice, json_object_get(other, "slice"));
        if (shared >= SHARED_MIN && shared > *out_shared) {
            *out_shared = shared;
            best = other;
        }
    }
    return best;
}

static size_t lines_of(const json_t *slice, size_t from)
{
    size_t count = 0;
    for (size_t i = from; i < json_array_size(slice); i++)
        for (struct str rest = json_get_str(json_array_get(slice, i), "code"); rest.len > 0;
             count++)
            cli_ask_draw_next(&rest);
    return count;
}

/* Each line of code with its place, from a part on; the middle of a long slice is left out. */
static void draw_slice(struct cli_ask_draw *draw, const json_t *slice, size_t from)
{
    size_t number = 0, count = lines_of(slice, from);
    char place[64], before[96];
    for (size_t i = from; i < json_array_size(slice); i++) {
        const json_t *part = json_array_get(slice, i);
        struct str rest = json_get_str(part, "code");
        snprintf(place, sizeof place, "cell %" JSON_INTEGER_FORMAT ":%" JSON_INTEGER_FORMAT,
                 json_integer_value(json_object_get(part, "cell")),
                 json_integer_value(json_object_get(part, "line")));
        for (; rest.len > 0; place[0] = 0) {
            struct str line = cli_ask_draw_next(&rest);
            bool left_out = count > SLICE_LINES && number >= SLICE_HEAD &&
                            number < count - SLICE_TAIL;
            if (left_out && number == SLICE_HEAD) {
                snprintf(before, sizeof before, "    %-*s  … %zu more lines", PLACE_WIDTH, "",
                         count - SLICE_HEAD - SLICE_TAIL);
                cli_ask_draw_line(draw, CLI_DIM, before, STR(""));
            }
            number++;
            if (left_out)
                continue;
            snprintf(before, sizeof before, "    %s%-*s%s  ", cli_term_style(draw->fd, CLI_DIM),
                     PLACE_WIDTH, place, cli_term_style(draw->fd, CLI_PLAIN));
            cli_ask_draw_line(draw, CLI_PLAIN, before, line);
        }
    }
}

/* The lines of a value; those it begins with like one drawn before are only counted. */
static void draw_lines(struct cli_ask_draw *draw, const json_t *trace, size_t at)
{
    const json_t *slice = json_object_get(json_array_get(trace, at), "slice");
    size_t shared = 0;
    const json_t *sharer = sharer_of(trace, at, &shared);
    char before[96];
    if (sharer) {
        snprintf(before, sizeof before, "    %-*s  … %zu lines as for ", PLACE_WIDTH, "", shared);
        cli_ask_draw_line(draw, CLI_DIM, before, json_get_str(sharer, "name"));
    }
    draw_slice(draw, slice, shared);
}

void cli_ask_draw_values(struct cli_ask_draw *draw, const json_t *report, bool why)
{
    const json_t *trace = json_object_get(report, "trace");
    const json_t *values = json_object_get(report, "values");
    size_t i, j, width = 0;
    json_t *traced, *warning;
    json_array_foreach (trace, i, traced) {
        size_t len = why ? 0 : json_get_str(traced, "name").len; /* aligned, line below line */
        width = len > width && len <= NAME_WIDTH ? len : width;
    }
    json_array_foreach (trace, i, traced) {
        if (i == 0)
            cli_ask_draw_line(draw, CLI_BOLD, "values", STR(""));
        else if (why)
            buf_add_text(&draw->out, "\n");
        if (!why && i == VALUES_MAX) {
            buf_printf(&draw->out, "  … %zu more\n", json_array_size(trace) - VALUES_MAX);
            break;
        }
        draw_value(draw, traced, values, width);
        if (!why)
            continue;
        draw_lines(draw, trace, i);
        json_array_foreach (json_object_get(traced, "warnings"), j, warning)
            cli_ask_draw_line(draw, CLI_YELLOW, "    ! ",
                              json_is_string(warning) ? json_str(warning) : STR("?"));
    }
}

void cli_ask_draw_why(struct cli_ask_draw *draw, const json_t *report)
{
    buf_drop(&draw->out, draw->out.len);
    cli_ask_draw_values(draw, report, /* why= */ true);
    cli_term_write(draw->fd, buf_str(&draw->out));
    buf_drop(&draw->out, draw->out.len);
}
