/* The table behind `cupel repl --help`, and the rules between its options. */
#include "cli/repl/repl_options.h"

#include <stdio.h>

#include "base/attr.h"

const struct opt cli_repl_options_table[] = {
    CLI_RUN_ROW_LANGUAGE, CLI_RUN_ROW_FILE,    CLI_RUN_ROWS_DIR,    CLI_RUN_ROW_OUT,
    CLI_RUN_ROW_TIMEOUT,  CLI_RUN_ROW_MEMORY,  CLI_RUN_ROW_CPUS,
    CLI_RUN_ROW_DISK,     CLI_RUN_ROW_PIDS,    CLI_RUN_ROW_ENV,
    CLI_RUN_ROW_PROFILE,  CLI_RUN_ROW_IMAGE,   CLI_RUN_ROW_SEED,
    CLI_RUN_ROW_TOOLS,    CLI_RUN_ROWS_SOURCES, CLI_RUN_ROWS_APPROVE,
    CLI_RUN_ROW_RAW,      CLI_RUN_ROW_VERBOSE, CLI_RUN_ROW_QUIET,
    CLI_RUN_ROW_HELP,
};
const size_t cli_repl_options_rows = array_len(cli_repl_options_table);

void cli_repl_options_help(void)
{
    fputs("usage: cupel repl [OPTION]... [ID]\n"
          "\n"
          "A prompt on a new session, which ends with it, or on the session ID.\n"
          "If no engine runs, it starts its own.\n"
          "\n"
          "A cell continues while a bracket, a string or a block is open; a block of Python\n"
          "ends with an empty line. A paste is one cell. Tab completes names. Ctrl-C\n"
          "clears the line, or interrupts the running cell, and kills it the second time.\n"
          "Ctrl-D, exit and quit leave. :help lists the commands. Pictures are saved in the\n"
          "current folder, under new names; with -o they and all files that a cell makes are\n"
          "saved in that folder.\n"
          "\n"
          "Options:\n",
          stdout);
    opt_print_help(cli_repl_options_table, cli_repl_options_rows, stdout);
    fputs("\nAt a terminal the profile is 'analysis', and a cell may run for 1 hour at most.\n"
          "\nWithout a terminal, cells are read from standard input in the same way, and the exit\n"
          "code is that of the last one.\n",
          stdout);
}

/* An existing session has its language and limits already. */
static int check_named(const struct cli_run_options *o, struct err *err)
{
    const struct {
        const char *name;
        bool given;
    } fixed[] = {
        { "language", o->language != NULL }, { "memory", o->memory.given },
        { "cpus", o->cpus.given },           { "disk", o->disk.given },
        { "pids", o->pids.given },           { "profile", o->profile != NULL },
        { "image", o->image != NULL },       { "file", o->files.count > 0 },
        { "dir", o->dir != NULL },
        { "env", o->env.count > 0 },         { "seed", o->seed.given },
        { "tools", o->tools.count > 0 },     { "tools-dir", o->tools_dir != NULL },
        { "mcp", o->mcp != NULL },           { "secrets", o->secrets != NULL },
    };
    for (size_t i = 0; i < array_len(fixed); i++) {
        if (!fixed[i].given)
            continue;
        err_set(err, ERR_USAGE, "option '--%s' cannot be set for an existing session",
                fixed[i].name);
        err_hint(err, "leave out the option or the id");
        return -1;
    }
    return 0;
}

int cli_repl_options_parse(int argc, char **argv, struct cli_run_options *out, struct err *err)
{
    struct opt_operands operands;
    if (opt_parse(cli_repl_options_table, cli_repl_options_rows, argc, argv, out, &operands, err) <
        0)
        return -1;
    if (out->help)
        return 0;
    if (out->dir && cli_run_options_engine(out, (char *[CLI_RUN_ENGINE_OPTIONS]){ NULL }))
        return err_set(err, ERR_USAGE, "options '--dir' and those of tools cannot be combined");
    if (operands.count > 1)
        return err_set(err, ERR_USAGE, "'cupel repl' takes one id, but got '%.80s' too",
                       operands.at[1]);
    if (operands.count > 0) {
        out->session = operands.at[0];
        return check_named(out, err) < 0 ? -1 : cli_run_options_check(out, err);
    }
    return cli_run_options_check(out, err);
}
