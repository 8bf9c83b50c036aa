/* Is the answer of the asked kind: a number, a date, yes or no, a name; is its list in order?
 * Process: the task's. Pure. 1: it is, 0: it is not, -1: that cannot be told. */
#include "agent/verify/check_items.h"
#include "agent/verify/check_scan.h"
#include "agent/verify/checklist.h"
#include "agent/verify/evidence.h"
#include "base/attr.h"
#include "base/err.h"
#include "base/json.h"

#define NAME_WORDS_MAX 3 /* of an answer that is a name and nothing else */

static int tell(struct buf *why, int is, const char *text)
{
    buf_add_text(why, text);
    return is;
}

/* Numbers of the text: how many, how many of them whole, of days, and in percent. */
struct tally {
    size_t numbers, whole, dates, percent;
};

static struct tally numbers_of(struct str text)
{
    struct tally out = { 0 };
    struct agent_scan_number number;
    size_t at = 0;
    while (agent_scan_number(text, &at, false, &number)) {
        bool date = number.kind == AGENT_SCAN_DATE;
        bool small = number.value < 1e15 && number.value > -1e15;
        double rest = small ? number.value - (double)(int64_t)number.value : 0;
        bool year = number.whole && number.value >= 1000 && number.value <= 2200;
        out.numbers += !date;
        out.whole += !date && (number.whole || rest == 0 || number.scale > 1);
        out.dates += date || year;
        out.percent += number.percent;
    }
    return out;
}

static bool has_word(struct str text, bool (*is)(struct str word))
{
    struct str word;
    size_t at = 0;
    while (agent_scan_word(text, &at, &word)) {
        if (is(word))
            return true;
    }
    return false;
}

static bool is_count_word(struct str word)
{
    return agent_scan_number_word(word) >= 0 || agent_scan_same(word, "none") ||
           agent_scan_same(word, "no") || agent_scan_same(word, "once") ||
           agent_scan_same(word, "twice");
}

static bool is_symbol_word(struct str word)
{
    static const char *const words[] = { "pi", "sqrt", "infinity", "infinite", "undefined", "e",
                                         "none", "x", "n", "log", "frac", "\xcf\x80" };
    for (size_t i = 0; i < array_len(words); i++) {
        if (agent_scan_same(word, words[i]))
            return true;
    }
    return false;
}

static bool is_day_word(struct str word)
{
    static const char *const days[] = { "monday", "tuesday", "wednesday", "thursday", "friday",
                                        "saturday", "sunday", "today", "yesterday", "tomorrow" };
    for (size_t i = 0; i < array_len(days); i++) {
        if (agent_scan_same(word, days[i]))
            return true;
    }
    return agent_scan_month(word) > 0 || (word.len == 2 && (word.at[0] | 32) == 'q');
}

static bool is_verdict_word(struct str word)
{
    static const char *const words[] = { "yes", "no", "true", "false", "not", "neither" };
    for (size_t i = 0; i < array_len(words); i++) {
        if (agent_scan_same(word, words[i]))
            return true;
    }
    return false;
}

static int is_integer(struct str answer, const struct agent_claim *claim, struct buf *why)
{
    (void)claim;
    struct tally found = numbers_of(answer);
    if (found.whole || has_word(answer, is_count_word))
        return tell(why, 1, "the answer says how many");
    return tell(why, 0, found.numbers ? "the answer gives no whole number"
                                      : "the answer gives no number");
}

static int is_number(struct str answer, const struct agent_claim *claim, struct buf *why)
{
    (void)claim;
    if (numbers_of(answer).numbers || has_word(answer, is_count_word))
        return tell(why, 1, "the answer gives a number");
    if (has_word(answer, is_symbol_word))
        return tell(why, -1, "the answer may be a formula");
    return tell(why, 0, "the answer gives no number");
}

static int is_percent(struct str answer, const struct agent_claim *claim, struct buf *why)
{
    (void)claim;
    struct tally found = numbers_of(answer);
    if (found.percent)
        return tell(why, 1, "the answer gives a percentage");
    if (!found.numbers)
        return tell(why, 0, "the answer gives no percentage");
    return tell(why, -1, "the answer gives a number without %");
}

static int is_date(struct str answer, const struct agent_claim *claim, struct buf *why)
{
    (void)claim;
    if (numbers_of(answer).dates || has_word(answer, is_day_word))
        return tell(why, 1, "the answer gives a date");
    return tell(why, 0, "the answer gives no date");
}

static int is_yes_no(struct str answer, const struct agent_claim *claim, struct buf *why)
{
    (void)claim;
    return has_word(answer, is_verdict_word) ? tell(why, 1, "the answer says yes or no")
                                             : tell(why, 0, "the answer says neither yes nor no");
}

/* The inside of a fenced block, else the whole. */
static struct str inside_fence(struct str answer)
{
    const char *open = memmem(answer.at, answer.len, "```", 3);
    if (!open)
        return agent_scan_trim(answer);
    struct str rest = { open + 3, answer.len - (size_t)(open + 3 - answer.at) };
    const char *line = memchr(rest.at, '\n', rest.len);
    const char *close = line ? memmem(line, rest.len - (size_t)(line - rest.at), "```", 3) : NULL;
    return close ? agent_scan_trim((struct str){ line + 1, (size_t)(close - line - 1) })
                 : agent_scan_trim(answer);
}

static int is_json(struct str answer, const struct agent_claim *claim, struct buf *why)
{
    struct err err = ERR_INIT;
    own_json value = json_read(inside_fence(answer), 1u << 20, &err);
    if (value)
        return tell(why, 1, "the answer is JSON");
    size_t i;
    json_t *made;
    json_array_foreach (claim->artifacts, i, made) {
        const char *path = json_string_value(json_object_get(made, "path"));
        const char *format = path ? agent_format_of_path(path) : NULL;
        own_buf unsaid = BUF_INIT(512);
        if (format && !strcmp(format, "json") && claim->content &&
            agent_format_check("json", claim->content(claim->user, path), &unsaid))
            return tell(why, 1, "a JSON file was made");
    }
    return tell(why, 0, "the answer is no JSON, and no JSON file was made");
}

/* A word that tells something, that the question did not have, and that a cell showed. A few
 * words of which no cell showed any are a name from nowhere. */
static int is_name(struct str answer, const struct agent_claim *claim, struct buf *why)
{
    own_evidence evidence;
    agent_evidence_open(&evidence, claim);
    struct str word;
    size_t at = 0, words = 0, shown = 0;
    bool any = false;
    while (agent_scan_word(answer, &at, &word)) {
        char text[AGENT_SCAN_WORD_MAX + 1];
        memcpy(text, word.at, word.len);
        text[word.len] = '\0';
        any = any || !(word.at[0] >= '0' && word.at[0] <= '9');
        if (agent_scan_is_common(word))
            continue;
        words++;
        if (agent_evidence_has_word(&evidence, word))
            shown += strcasestr(claim->question, text) ? 0 : 1;
    }
    if (shown)
        return tell(why, 1, "the answer gives a name that the cells showed");
    if (!any)
        return tell(why, 0, "the answer gives no name");
    if (words <= NAME_WORDS_MAX && evidence.unit_count && !evidence.cut)
        return tell(why, 0, "no cell showed the name that the answer gives");
    return tell(why, -1, "whether the answer gives a name cannot be told");
}

int agent_answer_is(const char *kind, struct str answer, const struct agent_claim *claim,
                    struct buf *why)
{
    static const struct {
        const char *kind;
        int (*is)(struct str answer, const struct agent_claim *claim, struct buf *why);
    } kinds[] = {
        { "integer", is_integer }, { "number", is_number }, { "percent", is_percent },
        { "date", is_date },       { "yes_no", is_yes_no }, { "json", is_json },
        { "name", is_name },
    };
    for (size_t i = 0; i < array_len(kinds); i++) {
        if (!strcmp(kind, kinds[i].kind))
            return kinds[i].is(answer, claim, why);
    }
    return tell(why, -1, "not a kind that can be checked");
}

int agent_answer_is_sorted(const char *order, struct str answer, struct buf *why)
{
    double last = 0;
    size_t count = 0;
    bool up = true, down = true;
    for (struct str rest = answer; rest.len;) {
        const char *end = memchr(rest.at, '\n', rest.len);
        size_t len = end ? (size_t)(end - rest.at) : rest.len, at = 0;
        struct str line = agent_items_item((struct str){ rest.at, len });
        struct agent_scan_number number, first;
        rest.at += len + (end != NULL);
        rest.len -= len + (end != NULL);
        bool one = line.at && agent_scan_number(line, &at, false, &first);
        if (line.at && (!one || first.kind != AGENT_SCAN_NUMBER ||
                        agent_scan_number(line, &at, false, &number)))
            return tell(why, -1, "which number the list is sorted by cannot be told");
        if (!one)
            continue;
        up = up && (!count || first.value >= last);
        down = down && (!count || first.value <= last);
        last = first.value;
        count++;
    }
    if (count < 3)
        return tell(why, -1, "there is no list whose order could be checked");
    bool holds = !strcmp(order, "ascending")    ? up
                 : !strcmp(order, "descending") ? down
                                                : up || down;
    return tell(why, holds, holds ? "the list is in order" : "the list is not in the asked order");
}
