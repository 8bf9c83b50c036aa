/* The first difference of two texts, with the lines around it. Pure. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"
#include "replay/diff.h"

#define ADDRESS_MIN 6 /* digits: fewer are a number that somebody wrote */

/* --- parts of a text that say nothing --- */

/* The length of "<cell 12>" or "at 0x7f12345678" at the start of `text`, or 0; the words that stand
 * for it. */
static size_t find_noise(struct str text, const char **out_word)
{
    static const struct {
        const char *head, *digits, *word;
        size_t least;
        bool closes; /* with '>' */
    } kinds[] = {
        { "<cell ", "0123456789", "<cell>", 1, true },
        { "at 0x", "0123456789abcdefABCDEF", "at 0x", ADDRESS_MIN, false },
    };
    for (size_t i = 0; i < array_len(kinds); i++) {
        size_t head = strlen(kinds[i].head), at = head;
        if (text.len < head || memcmp(text.at, kinds[i].head, head) != 0)
            continue;
        while (at < text.len && memchr(kinds[i].digits, text.at[at], strlen(kinds[i].digits)))
            at++;
        if (at - head < kinds[i].least ||
            (kinds[i].closes && (at == text.len || text.at[at++] != '>')))
            continue;
        *out_word = kinds[i].word;
        return at;
    }
    return 0;
}

static void add_plain(struct buf *out, struct str text)
{
    for (size_t at = 0; at < text.len;) {
        const char *word;
        struct str rest = { text.at + at, text.len - at };
        size_t noise = *rest.at == '<' || *rest.at == 'a' ? find_noise(rest, &word) : 0;
        if (noise)
            buf_add_text(out, word);
        else
            buf_add(out, rest.at, 1);
        at += noise ? noise : 1;
    }
}

/* --- lines --- */

struct lines {
    struct buf plain; /* what `line` has views into */
    struct str *line, *shown; /* each with its newline; shown: of the original */
    size_t count;
};

static void lines_done(struct lines *lines)
{
    buf_done(&lines->plain);
    free(lines->line);
    free(lines->shown);
}

static struct str *cut_lines(struct str text, size_t *out_count)
{
    struct str *list = NULL;
    size_t count = 0;
    while (text.len > 0) {
        const char *end = memchr(text.at, '\n', text.len);
        size_t len = end ? (size_t)(end - text.at) + 1 : text.len;
        list = buf_list_room(list, count, sizeof *list);
        list[count++] = (struct str){ text.at, len };
        text = (struct str){ text.at + len, text.len - len };
    }
    *out_count = count;
    return list;
}

static void lines_init(struct lines *lines, struct str text)
{
    *lines = (struct lines){ .plain = BUF_INIT(SIZE_MAX / 4) };
    add_plain(&lines->plain, text);
    lines->line = cut_lines(buf_str(&lines->plain), &lines->count);
    lines->shown = cut_lines(text, &lines->count);
}

/* --- the difference --- */

/* A line cut to DIFF_WIDTH bytes around the byte `at`. */
static void add_line(struct buf *out, struct str line, size_t at)
{
    bool ends = line.len > 0 && line.at[line.len - 1] == '\n';
    struct str text = { line.at, line.len - ends };
    size_t from = text.len > DIFF_WIDTH && at > DIFF_WIDTH / 2 ? at - DIFF_WIDTH / 2 : 0;
    while (from > 0 && from < text.len && ((unsigned char)text.at[from] & 0xc0) == 0x80)
        from--;
    if (from > text.len)
        from = text.len;
    struct str rest = { text.at + from, text.len - from };
    size_t keep = rest.len > DIFF_WIDTH ? str_cut_utf8(rest, DIFF_WIDTH) : rest.len;
    if (from > 0)
        buf_add_text(out, "…");
    buf_add(out, rest.at, keep);
    if (keep < rest.len)
        buf_add_text(out, "…");
    if (ends)
        buf_add_text(out, "\n");
}

static json_t *some_lines(const struct lines *lines, size_t from, size_t to, size_t at)
{
    own_buf text = BUF_INIT(SIZE_MAX / 4);
    if (from == to)
        return json_null();
    for (size_t i = from; i < to && i < from + DIFF_LINES; i++)
        add_line(&text, lines->shown[i], i == from ? at : 0);
    return json_text(buf_str(&text));
}

static size_t first_byte(struct str a, struct str b)
{
    size_t at = 0;
    while (at < a.len && at < b.len && a.at[at] == b.at[at])
        at++;
    return at;
}

static void set_more(json_t *row, const char *name, size_t lines)
{
    if (lines > DIFF_LINES)
        json_object_set_new(row, name, json_integer((json_int_t)(lines - DIFF_LINES)));
}

static void add_hunk(struct diff *diff, const char *field, const struct lines *was,
                     const struct lines *is)
{
    size_t least = was->count < is->count ? was->count : is->count, first = 0, last = 0;
    while (first < least && str_eq(was->line[first], is->line[first]))
        first++;
    while (last < least - first &&
           str_eq(was->line[was->count - 1 - last], is->line[is->count - 1 - last]))
        last++;
    size_t was_end = was->count - last, is_end = is->count - last;
    size_t at = first < was_end && first < is_end ? first_byte(was->shown[first], is->shown[first])
                                                  : 0;
    json_t *row = diff_add(diff, field, "text", some_lines(was, first, was_end, at),
                           some_lines(is, first, is_end, at));
    if (!row)
        return;
    json_object_set_new(row, "line", json_integer((json_int_t)first + 1));
    size_t from = first > DIFF_CONTEXT ? first - DIFF_CONTEXT : 0;
    own_buf before = BUF_INIT(SIZE_MAX / 4);
    for (size_t i = from; i < first; i++)
        add_line(&before, was->shown[i], 0);
    json_object_set_new(row, "before", json_text(buf_str(&before)));
    set_more(row, "was_more", was_end - first);
    set_more(row, "is_more", is_end - first);
}

void diff_text(struct diff *diff, const char *field, struct str was, struct str is)
{
    struct lines a, b;
    if (!was.at && !is.at)
        return;
    if (!was.at || !is.at) {
        own_buf text = BUF_INIT(SIZE_MAX / 4);
        add_line(&text, was.at ? was : is, 0);
        json_t *shown = json_text(buf_str(&text));
        diff_add(diff, field, was.at ? "gone" : "added", was.at ? shown : NULL,
                 was.at ? NULL : shown);
        return;
    }
    if (str_eq(was, is))
        return;
    lines_init(&a, was);
    lines_init(&b, is);
    if (!str_eq(buf_str(&a.plain), buf_str(&b.plain)))
        add_hunk(diff, field, &a, &b);
    lines_done(&a);
    lines_done(&b);
}
