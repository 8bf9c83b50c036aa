/* An engine for sessions: a running one, or a new one. */
#ifndef CLI_LINK_ENGINE_START_H
#define CLI_LINK_ENGINE_START_H

#include "base/err.h"
#include "cli/link/remote.h"

/* Connects to this user's engine; if none runs, starts one in the background, says so, and waits
 * for it. Called as the caller. The lock beside the socket decides between simultaneous starts. */
int cli_session_start(struct cli_remote *remote, struct err *err);
/* Connects to a running engine. ERR_ABSENT with a hint if there is none. */
int cli_session_reach(struct cli_remote *remote, const char *id, struct err *err);
/* Connects to a running engine, or starts one that lives as long as the connection. An engine named
 * by CUPEL_SOCKET must already run. */
int cli_session_carry(struct cli_remote *remote, struct err *err);
/* Starts an engine for this connection alone, whatever engine runs, with these options of `cupel
 * serve`, and a NULL. An engine that does not start says why. */
int cli_session_own(struct cli_remote *remote, char *const *options, struct err *err);
/* The same; the engine's standard error stays readable behind *out_errors. */
int cli_session_own_heard(struct cli_remote *remote, char *const *options, int *out_errors,
                          struct err *err);
/* The word in it that begins the outcome of a session on a folder: "changes COUNT SET CUT". */
#define CLI_SESSION_CHANGES "changes"

#endif
