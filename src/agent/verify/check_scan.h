/* Numbers, dates and words in prose, tables and printed values, as people and programs write
 * them: "1,234.50", "-3.2e-5", "$1.2M", "12.5 %", "1 234", "2024-03-01", "3rd", "½" not. Pure;
 * every byte is hostile; each step moves on, so that a text is scanned in linear time. */
#ifndef AGENT_VERIFY_CHECK_SCAN_H
#define AGENT_VERIFY_CHECK_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum agent_scan_kind {
    AGENT_SCAN_NUMBER,
    AGENT_SCAN_ORDINAL, /* 1st, 22nd */
    AGENT_SCAN_DATE,    /* 2024-03-01, 1/3/2024, 10:30 */
};

struct agent_scan_number {
    enum agent_scan_kind kind;
    size_t at, digits, end; /* with its sign and currency; its first digit; after its unit */
    double value;           /* with its scale, not divided by 100 for % */
    double step;            /* what the last printed digit stands for */
    double scale;           /* 1, or of k, M, million */
    bool percent, money, negative;
    bool grouped;   /* thousands stand apart: commas may also part a list */
    bool whole;     /* no fraction and no exponent was printed */
};

/* The next number at or after *io_at, which moves behind it; false: none is left. `apart`: a comma
 * never joins digits. */
bool agent_scan_number(struct str text, size_t *io_at, bool apart, struct agent_scan_number *out);

/* The next word (letters, digits, marks above ASCII; with a letter in it, or a year) at or after
 * *io_at, which moves behind it. A word of AGENT_SCAN_WORD_MAX bytes is cut. */
#define AGENT_SCAN_WORD_MAX 64
bool agent_scan_word(struct str text, size_t *io_at, struct str *out);

/* Hash of a word without regard to ASCII case; never 0. A plural's end falls away, and "average" is
 * "mean". */
uint64_t agent_scan_hash(struct str word, uint64_t seed);
/* Plain words may name a row; folds ("total", "average") name a row of results; the others say
 * nothing of which row is meant. */
enum agent_scan_class { AGENT_WORD_PLAIN, AGENT_WORD_FOLD, AGENT_WORD_COMMON };
enum agent_scan_class agent_scan_class(struct str word);
static inline bool agent_scan_is_common(struct str word)
{
    return agent_scan_class(word) != AGENT_WORD_PLAIN;
}
/* "five" is 5; "twenty-five" is not understood. -1: no number. */
int agent_scan_number_word(struct str word);
/* 1 to 12 for "March", "mar"; 0: none. */
int agent_scan_month(struct str word);
bool agent_scan_same(struct str a, const char *b); /* without regard to ASCII case */
struct str agent_scan_trim(struct str text);

#endif
