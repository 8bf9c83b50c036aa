/* The parts that a reply is made of (llm.h says what they look like). */
#ifndef LLM_REPLY_H
#define LLM_REPLY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "llm/llm.h"

#define LLM_CONTENT_MAX (1u << 20) /* text, arguments and raw blocks of one reply */

/* Each appends to `parts`; `arguments` and `block` are taken over. Empty text is none; a NUL in
 * it, which would hide what follows, becomes U+FFFD. A call
 * without an id gets one, which `made_ids` counts; its name is made one that servers take.
 * -1 for a call without a name or arguments. */
void llm_parts_text(json_t *parts, struct str text);
int llm_parts_call(json_t *parts, struct str id, struct str name, json_t *arguments,
                   unsigned *made_ids);
void llm_parts_raw(json_t *parts, const char *wire, json_t *block);

/* Arguments as an object, from an object or the JSON text of one (nothing: {}); NULL where
 * they are neither, e.g. cut short. */
json_t *llm_call_arguments(const json_t *value);

bool llm_part_is(const json_t *part, const char *type);
bool llm_parts_have(const json_t *parts, const char *type);

/* A whole reply of these parts, which are taken over. */
void llm_reply_take(struct llm_reply *reply, json_t *parts);

/* A count of tokens; -1 where it is not told, or is one that no model can have used: counts may
 * be added up without a care. */
int64_t llm_count(const json_t *object, const char *field);
/* Input tokens without those of the cache, which the servers of some wires count in. */
int64_t llm_input_without(int64_t all, int64_t cache_read, int64_t cache_write);

#endif
