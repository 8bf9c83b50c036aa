/* The conversation with a model, as llm/llm.h has it. It only grows at its end, so that a
 * provider's cache keeps its prefix; when it is long, older observations shrink in one go. */
#ifndef AGENT_LOOP_HISTORY_H
#define AGENT_LOOP_HISTORY_H

#include <jansson.h>
#include <stdbool.h>

#include "agent/read/extract.h"

struct agent_history {
    json_t *messages;
    json_t *briefs; /* beside each message: what stands for it once it is old, or null */
};

void agent_history_init(struct agent_history *history);
void agent_history_done(struct agent_history *history);

/* The caller's side says something. */
void agent_history_say(struct agent_history *history, const char *text);
/* The model has replied. In the text grammars its words end with the code: what it wrote after it
 * was no observation. */
void agent_history_reply(struct agent_history *history, const json_t *content,
                         const struct agent_action *action);
/* What its cell did: as the result of its call where it made one. `pictures` is an array of
 * image PARTs or NULL; `brief` stands for all of it later. */
void agent_history_observe(struct agent_history *history, const struct agent_action *action,
                           const char *text, const char *brief, json_t *pictures);

/* Characters in it, roughly. */
size_t agent_history_size(const struct agent_history *history);
/* Older observations become their briefs, all but the last `spared`. False: there was none. */
bool agent_history_shrink(struct agent_history *history, size_t spared);

#endif
