/* The plan as data: {"steps":["..."],"requirements":[REQUIREMENT],"needs_code":true|false}
 * (agent/agent.h), from the model's text or from the question alone. */
#ifndef AGENT_LOOP_PLAN_REPLY_H
#define AGENT_LOOP_PLAN_REPLY_H

#include <jansson.h>
#include <stdbool.h>

/* `from_model` may be NULL or anything. Never NULL. */
json_t *agent_plan_read(const json_t *from_model, const char *question);
bool agent_plan_is_plain(const json_t *plan);

#endif
