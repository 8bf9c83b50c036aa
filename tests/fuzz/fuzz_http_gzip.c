/* Fuzz gzip bodies. The first byte says in how large pieces the rest arrives: whatever the pieces
 * are, the decoded bytes and the verdict are the same. No call gives more than its room. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "serve/http/inflate.h"

#define OUTPUT_MAX (1u << 20) /* as the door's cap: past it nobody asks for more */
#define ROOM 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    char digest[HASH_HEX_ROOM];
    size_t bytes;
    bool bad, whole;
};

static bool drain(struct inflate *inflate, size_t room, struct hash *hash, struct seen *seen)
{
    char out[ROOM];
    ssize_t n;
    while (seen->bytes < OUTPUT_MAX && (n = inflate_next(inflate, out, room)) != 0) {
        if (n < 0) {
            seen->bad = true;
            return false;
        }
        if ((size_t)n > room)
            abort();
        hash_add(hash, out, (size_t)n);
        seen->bytes += (size_t)n;
    }
    return seen->bytes < OUTPUT_MAX;
}

static struct seen decode(struct str bytes, size_t piece, size_t room)
{
    struct seen seen = { .bytes = 0 };
    struct hash hash;
    struct inflate *inflate = inflate_new();
    hash_start(&hash);
    while (bytes.len > 0) {
        size_t n = bytes.len < piece ? bytes.len : piece;
        inflate_feed(inflate, (struct str){ bytes.at, n });
        if (!drain(inflate, room, &hash, &seen))
            break;
        bytes = (struct str){ bytes.at + n, bytes.len - n };
    }
    seen.whole = inflate_is_whole(inflate) && bytes.len == 0;
    inflate_free(inflate);
    hash_end_hex(&hash, seen.digest);
    return seen;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = ERR_INIT;
    if (inflate_load(&err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        abort();
    }
    if (size == 0)
        return 0;
    struct str bytes = { (const char *)data + 1, size - 1 };
    struct seen one = decode(bytes, size, ROOM), many = decode(bytes, data[0] % 64 + 1u, ROOM / 4);
    if (one.bytes >= OUTPUT_MAX || many.bytes >= OUTPUT_MAX)
        return 0; /* each stops somewhere past the cap */
    if (one.bad != many.bad || one.whole != many.whole)
        abort();
    if (!one.bad && (one.bytes != many.bytes || strcmp(one.digest, many.digest) != 0))
        abort();
    return 0;
}
