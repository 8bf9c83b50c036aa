/* The tables behind `cupel tools VERB --help`. Uses argv alone. */
#include "cli/tools/tools_options.h"

#include <stdio.h>

#include "base/attr.h"

#define AT(member) offsetof(struct cli_tools_options, member)
#define ROWS_COMMON                                                                               \
    { "tools-dir", 0, "DIR", OPT_TEXT, AT(folder), "tool files of this folder" },                 \
        { "mcp", 0, "FILE", OPT_TEXT, AT(mcp), "and of the MCP servers in this file" },           \
        { "secrets", 0, "FILE", OPT_TEXT, AT(secrets), "secrets for tools, from this file" },     \
        { "json", 0, NULL, OPT_FLAG, AT(json), "print the answer as JSON and nothing else" },     \
        { "quiet", 'q', NULL, OPT_FLAG, AT(quiet), "no notes on standard error" },                \
        { "help", 'h', NULL, OPT_FLAG, AT(help), "show this text" }

static const struct opt call_table[] = {
    { "yes", 'y', NULL, OPT_FLAG, AT(yes), "run it although its policy says to ask" },
    { "timeout", 't', "S", OPT_NUMBER, AT(timeout_s), "end it after so long; the tool's own" },
    ROWS_COMMON,
};
static const struct opt plain_table[] = { ROWS_COMMON };
static const size_t call_rows = array_len(call_table), plain_rows = array_len(plain_table);

const struct opt cli_tools_options_table[] = {
    { "help", 'h', NULL, OPT_FLAG, AT(help), "show this text" },
};
const size_t cli_tools_options_rows = array_len(cli_tools_options_table);

static const struct cli_command commands[CLI_TOOLS_VERBS] = {
    [CLI_TOOLS_LS] = { "ls", NULL, "list the tools", plain_table, &plain_rows, NULL, NULL },
    [CLI_TOOLS_SHOW] = { "show", NULL, "show a tool's signature, schema and policy", plain_table,
                         &plain_rows, "NAME", NULL },
    [CLI_TOOLS_CALL] = { "call", NULL, "call a tool from the terminal", call_table, &call_rows,
                         "NAME", NULL },
    [CLI_TOOLS_CHECK] = { "check", NULL, "say which files are wrong, and why", plain_table,
                          &plain_rows, NULL, NULL },
};
const struct cli_commands cli_tools_commands = { commands, CLI_TOOLS_VERBS };

static const struct shape {
    const char *operands;
    size_t least, most;
} shapes[CLI_TOOLS_VERBS] = {
    [CLI_TOOLS_LS] = { "", 0, 0 },
    [CLI_TOOLS_SHOW] = { " NAME", 1, 1 },
    [CLI_TOOLS_CALL] = { " NAME [JSON]", 1, 2 },
    [CLI_TOOLS_CHECK] = { "", 0, 0 },
};

static const char *const notes[CLI_TOOLS_VERBS] = {
    [CLI_TOOLS_CALL] = "\nThe exit code is 1 where the tool fails, and 124 where it is late. For "
                       "example:\n"
                       "  cupel tools call db.query '{\"sql\": \"SELECT 1\"}'\n",
    [CLI_TOOLS_CHECK] = "\nThe exit code is 1 where a file is wrong.\n",
};

static void help_all(void)
{
    fputs("usage: cupel tools COMMAND [OPTION]... [NAME]\n"
          "\n"
          "A tool is a program of this host that code in a box may call. Each has a JSON file.\n"
          "\n",
          stdout);
    for (size_t i = 0; i < CLI_TOOLS_VERBS; i++)
        printf("  %-11s %s\n", commands[i].name, commands[i].summary);
    fputs("\nOptions:\n", stdout);
    opt_print_help(cli_tools_options_table, cli_tools_options_rows, stdout);
    fputs("\ncupel tools COMMAND --help shows a command's options. For example:\n"
          "  cupel tools ls\n"
          "  cupel tools check\n"
          "  cupel tools call search '{\"q\": \"cupel\"}'\n",
          stdout);
}

void cli_tools_options_help(enum cli_tools_verb verb)
{
    if (verb == CLI_TOOLS_VERBS) {
        help_all();
        return;
    }
    const struct cli_command *command = &commands[verb];
    printf("usage: cupel tools %s [OPTION]...%s\n\n%c%s.\n\nOptions:\n", command->name,
           shapes[verb].operands, command->summary[0] - 'a' + 'A', command->summary + 1);
    opt_print_help(command->options, *command->rows, stdout);
    fputs(notes[verb] ? notes[verb] : "", stdout);
}

int cli_tools_options_parse(enum cli_tools_verb verb, int argc, char **argv,
                            struct cli_tools_options *out, struct err *err)
{
    const struct cli_command *command = &commands[verb];
    const struct shape *shape = &shapes[verb];
    const struct opt_number *timeout = &out->timeout_s;
    if (opt_parse(command->options, *command->rows, argc, argv, out, &out->operands, err) < 0)
        return -1;
    if (out->help)
        return 0;
    if (out->operands.count < shape->least) {
        err_set(err, ERR_USAGE, "'cupel tools %s' needs the name of a tool", command->name);
        err_hint(err, "usage: cupel tools %s%s; 'cupel tools ls' lists them", command->name,
                 shape->operands);
        return -1;
    }
    if (out->operands.count > shape->most)
        return err_set(err, ERR_USAGE, "'cupel tools %s' takes no further operand, but got '%.80s'",
                       command->name, out->operands.at[shape->most]);
    if (timeout->given && !(timeout->value >= 0.01 && timeout->value <= 3600))
        return err_input(err, "timeout", NULL, "0.01 to 3600",
                         "option '--timeout' is a number of seconds, 0.01 to 3600");
    return 0;
}

void cli_tools_options_done(enum cli_tools_verb verb, struct cli_tools_options *options)
{
    opt_done(commands[verb].options, *commands[verb].rows, options);
}
