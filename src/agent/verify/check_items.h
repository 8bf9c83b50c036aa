/* Lists and tables of an answer, counted. What cannot be counted is said to be so. Pure. */
#ifndef AGENT_VERIFY_CHECK_ITEMS_H
#define AGENT_VERIFY_CHECK_ITEMS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

#define AGENT_ITEMS_LISTS_MAX 16

struct agent_items {
    size_t counts[AGENT_ITEMS_LISTS_MAX]; /* of each list and table */
    size_t lists;
    size_t total; /* of all of them */
    size_t loose; /* names between commas without a colon, where there is no list: a guess */
};

/* Numbered and bulleted lists (their outer items), tables, a JSON array; where there is none of
 * these, names between commas behind a colon. lists is 0 where nothing can be counted. */
void agent_items_count(struct str answer, struct agent_items *out);
bool agent_items_is_row(struct str line);  /* | a | b | */
bool agent_items_is_rule(struct str line); /* |---|---| */
bool agent_items_is_letter(char c);
/* The text of a list's item behind its mark; STR_NONE: the line is none. */
struct str agent_items_item(struct str line);

#endif
