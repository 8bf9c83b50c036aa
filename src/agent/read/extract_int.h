/* Private to the extractor's files. */
#ifndef AGENT_READ_EXTRACT_INT_H
#define AGENT_READ_EXTRACT_INT_H

#include "agent/read/extract.h"
#include "base/buf.h"

/* Offsets into the reply's text. */
struct agent_extract_block {
    size_t begin, end; /* of the whole block with its marks */
    size_t from, to;   /* of its content */
};

/* The first block of code at or after `at`. */
bool agent_extract_find(struct str text, size_t at, struct agent_extract_block *out);
/* `<name>...</name>` or a fenced ```name block. */
bool agent_extract_named(struct str text, const char *name, struct agent_extract_block *out);
/* `<name>` at a line's start, and all text to its close mark or the end. */
bool agent_extract_tag(struct str text, const char *name, struct agent_extract_block *out);
/* Is the reply one block, perhaps announced, in a language that does not run here? */
bool agent_extract_is_foreign(struct str text);
size_t agent_extract_line_end(struct str text, size_t at);

/* Valid Python: no prompts, no marks at the edges, no common indent. Heap; NULL if nothing is
 * left. */
char *agent_extract_clean(struct str code);
/* An identifier, which may be a keyword argument. */
bool agent_extract_is_name(const char *text);
/* Is the whole text Python and nothing else? Cautious: prose is never run. */
bool agent_extract_is_bare(struct str text);
/* May a block without a language be Python? */
bool agent_extract_is_pythonic(struct str code);

#endif
