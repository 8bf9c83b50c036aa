/* The notes of a server that is ready. */
#ifndef CLI_SERVE_SERVE_NOTES_H
#define CLI_SERVE_SERVE_NOTES_H

#include <jansson.h>

#include "engine/engine.h"

/* Runs nothing in a box of the profile, to see which walls stand: an array of names that are
 * missing; NULL with an err if it could not. Before the engine serves. */
json_t *cli_serve_missing(struct engine *engine, const char *profile, struct err *err);
/* Address, token, a first request, and the missing walls. */
void cli_serve_notes(const char *socket, const json_t *urls, const char *profile,
                     const json_t *missing, const struct err *why);

#endif
