/* `cupel mcp`: cupel for clients of the Model Context Protocol, on standard input and output. Runs
 * in the cli process. */
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "cli/mcp/mcp_options.h"
#include "cli/term/term.h"

#define AT(member) offsetof(struct cli_mcp_options, member)

const struct opt cli_mcp_options_table[] = {
    { "timeout", 0, "SECONDS", OPT_NUMBER, AT(timeout),
      "time limit of code whose call names none; default 30" },
    { "quiet", 'q', NULL, OPT_FLAG, AT(quiet), "no notes on standard error" },
    { "help", 'h', NULL, OPT_FLAG, AT(help), "show this text" },
};
const size_t cli_mcp_options_rows = array_len(cli_mcp_options_table);

static void print_help(void)
{
    fputs("usage: cupel mcp [OPTION]...\n"
          "       cupel mcp config CLIENT [OPTION]...\n"
          "\n"
          "Speak the Model Context Protocol on standard input and output, until the input ends: a\n"
          "client such as Claude Code or an editor starts it. The engine is the one that runs, or\n"
          "its own.\n"
          "\n"
          "Commands:\n"
          "  config  what to put into a client's configuration\n"
          "\n"
          "Options:\n",
          stdout);
    opt_print_help(cli_mcp_options_table, cli_mcp_options_rows, stdout);
}

static int check(const struct cli_mcp_options *options, const struct opt_operands *operands,
                 struct err *err)
{
    if (operands->count > 0) {
        err_set(err, ERR_USAGE, "'cupel mcp' takes no operand, but got '%.80s'", operands->at[0]);
        err_hint(err, "cupel mcp config CLIENT shows what to tell a client");
        return -1;
    }
    if (options->timeout.given && (options->timeout.value < 0.001 || options->timeout.value > 3600))
        return err_set(err, ERR_USAGE, "option '--timeout' is 0.001 to 3600 seconds, not %g",
                       options->timeout.value);
    return 0;
}

int cli_cmd_mcp(int argc, char **argv)
{
    struct cli_mcp_options options = { 0 };
    struct opt_operands operands;
    struct err err = ERR_INIT;
    if (argc > 0 && strcmp(argv[0], "config") == 0)
        return cli_mcp_config(argc - 1, argv + 1);
    if (opt_parse(cli_mcp_options_table, cli_mcp_options_rows, argc, argv, &options, &operands,
                  &err) < 0)
        return cli_term_refuse(&err, /* json= */ false);
    cli_term_set_quiet(options.quiet);
    if (options.help) {
        print_help();
        return 0;
    }
    if (check(&options, &operands, &err) < 0)
        return cli_term_refuse(&err, /* json= */ false);
    return cli_mcp_stdio(&options);
}
