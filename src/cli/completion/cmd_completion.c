/* `cupel completion SHELL`: the script that makes a shell complete our command
 * line. The cli process; reads argv and the tables, nothing else. */
#include "cli/completion/cmd_completion.h"

#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "cli/completion/completion.h"
#include "cli/term/term.h"

struct options {
    bool help;
};

const struct opt cli_completion_options_table[] = {
    { "help", 'h', NULL, OPT_FLAG, offsetof(struct options, help), "show this text" },
};
const size_t cli_completion_options_rows = array_len(cli_completion_options_table);

static const char *shell_name(const void *table, size_t i)
{
    return ((const struct cli_completion_shell *)table)[i].name;
}

static void print_help(void)
{
    fputs("usage: cupel completion SHELL\n"
          "\n"
          "Print the script that makes a shell complete the command line of cupel. make install\n"
          "puts all of them in place; by hand, write it to\n"
          "\n",
          stdout);
    for (size_t i = 0; i < cli_completion_shell_count; i++)
        printf("  %-5s  %s\n", cli_completion_shells[i].name, cli_completion_shells[i].place);
    fputs("\nOptions:\n", stdout);
    opt_print_help(cli_completion_options_table, cli_completion_options_rows, stdout);
}

static int refuse_shell(const char *name, struct err *err)
{
    const char *near = opt_nearest(name, cli_completion_shell_count, shell_name,
                                   cli_completion_shells);
    err_set(err, ERR_USAGE, "unknown shell '%.80s'", name);
    if (near)
        err_hint(err, "did you mean cupel completion %s?", near);
    else
        err_hint(err, "cupel completion --help lists the shells");
    return -1;
}

static int print_shell(const struct cli_commands *commands, const struct opt_operands *operands,
                       struct err *err)
{
    if (operands->count == 0) {
        err_set(err, ERR_USAGE, "'cupel completion' needs the name of a shell");
        err_hint(err, "for example: cupel completion bash");
        return -1;
    }
    if (operands->count > 1)
        return err_set(err, ERR_USAGE, "'cupel completion' takes one shell, but got '%.80s' too",
                       operands->at[1]);
    for (size_t i = 0; i < cli_completion_shell_count; i++) {
        if (strcmp(cli_completion_shells[i].name, operands->at[0]) != 0)
            continue;
        cli_completion_shells[i].print(commands, stdout);
        return 0;
    }
    return refuse_shell(operands->at[0], err);
}

int cli_cmd_completion_of(const struct cli_commands *commands, int argc, char **argv)
{
    struct options options = { 0 };
    struct opt_operands operands;
    struct err err = ERR_INIT;
    if (opt_parse(cli_completion_options_table, cli_completion_options_rows, argc, argv, &options,
                  &operands, &err) < 0)
        return cli_term_refuse(&err, /* json= */ false);
    if (options.help) {
        print_help();
        return 0;
    }
    if (print_shell(commands, &operands, &err) < 0)
        return cli_term_refuse(&err, /* json= */ false);
    return 0;
}
