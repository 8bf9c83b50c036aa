/* SHA-256 by OpenSSL's low-level functions, linked statically: loading all of libcrypto would cost
 * more at every start than the rest of cupel. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "base/hash.h"

#include <openssl/sha.h>
#include <stdlib.h>
#include <sys/random.h>

_Static_assert(sizeof(SHA256_CTX) <= sizeof(struct hash), "struct hash too small");

void hash_start(struct hash *hash)
{
    SHA256_Init((SHA256_CTX *)hash);
}

void hash_add(struct hash *hash, const void *bytes, size_t len)
{
    SHA256_Update((SHA256_CTX *)hash, bytes, len);
}

static void write_hex(const unsigned char *bytes, size_t count, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < count; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * count] = 0;
}

void hash_end_hex(struct hash *hash, char out[HASH_HEX_ROOM])
{
    unsigned char sum[HASH_BYTES];
    SHA256_Final(sum, (SHA256_CTX *)hash);
    write_hex(sum, HASH_BYTES, out);
}

void hash_random_hex(char *out, size_t digits)
{
    unsigned char bytes[HASH_BYTES];
    if (getrandom(bytes, digits / 2, 0) != (ssize_t)(digits / 2))
        abort(); /* the kernel gives so few bytes at once */
    write_hex(bytes, digits / 2, out);
}

void hash_hex(struct str bytes, char out[HASH_HEX_ROOM])
{
    struct hash hash;
    hash_start(&hash);
    hash_add(&hash, bytes.at, bytes.len);
    hash_end_hex(&hash, out);
}
