/* Parses the text of -f. Pure: a function says whether a file exists, so that tests can answer
 * it. */
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "cli/run/run_inputs.h"

#define WORK_DIR "/workspace/"

static struct str base_name(struct str host)
{
    size_t from = host.len;
    while (from > 0 && host.at[from - 1] != '/')
        from--;
    return (struct str){ host.at + from, host.len - from };
}

/* PATH as given (may be empty), completed by the file's own name. */
static char *complete(struct str path, struct str host)
{
    own_buf whole = BUF_INIT(path.len + host.len + 1);
    if (path.len > strlen(WORK_DIR) - 1 && strncmp(path.at, WORK_DIR, strlen(WORK_DIR)) == 0) {
        path.at += strlen(WORK_DIR);
        path.len -= strlen(WORK_DIR);
    }
    buf_add_str(&whole, path);
    if (path.len == 0 || path.at[path.len - 1] == '/')
        buf_add_str(&whole, base_name(host));
    return buf_take(&whole);
}

int cli_run_spec_parse(const char *text, bool (*exists)(const char *host), struct cli_run_spec *out,
                       struct err *err)
{
    struct str rest = str_of(text);
    bool readonly = rest.len > 3 && strcmp(text + rest.len - 3, ":ro") == 0 && !exists(text);
    if (readonly)
        rest.len -= 3;
    struct str host = rest, path = STR("");
    own_str whole = buf_strdup(rest);
    const char *colon = exists(whole) ? NULL : strrchr(whole, ':');
    if (colon) {
        host.len = (size_t)(colon - whole);
        path = (struct str){ text + host.len + 1, rest.len - host.len - 1 };
    }
    while (host.len > 1 && host.at[host.len - 1] == '/')
        host.len--;
    if (host.len == 0 || base_name(host).len == 0 || (colon && path.len == 0)) {
        err_set(err, ERR_USAGE, "a file is named HOST[:PATH][:ro], not '%.80s'", text);
        err_hint(err, "for example data.csv, data.csv:in/data.csv or data.csv:ro");
        return -1;
    }
    out->host = buf_strdup(host);
    out->path = complete(path, host);
    out->readonly = readonly;
    return 0;
}

void cli_run_spec_done(struct cli_run_spec *spec)
{
    free(spec->host);
    free(spec->path);
    *spec = (struct cli_run_spec){ 0 };
}
