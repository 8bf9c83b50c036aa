/* Options of the listing commands. Uses argv alone. */
#include "cli/list/list_options.h"

#include <stddef.h>
#include <stdio.h>

#include "base/opt.h"
#include "cli/term/term.h"

const struct opt cli_list_options_table[] = {
    { "json", 0, NULL, OPT_FLAG, offsetof(struct cli_list_options, json), "print JSON" },
    { "quiet", 'q', NULL, OPT_FLAG, offsetof(struct cli_list_options, quiet),
      "no notes on standard error" },
    { "help", 'h', NULL, OPT_FLAG, offsetof(struct cli_list_options, help), "show this text" },
};
const size_t cli_list_options_rows = array_len(cli_list_options_table);

int cli_list_options_parse(int argc, char **argv, const char *usage, const char *about,
                           struct cli_list_options *out, struct err *err)
{
    struct opt_operands operands;
    if (opt_parse(cli_list_options_table, cli_list_options_rows, argc, argv, out, &operands, err) <
        0)
        return -1;
    cli_term_set_quiet(out->quiet);
    if (out->help) {
        printf("usage: %s [OPTION]...\n\n%s\n\nOptions:\n", usage, about);
        opt_print_help(cli_list_options_table, cli_list_options_rows, stdout);
        return 0;
    }
    if (operands.count > 0)
        return err_set(err, ERR_USAGE, "'%s' takes no operand, but got '%.80s'", usage,
                       operands.at[0]);
    return 0;
}
