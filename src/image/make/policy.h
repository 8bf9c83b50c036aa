/* The packages that the configuration lets a build add. Pure. */
#ifndef IMAGE_MAKE_POLICY_H
#define IMAGE_MAKE_POLICY_H

#include <stdbool.h>

#include "base/err.h"
#include "image/make/lock.h"
#include "image/make/want.h"

struct make_policy {
    bool builds;                 /* images may be built at all */
    bool pinned;                 /* only packages with an exact version */
    bool hashes;                 /* only from a lock */
    const char *const *packages; /* patterns such as "pip:polars", NULL at the end. None: any */
};

/* May it add these names, or what the lock has (NULL: there is none)? ERR_INPUT says what is
 * allowed. */
int make_policy_check(const struct make_policy *policy, const struct make_wants *wants,
                      const struct make_lock *lock, struct err *err);
/* "pip:NAME", "npm:NAME", "apt:NAME" or "NAME" of any kind, each with "*" in it. */
bool make_policy_pattern_valid(struct str text);

#endif
