/* The plan as data, {"steps":["..."]}, from the model's lines. */
#ifndef AGENT_LOOP_PLAN_REPLY_H
#define AGENT_LOOP_PLAN_REPLY_H

#include <jansson.h>

/* `text` may be NULL. Never NULL. */
json_t *agent_plan_read(const char *text);

#endif
