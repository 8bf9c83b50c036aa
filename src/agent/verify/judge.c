/* The judge's text and its verdict. Runs in the task's process; pure. The judge is a model that did
 * not write the answer: it sees the question, the beginnings of the files, and for each value the
 * lines that made it. It sees nothing of the conversation. All of it is data between marks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/read/observe.h"
#include "agent/verify/verify.h"
#include "base/attr.h"
#include "base/json.h"
#include "base/own.h"

#define TEXT_MAX (256u << 10)
#define ANSWER_MAX (16u << 10)
#define VALUE_MAX (2u << 10)
#define LINES_COUNT 400
#define CODE_MAX 2000 /* bytes of one line, or of a function */
#define REASON_MAX 1000

static void add_cut(struct buf *out, struct str text, size_t most)
{
    size_t len = str_cut_utf8(text, most);
    buf_add(out, text.at, len);
    if (len < text.len)
        buf_printf(out, " [%zu bytes left out]", text.len - len);
    buf_add_text(out, "\n");
}

/* Between marks that the data cannot close, not even by a model that knows the tag. */
static void add_data(struct buf *out, const char *tag, const char *title, struct str text)
{
    buf_printf(out, "%s:\n", title);
    agent_observe_data(text, tag, out);
    buf_add_text(out, "\n");
}

static void add_list(struct buf *out, const char *title, const json_t *texts)
{
    size_t i;
    json_t *text;
    json_array_foreach (texts, i, text) {
        if (!json_is_string(text))
            continue;
        buf_add_text(out, title);
        add_cut(out, json_str(text), VALUE_MAX / 4);
    }
}

/* The lines of all values and files, each once: a value names its own by their numbers. */
struct lines {
    const json_t *at[LINES_COUNT];
    size_t count;
    bool cut; /* there are more */
};

static void note_lines(struct lines *lines, const json_t *slice)
{
    size_t i, k;
    json_t *line;
    json_array_foreach (slice, i, line) {
        for (k = 0; k < lines->count && !json_equal(lines->at[k], line); k++)
            ;
        if (k < lines->count)
            continue;
        lines->cut = lines->cut || lines->count == LINES_COUNT;
        if (!lines->cut)
            lines->at[lines->count++] = line;
    }
}

static json_int_t place_of(const json_t *line)
{
    return json_integer_value(json_object_get(line, "cell")) * 1000000 +
           json_integer_value(json_object_get(line, "line"));
}

static int by_place(const void *a, const void *b)
{
    json_int_t left = place_of(*(const json_t *const *)a), right = place_of(*(json_t *const *)b);
    return left < right ? -1 : left > right;
}

static void add_numbers(struct buf *out, const struct lines *lines, const json_t *slice)
{
    size_t i, k;
    json_t *line;
    buf_add_text(out, "  lines");
    json_array_foreach (slice, i, line)
        for (k = 0; k < lines->count; k++)
            if (json_equal(lines->at[k], line))
                buf_printf(out, " %zu", k + 1);
    buf_add_text(out, "\n");
}

static void collect(struct lines *lines, const json_t *trace)
{
    static const char *const lists[] = { "values", "files" };
    size_t i, k;
    json_t *row;
    for (k = 0; k < array_len(lists); k++)
        json_array_foreach (json_object_get(trace, lists[k]), i, row)
            note_lines(lines, json_object_get(row, "slice"));
    qsort(lines->at, lines->count, sizeof *lines->at, by_place);
}

static void add_lines(struct buf *out, const struct lines *lines)
{
    for (size_t i = 0; i < lines->count; i++) {
        struct str code = json_get_str(lines->at[i], "code");
        code.len = str_cut_utf8(code, CODE_MAX);
        buf_printf(out, "%3zu [cell %lld] ", i + 1,
                   (long long)json_integer_value(json_object_get(lines->at[i], "cell")));
        for (size_t at = 0; at < code.len; at++) {
            buf_add(out, code.at + at, 1);
            if (code.at[at] == '\n')
                buf_add_text(out, "             ");
        }
        buf_add_text(out, "\n");
    }
    if (lines->cut)
        buf_add_text(out, "[further lines are left out]\n");
}

static void add_value(struct buf *out, const struct lines *lines, const json_t *row,
                      const json_t *values)
{
    const char *name = json_string_value(json_object_get(row, "name"));
    own_str value = json_write(json_object_get(values, name), JSON_COMPACT | JSON_ENCODE_ANY);
    own_buf files = BUF_INIT(VALUE_MAX);
    size_t i;
    json_t *file;
    json_array_foreach (json_object_get(row, "files"), i, file)
        buf_printf(&files, "%s%.200s", i ? ", " : "", json_str(file).at);
    buf_printf(out, "%.100s = ", name);
    add_cut(out, str_of(value), VALUE_MAX);
    buf_printf(out, "  origin: %.20s%s%s\n", json_get_str(row, "origin").at,
               files.len ? ", from " : "", buf_str(&files).at);
    add_list(out, "  note: ", json_object_get(row, "warnings"));
    add_numbers(out, lines, json_object_get(row, "slice"));
}

static void add_files(struct buf *out, const struct lines *lines, const json_t *made,
                      const json_t *traced)
{
    size_t i, k;
    json_t *file, *row;
    json_array_foreach (made, i, file) {
        char about[VALUE_MAX];
        json_brief(file, about, sizeof about);
        buf_printf(out, "file %s\n", about);
        json_array_foreach (traced, k, row)
            if (str_eq(json_get_str(row, "path"), json_get_str(file, "path")))
                add_numbers(out, lines, json_object_get(row, "slice"));
    }
}

char *agent_judge_text(const struct agent_claim *claim, const json_t *trace, const char *opening,
                       const char *tag)
{
    own_buf out = BUF_INIT(TEXT_MAX * 4), part = BUF_INIT(TEXT_MAX), code = BUF_INIT(TEXT_MAX);
    const json_t *values = json_object_get(claim->payload, "values");
    struct lines lines = { .count = 0 };
    size_t i;
    json_t *row;
    collect(&lines, trace);
    buf_printf(&out, "%s\n", opening);
    add_cut(&part, json_get_str(trace, "text"), ANSWER_MAX);
    add_data(&out, tag, "The answer", buf_str(&part));
    part.len = 0;
    add_cut(&part, json_get_str(claim->payload, "template"), ANSWER_MAX);
    add_data(&out, tag, "Its template, as the program wrote it", buf_str(&part));
    part.len = 0;
    json_array_foreach (json_object_get(trace, "values"), i, row)
        add_value(&part, &lines, row, values);
    add_files(&part, &lines, json_object_get(claim->payload, "files"),
              json_object_get(trace, "files"));
    add_list(&part, "note: ", json_object_get(trace, "notes"));
    add_data(&out, tag, "Its values, with the numbers of the lines that computed them",
             buf_str(&part));
    add_lines(&code, &lines);
    add_data(&out, tag, "The lines", buf_str(&code));
    buf_add_text(&out, "Your verdict:");
    return buf_take(&out);
}

int agent_verdict_read(const char *text, struct str *out_reason)
{
    *out_reason = STR("");
    struct str line = str_trim(str_of(text));
    const char *end = line.len ? memchr(line.at, '\n', line.len) : NULL;
    line.len = end ? (size_t)(end - line.at) : line.len;
    line = str_trim(line);
    if (str_is(line, "PASS"))
        return 1;
    if (line.len < 6 || memcmp(line.at, "FAIL", 4) != 0 || (line.at[4] != ':' && line.at[4] != ' '))
        return -1;
    *out_reason = str_trim((struct str){ line.at + 5, line.len - 5 });
    return out_reason->len ? 0 : -1;
}

void agent_check_verdict(const struct llm_reply *reply, json_t *checks)
{
    struct str reason = STR("");
    own_buf detail = BUF_INIT(2048), repair = BUF_INIT(4096);
    int verdict = reply->outcome == LLM_OK ? agent_verdict_read(reply->text, &reason) : -1;
    if (reply->outcome != LLM_OK) {
        buf_printf(&detail, "the judge gave no verdict: %s%s%.300s",
                   llm_outcome_name(reply->outcome), reply->detail[0] ? ": " : "", reply->detail);
        agent_checks_add(checks, "judge", "no_verdict", detail.at, NULL);
    } else if (verdict < 0) {
        agent_checks_add(checks, "judge", "no_verdict",
                         "the judge's first line is neither PASS nor FAIL name: reason", NULL);
    } else if (verdict > 0) {
        agent_checks_add(checks, "judge", "pass", "the judge found nothing against it", NULL);
    } else {
        int shown = (int)str_cut_utf8(reason, REASON_MAX);
        buf_printf(&detail, "%.*s", shown, reason.at);
        buf_printf(&repair,
                   "A judge who saw the question, the files and the lines of each value says: "
                   "%.*s\nIf that is right, mend it and answer again; if not, answer again so that "
                   "the lines show why.",
                   shown, reason.at);
        agent_checks_add(checks, "judge", "fail", detail.at, repair.at);
    }
}
