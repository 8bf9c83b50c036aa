/* `cupel run`: argv in, a run, an exit code out. Runs in the cli process. The order keeps the
 * caller's rights away from foreign bytes:
 * 1. parse argv; 2. open inputs and the -o folder as the caller; 3. connect to a running engine, or
 *    open one here, which drops root's rights; 4. only now read; 5. run; 6. report. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "box/host/box.h"
#include "cli/cli.h"
#include "cli/link/engine_start.h"
#include "cli/run/curl.h"
#include "cli/run/job.h"
#include "cli/run/recorded.h"
#include "cli/run/run_request.h"
#include "cli/term/term.h"

/* Bytes of input that surely fit into a frame, as base64 or as text with the usual escapes. */
#define INPUT_MAX ((off_t)(FRAME_ASK_MAX / 4 * 3) - (16 << 20))

static off_t size_of(int fd)
{
    struct stat st;
    return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? st.st_size : 0;
}

/* Inputs that JSON cannot carry run cold: names that are no text, and very large files. */
static bool fits(const struct cli_run_inputs *inputs)
{
    off_t total = size_of(inputs->stdin_fd);
    for (size_t i = 0; i < inputs->file_count; i++) {
        total += size_of(inputs->files[i].fd);
        if (!str_is_utf8(str_of(inputs->files[i].spec.path)))
            return false;
    }
    return total <= INPUT_MAX;
}

static int open_engine(struct cli_job *job, struct err *err)
{
    const struct engine_options how = { .warm = false };
    char *options[CLI_RUN_ENGINE_OPTIONS];
    own_buf places = BUF_INIT(BOX_PLACES_ROOM);
    int attached = cli_run_inputs_attach(job->options, &job->inputs, &places, err);
    if (attached < 0)
        return -1;
    if (attached > 0 && cli_run_options_check_alone(job->options, "a file of over 64 MiB", err) < 0)
        return -1;
    if (attached > 0 || cli_shown_any(&job->folders))
        return cli_shown_engine(&job->folders, &job->inputs, buf_str(&places), &job->engine, err);
    if (cli_run_options_engine(job->options, options))
        return cli_session_own(&job->remote, options, err) < 0 ? -1 : box_drop_door(err);
    if (job->options->tools.count > 0)
        return cli_session_carry(&job->remote, err) < 0 ? -1 : box_drop_door(err);
    if (!job->options->cold && fits(&job->inputs) && cli_remote_open(&job->remote, err) < 0)
        return -1;
    if (cli_remote_is_open(&job->remote))
        return box_drop_door(err);
    if (job->options->record && cli_recorded_open(&job->recorded, err) < 0)
        return -1;
    job->engine = engine_open(&how, err);
    return job->engine ? 0 : -1;
}

static int prepare(struct cli_job *job, struct err *err)
{
    if (cli_run_inputs_open(job->options, &job->inputs, err) < 0 ||
        cli_shown_open(job->options, &job->inputs, &job->folders, err) < 0)
        return -1;
    if (job->options->out && cli_steward_open(job->options->out, &job->steward, err) < 0)
        return -1;
    if (open_engine(job, err) < 0)
        return -1;
    if (cli_run_request_build(job->options, &job->inputs, &job->stdin_bytes, &job->request, err) <
        0)
        return -1;
    cli_shown_use(&job->folders, &job->request);
    if (job->request.tools && !cli_remote_is_open(&job->remote)) {
        err_set(err, ERR_ABSENT, "no engine is running, so there are no tools");
        err_hint(err, "name them with --tools, or start an engine: cupel serve");
        return -1;
    }
    if (job->request.session && !cli_remote_is_open(&job->remote)) {
        err_set(err, ERR_ABSENT, "no engine is running, so session '%.40s' does not exist",
                job->request.session);
        err_hint(err, "'cupel session new' starts both");
        return -1;
    }
    return 0;
}

/* --curl: everything but the run. */
static int tell_curl(struct cli_job *job, struct err *err)
{
    if (cli_run_inputs_open(job->options, &job->inputs, err) < 0)
        return -1;
    own_str address = cli_curl_address();
    own_buf text = BUF_INIT(SIZE_MAX / 4);
    if (box_drop_door(err) < 0 ||
        cli_run_request_build(job->options, &job->inputs, &job->stdin_bytes, &job->request, err) <
            0 ||
        cli_curl_write(address, &job->request, &text, err) < 0)
        return -1;
    cli_term_write(STDOUT_FILENO, buf_str(&text));
    return 0;
}

int cli_cmd_run(int argc, char **argv)
{
    attr_cleanup(cli_run_options_done) struct cli_run_options options = CLI_RUN_OPTIONS_INIT;
    attr_cleanup(cli_job_done) struct cli_job job;
    struct err err = ERR_INIT;
    bool json = cli_run_options_ask_for_json(argc, argv);
    cli_job_init(&job, &options);
    int parsed = cli_run_options_parse(argc, argv, &options, &err);
    cli_term_set_quiet(options.quiet);
    cli_shown_set_variables(&options);
    if (parsed == 0 && options.help) {
        cli_run_options_help();
        return 0;
    }
    if (parsed == 0 && options.curl && tell_curl(&job, &err) == 0)
        return 0;
    if (parsed < 0 || options.curl || prepare(&job, &err) < 0 || cli_job_run(&job, &err) < 0)
        return cli_term_refuse(&err, options.json || (parsed < 0 && json));
    return cli_job_tell(&job);
}
