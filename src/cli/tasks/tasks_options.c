/* The tables behind `cupel tasks VERB --help`. Uses argv alone. */
#include "cli/tasks/tasks_options.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/attr.h"
#include "base/buf.h"
#include "cli/approve/approve.h"

#define AT(member) offsetof(struct cli_tasks_options, member)
#define ROWS_COMMON                                                                               \
    { "json", 0, NULL, OPT_FLAG, AT(ask.run.json), "print the answer as JSON and nothing else" }, \
        { "quiet", 'q', NULL, OPT_FLAG, AT(ask.run.quiet), "no progress and no notes" },          \
        { "help", 'h', NULL, OPT_FLAG, AT(ask.run.help), "show this text" }

static const struct opt ls_table[] = {
    { "status", 0, "NAME", OPT_TEXT, AT(status), "verified, interrupted, ...; see cupel-ask(1)" },
    { "token", 0, "ID", OPT_TEXT, AT(token), "of this token; '' for your own" },
    { "limit", 'n', "N", OPT_NUMBER, AT(limit), "so many at most; 50" },
    { "all", 'a', NULL, OPT_FLAG, AT(all), "all of them" },
    ROWS_COMMON,
};
static const struct opt show_table[] = {
    { "why", 0, NULL, OPT_FLAG, AT(ask.why), "show the lines of code behind each value" },
    ROWS_COMMON,
};
static const struct opt resume_table[] = {
    { "model", 0, "MODEL", OPT_TEXT, AT(ask.model), "another model for the rest" },
    { "budget", 0, "KEY=VALUE,...", OPT_TEXT, AT(ask.budgets),
      "limits of the rest, as of cupel ask; those that it had by default" },
    { "max-steps", 0, "N", OPT_NUMBER, AT(ask.max_steps), "cells that the rest may run" },
    { "out", 'o', "DIR", OPT_TEXT, AT(ask.run.out), "save the files that were made here" },
    { "why", 0, NULL, OPT_FLAG, AT(ask.why), "show the lines of code behind each value" },
    { "yes", 'y', NULL, OPT_FLAG, AT(ask.yes), "do not ask before spending at an unknown price" },
    CLI_RUN_ROWS_APPROVE,
    ROWS_COMMON,
};
static const struct opt replay_table[] = { ROWS_COMMON };
static const struct opt export_table[] = {
    { "as", 0, "FORM", OPT_TEXT, AT(as), "notebook, markdown or html; else by the file's name" },
    { "out", 'o', "FILE", OPT_TEXT, AT(ask.run.out), "write it here; - is standard output" },
    ROWS_COMMON,
};
static const struct opt rm_table[] = {
    { "yes", 'y', NULL, OPT_FLAG, AT(ask.yes), "remove them; without it, only show which" },
    ROWS_COMMON,
};
#define ROWS(table) static const size_t table##_rows = array_len(table##_table)
ROWS(ls);
ROWS(show);
ROWS(resume);
ROWS(replay);
ROWS(export);
ROWS(rm);
#define TABLE(table) table##_table, &table##_rows

const struct opt cli_tasks_options_table[] = {
    { "help", 'h', NULL, OPT_FLAG, AT(ask.run.help), "show this text" },
};
const size_t cli_tasks_options_rows = array_len(cli_tasks_options_table);

static const struct cli_command commands[CLI_TASKS_VERBS] = {
    [CLI_TASKS_LS] = { "ls", NULL, "list tasks, the newest first", TABLE(ls), NULL, NULL },
    [CLI_TASKS_SHOW] = { "show", NULL, "show a task again, as cupel ask drew it", TABLE(show), "ID",
                         NULL },
    [CLI_TASKS_RESUME] = { "resume", NULL, "take a task up where it stopped", TABLE(resume), "ID",
                           NULL },
    [CLI_TASKS_REPLAY] = { "replay", NULL, "run a task from its record and compare",
                           TABLE(replay), "ID", NULL },
    [CLI_TASKS_EXPORT] = { "export", NULL, "write a notebook, Markdown or an HTML report",
                           TABLE(export), "ID", NULL },
    [CLI_TASKS_RM] = { "rm", NULL, "remove tasks", TABLE(rm), "ID", NULL },
};
const struct cli_commands cli_tasks_commands = { commands, CLI_TASKS_VERBS };

static const struct shape {
    const char *operands;
    size_t least, most;
} shapes[CLI_TASKS_VERBS] = {
    [CLI_TASKS_LS] = { "", 0, 0 },
    [CLI_TASKS_SHOW] = { " ID|last", 1, 1 },
    [CLI_TASKS_RESUME] = { " ID|last [FILE:PATH]...", 1, SIZE_MAX },
    [CLI_TASKS_REPLAY] = { " ID|last [FILE:PATH]...", 1, SIZE_MAX },
    [CLI_TASKS_EXPORT] = { " ID|last", 1, 1 },
    [CLI_TASKS_RM] = { " ID|last...", 1, SIZE_MAX },
};

static const char *const notes[CLI_TASKS_VERBS] = {
    [CLI_TASKS_RESUME] =
        "\nThe cells that ran before run again and must end as they did; replies of the model\n"
        "that are recorded are not asked for again. A file that was moved is named as FILE:PATH.\n"
        "The exit code is that of cupel ask. For example:\n"
        "  cupel tasks resume last --max-steps 20\n",
    [CLI_TASKS_REPLAY] =
        "\nNo model is asked: its recorded replies are served, and the cells really run. What\n"
        "differs is reported, and the exit code is 1. Changed files are used as they are now.\n",
    [CLI_TASKS_EXPORT] = "\nFor example:\n  cupel tasks export last -o report.html\n",
    [CLI_TASKS_RM] = "\nFor example:\n  cupel tasks rm last --yes\n",
};

static void help_all(void)
{
    fputs("usage: cupel tasks COMMAND [OPTION]... [ID]...\n"
          "\n"
          "Every task of cupel ask, cupel chat and the service is recorded as it goes on.\n"
          "\n",
          stdout);
    for (size_t i = 0; i < CLI_TASKS_VERBS; i++)
        printf("  %-11s %s\n", commands[i].name, commands[i].summary);
    fputs("\nOptions:\n", stdout);
    opt_print_help(cli_tasks_options_table, cli_tasks_options_rows, stdout);
    fputs("\ncupel tasks COMMAND --help shows a command's options. An ID may be shortened as long\n"
          "as it is the only one; 'last' is the newest task. For example:\n"
          "  cupel tasks ls\n"
          "  cupel tasks resume last\n"
          "  cupel tasks export last -o report.html\n",
          stdout);
}

void cli_tasks_options_help(enum cli_tasks_verb verb)
{
    if (verb == CLI_TASKS_VERBS) {
        help_all();
        return;
    }
    const struct cli_command *command = &commands[verb];
    printf("usage: cupel tasks %s [OPTION]...%s\n\n%c%s.\n\nOptions:\n", command->name,
           shapes[verb].operands, command->summary[0] - 'a' + 'A', command->summary + 1);
    opt_print_help(command->options, *command->rows, stdout);
    fputs(notes[verb] ? notes[verb] : "", stdout);
}

/* The files behind the id. */
static void take_files(struct cli_ask_options *ask)
{
    const struct opt_operands *operands = &ask->run.operands;
    ask->run.files.count = operands->count - 1;
    ask->run.files.at = buf_alloc_zero(operands->count, sizeof *ask->run.files.at);
    for (size_t i = 1; i < operands->count; i++)
        ask->run.files.at[i - 1] = operands->at[i];
}

int cli_tasks_options_parse(enum cli_tasks_verb verb, int argc, char **argv,
                            struct cli_tasks_options *out, struct err *err)
{
    const struct cli_command *command = &commands[verb];
    const struct shape *shape = &shapes[verb];
    struct opt_operands *operands = &out->ask.run.operands;
    if (opt_parse(command->options, *command->rows, argc, argv, out, operands, err) < 0)
        return -1;
    if (out->ask.run.help)
        return 0;
    if (operands->count < shape->least) {
        err_set(err, ERR_USAGE, "'cupel tasks %s' needs the id of a task", command->name);
        err_hint(err, "usage: cupel tasks %s%s; 'cupel tasks ls' lists them", command->name,
                 shape->operands);
        return -1;
    }
    if (operands->count > shape->most)
        return err_set(err, ERR_USAGE, "'cupel tasks %s' takes no further operand, but got '%.80s'",
                       command->name, operands->at[shape->most]);
    if (verb != CLI_TASKS_RESUME && verb != CLI_TASKS_REPLAY)
        return 0;
    if (cli_approve_check(&out->ask.run.approve, &out->ask.run.refuse, err) < 0)
        return -1;
    take_files(&out->ask);
    out->ask.again = operands->at[0];
    out->ask.run.profile = "analysis"; /* for reading the files; the record has the session's */
    out->ask.resumes = verb == CLI_TASKS_RESUME;
    out->ask.replays = out->ask.changed = verb == CLI_TASKS_REPLAY;
    return cli_ask_options_limits(&out->ask, err);
}

void cli_tasks_options_done(enum cli_tasks_verb verb, struct cli_tasks_options *options)
{
    free(options->ask.run.files.at);
    options->ask.run.files = (struct opt_list){ 0 };
    opt_done(commands[verb].options, *commands[verb].rows, options);
}
