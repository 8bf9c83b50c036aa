/* Where a page of a list ended, as an opaque word. Pure. Any process. */
#include <stdio.h>

#include "store/records/look_int.h"

#define HALF 16 /* hexadecimal digits of 64 bits */

/* 64 bits of a hash over the key, a purpose and a text. */
static uint64_t digest(struct str key, const char *purpose, const char *text, uint64_t number)
{
    char hex[HASH_HEX_ROOM];
    struct hash hash;
    uint64_t value = 0;
    hash_start(&hash);
    hash_add(&hash, key.at, key.len);
    hash_add(&hash, purpose, strlen(purpose) + 1);
    hash_add(&hash, text, strlen(text) + 1);
    hash_add(&hash, &number, sizeof number);
    hash_end_hex(&hash, hex);
    for (int i = 0; i < HALF; i++)
        value = value << 4 | (uint64_t)(hex[i] <= '9' ? hex[i] - '0' : hex[i] - 'a' + 10);
    return value;
}

void look_page_write(struct str key, int64_t n, const char *sum, char out[LOOK_PAGE_ROOM])
{
    uint64_t proof = digest(key, "page", sum, (uint64_t)n);
    uint64_t sealed = (uint64_t)n ^ digest(key, "seal", "", proof);
    snprintf(out, LOOK_PAGE_ROOM, "p%016llx%016llx", (unsigned long long)sealed,
             (unsigned long long)proof);
}

static bool read_half(const char *from, uint64_t *out)
{
    *out = 0;
    for (int i = 0; i < HALF; i++) {
        char c = from[i];
        bool digit = c >= '0' && c <= '9', letter = c >= 'a' && c <= 'f';
        if (!digit && !letter)
            return false;
        *out = *out << 4 | (uint64_t)(digit ? c - '0' : c - 'a' + 10);
    }
    return true;
}

int look_page_read(struct str key, const char *page, const char *sum, int64_t *out_n,
                   struct err *err)
{
    uint64_t sealed, proof;
    bool ok = strlen(page) == LOOK_PAGE_ROOM - 1 && page[0] == 'p' &&
              read_half(page + 1, &sealed) && read_half(page + 1 + HALF, &proof);
    if (ok) {
        uint64_t n = sealed ^ digest(key, "seal", "", proof);
        ok = n <= INT64_MAX && digest(key, "page", sum, n) == proof;
        *out_n = ok ? (int64_t)n : *out_n;
    }
    if (ok)
        return 0;
    err_input(err, "page", NULL, "the \"next\" of the page before, with the same filters",
              "page '%.*s' is not of this list", (int)str_cut_utf8(str_of(page), 40), page);
    err_hint(err, "leave 'page' out to begin with the newest run");
    return -1;
}

void look_filter_sum(const struct look_filter *filter, char out[HASH_HEX_ROOM])
{
    const char *const parts[] = { filter->owner, filter->status,      filter->language,
                                  filter->session, filter->task, filter->code_sha256,
                                  filter->text };
    struct hash hash;
    hash_start(&hash);
    for (size_t i = 0; i < array_len(parts); i++) {
        hash_add(&hash, parts[i] ? "=" : "-", 1);
        if (parts[i])
            hash_add(&hash, parts[i], strlen(parts[i]) + 1);
    }
    hash_end_hex(&hash, out);
}
