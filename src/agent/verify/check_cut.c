/* Outputs that were cut in their middle: what is left of both is compared from its beginning and
 * from its end, by whole lines. Process: the task's. Pure. */
#include <stdlib.h>

#include "agent/verify/script.h"
#include "base/buf.h"
#include "base/str.h"

static const char mark_begin[] = "\n... ", mark_end[] = " bytes left out ...\n";

/* The mark of what was left out, read at `at`: its length, 0: none. */
static size_t read_mark(struct str text, size_t at, uint64_t *out_bytes)
{
    size_t begin = sizeof mark_begin - 1, end = sizeof mark_end - 1, digits = 0;
    if (text.len - at < begin + end + 1 || memcmp(text.at + at, mark_begin, begin) != 0)
        return 0;
    const char *number = text.at + at + begin;
    size_t room = text.len - at - begin;
    while (digits < room && digits < 19 && number[digits] >= '0' && number[digits] <= '9')
        digits++;
    if (!str_to_u64((struct str){ number, digits }, out_bytes) || room - digits < end ||
        memcmp(number + digits, mark_end, end) != 0)
        return 0;
    return begin + digits + end;
}

bool agent_cut_find(struct str text, uint64_t bytes, struct agent_cut *out)
{
    *out = (struct agent_cut){ .head = text, .tail = text };
    if (bytes == text.len)
        return true;
    for (size_t at = 0; at < text.len; at++) {
        uint64_t left_out = 0;
        const char *next = memchr(text.at + at, '\n', text.len - at);
        if (!next)
            return false;
        at = (size_t)(next - text.at);
        size_t len = read_mark(text, at, &left_out);
        /* A program may print such a line too: only the true one makes the count right. */
        if (!len || left_out + text.len - len != bytes)
            continue;
        *out = (struct agent_cut){ .cut = true,
                                   .head = { text.at, at },
                                   .tail = { text.at + at + len, text.len - at - len } };
        return true;
    }
    return false;
}

static size_t lines_of(struct str text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++)
        count += text.at[i] == '\n';
    return count;
}

/* The first lines, with their ends. */
static struct str first_lines(struct str text, size_t count)
{
    size_t i = 0;
    while (i < text.len && count > 0)
        count -= text.at[i++] == '\n';
    return (struct str){ text.at, i };
}

/* The end of the text that has so many line ends, from a line's beginning on. */
static struct str last_lines(struct str text, size_t count)
{
    size_t i = text.len;
    while (i > 0 && !(count == 0 && text.at[i - 1] == '\n'))
        count -= text.at[--i] == '\n';
    return (struct str){ text.at + i, text.len - i };
}

static bool same_ends(struct str old, struct str new, bool tail, const char *today,
                      bool *io_exact, struct buf *why)
{
    size_t a = lines_of(old), b = lines_of(new), lines = a < b ? a : b;
    if (lines > 0) { /* the line at the cut is not whole */
        old = tail ? last_lines(old, lines - 1) : first_lines(old, lines);
        new = tail ? last_lines(new, lines - 1) : first_lines(new, lines);
    } else {
        size_t len = old.len < new.len ? old.len : new.len;
        old = (struct str){ tail ? old.at + old.len - len : old.at, len };
        new = (struct str){ tail ? new.at + new.len - len : new.at, len };
    }
    *io_exact = *io_exact && str_eq(old, new);
    return str_eq(old, new) || agent_fold_same(old, new, today, why);
}

bool agent_cut_is_same(const struct agent_cut *old, const struct agent_cut *new, const char *today,
                       bool *io_exact, struct buf *why)
{
    if (!old->cut && !new->cut) {
        *io_exact = *io_exact && str_eq(old->head, new->head);
        return agent_fold_same(old->head, new->head, today, why);
    }
    return (!new->head.at || same_ends(old->head, new->head, false, today, io_exact, why)) &&
           (!new->tail.at || same_ends(old->tail, new->tail, true, today, io_exact, why));
}
