/* The search of the rows: one pass over the text finds their literals, and PCRE2 is tried only
 * there. Pure; any thread.
 * 1. A sieve of three folded bytes passes over text without anchors at about a byte a nanosecond.
 * 2. Findings come in order and apart: a search goes on after the last one. */
#include <stdlib.h>
#include <string.h>

#include "store/redact/redact_int.h"

#define MATCH_LIMIT 20000
#define DEPTH_LIMIT 1000
#define HEAP_LIMIT_KIB 1024
#define ANCHORS_MAX 256

static unsigned char lower(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
}

/* Bit 5 is set in letters of both cases; that other bytes share hashes too does no harm. */
static uint32_t sieve_hash(const char *at)
{
    const unsigned char *byte = (const unsigned char *)at;
    uint32_t three = (uint32_t)byte[0] | (uint32_t)byte[1] << 8 | (uint32_t)byte[2] << 16;
    return ((three | 0x202020u) * 2654435761u) >> (32 - SIEVE_BITS);
}

static int by_first_byte(const void *a, const void *b)
{
    const struct anchor *one = a, *other = b;
    int first = (int)lower(*one->at) - (int)lower(*other->at);
    return first ? first : (int)one->row - (int)other->row;
}

static void add_anchors(struct redact *redact, size_t row)
{
    const char *at = redact_rows[row].anchors;
    while (*at && redact->anchor_count < ANCHORS_MAX) {
        size_t len = strcspn(at, "|");
        uint32_t hash = sieve_hash(at);
        redact->sieve[hash / 32] |= 1u << hash % 32;
        redact->anchors[redact->anchor_count++] =
            (struct anchor){ at, (uint8_t)len, (uint8_t)row, redact_rows[row].flags & ROW_FOLD };
        at += len + (at[len] == '|');
    }
}

int redact_scan_open(struct redact *redact, struct err *err)
{
    redact->anchors = buf_alloc_zero(ANCHORS_MAX, sizeof *redact->anchors);
    for (size_t row = 0; row < redact_row_count; row++) {
        int code;
        size_t offset;
        uint32_t options = PCRE2_ANCHORED |
                           (redact_rows[row].flags & ROW_FOLD ? PCRE2_CASELESS : 0);
        redact->codes[row] = pcre.compile((PCRE2_SPTR)redact_rows[row].pattern,
                                          PCRE2_ZERO_TERMINATED, options, &code, &offset, NULL);
        if (!redact->codes[row])
            return err_set(err, ERR_BUG, "pattern of '%s': PCRE2 error %d at offset %zu",
                           redact_rows[row].anchors, code, offset);
        add_anchors(redact, row);
    }
    qsort(redact->anchors, redact->anchor_count, sizeof *redact->anchors, by_first_byte);
    for (size_t i = 0, byte = 0; byte < 257; byte++) {
        while (i < redact->anchor_count && lower(*redact->anchors[i].at) < byte)
            i++;
        redact->heads[byte] = (uint16_t)i;
    }
    return 0;
}

static bool is_anchor(const struct anchor *anchor, struct str text, size_t at)
{
    if (text.len - at < anchor->len)
        return false;
    if (!anchor->fold)
        return memcmp(text.at + at, anchor->at, anchor->len) == 0;
    for (size_t i = 0; i < anchor->len; i++)
        if (lower(text.at[at + i]) != lower(anchor->at[i]))
            return false;
    return true;
}

static bool is_word_byte(char c)
{
    return (lower(c) >= 'a' && lower(c) <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'f');
}

/* After the last byte of "\n" in a literal, "%3D", or the colour "ESC[31m", a word begins. */
static bool begins_word(struct str text, size_t at, unsigned flags)
{
    const char *end = text.at + at;
    if (at == 0 || !is_word_byte(end[-1]))
        return !at || !(flags & ROW_DASH) || end[-1] != '-';
    if (end[-1] == '_' && flags & ROW_PART)
        return true;
    if (at >= 2 && end[-2] == '\\' && strchr("nrtbfv", end[-1]))
        return true;
    if (at >= 3 && end[-3] == '%' && is_hex(end[-1]) && is_hex(end[-2]))
        return true;
    if (at >= 4 && end[-4] == '\\' && end[-3] == 'x' && is_hex(end[-1]) && is_hex(end[-2]))
        return true;
    if (at >= 6 && end[-6] == '\\' && end[-5] == 'u' && is_hex(end[-1]) && is_hex(end[-2]))
        return true;
    if (end[-1] != 'm' || at < 2)
        return false;
    const char *back = end - 2, *first = text.at + (at > 24 ? at - 24 : 0);
    while (back > first && ((*back >= '0' && *back <= '9') || *back == ';'))
        back--;
    return *back == '[';
}

static size_t sieve_next(const struct redact *redact, struct str text, size_t from)
{
    size_t last = text.len < 3 ? 0 : text.len - 2;
    for (; from < last; from++) {
        uint32_t hash = sieve_hash(text.at + from);
        if (redact->sieve[hash / 32] >> hash % 32 & 1)
            return from;
    }
    return text.len;
}

size_t redact_scan_next(const struct redact *redact, struct str text, size_t from)
{
    while ((from = sieve_next(redact, text, from)) < text.len) {
        unsigned char first = lower(text.at[from]);
        for (size_t i = redact->heads[first]; i < redact->heads[first + 1]; i++)
            if (is_anchor(&redact->anchors[i], text, from))
                return from;
        from++;
    }
    return text.len;
}

struct scan {
    const struct redact *redact;
    struct str text;
    pcre2_match_data *data;
    pcre2_match_context *context;
    size_t sleeps[REDACT_ROWS_MAX]; /* a row is not tried before this place */
    size_t done;                    /* the end of the last finding */
    size_t next_end;
};

/* 1: found, and in *hit. 0: not. -1: a limit. */
static int try_row(struct scan *scan, size_t row, size_t at, struct hit *hit)
{
    int count = pcre.match(scan->redact->codes[row], (PCRE2_SPTR)scan->text.at, scan->text.len, at,
                           0, scan->data, scan->context);
    if (count == PCRE2_ERROR_NOMATCH)
        return 0;
    if (count < 0)
        return -1;
    const size_t *bounds = pcre.get_ovector_pointer(scan->data);
    *hit = (struct hit){ .text = scan->text, .anchor = at, .from = bounds[0], .until = bounds[1],
                         .done = scan->done, .next_end = scan->next_end,
                         .kind = redact_rows[row].kind };
    for (int i = 0; i < REDACT_GROUPS; i++)
        if (i < count && bounds[2 * i] != PCRE2_UNSET)
            hit->group[i] = (struct span){ bounds[2 * i], bounds[2 * i + 1], NULL };
    if (hit->group[1].until) {
        hit->from = hit->group[1].from;
        hit->until = hit->group[1].until;
    }
    bool found = !redact_rows[row].check || redact_rows[row].check(hit);
    scan->next_end = hit->next_end;
    if (!found && !redact_rows[row].tries_again)
        scan->sleeps[row] = bounds[1];
    return found && hit->from >= scan->done && hit->until > hit->from;
}

static bool may_try(const struct scan *scan, const struct anchor *anchor, size_t at)
{
    unsigned flags = redact_rows[anchor->row].flags;
    return at >= scan->sleeps[anchor->row] && is_anchor(anchor, scan->text, at) &&
           (!(flags & ROW_WORD) || begins_word(scan->text, at, flags));
}

/* A secret that a name or a place announced may have a form of its own: that gives the kind, so
 * that it has the same marker wherever it stands. */
static void prefer_form(struct scan *scan, struct hit *hit)
{
    const struct redact *redact = scan->redact;
    unsigned char first = lower(scan->text.at[hit->from]);
    struct hit own;
    for (size_t i = redact->heads[first]; i < redact->heads[first + 1]; i++) {
        const struct anchor *anchor = &redact->anchors[i];
        if (redact_rows[anchor->row].tries_again || !may_try(scan, anchor, hit->from) ||
            try_row(scan, anchor->row, hit->from, &own) <= 0 || own.from != hit->from || !own.kind)
            continue;
        hit->kind = own.kind;
        hit->until = own.until > hit->until ? own.until : hit->until;
        return;
    }
}

/* 1: a secret was found there. */
static int try_place(struct scan *scan, size_t at, struct spans *out)
{
    const struct redact *redact = scan->redact;
    unsigned char first = lower(scan->text.at[at]);
    struct hit hit;
    for (size_t i = redact->heads[first]; i < redact->heads[first + 1]; i++) {
        const struct anchor *anchor = &redact->anchors[i];
        int found = may_try(scan, anchor, at) ? try_row(scan, anchor->row, at, &hit) : 0;
        if (found < 0)
            return found;
        if (!found)
            continue;
        if (redact_rows[anchor->row].tries_again)
            prefer_form(scan, &hit);
        spans_add(out, hit.from, hit.until, hit.kind);
        scan->done = hit.until;
        return 1;
    }
    return 0;
}

int redact_scan(const struct redact *redact, struct str text, struct spans *out)
{
    struct scan scan = { .redact = redact, .text = text };
    size_t at = redact_scan_next(redact, text, 0);
    int found = 0;
    if (at == text.len)
        return 0;
    scan.data = pcre.match_data_create(REDACT_GROUPS, NULL);
    scan.context = pcre.match_context_create(NULL);
    if (!scan.data || !scan.context)
        abort(); /* out of memory */
    pcre.set_match_limit(scan.context, MATCH_LIMIT);
    pcre.set_depth_limit(scan.context, DEPTH_LIMIT);
    pcre.set_heap_limit(scan.context, HEAP_LIMIT_KIB);
    while (at < text.len && (found = try_place(&scan, at, out)) >= 0) {
        size_t next = found && scan.done > at ? scan.done : at + 1;
        at = sieve_next(redact, text, next);
    }
    pcre.match_data_free(scan.data);
    pcre.match_context_free(scan.context);
    return found < 0 ? -1 : 0;
}
