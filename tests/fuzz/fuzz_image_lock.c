/* Any text as a lock. What is read is written and read again to the same, and holds nothing that a
 * tool could take for an option, an address or a path out of its folder. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "image/make/lock.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void judge(const char *text)
{
    if (!text[0] || text[0] == '-' || text[0] == '/' || strpbrk(text, " \n\t\\\"'") ||
        strstr(text, "..") == text || strstr(text, "/.."))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    own_make_lock lock = { 0 }, again = { 0 };
    struct err err = ERR_INIT;
    if (make_lock_read((struct str){ (const char *)bytes, len }, &lock, &err) < 0) {
        if (!err.text[0])
            abort();
        return 0;
    }
    for (size_t kind = 0; kind < MAKE_KINDS; kind++)
        for (size_t i = 0; i < lock.counts[kind]; i++) {
            judge(lock.items[kind][i].name);
            judge(lock.items[kind][i].version);
        }
    own_json value = make_lock_to_json(&lock);
    if (make_lock_from_json(value, &again, &err) < 0)
        abort();
    own_json second = make_lock_to_json(&again);
    if (!json_equal(value, second))
        abort();
    return 0;
}
