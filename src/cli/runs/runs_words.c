/* Times, sizes and ids of runs for people. Runs in the cli process. */
#include "cli/runs/runs_words.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/attr.h"
#include "base/clock.h"
#include "cli/term/span.h"

#define LONGEST_S (INT64_C(1000) * 366 * 86400)

/* timegm accepts the 31st of February; a date that comes back changed was none. */
static bool read_moment(const char *text, int64_t *out)
{
    static const char *const forms[] = { "%Y-%m-%d", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S",
                                         "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M" };
    for (size_t i = 0; i < array_len(forms); i++) {
        struct tm parts = { 0 };
        const char *end = strptime(text, forms[i], &parts);
        int day = parts.tm_mday, hour = parts.tm_hour;
        if (!end || *end || parts.tm_year < 70)
            continue;
        *out = (int64_t)timegm(&parts);
        return parts.tm_mday == day && parts.tm_hour == hour;
    }
    return false;
}

int cli_runs_read_time(const char *text, const char *option, int64_t now_ms, int64_t *out,
                       struct err *err)
{
    int64_t span = 0, at = 0;
    *out = 0;
    if (!text)
        return 0;
    if (cli_span_read(str_of(text), LONGEST_S, &span)) {
        /* Longer ago than 1970 is no bound, but a bound was asked for. */
        *out = span * 1000 < now_ms ? now_ms - span * 1000 : 1;
        return 0;
    }
    if (read_moment(text, &at)) {
        *out = at > 0 ? at * 1000 : 1;
        return 0;
    }
    err_set(err, ERR_USAGE, "option '--%s' is '%.80s', not a time", option, text);
    err_hint(err, "write for example --%s 2h, --%s 7d or --%s 2026-11-01", option, option, option);
    return -1;
}

int64_t cli_runs_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void cli_runs_add_ms(struct buf *out, double ms)
{
    if (!(ms >= 0))
        buf_add_text(out, "-");
    else if (ms < 9.95)
        buf_printf(out, "%.1f ms", ms);
    else if (ms < 999.5)
        buf_printf(out, "%.0f ms", ms);
    else if (ms < 99950)
        buf_printf(out, "%.1f s", ms / 1000);
    else
        buf_printf(out, "%.0f min %.0f s", (double)(int64_t)(ms / 60000),
                   (double)((int64_t)(ms / 1000) % 60));
}

void cli_runs_add_age(struct buf *out, double seconds)
{
    static const struct {
        double most, unit;
        char letter;
    } rows[] = { { 120, 1, 's' }, { 7200, 60, 'm' }, { 172800, 3600, 'h' } };
    for (size_t i = 0; i < array_len(rows); i++)
        if (seconds < rows[i].most) {
            buf_printf(out, "%.0f%c", seconds > 0 ? (double)(int64_t)(seconds / rows[i].unit) : 0.0,
                       rows[i].letter);
            return;
        }
    buf_printf(out, "%.0fd", seconds < 1e12 ? (double)(int64_t)(seconds / 86400) : 0.0);
}

void cli_runs_add_time(struct buf *out, double at)
{
    char text[40];
    struct tm parts;
    time_t whole = at > 0 && at < 1e11 ? (time_t)at : 0;
    if (whole == 0 || !gmtime_r(&whole, &parts) ||
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts) == 0)
        return;
    buf_add_text(out, text);
}

void cli_runs_add_count(struct buf *out, int64_t count, const char *what)
{
    buf_printf(out, "%lld %s%s", (long long)count, what, count == 1 ? "" : "s");
}

enum cli_term_style cli_runs_status_style(struct str status)
{
    if (str_is(status, "ok"))
        return CLI_GREEN;
    return str_is(status, "started") || str_is(status, "interrupted") ? CLI_YELLOW : CLI_RED;
}
