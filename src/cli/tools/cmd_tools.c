/* `cupel tools`: the tools of this host, without an engine. Runs in the cli process: the tool host
 * is forked as the caller, then rights are dropped, and only then a tool's text is read. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "box/host/box.h"
#include "cli/approve/approve.h"
#include "cli/cli.h"
#include "cli/term/term.h"
#include "cli/tools/tools_options.h"
#include "cli/tools/tools_show.h"
#include "tool/define/define.h"
#include "tool/define/outcome.h"
#include "tool/host/host.h"

#define LIST_MS 30000
#define ARGUMENTS_MAX ((size_t)16 << 20)
#define CODE_FAILED 1
#define CODE_LATE 124

struct job {
    struct toolhost *host;
    const struct cli_tools_options *options;
    json_t *definitions;
};

static int open_job(struct job *job, struct err *err)
{
    own_str folder = toolhost_default_folder();
    own_str secrets = toolhost_default_secrets();
    const struct cli_tools_options *o = job->options;
    struct toolhost_options options = { .folder = o->folder ? o->folder : folder,
                                        .mcp_file = o->mcp,
                                        .secrets_file = o->secrets ? o->secrets : secrets };
    if (toolhost_open(&options, &job->host, err) < 0 || box_drop_door(err) < 0)
        return -1;
    job->definitions = toolhost_list(job->host, LIST_MS, err);
    return job->definitions ? 0 : -1;
}

static const json_t *find(const struct job *job, struct err *err)
{
    const char *name = job->options->operands.at[0];
    size_t i;
    json_t *definition;
    json_array_foreach (job->definitions, i, definition)
        if (str_is(json_get_str(definition, "name"), name))
            return definition;
    err_set(err, ERR_ABSENT, "there is no tool '%.80s'", name);
    err_hint(err, json_array_size(toolhost_faults(job->host))
                      ? "a file is wrong: 'cupel tools check' says which, and why"
                      : "'cupel tools ls' lists the tools");
    return NULL;
}

static void note_faults(const struct job *job)
{
    size_t count = json_array_size(toolhost_faults(job->host));
    if (count)
        cli_term_note("%zu %s left out: 'cupel tools check' says why", count,
                      count == 1 ? "is" : "are");
}

static int go_ls(const struct job *job, struct err *err)
{
    (void)err;
    if (job->options->json) {
        own_json out = json_pack("{s:O}", "tools", job->definitions);
        return cli_term_json(out);
    }
    cli_tools_print_table(job->definitions);
    note_faults(job);
    if (json_array_size(job->definitions) == 0)
        cli_term_note("there is no tool yet; docs/tools.md shows how to write one");
    return 0;
}

static int go_show(const struct job *job, struct err *err)
{
    const json_t *definition = find(job, err);
    if (!definition)
        return -1;
    if (job->options->json)
        return cli_term_json(definition);
    cli_tools_print_one(definition);
    return 0;
}

static int go_check(const struct job *job, struct err *err)
{
    const json_t *faults = toolhost_faults(job->host);
    int code = json_array_size(faults) ? CODE_FAILED : 0;
    (void)err;
    if (job->options->json) {
        own_json out = json_pack("{s:O, s:O}", "tools", job->definitions, "faults", faults);
        int lost = cli_term_json(out);
        return lost ? lost : code;
    }
    cli_tools_print_faults(faults);
    printf("%zu good, %zu bad\n", json_array_size(job->definitions), json_array_size(faults));
    return code;
}

/* A person at the terminal decides now. */
static bool approve(const struct job *job, const struct tool *tool, json_t *arguments)
{
    const struct cli_tools_options *o = job->options;
    struct cli_approve a = CLI_APPROVE_INIT;
    own_json call = json_pack("{s:i, s:s, s:s, s:O}", "call", 1, "tool", tool->name, "effect",
                              tool_effect_name(tool->effect), "arguments", arguments);
    a.asks = true;
    a.by_hand = true;
    bool allow = cli_approve_is_terminal() && !o->json && !o->quiet && cli_approve_wait(&a, call);
    cli_approve_done(&a);
    return allow;
}

static int judge(const struct job *job, const struct tool *tool, json_t *arguments, struct err *err)
{
    enum tool_verdict verdict = tool_judge(tool, arguments);
    if (verdict == TOOL_DENY)
        return err_set(err, ERR_FORBIDDEN, "the policy of '%s' denies this call", tool->name);
    if (verdict == TOOL_ALLOW || job->options->yes || approve(job, tool, arguments))
        return 0;
    err_set(err, ERR_FORBIDDEN, "the policy of '%s' says to ask before this call (effect: %s)",
            tool->name, tool_effect_name(tool->effect));
    err_hint(err, "--yes runs it");
    return -1;
}

static void keep_outcome(void *user, uint64_t id, json_t *outcome)
{
    (void)id;
    *(json_t **)user = json_incref(outcome);
}

static int tell(const struct job *job, const json_t *outcome)
{
    const json_t *error = json_object_get(outcome, "error");
    enum outcome_kind kind = outcome_kind_of(outcome);
    int code = kind == OUTCOME_TIMEOUT ? CODE_LATE : error ? CODE_FAILED : 0;
    size_t i;
    json_t *file;
    if (job->options->json) {
        int lost = cli_term_json(outcome);
        return lost ? lost : code;
    }
    if (error) {
        struct err err = ERR_INIT;
        err_set(&err, ERR_INPUT, "%s", json_get_str(error, "message").at);
        cli_term_refuse(&err, /* json= */ false);
        return code;
    }
    cli_tools_print_value(json_object_get(outcome, "value"));
    json_array_foreach (json_object_get(outcome, "files"), i, file)
        cli_term_note("file '%s' (%s); --json prints its bytes", json_get_str(file, "name").at,
                      json_get_str(file, "mime").at);
    return 0;
}

static int run_call(const struct job *job, const struct tool *tool, json_t *arguments,
                    struct err *err)
{
    own_json outcome = NULL;
    const struct opt_number *timeout = &job->options->timeout_s;
    int64_t ms = timeout->given ? (int64_t)(timeout->value * 1000) : 0;
    toolhost_on_answer(job->host, keep_outcome, &outcome);
    if (toolhost_call(job->host, 1, tool->name, arguments, NULL, ms, err) < 0)
        return -1;
    while (!outcome) {
        short events = toolhost_wants_write(job->host) ? POLLIN | POLLOUT : POLLIN;
        struct pollfd watched = { toolhost_fd(job->host), events, 0 };
        poll(&watched, 1, -1);
        toolhost_ready(job->host);
    }
    return tell(job, outcome);
}

static int go_call(const struct job *job, struct err *err)
{
    const struct opt_operands *operands = &job->options->operands;
    const json_t *definition = find(job, err);
    own_tool tool = TOOL_INIT;
    if (!definition || tool_read(definition, &tool, err) < 0)
        return -1;
    const char *text = operands->count > 1 ? operands->at[1] : "{}";
    own_json arguments = json_read(str_of(text), ARGUMENTS_MAX, err);
    if (!arguments)
        return err_wrap(err, "arguments of '%s'", tool.name);
    if (!json_is_object(arguments))
        return err_input(err, "args", text, "a JSON object",
                         "the arguments of '%s' must be a JSON object", tool.name);
    if (schema_check(tool.input, arguments, err) < 0 || judge(job, &tool, arguments, err) < 0)
        return -1;
    return run_call(job, &tool, arguments, err);
}

static int (*const verbs[CLI_TOOLS_VERBS])(const struct job *job, struct err *err) = {
    [CLI_TOOLS_LS] = go_ls,
    [CLI_TOOLS_SHOW] = go_show,
    [CLI_TOOLS_CALL] = go_call,
    [CLI_TOOLS_CHECK] = go_check,
};

static int run_verb(enum cli_tools_verb verb, int argc, char **argv)
{
    struct cli_tools_options options = { 0 };
    struct job job = { .options = &options };
    struct err err = ERR_INIT;
    int code = 0;
    int parsed = cli_tools_options_parse(verb, argc, argv, &options, &err);
    cli_term_set_quiet(options.quiet);
    if (parsed == 0 && options.help)
        cli_tools_options_help(verb);
    else if (parsed < 0 || open_job(&job, &err) < 0 || (code = verbs[verb](&job, &err)) < 0)
        code = cli_term_refuse(&err, options.json);
    json_decref(job.definitions);
    toolhost_close(job.host);
    cli_tools_options_done(verb, &options);
    return code;
}

static const char *verb_name(const void *table, size_t i)
{
    return ((const struct cli_command *)table)[i].name;
}

int cli_cmd_tools(int argc, char **argv)
{
    struct err err = ERR_INIT;
    if (argc > 0 && (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0)) {
        cli_tools_options_help(CLI_TOOLS_VERBS);
        return 0;
    }
    for (size_t i = 0; argc > 0 && i < cli_tools_commands.count; i++)
        if (strcmp(argv[0], cli_tools_commands.at[i].name) == 0)
            return run_verb((enum cli_tools_verb)i, argc - 1, argv + 1);
    const char *near = argc > 0 ? opt_nearest(argv[0], cli_tools_commands.count, verb_name,
                                              cli_tools_commands.at)
                                : NULL;
    if (argc == 0)
        err_set(&err, ERR_USAGE, "'cupel tools' needs a command");
    else
        err_set(&err, ERR_USAGE, "unknown command 'tools %.80s'", argv[0]);
    if (near)
        err_hint(&err, "did you mean cupel tools %s?", near);
    else
        err_hint(&err, "cupel tools --help lists the commands");
    return cli_term_refuse(&err, /* json= */ false);
}
