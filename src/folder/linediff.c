/* Lines that both texts begin or end with are left out, then Myers' greedy algorithm finds the
 * rest. Its work grows with the square of the differences, so it stops at DEPTH_MAX of them. Any
 * process; pure. */
#include "folder/linediff.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"

#define DEPTH_MAX 2000 /* differing lines that are told apart: 16 MB for the way back */
#define CONTEXT 3
#define LOOK 8000

struct line {
    struct str text; /* with its newline */
    uint64_t hash;
    bool changed;
};

struct side {
    struct line *at;
    size_t count;
};

bool linediff_is_text(struct str bytes)
{
    return bytes.len == 0 || !memchr(bytes.at, 0, bytes.len < LOOK ? bytes.len : LOOK);
}

static uint64_t hash_of(struct str text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < text.len; i++)
        hash = (hash ^ (unsigned char)text.at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static struct side split(struct str text)
{
    /* Also of an empty text there is a place: nothing is added to NULL. */
    struct side side = { buf_list_room(NULL, 0, sizeof *side.at), 0 };
    while (text.len > 0) {
        const char *end = memchr(text.at, '\n', text.len);
        size_t len = end ? (size_t)(end - text.at) + 1 : text.len;
        side.at = buf_list_room(side.at, side.count, sizeof *side.at);
        struct line *line = &side.at[side.count++];
        line->text = (struct str){ text.at, len };
        line->hash = hash_of(line->text);
        text = (struct str){ text.at + len, text.len - len };
    }
    return side;
}

static bool same(const struct line *a, const struct line *b)
{
    return a->hash == b->hash && str_eq(a->text, b->text);
}

/* --- Myers --- */

struct myers {
    const struct line *a, *b;
    long n, m;
    int32_t *reach; /* for each diagonal: how far into `a` */
    int32_t *past[DEPTH_MAX + 1]; /* its part -d..d, after d differences */
};

static long start_of(const int32_t *reach, long k, long d)
{
    return k == -d || (k != d && reach[k - 1] < reach[k + 1]) ? reach[k + 1] : reach[k - 1] + 1;
}

/* The number of differences, or -1 past DEPTH_MAX. `reach` is at its middle. */
static long search(struct myers *w, int32_t *reach)
{
    for (long d = 0; d <= DEPTH_MAX; d++) {
        for (long k = -d; k <= d; k += 2) {
            long x = d == 0 ? 0 : start_of(reach, k, d), y = x - k;
            while (x < w->n && y < w->m && y >= 0 && same(&w->a[x], &w->b[y])) {
                x++;
                y++;
            }
            reach[k] = (int32_t)x;
            if (x == w->n && y == w->m)
                return d;
        }
        size_t bytes = (size_t)(2 * d + 1) * sizeof *reach;
        w->past[d] = buf_alloc(bytes);
        memcpy(w->past[d], reach - d, bytes);
    }
    return -1;
}

static void walk_back(const struct myers *w, long d, struct line *a, struct line *b)
{
    long x = w->n, y = w->m;
    for (; d > 0; d--) {
        /* Room for the diagonals -d-1 and d+1, which the step before did not reach. */
        const int32_t *before = w->past[d - 1] + (d - 1);
        long k = x - y;
        bool down = k == -d || (k != d && (k - 1 < -(d - 1) ||
                                           (k + 1 <= d - 1 && before[k - 1] < before[k + 1])));
        long from = down ? k + 1 : k - 1, from_x = before[from], from_y = from_x - from;
        if (down)
            b[from_y].changed = true;
        else
            a[from_x].changed = true;
        x = from_x;
        y = from_y;
    }
}

static void compare(struct side a, struct side b)
{
    size_t head = 0, tail = 0;
    while (head < a.count && head < b.count && same(&a.at[head], &b.at[head]))
        head++;
    while (tail < a.count - head && tail < b.count - head &&
           same(&a.at[a.count - 1 - tail], &b.at[b.count - 1 - tail]))
        tail++;
    struct line *from_a = a.at + head, *from_b = b.at + head;
    struct myers *w = buf_alloc_zero(1, sizeof *w);
    *w = (struct myers){ .a = from_a, .b = from_b, .n = (long)(a.count - head - tail),
                         .m = (long)(b.count - head - tail),
                         .reach = buf_alloc_zero(2 * DEPTH_MAX + 5, sizeof *w->reach) };
    long found = w->n == 0 || w->m == 0 ? -1 : search(w, w->reach + DEPTH_MAX + 2);
    if (found >= 0) {
        walk_back(w, found, from_a, from_b);
    } else {
        for (long i = 0; i < w->n; i++)
            from_a[i].changed = true;
        for (long i = 0; i < w->m; i++)
            from_b[i].changed = true;
    }
    for (long d = 0; d <= DEPTH_MAX; d++)
        free(w->past[d]);
    free(w->reach);
    free(w);
}

/* --- hunks --- */

struct place {
    size_t i, j; /* the next line of each side */
};

static bool is_equal(struct side a, struct side b, struct place at)
{
    return at.i < a.count && at.j < b.count && !a.at[at.i].changed && !b.at[at.j].changed;
}

static struct place skip_changes(struct side a, struct side b, struct place at)
{
    while (at.i < a.count && a.at[at.i].changed)
        at.i++;
    while (at.j < b.count && b.at[at.j].changed)
        at.j++;
    return at;
}

/* The end of the hunk that begins with a change at `at`: changes that are near share one. */
static struct place end_of(struct side a, struct side b, struct place at)
{
    for (;;) {
        at = skip_changes(a, b, at);
        size_t run = 0;
        while (run <= 2 * CONTEXT && is_equal(a, b, (struct place){ at.i + run, at.j + run }))
            run++;
        bool last = at.i + run == a.count && at.j + run == b.count;
        if (run > 2 * CONTEXT || last) {
            size_t after = run < CONTEXT ? run : CONTEXT;
            return (struct place){ at.i + after, at.j + after };
        }
        at.i += run;
        at.j += run;
    }
}

static int add_line(struct buf *out, char mark, struct str text)
{
    bool ends = text.len > 0 && text.at[text.len - 1] == '\n';
    if (buf_add(out, &mark, 1) < 0 || buf_add_str(out, text) < 0)
        return -1;
    return ends ? 0 : buf_add_text(out, "\n\\ No newline at end of file\n");
}

static int add_hunk(struct side a, struct side b, struct place from, struct place to,
                    struct buf *out, struct linediff_count *count)
{
    size_t a_len = to.i - from.i, b_len = to.j - from.j;
    if (buf_printf(out, "@@ -%zu,%zu +%zu,%zu @@\n", from.i + (a_len > 0), a_len,
                   from.j + (b_len > 0), b_len) < 0)
        return -1;
    while (from.i < to.i || from.j < to.j) {
        int rc;
        if (from.i < to.i && a.at[from.i].changed) {
            count->removed++;
            rc = add_line(out, '-', a.at[from.i++].text);
        } else if (from.j < to.j && b.at[from.j].changed) {
            count->added++;
            rc = add_line(out, '+', b.at[from.j++].text);
        } else {
            rc = add_line(out, ' ', a.at[from.i].text);
            from.i++;
            from.j++;
        }
        if (rc < 0)
            return -1;
    }
    return 0;
}

static int add_hunks(struct side a, struct side b, struct buf *out, struct linediff_count *count)
{
    struct place at = { 0, 0 }, last = { 0, 0 };
    for (;;) {
        while (is_equal(a, b, at)) {
            at.i++;
            at.j++;
        }
        if (at.i == a.count && at.j == b.count)
            return 0;
        size_t before = at.i - last.i < CONTEXT ? at.i - last.i : CONTEXT;
        struct place from = { at.i - before, at.j - before };
        last = end_of(a, b, at);
        if (add_hunk(a, b, from, last, out, count) < 0)
            return -1;
        at = last;
    }
}

int linediff_write(struct str was, struct str is, struct buf *out, struct linediff_count *count)
{
    struct side a = split(was), b = split(is);
    *count = (struct linediff_count){ 0, 0 };
    compare(a, b);
    int rc = add_hunks(a, b, out, count);
    free(a.at);
    free(b.at);
    return rc;
}
