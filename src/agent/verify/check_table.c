/* Rows and columns of files: CSV with quotes, JSON, Markdown. Process: the task's. Pure. */
#include "agent/verify/check_items.h"
#include "agent/verify/check_scan.h"
#include "agent/verify/checklist.h"
#include "base/err.h"
#include "base/json.h"

#define COLUMNS_MAX 1000
#define FIELD_MAX 4096
#define JSON_MAX (64u << 20)

struct csv {
    struct str in;
    size_t at;
    char mark;
};

/* One field, its quotes undone if `out` is given. True: the row goes on behind it. */
static bool read_field(struct csv *csv, struct buf *out)
{
    bool quoted = csv->at < csv->in.len && csv->in.at[csv->at] == '"';
    csv->at += quoted;
    while (csv->at < csv->in.len) {
        char c = csv->in.at[csv->at++];
        if (quoted && c == '"') {
            bool twice = csv->at < csv->in.len && csv->in.at[csv->at] == '"';
            if (!twice) {
                quoted = false;
                continue;
            }
            csv->at++;
        } else if (!quoted && c == csv->mark) {
            return true;
        } else if (!quoted && c == '\n') {
            return false;
        } else if (!quoted && c == '\r') {
            continue;
        }
        if (out)
            buf_add(out, &c, 1);
    }
    return false;
}

/* Fields of the next row; 0: an empty line. False at the end. */
static bool read_row(struct csv *csv, size_t *out_fields)
{
    if (csv->at >= csv->in.len)
        return false;
    size_t start = csv->at, fields = 1;
    while (read_field(csv, NULL))
        fields++;
    struct str row = agent_scan_trim((struct str){ csv->in.at + start, csv->at - start });
    *out_fields = row.len ? fields : 0;
    return true;
}

/* The mark that the first line has most of. */
static char mark_of(struct str in, char usual)
{
    const char *end = memchr(in.at, '\n', in.len), *marks = ",;\t|";
    size_t len = end ? (size_t)(end - in.at) : in.len, most = 0;
    char found = usual;
    for (size_t m = 0; marks[m]; m++) {
        size_t count = 0;
        for (size_t i = 0; i < len; i++)
            count += in.at[i] == marks[m];
        if (count > most || (count == most && count && marks[m] == usual)) {
            most = count;
            found = marks[m];
        }
    }
    return found;
}

static struct csv open_csv(struct str content, char usual)
{
    if (content.len >= 3 && !memcmp(content.at, "\xef\xbb\xbf", 3)) {
        content.at += 3;
        content.len -= 3;
    }
    return (struct csv){ content, 0, mark_of(content, usual) };
}

bool agent_table_is_even(struct str content, char mark, struct buf *why)
{
    struct csv csv = open_csv(content, mark);
    size_t first = 0, fields, rows = 0, odd = 0, odd_row = 0;
    while (read_row(&csv, &fields)) {
        if (!fields)
            continue;
        rows++;
        first = first ? first : fields;
        if (fields != first && !odd++)
            odd_row = rows;
    }
    if (odd)
        buf_printf(why, "row %zu has another number of fields than the first, which has %zu",
                   odd_row, first);
    return odd == 0;
}

static bool is_numeric(struct str field)
{
    struct agent_scan_number number;
    size_t at = 0;
    field = agent_scan_trim(field);
    return field.len && agent_scan_number(field, &at, false, &number) && number.at == 0 &&
           number.end == field.len;
}

static void read_csv(struct str content, struct agent_table *out)
{
    struct csv csv = open_csv(content, ',');
    size_t fields;
    bool more = csv.at < csv.in.len, numeric = false;
    out->columns = json_array();
    while (more && json_array_size(out->columns) < COLUMNS_MAX) {
        own_buf field = BUF_INIT(FIELD_MAX);
        more = read_field(&csv, &field);
        numeric = numeric || is_numeric(buf_str(&field));
        json_array_append_new(out->columns, json_text(agent_scan_trim(buf_str(&field))));
    }
    out->rows = 0;
    while (read_row(&csv, &fields))
        out->rows += fields > 0;
    out->first_is_row = numeric ? out->rows + 1 : out->rows;
}

static json_t *keys_of(const json_t *object)
{
    json_t *out = json_array();
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)object, key, value)
        json_array_append_new(out, json_string(key));
    return out;
}

/* Records: a list of objects, or an object of lists or of objects. */
static void read_json(struct str content, struct agent_table *out)
{
    struct err err = ERR_INIT;
    own_json value = json_read(agent_scan_trim(content), JSON_MAX, &err);
    const json_t *first = json_array_get(value, 0);
    if (json_is_array(value)) {
        out->rows = (long)json_array_size(value);
        out->columns = json_is_object(first) ? keys_of(first) : NULL;
    } else if (json_is_object(value)) {
        void *at = json_object_iter(value);
        const json_t *inner = at ? json_object_iter_value(at) : NULL;
        out->rows = json_is_array(inner) ? (long)json_array_size(inner)
                                         : (long)json_object_size(value);
        const json_t *record = json_array_get(inner, 0);
        out->columns = keys_of(json_is_object(record) ? record : value);
    }
    out->first_is_row = out->rows;
}

static void read_markdown(struct str content, struct agent_table *out)
{
    struct agent_items items;
    agent_items_count(content, &items);
    out->rows = items.lists == 1 ? (long)items.counts[0] : -1;
    out->first_is_row = out->rows;
}

void agent_table_read(const char *format, struct str content, struct agent_table *out)
{
    static const struct {
        const char *format;
        void (*read)(struct str content, struct agent_table *out);
    } readers[] = { { "csv", read_csv }, { "tsv", read_csv }, { "json", read_json },
                    { "md", read_markdown } };
    *out = (struct agent_table){ -1, -1, NULL };
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
        if (format && !strcmp(readers[i].format, format))
            readers[i].read(content, out);
    }
}
