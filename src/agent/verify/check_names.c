/* Names of the answer against the evidence and the question. Process: the task's. Pure.
 * Only what looks like the name of a thing is looked for: what stands in quotes, the labels of a
 * list whose like were found, capitalised words in a row within a sentence. Prose is let be. */
#include "agent/verify/check_claim.h"

#include "agent/verify/check_items.h"
#include "base/attr.h"

#define LABELS_MAX 200
#define LABEL_BYTES_MAX 60
#define SHOWN 5

struct search {
    const struct agent_evidence *evidence;
    struct agent_tally asked; /* words of the question */
    struct agent_claim_faults faults;
    size_t held;
};

static bool is_known(const struct search *search, struct str word)
{
    return agent_scan_is_common(word) || agent_evidence_has_word(search->evidence, word) ||
           agent_tally_count(&search->asked, agent_scan_hash(word, 0)) > 0;
}

/* How many of the words that tell something are known, and how many are not. */
static void weigh(const struct search *search, struct str name, size_t *out_known,
                  size_t *out_unknown)
{
    size_t at = 0;
    struct str word;
    *out_known = *out_unknown = 0;
    while (agent_scan_word(name, &at, &word)) {
        if (agent_scan_is_common(word) || word.len < 2)
            continue;
        *out_known += is_known(search, word);
        *out_unknown += !is_known(search, word);
    }
}

static void add_fault(struct search *search, struct str name)
{
    if (search->faults.count++ >= SHOWN)
        return;
    name.len = str_cut_utf8(name, LABEL_BYTES_MAX);
    buf_printf(&search->faults.detail, "%s\"%.*s\" is nowhere in the evidence",
               search->faults.detail.len ? "; " : "", (int)name.len, name.at);
    buf_printf(&search->faults.repair,
               "The answer names \"%.*s\", which neither the question nor any output of the cells "
               "has. Name only what was found, spelt as the data has it. ",
               (int)name.len, name.at);
}

/* The label of an item or row: up to its colon, dash, bracket, bar or number. */
static struct str label_of(struct str line)
{
    struct str item = agent_items_item(line);
    if (!item.at && agent_items_is_row(line) && !agent_items_is_rule(line)) {
        item = agent_scan_trim(line);
        while (item.len && strchr("| 0123456789.", item.at[0]) && item.at[0]) {
            item.at++;
            item.len--;
        }
    }
    size_t end = 0;
    while (end < item.len && !strchr(":(|=,;", item.at[end]) &&
           !(item.at[end] == ' ' && end + 1 < item.len &&
             (item.at[end + 1] == '-' || (unsigned char)item.at[end + 1] == 0xe2 ||
              (item.at[end + 1] >= '0' && item.at[end + 1] <= '9'))))
        end++;
    struct str label = agent_scan_trim((struct str){ item.at, end });
    while (label.len && strchr("*_`\"'", label.at[0]) && label.at[0]) {
        label.at++;
        label.len--;
    }
    while (label.len && strchr("*_`\"'.", label.at[label.len - 1]) && label.at[label.len - 1])
        label.len--;
    return label.len <= LABEL_BYTES_MAX ? label : STR_NONE;
}

/* Labels of lists and tables: where most of them are known, one that is not is from nowhere. */
static void check_labels(struct search *search, struct str answer)
{
    struct str odd[LABELS_MAX];
    size_t known = 0, unknown = 0, a, b;
    for (struct str rest = answer; rest.len && known + unknown < LABELS_MAX;) {
        const char *end = memchr(rest.at, '\n', rest.len);
        size_t len = end ? (size_t)(end - rest.at) : rest.len;
        struct str label = label_of((struct str){ rest.at, len });
        rest.at += len + (end != NULL);
        rest.len -= len + (end != NULL);
        if (!label.len || label.at[0] < 'A' || (label.at[0] > 'Z' && label.at[0] < 'a'))
            continue;
        weigh(search, label, &a, &b);
        if (a && !b)
            known++;
        else if (b && !a)
            odd[unknown++] = label;
    }
    search->held += known;
    for (size_t i = 0; i < unknown && known > unknown; i++)
        add_fault(search, odd[i]);
}

/* "The five are ash, lime, yew and oak.": as labels of a list. The first stands at the end of its
 * piece. */
static void check_commas(struct search *search, struct str answer)
{
    struct str odd[LABELS_MAX], piece = { answer.at, 0 };
    struct agent_items items;
    size_t known = 0, unknown = 0, a, b;
    agent_items_count(answer, &items);
    if (items.loose < 3)
        return;
    for (size_t i = 0; i <= answer.len && unknown < LABELS_MAX; i++) {
        struct str rest = { answer.at + i, answer.len - i };
        bool comma = rest.len > 1 && !memcmp(rest.at, ", ", 2);
        bool and = rest.len > 5 && !memcmp(rest.at, " and ", 5);
        if (!comma && !and && rest.len)
            continue;
        piece.len = (size_t)(rest.at - piece.at);
        struct str word, last = STR_NONE;
        for (size_t at = 0; agent_scan_word(piece, &at, &word);)
            last = word;
        weigh(search, last, &a, &b);
        known += a > 0;
        if (b)
            odd[unknown++] = last;
        i += and ? 4 : 0;
        piece = (struct str){ answer.at + i + 1, 0 };
    }
    for (size_t i = 0; i < unknown && known > unknown; i++)
        add_fault(search, odd[i]);
}

/* "Acme Corp" within a sentence: two capitalised words or more, not at its start, none known. */
static void check_capitals(struct search *search, struct str answer)
{
    struct str word, from = STR_NONE, last = STR_NONE;
    size_t at = 0, run = 0, a, b;
    bool more = true, inside = false;
    while (more) {
        more = agent_scan_word(answer, &at, &word);
        bool adjoins =
            more && last.at && word.at == last.at + last.len + 1 && last.at[last.len] == ' ';
        bool capital = more && word.at[0] >= 'A' && word.at[0] <= 'Z' && word.len > 1;
        if (run && (!adjoins || !capital)) {
            struct str name = { from.at, (size_t)(last.at + last.len - from.at) };
            weigh(search, name, &a, &b);
            if (run > 1 && a && !b)
                search->held++;
            if (run > 1 && inside && b > 1 && !a)
                add_fault(search, name);
            run = 0;
        }
        if (capital && !run) {
            inside = adjoins;
            from = word;
        }
        run += capital;
        last = word;
    }
}

/* ": 300", " (300", " with 300": the word before it is what the number is of. */
static bool leads_to_number(struct str rest)
{
    static const char *const links[] = { ": ", " (", " = ", " with ", " has ", " had ", " at " };
    for (size_t i = 0; i < array_len(links); i++) {
        size_t len = strlen(links[i]), next = len;
        if (rest.len <= len || memcmp(rest.at, links[i], len) != 0)
            continue;
        while (next < rest.len &&
               (strchr("*$-", rest.at[next]) || (unsigned char)rest.at[next] >= 0x80))
            next++;
        return next < rest.len && rest.at[next] >= '0' && rest.at[next] <= '9';
    }
    return false;
}

/* "has Sequoia: 300": one capitalised word within a sentence that a number is given for. */
static void check_numbered(struct search *search, struct str answer)
{
    struct str word, last = STR_NONE;
    size_t at = 0;
    while (agent_scan_word(answer, &at, &word)) {
        bool inside = last.at && word.at == last.at + last.len + 1 && last.at[last.len] == ' ' &&
                      !(last.at[0] >= 'A' && last.at[0] <= 'Z' && last.len > 1 &&
                        last.at > answer.at && last.at[-1] != '\n');
        bool capital = word.at[0] >= 'A' && word.at[0] <= 'Z' && word.len > 2 &&
                       word.at[1] >= 'a' && word.at[1] <= 'z';
        struct str rest = { answer.at + at, answer.len - at };
        if (inside && capital && leads_to_number(rest) && !agent_scan_month(word) &&
            !agent_scan_is_common(word)) {
            search->held += is_known(search, word);
            if (!is_known(search, word))
                add_fault(search, word);
        }
        last = word;
    }
}

static bool is_plain(struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        if (strchr("\n={}<>()[]/\\", name.at[i]))
            return false;
    }
    return true;
}

/* "..." and “...”: all its words unknown, and no name of a file. */
static void check_quotes(struct search *search, struct str answer)
{
    static const struct {
        const char *open, *close;
    } pairs[] = { { "\"", "\"" }, { "\xe2\x80\x9c", "\xe2\x80\x9d" } };
    for (size_t p = 0; p < array_len(pairs); p++) {
        size_t open = strlen(pairs[p].open), close = strlen(pairs[p].close), i = 0, a, b;
        while (i < answer.len) {
            const char *from = memmem(answer.at + i, answer.len - i, pairs[p].open, open);
            if (!from)
                break;
            size_t start = (size_t)(from - answer.at) + open, room = answer.len - start;
            room = room > LABEL_BYTES_MAX + close ? LABEL_BYTES_MAX + close : room;
            const char *to = memmem(answer.at + start, room, pairs[p].close, close);
            i = to ? (size_t)(to - answer.at) + close : start;
            struct str name = { answer.at + start, to ? (size_t)(to - (answer.at + start)) : 0 };
            if (!name.len || !is_plain(name) || memchr(name.at, '.', name.len))
                continue;
            weigh(search, name, &a, &b);
            search->held += a && !b;
            if (b && !a)
                add_fault(search, name);
        }
    }
}

void agent_check_names(const struct agent_claim *claim, const struct agent_evidence *evidence,
                       json_t *checks)
{
    struct search search = { .evidence = evidence, .faults = AGENT_CLAIM_FAULTS_INIT };
    struct str answer = str_of(claim->answer), asked = str_of(claim->question), word;
    bool partly = answer.len > AGENT_CLAIM_ANSWER_MAX;
    answer.len = partly ? AGENT_CLAIM_ANSWER_MAX : answer.len;
    asked.len = asked.len > AGENT_CLAIM_ANSWER_MAX ? AGENT_CLAIM_ANSWER_MAX : asked.len;
    size_t at = 0;
    while (agent_scan_word(asked, &at, &word))
        agent_tally_add(&search.asked, agent_scan_hash(word, 0), 0);
    check_labels(&search, answer);
    check_capitals(&search, answer);
    check_numbered(&search, answer);
    check_commas(&search, agent_scan_trim(answer));
    check_quotes(&search, answer);
    agent_claim_add(checks, "names", search.faults.count ? evidence->cut : partly, search.held,
                    &search.faults);
    agent_claim_faults_done(&search.faults);
    agent_tally_done(&search.asked);
}
