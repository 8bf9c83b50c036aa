/* Evidence: built from a claim's steps and artifacts, and looked up. Process: the task's. Pure. */
#include "agent/verify/evidence.h"

#include <math.h>
#include <stdlib.h>

#include "agent/verify/check_scan.h"
#include "base/attr.h"
#include "base/json.h"

#define UNITS_MAX 400000
#define VALUES_MAX 1000000
#define OWNED_MAX 4096

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits + 1;
}

/* Four digits that count, and no year: too many to meet by chance. */
static bool is_telling(double value)
{
    double digits = fabs(value);
    if (!isfinite(value) || digits == 0 || (digits >= 1900 && digits <= 2100))
        return false;
    while (digits >= 1000)
        digits /= 10;
    while (digits < 100)
        digits *= 10;
    return fabs(digits - (double)(int)(digits + 0.5)) > 1e-6;
}

static bool compares(struct str line)
{
    static const char *const marks[] = { "assert", "==", "<", ">", "abs(", "isclose", "#" };
    for (size_t i = 0; i < array_len(marks); i++) {
        if (memmem(line.at, line.len, marks[i], strlen(marks[i])))
            return true;
    }
    return false;
}

/* The value of "= 1000 + 262.625": literals, signs and spaces to the line's end. */
static bool fold_sum(struct str line, double *out)
{
    const char *is = memchr(line.at, '=', line.len);
    size_t at = is ? (size_t)(is - line.at) + 1 : line.len, terms = 0;
    struct agent_scan_number number;
    struct str rest = { line.at + at, line.len - at };
    for (size_t i = 0; i < rest.len; i++) {
        if (!strchr("0123456789._+- \r", rest.at[i]) || !rest.at[i])
            return false;
    }
    *out = 0;
    for (at = 0; agent_scan_number(rest, &at, true, &number); terms++) {
        size_t sign = number.at;
        while (sign > 0 && rest.at[sign - 1] == ' ')
            sign--;
        bool minus = sign > 0 && rest.at[sign - 1] == '-';
        *out += minus ? -number.value : number.value;
    }
    return terms > 1;
}

/* Numbers that the code holds are no result, wherever they come out again; but what an earlier cell
 * has shown may be written down in a later one, and what the question gave may be used. */
static void note_coded(struct agent_evidence *evidence, struct str code, struct str question)
{
    struct agent_scan_number number;
    size_t at = 0;
    struct agent_tally given = { 0 };
    while (agent_scan_number(question, &at, false, &number))
        agent_tally_add(&given, bits_of(number.value), 0);
    while (code.len) {
        const char *end = memchr(code.at, '\n', code.len);
        struct str line = { code.at, end ? (size_t)(end - code.at) : code.len };
        at = 0;
        while (!compares(line) && agent_scan_number(line, &at, true, &number)) {
            uint64_t key = bits_of(number.value);
            double sum;
            if (number.kind != AGENT_SCAN_NUMBER || !is_telling(number.value) ||
                agent_tally_count(&evidence->shown, key) || agent_tally_count(&given, key))
                continue;
            agent_tally_add(&evidence->coded, key, 0);
            if (fold_sum(line, &sum) && !agent_tally_count(&evidence->shown, bits_of(sum)))
                agent_tally_add(&evidence->coded, bits_of(sum), 0);
        }
        code.at += line.len + (end != NULL);
        code.len -= line.len + (end != NULL);
    }
    agent_tally_done(&given);
}

static void add_value(struct agent_evidence *evidence, double value)
{
    bool telling = is_telling(value);
    if (!isfinite(value) || (telling && agent_tally_count(&evidence->coded, bits_of(value))))
        return;
    if (telling)
        agent_tally_add(&evidence->shown, bits_of(value), 0);
    if (evidence->value_count >= VALUES_MAX) {
        evidence->cut = true;
        return;
    }
    if (evidence->value_count == evidence->value_room) {
        evidence->value_room = evidence->value_room ? evidence->value_room * 2 : 256;
        void *wider = realloc(evidence->values, evidence->value_room * sizeof *evidence->values);
        if (!wider)
            abort();
        evidence->values = wider;
    }
    evidence->values[evidence->value_count++] =
        (struct agent_evidence_value){ value, (uint32_t)(evidence->unit_count - 1) };
}

static int number_at(struct str text, size_t at, size_t len)
{
    int out = 0;
    for (size_t i = 0; i < len; i++)
        out = out * 10 + (text.at[at + i] - '0');
    return out;
}

/* 2024-03-01 and 2024/3/1; other orders are ambiguous, and both are kept. */
static void add_date(struct agent_evidence *evidence, struct str date)
{
    int part[3] = { 0 }, n = 0;
    size_t i = 0;
    while (n < 3 && i < date.len) {
        size_t len = 0;
        while (i + len < date.len && date.at[i + len] >= '0' && date.at[i + len] <= '9')
            len++;
        if (len == 0 || len > 4)
            return;
        part[n++] = number_at(date, i, len);
        i += len + 1;
    }
    if (n < 3 || memchr(date.at, ':', date.len < 5 ? date.len : 5))
        return;
    bool year_first = part[0] > 31;
    int year = year_first ? part[0] : part[2] < 100 ? 2000 + part[2] : part[2];
    add_value(evidence, year);
    int a = year_first ? part[1] : part[0], b = year_first ? part[2] : part[1];
    const int orders[][2] = { { a, b }, { year_first ? a : b, year_first ? b : a } };
    for (size_t o = 0; o < array_len(orders); o++) {
        uint64_t day = (uint64_t)(orders[o][0] * 100 + orders[o][1]);
        agent_tally_add(&evidence->dates, (uint64_t)year * 10000 + day + 1, 0);
        agent_tally_add(&evidence->dates, day + 1, 0);
        agent_tally_add(&evidence->dates, (uint64_t)year * 10000 + (day / 100) * 100 + 1, 0);
    }
}

/* Does a comma join what it should part: "Acme,42,100", "[1,2]", "1,2,3,400"? */
static bool is_comma_list(struct str text)
{
    for (size_t i = 1; i + 1 < text.len; i++) {
        char a = text.at[i - 1], b = text.at[i + 1];
        bool digits = a >= '0' && a <= '9' && b >= '0' && b <= '9';
        if (text.at[i] == ',' && b != ' ' && !digits)
            return true;
        size_t run = 0;
        while (digits && text.at[i] == ',' && i + 1 + run < text.len &&
               text.at[i + 1 + run] >= '0' && text.at[i + 1 + run] <= '9' && run < 4)
            run++;
        if (run && run != 3)
            return true;
    }
    return memchr(text.at, '[', text.len) || memchr(text.at, '(', text.len);
}

/* The numbers of one unit; true if it has any. */
static bool add_values(struct agent_evidence *evidence, struct str text, bool apart)
{
    struct agent_scan_number number, before = { 0 };
    size_t at = 0;
    bool any = false, prose = apart || !is_comma_list(text);
    while (agent_scan_number(text, &at, apart, &number)) {
        if (number.kind == AGENT_SCAN_DATE) {
            add_date(evidence, (struct str){ text.at + number.at, number.end - number.at });
            continue;
        }
        add_value(evidence, number.value);
        if (number.percent)
            add_value(evidence, number.value / 100);
        if (any && before.end + 1 == number.at && text.at[before.end] == '/' && number.value != 0)
            add_value(evidence, before.value / number.value);
        if (!apart && !prose && memchr(text.at + number.digits, ',', number.end - number.digits))
            add_values(evidence, (struct str){ text.at + number.at, number.end - number.at }, true);
        before = number;
        any = true;
    }
    return any;
}

void agent_evidence_add_unit(struct agent_evidence *evidence, struct str text, uint64_t group)
{
    if (evidence->unit_count >= UNITS_MAX) {
        evidence->cut = true;
        return;
    }
    if (evidence->unit_count == evidence->unit_room) {
        evidence->unit_room = evidence->unit_room ? evidence->unit_room * 2 : 64;
        void *wider = realloc(evidence->units, evidence->unit_room * sizeof *evidence->units);
        if (!wider)
            abort();
        evidence->units = wider;
    }
    uint32_t self = (uint32_t)evidence->unit_count;
    evidence->units[evidence->unit_count++] = (struct agent_evidence_unit){
        .text = text,
        .source = evidence->source,
        .group = group,
        .printed = evidence->printing,
    };
    bool numbered = add_values(evidence, text, false);
    if (numbered)
        agent_tally_add(&evidence->groups, group, self + 1);
    size_t at = 0;
    struct str word;
    while (agent_scan_word(text, &at, &word)) {
        agent_tally_add(&evidence->words, agent_scan_hash(word, 0), 0);
        if (!numbered || agent_scan_class(word) == AGENT_WORD_COMMON)
            continue;
        evidence->units[self].named = true;
        agent_tally_add(&evidence->rows, agent_scan_hash(word, group), self + 1);
    }
}

static void add_names(struct agent_evidence *evidence, const json_t *names)
{
    size_t i;
    json_t *name;
    own_buf out = BUF_INIT(256u << 10);
    json_array_foreach (names, i, name) {
        const char *text = json_string_value(json_object_get(name, "text"));
        const json_t *length = json_object_get(name, "length"),
                     *shape = json_object_get(name, "shape");
        const char *called = json_string_value(json_object_get(name, "name"));
        if (called && text)
            buf_printf(&out, "%s = %s\n", called, text);
        if (called && json_is_integer(length))
            buf_printf(&out, "%s length %lld\n", called, (long long)json_integer_value(length));
        if (called && json_is_array(shape) && json_array_size(shape) > 0)
            buf_printf(&out, "%s rows %lld columns %lld\n", called,
                       (long long)json_integer_value(json_array_get(shape, 0)),
                       (long long)json_integer_value(json_array_get(shape, 1)));
    }
    if (out.len && evidence->owned_count < OWNED_MAX) {
        size_t len = out.len;
        char *text = buf_take(&out);
        evidence->owned[evidence->owned_count++] = text;
        agent_evidence_add_lines(evidence, (struct str){ text, len });
    }
}

static void add_result(struct agent_evidence *evidence, const json_t *result)
{
    size_t i;
    json_t *shown;
    evidence->printing = true;
    agent_evidence_add_lines(evidence, json_str(json_object_get(result, "stdout")));
    json_array_foreach (json_object_get(result, "results"), i, shown)
        agent_evidence_add_lines(evidence, json_str(json_object_get(shown, "text/plain")));
    evidence->printing = false;
    json_array_foreach (json_object_get(result, "results"), i, shown) {
        agent_evidence_add_html(evidence, json_str(json_object_get(shown, "text/html")));
        agent_evidence_add_json(evidence, json_object_get(shown, "application/json"));
    }
    add_names(evidence, json_object_get(result, "names_added"));
    add_names(evidence, json_object_get(result, "names_changed"));
}

static void add_artifact(struct agent_evidence *evidence, const char *path, struct str content)
{
    static const struct {
        const char *end;
        void (*add)(struct agent_evidence *evidence, struct str text);
    } kinds[] = {
        { ".csv", agent_evidence_add_csv },   { ".tsv", agent_evidence_add_csv },
        { ".txt", agent_evidence_add_lines }, { ".md", agent_evidence_add_lines },
        { ".html", agent_evidence_add_html },
    };
    size_t len = strlen(path);
    for (size_t i = 0; i < array_len(kinds); i++) {
        size_t n = strlen(kinds[i].end);
        if (len > n && agent_scan_same((struct str){ path + len - n, n }, kinds[i].end))
            kinds[i].add(evidence, content);
    }
    if (len > 5 && agent_scan_same((struct str){ path + len - 5, 5 }, ".json")) {
        struct err err = ERR_INIT;
        own_json value = json_read(content, 4u << 20, &err);
        agent_evidence_add_json(evidence, value);
    }
}

static int by_value(const void *a, const void *b)
{
    const struct agent_evidence_value *x = a, *y = b;
    return x->value < y->value ? -1 : x->value > y->value;
}

void agent_evidence_open(struct agent_evidence *evidence, const struct agent_claim *claim)
{
    *evidence = (struct agent_evidence){ 0 };
    evidence->owned = buf_alloc_zero(OWNED_MAX, sizeof *evidence->owned);
    size_t i, from = agent_steps_from(claim->steps);
    json_t *step, *made;
    own_buf program = BUF_INIT(1u << 20); /* a constant of one cell may be printed by another */
    json_array_foreach (claim->steps, i, step) {
        struct str code = json_str(json_object_get(step, "code"));
        if (i < from || !agent_step_is_kept(step))
            continue;
        agent_evidence_add_literals(&evidence->literals, code);
        if (buf_add_str(&program, code) == 0)
            buf_add_text(&program, "\n");
    }
    agent_evidence_add_literals(&evidence->literals, buf_str(&program));
    json_array_foreach (claim->steps, i, step) {
        if (i < from || !agent_step_is_kept(step))
            continue;
        note_coded(evidence, json_str(json_object_get(step, "code")), str_of(claim->question));
        add_result(evidence, json_object_get(step, "result"));
    }
    json_array_foreach (claim->artifacts, i, made) {
        const char *path = json_string_value(json_object_get(made, "path"));
        if (path && claim->content)
            add_artifact(evidence, path, claim->content(claim->user, path));
    }
    if (evidence->value_count)
        qsort(evidence->values, evidence->value_count, sizeof *evidence->values, by_value);
}

void agent_evidence_close(struct agent_evidence *evidence)
{
    for (size_t i = 0; i < evidence->owned_count; i++)
        free(evidence->owned[i]);
    free(evidence->owned);
    free(evidence->units);
    free(evidence->values);
    agent_tally_done(&evidence->words);
    agent_tally_done(&evidence->rows);
    agent_tally_done(&evidence->groups);
    agent_tally_done(&evidence->dates);
    agent_tally_done(&evidence->literals);
    agent_tally_done(&evidence->shown);
    agent_tally_done(&evidence->coded);
    *evidence = (struct agent_evidence){ 0 };
}

size_t agent_evidence_from(const struct agent_evidence *evidence, double low)
{
    size_t a = 0, b = evidence->value_count;
    while (a < b) {
        size_t mid = (a + b) / 2;
        if (evidence->values[mid].value < low)
            a = mid + 1;
        else
            b = mid;
    }
    return a;
}

bool agent_evidence_parts(const struct agent_evidence *evidence, uint64_t group, struct str word)
{
    uint32_t like = agent_tally_count(&evidence->groups, group);
    uint32_t with = agent_tally_count(&evidence->rows, agent_scan_hash(word, group));
    return like > 1 && with > 0 && with <= like / 2;
}

bool agent_evidence_unit_has(const struct agent_evidence *evidence, uint32_t unit, struct str word)
{
    uint64_t want = agent_scan_hash(word, 0);
    size_t at = 0;
    struct str found;
    while (agent_scan_word(evidence->units[unit].text, &at, &found)) {
        if (agent_scan_hash(found, 0) == want)
            return true;
    }
    return false;
}

bool agent_evidence_has_word(const struct agent_evidence *evidence, struct str word)
{
    return agent_tally_count(&evidence->words, agent_scan_hash(word, 0)) > 0;
}

bool agent_evidence_has_date(const struct agent_evidence *evidence, int year, int month, int day)
{
    uint64_t key = (uint64_t)(year * 10000 + month * 100 + day) + 1;
    return agent_tally_count(&evidence->dates, key) > 0;
}
