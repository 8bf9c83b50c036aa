/* An answer taken apart: lines, sentences, numbers. Process: the task's. Pure. */
#include "agent/verify/check_claim.h"

#include <math.h>
#include <strings.h>

#include "agent/verify/check_items.h"
#include "base/attr.h"
#include "base/json.h"

#define SENTENCE_MAX 600 /* bytes; a longer one is cut, so that looking around costs little */

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits + 1;
}

static void note_given(struct agent_tally *given, struct str question)
{
    struct agent_scan_number number;
    struct str word;
    size_t at = 0;
    for (int apart = 0; apart < 2; apart++) {
        at = 0;
        while (agent_scan_number(question, &at, apart, &number)) {
            agent_tally_add(given, bits_of(number.value), 0);
            agent_tally_add(given, bits_of(fabs(number.value)), 0);
            agent_tally_add(given, bits_of(number.value / number.scale), 0);
            if (number.percent)
                agent_tally_add(given, bits_of(number.value / 100), 0);
        }
    }
    at = 0;
    while (agent_scan_word(question, &at, &word)) {
        int value = agent_scan_number_word(word);
        if (value >= 0)
            agent_tally_add(given, bits_of(value), 0);
    }
}

void agent_claim_read(struct agent_claim_reader *reader, const char *question, const char *answer)
{
    *reader = (struct agent_claim_reader){ .answer = str_of(answer) };
    if (reader->answer.len > AGENT_CLAIM_ANSWER_MAX) {
        reader->answer.len = AGENT_CLAIM_ANSWER_MAX;
        reader->cut = true;
    }
    struct str asked = str_of(question);
    asked.len = asked.len > AGENT_CLAIM_ANSWER_MAX ? AGENT_CLAIM_ANSWER_MAX : asked.len;
    note_given(&reader->given, asked);
    struct agent_items items;
    agent_items_count(reader->answer, &items);
    reader->items = items.total;
}

void agent_claim_done(struct agent_claim_reader *reader)
{
    agent_tally_done(&reader->given);
}

/* A fence with a language of programs holds no claims. */
static bool opens_code(struct str line)
{
    static const char *const languages[] = { "python", "py", "js",   "javascript", "bash", "sh",
                                             "sql",    "c",  "java", "r",          "plan" };
    struct str name = agent_scan_trim((struct str){ line.at + 3, line.len - 3 });
    for (size_t i = 0; i < array_len(languages); i++) {
        if (agent_scan_same(name, languages[i]))
            return true;
    }
    return false;
}

static bool next_line(struct agent_claim_reader *reader)
{
    while (reader->at < reader->answer.len) {
        struct str rest = { reader->answer.at + reader->at, reader->answer.len - reader->at };
        const char *end = memchr(rest.at, '\n', rest.len);
        size_t len = end ? (size_t)(end - rest.at) : rest.len;
        struct str line = agent_scan_trim((struct str){ rest.at, len });
        reader->at += len + 1;
        if (line.len >= 3 && !memcmp(line.at, "```", 3)) {
            reader->fenced = !reader->fenced && opens_code(line);
            continue;
        }
        if (reader->fenced)
            continue;
        reader->line = line;
        reader->row = agent_items_is_row(line);
        reader->rows = reader->row && !agent_items_is_rule(line) ? reader->rows + 1 : reader->rows;
        reader->rows = line.len && !reader->row ? 0 : reader->rows;
        reader->sentence = STR_NONE;
        reader->line_at = reader->number_at = 0;
        return true;
    }
    return false;
}

/* The next sentence of the line; a row is one. */
static bool next_sentence(struct agent_claim_reader *reader)
{
    struct str line = reader->line;
    size_t start = reader->line_at, i = start;
    if (start >= line.len)
        return false;
    size_t most = line.len - start > SENTENCE_MAX ? start + SENTENCE_MAX : line.len;
    for (; i < most; i++) {
        bool stop = strchr(".!?", line.at[i]) && line.at[i] && i + 1 < line.len &&
                    line.at[i + 1] == ' ' && !(i < start + 4 && line.at[i] == '.');
        if (!reader->row && stop)
            break;
    }
    if (i == most && most < line.len) { /* never through a number */
        while (i > start + SENTENCE_MAX / 2 && line.at[i - 1] != ' ')
            i--;
    } else {
        i = i < line.len ? i + 1 : i;
    }
    reader->sentence = (struct str){ line.at + start, i - start };
    reader->sentence_at = start;
    reader->line_at = i;
    reader->number_at = 0;
    return true;
}

/* "1. ", "2) ", "#3", "**4.** " at the start of a line. */
static bool is_list_number(const struct agent_claim_reader *reader,
                           const struct agent_scan_number *number)
{
    size_t at = reader->sentence_at + number->digits;
    for (size_t i = 0; i < at; i++) {
        if (!strchr(" #*-+(|>\t", reader->line.at[i]))
            return false;
    }
    size_t end = reader->sentence_at + number->end;
    char next = end < reader->line.len ? reader->line.at[end] : '\0';
    bool mark = at > 0 && reader->line.at[at - 1] == '#';
    if (reader->row)
        return number->whole && number->value >= 0 && number->value <= (double)reader->rows &&
               number->value + 3 > (double)reader->rows;
    return number->whole && number->value < 1000 && !number->percent && !number->money &&
           (mark || (next && strchr(".):*", next) && end + 1 <= reader->line.len &&
                     (end + 1 == reader->line.len || strchr(" *", reader->line.at[end + 1]))));
}

/* "Step 2", "Table 1", "top 5": the number says which, not how much. */
static bool is_named(struct str sentence, const struct agent_scan_number *number)
{
    static const char *const before[] = { "step",    "top",     "figure",  "fig",    "table",
                                          "section", "part",    "method",  "option", "cell",
                                          "rank",    "example", "case",    "bottom", "first",
                                          "last",    "python",  "version", "test" };
    struct str words = { sentence.at, number->at }, word, last = STR_NONE;
    if (words.len > 24) {
        words.at += words.len - 24;
        words.len = 24;
    }
    size_t at = 0;
    while (agent_scan_word(words, &at, &word))
        last = word;
    if (!last.len || !number->whole || number->value >= 1000)
        return false;
    size_t gap = (size_t)(sentence.at + number->at - (last.at + last.len));
    for (size_t i = 0; i < array_len(before) && gap == 1; i++) {
        if (agent_scan_same(last, before[i]))
            return true;
    }
    return false;
}

/* "2 decimal places", "95% confidence": how it was done, not what came out. */
static bool is_method(struct str sentence, const struct agent_scan_number *number)
{
    static const char *const behind[] = { "decimal", "decimals", "digits", "digit", "significant",
                                          "confidence" };
    struct str after = { sentence.at + number->end, sentence.len - number->end }, word;
    size_t at = 0;
    if (!agent_scan_word(after, &at, &word) || word.at - after.at > 1)
        return false;
    for (size_t i = 0; i < array_len(behind); i++) {
        if (agent_scan_same(word, behind[i]))
            return true;
    }
    return false;
}

/* Within "sales_2024-03.csv". */
static bool in_file_name(struct str sentence, const struct agent_scan_number *number)
{
    size_t end = number->digits, start = number->digits;
    while (end < sentence.len && !strchr(" \t`\"'()[]|,;:*", sentence.at[end]))
        end++;
    while (start > 0 && !strchr(" \t`\"'()[]|,;:*", sentence.at[start - 1]))
        start--;
    struct str token = { sentence.at + start, end - start };
    while (token.len && strchr(".!?", token.at[token.len - 1]))
        token.len--;
    const char *dot = token.len ? memrchr(token.at, '.', token.len) : NULL;
    size_t ext = dot ? token.len - (size_t)(dot - token.at) - 1 : 0;
    return ext >= 2 && ext <= 5 && agent_items_is_letter(dot[1]);
}

/* A month beside a small number or a year. */
static void read_month(struct str sentence, struct agent_claim_number *out)
{
    const struct agent_scan_number *scan = &out->scan;
    if (!scan->whole || scan->value < 1 || scan->value > 31)
        return;
    size_t from = scan->at > 12 ? scan->at - 12 : 0, at = 0;
    struct str before = { sentence.at + from, scan->at - from }, word, last = STR_NONE;
    struct str after = { sentence.at + scan->end, sentence.len - scan->end };
    while (agent_scan_word(before, &at, &word))
        last = word;
    out->month = last.len > 2 ? agent_scan_month(last) : 0;
    at = 0;
    if (!out->month && agent_scan_word(after, &at, &word) && agent_scan_same(word, "of"))
        agent_scan_word(after, &at, &word);
    else if (out->month)
        at = 0;
    if (!out->month && at && (size_t)(word.at - after.at) <= 5)
        out->month = agent_scan_month(word);
    if (!out->month)
        return;
    out->day = (int)scan->value;
    struct agent_scan_number year;
    at = 0;
    after.len = after.len > 20 ? 20 : after.len;
    if (agent_scan_number(after, &at, true, &year) && year.whole && year.value >= 1900 &&
        year.value <= 2100)
        out->year = (int)year.value;
}

static void read_iso(struct str sentence, struct agent_claim_number *out)
{
    int part[3] = { 0 }, n = 0;
    for (size_t i = out->scan.at; i < out->scan.end && n < 3; i++) {
        char c = sentence.at[i];
        if (c >= '0' && c <= '9')
            part[n] = part[n] * 10 + (c - '0');
        else if (c == ':')
            return;
        else
            n++;
    }
    bool year_first = part[0] > 31;
    out->year = year_first ? part[0] : part[2] < 100 ? part[2] + 2000 : part[2];
    out->month = part[1] <= 12 || year_first ? part[1] : part[0];
    out->day = year_first ? part[2] : part[1] <= 12 ? part[0] : part[1];
}

/* "3/4" and "\frac{3}{4}". */
static void read_fraction(struct str sentence, struct agent_claim_number *out, size_t *io_at)
{
    struct agent_scan_number below;
    size_t end = out->scan.end, at = end;
    bool slash = end < sentence.len && sentence.at[end] == '/';
    bool latex = end + 1 < sentence.len && !memcmp(sentence.at + end, "}{", 2);
    if ((!slash && !latex) || !agent_scan_number(sentence, &at, true, &below) ||
        below.at != end + (latex ? 2 : 1) || below.value == 0)
        return;
    out->fraction = out->scan.value / below.value;
    out->after = below.end;
    *io_at = below.end;
}

static bool scan_is_given(const struct agent_claim_reader *reader,
                          const struct agent_scan_number *scan)
{
    return scan->kind == AGENT_SCAN_NUMBER &&
           agent_tally_count(&reader->given, bits_of(scan->value)) > 0;
}

/* "x^2", "T^-1", "10^{5}": no quantity of its own. */
static bool is_exponent(struct str sentence, const struct agent_scan_number *scan)
{
    size_t at = scan->at;
    at -= at > 0 && sentence.at[at - 1] == '{';
    return at > 0 &&
           (sentence.at[at - 1] == '^' || (at > 1 && !memcmp(sentence.at + at - 2, "**", 2) &&
                                           at > 2 && sentence.at[at - 3] != ' '));
}

static bool is_claim(const struct agent_claim_reader *reader,
                     const struct agent_claim_number *number)
{
    const struct agent_scan_number *scan = &number->scan;
    if (scan->kind == AGENT_SCAN_ORDINAL && !number->month)
        return false;
    if (scan->kind == AGENT_SCAN_DATE)
        return number->month > 0;
    if (is_list_number(reader, scan) || is_named(reader->sentence, scan) ||
        is_exponent(reader->sentence, scan) || is_method(reader->sentence, scan) ||
        in_file_name(reader->sentence, scan))
        return false;
    return !(scan->whole && !scan->percent && !scan->money && reader->items > 1 &&
             scan->value == (double)reader->items);
}

bool agent_claim_next(struct agent_claim_reader *reader, struct agent_claim_number *out)
{
    for (;;) {
        struct agent_claim_number number = { .row = reader->row };
        if (!reader->sentence.at ||
            !agent_scan_number(reader->sentence, &reader->number_at, false, &number.scan)) {
            while (!reader->line.at || !next_sentence(reader)) {
                if (!next_line(reader))
                    return false;
            }
            continue;
        }
        if (++reader->numbers > AGENT_CLAIM_NUMBERS_MAX) {
            reader->cut = true;
            return false;
        }
        number.sentence = reader->sentence;
        number.before = number.scan.at;
        number.after = number.scan.end;
        if (number.scan.kind == AGENT_SCAN_DATE)
            read_iso(reader->sentence, &number);
        else
            read_month(reader->sentence, &number);
        if (number.scan.kind == AGENT_SCAN_NUMBER && number.scan.whole)
            read_fraction(reader->sentence, &number, &reader->number_at);
        number.is_year = number.scan.whole && !number.scan.grouped && !number.scan.money &&
                         !number.scan.percent && number.scan.value >= 1900 &&
                         number.scan.value <= 2100;
        number.given = number.fraction == 0 && scan_is_given(reader, &number.scan);
        if (is_claim(reader, &number)) {
            *out = number;
            return true;
        }
    }
}

void agent_claim_faults_done(struct agent_claim_faults *faults)
{
    buf_done(&faults->detail);
    buf_done(&faults->repair);
}

void agent_claim_add(json_t *checks, const char *name, bool partly, size_t held,
                     struct agent_claim_faults *faults)
{
    own_buf text = BUF_INIT(256);
    if (faults->count) {
        if (faults->count > 5)
            buf_printf(&faults->detail, "; and %zu more", faults->count - 5);
        agent_checks_add(checks, name, partly ? "no_verdict" : "fail", buf_str(&faults->detail).at,
                         partly ? NULL : buf_str(&faults->repair).at);
        return;
    }
    if (partly)
        buf_add_text(&text, "the answer is too long to be compared whole");
    else if (held)
        buf_printf(&text, "%zu found in the evidence", held);
    else
        buf_add_text(&text, "the answer has none that needs proof");
    agent_checks_add(checks, name,
                     partly ? "no_verdict"
                     : held ? "pass"
                            : "skip",
                     buf_str(&text).at, NULL);
}
