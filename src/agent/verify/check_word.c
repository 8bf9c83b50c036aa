/* Words in text: which they are, and which say nothing. Process: the task's. Pure. */
#include <strings.h>

#include "agent/verify/check_scan.h"
#include "base/attr.h"

static bool inner(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Length of one letter or digit at `i`, 0 for anything else. Marks such as “ and – (E2 80 xx)
 * and the no-break space (C2 A0) part words. */
static size_t step_of(struct str text, size_t i)
{
    unsigned char c = (unsigned char)text.at[i];
    if (c < 0x80)
        return inner(c) ? 1 : 0;
    uint32_t point;
    size_t n = str_decode_utf8((struct str){ text.at + i, text.len - i }, &point);
    if (n == 0 || point < 0xc0 || (point >= 0x2000 && point < 0x2100) || point == 0xd7)
        return 0;
    return n;
}

static bool is_year(struct str word)
{
    return word.len == 4 && (!memcmp(word.at, "19", 2) || !memcmp(word.at, "20", 2));
}

bool agent_scan_word(struct str text, size_t *io_at, struct str *out)
{
    size_t i = *io_at, n;
    while (i < text.len) {
        size_t start = i;
        bool letters = false;
        while (i < text.len && (n = step_of(text, i)) > 0) {
            letters = letters || text.at[i] < '0' || text.at[i] > '9';
            i += n;
        }
        struct str word = { text.at + start, i - start };
        bool decimal = (i + 1 < text.len && text.at[i] == '.' && text.at[i + 1] >= '0' &&
                        text.at[i + 1] <= '9') ||
                       (start > 0 && strchr(".,", text.at[start - 1]));
        if (word.len && (letters || (is_year(word) && !decimal))) {
            word.len = word.len > AGENT_SCAN_WORD_MAX ? AGENT_SCAN_WORD_MAX : word.len;
            *out = word;
            *io_at = i;
            return true;
        }
        if (i == start)
            i++;
    }
    *io_at = text.len;
    return false;
}

/* One name for what has several. */
static struct str canonical(struct str word)
{
    static const char *const same[][2] = {
        { "average", "mean" },  { "avg", "mean" },     { "sum", "total" },    { "totals", "total" },
        { "maximum", "max" },   { "highest", "max" },  { "largest", "max" },  { "minimum", "min" },
        { "lowest", "min" },    { "smallest", "min" }, { "difference", "diff" },
        { "growth", "change" }, { "percentage", "percent" },
    };
    for (size_t i = 0; i < array_len(same); i++) {
        if (agent_scan_same(word, same[i][0]))
            return str_of(same[i][1]);
    }
    return word;
}

uint64_t agent_scan_hash(struct str word, uint64_t seed)
{
    uint64_t hash = 1469598103934665603ull ^ (seed * 0x9e3779b97f4a7c15ull);
    if (word.len <= 10 && agent_scan_class(word) == AGENT_WORD_FOLD)
        word = canonical(word);
    else if (word.len > 3 && (word.at[word.len - 1] == 's' || word.at[word.len - 1] == 'S'))
        word.len--;
    for (size_t i = 0; i < word.len; i++) {
        unsigned char c = (unsigned char)word.at[i];
        hash = (hash ^ (c >= 'A' && c <= 'Z' ? c + 32u : c)) * 1099511628211ull;
    }
    hash ^= hash >> 29;
    return hash ? hash : 1;
}

bool agent_scan_same(struct str a, const char *b)
{
    return a.len == strlen(b) && strncasecmp(a.at ? a.at : "", b, a.len) == 0;
}

/* Sorted both: found by halves. */
static const char *const common[] = {
    "a", "about", "across", "all", "also", "amount", "an", "and", "answer", "any", "are", "as",
    "at", "be", "been", "between", "both", "but", "by", "can", "compared", "customer",
    "customers", "data", "each", "equal", "equals", "every", "file", "final", "following", "for",
    "from", "had", "has", "have", "i", "if", "in", "int", "is", "it", "its", "least", "less",
    "list", "more", "most", "name", "no", "not", "number", "of", "on", "one", "only", "or", "our",
    "out", "over", "per", "print", "respectively", "result", "results", "row", "rows", "s", "so",
    "than", "that", "the", "their", "then", "there", "these", "they", "this", "to", "top",
    "under", "units", "up", "value", "values", "was", "we", "were", "when", "where", "which",
    "while", "with", "within", "you",
};
static const char *const folds[] = {
    "average", "avg", "best", "change", "count", "decrease", "diff", "difference", "gap",
    "growth", "highest", "increase", "largest", "lowest", "max", "maximum", "mean", "median",
    "min", "minimum", "overall", "percent", "percentage", "range", "ratio", "share", "smallest",
    "std", "sum", "total", "totals", "worst",
};

static bool is_among(struct str word, const char *const *list, size_t count)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t mid = (low + high) / 2;
        int order = strncasecmp(word.at, list[mid], word.len);
        if (order == 0 && list[mid][word.len] == '\0')
            return true;
        if (order > 0)
            low = mid + 1;
        else
            high = mid;
    }
    return false;
}

enum agent_scan_class agent_scan_class(struct str word)
{
    if (is_among(word, common, array_len(common)))
        return AGENT_WORD_COMMON;
    return is_among(word, folds, array_len(folds)) ? AGENT_WORD_FOLD : AGENT_WORD_PLAIN;
}

int agent_scan_number_word(struct str word)
{
    static const char *const words[] = {
        "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
        "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
        "nineteen", "twenty",
    };
    for (size_t i = 0; i < array_len(words); i++) {
        if (agent_scan_same(word, words[i]))
            return (int)i;
    }
    return agent_scan_same(word, "thirty") ? 30 : agent_scan_same(word, "fifty") ? 50
           : agent_scan_same(word, "hundred") ? 100 : -1;
}

int agent_scan_month(struct str word)
{
    static const char *const names[] = { "january", "february", "march", "april", "may", "june",
                                         "july", "august", "september", "october", "november",
                                         "december" };
    for (size_t i = 0; i < array_len(names); i++) {
        if (agent_scan_same(word, names[i]) ||
            (word.len == 3 && strncasecmp(word.at, names[i], 3) == 0))
            return (int)i + 1;
    }
    return 0;
}

struct str agent_scan_trim(struct str text)
{
    while (text.len && strchr(" \t\r\n", text.at[0]) && text.at[0]) {
        text.at++;
        text.len--;
    }
    while (text.len && strchr(" \t\r\n", text.at[text.len - 1]) && text.at[text.len - 1])
        text.len--;
    return text;
}
