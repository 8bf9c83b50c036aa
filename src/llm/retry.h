/* When to send a failed request again. */
#ifndef LLM_RETRY_H
#define LLM_RETRY_H

#include <stdbool.h>

#include "llm/llm_int.h"

/* Seconds before the next try, after `tries` of them; negative: no more tries. `chance`: 0 to 1. */
double llm_retry_wait(const struct llm_try *try, int tries, double chance);
double llm_retry_chance(void);
/* False if cancelled meanwhile. */
bool llm_retry_sleep(const struct llm_watch *watch, double seconds);

#endif
