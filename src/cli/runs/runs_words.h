/* Times, sizes and ids of runs as people write and read them. Pure, but for the clock that the
 * caller read. */
#ifndef CLI_RUNS_RUNS_WORDS_H
#define CLI_RUNS_RUNS_WORDS_H

#include <jansson.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "cli/term/term.h"

/* "2h", "7d", "2026-11-01", "2026-11-01T12:00:00Z" as milliseconds since 1970; 0 for NULL. `option`
 * names it in the err. */
int cli_runs_read_time(const char *text, const char *option, int64_t now_ms, int64_t *out,
                       struct err *err);
int64_t cli_runs_now_ms(void);

/* "12 ms", "1.23 s", "2 min 3 s". */
void cli_runs_add_ms(struct buf *out, double ms);
/* "12s", "5m", "3h", "40d". */
void cli_runs_add_age(struct buf *out, double seconds);
/* "2026-11-16 19:20:11 UTC". */
void cli_runs_add_time(struct buf *out, double at);
/* "1 run", "2 runs". */
void cli_runs_add_count(struct buf *out, int64_t count, const char *what);

#define CLI_RUNS_SHORT 12 /* characters of an id that are unique enough to paste */
enum cli_term_style cli_runs_status_style(struct str status);

static inline double cli_runs_number(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

#endif
