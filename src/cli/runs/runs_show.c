/* `cupel runs show`. Runs in the cli process, after the drop of rights. */
#include <unistd.h>

#include "base/json.h"
#include "cli/runs/runs.h"
#include "cli/runs/runs_report.h"
#include "cli/runs/runs_words.h"

#define REPORT_MAX (64u << 20)

int cli_runs_show(struct cli_runs *runs, struct err *err)
{
    own_json record = cli_runs_find(runs, runs->options.rest.at[0], err);
    own_buf out = BUF_INIT(REPORT_MAX);
    if (!record)
        return -1;
    if (runs->options.json)
        return cli_term_json(record);
    cli_runs_report(record, (double)cli_runs_now_ms() / 1000, &out);
    cli_term_write(STDOUT_FILENO, buf_str(&out));
    return 0;
}
