/* What tokens cost. */
#ifndef LLM_PRICES_H
#define LLM_PRICES_H

#include "base/err.h"
#include "llm/llm_int.h"

/* The price of a model by its name: the user's prices.json first, then what is built in; the
 * longest entry that the name begins with, a date at its end left out. LLM_PRICE_UNKNOWN
 * where there is none. -1 with err where prices.json is wrong. */
int llm_price_find(const char *name, struct llm_price *out, struct err *err);

/* What a reply cost; negative: not known. */
double llm_price_of(const struct llm_price *price, const struct llm_usage *usage);
/* The most that a request could cost; negative: not known. */
double llm_price_bound(const struct llm_price *price, const struct llm_request *request);

#endif
