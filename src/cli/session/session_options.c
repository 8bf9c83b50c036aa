/* The tables behind `cupel session VERB --help`, and the rules between options. Uses argv alone. */
#include "cli/session/session_options.h"

#include <stdio.h>
#include <string.h>

#include "base/attr.h"

#define AT(member) offsetof(struct cli_session_options, member)
#define ROW_ANSWER \
    { "json", 0, NULL, OPT_FLAG, CLI_RUN_AT(json), "print the answer as JSON and nothing else" }
#define ROWS_COMMON ROW_ANSWER, CLI_RUN_ROW_QUIET, CLI_RUN_ROW_HELP

static const struct opt new_table[] = {
    CLI_RUN_ROW_LANGUAGE,
    { "ttl", 0, "S", OPT_NUMBER, AT(ttl), "seconds without use until it ends; 1200" },
    { "life", 0, "S", OPT_NUMBER, AT(life), "seconds until it ends in any case; 86400" },
    { "undo-levels", 0, "N", OPT_NUMBER, AT(undo_levels), "states to keep for undo" },
    CLI_RUN_ROW_FILE,
    CLI_RUN_ROW_TIMEOUT,
    CLI_RUN_ROW_MEMORY,
    CLI_RUN_ROW_CPUS,
    CLI_RUN_ROW_DISK,
    CLI_RUN_ROW_PIDS,
    CLI_RUN_ROW_ENV,
    CLI_RUN_ROW_PROFILE,
    CLI_RUN_ROW_IMAGE,
    CLI_RUN_ROW_SEED,
    CLI_RUN_ROW_TOOLS,
    ROWS_COMMON,
};
static const struct opt run_table[] = {
    CLI_RUN_ROW_CODE,
    CLI_RUN_ROW_FILE,
    CLI_RUN_ROW_OUT,
    CLI_RUN_ROW_TIMEOUT,
    CLI_RUN_ROW_ENV,
    CLI_RUN_ROW_STDIN,
    CLI_RUN_ROWS_APPROVE,
    { "on-error", 0, "WHAT", OPT_TEXT, CLI_RUN_AT(on_error),
      "after an exception or timeout: keep the changes, or rollback" },
    { "names", 0, NULL, OPT_FLAG, CLI_RUN_AT(names), "show which names are new, changed or gone" },
    CLI_RUN_ROW_JSON,
    CLI_RUN_ROW_RAW,
    CLI_RUN_ROW_VERBOSE,
    CLI_RUN_ROW_QUIET,
    CLI_RUN_ROW_HELP,
};
static const struct opt put_table[] = {
    { "to", 0, "PATH", OPT_TEXT, AT(to), "its path there; a folder if it ends in a slash" },
    ROWS_COMMON,
};
static const struct opt get_table[] = {
    { "out", 'o', "FILE", OPT_TEXT, AT(file), "save it here; - writes it to standard output" },
    ROWS_COMMON,
};
static const struct opt undo_table[] = {
    { "to", 0, "NAME", OPT_TEXT, AT(to), "to this checkpoint instead" },
    ROWS_COMMON,
};
static const struct opt plain_table[] = { ROWS_COMMON };
static const size_t new_rows = array_len(new_table), run_rows = array_len(run_table),
                    put_rows = array_len(put_table), get_rows = array_len(get_table),
                    undo_rows = array_len(undo_table), plain_rows = array_len(plain_table);

const struct opt cli_session_options_table[] = { CLI_RUN_ROW_HELP };
const size_t cli_session_options_rows = array_len(cli_session_options_table);

#define PLAIN plain_table, &plain_rows

static const struct cli_command commands[CLI_SESSION_VERBS] = {
    [CLI_SESSION_NEW] = { "new", NULL, "make a session and print its id", new_table, &new_rows,
                          NULL, NULL },
    [CLI_SESSION_RUN] = { "run", NULL, "run a cell in it, as cupel run does", run_table,
                          &run_rows, "SCRIPT", NULL },
    [CLI_SESSION_LS] = { "ls", NULL, "list the sessions", PLAIN, NULL, NULL },
    [CLI_SESSION_INFO] = { "info", NULL, "show its state: names, protection, times", PLAIN, "ID",
                           NULL },
    [CLI_SESSION_PUT] = { "put", NULL, "copy files into its work directory", put_table, &put_rows,
                          "FILE", NULL },
    [CLI_SESSION_GET] = { "get", NULL, "copy a file out of it", get_table, &get_rows, "ID",
                          NULL },
    [CLI_SESSION_FILES] = { "files", NULL, "list its files", PLAIN, "ID", NULL },
    [CLI_SESSION_INTERRUPT] = { "interrupt", NULL, "interrupt the running cell; twice kills it",
                                PLAIN, "ID", NULL },
    [CLI_SESSION_CHECKPOINT] = { "checkpoint", NULL, "keep the current state under a name",
                                 PLAIN, "ID", NULL },
    [CLI_SESSION_UNDO] = { "undo", NULL, "undo the last cell, or go back to a checkpoint",
                           undo_table, &undo_rows, "ID", NULL },
    [CLI_SESSION_FORK] = { "fork", NULL, "make a second session from here and print its id",
                           PLAIN, "ID", NULL },
    [CLI_SESSION_RM] = { "rm", NULL, "end sessions", PLAIN, "ID", NULL },
};
const struct cli_commands cli_session_commands = { commands, CLI_SESSION_VERBS };

/* Operands for --help, and how many are needed and allowed beside the id. */
static const struct shape {
    const char *operands;
    bool id;
    size_t least, most;
    const char *missing; /* the missing operand */
} shapes[CLI_SESSION_VERBS] = {
    [CLI_SESSION_NEW] = { "", false, 0, 0, "" },
    [CLI_SESSION_RUN] = { " ID CODE | SCRIPT | - [ARGUMENT]...", true, 0, SIZE_MAX, "" },
    [CLI_SESSION_LS] = { "", false, 0, 0, "" },
    [CLI_SESSION_INFO] = { " ID", true, 0, 0, "" },
    [CLI_SESSION_PUT] = { " ID FILE...", true, 1, SIZE_MAX, "a file" },
    [CLI_SESSION_GET] = { " ID PATH", true, 1, 1, "the path of a file in the session" },
    [CLI_SESSION_FILES] = { " ID", true, 0, 0, "" },
    [CLI_SESSION_INTERRUPT] = { " ID", true, 0, 0, "" },
    [CLI_SESSION_CHECKPOINT] = { " ID NAME", true, 1, 1, "a name for the checkpoint" },
    [CLI_SESSION_UNDO] = { " ID", true, 0, 0, "" },
    [CLI_SESSION_FORK] = { " ID", true, 0, 0, "" },
    [CLI_SESSION_RM] = { " ID...", true, 0, SIZE_MAX, "" },
};

static const char *const notes[CLI_SESSION_VERBS] = {
    [CLI_SESSION_NEW] =
        "\nMemory, space, processes and processors are fixed for a session's life; the time\n"
        "limit is the default of its cells. If no engine runs, one is started in the\n"
        "background; it exits a minute after its last session.\n",
    [CLI_SESSION_RUN] =
        "\nOperands after the id, output and exit codes are those of cupel run.\n",
    [CLI_SESSION_PUT] = "\nA file may also be HOST:PATH, as with -f of cupel run.\n",
    [CLI_SESSION_GET] =
        "\nWithout -o the file is saved under its own name in the current folder.\n",
};

static void help_all(void)
{
    fputs("usage: cupel session COMMAND [OPTION]... [ID] [OPERAND]...\n"
          "\n"
          "Sessions keep variables, imports and files between runs, and survive crashes.\n"
          "\n",
          stdout);
    for (size_t i = 0; i < CLI_SESSION_VERBS; i++)
        printf("  %-11s %s\n", commands[i].name, commands[i].summary);
    fputs("\nOptions:\n", stdout);
    opt_print_help(cli_session_options_table, cli_session_options_rows, stdout);
    fputs("\ncupel session COMMAND --help shows a command's options. For example:\n"
          "  id=$(cupel session new)\n"
          "  cupel session run $id 'x = 6'\n"
          "  cupel session run $id 'x * 7'\n",
          stdout);
}

void cli_session_options_help(enum cli_session_verb verb)
{
    if (verb == CLI_SESSION_VERBS) {
        help_all();
        return;
    }
    const struct cli_command *command = &commands[verb];
    printf("usage: cupel session %s [OPTION]...%s\n\n%c%s.\n\nOptions:\n", command->name,
           shapes[verb].operands, command->summary[0] - 'a' + 'A', command->summary + 1);
    opt_print_help(command->options, *command->rows, stdout);
    fputs(notes[verb] ? notes[verb] : "", stdout);
}

static int check_operands(enum cli_session_verb verb, const struct cli_session_options *o,
                          struct err *err)
{
    const struct shape *shape = &shapes[verb];
    const char *name = commands[verb].name;
    const char *missing = shape->id && !o->id            ? "the id of a session"
                          : o->rest.count < shape->least ? shape->missing
                                                         : NULL;
    if (missing) {
        err_set(err, ERR_USAGE, "'cupel session %s' needs %s", name, missing);
        err_hint(err, "usage: cupel session %s%s; 'cupel session ls' lists ids", name,
                 shape->operands);
        return -1;
    }
    if (o->rest.count <= shape->most)
        return 0;
    return err_set(err, ERR_USAGE, "'cupel session %s' takes no further operand, but got '%.80s'",
                   name, o->rest.at[shape->most]);
}

static int check_whole(const char *name, const struct opt_number *number, double least,
                       struct err *err)
{
    double value = number->value;
    if (!number->given || (value >= least && value < 1e15 && value == (double)(long long)value))
        return 0;
    return err_set(err, ERR_USAGE, "option '--%s' takes a whole number from %.0f, not %g", name,
                   least, value);
}

static int check_run(struct cli_session_options *o, struct err *err)
{
    o->run.session = o->id;
    o->run.operands = o->rest;
    if (!o->run.code && o->rest.count == 0) {
        err_set(err, ERR_USAGE, "nothing to run: give code, a script or -");
        err_hint(err, "for example: cupel session run %.40s 'print(1+1)'", o->id);
        return -1;
    }
    return cli_run_options_check(&o->run, err);
}

int cli_session_options_parse(enum cli_session_verb verb, int argc, char **argv,
                              struct cli_session_options *out, struct err *err)
{
    const struct cli_command *command = &commands[verb];
    struct opt_operands *rest = &out->rest;
    if (opt_parse(command->options, *command->rows, argc, argv, out, rest, err) < 0)
        return -1;
    if (out->run.help)
        return 0;
    if (shapes[verb].id && rest->count > 0) {
        out->id = rest->at[0];
        rest->at++;
        rest->count--;
    }
    if (check_operands(verb, out, err) < 0 || check_whole("ttl", &out->ttl, 1, err) < 0 ||
        check_whole("life", &out->life, 1, err) < 0 ||
        check_whole("undo-levels", &out->undo_levels, 0, err) < 0)
        return -1;
    if (out->run.json && out->file && strcmp(out->file, "-") == 0)
        return err_set(err, ERR_USAGE, "standard output cannot be both the file and '--json'");
    return verb == CLI_SESSION_RUN ? check_run(out, err) : cli_run_options_check(&out->run, err);
}

void cli_session_options_done(struct cli_session_options *options)
{
    cli_run_options_done(&options->run);
}
