/* The host's secrets: a JSON object of names and texts, in a file that only its owner can read.
 * They live in the tool host's process alone. A snapshot never changes; threads share it. */
#ifndef TOOL_HOST_SECRETS_H
#define TOOL_HOST_SECRETS_H

#include <jansson.h>
#include <stdbool.h>

#include "base/attr.h"
#include "base/err.h"

#define SECRETS_FILE_MAX ((size_t)1 << 20)
#define SECRETS_COUNT_MAX 256
#define SECRETS_LEN_MIN 6 /* a shorter text would be hidden in much that is none */
#define SECRETS_LEN_MAX 4096

struct secrets;

/* Read the file; one that does not exist, or no path, gives an empty snapshot. NULL with err for a
 * file that is not the owner's alone, or not of that form; the err repeats nothing of it. */
struct secrets *secrets_read(const char *path, struct err *err) attr_must_use;
struct secrets *secrets_ref(struct secrets *secrets);
void secrets_unref(struct secrets *secrets);

/* Every string of the value with the secrets hidden, as by secrets_hide (tool/host/source.h); also
 * a number that holds one. Takes the value, and returns one. */
json_t *secrets_scrub(const struct secrets *secrets, json_t *value);

#endif
