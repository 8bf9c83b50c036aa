/* Models behind a server, over the network. */
#ifndef LLM_SERVER_H
#define LLM_SERVER_H

#include <jansson.h>
#include <stddef.h>

#include "base/err.h"
#include "llm/target.h"

struct llm_model;

int llm_server_open(const char *spec, struct llm_model *model, struct err *err);

/* Asks a server for its models, with a short timeout. 0: it answers, and *out_models is its list
 * (NULL if it has none); -1: it is unusable, and `detail` says why. */
int llm_server_probe(const struct llm_target *target, json_t **out_models, char *detail,
                     size_t room);

#endif
