/* Adopting orphaned descendants. */
#ifndef BASE_ADOPT_H
#define BASE_ADOPT_H

#include <sys/prctl.h>

#include "base/attr.h"

/* Orphaned descendants become children of this process, not of init. 0, or -1 with errno. The call
 * is no wall: dev/check-layers exempts it. */
static inline attr_must_use int adopt_orphans(void)
{
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

#endif
