/* SHA-256 (OpenSSL's), and lower-case hexadecimal. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

#define HASH_BYTES 32
#define HASH_HEX_ROOM (2 * HASH_BYTES + 1)

struct hash {
    uint64_t state[16]; /* holds OpenSSL's SHA256_CTX; checked at compile time */
};

void hash_start(struct hash *hash);
void hash_add(struct hash *hash, const void *bytes, size_t len);
/* Ends the hash and writes its 64 hexadecimal digits and a NUL. */
void hash_end_hex(struct hash *hash, char out[HASH_HEX_ROOM]);
void hash_hex(struct str bytes, char out[HASH_HEX_ROOM]);
/* Writes that many random digits, at most 64, and a NUL. */
void hash_random_hex(char *out, size_t digits);

#endif
