/* The conversation with a model (format: llm/llm.h). It only grows at its end, so that a provider's
 * cache keeps its prefix; a long one shortens all older observations at once. */
#ifndef AGENT_LOOP_HISTORY_H
#define AGENT_LOOP_HISTORY_H

#include <jansson.h>
#include <stdbool.h>

#include "agent/read/extract.h"

struct agent_history {
    json_t *messages;
    json_t *briefs; /* for each message: its short form, or null */
};

void agent_history_init(struct agent_history *history);
void agent_history_done(struct agent_history *history);

void agent_history_say(struct agent_history *history, const char *text);
/* Adds the model's reply. In the text grammars it is cut after the code: the model invented the
 * rest. */
void agent_history_reply(struct agent_history *history, const json_t *content,
                         const struct agent_action *action);
/* Adds a cell's observation, as the result of its call if there was one. `pictures` is an array of
 * image PARTs or NULL; `brief` is the short form for later. */
void agent_history_observe(struct agent_history *history, const struct agent_action *action,
                           const char *text, const char *brief, json_t *pictures);

size_t agent_history_size(const struct agent_history *history);
/* Shortens observations, except the last `spared`. False: there were none. */
bool agent_history_shrink(struct agent_history *history, size_t spared);
/* Removes the oldest reply and what followed it, but never the first message or the last `spared`
 * messages. False: there was none. */
bool agent_history_drop(struct agent_history *history, size_t spared);
/* The part that was said last; its pointer names it for ever. */
json_t *agent_history_last(const struct agent_history *history);
/* Takes back the part and all after it. */
void agent_history_cut(struct agent_history *history, const json_t *part);

#endif
