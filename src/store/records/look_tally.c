/* Counters by name, and spreads. Pure. */
#include "store/records/look_tally.h"

#include <math.h>
#include <stdlib.h>

#include "base/attr.h"
#include "base/buf.h"

void look_spread_add(struct look_spread *spread, double value)
{
    int power = 0;
    double part = value > 0 ? frexp(value, &power) : 0.5; /* in [0.5, 1) */
    int64_t step = ((int64_t)power - LOOK_SPREAD_LOW) * LOOK_SPREAD_STEPS +
                   (int64_t)((part - 0.5) * 2 * LOOK_SPREAD_STEPS);
    int64_t last = (int64_t)array_len(spread->steps) - 1;
    if (value <= 0 || step < 0)
        step = 0;
    spread->steps[step < last ? step : last]++;
    spread->count++;
    if (value > spread->max)
        spread->max = value;
}

double look_spread_part(const struct look_spread *spread, double part)
{
    uint64_t seen = 0, wanted = (uint64_t)(part * (double)spread->count + 0.999);
    size_t step = 0;
    if (spread->count == 0)
        return 0;
    for (; step < array_len(spread->steps) - 1; step++) {
        seen += spread->steps[step];
        if (seen >= wanted)
            break;
    }
    int power = (int)(step / LOOK_SPREAD_STEPS) + LOOK_SPREAD_LOW;
    double middle = 0.5 + ((double)(step % LOOK_SPREAD_STEPS) + 0.5) / 2 / LOOK_SPREAD_STEPS;
    double value = step == 0 ? 0 : ldexp(middle, power);
    return value < spread->max ? value : spread->max;
}

void look_tally_init(struct look_tally *tally, size_t size)
{
    *tally = (struct look_tally){ .size = size };
}

void look_tally_done(struct look_tally *tally)
{
    for (size_t i = 0; i < tally->count; i++) {
        free(tally->list[i]->name);
        free(tally->list[i]);
    }
    tally->count = 0;
}

static struct look_tally_entry *add(struct look_tally *tally, struct str name)
{
    struct look_tally_entry *entry = buf_alloc_zero(1, tally->size);
    entry->name = buf_strdup(name);
    entry->name_len = name.len;
    tally->list[tally->count++] = entry;
    return entry;
}

struct look_tally_entry *look_tally_find(struct look_tally *tally, struct str name)
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < name.len; i++)
        hash = (hash ^ (unsigned char)name.at[i]) * 1099511628211u;
    size_t at = hash % array_len(tally->table);
    for (; tally->table[at]; at = (at + 1) % array_len(tally->table)) {
        struct look_tally_entry *entry = tally->table[at];
        if (str_eq((struct str){ entry->name, entry->name_len }, name))
            return entry;
    }
    if (tally->count < LOOK_TALLY_MAX)
        return tally->table[at] = add(tally, name);
    if (tally->count == LOOK_TALLY_MAX)
        add(tally, STR(""))->rest = true;
    return tally->list[LOOK_TALLY_MAX];
}

static int compare(const void *a, const void *b)
{
    const struct look_tally_entry *x = *(struct look_tally_entry *const *)a;
    const struct look_tally_entry *y = *(struct look_tally_entry *const *)b;
    return x->runs != y->runs ? (x->runs < y->runs) - (x->runs > y->runs)
                              : strcmp(x->name, y->name);
}

void look_tally_sort(struct look_tally *tally)
{
    qsort(tally->list, tally->count, sizeof *tally->list, compare);
}
