/* `cupel ask`: a question and files in, an answer with evidence out. Runs in the cli process. As in
 * `cupel repl`, work that needs the caller's rights comes first (models and keys, files, the folder
 * for artifacts, the engine, the transcript); then the rights are dropped, and only then the
 * question, a file or a model's reply is read. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/attr.h"
#include "base/json.h"
#include "base/own.h"
#include "box/host/box.h"
#include "cli/ask/ask_draw.h"
#include "cli/ask/ask_options.h"
#include "cli/ask/ask_transcript.h"
#include "cli/cli.h"
#include "cli/term/interrupt.h"
#include "cli/link/remote.h"
#include "cli/run/run_request.h"
#include "cli/link/engine_start.h"
#include "cli/link/steward.h"
#include "cli/term/term.h"
#include "cli/term/visible.h"
#include "llm/llm.h"

#define QUESTION_MAX (256u << 10)
#define NAME_WIDTH 200 /* characters of a file's name */

struct ask {
    struct cli_ask_options options;
    struct cli_run_inputs inputs;
    struct cli_steward steward;
    struct cli_remote remote;
    struct cli_ask_transcript transcript;
    struct cli_ask_draw draw;
    struct llm_model *model, *planner, *judge; /* the last two may equal the first */
    struct buf question;
    struct request made_of; /* the session's request, with the files */
    struct agent_file *files;
    int interrupt_fd, show_fd;
    char id[CLI_ASK_ID_LEN + 1];
};

/* --- as the caller --- */

/* "": the task's own model. */
static int open_helper_model(const char *spec, struct llm_model *own, struct llm_model **out,
                             struct err *err)
{
    if (spec && spec[0])
        return llm_open(spec, out, err);
    *out = spec ? own : NULL;
    return 0;
}

static int open_models(struct ask *ask, struct err *err)
{
    const struct cli_ask_options *o = &ask->options;
    if (llm_open(o->model, &ask->model, err) < 0)
        return -1;
    if (open_helper_model(o->planner, ask->model, &ask->planner, err) < 0)
        return err_wrap(err, "--planner");
    if (open_helper_model(o->judge, ask->model, &ask->judge, err) < 0)
        return err_wrap(err, "--judge");
    llm_forget_keys(); /* our engine needs no key */
    return 0;
}

static int open_as_caller(struct ask *ask, struct err *err)
{
    const struct cli_run_options *run = &ask->options.run;
    if (open_models(ask, err) < 0 ||
        cli_run_inputs_open_files(&run->files, &ask->inputs, err) < 0 ||
        (run->out && cli_steward_open(run->out, &ask->steward, err) < 0) ||
        cli_session_carry(&ask->remote, err) < 0)
        return -1;
    if (cli_ask_transcript_open(&ask->transcript) < 0)
        cli_term_note("no transcript will be written: no usable state folder (%s)",
                      strerror(errno));
    return 0;
}

/* --- after the drop --- */

static int read_question(struct ask *ask, struct err *err)
{
    const char *given = ask->options.question;
    ask->question = BUF_INIT(QUESTION_MAX);
    if (strcmp(given, "-") == 0) {
        if (cli_run_inputs_read(STDIN_FILENO, "standard input", "question", &ask->question, err) <
            0)
            return -1;
    } else if (buf_add_text(&ask->question, given) < 0) {
        return err_input(err, "question", NULL, "at most 262144 bytes",
                         "the question has more than %u bytes", QUESTION_MAX);
    }
    struct str text = buf_str(&ask->question);
    while (text.len > 0 && strchr(" \t\r\n", text.at[text.len - 1]))
        text.len--;
    if (text.len == 0 || memchr(text.at, 0, text.len) || !str_is_utf8(text))
        return err_input(err, "question", NULL, "UTF-8 text",
                         text.len == 0 ? "the question is empty" : "the question is not UTF-8");
    ask->question.at[text.len] = 0;
    ask->question.len = text.len;
    return 0;
}

static int read_files(struct ask *ask, struct err *err)
{
    if (cli_run_request_session(&ask->options.run, &ask->inputs, &ask->made_of, err) < 0)
        return -1;
    ask->files = buf_alloc_zero(ask->made_of.file_count + 1, sizeof *ask->files);
    for (size_t i = 0; i < ask->made_of.file_count; i++)
        ask->files[i] = (struct agent_file){ .path = ask->made_of.files[i].path,
                                             .content = ask->made_of.files[i].data };
    return 0;
}

/* Does this model cost money, by its name? */
static bool is_paid(const char *name)
{
    static const char *const starts[] = { "anthropic/", "openai/", "openrouter/" };
    for (size_t i = 0; i < array_len(starts); i++)
        if (strncmp(name, starts[i], strlen(starts[i])) == 0)
            return true;
    return strstr(name, "+https://") != NULL;
}

/* Asks once before spending without a limit at an unknown price. */
static int confirm(const struct ask *ask, struct err *err)
{
    const struct llm_request any = { .instructions = "" };
    const char *name = llm_name(ask->model);
    char answer[16];
    bool bounded = ask->options.budget.money_usd >= 0 || llm_cost_bound(ask->model, &any) >= 0;
    if (!is_paid(name) || bounded || ask->options.yes || !isatty(STDIN_FILENO) ||
        !isatty(STDERR_FILENO))
        return 0;
    cli_term_note("the price of '%.100s' is not known, and no --budget limits it. Send the "
                  "question and %zu files to it? [y/N]",
                  name, ask->made_of.file_count);
    ssize_t n = read(STDIN_FILENO, answer, sizeof answer);
    if (n > 0 && (answer[0] == 'y' || answer[0] == 'Y'))
        return 0;
    err_set(err, ERR_CANCELLED, "nothing was sent");
    err_hint(err, "--yes does not ask; --budget 0.50 sets a limit");
    return -1;
}

/* --- the task --- */

static void on_event(void *user, const char *kind, const json_t *data)
{
    struct ask *ask = user;
    if (strcmp(kind, "task") == 0) {
        const char *id = json_string_value(json_object_get(data, "task"));
        snprintf(ask->id, sizeof ask->id, "%s", id ? id : "");
        cli_ask_transcript_name(&ask->transcript, ask->id);
    }
    cli_ask_transcript_follow(&ask->transcript);
    cli_ask_draw_event(&ask->draw, kind, data);
}

/* Continues after a failure: one bad name must not cost the other files. Returns the exit code,
 * which was `code` so far. */
static int save(struct ask *ask, const struct agent *agent, const json_t *report, int code)
{
    size_t i;
    json_t *artifact;
    struct err err = ERR_INIT;
    if (ask->steward.sock < 0)
        return code;
    json_array_foreach (json_object_get(report, "artifacts"), i, artifact) {
        const char *path = json_string_value(json_object_get(artifact, "path"));
        if (!path)
            continue;
        struct err why = ERR_INIT;
        struct str content = agent_artifact(agent, path);
        own_buf shown = BUF_INIT(4096); /* a name may contain a line end */
        cli_visible_line(str_of(path), NAME_WIDTH, &shown);
        if (!content.at)
            cli_term_note("'%s' is not saved: it exceeds artifact_bytes", buf_str(&shown).at);
        else if (cli_steward_write(&ask->steward, str_of(path), content, &why) < 0)
            err = why;
        else
            cli_term_note("saved %.200s/%s", ask->options.run.out, buf_str(&shown).at);
    }
    return err.kind == ERR_NONE ? code : cli_term_refuse(&err, /* json= */ false);
}

static void tell_where(const struct ask *ask, const json_t *report)
{
    size_t made = json_array_size(json_object_get(report, "artifacts"));
    if (made > 0 && !ask->options.run.out)
        cli_term_note("-o DIR saves %s",
                      made == 1 ? "the file that was made" : "the files that were made");
    if (ask->transcript.fd >= 0 && ask->transcript.cut)
        cli_term_note("the transcript is incomplete: writing it failed");
    if (ask->transcript.fd >= 0 && ask->id[0])
        cli_term_note("cupel ask --show %s shows it again", ask->id);
}

static bool was_stopped(const struct ask *ask)
{
    struct pollfd wish = { .fd = ask->interrupt_fd, .events = POLLIN };
    return poll(&wish, 1, 0) > 0;
}

static int run_task(struct ask *ask)
{
    const struct cli_ask_options *o = &ask->options;
    own_json session = json_copy(ask->made_of.root);
    json_object_del(session, "code");
    const struct agent_task task = {
        .question = ask->question.at,
        .files = ask->files,
        .file_count = ask->made_of.file_count,
        .budget = o->budget,
        .mode = o->mode,
        .model = ask->model,
        .planner = ask->planner,
        .judge = ask->judge,
        .cross_check = o->cross_check,
        .verify = true,
        .engine = &ask->remote.client,
        .session = session,
        .transcript_fd = ask->transcript.fd,
    };
    const struct agent_watch watch = { .on = on_event, .user = ask,
                                       .cancel_fd = ask->interrupt_fd };
    enum agent_status status = AGENT_FAILED;
    struct agent *agent = agent_new(&task);
    own_json report = agent_run(agent, &watch, &status);
    int code = status == AGENT_FAILED && was_stopped(ask)
                   ? 128 + (cli_interrupt_signal() ? cli_interrupt_signal() : 2)
                   : agent_status_exit(status);
    code = save(ask, agent, report, code);
    agent_done(agent);
    tell_where(ask, report);
    if (o->run.json && cli_term_json(report) != 0)
        return 125;
    return code;
}

static int make_models_ready(const struct ask *ask, struct err *err)
{
    struct llm_model *const models[] = { ask->model, ask->planner, ask->judge };
    for (size_t i = 0; i < array_len(models); i++)
        if (models[i] && llm_ready(models[i], err) < 0)
            return -1;
    return 0;
}

static int answer(struct ask *ask, struct err *err)
{
    if (open_as_caller(ask, err) < 0 || box_drop_door(err) < 0 || make_models_ready(ask, err) < 0 ||
        read_question(ask, err) < 0 || read_files(ask, err) < 0 || confirm(ask, err) < 0 ||
        cli_interrupt_open(&ask->interrupt_fd, err) < 0)
        return -1;
    return run_task(ask);
}

static int show(struct ask *ask, struct err *err)
{
    own_json report = NULL;
    const char *what = ask->options.show;
    if (cli_ask_transcript_find(what, &ask->show_fd, err) < 0 || box_drop_door(err) < 0 ||
        cli_ask_transcript_show(ask->show_fd, what, &ask->draw, &report, err) < 0)
        return -1;
    if (!report)
        cli_term_note("the transcript ends before the task did");
    return report && ask->options.run.json ? cli_term_json(report) : 0;
}

static void done(struct ask *ask)
{
    cli_ask_draw_done(&ask->draw);
    cli_ask_transcript_close(&ask->transcript);
    cli_remote_close(&ask->remote);
    cli_steward_close(&ask->steward);
    cli_run_inputs_done(&ask->inputs);
    if (ask->planner != ask->model)
        llm_close(ask->planner);
    if (ask->judge != ask->model)
        llm_close(ask->judge);
    llm_close(ask->model);
    request_done(&ask->made_of);
    free(ask->files);
    buf_done(&ask->question);
    own_close_fd(&ask->show_fd);
    cli_ask_options_done(&ask->options);
}

int cli_cmd_ask(int argc, char **argv)
{
    struct ask ask = { .options = CLI_ASK_OPTIONS_INIT,
                       .inputs = CLI_RUN_INPUTS_INIT,
                       .steward = CLI_STEWARD_INIT,
                       .remote = CLI_REMOTE_INIT,
                       .transcript = CLI_ASK_TRANSCRIPT_INIT,
                       .made_of = REQUEST_INIT,
                       .interrupt_fd = -1,
                       .show_fd = -1 };
    struct err err = ERR_INIT;
    bool json = cli_run_options_ask_for_json(argc, argv);
    int code = 0;
    int parsed = cli_ask_options_parse(argc, argv, &ask.options, &err);
    cli_term_set_quiet(ask.options.run.quiet);
    bool live = !ask.options.show && cli_term_style(STDERR_FILENO, CLI_DIM)[0];
    cli_ask_draw_init(&ask.draw, STDERR_FILENO, json ? -1 : STDOUT_FILENO, ask.options.run.quiet,
                      live);
    if (parsed == 0 && ask.options.run.help)
        cli_ask_options_help();
    else if (parsed < 0 || (code = ask.options.show ? show(&ask, &err) : answer(&ask, &err)) < 0)
        code = cli_term_refuse(&err, json);
    done(&ask);
    return code;
}
