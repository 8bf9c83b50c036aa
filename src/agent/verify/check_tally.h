/* How often a key was seen, and by whom last: the sets and counts of the checks. Keys are hashes
 * (agent_scan_hash), never 0; two texts of one hash are taken for the same, which errs towards
 * finding a word. At most AGENT_TALLY_MAX keys; what is beyond is counted nowhere. */
#ifndef AGENT_VERIFY_CHECK_TALLY_H
#define AGENT_VERIFY_CHECK_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AGENT_TALLY_MAX (4u << 20)

struct agent_tally {
    struct agent_tally_slot {
        uint64_t key;
        uint32_t count, last;
    } *slots;
    size_t used, room;
};

void agent_tally_done(struct agent_tally *tally);
/* Count `key` once for each `who`. */
void agent_tally_add(struct agent_tally *tally, uint64_t key, uint32_t who);
uint32_t agent_tally_count(const struct agent_tally *tally, uint64_t key);

#endif
