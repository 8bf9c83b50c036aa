/* Fuzz the reader of sets of changes: what it takes has clean, sorted paths, and is read again as
 * it is written. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "folder/changes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct changes *set)
{
    for (size_t i = 0; i < set->count; i++) {
        if (!changes_path_is_clean(change_path(&set->at[i])) ||
            changes_find(set, change_path(&set->at[i])) != &set->at[i])
            abort();
        if (set->at[i].is.kind == CHANGE_FILE && set->at[i].number < 0)
            abort();
        if (set->at[i].is.kind == CHANGE_LINK && !set->at[i].is.target)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct changes set, again;
    struct err err = ERR_INIT;
    if (changes_read((struct str){ (const char *)data, size }, &set, &err) < 0)
        return 0;
    check(&set);
    own_json json = changes_to_json(&set);
    own_str text = json_write(json, JSON_COMPACT);
    if (!text || changes_read(str_of(text), &again, &err) < 0 || again.count != set.count)
        abort();
    changes_done(&again);
    changes_done(&set);
    return 0;
}
