/* Counts by hash: open addressing, half full at most. Process: the task's. Pure. */
#include "agent/verify/check_tally.h"

#include <stdlib.h>

#include "base/buf.h"

void agent_tally_done(struct agent_tally *tally)
{
    free(tally->slots);
    *tally = (struct agent_tally){ 0 };
}

static struct agent_tally_slot *place(const struct agent_tally *tally, uint64_t key)
{
    size_t at = (size_t)(key ^ (key >> 32)) & (tally->room - 1);
    while (tally->slots[at].key && tally->slots[at].key != key)
        at = (at + 1) & (tally->room - 1);
    return &tally->slots[at];
}

static void grow(struct agent_tally *tally)
{
    struct agent_tally wider = { .used = tally->used, .room = tally->room ? tally->room * 2 : 256 };
    wider.slots = buf_alloc_zero(wider.room, sizeof *wider.slots);
    for (size_t i = 0; i < tally->room; i++) {
        if (tally->slots[i].key)
            *place(&wider, tally->slots[i].key) = tally->slots[i];
    }
    free(tally->slots);
    *tally = wider;
}

void agent_tally_add(struct agent_tally *tally, uint64_t key, uint32_t who)
{
    if (tally->used * 2 >= tally->room && tally->used < AGENT_TALLY_MAX)
        grow(tally);
    struct agent_tally_slot *slot = place(tally, key);
    if (!slot->key && tally->used >= AGENT_TALLY_MAX)
        return;
    if (!slot->key) {
        tally->used++;
        *slot = (struct agent_tally_slot){ key, 1, who };
    } else if (slot->last != who) {
        slot->count++;
        slot->last = who;
    }
}

uint32_t agent_tally_count(const struct agent_tally *tally, uint64_t key)
{
    return tally->room ? place(tally, key)->count : 0;
}
