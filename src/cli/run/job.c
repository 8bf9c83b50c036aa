/* One run, from a request to its report. Runs in the cli process. `cupel run` does it once,
 * `session run` in a session, `repl` repeatedly. The request and the engine (our own, or one behind
 * a socket) come from the caller. */
#include "cli/run/job.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "cli/term/interrupt.h"
#include "cli/run/print.h"
#include "cli/term/term.h"

#define NAMES_MAX 10000 /* older pictures in one folder */

/* A slow reader gets more as soon as it can take it, even without new output. Regular files cannot
 * be watched, nor be slow. */
static void watch_readers(struct cli_job *job)
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

static void after_writing(struct cli_job *job, bool was_closed)
{
    if (job->out.closed && !was_closed)
        cli_interrupt_kill(); /* no reader: end, as SIGPIPE would */
    watch_readers(job);
}

/* Both streams share one cursor on a terminal. */
static bool is_mid_line(const struct cli_job *job)
{
    bool shared = isatty(STDOUT_FILENO) && isatty(STDERR_FILENO);
    return shared ? job->last && job->last->mid_line : job->out.mid_line;
}

/* A value between the code's lines, where it was shown. */
static void on_value(struct cli_job *job, const struct engine_event *event)
{
    own_buf text = BUF_INIT(SIZE_MAX / 4);
    bool was_closed = job->out.closed;
    if (is_mid_line(job))
        buf_add_text(&text, "\n");
    size_t before = text.len;
    cli_print_value(event->data, &text);
    if (event->index >= CLI_JOB_VALUES || text.len == before)
        return;
    job->shown[event->index] = true;
    cli_stream_add(&job->out, buf_str(&text));
    job->last = &job->out;
    after_writing(job, was_closed);
}

static void on_event(void *user, const struct engine_event *event)
{
    struct cli_job *job = user;
    if (event->kind == ENGINE_START || event->kind == ENGINE_INPUT)
        return;
    if (event->kind == ENGINE_CLEAR) {
        memset(job->shown, 0, sizeof job->shown);
        return;
    }
    if (event->kind == ENGINE_RESULT) {
        on_value(job, event);
        return;
    }
    struct cli_stream *stream = event->kind == ENGINE_STDOUT ? &job->out : &job->err_stream;
    bool was_closed = job->out.closed;
    cli_stream_add(stream, event->bytes);
    job->last = stream;
    after_writing(job, was_closed);
}

static void on_room(void *user)
{
    struct cli_job *job = user;
    bool was_closed = job->out.closed;
    cli_stream_catch_up(&job->out);
    cli_stream_catch_up(&job->err_stream);
    after_writing(job, was_closed);
}

static void on_out_ready(struct loop_source *source, uint32_t events)
{
    (void)events;
    on_room(loop_owner(source, struct cli_job, room[0]));
}

static void on_err_ready(struct loop_source *source, uint32_t events)
{
    (void)events;
    on_room(loop_owner(source, struct cli_job, room[1]));
}

/* The typed answer ended the line that the code had begun. */
static void on_line(void *user)
{
    struct cli_job *job = user;
    job->out.mid_line = job->err_stream.mid_line = false;
}

/* A question begins on a line of its own. */
static void before_question(void *user)
{
    struct cli_job *job = user;
    bool open = isatty(STDOUT_FILENO) ? is_mid_line(job) : job->err_stream.mid_line;
    if (open)
        cli_term_write(STDERR_FILENO, STR("\n"));
    on_line(job);
}

/* A person who gets JSON, or no notes, is no reader of questions. */
static void prepare_approve(struct cli_job *job)
{
    const struct cli_run_options *o = job->options;
    job->approve.yes = &o->approve;
    job->approve.no = &o->refuse;
    job->approve.asks = cli_approve_is_terminal() && !o->json && !o->quiet;
    job->approve.before = before_question;
    job->approve.user = job;
}

void cli_job_init(struct cli_job *job, const struct cli_run_options *options)
{
    *job = (struct cli_job){ .options = options,
                             .inputs = CLI_RUN_INPUTS_INIT,
                             .steward = CLI_STEWARD_INIT,
                             .remote = CLI_REMOTE_INIT,
                             .folders = CLI_SHOWN_INIT,
                             .request = REQUEST_INIT,
                             .room = { { -1, LOOP_HANDLER(on_out_ready) },
                                      { -1, LOOP_HANDLER(on_err_ready) } },
                             .interrupt_fd = -1,
                             .approve = CLI_APPROVE_INIT,
                             .recorded = CLI_RECORDED_INIT };
    result_init(&job->result);
}

/* End one run; the engine and the connection stay. */
static void forget_run(struct cli_job *job)
{
    request_done(&job->request);
    buf_done(&job->stdin_bytes);
    result_done(&job->result);
    cli_figures_done(&job->figures);
    free(job->lost);
    job->lost = NULL;
    cli_stream_done(&job->out);
    cli_stream_done(&job->err_stream);
}

void cli_job_done(struct cli_job *job)
{
    engine_close(job->engine);
    cli_steward_close(&job->steward);
    forget_run(job);
    cli_remote_close(&job->remote);
    cli_run_inputs_done(&job->inputs);
    cli_approve_done(&job->approve);
    own_close_fd(&job->interrupt_fd);
    cli_recorded_close(&job->recorded);
    cli_shown_done(&job->folders);
}

void cli_job_again(struct cli_job *job)
{
    forget_run(job);
    result_init(&job->result);
    cli_remote_forget(&job->remote);
    job->last = NULL;
    memset(job->shown, 0, sizeof job->shown);
}

/* By our own engine. */
static int run_here(struct cli_job *job, const struct cli_remote_hooks *hooks, struct err *err)
{
    if (job->recorded.state_dir < 0)
        return engine_run(job->engine, &job->request, hooks->on_event, job, job->interrupt_fd,
                          &job->result, err);
    return cli_recorded_run(job->engine, &job->recorded, &job->request, hooks->on_event, job,
                            job->interrupt_fd, &job->result, &job->unrecorded, err);
}

int cli_job_run(struct cli_job *job, struct err *err)
{
    struct cli_remote_hooks remote = {
        .on_event = job->options->json ? NULL : on_event,
        .streams = { &job->out, &job->err_stream },
        .on_room = on_room,
        .user = job,
        .content = job->options->out != NULL,
        .input = job->answers ? &job->input : NULL,
        .approve = &job->approve,
    };
    prepare_approve(job);
    job->input = (struct cli_input){ .on_line = on_line, .user = job };
    if (cli_remote_is_open(&job->remote) &&
        cli_remote_send(&job->remote, &job->request, &remote, err) < 0)
        return -1;
    /* Not before: until code runs, Ctrl-C simply ends us, even while we read. */
    if (job->interrupt_fd < 0 && cli_interrupt_open(&job->interrupt_fd, err) < 0)
        return -1;
    cli_stream_init(&job->out, STDOUT_FILENO, job->options->raw);
    cli_stream_init(&job->err_stream, STDERR_FILENO, job->options->raw);
    remote.interrupt_fd = job->interrupt_fd;
    int rc = cli_remote_is_open(&job->remote)
                 ? cli_remote_wait(&job->remote, &remote, &job->result, err)
                 : run_here(job, &remote, err);
    cli_input_end(&job->input);
    job->out.left_out += job->remote.lost[0];
    job->err_stream.left_out += job->remote.lost[1];
    cli_stream_finish(&job->out);
    cli_stream_finish(&job->err_stream);
    return rc;
}

static int save_new(struct cli_job *job, struct cli_figure *figure, struct err *err)
{
    const char *ending = strrchr(figure->path, '.');
    struct str content = { figure->bytes, figure->len };
    for (unsigned tries = 0; tries < NAMES_MAX; tries++) {
        char name[48];
        struct err why = ERR_INIT;
        snprintf(name, sizeof name, "figure-%u%s", ++job->picture_count, ending ? ending : "");
        if (cli_steward_write_new(&job->steward, str_of(name), content, &why) == 0) {
            free(figure->path);
            figure->path = buf_strdup(str_of(name));
            return 0;
        }
        if (why.sys != EEXIST || tries + 1 == NAMES_MAX) {
            *err = why;
            return -1;
        }
    }
    return -1;
}

static int save_pictures(struct cli_job *job, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; i < job->figures.count; i++) {
        struct cli_figure *figure = &job->figures.at[i];
        struct str content = { figure->bytes, figure->len };
        figure->lost = (job->pictures ? save_new(job, figure, err)
                                      : cli_steward_write(&job->steward, str_of(figure->path),
                                                          content, err)) < 0;
        rc = figure->lost ? -1 : rc;
    }
    return rc;
}

/* Saves artifacts and pictures. Continues after a failure: one bad name must not cost the
 * others. */
static int save(struct cli_job *job, struct err *err)
{
    int rc = 0;
    if (job->steward.sock < 0)
        return 0;
    job->lost = buf_alloc_zero(job->result.artifact_count + 1, sizeof *job->lost);
    for (size_t i = 0; !job->pictures && i < job->result.artifact_count; i++) {
        const struct result_artifact *artifact = &job->result.artifacts[i];
        struct str path = { artifact->path, artifact->path_len };
        struct str content = { artifact->content, artifact->content ? artifact->size_bytes : 0 };
        job->lost[i] = cli_steward_write(&job->steward, path, content, err) < 0;
        rc = job->lost[i] ? -1 : rc;
    }
    return save_pictures(job, err) < 0 ? -1 : rc;
}

static void note_left_out(const struct cli_stream *stream, const char *name)
{
    if (stream->left_out > 0)
        cli_term_note("%s: %llu bytes not shown, because the reader was slow", name,
                      (unsigned long long)stream->left_out);
}

static void show(struct cli_job *job)
{
    struct cli_print how = {
        .folder = job->options->out,
        .pictures = job->pictures ? job->pictures : job->options->out,
        .lost = job->lost,
        .save_hint = job->save_hint ? job->save_hint : "-o DIR saves",
        .at_prompt = job->at_prompt,
        .raw = job->options->raw,
        .verbose = job->options->verbose,
        .out_mid_line = is_mid_line(job),
        .err_mid_line = job->err_stream.mid_line,
        .shown = job->shown,
        .shown_count = CLI_JOB_VALUES,
    };
    if (isatty(STDOUT_FILENO) && isatty(STDERR_FILENO))
        how.err_mid_line = false;
    cli_print_values(&job->result, &how);
    cli_print_notes(&job->result, &job->figures, &how);
    note_left_out(&job->out, "stdout");
    note_left_out(&job->err_stream, "stderr");
}

int cli_job_tell(struct cli_job *job)
{
    struct err save_err = ERR_INIT;
    cli_figures_find(&job->result, &job->figures);
    save(job, &save_err);
    if (job->options->json) {
        own_json result = job->remote.call.answer ? json_incref(job->remote.call.answer)
                                                  : result_to_json(&job->result);
        if (cli_term_json(result) != 0)
            return 125;
    } else {
        show(job);
    }
    struct err lost = ERR_INIT;
    if (cli_shown_keep(&job->folders, &job->result, &lost) < 0)
        return cli_term_refuse(&lost, /* json= */ false);
    cli_approve_look(&job->approve, job->result.calls);
    cli_approve_tell(&job->approve);
    if (save_err.kind != ERR_NONE)
        return cli_term_refuse(&save_err, /* json= */ false);
    if (job->unrecorded.kind != ERR_NONE)
        return cli_term_refuse(&job->unrecorded, /* json= */ false);
    if (cli_interrupt_signal())
        return 128 + cli_interrupt_signal();
    if (job->out.closed) {
        /* A lost answer is a failure: as for a program ended by SIGPIPE, or with the reason. */
        if (job->out.error != EPIPE)
            cli_term_note("stdout: %s", strerror(job->out.error));
        return job->out.error == EPIPE ? 128 + SIGPIPE : 125;
    }
    return result_exit_code(&job->result);
}
