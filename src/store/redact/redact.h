/* Redaction: key-like strings in a text become markers before the text is stored. Pure after
 * redact_open, which loads PCRE2; any thread of any process may use an opened one.
 * 1. A marker is "[redacted:KIND:abcdef12]". The eight digits are a keyed hash of the secret: the
 *    same secret has the same marker in one store, and nobody without the key can try guesses.
 * 2. Time is linear in the length of the text, whatever the text is.
 * 3. A text that cannot be searched within its limits becomes one marker, of kind "limit".
 * 4. A marker is never searched: redacting a redacted text changes nothing. */
#ifndef STORE_REDACT_REDACT_H
#define STORE_REDACT_REDACT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#define REDACT_KEY_BYTES 32
#define REDACT_MARKER_MAX 48 /* bytes of a marker; a secret of a few bytes grows to it */

struct redact; /* compiled patterns; read-only after redact_open, so threads may share it */

/* extra: patterns of the configuration (key `redact`), ended by NULL; NULL: none. key: of this
 * store, random. NULL with err: ERR_INPUT names the pattern, the offset and PCRE2's message;
 * ERR_HOST where the library is missing. */
struct redact *redact_open(const char *const *extra, const unsigned char key[REDACT_KEY_BYTES],
                           struct err *err);
void redact_close(struct redact *redact);
/* Can these patterns be used? Loads nothing where there are none. */
int redact_check(const char *const *extra, struct err *err);

static inline void redact_drop(struct redact **redact)
{
    redact_close(*redact);
    *redact = NULL;
}
#define own_redact attr_cleanup(redact_drop) struct redact *

/* Makes a keyed sum of a SHA-256 in hexadecimal, in place: a plain one of a text with a short
 * secret lets anybody try guesses. Equal sums stay equal in one store. */
void redact_sum(const struct redact *redact, char *hex);
/* redact_sum for the sums of code and inputs in every "provenance". */
void redact_sums(const struct redact *redact, json_t *value);

/* Is this the secret of a marker with these eight digits? */
bool redact_is(const struct redact *redact, struct str secret, const char *digits);

/* Appends `text` with every key-like string replaced, and returns how many were. 0: the text was
 * appended byte for byte. A result above out's maximum becomes one marker, of kind "limit". */
size_t redact_text(const struct redact *redact, struct str text, struct buf *out);
/* Might redact_text find something? false is certain. Copies nothing. */
bool redact_may(const struct redact *redact, struct str text);

/* Redacts every string of a JSON value in place, keys included, and returns how many were. The
 * name of a member is the context of its value ("password": "..."), and so is an option before its
 * value in an array ("--token", "..."). Members whose names end in "base64" are decoded, redacted
 * and encoded where they hold text. Pictures and other binary forms of a result that are base64,
 * and the bytes of files, stay. */
size_t redact_json(const struct redact *redact, json_t *value);
/* Might redact_json of what this text holds as JSON find something? false is certain. */
bool redact_json_may(const struct redact *redact, struct str text);
/* JSON as text: appended unchanged, byte for byte, if nothing was found; else parsed, redacted and
 * written compact. A text that is no JSON is redacted as text. */
size_t redact_json_text(const struct redact *redact, struct str text, struct buf *out);

#endif
