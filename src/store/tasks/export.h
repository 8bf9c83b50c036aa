/* A task as a document for people: a notebook, Markdown, or one HTML page that needs nothing else.
 * Pure. Every text in a record is hostile: in HTML it is escaped and no script can run; pictures
 * are data, whose form is checked. */
#ifndef STORE_TASKS_EXPORT_H
#define STORE_TASKS_EXPORT_H

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"
#include "store/tasks/tasklog.h"

/*     form      name        suffix    media type */
#define EXPORT_FORMS(X)                                               \
    X(NOTEBOOK, "notebook", ".ipynb", "application/x-ipynb+json")     \
    X(MARKDOWN, "markdown", ".md", "text/markdown; charset=utf-8")    \
    X(HTML, "html", ".html", "text/html; charset=utf-8")

enum export_form {
#define X(id, name, suffix, mime) EXPORT_##id,
    EXPORT_FORMS(X)
#undef X
    EXPORT_FORM_COUNT
};
#define EXPORT_FORM_NAMES "notebook, markdown, html"
#define EXPORT_MAX ((size_t)512 << 20)

const char *export_form_mime(enum export_form form);
/* By its name, or by the name of a file; -1: none. */
int export_form_find(const char *name);
int export_form_of_file(const char *path);

/* `row` is a ROW, `events` those of tasklog_events without the passing ones, `pictures` those of
 * export_pictures. */
int export_write(enum export_form form, const json_t *row, const json_t *events,
                 const json_t *pictures, struct buf *out, struct err *err);
/* {"path":{"mime","base64"}} of the pictures that were made, as far as they are stored. */
json_t *export_pictures(struct tasklog *log, const char *owner, const char *id, struct err *err);

#endif
