/* Between the files of export. */
#ifndef STORE_RECORDS_EXPORT_INT_H
#define STORE_RECORDS_EXPORT_INT_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"

/* A language as other programs know it. */
struct records_export_language {
    const char *name;
    const char *shebang; /* or NULL */
    const char *comment;
    const char *kernel, *kernel_name; /* of Jupyter */
};
const struct records_export_language *records_export_language_of(const json_t *record);

/* One fact for the reader of the file: "inputs", "data.csv (12 bytes, sha256 ...)". The value is
 * one line of ASCII. */
typedef void records_export_fact(void *user, const char *name, const char *value);
void records_export_facts(const json_t *record, records_export_fact *fact, void *user);
/* An act on a session in words: one line of ASCII. Nothing for one that changes nothing. */
void records_export_act(const json_t *act, struct buf *out);
static inline bool records_export_is_act(const json_t *entry)
{
    return json_object_get(entry, "act") != NULL;
}

/* Did its code, or that of a cell before it, have tools? Can the export stand in for them: is it
 * Python, and are all of the calls there? */
bool records_export_has_tools(const json_t *record, const json_t *before);
bool records_export_stands_in(const json_t *record, const json_t *before);
/* Appends the Python that does. */
int records_export_tools(const json_t *record, const json_t *before, struct buf *out);
#define RECORDS_EXPORT_NO_TOOLS                                                               \
    "Its code calls tools, which are not here: 'cupel runs replay' answers the calls."
#define RECORDS_EXPORT_TOOLS "Its code calls tools: each call gets the outcome that was recorded."

int records_export_notebook(const json_t *record, const json_t *before, struct buf *out);
int records_export_script(const json_t *record, const json_t *before, struct buf *out);

#endif
