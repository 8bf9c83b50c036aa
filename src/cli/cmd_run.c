/* `cupel run`: argv in, a run, an exit code out. The cli process. The order of
 * the steps is what keeps the caller's power away from foreign bytes:
 * 1. parse argv; 2. open inputs and the -o folder as the caller; 3. connect to a
 * running engine, or open one here; as root that power is given up then; 4. only now
 * read; 5. run; 6. tell. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "box/box.h"
#include "cli/cli.h"
#include "cli/figures.h"
#include "cli/interrupt.h"
#include "cli/print.h"
#include "cli/remote.h"
#include "cli/run_inputs.h"
#include "cli/run_options.h"
#include "cli/run_request.h"
#include "cli/steward.h"
#include "cli/stream.h"
#include "cli/term.h"
#include "engine/engine.h"

/* Everything a run holds, so that one function lets go of all of it. */
struct job {
    struct cli_run_options options;
    struct cli_run_inputs inputs;
    struct cli_steward steward;
    struct cli_remote remote; /* an engine that runs already, or */
    struct engine *engine;    /* one of our own */
    struct buf stdin_bytes;
    struct request request;
    struct result result;
    struct cli_figures figures;
    struct cli_stream out, err_stream;
    const struct cli_stream *last; /* the one of them that wrote last */
    struct loop_source room[2];    /* in our own engine's loop, while they are behind */
    int interrupt_fd;
};

/* A reader that fell behind is written to as soon as it takes more, also where the
 * code says nothing further. Regular files cannot be watched, nor fall behind. */
static void watch_readers(struct job *job)
{
    const struct cli_stream *streams[] = { &job->out, &job->err_stream };
    for (int i = 0; i < 2 && job->engine; i++) {
        bool behind = cli_stream_is_behind(streams[i]);
        struct loop_source *room = &job->room[i];
        if (!behind)
            loop_remove(engine_loop(job->engine), room);
        else if (room->fd < 0) {
            room->fd = streams[i]->fd;
            if (loop_add(engine_loop(job->engine), room, EPOLLOUT) < 0)
                room->fd = -1;
        }
    }
}

static void after_writing(struct job *job, bool was_closed)
{
    if (job->out.closed && !was_closed)
        cli_interrupt_kill(); /* nobody reads any more: as SIGPIPE would end a program */
    watch_readers(job);
}

static void on_event(void *user, const struct engine_event *event)
{
    struct job *job = user;
    if (event->kind == ENGINE_START)
        return;
    struct cli_stream *stream = event->kind == ENGINE_STDOUT ? &job->out : &job->err_stream;
    bool was_closed = job->out.closed;
    cli_stream_add(stream, event->bytes);
    job->last = stream;
    after_writing(job, was_closed);
}

static void on_room(void *user)
{
    struct job *job = user;
    bool was_closed = job->out.closed;
    cli_stream_catch_up(&job->out);
    cli_stream_catch_up(&job->err_stream);
    after_writing(job, was_closed);
}

static void on_out_ready(struct loop_source *source, uint32_t events)
{
    (void)events;
    on_room(loop_owner(source, struct job, room[0]));
}

static void on_err_ready(struct loop_source *source, uint32_t events)
{
    (void)events;
    on_room(loop_owner(source, struct job, room[1]));
}

static void job_init(struct job *job)
{
    *job = (struct job){ .options = CLI_RUN_OPTIONS_INIT,
                         .inputs = CLI_RUN_INPUTS_INIT,
                         .steward = CLI_STEWARD_INIT,
                         .remote = CLI_REMOTE_INIT,
                         .request = REQUEST_INIT,
                         .room = { { -1, on_out_ready }, { -1, on_err_ready } },
                         .interrupt_fd = -1 };
    result_init(&job->result);
}

static void job_done(struct job *job)
{
    engine_close(job->engine);
    cli_steward_close(&job->steward);
    request_done(&job->request);
    buf_done(&job->stdin_bytes);
    result_done(&job->result);
    cli_remote_close(&job->remote);
    cli_figures_done(&job->figures);
    cli_stream_done(&job->out);
    cli_stream_done(&job->err_stream);
    cli_run_inputs_done(&job->inputs);
    cli_run_options_done(&job->options);
    own_close_fd(&job->interrupt_fd);
}

static int open_engine(struct job *job, struct err *err)
{
    const struct engine_options how = { .warm = false };
    if (!job->options.cold && cli_remote_open(&job->remote, &job->inputs, err) < 0)
        return -1;
    if (cli_remote_is_open(&job->remote))
        return box_drop_door(err);
    job->engine = engine_open(&how, err);
    return job->engine ? 0 : -1;
}

static int prepare(struct job *job, struct err *err)
{
    if (cli_run_inputs_open(&job->options, &job->inputs, err) < 0)
        return -1;
    if (job->options.out && cli_steward_open(job->options.out, &job->steward, err) < 0)
        return -1;
    if (open_engine(job, err) < 0)
        return -1;
    return cli_run_request_build(&job->options, &job->inputs, &job->stdin_bytes, &job->request,
                                 err);
}

static int run(struct job *job, struct err *err)
{
    struct cli_remote_hooks remote = {
        .on_event = job->options.json ? NULL : on_event,
        .streams = { &job->out, &job->err_stream },
        .on_room = on_room,
        .user = job,
        .content = job->options.out != NULL,
    };
    if (cli_remote_is_open(&job->remote) &&
        cli_remote_send(&job->remote, &job->request, &remote, err) < 0)
        return -1;
    /* Not before: until code runs, Ctrl-C simply ends us, also while we read. */
    if (cli_interrupt_open(&job->interrupt_fd, err) < 0)
        return -1;
    cli_stream_init(&job->out, STDOUT_FILENO, job->options.raw);
    cli_stream_init(&job->err_stream, STDERR_FILENO, job->options.raw);
    remote.interrupt_fd = job->interrupt_fd;
    int rc = cli_remote_is_open(&job->remote)
                 ? cli_remote_wait(&job->remote, &remote, &job->result, err)
                 : engine_run(job->engine, &job->request, remote.on_event, job,
                              job->interrupt_fd, &job->result, err);
    job->out.left_out += job->remote.lost[0];
    job->err_stream.left_out += job->remote.lost[1];
    cli_stream_finish(&job->out);
    cli_stream_finish(&job->err_stream);
    return rc;
}

/* Artifacts and pictures into the -o folder. Goes on after a failure: one name
 * that cannot be written should not cost the others. */
static int save(struct job *job, struct err *err)
{
    int rc = 0;
    if (job->steward.sock < 0)
        return 0;
    for (size_t i = 0; i < job->result.artifact_count; i++) {
        const struct result_artifact *artifact = &job->result.artifacts[i];
        struct str path = { artifact->path, artifact->path_len };
        struct str content = { artifact->content, artifact->content ? artifact->size_bytes : 0 };
        if (cli_steward_write(&job->steward, path, content, err) < 0)
            rc = -1;
    }
    for (size_t i = 0; i < job->figures.count; i++) {
        const struct cli_figure *figure = &job->figures.at[i];
        struct str content = { figure->bytes, figure->len };
        if (cli_steward_write(&job->steward, str_of(figure->path), content, err) < 0)
            rc = -1;
    }
    return rc;
}

static void note_left_out(const struct cli_stream *stream, const char *name)
{
    if (stream->left_out > 0)
        cli_term_note("%s: %llu bytes not shown, because the reader was slow", name,
                      (unsigned long long)stream->left_out);
}

static int tell(struct job *job, const struct err *save_err)
{
    if (job->options.json) {
        own_json result = job->remote.result ? json_incref(job->remote.result)
                                             : result_to_json(&job->result);
        if (cli_term_json(result) != 0)
            return 125;
    } else {
        struct cli_print how = {
            .folder = job->options.out,
            .raw = job->options.raw,
            .verbose = job->options.verbose,
            .out_mid_line = job->out.mid_line,
            .err_mid_line = job->err_stream.mid_line,
        };
        if (isatty(STDOUT_FILENO) && isatty(STDERR_FILENO)) {
            /* One cursor for both. */
            how.out_mid_line = job->last && job->last->mid_line;
            how.err_mid_line = false;
        }
        cli_print_values(&job->result, &how);
        cli_print_notes(&job->result, &job->figures, &how);
        note_left_out(&job->out, "stdout");
        note_left_out(&job->err_stream, "stderr");
    }
    if (save_err->kind != ERR_NONE)
        return cli_term_refuse(save_err, /* json= */ false);
    if (cli_interrupt_signal())
        return 128 + cli_interrupt_signal();
    if (job->out.closed) {
        /* An answer that did not arrive is no success: as a program ended by SIGPIPE,
         * or with the reason. */
        if (job->out.error != EPIPE)
            cli_term_note("stdout: %s", strerror(job->out.error));
        return job->out.error == EPIPE ? 128 + SIGPIPE : 125;
    }
    return result_exit_code(&job->result);
}

/* A command line that does not parse is still answered in the form it asks for. */
static bool asks_for_json(int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--json") == 0)
            return true;
    return false;
}

int cli_cmd_run(int argc, char **argv)
{
    attr_cleanup(job_done) struct job job;
    job_init(&job);
    struct err err = ERR_INIT;
    bool json = asks_for_json(argc, argv);
    int parsed = cli_run_options_parse(argc, argv, &job.options, &err);
    cli_term_set_quiet(job.options.quiet);
    if (parsed == 0 && job.options.help) {
        cli_run_options_help();
        return 0;
    }
    if (parsed < 0 || prepare(&job, &err) < 0 || run(&job, &err) < 0)
        return cli_term_refuse(&err, job.options.json || (parsed < 0 && json));
    struct err save_err = ERR_INIT;
    cli_figures_find(&job.result, &job.figures);
    save(&job, &save_err);
    return tell(&job, &save_err);
}
