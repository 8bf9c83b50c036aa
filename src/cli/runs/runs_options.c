/* The tables behind `cupel runs VERB --help`. Uses argv alone. */
#include "cli/runs/runs_options.h"

#include <stdint.h>
#include <stdio.h>

#include "base/attr.h"
#include "contract/request.h"

#define AT(member) offsetof(struct cli_runs_options, member)
#define ROWS_COMMON                                                                               \
    { "json", 0, NULL, OPT_FLAG, AT(json), "print the answer as JSON and nothing else" },         \
        { "quiet", 'q', NULL, OPT_FLAG, AT(quiet), "no notes on standard error" },                \
        { "help", 'h', NULL, OPT_FLAG, AT(help), "show this text" }
#define ROWS_FILTER                                                                               \
    { "status", 0, "NAME", OPT_TEXT, AT(status), "ok, error, timeout, ...; see cupel-run(1)" },   \
        { "language", 'l', "NAME", OPT_TEXT, AT(language), REQUEST_ALL_LANGUAGES },               \
        { "session", 0, "ID", OPT_TEXT, AT(session), "cells of this session" },                   \
        { "task", 0, "ID", OPT_TEXT, AT(task), "steps of this task" },                            \
        { "token", 0, "ID", OPT_TEXT, AT(token), "of this token; '' for your own" },              \
        { "since", 0, "TIME", OPT_TEXT, AT(since), "not older than 2h, 7d, or 2026-11-01 (UTC)" }, \
        { "until", 0, "TIME", OPT_TEXT, AT(until), "older than 2h, 7d, or 2026-11-01 (UTC)" },    \
        { "text", 0, "WORDS", OPT_TEXT, AT(text), "all words, \"a phrase\", or a begin*" },       \
        { "code-hash", 0, "SHA256", OPT_TEXT, AT(code_hash), "exactly this code" }

static const struct opt ls_table[] = {
    ROWS_FILTER,
    { "limit", 'n', "N", OPT_NUMBER, AT(limit), "so many at most; 50" },
    { "all", 'a', NULL, OPT_FLAG, AT(all), "all of them" },
    ROWS_COMMON,
};
static const struct opt log_table[] = {
    { "stderr", 0, NULL, OPT_FLAG, AT(is_err), "standard error instead of standard output" },
    { "raw", 0, NULL, OPT_FLAG, AT(raw), "control characters unchanged on a terminal, too" },
    ROWS_COMMON,
};
static const struct opt artifacts_table[] = {
    { "out", 'o', "DIR", OPT_TEXT, AT(out), "save them in this folder" },
    ROWS_COMMON,
};
static const struct opt stats_table[] = {
    { "since", 0, "TIME", OPT_TEXT, AT(since), "not older than 2h, 7d, or 2026-11-01 (UTC); 7d" },
    { "until", 0, "TIME", OPT_TEXT, AT(until), "older than 2h, 7d, or 2026-11-01 (UTC)" },
    { "token", 0, "ID", OPT_TEXT, AT(token), "of this token; '' for your own" },
    ROWS_COMMON,
};
static const struct opt export_table[] = {
    { "as", 0, "FORM", OPT_TEXT, AT(as), "notebook, script or json; else by the file's name" },
    { "out", 'o', "FILE", OPT_TEXT, AT(out), "write it here; - is standard output" },
    ROWS_COMMON,
};
static const struct opt replay_table[] = {
    { "any-image", 0, NULL, OPT_FLAG, AT(any_image), "run on the image as it is now" },
    { "secret", 0, "HASH=VALUE", OPT_LIST, AT(secrets),
      "in the place of a marker; =@FILE reads a file" },
    ROWS_COMMON,
};
static const struct opt rm_table[] = {
    { "before", 0, "TIME", OPT_TEXT, AT(before), "those older than 30d, or than 2026-11-01 (UTC)" },
    { "status", 0, "NAME", OPT_TEXT, AT(status), "those with this status" },
    { "yes", 'y', NULL, OPT_FLAG, AT(yes), "remove them; without it, only show which" },
    ROWS_COMMON,
};
static const struct opt plain_table[] = { ROWS_COMMON };
#define ROWS(table) static const size_t table##_rows = array_len(table##_table)
ROWS(ls);
ROWS(log);
ROWS(artifacts);
ROWS(stats);
ROWS(export);
ROWS(replay);
ROWS(rm);
ROWS(plain);
#define TABLE(table) table##_table, &table##_rows

const struct opt cli_runs_options_table[] = {
    { "help", 'h', NULL, OPT_FLAG, AT(help), "show this text" },
};
const size_t cli_runs_options_rows = array_len(cli_runs_options_table);

static const struct cli_command commands[CLI_RUNS_VERBS] = {
    [CLI_RUNS_LS] = { "ls", NULL, "list and search runs, the newest first", TABLE(ls), NULL, NULL },
    [CLI_RUNS_SHOW] = { "show", NULL, "tell what happened in a run", TABLE(plain), "ID", NULL },
    [CLI_RUNS_LOG] = { "log", NULL, "print all that a run wrote", TABLE(log), "ID", NULL },
    [CLI_RUNS_ARTIFACTS] = { "artifacts", NULL, "list or save the files that a run made",
                             TABLE(artifacts), "ID", NULL },
    [CLI_RUNS_STATS] = { "stats", NULL, "show failures, times and costs", TABLE(stats), NULL,
                         NULL },
    [CLI_RUNS_EXPORT] = { "export", NULL, "write a notebook, a script or JSON", TABLE(export), "ID",
                          NULL },
    [CLI_RUNS_REPLAY] = { "replay", NULL, "run it again, and show what differs", TABLE(replay),
                          "ID", NULL },
    [CLI_RUNS_DIFF] = { "diff", NULL, "show what differs between two runs", TABLE(plain), "ID",
                        NULL },
    [CLI_RUNS_PIN] = { "pin", NULL, "keep runs whatever their age", TABLE(plain), "ID", NULL },
    [CLI_RUNS_UNPIN] = { "unpin", NULL, "let retention remove them again", TABLE(plain), "ID",
                         NULL },
    [CLI_RUNS_RM] = { "rm", NULL, "remove runs", TABLE(rm), "ID", NULL },
};
const struct cli_commands cli_runs_commands = { commands, CLI_RUNS_VERBS };

static const struct shape {
    const char *operands;
    size_t least, most;
    const char *missing;
} shapes[CLI_RUNS_VERBS] = {
    [CLI_RUNS_LS] = { "", 0, 0, "" },
    [CLI_RUNS_SHOW] = { " ID|last", 1, 1, "the id of a run" },
    [CLI_RUNS_LOG] = { " ID|last", 1, 1, "the id of a run" },
    [CLI_RUNS_ARTIFACTS] = { " ID|last [PATH]...", 1, SIZE_MAX, "the id of a run" },
    [CLI_RUNS_STATS] = { "", 0, 0, "" },
    [CLI_RUNS_EXPORT] = { " ID|last", 1, 1, "the id of a run" },
    [CLI_RUNS_REPLAY] = { " ID|last", 1, 1, "the id of a run" },
    [CLI_RUNS_DIFF] = { " ID|last ID|last", 2, 2, "the ids of two runs" },
    [CLI_RUNS_PIN] = { " ID|last...", 1, SIZE_MAX, "the id of a run" },
    [CLI_RUNS_UNPIN] = { " ID|last...", 1, SIZE_MAX, "the id of a run" },
    [CLI_RUNS_RM] = { " [ID|last]...", 0, SIZE_MAX, "" },
};

static const char *const notes[CLI_RUNS_VERBS] = {
    [CLI_RUNS_LS] = "\nWith --json: one object a line. For example:\n"
                    "  cupel runs ls --status error --since 2h\n"
                    "  cupel runs ls --text 'KeyError customer'\n",
    [CLI_RUNS_LOG] = "\nThe bytes are exact unless they go to a terminal. Secrets stay hidden.\n",
    [CLI_RUNS_ARTIFACTS] = "\nWithout -o, one PATH is written to standard output.\n",
    [CLI_RUNS_EXPORT] = "\nA cell of a session comes with the cells before it. For example:\n"
                        "  cupel runs export last -o analysis.ipynb\n",
    [CLI_RUNS_REPLAY] =
        "\nThe same code on the same inputs, image and limits; a cell of a session with the cells\n"
        "before it. The exit code is 0 if nothing differs, 1 if something does, 2 if it was\n"
        "refused. For example:\n"
        "  cupel runs replay last\n",
    [CLI_RUNS_DIFF] =
        "\nThe exit code is 0 if nothing differs, 1 if something does. Ids, times and measured\n"
        "metrics do not count.\n",
    [CLI_RUNS_RM] = "\nPinned runs stay. For example:\n"
                    "  cupel runs rm --before 30d --status error --yes\n",
};

static void help_all(void)
{
    fputs("usage: cupel runs COMMAND [OPTION]... [ID]...\n"
          "\n"
          "Every run of an engine is recorded; 'cupel run --record' records a cold one.\n"
          "\n",
          stdout);
    for (size_t i = 0; i < CLI_RUNS_VERBS; i++)
        printf("  %-11s %s\n", commands[i].name, commands[i].summary);
    fputs("\nOptions:\n", stdout);
    opt_print_help(cli_runs_options_table, cli_runs_options_rows, stdout);
    fputs("\ncupel runs COMMAND --help shows a command's options. An ID may be shortened as long\n"
          "as it is the only one; 'last' is the newest run. For example:\n"
          "  cupel runs ls --status error\n"
          "  cupel runs show last\n",
          stdout);
}

void cli_runs_options_help(enum cli_runs_verb verb)
{
    if (verb == CLI_RUNS_VERBS) {
        help_all();
        return;
    }
    const struct cli_command *command = &commands[verb];
    printf("usage: cupel runs %s [OPTION]...%s\n\n%c%s.\n\nOptions:\n", command->name,
           shapes[verb].operands, command->summary[0] - 'a' + 'A', command->summary + 1);
    opt_print_help(command->options, *command->rows, stdout);
    fputs(notes[verb] ? notes[verb] : "", stdout);
}

int cli_runs_options_parse(enum cli_runs_verb verb, int argc, char **argv,
                           struct cli_runs_options *out, struct err *err)
{
    const struct cli_command *command = &commands[verb];
    const struct shape *shape = &shapes[verb];
    if (opt_parse(command->options, *command->rows, argc, argv, out, &out->rest, err) < 0)
        return -1;
    if (out->help)
        return 0;
    if (out->rest.count < shape->least) {
        err_set(err, ERR_USAGE, "'cupel runs %s' needs %s", command->name, shape->missing);
        err_hint(err, "usage: cupel runs %s%s; 'cupel runs ls' lists them", command->name,
                 shape->operands);
        return -1;
    }
    if (out->rest.count > shape->most)
        return err_set(err, ERR_USAGE, "'cupel runs %s' takes no further operand, but got '%.80s'",
                       command->name, out->rest.at[shape->most]);
    return 0;
}

void cli_runs_options_done(enum cli_runs_verb verb, struct cli_runs_options *options)
{
    opt_done(commands[verb].options, *commands[verb].rows, options);
}
