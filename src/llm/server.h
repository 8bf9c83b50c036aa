/* Models behind a server, over the network. */
#ifndef LLM_SERVER_H
#define LLM_SERVER_H

#include <jansson.h>
#include <stddef.h>

#include "base/err.h"
#include "llm/target.h"

struct llm_model;

/* A model by any name that llm_target_find knows. 0, or -1 with err. */
int llm_server_open(const char *spec, struct llm_model *model, struct err *err);

/* Ask a server which models it has, with a short patience. 0: it answers, and *out_models is
 * what it said (NULL where it has no list); -1: it cannot be used, and `detail` says why. */
int llm_server_probe(const struct llm_target *target, json_t **out_models, char *detail,
                     size_t room);

#endif
