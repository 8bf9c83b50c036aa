/* Fuzz target: server-sent events. However the bytes are cut up, the same events come out. */
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/hash.h"
#include "net/sse.h"

struct heard {
    struct hash hash;
    size_t events;
};

static void on_event(void *user, struct str name, struct str data)
{
    struct heard *heard = user;
    heard->events++;
    hash_add(&heard->hash, name.at, name.len);
    hash_add(&heard->hash, "\0", 1);
    hash_add(&heard->hash, data.at, data.len);
    hash_add(&heard->hash, "\1", 1);
}

static size_t listen(struct str bytes, size_t step, char out[HASH_HEX_ROOM])
{
    struct heard heard = { .events = 0 };
    struct net_sse sse;
    hash_start(&heard.hash);
    net_sse_start(&sse, on_event, &heard);
    for (size_t at = 0; at < bytes.len; at += step) {
        size_t len = bytes.len - at < step ? bytes.len - at : step;
        if (net_sse_feed(&sse, (struct str){ bytes.at + at, len }) < 0)
            break;
    }
    net_sse_done(&sse);
    hash_end_hex(&heard.hash, out);
    return heard.events;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct str text = { (const char *)bytes, len };
    char whole[HASH_HEX_ROOM], parts[HASH_HEX_ROOM];
    size_t events = listen(text, len > 0 ? len : 1, whole);
    static const size_t steps[] = { 1, 2, 7 };
    for (size_t i = 0; i < array_len(steps); i++)
        if (listen(text, steps[i], parts) != events || !str_is(str_of(whole), parts))
            abort();
    return 0;
}
