/* Definitions of tools: JSON to struct tool, checked; names and patterns of names; the policy. No
 * I/O; a struct tool never changes after tool_read.
 *
 *   {"name", "description", "input_schema", "output_schema"?, "effect"?, "policy"?, "caps"?,
 *    "idempotency_key"?, "source"?} */
#ifndef TOOL_DEFINE_DEFINE_H
#define TOOL_DEFINE_DEFINE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/str.h"
#include "tool/define/schema.h"

#define TOOL_NAME_MAX 64
#define TOOL_DESCRIPTION_MAX (16 << 10)
#define TOOL_SOURCE_MAX 256
#define TOOL_RULES_MAX 64        /* rules of a policy */
#define TOOL_PATTERN_MAX 256     /* bytes of a pattern for an argument */
#define TOOL_CALLS_MAX 1000000   /* the caps' own maximums */
#define TOOL_TIMEOUT_MAX_MS (3600 * 1000)
#define TOOL_RESULT_BYTES_MAX (16 << 20)
#define TOOL_AT_ONCE_MAX 64

enum tool_effect { TOOL_READ, TOOL_WRITE, TOOL_IRREVERSIBLE, TOOL_EFFECTS };
enum tool_verdict { TOOL_ALLOW, TOOL_ASK, TOOL_DENY, TOOL_VERDICTS };

struct tool {
    char *name;
    json_t *definition; /* deep copy of the whole definition */
    struct schema *input, *output; /* output: NULL where there is none */
    enum tool_effect effect;
    const json_t *policy; /* borrowed from the definition; NULL: the effect decides */
    int64_t calls_max, timeout_ms, result_bytes;
    unsigned at_once;
    const char *key_argument; /* of the idempotency key, or NULL; borrowed */
    const char *description;  /* borrowed */
    const char *source;       /* where it comes from, for people, or NULL; borrowed */
};
#define TOOL_INIT ((struct tool){ .name = NULL })

/* Full check of a definition. 0, or -1 with ERR_INPUT: err->field is the dotted name of the field,
 * or the JSON pointer within a schema after its name ("input_schema/properties/q"). */
int tool_read(const json_t *definition, struct tool *out, struct err *err) attr_must_use;
void tool_done(struct tool *tool);
#define own_tool attr_cleanup(tool_done) struct tool

/* The policy's verdict on one call: the first rule whose patterns all match. Arguments that are no
 * object are denied. To be called with arguments that the input schema accepts. */
enum tool_verdict tool_judge(const struct tool *tool, const json_t *arguments);

/* Does the text fit a pattern in which `*` stands for any bytes, also for none? */
bool tool_glob_fits(struct str text, struct str pattern);

/* Parts of [A-Za-z_][A-Za-z0-9_-]*, with dots between, at most TOOL_NAME_MAX bytes. */
bool tool_name_is_good(struct str name);
/* A name, or one with `*` for parts; a last `*` stands for one part or more ("github.*", "*"). */
bool tool_pattern_is_good(struct str pattern);
bool tool_name_fits(struct str name, const char *pattern);

const char *tool_effect_name(enum tool_effect effect);
const char *tool_verdict_name(enum tool_verdict verdict);

#endif
