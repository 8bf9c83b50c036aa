/* Real sessions (python3 with drivers/cells.py, started cold: each has a layout of its
 * own) and a small C program, for the tests of transplanting. The test is their parent
 * and their tracer. What holds for uids is said in park_target.h. */
#ifndef TESTS_UNIT_TRANSPLANT_TARGET_H
#define TESTS_UNIT_TRANSPLANT_TARGET_H

#include "box/fork/transplant.h"

#if INJECT_HERE

#include <stdbool.h>

#include "park_target.h"

#define CELLS_WORDS 250
#define CELLS_REQUESTS 251

struct cells {
    pid_t pid;
    int sock;
    unsigned count;
};

/* After may_run. */
struct cells cells_start(void);
/* The text of its value, "" for none, or "NAME: MESSAGE" of its error. */
const char *cell(struct cells *at, const char *code);
/* Kill and take its end. */
void cells_end(struct cells *at);
struct park cells_park(const struct cells *at);
/* A live copy, with the same layout, as the forks of one zygote have. */
struct cells cells_fork(const struct cells *at);
/* Tell a copy that it is a process of its own now. */
void cells_renew(const struct cells *at);
/* Put a parked copy into a fresh session, which must work. */
struct transplant_report cells_put(const struct park *parked, const struct cells *fresh);
/* The session of the cells and of the C program, which wait on CELLS_REQUESTS. */
extern struct park_session cells_session;
int open_files(void);

#endif
#endif
