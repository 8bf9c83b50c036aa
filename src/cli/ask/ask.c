/* A task from its files to its report. Runs in the cli process. */
#include "cli/ask/ask.h"
#include "cli/link/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/json.h"
#include "base/own.h"
#include "cli/link/engine_start.h"
#include "cli/run/run_request.h"
#include "cli/term/interrupt.h"
#include "cli/term/term.h"
#include "cli/term/visible.h"

#define QUESTION_MAX (256u << 10)
#define SCHEMA_MAX (1u << 20)
#define INSTRUCTIONS_MAX (64u << 10)
#define REPLY_MAX 4096 /* of the user to the model */
#define NAME_WIDTH 200 /* characters of a file's name */

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

static int open_models(struct cli_ask *ask, struct err *err)
{
    const struct cli_ask_options *o = &ask->options;
    if (ask->model) /* remembered */
        return 0;
    if (cli_settings_use_model(err) < 0 || llm_open(o->model, &ask->model, err) < 0)
        return -1;
    if (open_helper_model(o->planner, ask->model, &ask->planner, err) < 0)
        return err_wrap(err, "--planner");
    if (open_helper_model(o->judge, ask->model, &ask->judge, err) < 0)
        return err_wrap(err, "--judge");
    llm_forget_keys(); /* our engine needs no key */
    return 0;
}

static int open_text(const char *path, const char *option, int *out_fd, struct err *err)
{
    *out_fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY) : -1;
    if (!path || *out_fd >= 0)
        return 0;
    bool absent = errno == ENOENT;
    err_sys(err, "open the file of '--%s', '%.200s'", option, path);
    err->kind = absent ? ERR_ABSENT : ERR_USAGE;
    return -1;
}

/* The task that goes on: its files, and for one that is taken up its models too. */
static int open_again(struct cli_ask *ask, struct err *err)
{
    if (!ask->options.again)
        return 0;
    if (ask->store.state_dir < 0)
        return err_set(err, ERR_ABSENT, "there is no state folder, so there is no task '%.80s'",
                       ask->options.again);
    ask->peeked = cli_ask_store_peek(&ask->store, ask->options.again, err);
    if (!ask->peeked)
        return -1;
    struct str id = json_get_str(json_object_get(ask->peeked, "row"), "task");
    snprintf(ask->id, sizeof ask->id, "%.*s", TASKLOG_ID_LEN, id.at);
    ask->options.again = ask->id;
    return ask->options.resumes || ask->options.replays ? cli_ask_past_setup(ask, err) : 0;
}

/* Tools of this command line are no business of an engine that others use. */
static int open_engine(struct cli_ask *ask, struct err *err)
{
    char *options[CLI_RUN_ENGINE_OPTIONS];
    return cli_run_options_engine(&ask->options.run, options)
               ? cli_session_own(&ask->remote, options, err)
               : cli_session_carry(&ask->remote, err);
}

int cli_ask_open(struct cli_ask *ask, struct err *err)
{
    const struct cli_run_options *run = &ask->options.run;
    ask->folder = getcwd(NULL, 0);
    if (cli_ask_store_open(&ask->store, ask->options.again != NULL) < 0)
        cli_term_note("the task is not recorded: no usable state folder (%s)", strerror(errno));
    if (open_again(ask, err) < 0 || open_models(ask, err) < 0 ||
        open_text(ask->options.schema, "schema", &ask->schema_fd, err) < 0 ||
        open_text(ask->options.instructions, "instructions", &ask->instructions_fd, err) < 0 ||
        cli_run_inputs_open_files(&run->files, /* folders= */ false, &ask->inputs, err) < 0 ||
        (run->out && cli_steward_open(run->out, &ask->steward, err) < 0) ||
        open_engine(ask, err) < 0)
        return -1;
    const json_t *files = json_object_get(json_object_get(ask->peeked, "task"), "files");
    return ask->peeked ? cli_ask_again_open(ask, files, err) : 0;
}

/* --- after the drop --- */

static bool is_text(struct str text)
{
    return !memchr(text.at, 0, text.len) && str_is_utf8(text);
}

int cli_ask_question(const char *given, struct buf *out, struct err *err)
{
    *out = BUF_INIT(QUESTION_MAX);
    if (!given) {
        if (cli_run_inputs_read(STDIN_FILENO, "standard input", "question", out, err) < 0)
            return -1;
    } else if (buf_add_text(out, given) < 0) {
        return err_input(err, "question", NULL, "at most 262144 bytes",
                         "the question has more than %u bytes", QUESTION_MAX);
    }
    struct str text = buf_str(out);
    while (text.len > 0 && strchr(" \t\r\n", text.at[text.len - 1]))
        text.len--;
    if (text.len == 0 || !is_text(text))
        return err_input(err, "question", NULL, "UTF-8 text",
                         text.len == 0 ? "the question is empty" : "the question is not UTF-8");
    out->at[text.len] = 0;
    out->len = text.len;
    return 0;
}

static int read_bounded(int fd, const char *path, const char *option, struct buf *out,
                        struct err *err)
{
    char bound[48];
    if (buf_read(out, fd) == 0)
        return 0;
    if (errno != EFBIG)
        return err_sys(err, "read '%.200s'", path);
    snprintf(bound, sizeof bound, "at most %zu bytes", out->max);
    return err_input(err, option, NULL, bound, "'%.200s' has more than %zu bytes", path, out->max);
}

static int read_schema(struct cli_ask *ask, struct err *err)
{
    const char *path = ask->options.schema;
    own_buf text = BUF_INIT(SCHEMA_MAX);
    if (!path)
        return 0;
    if (read_bounded(ask->schema_fd, path, "schema", &text, err) < 0)
        return -1;
    ask->schema = json_read(buf_str(&text), SCHEMA_MAX, err);
    if (!ask->schema)
        return err_wrap(err, "the schema '%.200s'", path);
    if (!json_is_object(ask->schema))
        return err_input(err, "schema", NULL, "a JSON object", "the schema '%.200s' is no object",
                         path);
    return 0;
}

static int read_instructions(struct cli_ask *ask, struct err *err)
{
    const char *path = ask->options.instructions;
    if (!ask->instructions.at)
        ask->instructions = BUF_INIT(INSTRUCTIONS_MAX);
    if (!path)
        return 0;
    if (read_bounded(ask->instructions_fd, path, "instructions", &ask->instructions, err) < 0)
        return -1;
    if (!is_text(buf_str(&ask->instructions)))
        return err_input(err, "instructions", NULL, "UTF-8 text",
                         "the instructions '%.200s' are not UTF-8 text", path);
    return 0;
}

/* The store, and the events of a task that goes on, which nobody else may write meanwhile. */
static int open_store(struct cli_ask *ask, struct err *err)
{
    struct err why = ERR_INIT;
    if (ask->store.state_dir < 0)
        return 0;
    if (cli_ask_store_ready(&ask->store, ask->options.again != NULL, &why) < 0) {
        if (!ask->options.again)
            cli_term_note("the task is not recorded: %s", why.text);
        *err = ask->options.again ? why : ERR_INIT;
        return ask->options.again ? -1 : 0;
    }
    if (!ask->options.again)
        return 0;
    if (!ask->options.replays && cli_ask_store_begin(&ask->store, ask->id, err) < 0)
        return -1;
    ask->events = tasklog_events(ask->store.log, NULL, ask->id, /* passing= */ false, err);
    return ask->events ? 0 : -1;
}

/* "-" and a path that is not UTF-8 have none. */
static json_t *source_of(const struct cli_ask *ask, const char *host)
{
    char path[8192];
    int len = snprintf(path, sizeof path, "%s%s%s", host[0] == '/' ? "" : ask->folder,
                       host[0] == '/' ? "" : "/", host);
    bool known = strcmp(host, "-") != 0 && (host[0] == '/' || ask->folder) && len > 0 &&
                 (size_t)len < sizeof path;
    json_t *text = known ? json_string(path) : NULL;
    return text ? text : json_null();
}

void cli_ask_list_files(struct cli_ask *ask, const struct cli_run_inputs *inputs, size_t from)
{
    for (size_t i = from; i < ask->made_of.file_count; i++) {
        json_array_append_new(ask->sources, source_of(ask, inputs->files[i - from].spec.host));
        ask->files[i] = (struct agent_file){
            .path = ask->made_of.files[i].path,
            .content = ask->made_of.files[i].data,
            .source = json_string_value(json_array_get(ask->sources, i)),
        };
    }
}

static int read_files(struct cli_ask *ask, struct err *err)
{
    if (cli_run_request_session(&ask->options.run, &ask->inputs, &ask->made_of, err) < 0)
        return -1;
    ask->files = buf_alloc_zero(REQUEST_FILES_MAX + 1, sizeof *ask->files);
    ask->sources = json_array();
    ask->session = json_copy(ask->made_of.root);
    json_object_del(ask->session, "code");
    cli_ask_list_files(ask, &ask->inputs, 0);
    return cli_ask_again_check(ask, err);
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
static int confirm(const struct cli_ask *ask, struct err *err)
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

static int make_models_ready(const struct cli_ask *ask, struct err *err)
{
    struct llm_model *const models[] = { ask->model, ask->planner, ask->judge };
    for (size_t i = 0; i < array_len(models); i++)
        if (models[i] && llm_ready(models[i], err) < 0)
            return -1;
    return 0;
}

int cli_ask_ready(struct cli_ask *ask, struct err *err)
{
    if (make_models_ready(ask, err) < 0 || read_schema(ask, err) < 0 ||
        read_instructions(ask, err) < 0 || open_store(ask, err) < 0 || read_files(ask, err) < 0 ||
        cli_ask_past_ready(ask, err) < 0 || confirm(ask, err) < 0)
        return -1;
    return cli_interrupt_open(&ask->interrupt_fd, err);
}

/* --- the task --- */

static void on_event(void *user, const char *kind, const json_t *data)
{
    struct cli_ask *ask = user;
    if (strcmp(kind, "task") == 0) {
        const char *id = json_string_value(json_object_get(data, "task"));
        snprintf(ask->id, sizeof ask->id, "%s", id ? id : "");
    }
    cli_ask_approve_event(ask, kind, data);
    cli_ask_draw_event(&ask->draw, kind, data);
}

char *cli_ask_read_line(struct cli_ask *ask)
{
    own_buf line = BUF_INIT(REPLY_MAX);
    for (char c; line.len < REPLY_MAX;) {
        struct pollfd ready[] = { { .fd = STDIN_FILENO, .events = POLLIN },
                                  { .fd = ask->interrupt_fd, .events = POLLIN } };
        if (poll(ready, array_len(ready), -1) < 0 && errno == EINTR)
            continue;
        if (ready[1].revents || read(STDIN_FILENO, &c, 1) != 1)
            return NULL;
        if (c == '\n')
            break;
        buf_add(&line, &c, 1);
    }
    if (!is_text(buf_str(&line)))
        return NULL;
    return line.len ? buf_take(&line) : buf_strdup(STR(""));
}

static char *on_ask(void *user, const char *question)
{
    struct cli_ask *ask = user;
    cli_ask_draw_question(&ask->draw, question);
    return cli_ask_read_line(ask);
}

static bool can_reply(const struct cli_ask *ask)
{
    return isatty(STDIN_FILENO) && isatty(STDERR_FILENO) && !ask->options.run.json &&
           !ask->options.run.quiet;
}

int cli_ask_save(struct cli_steward *steward, const char *folder, const char *prefix,
                 const struct agent *agent, const json_t *report, int code)
{
    size_t i;
    json_t *artifact;
    struct err err = ERR_INIT;
    if (steward->sock < 0)
        return code;
    json_array_foreach (json_object_get(report, "artifacts"), i, artifact) {
        const char *path = json_string_value(json_object_get(artifact, "path"));
        if (!path)
            continue;
        struct err why = ERR_INIT;
        struct str content = agent_artifact(agent, path);
        own_buf shown = BUF_INIT(4096), whole = BUF_INIT(1 << 16);
        cli_visible_line(str_of(path), NAME_WIDTH, &shown); /* it may contain a line end */
        buf_printf(&whole, "%s%s", prefix, path);
        /* Continues after a failure: one bad name must not cost the other files. */
        if (!content.at)
            cli_term_note("'%s' is not saved: it exceeds artifact_bytes", buf_str(&shown).at);
        else if (cli_steward_write(steward, buf_str(&whole), content, &why) < 0)
            err = why;
        else
            cli_term_note("saved %.200s/%s", folder, buf_str(&shown).at);
    }
    return err.kind == ERR_NONE ? code : cli_term_refuse(&err, /* json= */ false);
}

static bool was_stopped(const struct cli_ask *ask)
{
    struct pollfd wish = { .fd = ask->interrupt_fd, .events = POLLIN };
    return poll(&wish, 1, 0) > 0;
}

struct agent *cli_ask_begin(struct cli_ask *ask, const char *question, bool conversation,
                            struct err *err)
{
    const struct cli_ask_options *o = &ask->options;
    const struct agent_task task = {
        .id = o->resumes ? ask->id : NULL,
        .question = question,
        .files = ask->files,
        .file_count = ask->made_of.file_count,
        .budget = o->budget,
        .mode = o->mode,
        .model = ask->model,
        .planner = ask->planner,
        .judge = ask->judge,
        .cross_check = o->cross_check,
        .schema = ask->schema,
        .instructions = ask->instructions.len > 0 ? ask->instructions.at : NULL,
        .verify = true,
        .conversation = conversation,
        .engine = &ask->remote.client,
        .session = ask->session,
        .record = { cli_ask_store_record, &ask->store },
        .past = o->resumes ? &ask->past : NULL,
    };
    struct agent *agent = agent_new(&task);
    const json_t *before = o->resumes ? ask->past.before : ask->events;
    if (json_array_size(before) > 0 && agent_resume(agent, before, err) < 0) {
        agent_done(agent);
        return NULL;
    }
    return agent;
}

int cli_ask_turn(struct cli_ask *ask, struct agent *agent, json_t **out_report)
{
    cli_ask_approve_begin(ask, can_reply(ask));
    bool decides = cli_approve_can(&ask->approve);
    const struct agent_watch watch = { .on = on_event,
                                       .user = ask,
                                       .ask = can_reply(ask) ? on_ask : NULL,
                                       .approve = decides ? cli_ask_approve : NULL,
                                       .cancel_fd = ask->interrupt_fd };
    enum agent_status status = AGENT_FAILED;
    *out_report = agent_run(agent, &watch, &status);
    cli_approve_tell(&ask->approve);
    cli_ask_store_keep(&ask->store, agent, *out_report);
    int code = status == AGENT_FAILED && was_stopped(ask)
                   ? 128 + (cli_interrupt_signal() ? cli_interrupt_signal() : 2)
                   : agent_status_exit(status);
    return cli_ask_save(&ask->steward, ask->options.run.out, "", agent, *out_report, code);
}

void cli_ask_done(struct cli_ask *ask)
{
    int *const fds[] = { &ask->schema_fd, &ask->instructions_fd };
    json_t *const values[] = { ask->schema, ask->recorded, ask->peeked,
                               ask->events, ask->session,  ask->sources };
    cli_approve_done(&ask->approve);
    cli_ask_draw_done(&ask->draw);
    cli_ask_store_done(&ask->store);
    agent_past_done(&ask->past);
    cli_remote_close(&ask->remote);
    cli_steward_close(&ask->steward);
    cli_run_inputs_done(&ask->inputs);
    if (ask->planner != ask->model)
        llm_close(ask->planner);
    if (ask->judge != ask->model)
        llm_close(ask->judge);
    llm_close(ask->model);
    request_done(&ask->made_of);
    for (size_t i = 0; i < array_len(fds); i++)
        own_close_fd(fds[i]);
    for (size_t i = 0; i < array_len(values); i++)
        json_decref(values[i]);
    free(ask->files);
    free(ask->folder);
    buf_done(&ask->question);
    buf_done(&ask->instructions);
    cli_ask_options_done(&ask->options);
}
