/* Tables of sessions, names and files. Runs in the cli process. The code may control every text
 * (names, values, paths), so all go through the filter, and a table's cell is one line of limited
 * width. */
#include "cli/session/session_show.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "cli/term/term.h"
#include "cli/term/visible.h"
#include "contract/result.h"

#define TABLE_MAX (16u << 20)
#define COLUMNS_MAX 8
#define NAME_WIDTH 40
#define TEXT_WIDTH 60

/* --- tables --- */

struct table {
    size_t columns;
    size_t width[COLUMNS_MAX];
    json_t *cells; /* texts, row after row */
};

/* One line, made visible, at most `most` characters. */
static json_t *cell_of(struct str text, size_t most)
{
    own_buf shown = BUF_INIT(TABLE_MAX);
    own_buf line = BUF_INIT(TABLE_MAX);
    if (cli_visible_text((struct str){ text.at, text.len < 4096 ? text.len : 4096 }, &shown) < 0)
        return json_string("?");
    struct str rest = buf_str(&shown);
    for (size_t count = 0; rest.len > 0 && count < most; count++) {
        uint32_t point;
        size_t len = str_decode_utf8(rest, &point);
        if (len == 0)
            break;
        buf_add(&line, rest.at[0] == '\n' || rest.at[0] == '\t' ? " " : rest.at, len);
        rest.at += len;
        rest.len -= len;
    }
    return json_text(buf_str(&line));
}

static size_t width_of(struct str text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++)
        count += ((unsigned char)text.at[i] & 0xc0) != 0x80;
    return count;
}

static void add_cell(struct table *table, struct str text, size_t most)
{
    json_t *cell = cell_of(text, most);
    size_t column = json_array_size(table->cells) % table->columns;
    size_t width = width_of(json_str(cell));
    if (width > table->width[column])
        table->width[column] = width;
    json_array_append_new(table->cells, cell);
}

static void add_row_end(struct buf *out)
{
    while (out->len > 0 && out->at[out->len - 1] == ' ')
        out->len--;
    buf_add_text(out, "\n");
}

static void add_table(const struct table *table, const char *indent, struct buf *out)
{
    size_t i;
    json_t *cell;
    json_array_foreach (table->cells, i, cell) {
        size_t column = i % table->columns, width = width_of(json_str(cell));
        if (column == 0)
            buf_add_text(out, indent);
        buf_add_str(out, json_str(cell));
        if (column + 1 == table->columns)
            add_row_end(out);
        else
            buf_printf(out, "%*s", (int)(table->width[column] - width + 2), "");
    }
}

/* --- values --- */

static void add_text(struct buf *out, const char *text)
{
    own_json cell = cell_of(str_of(text), 400);
    buf_add_str(out, json_str(cell));
}

static void add_seconds(struct buf *out, double seconds)
{
    if (seconds < 120)
        buf_printf(out, "%.0f s", seconds);
    else if (seconds < 7200)
        buf_printf(out, "%.0f min", seconds / 60);
    else
        buf_printf(out, "%.1f h", seconds / 3600);
}

static double number_of(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

static void cell_seconds(struct table *table, const json_t *info, const char *name)
{
    own_buf text = BUF_INIT(64);
    if (json_is_number(json_object_get(info, name)))
        add_seconds(&text, number_of(info, name));
    add_cell(table, buf_str(&text), 20);
}

static void cell_size(struct table *table, const json_t *object, const char *name)
{
    own_buf text = BUF_INIT(64);
    if (json_is_number(json_object_get(object, name)))
        cli_term_add_size(&text, number_of(object, name));
    add_cell(table, buf_str(&text), 20);
}

/* "(3, 2)" of a shape, "3 items" of a length. */
static void cell_shape(struct table *table, const json_t *entry)
{
    const json_t *shape = json_object_get(entry, "shape");
    own_buf text = BUF_INIT(4096);
    size_t i;
    json_t *one;
    if (json_is_string(shape)) {
        buf_add_str(&text, json_str(shape));
    } else if (json_is_array(shape)) {
        json_array_foreach (shape, i, one)
            buf_printf(&text, "%s%.0f", i ? " x " : "", json_number_value(one));
    } else if (json_is_number(json_object_get(entry, "length"))) {
        buf_printf(&text, "%.0f", number_of(entry, "length"));
    }
    add_cell(table, buf_str(&text), 30);
}

/* --- the four views --- */

static void write_out(int fd, struct buf *out)
{
    cli_term_write(fd, buf_str(out));
}

static void add_list_row(struct table *table, const json_t *info)
{
    const json_t *ended = json_object_get(info, "ended");
    own_buf cell = BUF_INIT(64), state = BUF_INIT(4096);
    buf_printf(&cell, "%.0f", number_of(info, "cell"));
    buf_add_text(&state, json_get_str(info, "status").at);
    if (json_is_object(ended))
        buf_printf(&state, " %.40s: %.200s", json_get_str(ended, "at").at,
                   json_get_str(ended, "why").at);
    add_cell(table, json_get_str(info, "session"), NAME_WIDTH);
    add_cell(table, json_get_str(info, "language"), 20);
    add_cell(table, buf_str(&cell), 20);
    cell_seconds(table, info, "age_s");
    cell_seconds(table, info, json_is_object(ended) ? "" : "idle_s");
    cell_size(table, info, "memory_peak_bytes");
    add_cell(table, buf_str(&state), 120);
}

void cli_session_show_list(const json_t *sessions)
{
    static const char *const titles[] = { "SESSION", "LANGUAGE", "CELL",  "AGE",
                                          "IDLE",    "MEMORY",   "STATUS" };
    own_json cells = json_array();
    struct table table = { .columns = array_len(titles), .cells = cells };
    own_buf out = BUF_INIT(TABLE_MAX);
    size_t i;
    json_t *info;
    for (i = 0; i < array_len(titles); i++)
        add_cell(&table, str_of(titles[i]), 20);
    json_array_foreach (sessions, i, info)
        add_list_row(&table, info);
    add_table(&table, "", &out);
    write_out(STDOUT_FILENO, &out);
}

static void add_names(const json_t *info, struct buf *out)
{
    own_json cells = json_array();
    struct table table = { .columns = 5, .cells = cells };
    double more = number_of(info, "names_more");
    size_t i;
    json_t *entry;
    json_array_foreach (json_object_get(info, "names"), i, entry) {
        add_cell(&table, json_get_str(entry, "name"), NAME_WIDTH);
        add_cell(&table, json_get_str(entry, "type"), 30);
        cell_shape(&table, entry);
        cell_size(&table, entry, "size_bytes");
        add_cell(&table, json_get_str(entry, "text"), TEXT_WIDTH);
    }
    add_table(&table, "  ", out);
    if (more > 0)
        buf_printf(out, "  and %.0f more\n", more);
}

void cli_session_show_names(const json_t *info)
{
    own_buf out = BUF_INIT(TABLE_MAX);
    add_names(info, &out);
    write_out(STDOUT_FILENO, &out);
}

static void add_times(const json_t *info, struct buf *out)
{
    buf_add_text(out, "created      ");
    add_text(out, json_get_str(info, "created_at").at);
    buf_add_text(out, ", ");
    add_seconds(out, number_of(info, "age_s"));
    buf_add_text(out, " ago\nends         after ");
    add_seconds(out, number_of(info, "ttl_s"));
    buf_add_text(out, " of rest (");
    add_seconds(out, number_of(info, "idle_s"));
    buf_add_text(out, " so far), at the latest ");
    add_seconds(out, number_of(info, "life_s"));
    buf_add_text(out, " after it began\n");
}

static void add_list(const json_t *list, const char *title, const char *member, struct buf *out)
{
    size_t i;
    json_t *one;
    if (json_array_size(list) == 0)
        return;
    buf_printf(out, "%-12s ", title);
    json_array_foreach (list, i, one) {
        buf_add_text(out, i ? ", " : "");
        add_text(out, json_is_string(one) ? json_string_value(one) : json_get_str(one, member).at);
        if (json_is_number(json_object_get(one, "cell")))
            buf_printf(out, " (cell %.0f)", number_of(one, "cell"));
    }
    buf_add_text(out, "\n");
}

static void add_memory(const json_t *info, struct buf *out)
{
    const json_t *limits = json_object_get(info, "limits");
    buf_add_text(out, "memory       ");
    if (json_is_number(json_object_get(info, "memory_peak_bytes")))
        cli_term_add_size(out, number_of(info, "memory_peak_bytes"));
    else
        buf_add_text(out, "not known");
    buf_add_text(out, " at its peak, of ");
    cli_term_add_size(out, number_of(limits, "memory_bytes"));
    buf_printf(out, "\nlimits       %g s for a cell, %g cpus, %g pids, disk ",
               number_of(limits, "timeout_s"), number_of(limits, "cpus"),
               number_of(limits, "pids"));
    cli_term_add_size(out, number_of(limits, "disk_bytes"));
    buf_add_text(out, " (");
    add_text(out, json_get_str(info, "profile").at);
    buf_add_text(out, ")\n");
}

static void add_head(const json_t *info, struct buf *out)
{
    const json_t *ended = json_object_get(info, "ended");
    buf_add_text(out, "session      ");
    add_text(out, json_get_str(info, "session").at);
    buf_add_text(out, ", ");
    add_text(out, json_get_str(info, "language").at);
    buf_add_text(out, "\nstatus       ");
    add_text(out, json_get_str(info, "status").at);
    if (json_is_object(ended)) {
        buf_add_text(out, " at ");
        add_text(out, json_get_str(ended, "at").at);
        buf_add_text(out, ": ");
        add_text(out, json_get_str(ended, "why").at);
    }
    buf_printf(out, ", cell %.0f\n", number_of(info, "cell"));
}

/* The current state, and its events since the last cell. */
static void add_state(const json_t *info, struct buf *out)
{
    char name[RESULT_STATE_TEXT];
    add_text(out, result_state_text((int64_t)number_of(info, "state_cell"), name));
    if (!json_get_str(info, "news").at[0])
        return;
    buf_add_text(out, ": ");
    add_text(out, json_get_str(info, "news").at);
}

void cli_session_show_info(const json_t *info)
{
    const json_t *undo = json_object_get(info, "undo");
    own_buf out = BUF_INIT(TABLE_MAX);
    add_head(info, &out);
    if (!json_is_object(json_object_get(info, "ended"))) {
        bool safe = json_is_true(json_object_get(info, "protected"));
        buf_printf(&out, "protected    %s", safe ? "yes" : "no");
        if (!safe && json_get_str(info, "unprotected").at[0]) {
            buf_add_text(&out, ": ");
            add_text(&out, json_get_str(info, "unprotected").at);
        }
        buf_add_text(&out, "\nstate        ");
        add_state(info, &out);
        buf_printf(&out, "\nundo         %.0f of at most %.0f levels\n", number_of(undo, "levels"),
                   number_of(undo, "most"));
        add_list(json_object_get(info, "checkpoints"), "checkpoints", "name", &out);
        add_list(json_object_get(info, "shares"), "shares", "with", &out);
    }
    add_times(info, &out);
    add_memory(info, &out);
    if (json_array_size(json_object_get(info, "names")) > 0) {
        buf_add_text(&out, "names\n");
        add_names(info, &out);
    }
    write_out(STDOUT_FILENO, &out);
}

void cli_session_show_files(const json_t *answer)
{
    static const struct {
        const char *type, *mark;
    } marks[] = { { "directory", "/" }, { "link", "@" }, { "other", "?" } };
    own_json cells = json_array();
    struct table table = { .columns = 2, .cells = cells };
    own_buf out = BUF_INIT(TABLE_MAX);
    size_t i;
    json_t *file;
    json_array_foreach (json_object_get(answer, "files"), i, file) {
        own_buf path = BUF_INIT(8192);
        const char *type = json_get_str(file, "type").at;
        buf_add_text(&path, json_get_str(file, "path").at);
        for (size_t j = 0; j < array_len(marks); j++)
            if (strcmp(type, marks[j].type) == 0)
                buf_add_text(&path, marks[j].mark);
        cell_size(&table, strcmp(type, "file") == 0 ? file : NULL, "size_bytes");
        add_cell(&table, buf_str(&path), 4096);
    }
    add_table(&table, "", &out);
    write_out(STDOUT_FILENO, &out);
    if (json_is_true(json_object_get(answer, "cut")))
        cli_term_note("there are more files than are listed");
}

void cli_session_show_changes(const json_t *result)
{
    static const struct {
        const char *member, *mark;
    } kinds[] = { { "names_added", "+" }, { "names_changed", "*" }, { "names_removed", "-" } };
    own_json cells = json_array();
    struct table table = { .columns = 4, .cells = cells };
    own_buf out = BUF_INIT(TABLE_MAX);
    for (size_t i = 0; i < array_len(kinds); i++) {
        size_t j;
        json_t *entry;
        json_array_foreach (json_object_get(result, kinds[i].member), j, entry) {
            add_cell(&table, str_of(kinds[i].mark), 1);
            add_cell(&table, json_get_str(entry, "name"), NAME_WIDTH);
            add_cell(&table, json_get_str(entry, "type"), 30);
            cell_shape(&table, entry);
        }
    }
    add_table(&table, "", &out);
    write_out(STDERR_FILENO, &out);
}

void cli_session_show_undo(const json_t *answer)
{
    size_t i;
    json_t *lost;
    cli_term_note("restored");
    json_array_foreach (json_object_get(answer, "lost"), i, lost)
        cli_term_note("lost: %.300s", json_string_value(lost) ? json_string_value(lost) : "?");
}
