/* Are two outputs the same, but for what no program repeats? Process: the task's. Pure.
 * Line by line, in step: what is equal costs nothing, and a line that differs is looked at with
 * numbers, addresses and times folded, then as a set whose order is free. */
#include <math.h>
#include <stdlib.h>

#include "agent/verify/check_scan.h"
#include "agent/verify/script.h"
#include "base/attr.h"
#include "base/buf.h"

#define RELATIVE 1e-9
#define SHOWN_MAX 160
#define PIECES_MAX 2000

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool hex(char c)
{
    return digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* A number as printed: digits, a point, an exponent. Its end. */
static size_t number_end(struct str in, size_t i)
{
    while (i < in.len && digit(in.at[i]))
        i++;
    if (i + 1 < in.len && in.at[i] == '.' && digit(in.at[i + 1])) {
        i++;
        while (i < in.len && digit(in.at[i]))
            i++;
    }
    size_t power = i + 1 < in.len && (in.at[i] == 'e' || in.at[i] == 'E') ? i + 1 : 0;
    if (power && power + 1 < in.len && (in.at[power] == '-' || in.at[power] == '+'))
        power++;
    if (power && power < in.len && digit(in.at[power])) {
        i = power;
        while (i < in.len && digit(in.at[i]))
            i++;
    }
    return i;
}

static double value_of(struct str in, size_t from, size_t to)
{
    char copy[64];
    size_t len = to - from < sizeof copy ? to - from : sizeof copy - 1;
    memcpy(copy, in.at + from, len);
    copy[len] = '\0';
    return strtod(copy, NULL);
}

static bool close_enough(double a, double b)
{
    double larger = fabs(a) > fabs(b) ? fabs(a) : fabs(b);
    return fabs(a - b) <= larger * RELATIVE || larger < 1e-12;
}

/* Where both stand at a number's first digit, at the same depth of text. */
static bool fold_numbers(struct str a, struct str b, size_t *io_a, size_t *io_b, bool any)
{
    size_t start_a = *io_a, start_b = *io_b;
    /* The difference may be within the number: back to its start. */
    while (start_a > 0 && start_b > 0 && (digit(a.at[start_a - 1]) || a.at[start_a - 1] == '.') &&
           a.at[start_a - 1] == b.at[start_b - 1]) {
        start_a--;
        start_b--;
    }
    if (start_a >= a.len || start_b >= b.len || !digit(a.at[start_a]) || !digit(b.at[start_b]))
        return false;
    size_t end_a = number_end(a, start_a), end_b = number_end(b, start_b);
    if (end_a < *io_a || end_b < *io_b || (end_a == *io_a && end_b == *io_b))
        return false; /* the difference is behind the number */
    if (!any && !close_enough(value_of(a, start_a, end_a), value_of(b, start_b, end_b)))
        return false;
    *io_a = end_a;
    *io_b = end_b;
    return true;
}

/* 0x7f...: both stand within an address. */
static bool fold_address(struct str a, struct str b, size_t *io_a, size_t *io_b)
{
    size_t i = *io_a;
    while (i > 0 && hex(a.at[i - 1]))
        i--;
    if (i < 2 || a.at[i - 1] != 'x' || a.at[i - 2] != '0' || *io_a - i > *io_b)
        return false;
    size_t end_a = *io_a, end_b = *io_b;
    while (end_a < a.len && hex(a.at[end_a]))
        end_a++;
    while (end_b < b.len && hex(b.at[end_b]))
        end_b++;
    bool moved = end_a > *io_a || end_b > *io_b;
    *io_a = end_a;
    *io_b = end_b;
    return moved;
}

/* Equal in step, numbers nearly so; `any`: whatever the numbers are. */
static bool same_line(struct str a, struct str b, bool any)
{
    size_t i = 0, j = 0;
    while (i < a.len || j < b.len) {
        if (i < a.len && j < b.len && a.at[i] == b.at[j]) {
            i++;
            j++;
            continue;
        }
        if (!fold_address(a, b, &i, &j) && !fold_numbers(a, b, &i, &j, any)) {
            bool space_a = i < a.len && a.at[i] == ' ', space_b = j < b.len && b.at[j] == ' ';
            if (!any || (!space_a && !space_b))
                return false;
            i += space_a; /* a table's columns move with the width of its numbers */
            j += space_b;
        }
    }
    return true;
}

/* Does the line tell how long something took, or what time it is? */
static bool tells_time(struct str line, const char *today)
{
    static const char *const words[] = { "elapsed", "took", "seconds", "second", "duration",
                                         "runtime", "ms",   "sec",     "secs",   "milliseconds",
                                         "timing",  "Wall", "s",       "us",     "ns" };
    struct str word;
    size_t at = 0;
    if (today[0] && memmem(line.at, line.len, today, strlen(today)))
        return true;
    while (agent_scan_word(line, &at, &word)) {
        for (size_t i = 0; i < array_len(words); i++) {
            if (agent_scan_same(word, words[i]))
                return true;
        }
    }
    for (size_t i = 1; i < line.len; i++) { /* 0.12s, 35ms */
        bool unit =
            line.at[i] == 's' || (line.at[i] == 'm' && i + 1 < line.len && line.at[i + 1] == 's');
        if (unit && digit(line.at[i - 1]) &&
            (i + 1 == line.len || !((line.at[i + 1] | 32) >= 'a' && (line.at[i + 1] | 32) <= 'z') ||
             line.at[i] == 'm'))
            return true;
    }
    return false;
}

static int by_text(const void *a, const void *b)
{
    const struct str *x = a, *y = b;
    int order = memcmp(x->at, y->at, x->len < y->len ? x->len : y->len);
    return order ? order : (x->len > y->len) - (x->len < y->len);
}

static size_t cut_pieces(struct str line, struct str *out)
{
    size_t start = 0, count = 0;
    for (size_t i = 0; i <= line.len; i++) {
        if (i < line.len && !strchr(",{}", line.at[i]))
            continue;
        struct str piece = agent_scan_trim((struct str){ line.at + start, i - start });
        if (piece.len && count < PIECES_MAX)
            out[count++] = piece;
        start = i + 1;
    }
    qsort(out, count, sizeof *out, by_text);
    return count;
}

/* {3, 1, 2} is {1, 2, 3}. */
static bool same_set(struct str a, struct str b)
{
    if (a.len != b.len || !memchr(a.at, '{', a.len) || !memchr(b.at, '{', b.len))
        return false;
    struct str *x = buf_alloc_zero(2 * PIECES_MAX, sizeof *x), *y = x + PIECES_MAX;
    size_t n = cut_pieces(a, x);
    bool same = n == cut_pieces(b, y) && n < PIECES_MAX;
    for (size_t i = 0; i < n && same; i++)
        same = str_eq(x[i], y[i]);
    free(x);
    return same;
}

static struct str take_line(struct str *rest)
{
    const char *end = rest->len ? memchr(rest->at, '\n', rest->len) : NULL;
    struct str line = { rest->at, end ? (size_t)(end - rest->at) : rest->len };
    rest->at += line.len + (end != NULL);
    rest->len -= line.len + (end != NULL);
    while (line.len && strchr(" \r\t", line.at[line.len - 1]) && line.at[line.len - 1])
        line.len--;
    return line;
}

bool agent_fold_same(struct str before, struct str after, const char *today, struct buf *why)
{
    before = before.at ? before : STR("");
    after = after.at ? after : STR("");
    while (before.len || after.len) {
        struct str a = take_line(&before), b = take_line(&after);
        if (str_eq(a, b) || same_line(a, b, false) || same_set(a, b) ||
            (tells_time(a, today) && tells_time(b, today) && same_line(a, b, true)))
            continue;
        size_t cut_a = str_cut_utf8(a, SHOWN_MAX), cut_b = str_cut_utf8(b, SHOWN_MAX);
        buf_printf(why, "\"%.*s\" before, \"%.*s\" now", (int)cut_a, a.at ? a.at : "", (int)cut_b,
                   b.at ? b.at : "");
        return false;
    }
    return true;
}
