/* The outcome of a tool's call, JSON and the same everywhere: {"value": ANY}, perhaps with
 * "files": [{"name","mime","base64"}], or {"error": {"kind","message"}}. */
#ifndef TOOL_DEFINE_OUTCOME_H
#define TOOL_DEFINE_OUTCOME_H

#include <jansson.h>
#include <stdbool.h>

#include "base/attr.h"

/*    id         name         what happened */
#define OUTCOME_KINDS(X)                                           \
    X(ERROR, "error")         /* the tool or its answer is wrong */ \
    X(DENIED, "denied")       /* policy, a cap or a person refused */ \
    X(TIMEOUT, "timeout")     /* it took longer than its cap */     \
    X(CANCELLED, "cancelled") /* the caller ended the call */

enum outcome_kind {
#define X(id, name) OUTCOME_##id,
    OUTCOME_KINDS(X)
#undef X
    OUTCOME_KINDS_COUNT
};

#define OUTCOME_MESSAGE_MAX 4096 /* bytes of an error's message */
#define OUTCOME_FILES_MAX 64

/* Takes the value; files may be NULL. */
json_t *outcome_value(json_t *value);
json_t *outcome_value_files(json_t *value, json_t *files);
/* The message is cut to OUTCOME_MESSAGE_MAX, and bytes that are not UTF-8 are replaced. */
json_t *outcome_error(enum outcome_kind kind, const char *fmt, ...) attr_printf(2, 3);

/* Has it the form above, and nothing else? For outcomes from another process. */
bool outcome_is_good(const json_t *outcome);
/* The kind of an outcome with an error; OUTCOME_KINDS_COUNT for a value. */
enum outcome_kind outcome_kind_of(const json_t *outcome);
const char *outcome_kind_name(enum outcome_kind kind);

#endif
