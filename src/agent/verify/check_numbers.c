/* Numbers of the answer against the evidence. Process: the task's. Pure.
 * 1. A number holds if a value of the evidence rounds to it at its printed precision.
 * 2. Where that value stands in one of several like rows, and the answer names another of these
 *    rows beside the number, it is that row's number no more: the label must match too.
 * 3. What the question gave, ordinals, list numbers and names of files are no claims.
 * 4. Where the most or the least is asked for, no other row of the series is beyond it.
 * 5. A number that could not be looked for (caps) is never passed and never failed. */
#include <math.h>

#include "agent/verify/check_claim.h"
#include "agent/verify/check_scan.h"
#include "agent/verify/evidence.h"
#include "base/attr.h"
#include "base/buf.h"

#define UNITS_LOOKED_AT 40 /* of one number: beyond, it is everywhere */
#define FAULTS_SHOWN 5
#define QUOTE_MAX 160
#define SAID_MAX 40

/* Words right before a number which say that it is not exact, and on which side the truth is. */
static const struct {
    const char *word;
    enum agent_claim_hedge hedge;
} hedges[] = {
    { "about", AGENT_ABOUT },  { "around", AGENT_ABOUT }, { "approximately", AGENT_ABOUT },
    { "approx", AGENT_ABOUT }, { "roughly", AGENT_ABOUT }, { "some", AGENT_ABOUT },
    { "circa", AGENT_ABOUT },  { "nearly", AGENT_UNDER }, { "almost", AGENT_UNDER },
    { "under", AGENT_UNDER },  { "most", AGENT_UNDER },   { "over", AGENT_OVER },
    { "above", AGENT_OVER },   { "least", AGENT_OVER },
};
static const char *const falls[] = { "fell",   "fall",     "falls",    "drop",     "dropped",
                                     "decline", "declined", "decrease", "decreased", "down",
                                     "loss",   "lost",     "lower",    "reduced",  "reduction",
                                     "negative", "shrank",  "below",   "less",     "decreasing",
                                     "minus",  "under",    "fewer",    "behind",   "deficit" };

static bool any_of(struct str word, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (agent_scan_same(word, list[i]))
            return true;
    }
    return false;
}

/* Words around a number in its sentence: is it hedged, does something fall? */
static void read_tone(struct agent_claim_number *number)
{
    struct str words = { number->sentence.at, number->before };
    if (words.len > 80) {
        words.at += words.len - 80;
        words.len = 80;
    }
    struct str word, last = STR_NONE, before = STR_NONE;
    size_t at = 0;
    while (agent_scan_word(words, &at, &word)) {
        number->falls = number->falls || any_of(word, falls, array_len(falls));
        before = last;
        last = word;
    }
    bool superlative = agent_scan_same(last, "most") || agent_scan_same(last, "least");
    for (size_t i = 0; i < array_len(hedges); i++) {
        if (agent_scan_same(last, hedges[i].word) &&
            (!superlative || agent_scan_same(before, "at")))
            number->hedge = hedges[i].hedge;
    }
    if (agent_scan_same(last, "than"))
        number->hedge = any_of(before, falls, array_len(falls)) ? AGENT_UNDER : AGENT_OVER;
    struct str mark = agent_scan_trim(words);
    if ((mark.len && mark.at[mark.len - 1] == '~') ||
        (mark.len >= 3 && !memcmp(mark.at + mark.len - 3, "\xe2\x89\x88", 3)))
        number->hedge = AGENT_ABOUT;
    struct str after = { number->sentence.at + number->after,
                         number->sentence.len - number->after };
    at = 0;
    for (int i = 0; i < 3 && agent_scan_word(after, &at, &word); i++)
        number->falls = number->falls || any_of(word, falls, array_len(falls));
}

static const char *const scales[] = { "million", "millions", "thousand", "thousands", "billion",
                                      "billions", "k", "m", "mn", "bn", "b" };
static const char *const percents[] = { "percent", "pct", "percentage", "perc" };

/* Does the unit say that its numbers are millions, or percent? */
static bool unit_says(const struct agent_evidence *evidence, uint32_t unit,
                      const char *const *words, size_t count)
{
    struct str word, text = evidence->units[unit].text;
    size_t at = 0;
    if (words == percents && memchr(text.at, '%', text.len))
        return true;
    while (agent_scan_word(text, &at, &word)) {
        if (any_of(word, words, count))
            return true;
    }
    return false;
}

enum fit { FITS, UNKNOWN, CLASHES };

/* "mean 105.2" and nothing else, where the answer says "total": another result, though no row
 * beside it has that name. */
static bool is_other_fold(const struct agent_claim_number *number, struct str unit)
{
    static const char *const core[] = { "mean", "average", "avg", "total", "sum", "median",
                                        "max", "maximum", "min", "minimum", "std" };
    struct str before = { number->sentence.at, number->before }, word, said = STR_NONE;
    size_t at = 0;
    bool of = false, folded = false;
    while (unit.len <= QUOTE_MAX && agent_scan_word(unit, &at, &word)) {
        if (agent_scan_class(word) == AGENT_WORD_PLAIN)
            return false;
        folded = folded || any_of(word, core, array_len(core));
    }
    at = 0;
    while (folded && agent_scan_word(before, &at, &word)) {
        if (!of && any_of(word, core, array_len(core)))
            said = word;
        of = agent_scan_same(word, "of") || (of && agent_scan_class(word) == AGENT_WORD_COMMON);
    }
    if (!said.len)
        return false;
    for (const char *c = said.at; c < before.at + before.len; c++) {
        if (*c == ',' || (*c >= '0' && *c <= '9'))
            return false; /* it is another number's */
    }
    at = 0;
    while (agent_scan_word(unit, &at, &word)) {
        if (agent_scan_hash(word, 0) == agent_scan_hash(said, 0))
            return false;
    }
    return true;
}

/* The row that the answer means, among the like of `unit`: does the name beside the number stand
 * in this unit, or only in another of its like? */
static enum fit label_fit(const struct agent_evidence *evidence,
                          const struct agent_claim_number *number, uint32_t unit)
{
    uint64_t group = evidence->units[unit].group;
    struct agent_claim_label label;
    if (!evidence->units[unit].named)
        return UNKNOWN;
    if (!number->row && is_other_fold(number, evidence->units[unit].text))
        return CLASHES;
    if (number->is_year || agent_tally_count(&evidence->groups, group) < 2)
        return UNKNOWN;
    bool labelled = false, plain = false;
    struct str word;
    size_t at = 0;
    while (!plain && agent_scan_word(evidence->units[unit].text, &at, &word)) {
        bool parts = agent_evidence_parts(evidence, group, word);
        labelled = labelled || parts;
        plain = parts && agent_scan_class(word) == AGENT_WORD_PLAIN;
    }
    /* A row of results ("mean 5") is taken for another only by a word of its kind. */
    enum agent_scan_class class = plain ? AGENT_WORD_PLAIN : AGENT_WORD_FOLD;
    if (!labelled || !agent_claim_label(evidence, group, class, number, &label))
        return UNKNOWN;
    for (size_t i = 0; i < label.count; i++) {
        if (agent_evidence_unit_has(evidence, unit, label.words[i]))
            return FITS;
    }
    return CLASHES;
}

/* Three digits or more do not meet by chance: what stands in another's row is that row's, though
 * the same value is somewhere without a name. */
static bool is_distinct(double value)
{
    double digits = fabs(value);
    while (digits >= 1000)
        digits /= 10;
    return digits >= 100 || digits != (double)(int)digits;
}

enum found { FOUND, NOWHERE, ELSEWHERE };

/* One value, give or take `slack`. */
static enum found look_up(const struct agent_evidence *evidence,
                          const struct agent_claim_number *number, double value, double slack,
                          uint32_t *out_unit)
{
    double room = slack * (1 + 1e-9) + fabs(value) * 1e-15;
    size_t i = agent_evidence_from(evidence, value - room), seen = 0;
    bool unknown = false, clashes = false;
    for (; i < evidence->value_count && evidence->values[i].value <= value + room; i++) {
        enum fit fit = label_fit(evidence, number, evidence->values[i].unit);
        if (number->scan.percent && fabs(value) < 1 && value == number->scan.value &&
            !unit_says(evidence, evidence->values[i].unit, percents, array_len(percents)))
            continue; /* a share of 0.24 is no 0.24% */
        if (fit == FITS || ++seen > UNITS_LOOKED_AT || (fit == UNKNOWN && !is_distinct(value)))
            return FOUND;
        unknown = unknown || fit == UNKNOWN;
        clashes = clashes || fit == CLASHES;
        if (fit == CLASHES)
            *out_unit = evidence->values[i].unit;
    }
    if (clashes && (!unknown || is_distinct(value)))
        return ELSEWHERE;
    return unknown ? FOUND : NOWHERE;
}

/* What the last digit that counts stands for: with a hedge, the last that is not 0. */
static double step_of(const struct agent_claim_number *number)
{
    double step = number->scan.step;
    if (number->hedge == AGENT_EXACT || !number->scan.whole)
        return step;
    double units = fabs(number->scan.value) / step;
    uint64_t whole = units < 1e15 ? (uint64_t)(units + 0.5) : 0;
    for (; whole >= 10 && whole % 10 == 0; whole /= 10)
        step *= 10;
    return step;
}

static enum found find_number(const struct agent_evidence *evidence,
                              const struct agent_claim_number *number, uint32_t *out_unit)
{
    double slack = step_of(number) / 2, value = number->scan.value;
    value += number->hedge == AGENT_OVER ? slack : number->hedge == AGENT_UNDER ? -slack : 0;
    enum found best = NOWHERE, found;
    const struct {
        bool tried;
        double value, slack;
    } ways[] = {
        { number->fraction == 0, value, slack },
        { number->scan.percent, value / 100, slack / 100 },
        { number->falls && value > 0, -value, slack },
        { number->falls && value > 0 && number->scan.percent, -value / 100, slack / 100 },
        { number->fraction != 0, number->fraction, fabs(number->fraction) * 1e-9 },
    };
    for (size_t i = 0; i < array_len(ways); i++) {
        if (!ways[i].tried)
            continue;
        found = look_up(evidence, number, ways[i].value, ways[i].slack, out_unit);
        if (found == FOUND)
            return FOUND;
        best = found == ELSEWHERE ? ELSEWHERE : best;
    }
    if (number->scan.scale > 1) {
        uint32_t unit = 0;
        double small = value / number->scan.scale, room = slack / number->scan.scale;
        size_t from = agent_evidence_from(evidence, small - room);
        for (size_t i = from; i < evidence->value_count && i < from + UNITS_LOOKED_AT &&
                              evidence->values[i].value <= small + room; i++) {
            unit = evidence->values[i].unit;
            if (unit_says(evidence, unit, scales, array_len(scales)) &&
                label_fit(evidence, number, unit) != CLASHES)
                return FOUND;
        }
    }
    return best;
}

/* "100,200,300" may be a list, as "(12,345)" and "12,5" may; "1,234.5" is none. */
static bool may_be_list(const struct agent_claim_number *number, struct str text)
{
    size_t commas = 0;
    for (size_t i = 0; i < text.len; i++)
        commas += text.at[i] == ',';
    char before = number->before > 0 ? number->sentence.at[number->before - 1] : ' ';
    if (commas == 0 || number->scan.money || number->scan.percent ||
        (number->scan.grouped && !number->scan.whole))
        return false;
    return commas > 1 || !number->scan.grouped || before == '(' || before == '[';
}

static enum found find_apart(const struct agent_evidence *evidence,
                             const struct agent_claim_number *number, uint32_t *out_unit)
{
    struct str text = { number->sentence.at + number->before, number->after - number->before };
    if (!may_be_list(number, text) && number->fraction == 0)
        return NOWHERE;
    struct agent_claim_number part = *number;
    part.fraction = 0;
    size_t at = 0;
    while (agent_scan_number(text, &at, /* apart= */ true, &part.scan)) {
        if (find_number(evidence, &part, out_unit) != FOUND)
            return NOWHERE;
    }
    return FOUND;
}

static struct str brief(struct str text)
{
    text = agent_scan_trim(text);
    return (struct str){ text.at, str_cut_utf8(text, QUOTE_MAX) };
}

/* What stands nearest to a number that is nowhere. */
static void add_nearest(const struct agent_evidence *evidence, double value, struct buf *out)
{
    size_t i = agent_evidence_from(evidence, value);
    if (evidence->value_count == 0) {
        buf_add_text(out, "the cells showed no number at all");
        return;
    }
    size_t low = i > 0 ? i - 1 : i;
    i = i < evidence->value_count ? i : evidence->value_count - 1;
    size_t near =
        fabs(evidence->values[low].value - value) < fabs(evidence->values[i].value - value) ? low
                                                                                            : i;
    struct str line = brief(evidence->units[evidence->values[near].unit].text);
    buf_printf(out, "the nearest is in \"%.*s\"", (int)line.len, line.at);
}

static void add_fault(const struct agent_evidence *evidence,
                      const struct agent_claim_number *number, enum found found, uint32_t unit,
                      struct agent_claim_faults *faults)
{
    struct str said = { number->sentence.at + number->before, number->after - number->before };
    struct str line = brief(number->sentence);
    said.len = said.len > SAID_MAX ? SAID_MAX : said.len;
    if (faults->count++ >= FAULTS_SHOWN)
        return;
    const char *between = faults->detail.len ? "; " : "";
    if (found == ELSEWHERE) {
        struct str row = brief(evidence->units[unit].text);
        buf_printf(&faults->detail, "%s%.*s stands under another name: \"%.*s\"", between,
                   (int)said.len, said.at, (int)row.len, row.at);
        buf_printf(&faults->repair,
                   "The answer says %.*s in \"%.*s\", but the evidence has that number under "
                   "another name: \"%.*s\". Give each name its own number, as the cells printed "
                   "it. ",
                   (int)said.len, said.at, (int)line.len, line.at, (int)row.len, row.at);
        return;
    }
    buf_printf(&faults->detail, "%s%.*s is nowhere in the evidence", between, (int)said.len,
               said.at);
    buf_printf(&faults->repair,
               "The answer says %.*s in \"%.*s\", but no cell showed that number; ",
               (int)said.len, said.at, (int)line.len, line.at);
    add_nearest(evidence, number->scan.value, &faults->repair);
    buf_add_text(&faults->repair, ". Compute and print it in a cell, or correct the answer. ");
}

/* As a date of the evidence, or as the same words there. */
static bool has_date(const struct agent_evidence *evidence, const struct agent_claim_number *number)
{
    static const char *const names[] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug",
                                         "Sep", "Oct", "Nov", "Dec", "January", "February", "March",
                                         "April", "May", "June", "July", "August", "September",
                                         "October", "November", "December" };
    if (agent_evidence_has_date(evidence, number->year, number->month, number->day))
        return true;
    size_t i = agent_evidence_from(evidence, number->day);
    bool day = i < evidence->value_count && evidence->values[i].value == number->day;
    bool month = number->month >= 1 && number->month <= 12 &&
                 (agent_evidence_has_word(evidence, str_of(names[number->month - 1])) ||
                  agent_evidence_has_word(evidence, str_of(names[number->month + 11])));
    return day && month;
}

void agent_check_numbers(const struct agent_claim *claim, json_t *checks)
{
    own_evidence evidence;
    agent_evidence_open(&evidence, claim);
    struct agent_claim_reader reader;
    agent_claim_read(&reader, claim->question, claim->answer);
    struct agent_claim_faults faults = AGENT_CLAIM_FAULTS_INIT;
    struct agent_claim_number number;
    size_t held = 0, count = 0;
    for (; agent_claim_next(&reader, &number); count++) {
        uint32_t unit = 0;
        enum found found;
        read_tone(&number);
        if (number.month)
            found = has_date(&evidence, &number) ? FOUND : NOWHERE;
        else
            found = find_number(&evidence, &number, &unit);
        if (found != FOUND && !number.month && find_apart(&evidence, &number, &unit) == FOUND)
            found = FOUND;
        held += found == FOUND;
        if (found != FOUND && !number.given)
            add_fault(&evidence, &number, found, unit, &faults);
    }
    if (count == 1 && held == 1)
        agent_check_most(claim, &evidence, &number, &faults);
    bool partly = faults.count ? evidence.cut : reader.cut;
    agent_claim_add(checks, "numbers", partly, held, &faults);
    agent_check_names(claim, &evidence, checks);
    agent_claim_faults_done(&faults);
    agent_claim_done(&reader);
}
