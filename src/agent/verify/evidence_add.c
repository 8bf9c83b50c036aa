/* Sources of evidence, cut into units. Process: the task's. Pure.
 * A unit is the least text that belongs together: a label and the value beside it. Lines of one
 * shape from one source are of one group, as are the rows of a file and the entries of a dict:
 * only among its like can a number stand in another's place. */
#include <stdlib.h>

#include "agent/verify/check_scan.h"
#include "agent/verify/evidence.h"
#include "base/buf.h"
#include "base/json.h"

#define UNIT_MAX 2000 /* bytes; a longer line is cut at spaces */
#define JSON_TEXT_MAX (4u << 20)
#define OWNED_MAX 4096

/* The source counts against the cap: what is beyond is not seen. */
static struct str admit(struct agent_evidence *evidence, struct str text)
{
    size_t room = AGENT_EVIDENCE_BYTES_MAX - evidence->bytes;
    if (text.len > room) {
        text.len = room;
        evidence->cut = true;
    }
    evidence->bytes += text.len;
    evidence->source++;
    return text;
}

static bool letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

/* W for words, N for numbers, alike ones in a row once, dates and years as words; with the source
 * as one hash. */
static uint64_t shape_of(const struct agent_evidence *evidence, struct str line)
{
    char shape[32];
    size_t n = 0, i = 0;
    while (i < line.len && n < sizeof shape) {
        if (!letter(line.at[i]) && !digit(line.at[i])) {
            i++;
            continue;
        }
        size_t start = i;
        bool word = letter(line.at[i]), marks = false;
        while (i < line.len && (letter(line.at[i]) || digit(line.at[i]) ||
                                (!word && strchr(".,-:/", line.at[i]) && line.at[i]))) {
            marks = marks || strchr("-:/", line.at[i]);
            i++;
        }
        bool year = i - start == 4 && (!memcmp(line.at + start, "19", 2) ||
                                       !memcmp(line.at + start, "20", 2));
        char kind = word || marks || year ? 'W' : 'N';
        if (n == 0 || shape[n - 1] != 'W' || kind != 'W')
            shape[n++] = kind;
    }
    return agent_scan_hash((struct str){ shape, n }, evidence->source);
}

/* Does the line, from its first bracket on, hold what should be cut apart: entries of a dict whose
 * values are no texts, or containers in a list? */
static bool holds_entries(struct str line, size_t open)
{
    int depth = 0;
    bool nested = false, text_value = false, colon = false;
    for (size_t i = open; i < line.len; i++) {
        char c = line.at[i];
        if (strchr("{[(", c) && c) {
            nested = nested || depth == 1;
            depth++;
        } else if (strchr("}])", c) && c) {
            depth--;
        } else if (depth == 1 && c == ':') {
            colon = true;
            while (i + 1 < line.len && line.at[i + 1] == ' ')
                i++;
            text_value = text_value || (i + 1 < line.len && strchr("'\"", line.at[i + 1]));
        }
    }
    return line.at[open] == '{' ? colon && !text_value : line.at[open] == '[' && nested;
}

/* Pieces at commas: of depth 1 within brackets, of depth 0 without. */
static void add_pieces(struct agent_evidence *evidence, struct str line, int at_depth)
{
    uint64_t group = agent_scan_hash(line, evidence->source);
    int depth = 0;
    size_t start = 0;
    for (size_t i = 0; i < line.len; i++) {
        char c = line.at[i];
        depth += c == '{' || c == '[' || c == '(';
        depth -= c == '}' || c == ']' || c == ')';
        bool last = i + 1 == line.len;
        bool parts = c == ',' && depth == at_depth && !last && line.at[i + 1] == ' ';
        if (!parts && !last)
            continue;
        size_t end = last ? i + 1 : i;
        if (end > start)
            agent_evidence_add_unit(evidence, (struct str){ line.at + start, end - start }, group);
        start = i + 1;
    }
}

/* "Acme: 42, Beta: 17": every piece has its word and its number. */
static bool is_pairs(struct str line)
{
    bool word = false, number = false, all = true;
    size_t pieces = 0;
    for (size_t i = 0; i <= line.len; i++) {
        char c = i < line.len ? line.at[i] : ',';
        bool parts = i == line.len || (c == ',' && i + 1 < line.len && line.at[i + 1] == ' ');
        if (parts) {
            all = all && word && number;
            word = number = false;
            pieces++;
        }
        word = word || letter(c);
        number = number || digit(c);
    }
    return all && pieces > 1;
}

/* `record`: the next line or the last begins alike, so that this one is a record, not a list. */
static void add_line(struct agent_evidence *evidence, struct str line, bool record)
{
    if (!line.len || agent_tally_count(&evidence->literals, agent_scan_hash(line, 0)) > 0)
        return;
    size_t open = 0;
    while (open < line.len && !(line.at[open] == '{' || line.at[open] == '['))
        open++;
    if (open < line.len && holds_entries(line, open)) {
        add_pieces(evidence, line, 1);
        return;
    }
    if (!record && line.len <= UNIT_MAX && is_pairs(line)) {
        add_pieces(evidence, line, 0);
        return;
    }
    while (line.len > UNIT_MAX) {
        size_t cut = UNIT_MAX;
        while (cut > UNIT_MAX / 2 && line.at[cut] != ' ')
            cut--;
        struct str part = { line.at, cut };
        agent_evidence_add_unit(evidence, part, shape_of(evidence, part));
        line.at += cut;
        line.len -= cut;
    }
    agent_evidence_add_unit(evidence, line, shape_of(evidence, line));
}

static struct str take_line(struct str *rest)
{
    const char *end = rest->len ? memchr(rest->at, '\n', rest->len) : NULL;
    size_t len = end ? (size_t)(end - rest->at) : rest->len;
    struct str line = { rest->at, len };
    rest->at += len + (end != NULL);
    rest->len -= len + (end != NULL);
    return agent_scan_trim(line);
}

static bool begin_alike(struct str a, struct str b)
{
    struct str x, y;
    size_t i = 0, j = 0;
    return agent_scan_word(a, &i, &x) && agent_scan_word(b, &j, &y) && str_eq(x, y);
}

static void each_line(struct agent_evidence *evidence, struct str text)
{
    bool record = false;
    struct str line = take_line(&text);
    for (bool more = true; more;) {
        more = text.len > 0;
        struct str next = more ? take_line(&text) : STR("");
        bool alike = begin_alike(line, next);
        add_line(evidence, line, record || alike);
        record = alike;
        line = next;
    }
}

void agent_evidence_add_lines(struct agent_evidence *evidence, struct str text)
{
    each_line(evidence, admit(evidence, text));
}

/* Rows as they stand, but a line end within quotes ends no row. */
void agent_evidence_add_csv(struct agent_evidence *evidence, struct str text)
{
    text = admit(evidence, text);
    uint64_t group = agent_scan_hash(STR("csv"), evidence->source);
    size_t start = 0;
    bool quoted = false;
    for (size_t i = 0; i <= text.len; i++) {
        char c = i < text.len ? text.at[i] : '\n';
        quoted = quoted != (c == '"');
        if (i < text.len && (c != '\n' || (quoted && i - start < UNIT_MAX)))
            continue;
        struct str row = agent_scan_trim((struct str){ text.at + start, i - start });
        row.len = row.len > UNIT_MAX ? UNIT_MAX : row.len;
        if (row.len && !agent_tally_count(&evidence->literals, agent_scan_hash(row, 0)))
            agent_evidence_add_unit(evidence, row, group);
        start = i + 1;
        quoted = false;
    }
}

static bool is_container(const json_t *value)
{
    return json_is_object(value) || json_is_array(value);
}

/* The scalars of one object: a record, where a text among them names it, else entries. */
static void add_scalars(struct buf *out, const json_t *object, const char *path)
{
    const char *key;
    json_t *item;
    bool record = false, any = false;
    json_object_foreach ((json_t *)(uintptr_t)object, key, item)
        record = record || json_is_string(item);
    json_object_foreach ((json_t *)(uintptr_t)object, key, item) {
        if (is_container(item))
            continue;
        buf_printf(out, "%s %.200s: ", any && record ? ";" : path, key);
        json_add(out, item);
        buf_add_text(out, record ? "" : "\n");
        any = true;
    }
    if (any && record)
        buf_add_text(out, "\n");
}

/* Lines with the keys that lead to them: one for each record, entry or list of scalars. */
static void flatten(struct buf *out, const json_t *value, const char *path, int depth)
{
    const char *key;
    json_t *item;
    size_t i;
    bool any = false;
    if (depth > 16)
        return;
    add_scalars(out, value, path);
    json_object_foreach ((json_t *)(uintptr_t)value, key, item) {
        own_buf below = BUF_INIT(512);
        if (is_container(item) && buf_printf(&below, "%s %.200s", path, key) == 0)
            flatten(out, item, below.at, depth + 1);
    }
    json_array_foreach (value, i, item) {
        if (is_container(item)) {
            flatten(out, item, path, depth + 1);
            continue;
        }
        buf_printf(out, "%s", any ? "; " : path);
        buf_add_text(out, any ? "" : ": ");
        json_add(out, item);
        any = true;
    }
    if (any)
        buf_add_text(out, "\n");
}

/* A text that was made here, held until the evidence is closed. */
static struct str hold(struct agent_evidence *evidence, struct buf *made)
{
    if (!made->len || evidence->owned_count >= OWNED_MAX)
        return STR("");
    struct str out = { NULL, made->len };
    out.at = evidence->owned[evidence->owned_count++] = buf_take(made);
    return out;
}

void agent_evidence_add_json(struct agent_evidence *evidence, const json_t *value)
{
    own_buf out = BUF_INIT(JSON_TEXT_MAX);
    if (is_container(value))
        flatten(&out, value, "", 0);
    else if (value && json_add(&out, value) == 0)
        buf_add_text(&out, "\n");
    agent_evidence_add_lines(evidence, hold(evidence, &out));
}

/* Rows of tables become lines, tags spaces, the commonest entities their characters. */
void agent_evidence_add_html(struct agent_evidence *evidence, struct str text)
{
    static const struct {
        const char *name, *is;
    } entities[] = { { "&amp;", "&" }, { "&lt;", "<" }, { "&gt;", ">" }, { "&nbsp;", " " } };
    own_buf out = BUF_INIT(AGENT_EVIDENCE_BYTES_MAX);
    for (size_t i = 0; i < text.len; i++) {
        struct str rest = { text.at + i, text.len - i };
        if (text.at[i] == '<') {
            const char *end = memchr(rest.at, '>', rest.len);
            bool row = rest.len > 4 && !memcmp(rest.at, "</tr", 4);
            buf_add_text(&out, row ? "\n" : " ");
            i = end ? (size_t)(end - text.at) : text.len;
            continue;
        }
        size_t e = 0, n = sizeof entities / sizeof *entities;
        while (text.at[i] == '&' && e < n &&
               (rest.len < strlen(entities[e].name) ||
                memcmp(rest.at, entities[e].name, strlen(entities[e].name)) != 0))
            e++;
        if (text.at[i] == '&' && e < n) {
            buf_add_text(&out, entities[e].is);
            i += strlen(entities[e].name) - 1;
        } else {
            buf_add(&out, text.at[i] == '\n' ? " " : text.at + i, 1);
        }
    }
    agent_evidence_add_lines(evidence, hold(evidence, &out));
}
