/* The table behind `cupel exec --help`. Uses argv alone, before any file is opened. */
#include "cli/exec/exec_options.h"

#include <stdio.h>
#include <string.h>

#include "base/attr.h"

#define TIMEOUT_LEAST_S 0.01

const struct opt cli_exec_options_table[] = {
    CLI_RUN_ROWS_DIR,
    CLI_RUN_ROW_VENV,
    CLI_RUN_ROW_IMAGE,
    { "net", 0, "none", OPT_TEXT, offsetof(struct cli_exec_options, net),
      "the network: none, which is the default" },
    CLI_RUN_ROW_FILES,
    CLI_RUN_ROW_ENV,
    { "timeout", 't', "S", OPT_NUMBER, CLI_RUN_AT(timeout), "wall-clock seconds; default: none" },
    CLI_RUN_ROW_MEMORY,
    CLI_RUN_ROW_CPUS,
    CLI_RUN_ROW_DISK,
    CLI_RUN_ROW_PIDS,
    { "profile", 0, "NAME", OPT_TEXT, CLI_RUN_AT(profile),
      "defaults: analysis (2G of memory), or baseline" },
    CLI_RUN_ROW_QUIET,
    CLI_RUN_ROW_HELP,
};
const size_t cli_exec_options_rows = array_len(cli_exec_options_table);

void cli_exec_options_help(void)
{
    fputs("usage: cupel exec [OPTION]... COMMAND [ARGUMENT]...\n"
          "\n"
          "Run any command in a box it cannot leave, with a terminal if standard input and\n"
          "output are one: an editor, a build, a shell.\n"
          "\n"
          "The first word that is no option is the command; all that follows is its own.\n"
          "Standard input goes to it as it comes, and so do keys such as Ctrl-C. Its files are\n"
          "gone when it ends, but for what it changed in a folder of yours (--dir).\n"
          "\n"
          "Options:\n",
          stdout);
    opt_print_help(cli_exec_options_table, cli_exec_options_rows, stdout);
    fputs("\n"
          "The exit code is the command's own; 127 not found, 126 not executable or a forbidden\n"
          "call, 128+N ended by signal N, 124 time limit, 137 memory limit, 2 refused, 125 cupel\n"
          "failed.\n",
          stdout);
}

int64_t cli_exec_options_timeout_ms(const struct cli_exec_options *options)
{
    const struct opt_number *given = &options->run.timeout;
    return given->given ? (int64_t)(given->value * 1000 + 0.5) : 0;
}

static int check_timeout(const struct opt_number *given, struct err *err)
{
    const double most = (double)(REQUEST_COMMAND_MS / 1000);
    char value[32], bound[48];
    if (!given->given || (given->value >= TIMEOUT_LEAST_S && given->value <= most))
        return 0;
    snprintf(value, sizeof value, "%.12g", given->value);
    snprintf(bound, sizeof bound, "%g to %.0f seconds", TIMEOUT_LEAST_S, most);
    err_input(err, "limits.timeout_s", value, bound, "option '--timeout' takes %s, not %s", bound,
              value);
    err_hint(err, "leave it out: the command then ends when it ends");
    return -1;
}

static int check_net(const char *net, struct err *err)
{
    if (!net || strcmp(net, "none") == 0)
        return 0;
    err_input(err, "network", net, "none", "option '--net' takes none, not '%.80s'", net);
    err_hint(err, "a box has no network; bring what the command needs as files (-f)");
    return -1;
}

int cli_exec_options_parse(int argc, char **argv, struct cli_exec_options *out, struct err *err)
{
    struct cli_run_options *run = &out->run;
    if (opt_parse_command(cli_exec_options_table, cli_exec_options_rows, argc, argv, out,
                          &run->operands, err) < 0)
        return -1;
    if (run->help)
        return 0;
    if (run->operands.count == 0) {
        err_set(err, ERR_USAGE, "nothing to run: give a command");
        err_hint(err, "for example: cupel exec bash");
        return -1;
    }
    if (check_net(out->net, err) < 0 || check_timeout(&run->timeout, err) < 0)
        return -1;
    return cli_run_options_check(run, err);
}

void cli_exec_options_done(struct cli_exec_options *options)
{
    opt_done(cli_exec_options_table, cli_exec_options_rows, options);
}
