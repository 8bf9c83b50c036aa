/* Reads a plan: a few lines of text. Pure. It locks nothing, and may be revised at any time. */
#include "agent/loop/plan_reply.h"

#include <string.h>

#include "base/json.h"
#include "base/str.h"

#define STEPS_MAX 12
#define STEP_MAX 300

/* "- Read it", "1. Read it": the mark is no part of the step. */
static struct str without_mark(struct str line)
{
    size_t at = 0;
    line = str_trim(line);
    while (at < line.len && strchr("-*0123456789.) ", line.at[at]))
        at++;
    return (struct str){ line.at + at, line.len - at };
}

json_t *agent_plan_read(const char *text)
{
    json_t *steps = json_array();
    struct str rest = str_of(text ? text : "");
    while (rest.len && json_array_size(steps) < STEPS_MAX) {
        const char *end = memchr(rest.at, '\n', rest.len);
        size_t len = end ? (size_t)(end - rest.at) : rest.len;
        struct str line = without_mark((struct str){ rest.at, len });
        if (line.len)
            json_array_append_new(steps,
                                  json_text((struct str){ line.at, str_cut_utf8(line, STEP_MAX) }));
        rest = (struct str){ rest.at + len + (end != NULL), rest.len - len - (end != NULL) };
    }
    return json_pack("{s:o}", "steps", steps);
}
