/* Whose a file is: tool files, their folder and the secrets' file decide which programs run as the
 * caller, so no other user may write them. Runs in the tool host's process. */
#ifndef TOOL_HOST_OWNED_H
#define TOOL_HOST_OWNED_H

#include "base/attr.h"
#include "base/err.h"

enum owned_kind {
    OWNED_FILE,        /* a regular file that only its owner may write */
    OWNED_SECRET_FILE, /* a regular file that only its owner may read */
    OWNED_FOLDER,      /* a folder that only its owner may write */
};

/* Is it this user's or root's, and closed to others? 0, or -1 with ERR_INPUT: "it belongs to
 * another user", with a hint. */
int owned_check(int fd, enum owned_kind kind, struct err *err) attr_must_use;

#endif
