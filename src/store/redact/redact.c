/* Opens redaction, joins what rows and patterns found, and writes markers. Pure after redact_open;
 * any thread. */
#include "store/redact/redact.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "store/redact/redact_int.h"

#define HASH_BLOCK 64
#define SHOWN_DIGITS 8

void spans_add(struct spans *spans, size_t from, size_t until, const char *kind)
{
    spans->at = buf_list_room(spans->at, spans->count, sizeof *spans->at);
    spans->at[spans->count++] = (struct span){ from, until, kind };
}

void spans_done(struct spans *spans)
{
    free(spans->at);
    *spans = (struct spans){ NULL, 0 };
}

struct redact *redact_open(const char *const *extra, const unsigned char key[REDACT_KEY_BYTES],
                           struct err *err)
{
    if (pcre_load(err) < 0)
        return NULL;
    struct redact *redact = buf_alloc_zero(1, sizeof *redact);
    memcpy(redact->key, key, REDACT_KEY_BYTES);
    if (redact_scan_open(redact, err) < 0 || redact_users_open(redact, extra, err) < 0) {
        redact_close(redact);
        return NULL;
    }
    return redact;
}

int redact_check(const char *const *extra, struct err *err)
{
    static const unsigned char no_key[REDACT_KEY_BYTES];
    if (!extra || !extra[0])
        return 0;
    own_redact redact = redact_open(extra, no_key, err);
    return redact ? 0 : -1;
}

void redact_close(struct redact *redact)
{
    if (!redact)
        return;
    for (size_t row = 0; row < redact_row_count; row++)
        if (redact->codes[row])
            pcre.code_free(redact->codes[row]);
    redact_users_close(redact);
    free(redact->anchors);
    explicit_bzero(redact->key, sizeof redact->key);
    free(redact);
}

/* HMAC-SHA-256, but for the inner hash in hexadecimal. */
static void keyed_hash(const struct redact *redact, struct str secret, char out[HASH_HEX_ROOM])
{
    unsigned char inner[HASH_BLOCK], outer[HASH_BLOCK];
    struct hash hash;
    for (size_t i = 0; i < HASH_BLOCK; i++) {
        unsigned char byte = i < REDACT_KEY_BYTES ? redact->key[i] : 0;
        inner[i] = byte ^ 0x36;
        outer[i] = byte ^ 0x5c;
    }
    hash_start(&hash);
    hash_add(&hash, inner, sizeof inner);
    hash_add(&hash, secret.at, secret.len);
    hash_end_hex(&hash, out);
    hash_start(&hash);
    hash_add(&hash, outer, sizeof outer);
    hash_add(&hash, out, HASH_HEX_ROOM - 1);
    hash_end_hex(&hash, out);
}

void redact_sum(const struct redact *redact, char *hex)
{
    char keyed[HASH_HEX_ROOM];
    keyed_hash(redact, str_of(hex), keyed);
    memcpy(hex, keyed, sizeof keyed);
}

bool redact_is(const struct redact *redact, struct str secret, const char *digits)
{
    char hex[HASH_HEX_ROOM];
    keyed_hash(redact, secret, hex);
    return strlen(digits) == SHOWN_DIGITS && memcmp(hex, digits, SHOWN_DIGITS) == 0;
}

int redact_mark(const struct redact *redact, const char *kind, struct str secret, struct buf *out)
{
    char hex[HASH_HEX_ROOM];
    keyed_hash(redact, secret, hex);
    return buf_printf(out, "[redacted:%s:%.*s]", kind, SHOWN_DIGITS, hex);
}

/* A marker comes before what else begins with it. */
static int by_place(const void *a, const void *b)
{
    const struct span *one = a, *other = b;
    if (one->from != other->from)
        return one->from < other->from ? -1 : 1;
    return !!one->kind - !!other->kind;
}

static bool continues(struct str text, size_t at)
{
    return at < text.len && ((unsigned char)text.at[at] & 0xc0) == 0x80;
}

/* Half a character would make the rest no UTF-8. */
static void on_characters(struct str text, struct span *span)
{
    size_t back = 0;
    while (back < 3 && back < span->from && continues(text, span->from - back))
        back++;
    if (back && (unsigned char)text.at[span->from - back] >= 0xc0)
        span->from -= back;
    for (int i = 0; i < 3 && continues(text, span->until); i++)
        span->until++;
}

/* Makes one span of those that share bytes. A span within a marker goes. */
static void join(struct str text, struct spans *spans)
{
    size_t kept = 0, secrets = 0;
    for (size_t i = 0; i < spans->count; i++) {
        struct span span = spans->at[i];
        on_characters(text, &span);
        struct span *last = kept ? &spans->at[kept - 1] : NULL;
        if (!last || span.from >= last->until)
            spans->at[kept++] = span;
        else if (last->kind && span.until > last->until)
            last->until = span.until;
    }
    for (size_t i = 0; i < kept; i++)
        if (spans->at[i].kind)
            spans->at[secrets++] = spans->at[i];
    spans->count = secrets;
}

int redact_find(const struct redact *redact, struct str text, struct spans *out)
{
    if (redact_scan(redact, text, out) < 0)
        return -1;
    size_t own = out->count;
    if (redact_users_scan(redact, text, out) < 0)
        return -1;
    if (out->count > own && out->count > 1)
        qsort(out->at, out->count, sizeof *out->at, by_place);
    join(text, out);
    return 0;
}

int redact_render(const struct redact *redact, struct str text, const struct spans *spans,
                  size_t from, size_t until, struct buf *out)
{
    size_t low = 0, high = spans->count;
    while (low < high) { /* the first span that ends after `from` */
        size_t middle = low + (high - low) / 2;
        if (spans->at[middle].until <= from)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < spans->count && spans->at[low].from < until; low++) {
        const struct span *span = &spans->at[low];
        if (span->from >= from) {
            struct str secret = { text.at + span->from, span->until - span->from };
            if (buf_add(out, text.at + from, span->from - from) < 0 ||
                redact_mark(redact, span->kind, secret, out) < 0)
                return -1;
        }
        from = span->until < until ? span->until : until;
    }
    return buf_add(out, text.at + from, until - from);
}

size_t redact_text(const struct redact *redact, struct str text, struct buf *out)
{
    own_spans spans = { NULL, 0 };
    size_t before = out->len;
    bool limit = redact_find(redact, text, &spans) < 0;
    if (!limit && redact_render(redact, text, &spans, 0, text.len, out) == 0)
        return spans.count;
    out->len = before;
    if (out->at)
        out->at[before] = 0;
    redact_mark(redact, "limit", text, out);
    return 1;
}

bool redact_may(const struct redact *redact, struct str text)
{
    return text.len && (redact->user_count || redact_scan_next(redact, text, 0) < text.len);
}
