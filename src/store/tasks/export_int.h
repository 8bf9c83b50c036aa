/* Private to the exports: the task as questions with their steps. */
#ifndef STORE_TASKS_EXPORT_INT_H
#define STORE_TASKS_EXPORT_INT_H

#include "base/json.h"
#include "store/tasks/export.h"

struct export_doc {
    const json_t *row;
    const json_t *pictures;
    json_t *questions; /* [{"task":{...},"steps":[STEP],"asked":[...],"report":{...}|null}] */
};

int export_html(const struct export_doc *doc, struct buf *out);
int export_markdown(const struct export_doc *doc, struct buf *out);
int export_notebook(const struct export_doc *doc, struct buf *out);

/* "2026-11-16 19:00:00 UTC" of seconds, "" for null. */
void export_time(const json_t *seconds, char out[40]);
/* The proof of a value of the answer, or NULL. */
const json_t *export_trace(const json_t *report, const char *name);
/* A value as short text. */
void export_value(const json_t *value, struct buf *out);
/* "0.0123 USD; 4 requests, 5052 tokens in, 347 out". */
void export_cost(const json_t *row, struct buf *out);
/* Is it base64, and nothing else? */
bool export_is_base64(struct str text);

/* Pictures of a result that a page may show: calls `each` with a media type and base64. */
typedef void export_picture(void *user, const char *mime, struct str base64, const char *name);
void export_each_picture(const json_t *result, export_picture *each, void *user);
/* A picture that was made, by its path: as the row of `pictures`, checked; NULL: none. */
const json_t *export_made(const struct export_doc *doc, const char *path);

/* A line for each call of a tool: its name, arguments and outcome. */
#define EXPORT_CALLS_MAX ((size_t)16 << 20)
void export_calls(const json_t *result, struct buf *out);

#endif
