/* Calls of cells that were undone and run again: each names the earlier call, and has its key. Runs
 * in the serve process, in the engine's loop. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "tool/call/call_int.h"

/* Only calls of cells are kept, of tools that do more than read. */
static bool is_kept(const struct calls *calls, const struct calls_one *one)
{
    return calls->hooks.repeats && calls->cell.cell > 0 && one->tool->of->effect != TOOL_READ;
}

static void same_of(const struct calls *calls, const struct calls_one *one, char out[HASH_HEX_ROOM])
{
    repeats_same(calls->hooks.code, str_of(one->tool->of->name), one->arguments, out);
}

void calls_recall(struct calls *calls, struct calls_one *one)
{
    const struct result *run = engine_run_result(calls->run);
    struct repeats_call earlier;
    char same[HASH_HEX_ROOM];
    snprintf(one->id, sizeof one->id, "%s-%lld", run->run, (long long)one->number);
    memcpy(one->key, one->id, sizeof one->key);
    calls->cell = (struct repeats_cell){ run->session, run->cell, run->base_cell };
    if (!is_kept(calls, one))
        return;
    same_of(calls, one, same);
    if (!repeats_take(calls->hooks.repeats, &calls->cell, same, &earlier))
        return;
    one->earlier = buf_alloc(sizeof earlier);
    *one->earlier = earlier;
    memcpy(one->key, earlier.key, sizeof one->key);
}

const char *calls_repeats(const struct calls_one *one)
{
    return one->earlier ? one->earlier->id : NULL;
}

/* A call that ended without a word of its tool may have acted. */
static bool may_have_acted(const struct calls_one *one, const json_t *outcome)
{
    enum outcome_kind kind = outcome_kind_of(outcome);
    return one->acted || (one->runs && (kind == OUTCOME_TIMEOUT || kind == OUTCOME_CANCELLED));
}

void calls_remember(const struct calls *calls, const struct calls_one *one, const json_t *outcome)
{
    struct repeats_call call = { .cell = calls->cell.cell };
    if (!is_kept(calls, one))
        return;
    if (!may_have_acted(one, outcome)) {
        if (one->earlier) /* it still stays done */
            repeats_add(calls->hooks.repeats, &calls->cell, one->earlier);
        return;
    }
    same_of(calls, one, call.same);
    memcpy(call.id, one->id, sizeof call.id);
    memcpy(call.key, one->key, sizeof call.key);
    repeats_add(calls->hooks.repeats, &calls->cell, &call);
}
