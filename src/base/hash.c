/* SHA-256 by OpenSSL's low-level functions, linked statically: loading all of libcrypto would cost
 * more at every start than the rest of cupel. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "base/hash.h"

#include <openssl/sha.h>

_Static_assert(sizeof(SHA256_CTX) <= sizeof(struct hash), "struct hash too small");

void hash_start(struct hash *hash)
{
    SHA256_Init((SHA256_CTX *)hash);
}

void hash_add(struct hash *hash, const void *bytes, size_t len)
{
    SHA256_Update((SHA256_CTX *)hash, bytes, len);
}

void hash_end_hex(struct hash *hash, char out[HASH_HEX_ROOM])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char sum[HASH_BYTES];
    SHA256_Final(sum, (SHA256_CTX *)hash);
    for (size_t i = 0; i < HASH_BYTES; i++) {
        out[2 * i] = digits[sum[i] >> 4];
        out[2 * i + 1] = digits[sum[i] & 15];
    }
    out[2 * HASH_BYTES] = 0;
}

void hash_hex(struct str bytes, char out[HASH_HEX_ROOM])
{
    struct hash hash;
    hash_start(&hash);
    hash_add(&hash, bytes.at, bytes.len);
    hash_end_hex(&hash, out);
}
