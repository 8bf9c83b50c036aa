/* Results in memory that may be told again, by owner and key. Runs in the serve process, in its
 * loop. The memory is bounded: the entry that was used least recently goes first. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "serve/work/work_int.h"

#define BUCKETS 1024
#define BYTES_MAX ((size_t)64 << 20)
#define ENTRY_MAX ((size_t)RECORDS_REUSE_MAX)
#define NOTE_NS CLOCK_S /* at most so often a result's uses are told to the store */

struct entry {
    struct entry *next; /* of its bucket */
    struct entry *before, *after; /* by use, the latest first */
    char key[HASH_HEX_ROOM], owner[WORK_OWNER_ROOM];
    int64_t born_ns; /* when the code ran; boot clock, which counts sleep and never jumps */
    int64_t ttl_s;
    int64_t uses, noted_ns; /* that the store was not told of; when it was told last */
    char *head; /* the text without its tail */
    size_t head_len, bytes;
    enum result_status status;
    bool recorded;
    char run[32];
    struct result_artifact *artifacts;
    size_t artifact_count;
};

struct cache {
    struct records *records; /* NULL: nothing is recorded */
    struct entry *buckets[BUCKETS];
    struct entry *latest, *oldest;
    size_t bytes, count;
};

struct cache *cache_new(struct records *records)
{
    struct cache *cache = buf_alloc_zero(1, sizeof *cache);
    cache->records = records;
    return cache;
}

static void note_uses(struct cache *cache, struct entry *entry)
{
    if (cache->records && entry->uses > 0)
        records_note_hits(cache->records, entry->run, entry->uses);
    entry->uses = 0;
    entry->noted_ns = clock_boot_ns();
}

void cache_stop(struct cache *cache)
{
    for (struct entry *entry = cache->latest; entry; entry = entry->after)
        note_uses(cache, entry);
    cache->records = NULL;
}

static struct entry **bucket(struct cache *cache, const char *key)
{
    unsigned sum = 0; /* the key is a hash already */
    for (int i = 0; i < 6; i++)
        sum = sum * 31 + (unsigned char)key[i];
    return &cache->buckets[sum % BUCKETS];
}

static void unlink_use(struct cache *cache, struct entry *entry)
{
    *(entry->before ? &entry->before->after : &cache->latest) = entry->after;
    *(entry->after ? &entry->after->before : &cache->oldest) = entry->before;
}

static void link_latest(struct cache *cache, struct entry *entry)
{
    entry->before = NULL;
    entry->after = cache->latest;
    *(cache->latest ? &cache->latest->before : &cache->oldest) = entry;
    cache->latest = entry;
}

static void drop(struct cache *cache, struct entry *entry)
{
    struct entry **at = bucket(cache, entry->key);
    note_uses(cache, entry);
    while (*at != entry)
        at = &(*at)->next;
    *at = entry->next;
    unlink_use(cache, entry);
    cache->bytes -= entry->bytes;
    cache->count--;
    result_artifacts_free(entry->artifacts, entry->artifact_count);
    free(entry->head);
    free(entry);
}

void cache_free(struct cache *cache)
{
    while (cache->latest)
        drop(cache, cache->latest);
    free(cache);
}

static struct entry *find(struct cache *cache, const struct work *work)
{
    struct entry *entry = *bucket(cache, work->key);
    while (entry && (strcmp(entry->key, work->key) != 0 || strcmp(entry->owner, work->owner) != 0))
        entry = entry->next;
    return entry;
}

static char *copy_bytes(const char *bytes, size_t len)
{
    char *out = buf_alloc(len + 1);
    memcpy(out, bytes, len);
    out[len] = 0;
    return out;
}

static size_t bytes_of(const struct work *work)
{
    size_t bytes = sizeof(struct entry) + work->json.len;
    for (size_t i = 0; i < work->result.artifact_count; i++)
        bytes += work->result.artifacts[i].size_bytes + work->result.artifacts[i].path_len +
                 sizeof(struct result_artifact);
    return bytes;
}

void cache_add(struct cache *cache, const struct work *work, double age_s, int64_t ttl_s)
{
    char tail[RESULT_TAIL_ROOM];
    const struct result *result = &work->result;
    struct entry *entry = find(cache, work);
    if (entry)
        drop(cache, entry);
    if (bytes_of(work) > ENTRY_MAX)
        return;
    entry = buf_alloc_zero(1, sizeof *entry);
    memcpy(entry->key, work->key, sizeof entry->key);
    memcpy(entry->owner, work->owner, sizeof entry->owner);
    memcpy(entry->run, result->run, sizeof entry->run);
    entry->born_ns = clock_boot_ns() - (int64_t)(age_s * (double)CLOCK_S);
    entry->ttl_s = ttl_s;
    entry->status = result->status;
    entry->recorded = result->recorded;
    entry->head_len = work->json.len -
                      result_tail(result->recorded, result->cached_age_s, tail).len;
    entry->head = copy_bytes(work->json.at, entry->head_len);
    entry->artifacts = result_artifacts_share(result->artifacts, result->artifact_count);
    entry->artifact_count = result->artifact_count;
    entry->bytes = bytes_of(work);
    struct entry **at = bucket(cache, entry->key);
    entry->next = *at;
    *at = entry;
    link_latest(cache, entry);
    cache->bytes += entry->bytes;
    cache->count++;
    while (cache->bytes > BYTES_MAX)
        drop(cache, cache->oldest);
}

bool cache_find(struct cache *cache, struct work *work)
{
    char tail[RESULT_TAIL_ROOM];
    struct entry *entry = find(cache, work);
    if (!entry)
        return false;
    int64_t age_ns = clock_boot_ns() - entry->born_ns;
    double age_s = (double)age_ns / (double)CLOCK_S;
    if (age_s > (double)entry->ttl_s) {
        drop(cache, entry);
        return false;
    }
    if (age_s > (double)work->request->cache_ttl_s)
        return false;
    unlink_use(cache, entry);
    link_latest(cache, entry);
    entry->uses++;
    if (entry->born_ns + age_ns - entry->noted_ns > NOTE_NS)
        note_uses(cache, entry);
    struct result *result = &work->result;
    result->status = entry->status;
    result->recorded = entry->recorded;
    result->cached_age_s = age_s;
    memcpy(result->run, entry->run, sizeof result->run);
    result->artifacts = result_artifacts_share(entry->artifacts, entry->artifact_count);
    result->artifact_count = entry->artifact_count;
    buf_add(&work->json, entry->head, entry->head_len);
    buf_add_str(&work->json, result_tail(entry->recorded, age_s, tail));
    return true;
}

void cache_forget(struct cache *cache, const char *run)
{
    for (struct entry *entry = cache->latest, *after; entry; entry = after) {
        after = entry->after;
        if (strcmp(entry->run, run) == 0)
            drop(cache, entry);
    }
}

json_t *cache_describe(const struct cache *cache)
{
    return json_pack("{s:I, s:I}", "entries", (json_int_t)cache->count, "bytes",
                     (json_int_t)cache->bytes);
}
