/* What the engine says of sessions, for a person. */
#ifndef CLI_SESSION_SESSION_SHOW_H
#define CLI_SESSION_SESSION_SHOW_H

#include <jansson.h>

/* Each takes a part of an answer (docs/protocol.md, "Sessions") and writes to stdout. */
void cli_session_show_list(const json_t *sessions);
void cli_session_show_info(const json_t *info);
void cli_session_show_names(const json_t *info);
void cli_session_show_files(const json_t *answer);
/* What a cell did to the names, of its result; to stderr. */
void cli_session_show_changes(const json_t *result);

/* Where an undo has led to, and what a copy could not carry; to stderr. */
void cli_session_show_undo(const json_t *answer);

#endif
