/* A record as a report for people. Pure: RECORD in, text out; recorded texts are made visible. */
#ifndef CLI_RUNS_RUNS_REPORT_H
#define CLI_RUNS_RUNS_REPORT_H

#include <jansson.h>

#include "base/buf.h"

/* now: seconds since 1970. */
void cli_runs_report(const json_t *record, double now, struct buf *out);

/* Its parts. */
void cli_runs_report_head(const json_t *record, double now, struct buf *out);
void cli_runs_report_code(const json_t *record, struct buf *out);
void cli_runs_report_calls(const json_t *result, struct buf *out);
void cli_runs_report_cost(const json_t *record, struct buf *out);
void cli_runs_report_origin(const json_t *record, struct buf *out);

/* "\nCode\n" */
void cli_runs_report_title(struct buf *out, const char *title);
/* Lines of a text, each indented, at most `most` of them and 16 KiB. Returns whether lines were
 * left out. */
bool cli_runs_report_block(struct buf *out, struct str text, size_t most);

#endif
