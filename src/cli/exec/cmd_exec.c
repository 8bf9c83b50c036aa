/* `cupel exec`: a command in a box, its streams, its exit code. Runs in the cli process. As for
 * `cupel run`, the order keeps the caller's rights away from foreign bytes:
 * 1. parse argv; 2. open inputs and folders as the caller; 3. open an engine, which drops root's
 * rights; 4. only now read; 5. run, keys and screen being the command's; 6. keep the changes to a
 * folder, and report.
 * The engine is the command's own: it lives as long, and nothing of it is recorded. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "box/host/box.h"
#include "cli/cli.h"
#include "cli/exec/exec_options.h"
#include "cli/exec/exec_relay.h"
#include "cli/exec/exec_screen.h"
#include "cli/run/run_request.h"
#include "cli/run/shown.h"
#include "cli/term/interrupt.h"
#include "cli/term/term.h"

#define TERM_MAX 64
#define PROFILE "analysis"

struct exec {
    struct cli_exec_options options;
    struct cli_run_inputs inputs;
    struct cli_shown shown;
    struct engine *engine;
    struct request request;
    struct request_command command;
    struct result result;
    struct cli_exec_relay relay;
    int interrupt_fd, size_fd;
    struct err screen_err; /* the terminal could not be taken over */
    char term[sizeof "TERM=" + TERM_MAX];
};

static void exec_done(struct exec *exec)
{
    cli_exec_screen_end();
    engine_close(exec->engine);
    cli_exec_relay_done(&exec->relay);
    result_done(&exec->result);
    request_done(&exec->request);
    cli_run_inputs_done(&exec->inputs);
    cli_shown_done(&exec->shown);
    own_close_fd(&exec->interrupt_fd);
    own_close_fd(&exec->size_fd);
    cli_exec_options_done(&exec->options);
}

/* The kind of the caller's terminal is all that the command learns of the caller's environment. */
static void pass_term(struct exec *exec)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789.+-_";
    const char *term = getenv("TERM");
    if (!term || !*term || strlen(term) > TERM_MAX || term[strspn(term, plain)])
        return;
    snprintf(exec->term, sizeof exec->term, "TERM=%s", term);
    cli_shown_add_variable(&exec->options.run, exec->term);
}

static void look_at_terminal(struct exec *exec)
{
    exec->command.terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    if (!exec->command.terminal)
        return;
    struct cli_exec_size size = cli_exec_screen_size();
    exec->command.err_apart = !isatty(STDERR_FILENO);
    exec->command.rows = size.rows;
    exec->command.columns = size.columns;
    pass_term(exec);
}

/* A host with less memory than the profile's default gives what it has. */
static void fit_memory(struct cli_run_options *options)
{
    const double host = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    const struct limits_profile *profile = limits_profile_find(options->profile);
    if (profile && !options->memory.given && (double)profile->defaults.value[LIMITS_MEMORY] > host)
        options->memory = (struct opt_number){ true, host };
}

static int make_request(struct exec *exec, struct err *err)
{
    struct cli_run_options settings = exec->options.run;
    settings.timeout.given = false; /* a request's maximum is not a command's */
    settings.profile = settings.profile ? settings.profile : PROFILE;
    fit_memory(&settings);
    if (cli_run_request_session(&settings, &exec->inputs, &exec->request, err) < 0)
        return -1;
    return request_set_command(&exec->request, settings.operands.at, settings.operands.count,
                               &exec->command, cli_exec_options_timeout_ms(&exec->options), err);
}

static int prepare(struct exec *exec, struct err *err)
{
    const struct cli_run_options *options = &exec->options.run;
    own_buf places = BUF_INIT(BOX_PLACES_ROOM);
    if (cli_run_inputs_open_files(&options->files, /* folders= */ true, &exec->inputs, err) < 0 ||
        cli_shown_open(options, &exec->inputs, &exec->shown, err) < 0)
        return -1;
    look_at_terminal(exec);
    cli_shown_set_variables(&exec->options.run);
    if (cli_run_inputs_attach(options, &exec->inputs, &places, err) < 0 ||
        cli_shown_engine(&exec->shown, &exec->inputs, buf_str(&places), &exec->engine, err) < 0 ||
        make_request(exec, err) < 0)
        return -1;
    cli_shown_use(&exec->shown, &exec->request);
    /* Not before: until the command runs, Ctrl-C simply ends us. */
    if (cli_interrupt_open(&exec->interrupt_fd, err) < 0)
        return -1;
    cli_exec_relay_init(&exec->relay, exec->engine, exec->command.terminal);
    return 0;
}

/* --- the run --- */

static void on_begun(void *user, struct engine_run *run)
{
    struct exec *exec = user;
    exec->relay.run = run;
}

static void take_terminal(struct exec *exec)
{
    if (cli_exec_screen_begin(&exec->size_fd, &exec->screen_err) < 0)
        cli_interrupt_kill();
    else
        cli_exec_relay_watch_size(&exec->relay, exec->size_fd);
}

static void on_event(void *user, const struct engine_event *event)
{
    struct exec *exec = user;
    if (event->kind == ENGINE_START && exec->command.terminal)
        take_terminal(exec);
    cli_exec_relay_event(&exec->relay, event);
}

static int run(struct exec *exec, struct err *err)
{
    int rc = engine_run_begun(exec->engine, &exec->request, on_begun, on_event, exec,
                              exec->interrupt_fd, &exec->result, err);
    cli_exec_relay_finish(&exec->relay, exec->interrupt_fd);
    cli_exec_screen_end();
    if (rc == 0 && exec->screen_err.kind != ERR_NONE) {
        *err = exec->screen_err;
        return -1;
    }
    return rc;
}

/* --- the report --- */

/* The command's own code stands where it ended by itself, whatever happened on the way: it is what
 * a script after it looks at. */
static int exit_code(const struct result *result)
{
    bool own = result->status == RESULT_PIDS_LIMIT || result->status == RESULT_DISK_LIMIT;
    return own && result->exit_code >= 0 ? result->exit_code : result_exit_code(result);
}

/* Limits, and ends that are not the command's own. */
static void note_end(const struct exec *exec)
{
    const struct result *result = &exec->result;
    const struct cli_stream *out = &exec->relay.out[0].stream;
    if (result->status == RESULT_OK || result->status == RESULT_ERROR ||
        result->status == RESULT_INTERRUPTED || !result->error.message || cli_term_is_quiet())
        return;
    if (exec->command.terminal && out->mid_line && !out->closed)
        cli_term_write(STDERR_FILENO, STR("\n"));
    cli_term_note("%s: %s", result_status_name(result->status), result->error.message);
}

static int report(struct exec *exec)
{
    const struct cli_stream *out = &exec->relay.out[0].stream;
    struct err lost = ERR_INIT;
    if (cli_shown_keep(&exec->shown, &exec->result, &lost) < 0)
        return cli_term_refuse(&lost, /* json= */ false);
    if (cli_interrupt_signal())
        return 128 + cli_interrupt_signal();
    if (out->closed) {
        if (out->error != EPIPE)
            cli_term_note("stdout: %s", strerror(out->error));
        return out->error == EPIPE ? 128 + SIGPIPE : 125;
    }
    note_end(exec);
    return exit_code(&exec->result);
}

int cli_cmd_exec(int argc, char **argv)
{
    attr_cleanup(exec_done) struct exec exec = { .options = CLI_EXEC_OPTIONS_INIT,
                                                 .inputs = CLI_RUN_INPUTS_INIT,
                                                 .shown = CLI_SHOWN_INIT,
                                                 .request = REQUEST_INIT,
                                                 .interrupt_fd = -1,
                                                 .size_fd = -1,
                                                 .screen_err = ERR_INIT };
    struct err err = ERR_INIT;
    result_init(&exec.result);
    int parsed = cli_exec_options_parse(argc, argv, &exec.options, &err);
    cli_term_set_quiet(exec.options.run.quiet);
    if (parsed == 0 && exec.options.run.help) {
        cli_exec_options_help();
        return 0;
    }
    if (parsed < 0 || prepare(&exec, &err) < 0 || run(&exec, &err) < 0) {
        cli_exec_screen_end();
        return cli_term_refuse(&err, /* json= */ false);
    }
    return report(&exec);
}
