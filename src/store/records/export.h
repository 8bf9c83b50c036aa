/* Records as files for others: a Jupyter notebook, a script, JSON. Pure: RECORD (look.h) in, text
 * out. Any process.
 *
 * Texts of a record are an attacker's: none of them ends a comment of the script or the JSON string
 * that it stands in. The code itself is written as it was recorded. */
#ifndef STORE_RECORDS_EXPORT_H
#define STORE_RECORDS_EXPORT_H

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"

enum records_export_form {
    RECORDS_EXPORT_NOTEBOOK,
    RECORDS_EXPORT_SCRIPT,
    RECORDS_EXPORT_JSON,
    RECORDS_EXPORT_FORMS
};

struct records_export_row {
    const char *name;   /* "notebook" */
    const char *ending; /* ".ipynb"; NULL: that of the language */
    const char *mime;
};
extern const struct records_export_row records_export_rows[RECORDS_EXPORT_FORMS];

/* By name, or by the ending of a file name: -1 if there is none. */
int records_export_find(const char *name);
int records_export_of_file(const char *path);

/* The export stands in for the tools of a run by its LOOK_CALLS (look.h), which the caller adds.
 * `before`: of a session's cell, the steps before it (replay/lineage.h), or all that look_session
 * gives; the record itself may be among them. NULL: none. JSON has the record alone. */
int records_export_write(enum records_export_form form, const json_t *record, const json_t *before,
                         struct buf *out, struct err *err);

#endif
