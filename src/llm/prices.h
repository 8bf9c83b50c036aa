/* The cost of tokens. */
#ifndef LLM_PRICES_H
#define LLM_PRICES_H

#include "base/err.h"
#include "llm/llm_int.h"

/* A model's price: from the user's prices.json, else built in; the longest entry that the name
 * begins with, ignoring a date at its end. LLM_PRICE_UNKNOWN if there is none. -1 with err if
 * prices.json is wrong. */
int llm_price_find(const char *name, struct llm_price *out, struct err *err);

/* The cost of a reply; negative: unknown. */
double llm_price_of(const struct llm_price *price, const struct llm_usage *usage);
/* The maximum cost of a request; negative: unknown. */
double llm_price_bound(const struct llm_price *price, const struct llm_request *request);

#endif
