/* Counters for figures over many runs: by name, and how values are spread. Pure. Names may be
 * chosen by code in a box: there is a maximum of them, and one counter for the rest. */
#ifndef STORE_RECORDS_LOOK_TALLY_H
#define STORE_RECORDS_LOOK_TALLY_H

#include <stdint.h>

#include "base/str.h"

/* How values are spread, within one percent: 64 steps for each power of two. */
#define LOOK_SPREAD_STEPS 64
#define LOOK_SPREAD_LOW (-10) /* powers of two: from 0.001 up to 2^50 */
#define LOOK_SPREAD_HIGH 50
struct look_spread {
    uint64_t count;
    double max;
    uint32_t steps[(LOOK_SPREAD_HIGH - LOOK_SPREAD_LOW) * LOOK_SPREAD_STEPS];
};
void look_spread_add(struct look_spread *spread, double value);
/* The value that `part` of all (0.5: half) do not exceed; 0 where there is none. */
double look_spread_part(const struct look_spread *spread, double part);

#define LOOK_TALLY_MAX 1000
struct look_tally {
    size_t size; /* of an entry */
    struct look_tally_entry *table[2 * LOOK_TALLY_MAX]; /* by the hash of their names */
    struct look_tally_entry *list[LOOK_TALLY_MAX + 1];  /* in the order in which they came */
    size_t count;
};
/* The beginning of the caller's own struct, which is zero at first. */
struct look_tally_entry {
    char *name; /* may have NULs */
    size_t name_len;
    uint64_t runs;
    bool rest; /* it counts the names that are too many */
};
void look_tally_init(struct look_tally *tally, size_t size);
void look_tally_done(struct look_tally *tally);
/* Its entry, a new one if there is none. Never NULL. */
struct look_tally_entry *look_tally_find(struct look_tally *tally, struct str name);
/* The most frequent first. */
void look_tally_sort(struct look_tally *tally);

#endif
