/* Reads a number and the letter of a unit. Runs in the cli process; pure. */
#include "cli/term/span.h"

#include <stddef.h>

#include "base/attr.h"

static const struct {
    char letter;
    int64_t seconds;
} units[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 }, { 'w', 7 * 86400 } };

bool cli_span_read(struct str text, int64_t most_s, int64_t *out_s)
{
    uint64_t count;
    if (text.len < 2 || !str_to_u64((struct str){ text.at, text.len - 1 }, &count))
        return false;
    for (size_t i = 0; i < array_len(units); i++)
        if (units[i].letter == text.at[text.len - 1] &&
            count <= (uint64_t)(most_s / units[i].seconds)) {
            *out_s = (int64_t)count * units[i].seconds;
            return true;
        }
    return false;
}
