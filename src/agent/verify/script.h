/* The final program and its proof run, within the agent's checks. Pure. */
#ifndef AGENT_VERIFY_SCRIPT_H
#define AGENT_VERIFY_SCRIPT_H

#include <jansson.h>
#include <stddef.h>

#include "agent/verify/verify.h"
#include "base/str.h"

/* A program that runs the kept cells one by one like a session, then each test, and separates them
 * by marks with `tag`, which no output has by chance. NULL: no cell. */
char *agent_script_proof(const json_t *steps, const json_t *requirements, const char *tag);

/* One part of the proof run; views into the result. */
struct agent_script_part {
    struct str out;       /* stdout */
    bool begun, ended;    /* both marks were seen */
    size_t from, to;      /* its results, as indices */
};
/* Parts by number: first the cells from 0, then the tests. */
void agent_script_part(const json_t *result, const char *tag, size_t part,
                       struct agent_script_part *out);
/* A test's outcome: "ok", or the error; STR_NONE: it was not reached. */
struct str agent_script_test(const json_t *result, const char *tag, size_t test);

/* check_fold.c: are two outputs equal except for values that no program repeats? Numbers within
 * 1e-9, addresses, durations, times of `today` ("2026-11-15"), the order of a set. False with both
 * lines in `why`. */
bool agent_fold_same(struct str before, struct str after, const char *today, struct buf *why);

/* check_cut.c: a text with its middle omitted; if not, both are the whole text. */
struct agent_cut {
    struct str head, tail; /* STR_NONE: nothing of it is left */
    bool cut;
};
/* `bytes` is its full length. False: the place of the cut is unknown. */
bool agent_cut_find(struct str text, uint64_t bytes, struct agent_cut *out);
/* Do both begin and end alike, as far as known? *io_exact stays true if they are equal byte for
 * byte: only then their lengths can be compared, because varying text has no fixed length. */
bool agent_cut_is_same(const struct agent_cut *old, const struct agent_cut *new, const char *today,
                       bool *io_exact, struct buf *why);
/* script_proof.c: one part within the proof run's stdout; false: nothing of it is left. */
bool agent_script_cut(const struct agent_cut *all, const char *tag, size_t part,
                      struct agent_cut *out);
/* The end of the last of `cells` in that stdout of `bytes`, and its expected end if they printed
 * `printed` bytes together; false: not found. */
bool agent_script_length(const struct agent_cut *all, const char *tag, size_t cells, uint64_t bytes,
                         uint64_t printed, uint64_t *out_is, uint64_t *out_should);

#endif
