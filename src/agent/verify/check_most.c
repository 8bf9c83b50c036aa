/* "Which has the most?", and the answer names a row that has not. Process: the task's. Pure.
 * It speaks only where all is plain: one superlative and no condition in the question, one number
 * in the answer, one printed series of names and values that holds it, and in it a row of the data
 * that is beyond. Whatever else may be meant is let pass. */
#include <math.h>

#include "agent/verify/check_claim.h"
#include "base/attr.h"
#include "base/json.h"

#define SAME_MAX 40  /* values that round to the number: beyond, it is everywhere */
#define ROWS_MAX 2000
#define QUOTE_MAX 160
#define QUESTION_MAX 4096

static bool any_of(struct str word, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (agent_scan_same(word, list[i]))
            return true;
    }
    return false;
}
#define ANY_OF(word, list) any_of(word, list, array_len(list))

static const char *const ups[] = { "most", "highest", "largest", "biggest", "greatest", "best" };
static const char *const downs[] = { "least", "lowest", "smallest", "fewest" };

/* 1: the most is asked for, -1: the least, 0: neither, or under a condition. */
static int direction_of(struct str question)
{
    static const char *const conditions[] = {
        "second", "third", "next", "after", "before", "except", "excluding", "without", "other",
        "besides", "among", "amongst", "below", "under", "above", "over", "than", "not", "only",
        "whose", "where", "if", "each", "every", "with", "having", "between", "drop", "decrease",
        "decline", "loss", "fall", "change", "difference", "gap", "deviation", "distance",
        "negative", "absolute", "rank", "ranked", "ranking", "worst", "nearest", "closest",
    };
    static const char *const no_best[] = { "time", "times", "error", "price", "cost", "rmse", "mae",
                                           "lap", "laps", "latency", "duration", "fastest" };
    static const char *const no_most[] = { "of", "recent", "recently", "efficient", "similar",
                                           "accurate", "stable", "likely", "affordable",
                                           "economical", "consistent", "precise", "even" };
    struct str word, before = STR_NONE;
    size_t at = 0, found = 0;
    bool best = false, low_is_best = false;
    int sign = 0;
    question.len = question.len > QUESTION_MAX ? QUESTION_MAX : question.len;
    for (; agent_scan_word(question, &at, &word); before = word) {
        bool most = agent_scan_same(before, "most");
        if (ANY_OF(word, conditions) || (most && ANY_OF(word, no_most)))
            return 0;
        low_is_best = low_is_best || ANY_OF(word, no_best);
        bool up = ANY_OF(word, ups), down = ANY_OF(word, downs);
        if ((!up && !down) || agent_scan_same(before, "at"))
            continue;
        best = best || agent_scan_same(word, "best");
        sign = up ? 1 : -1;
        found++;
    }
    return found == 1 && !(best && low_is_best) ? sign : 0;
}

/* A name and a value, perhaps behind the row's index. */
static bool read_row(struct str text, double *out_value)
{
    struct agent_scan_number number;
    size_t at = 0, count = 0;
    bool index = false;
    while (agent_scan_number(text, &at, false, &number)) {
        if (number.kind != AGENT_SCAN_NUMBER)
            return false;
        index = index || (count == 0 && number.at == 0 && number.whole);
        *out_value = number.value;
        count++;
    }
    return count == 1 ? !index : count == 2 && index;
}

/* Do they follow each other in one table? An empty line parts two of them. */
static bool adjoin(const struct agent_evidence_unit *a, const struct agent_evidence_unit *b)
{
    const char *from = a->text.at + a->text.len;
    size_t ends = 0;
    if (a->source != b->source || a->group != b->group || !b->printed || b->text.at < from)
        return false;
    for (const char *c = from; c < b->text.at; c++) {
        ends += *c == '\n';
        if (!strchr(" \t\r\n,", *c) || !*c)
            return false;
    }
    return ends < 2;
}

/* Has the row a name that comes from the data, and is it no sum and no remainder? */
static bool is_datum(const struct agent_tally *code, struct str row)
{
    static const char *const rests[] = { "all", "other", "others", "unknown", "nan", "none",
                                         "missing", "rest", "everything", "grand", "name" };
    struct str word;
    size_t at = 0;
    bool named = false;
    while (agent_scan_word(row, &at, &word)) {
        if (agent_scan_class(word) == AGENT_WORD_FOLD || ANY_OF(word, rests) ||
            agent_tally_count(code, agent_scan_hash(word, 0)) > 0)
            return false;
        named = named || agent_scan_class(word) == AGENT_WORD_PLAIN;
    }
    return named;
}

static void note_words(struct agent_tally *words, const json_t *steps)
{
    size_t i;
    json_t *step;
    json_array_foreach (steps, i, step) {
        struct str code = json_str(json_object_get(step, "code")), word;
        size_t at = 0;
        while (code.at && agent_scan_word(code, &at, &word))
            agent_tally_add(words, agent_scan_hash(word, 0), 0);
    }
}

/* The words of `text` that part the rows: all of them in this one, and how many they are. With none
 * in it, or one that is another's, SIZE_MAX. */
static size_t names_in(const struct agent_evidence *evidence, uint32_t unit, struct str text,
                       uint64_t *out_name)
{
    uint64_t group = evidence->units[unit].group;
    struct str word;
    size_t at = 0, count = 0;
    while (agent_scan_word(text, &at, &word)) {
        if (agent_scan_class(word) != AGENT_WORD_PLAIN ||
            !agent_evidence_parts(evidence, group, word))
            continue;
        if (!agent_evidence_unit_has(evidence, unit, word))
            return SIZE_MAX;
        *out_name = agent_scan_hash(word, 0);
        count++;
    }
    return count;
}

static bool has(struct str text, char c)
{
    return text.len && memchr(text.at, c, text.len);
}

/* A result of its own, "best = 120.5", may be of some rows only; an entry of a dict is a row.
 * The only printed unit that has the number, and the only one with a number that has the name. */
static bool find_row(const struct agent_evidence *evidence, double value, double room,
                     struct str answer, uint32_t *out_unit, uint64_t *out_name)
{
    size_t from = agent_evidence_from(evidence, value - room), seen = 0, i;
    for (i = from; i < evidence->value_count && evidence->values[i].value <= value + room; i++) {
        const struct agent_evidence_unit *unit = &evidence->units[evidence->values[i].unit];
        bool single = has(unit->text, '=') && (!has(unit->text, '{') || has(unit->text, '}'));
        if (i - from > SAME_MAX || (!unit->printed && (single || !unit->named)))
            return false;
        if (!unit->printed)
            continue;
        *out_unit = evidence->values[i].unit;
        seen++;
    }
    size_t names = seen == 1 ? names_in(evidence, *out_unit, answer, out_name) : 0;
    if (names == 0 || names == SIZE_MAX)
        return false;
    for (i = 0; i < evidence->unit_count; i++) {
        const struct agent_evidence_unit *unit = &evidence->units[i];
        struct str word;
        size_t at = 0;
        while (unit->printed && i != *out_unit && agent_scan_word(unit->text, &at, &word)) {
            if (agent_scan_hash(word, 0) == *out_name)
                return false; /* another series, of another quantity */
        }
    }
    return true;
}

static void add_fault(const struct agent_evidence *evidence,
                      const struct agent_claim_number *number, uint32_t row, int sign,
                      struct agent_claim_faults *faults)
{
    struct str said = { number->sentence.at + number->before, number->after - number->before };
    struct str line = agent_scan_trim(evidence->units[row].text);
    const char *word = sign > 0 ? "largest" : "smallest", *more = sign > 0 ? "larger" : "smaller";
    line.len = str_cut_utf8(line, QUOTE_MAX);
    said.len = said.len > 40 ? 40 : said.len;
    buf_printf(&faults->detail, "%.*s is not the %s: \"%.*s\" is %s", (int)said.len, said.at, word,
               (int)line.len, line.at, more);
    buf_printf(&faults->repair,
               "The question asks for the %s, and the answer gives %.*s, but in the same printed "
               "series \"%.*s\" is %s. Answer with the right one, or compute and print only those "
               "that count. ",
               word, (int)said.len, said.at, (int)line.len, line.at, more);
    faults->count++;
}

/* The row that is furthest beyond the value, of those that follow each other around `unit`. */
static bool find_beyond(const struct agent_evidence *evidence, const struct agent_tally *code,
                        uint32_t unit, int sign, double room, uint32_t *out_row)
{
    uint32_t low = unit, high = unit;
    double value, other;
    if (!read_row(evidence->units[unit].text, &value))
        return false;
    while (low > 0 && adjoin(&evidence->units[low - 1], &evidence->units[low]))
        low--;
    while (high + 1 < evidence->unit_count &&
           adjoin(&evidence->units[high], &evidence->units[high + 1]))
        high++;
    double best = value + sign * room * 2;
    bool found = false;
    if (high - low > ROWS_MAX)
        return false;
    for (uint32_t i = low; i <= high; i++) {
        if (!read_row(evidence->units[i].text, &other))
            return false; /* not of one kind */
        if (sign * (other - best) <= 0 || !is_datum(code, evidence->units[i].text))
            continue;
        best = other;
        *out_row = i;
        found = true;
    }
    return found;
}

void agent_check_most(const struct agent_claim *claim, const struct agent_evidence *evidence,
                      const struct agent_claim_number *number, struct agent_claim_faults *faults)
{
    int sign = direction_of(str_of(claim->question));
    double room = number->scan.step / 2 + fabs(number->scan.value) * 1e-12;
    struct str question = str_of(claim->question), answer = str_of(claim->answer);
    uint32_t unit = 0, row = 0;
    uint64_t name = 0, unused;
    answer.len = answer.len > AGENT_CLAIM_ANSWER_MAX ? AGENT_CLAIM_ANSWER_MAX : answer.len;
    question.len = question.len > QUESTION_MAX ? QUESTION_MAX : question.len;
    if (!sign || number->given || number->month || number->is_year || evidence->cut ||
        number->hedge != AGENT_EXACT || number->scan.percent || number->fraction != 0 ||
        !find_row(evidence, number->scan.value, room, answer, &unit, &name))
        return;
    if (names_in(evidence, unit, question, &unused) != 0)
        return; /* the question names rows: it is about some of them */
    struct agent_tally code = { 0 };
    note_words(&code, claim->steps);
    if (find_beyond(evidence, &code, unit, sign, room, &row))
        add_fault(evidence, number, row, sign, faults);
    agent_tally_done(&code);
}
