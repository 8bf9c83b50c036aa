/* Requirements and the formats they name, within the agent's checks. Pure. Beyond what agent.h
 * lists, a check may say {"answer":"percent"|"name"}, {"sorted":"ascending"|"descending"|"any"},
 * {"file":"*.csv"} (any of that kind) and the format "picture". */
#ifndef AGENT_VERIFY_CHECKLIST_H
#define AGENT_VERIFY_CHECKLIST_H

#include <jansson.h>

#include "agent/verify/verify.h"
#include "base/buf.h"
#include "base/str.h"

/* The check in a requirement's object, validated; NULL: none that is understood. */
json_t *agent_checklist_check(const json_t *from);

/* checklist_assert.c: adds a REQUIREMENT for each assertion that stands in the question. */
void agent_checklist_asserts(struct str question, json_t *out);

/* check_format.c: files by their structure. */
bool agent_format_is_known(const char *format);
/* By the name's end; NULL: not known. */
const char *agent_format_of_path(const char *path);
/* Is the content whole and of that format? False with the reason in `why`. */
bool agent_format_check(const char *format, struct str content, struct buf *why);

/* check_table.c: rows of a table, without the header; -1: cannot be told. `with_header` counts
 * it. */
struct agent_table {
    long rows;
    long first_is_row; /* rows if the first line is no header */
    json_t *columns;   /* names; NULL: cannot be told. Caller: json_decref */
};
void agent_table_read(const char *format, struct str content, struct agent_table *out);
/* Fields of each CSV row are the same in number: false with the reason. */
bool agent_table_is_even(struct str content, char mark, struct buf *why);

/* check_answer.c: 1 it is so, 0 it is not, -1 cannot be told; `why` in any case. */
int agent_answer_is(const char *kind, struct str answer, const struct agent_claim *claim,
                    struct buf *why);
int agent_answer_is_sorted(const char *order, struct str answer, struct buf *why);

#endif
