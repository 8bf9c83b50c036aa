/* Shows the engine's answers about sessions to a person. */
#ifndef CLI_SESSION_SESSION_SHOW_H
#define CLI_SESSION_SESSION_SHOW_H

#include <jansson.h>

/* Each takes a part of an answer (docs/protocol.md, "Sessions") and writes to stdout. */
void cli_session_show_list(const json_t *sessions);
void cli_session_show_info(const json_t *info);
void cli_session_show_names(const json_t *info);
void cli_session_show_files(const json_t *answer);
/* A cell's changes to the names, from its result; to stderr. */
void cli_session_show_changes(const json_t *result);

/* The target of an undo, and what a copy could not carry; to stderr. */
void cli_session_show_undo(const json_t *answer);

#endif
