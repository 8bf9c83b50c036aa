/* Which row the answer means by a number: the name beside it. Process: the task's. Pure.
 * In a list of numbers behind a list of as many names, the name at the same place; else the nearest
 * name before the number in its clause; else the nearest behind it there; else any before it in the
 * sentence. In a table's row, any name of the row. */
#include "agent/verify/check_claim.h"

#include "base/attr.h"

#define NAMES_MAX 64
#define UNIT_MAX 12

struct names {
    struct str at[NAMES_MAX];
    size_t count;
    bool paired; /* "respectively" */
};

static void collect(const struct agent_evidence *evidence, uint64_t group,
                    enum agent_scan_class class, struct str sentence, struct names *out)
{
    struct str word;
    size_t at = 0;
    bool of = false; /* "5% of the total": what follows is no name of the number */
    while (agent_scan_word(sentence, &at, &word) && out->count < NAMES_MAX) {
        out->paired = out->paired || agent_scan_same(word, "respectively");
        if (agent_scan_class(word) == class && agent_evidence_parts(evidence, group, word) &&
            !(of && class == AGENT_WORD_FOLD))
            out->at[out->count++] = word;
        of = agent_scan_same(word, "of") || (of && agent_scan_class(word) == AGENT_WORD_COMMON);
    }
}

static bool parts_clause(struct str sentence, size_t i)
{
    static const char *const marks[] = { ", ", "; ", " and ", " while ", " but ", " versus ",
                                         " vs ", " vs. ", " than ", " to " };
    for (size_t m = 0; m < array_len(marks); m++) {
        size_t len = strlen(marks[m]);
        if (sentence.len - i >= len && !memcmp(sentence.at + i, marks[m], len))
            return true;
    }
    return false;
}

static void clause_of(const struct agent_claim_number *number, size_t *out_from, size_t *out_to)
{
    size_t from = number->before, to = number->after;
    while (from > 0 && !parts_clause(number->sentence, from))
        from--;
    while (to < number->sentence.len && !parts_clause(number->sentence, to))
        to++;
    *out_from = from;
    *out_to = to;
}

/* Of the words that stand for one name, those that are in the fewest rows. */
static void keep_rarest(const struct agent_evidence *evidence, uint64_t group,
                        struct agent_claim_label *label)
{
    uint32_t least = UINT32_MAX;
    size_t kept = 0;
    for (int turn = 0; turn < 2; turn++) {
        for (size_t i = 0; i < label->count; i++) {
            uint64_t key = agent_scan_hash(label->words[i], group);
            uint32_t count = agent_tally_count(&evidence->rows, key);
            if (turn == 0)
                least = count < least ? count : least;
            else if (count == least)
                label->words[kept++] = label->words[i];
        }
    }
    label->count = kept;
}

static void add(struct agent_claim_label *label, struct str word)
{
    if (label->count < array_len(label->words))
        label->words[label->count++] = word;
}

/* Words that follow each other with hardly anything between: one name. */
static bool adjoin(struct str a, struct str b)
{
    return b.at - (a.at + a.len) <= 3;
}

static bool has_digit(const char *from, const char *to)
{
    for (; from < to; from++) {
        if (*from >= '0' && *from <= '9')
            return true;
    }
    return false;
}

/* `near`: no other number may stand between. */
static void take_before(const struct names *names, const char *from, const char *number, bool near,
                        struct agent_claim_label *label)
{
    for (size_t i = names->count; i-- > 0;) {
        struct str name = names->at[i];
        if (name.at >= number || name.at < from)
            continue;
        if (near && !label->count && has_digit(name.at + name.len, number))
            return;
        if (label->count && !adjoin(name, label->words[label->count - 1]))
            return;
        add(label, name);
    }
}

static void take_after(const struct names *names, const char *number, const char *to,
                       struct agent_claim_label *label)
{
    for (size_t i = 0; i < names->count; i++) {
        struct str name = names->at[i];
        if (name.at < number || name.at >= to)
            continue;
        /* Behind another number it is that number's. */
        if (!label->count && has_digit(number, name.at))
            return;
        if (label->count && !adjoin(label->words[label->count - 1], name))
            return;
        add(label, name);
    }
}

/* "(5,400 seconds)": the name right behind the number. */
static void add_unit_name(const struct names *names, const char *end,
                          struct agent_claim_label *label)
{
    for (size_t i = 0; i < names->count; i++) {
        if (names->at[i].at == end + 1)
            add(label, names->at[i]);
    }
}

/* "42 orders in 2022": a name right behind the number, led by one of these words. */
static bool is_led(const struct agent_claim_number *number, const struct names *names, size_t to)
{
    static const char *const leads[] = { "in", "for", "from", "by", "at", "on", "during", "of" };
    struct str after = { number->sentence.at + number->after, to - number->after }, word;
    size_t at = 0;
    for (int words = 0; words < 3 && agent_scan_word(after, &at, &word); words++) {
        for (size_t i = 0; i < array_len(leads); i++) {
            struct str next;
            size_t behind = at;
            if (!agent_scan_same(word, leads[i]) || !agent_scan_word(after, &behind, &next))
                continue;
            for (size_t n = 0; n < names->count; n++) {
                if (names->at[n].at == next.at)
                    return true;
            }
        }
    }
    return false;
}

/* Is this all that stands between two members of a list: ",", "and", ", and"? One more word may
 * stand before it: "5 kg and", "Acme Corp and". */
static bool parts_list(const char *from, const char *to, bool word_before)
{
    static const char *const marks[] = { ",", "and", ", and", "&" };
    struct str gap = agent_scan_trim((struct str){ from, (size_t)(to - from) });
    size_t word = 0;
    for (size_t m = 0; m < array_len(marks); m++) {
        if (str_is(gap, marks[m]))
            return true;
    }
    while (word_before && word < gap.len && !strchr(" ,", gap.at[word]))
        word++;
    return word > 0 && word <= UNIT_MAX && parts_list(gap.at + word, gap.at + gap.len, false);
}

/* The numbers that stand in one list with this one: how many, which of them it is, and where the
 * list begins. */
static size_t list_of(const struct agent_claim_number *number, size_t *out_place, size_t *out_from)
{
    struct agent_scan_number each;
    size_t at = 0, count = 0, end = 0;
    bool found = false;
    while (agent_scan_number(number->sentence, &at, false, &each)) {
        const char *text = number->sentence.at;
        if (count && !parts_list(text + end, text + each.at, true)) {
            if (found)
                return count;
            count = 0;
        }
        if (count == 0)
            *out_from = each.at;
        if (each.at == number->before) {
            *out_place = count;
            found = true;
        }
        count++;
        end = each.end;
    }
    return found ? count : 0;
}

/* "oak and elm are 120.5 and 80.25": as many names in a list before as numbers in a list; each has
 * the one at its own place. */
static bool take_paired(const struct names *names, const struct agent_claim_number *number,
                        struct agent_claim_label *label)
{
    size_t place = 0, from = 0, count = list_of(number, &place, &from), last = names->count;
    const char *start = number->sentence.at + from;
    while (last > 0 && names->at[last - 1].at >= start)
        last--;
    if (count < 2 || !last)
        return false;
    struct str end = names->at[last - 1];
    for (const char *c = end.at + end.len; c < start; c++) {
        if (*c == ',' || *c == ';' || (*c >= '0' && *c <= '9') || !strncmp(c, " and ", 5))
            return false; /* the numbers follow something else */
    }
    size_t members = 1; /* counted from the last */
    for (size_t i = last; i-- > 0;) {
        struct str name = names->at[i];
        if (members == count - place)
            add(label, name);
        if (!i)
            break;
        const char *gap = names->at[i - 1].at + names->at[i - 1].len;
        if (gap + 1 != name.at && !parts_list(gap, name.at, true))
            break;
        members += gap + 1 != name.at; /* "Cedar Clinics" is one */
    }
    if (members == count && label->count)
        return true;
    label->count = 0;
    return false;
}

bool agent_claim_label(const struct agent_evidence *evidence, uint64_t group,
                       enum agent_scan_class class, const struct agent_claim_number *number,
                       struct agent_claim_label *out)
{
    struct names names = { .count = 0 };
    *out = (struct agent_claim_label){ .count = 0 };
    collect(evidence, group, class, number->sentence, &names);
    if (!names.count)
        return false;
    if (!number->row && class == AGENT_WORD_PLAIN && take_paired(&names, number, out)) {
        keep_rarest(evidence, group, out);
        return true;
    }
    const char *start = number->sentence.at;
    size_t from, to;
    clause_of(number, &from, &to);
    if (!number->row && !names.paired) {
        if (!is_led(number, &names, to))
            take_before(&names, start + from, start + number->before, class == AGENT_WORD_FOLD,
                        out);
        if (number->before > 0 && start[number->before - 1] == '(')
            add_unit_name(&names, start + number->after, out);
        if (!out->count)
            take_after(&names, start + number->after, start + to, out);
    }
    if (class == AGENT_WORD_FOLD && !out->count && !number->row)
        return false;
    if (out->count || number->row) {
        for (size_t i = 0; i < names.count && number->row; i++)
            add(out, names.at[i]);
        keep_rarest(evidence, group, out);
        return true;
    }
    for (size_t i = 0; i < names.count; i++) {
        if (names.paired || names.at[i].at < start + number->before)
            add(out, names.at[i]);
    }
    return out->count > 0;
}
