/* The recorded replies of a question, served in their order before any model is asked. With the
 * same replies the loop makes the same cells, messages and checks: a task that is taken up comes to
 * where it stopped, and a replay runs to its end. */
#ifndef AGENT_LOOP_TAPE_H
#define AGENT_LOOP_TAPE_H

#include <jansson.h>
#include <stdbool.h>

#include "agent/agent.h"

struct agent;
struct agent_call;

struct agent_tape {
    size_t replies, asked, after, steps; /* that were used of the past */
    bool live; /* models are asked, events are recorded */
    bool refused; /* a cell did not run as it did: nothing is recorded */
};

/* At the start of a question. */
void agent_tape_begin(struct agent *agent);
/* The next reply from the record, with the seconds that it took. False: the model is asked. */
bool agent_tape_serve(struct agent *agent, const struct agent_call *call, struct llm_reply *out,
                      double *out_seconds);
/* A reply of a model, for the record. */
void agent_tape_keep(struct agent *agent, const struct agent_call *call,
                     const struct llm_reply *reply, double seconds);
/* The user's recorded reply to a question of the model, heap, or NULL; false: ask. */
bool agent_tape_asked(struct agent *agent, char **out);
/* Every event, before it is told. False: it is not recorded, the record has it already. */
bool agent_tape_hears(struct agent *agent, const char *kind, const json_t *data);

#endif
