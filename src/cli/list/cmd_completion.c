/* `cupel completion SHELL`: prints a shell's completion script. Runs in the cli process.
 * The scripts are built in; dev/completion makes them from the tables. */
#include "cli/list/cmd_completion.h"

#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/builtin.h"
#include "cli/cli.h"
#include "cli/term/term.h"

BUILTIN(script_bash, "completions/cupel.bash");
BUILTIN(script_zsh, "completions/_cupel");
BUILTIN(script_fish, "completions/cupel.fish");

static const struct {
    const char *name;
    const char *script;
    const char *place; /* where the shell looks for the script */
} shells[] = {
    { "bash", script_bash, "~/.local/share/bash-completion/completions/cupel" },
    { "zsh", script_zsh, "_cupel in a folder of $fpath" },
    { "fish", script_fish, "~/.config/fish/completions/cupel.fish" },
};

struct options {
    bool help;
};

const struct opt cli_completion_options_table[] = {
    { "help", 'h', NULL, OPT_FLAG, offsetof(struct options, help), "show this text" },
};
const size_t cli_completion_options_rows = array_len(cli_completion_options_table);

static const char *shell_name(const void *table, size_t i)
{
    (void)table;
    return shells[i].name;
}

static void print_help(void)
{
    fputs("usage: cupel completion SHELL\n"
          "\n"
          "Print a shell's completion script for cupel. make install puts all of them in place;\n"
          "by hand, write it to\n"
          "\n",
          stdout);
    for (size_t i = 0; i < array_len(shells); i++)
        printf("  %-5s  %s\n", shells[i].name, shells[i].place);
    fputs("\nOptions:\n", stdout);
    opt_print_help(cli_completion_options_table, cli_completion_options_rows, stdout);
}

static int refuse_shell(const char *name, struct err *err)
{
    const char *near = opt_nearest(name, array_len(shells), shell_name, shells);
    err_set(err, ERR_USAGE, "unknown shell '%.80s'", name);
    if (near)
        err_hint(err, "did you mean cupel completion %s?", near);
    else
        err_hint(err, "cupel completion --help lists the shells");
    return -1;
}

static int print_shell(const struct opt_operands *operands, struct err *err)
{
    if (operands->count == 0) {
        err_set(err, ERR_USAGE, "'cupel completion' needs the name of a shell");
        err_hint(err, "for example: cupel completion bash");
        return -1;
    }
    if (operands->count > 1)
        return err_set(err, ERR_USAGE, "'cupel completion' takes one shell, but got '%.80s' too",
                       operands->at[1]);
    for (size_t i = 0; i < array_len(shells); i++) {
        if (strcmp(shells[i].name, operands->at[0]) != 0)
            continue;
        fputs(shells[i].script, stdout);
        return 0;
    }
    return refuse_shell(operands->at[0], err);
}

int cli_cmd_completion(int argc, char **argv)
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
    if (print_shell(&operands, &err) < 0)
        return cli_term_refuse(&err, /* json= */ false);
    return 0;
}
