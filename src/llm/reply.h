/* The parts of a reply (described in llm.h). */
#ifndef LLM_REPLY_H
#define LLM_REPLY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "llm/llm.h"

#define LLM_CONTENT_MAX (1u << 20) /* text, arguments and raw blocks of one reply */

/* Each appends to `parts`; takes over `arguments` and `block`. Empty text is dropped; a NUL, which
 * would hide the rest, becomes U+FFFD. A call without an id gets one, counted by `made_ids`; its
 * name is changed to one that servers accept. -1 for a call without a name or arguments. */
void llm_parts_text(json_t *parts, struct str text);
int llm_parts_call(json_t *parts, struct str id, struct str name, json_t *arguments,
                   unsigned *made_ids);
void llm_parts_raw(json_t *parts, const char *wire, json_t *block);

/* Arguments as an object, from an object or its JSON text (nothing: {}); NULL for anything else,
 * e.g. cut text. */
json_t *llm_call_arguments(const json_t *value);

bool llm_part_is(const json_t *part, const char *type);
bool llm_parts_have(const json_t *parts, const char *type);

/* Completes the reply with these parts, which it takes over. */
void llm_reply_take(struct llm_reply *reply, json_t *parts);

/* A count of tokens; -1 if missing or impossibly large, so that sums cannot overflow. */
int64_t llm_count(const json_t *object, const char *field);
/* Input tokens without the cache's, which some wires include. */
int64_t llm_input_without(int64_t all, int64_t cache_read, int64_t cache_write);

#endif
