/* Orphans among our descendants. */
#ifndef BASE_ADOPT_H
#define BASE_ADOPT_H

#include <sys/prctl.h>

#include "base/attr.h"

/* From now on they become our children, and not init's. 0, or -1 with errno. This is no wall:
 * dev/check-layers knows of the call. */
static inline attr_must_use int adopt_orphans(void)
{
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

#endif
