/* Looks at a running engine, or ends it. Runs in the cli process, as the caller. */
#include "cli/serve/serve_ask.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "cli/link/about.h"
#include "cli/term/term.h"

#define STOP_S 30 /* an engine ends in order within ten seconds */

static int read_about(const struct cli_serve_options *options, struct cli_about *out,
                      struct err *err)
{
    if (cli_about_read(options->socket, out, err) == 0)
        return 0;
    if (err->kind == ERR_ABSENT)
        err_hint(err, "no engine of this user runs there; 'cupel serve' starts one");
    return -1;
}

static long long number(const json_t *object, const char *name)
{
    return (long long)json_integer_value(json_object_get(object, name));
}

static void show(const json_t *info)
{
    const json_t *state = json_object_get(info, "state"), *listen = json_object_get(info, "listen");
    own_buf out = BUF_INIT(65536);
    size_t i;
    json_t *url;
    buf_printf(&out, "%s runs as process %lld\n",
               json_string_value(json_object_get(info, "engine")), number(info, "pid"));
    json_array_foreach ((json_t *)(uintptr_t)listen, i, url)
        buf_printf(&out, "listens on %s\n", json_string_value(url));
    buf_printf(&out, "runs %lld, waiting %lld, sessions %lld, boxes %lld, connections %lld\n",
               number(state, "runs"), number(state, "queued"), number(state, "sessions"),
               number(state, "boxes"), number(info, "connections"));
    cli_term_write(STDOUT_FILENO, buf_str(&out));
}

int cli_serve_status(const struct cli_serve_options *options)
{
    struct cli_about about;
    struct err err = ERR_INIT;
    int code = 0;
    if (read_about(options, &about, &err) < 0)
        return cli_term_refuse(&err, options->json);
    if (options->json)
        code = cli_term_json(about.info);
    else
        show(about.info);
    cli_about_done(&about);
    return code;
}

static int stop(const struct cli_about *about, struct err *err)
{
    long long pid = number(about->info, "pid");
    struct pollfd ended = { .fd = about->pidfd, .events = POLLIN };
    if (about->pidfd < 0 || syscall(SYS_pidfd_send_signal, about->pidfd, SIGTERM, NULL, 0) < 0)
        return errno == ESRCH ? 0 : err_sys(err, "signal the engine, process %lld", pid);
    if (poll(&ended, 1, STOP_S * 1000) > 0)
        return 0;
    err_set(err, ERR_BUSY, "the engine, process %lld, has not ended within %d s", pid, STOP_S);
    err_hint(err, "a second 'cupel serve --stop' ends it at once");
    return -1;
}

int cli_serve_stop(const struct cli_serve_options *options)
{
    struct cli_about about;
    struct err err = ERR_INIT;
    if (read_about(options, &about, &err) < 0)
        return cli_term_refuse(&err, /* json= */ false);
    int rc = stop(&about, &err);
    if (rc == 0)
        cli_term_note("process %lld has ended", number(about.info, "pid"));
    cli_about_done(&about);
    return rc == 0 ? 0 : cli_term_refuse(&err, /* json= */ false);
}
