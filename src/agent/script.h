/* The final program and its proof run, within the agent's checks. Pure. */
#ifndef AGENT_SCRIPT_H
#define AGENT_SCRIPT_H

#include <jansson.h>
#include <stddef.h>

#include "agent/verify.h"
#include "base/str.h"

/* A program that runs the kept cells one by one as a session would, then each test, and marks
 * where one ends and the next begins with `tag`, which no output has by chance. NULL: no cell. */
char *agent_script_proof(const json_t *steps, const json_t *requirements, const char *tag);

/* What the proof run showed of one part; views into the result. */
struct agent_script_part {
    struct str out;       /* stdout */
    bool begun, ended;    /* both marks were seen */
    size_t from, to;      /* its results, as indices */
};
/* Parts by number: cells are 0, 1, ..., tests go on counting. */
void agent_script_part(const json_t *result, const char *tag, size_t part,
                       struct agent_script_part *out);
/* What the tests said: "ok", or the error; STR_NONE: it did not come so far. */
struct str agent_script_test(const json_t *result, const char *tag, size_t test);

/* check_fold.c: are two outputs the same but for what no program repeats? Numbers within 1e-9,
 * addresses, durations, times of `today` ("2026-11-15"), the order of a set. False with both lines
 * in `why`. */
bool agent_fold_same(struct str before, struct str after, const char *today, struct buf *why);

#endif
