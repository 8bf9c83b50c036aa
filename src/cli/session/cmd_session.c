/* `cupel session`: a table of subcommands, each one request to the engine or one cell. Runs in the
 * cli process. The order is that of `cupel run`: argv, then the caller's files, then the
 * connection, then the rights are dropped, and only then a byte is read. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "box/host/box.h"
#include "cli/cli.h"
#include "cli/run/job.h"
#include "cli/run/run_request.h"
#include "cli/session/session_files.h"
#include "cli/session/session_options.h"
#include "cli/session/session_show.h"
#include "cli/link/engine_start.h"
#include "cli/term/term.h"

struct session {
    struct cli_session_options options;
    struct cli_job job;
    struct cli_session_target target;
};

/* --- answers --- */

/* The answer for a program: "session" is always the id, with the engine's other members beside
 * it. */
static json_t *flat(const json_t *answer, const char *id)
{
    const json_t *info = json_object_get(answer, "session");
    json_t *out = json_object();
    const char *name;
    json_t *value;
    if (json_is_object(info))
        json_object_update(out, (json_t *)(uintptr_t)info);
    else if (id)
        json_object_set_new(out, "session", json_string(id));
    json_object_foreach ((json_t *)(uintptr_t)answer, name, value)
        if (strcmp(name, "session") != 0)
            json_object_set(out, name, value);
    return out;
}

static int tell_json(const struct session *s)
{
    own_json out = flat(s->job.remote.call.answer, s->options.id);
    return cli_term_json(out);
}

static const json_t *info_of(const struct session *s)
{
    return json_object_get(s->job.remote.call.answer, "session");
}

static int tell_id(const struct session *s)
{
    const char *id = json_string_value(json_object_get(info_of(s), "session"));
    own_buf line = BUF_INIT(256);
    buf_printf(&line, "%.64s\n", id ? id : "");
    cli_term_write(STDOUT_FILENO, buf_str(&line));
    return 0;
}

/* --- the commands; -1 with an err, else the exit code --- */

static int ask_plain(struct session *s, const char *what, const char *member, const char *value,
                     struct err *err)
{
    own_json ask = json_pack("{s:s, s:s}", "do", what, "session", s->options.id);
    json_t *text = value ? json_string(value) : NULL;
    if (!ask || (value && (!text || json_object_set_new(ask, member, text) < 0)))
        return err_set(err, ERR_USAGE, "the operands are not UTF-8");
    return cli_remote_ask(&s->job.remote, ask, err);
}

static int open_new(struct session *s, struct err *err)
{
    return cli_run_inputs_open_files(&s->options.run.files, /* folders= */ false, &s->job.inputs,
                                     err);
}

static int go_new(struct session *s, struct err *err)
{
    const struct {
        const char *name;
        const struct opt_number *number;
    } numbers[] = { { "ttl_s", &s->options.ttl },
                    { "life_s", &s->options.life },
                    { "undo_levels", &s->options.undo_levels } };
    if (cli_run_request_session(s->job.options, &s->job.inputs, &s->job.request, err) < 0)
        return -1;
    json_t *request = cli_remote_request(&s->job.request);
    json_object_del(request, "code");
    own_json ask = json_pack("{s:s, s:o}", "do", "new", "request", request);
    for (size_t i = 0; i < array_len(numbers); i++)
        if (numbers[i].number->given)
            json_object_set_new(ask, numbers[i].name,
                                json_integer((json_int_t)numbers[i].number->value));
    if (cli_remote_ask(&s->job.remote, ask, err) < 0)
        return -1;
    return s->options.run.json ? tell_json(s) : tell_id(s);
}

static int open_run(struct session *s, struct err *err)
{
    const char *out = s->options.run.out;
    if (cli_run_inputs_open(s->job.options, &s->job.inputs, err) < 0)
        return -1;
    return out ? cli_steward_open(out, &s->job.steward, err) : 0;
}

static int go_run(struct session *s, struct err *err)
{
    struct cli_job *job = &s->job;
    if (cli_run_request_build(job->options, &job->inputs, &job->stdin_bytes, &job->request, err) <
            0 ||
        cli_job_run(job, err) < 0)
        return -1;
    int code = cli_job_tell(job);
    if (s->options.run.names && !s->options.run.json && !s->options.run.quiet)
        cli_session_show_changes(job->remote.call.answer);
    return code;
}

static int go_ls(struct session *s, struct err *err)
{
    own_json ask = json_pack("{s:s}", "do", "list");
    if (cli_remote_ask(&s->job.remote, ask, err) < 0)
        return -1;
    if (s->options.run.json)
        return tell_json(s);
    const json_t *sessions = json_object_get(s->job.remote.call.answer, "sessions");
    if (json_array_size(sessions) == 0)
        cli_term_note("there are no sessions");
    else
        cli_session_show_list(sessions);
    return 0;
}

static int go_info(struct session *s, struct err *err)
{
    own_json ask = json_pack("{s:s, s:s, s:b}", "do", "info", "session", s->options.id, "names", 1);
    if (!ask)
        return err_set(err, ERR_USAGE, "the id is not UTF-8");
    if (cli_remote_ask(&s->job.remote, ask, err) < 0)
        return -1;
    if (s->options.run.json)
        return tell_json(s);
    cli_session_show_info(info_of(s));
    return 0;
}

static int open_put(struct session *s, struct err *err)
{
    return cli_session_files_open(&s->options.rest, s->options.to, &s->job.inputs, err);
}

static int go_put(struct session *s, struct err *err)
{
    if (cli_session_files_put(&s->job.remote, s->options.id, &s->job.inputs, err) < 0)
        return -1;
    return s->options.run.json ? tell_json(s) : 0;
}

static int open_get(struct session *s, struct err *err)
{
    return cli_session_target_open(s->options.rest.at[0], s->options.file, &s->target, err);
}

static int go_get(struct session *s, struct err *err)
{
    if (cli_session_files_get(&s->job.remote, s->options.id, s->options.rest.at[0], &s->target,
                              err) < 0)
        return -1;
    return s->options.run.json ? tell_json(s) : 0;
}

static int go_files(struct session *s, struct err *err)
{
    if (ask_plain(s, "files", NULL, NULL, err) < 0)
        return -1;
    if (s->options.run.json)
        return tell_json(s);
    cli_session_show_files(s->job.remote.call.answer);
    return 0;
}

static int go_interrupt(struct session *s, struct err *err)
{
    if (ask_plain(s, "interrupt", NULL, NULL, err) < 0)
        return -1;
    return s->options.run.json ? tell_json(s) : 0;
}

static int go_checkpoint(struct session *s, struct err *err)
{
    if (ask_plain(s, "checkpoint", "name", s->options.rest.at[0], err) < 0)
        return -1;
    return s->options.run.json ? tell_json(s) : 0;
}

static int go_undo(struct session *s, struct err *err)
{
    if (ask_plain(s, "undo", "to", s->options.to, err) < 0)
        return -1;
    if (s->options.run.json)
        return tell_json(s);
    cli_session_show_undo(s->job.remote.call.answer);
    return 0;
}

static int go_fork(struct session *s, struct err *err)
{
    if (ask_plain(s, "fork", NULL, NULL, err) < 0)
        return -1;
    return s->options.run.json ? tell_json(s) : tell_id(s);
}

/* Continues after a failure; the last one sets the exit code. */
static int go_rm(struct session *s, struct err *err)
{
    int code = 0;
    for (size_t i = 0; i <= s->options.rest.count; i++) {
        *err = ERR_INIT;
        int rc = ask_plain(s, "end", NULL, NULL, err);
        if (rc == 0 && s->options.run.json)
            rc = tell_json(s) == 0 ? 0 : 125;
        else if (rc < 0)
            rc = cli_term_refuse(err, s->options.run.json);
        code = rc ? rc : code;
        if (i < s->options.rest.count)
            s->options.id = s->options.rest.at[i];
    }
    return code;
}

static const struct {
    int (*open)(struct session *s, struct err *err); /* as the caller; NULL: nothing to open */
    int (*go)(struct session *s, struct err *err);
} verbs[CLI_SESSION_VERBS] = {
    [CLI_SESSION_NEW] = { open_new, go_new },
    [CLI_SESSION_RUN] = { open_run, go_run },
    [CLI_SESSION_LS] = { NULL, go_ls },
    [CLI_SESSION_INFO] = { NULL, go_info },
    [CLI_SESSION_PUT] = { open_put, go_put },
    [CLI_SESSION_GET] = { open_get, go_get },
    [CLI_SESSION_FILES] = { NULL, go_files },
    [CLI_SESSION_INTERRUPT] = { NULL, go_interrupt },
    [CLI_SESSION_CHECKPOINT] = { NULL, go_checkpoint },
    [CLI_SESSION_UNDO] = { NULL, go_undo },
    [CLI_SESSION_FORK] = { NULL, go_fork },
    [CLI_SESSION_RM] = { NULL, go_rm },
};

/* Without an engine there are no sessions: an answer, not an error. */
static int list_none(const struct session *s, const struct err *why)
{
    own_json none = json_pack("{s:[]}", "sessions");
    if (s->options.run.json)
        return cli_term_json(none);
    cli_term_note("%s", why->text);
    return 0;
}

static int do_verb(struct session *s, enum cli_session_verb verb, struct err *err)
{
    struct cli_remote *remote = &s->job.remote;
    if (verbs[verb].open && verbs[verb].open(s, err) < 0)
        return -1;
    int rc = verb == CLI_SESSION_NEW ? cli_session_start(remote, err)
                                     : cli_session_reach(remote, s->options.id, err);
    if (rc < 0 && verb == CLI_SESSION_LS && err->kind == ERR_ABSENT)
        return list_none(s, err);
    if (rc < 0 || box_drop_door(err) < 0)
        return -1;
    return verbs[verb].go(s, err);
}

static int run_verb(enum cli_session_verb verb, int argc, char **argv)
{
    struct session s = { .options = CLI_SESSION_OPTIONS_INIT, .target = CLI_SESSION_TARGET_INIT };
    struct err err = ERR_INIT;
    bool json = cli_run_options_ask_for_json(argc, argv);
    int code = 0;
    cli_job_init(&s.job, &s.options.run);
    int parsed = cli_session_options_parse(verb, argc, argv, &s.options, &err);
    cli_term_set_quiet(s.options.run.quiet);
    if (parsed == 0 && s.options.run.help)
        cli_session_options_help(verb);
    else if (parsed < 0 || (code = do_verb(&s, verb, &err)) < 0)
        code = cli_term_refuse(&err, json);
    cli_session_target_close(&s.target);
    cli_job_done(&s.job);
    cli_session_options_done(&s.options);
    return code;
}

static const char *verb_name(const void *table, size_t i)
{
    return ((const struct cli_command *)table)[i].name;
}

static int refuse_verb(const char *name)
{
    struct err err = ERR_INIT;
    const char *near = opt_nearest(name, cli_session_commands.count, verb_name,
                                   cli_session_commands.at);
    err_set(&err, ERR_USAGE, "unknown command 'session %.80s'", name);
    if (near)
        err_hint(&err, "did you mean cupel session %s?", near);
    else
        err_hint(&err, "cupel session --help lists the commands");
    return cli_term_refuse(&err, /* json= */ false);
}

int cli_cmd_session(int argc, char **argv)
{
    if (argc == 0) {
        struct err err = ERR_INIT;
        err_set(&err, ERR_USAGE, "'cupel session' needs a command");
        err_hint(&err, "cupel session --help lists the commands");
        return cli_term_refuse(&err, /* json= */ false);
    }
    if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0) {
        cli_session_options_help(CLI_SESSION_VERBS);
        return 0;
    }
    for (size_t i = 0; i < cli_session_commands.count; i++)
        if (strcmp(argv[0], cli_session_commands.at[i].name) == 0)
            return run_verb((enum cli_session_verb)i, argc - 1, argv + 1);
    return refuse_verb(argv[0]);
}
