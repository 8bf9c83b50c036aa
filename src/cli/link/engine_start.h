/* An engine for sessions: the one that runs, or one that is started for them. */
#ifndef CLI_LINK_ENGINE_START_H
#define CLI_LINK_ENGINE_START_H

#include "base/err.h"
#include "cli/link/remote.h"

/* Connect to this user's engine; where none runs, start one in the background, say so,
 * and wait for it. Done as the caller. Of several that come at the same moment one
 * starts it and the others find it: the lock beside the socket decides. */
int cli_session_start(struct cli_remote *remote, struct err *err);
/* Connect to one that runs. Where there is none: ERR_ABSENT, and what to do. */
int cli_session_reach(struct cli_remote *remote, const char *id, struct err *err);
/* Connect to one that runs; where there is none, start one that lives as long as the connection.
 * An engine that CUPEL_SOCKET names must be there. */
int cli_session_carry(struct cli_remote *remote, struct err *err);

#endif
