/* Digests of requests. Runs in any process; pure.
 *
 * provenance.inputs_sha256, of a run's inputs except its code. The hashed bytes:
 *
 *   "cupel-inputs-1\n"
 *   stdin     bytes
 *   args      count, then each: bytes
 *   env       count, then each in byte order of "NAME=value": bytes
 *   call      count (0 or 1), then its compact JSON with sorted keys: bytes
 *   files     count, then each in byte order of path:
 *             path bytes, readonly (one byte, 0 or 1), content bytes
 *   tools     only if there are any: count (1), then their compact JSON with sorted keys: bytes
 *
 * where `count` is 8 bytes, big-endian, and `bytes` a count and that many bytes.
 * Lengths come first, so no two inputs share a spelling; maps are sorted, so the
 * order in which a door wrote them does not matter.
 *
 * The key of the cache:
 *
 *   "cupel-cache-1\n"
 *   engine version, language, image, its digest, tier, profile, code, inputs_sha256: bytes each
 *   on_output_limit, inline artifacts, has a seed: one byte each; the seed: count
 *   limits    count, then each in table order: 8 bytes, big-endian */
#include <stdlib.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/own.h"
#include "contract/request_int.h"

static void put_count(struct hash *hash, uint64_t count)
{
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(count >> (56 - 8 * i));
    hash_add(hash, bytes, sizeof bytes);
}

static void put_bytes(struct hash *hash, struct str bytes)
{
    put_count(hash, bytes.len);
    if (bytes.len)
        hash_add(hash, bytes.at, bytes.len);
}

static int compare_pairs(const void *a, const void *b)
{
    return strcmp(((const struct str *)a)->at, ((const struct str *)b)->at);
}

static void put_env(struct hash *hash, const struct request *request)
{
    struct str *sorted = buf_alloc_zero(request->env_count + 1, sizeof *sorted);
    for (size_t i = 0; i < request->env_count; i++)
        sorted[i] = request->env[i];
    qsort(sorted, request->env_count, sizeof *sorted, compare_pairs);
    put_count(hash, request->env_count);
    for (size_t i = 0; i < request->env_count; i++)
        put_bytes(hash, sorted[i]);
    free(sorted);
}

static int compare_files(const void *a, const void *b)
{
    const struct request_file *const *left = a, *const *right = b;
    return strcmp((*left)->path, (*right)->path);
}

static void put_files(struct hash *hash, const struct request *request)
{
    const struct request_file **sorted = buf_alloc_zero(request->file_count + 1, sizeof(void *));
    for (size_t i = 0; i < request->file_count; i++)
        sorted[i] = &request->files[i];
    qsort(sorted, request->file_count, sizeof(void *), compare_files);
    put_count(hash, request->file_count);
    for (size_t i = 0; i < request->file_count; i++) {
        put_bytes(hash, str_of(sorted[i]->path));
        hash_add(hash, sorted[i]->readonly ? "\1" : "\0", 1);
        put_bytes(hash, sorted[i]->data);
    }
    free(sorted);
}

void request_inputs_sha256(const struct request *request, char *out_hex)
{
    struct hash hash;
    hash_start(&hash);
    hash_add(&hash, "cupel-inputs-1\n", 15);
    put_bytes(&hash, request->stdin_text);
    put_count(&hash, request->arg_count);
    for (size_t i = 0; i < request->arg_count; i++)
        put_bytes(&hash, request->args[i]);
    put_env(&hash, request);
    put_count(&hash, request->call ? 1 : 0);
    if (request->call) {
        own_str text = json_write(request->call, JSON_COMPACT | JSON_SORT_KEYS);
        put_bytes(&hash, str_of(text));
    }
    put_files(&hash, request);
    if (request->tools) {
        own_str text = json_write(request->tools, JSON_COMPACT | JSON_SORT_KEYS);
        put_count(&hash, 1);
        put_bytes(&hash, str_of(text));
    }
    hash_end_hex(&hash, out_hex);
}

void request_cache_key(const struct request *request, const char *image_digest, char *out_hex)
{
    struct hash hash;
    char inputs[HASH_HEX_ROOM];
    request_inputs_sha256(request, inputs);
    const struct str parts[] = {
        STR(CUPEL_VERSION),
        str_of(request_languages[request->language].name),
        str_of(request->image),
        str_of(image_digest),
        STR("native"),
        str_of(request->profile->name),
        request->code,
        str_of(inputs),
    };
    const unsigned char flags[] = { (unsigned char)request->on_output_limit,
                                    request->inline_artifacts, request->has_seed };
    hash_start(&hash);
    hash_add(&hash, "cupel-cache-1\n", 14);
    for (size_t i = 0; i < array_len(parts); i++)
        put_bytes(&hash, parts[i]);
    hash_add(&hash, flags, sizeof flags);
    put_count(&hash, request->seed);
    put_count(&hash, LIMITS_COUNT);
    for (size_t i = 0; i < LIMITS_COUNT; i++)
        put_count(&hash, (uint64_t)request->limits.value[i]);
    hash_end_hex(&hash, out_hex);
}
