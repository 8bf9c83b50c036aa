/* The table of commands, and the two commands that show it. Runs in the cli process.
 * dev/completion makes the scripts for shells from the same rows. */
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/err.h"
#include "cli/ask/ask_options.h"
#include "cli/cli.h"
#include "cli/config/config_options.h"
#include "cli/exec/exec_options.h"
#include "cli/dir/dir_options.h"
#include "cli/list/cmd_completion.h"
#include "cli/list/list_options.h"
#include "cli/list/models_options.h"
#include "cli/mcp/mcp_options.h"
#include "cli/repl/repl_options.h"
#include "cli/run/run_options.h"
#include "cli/runs/runs_options.h"
#include "cli/serve/serve_options.h"
#include "cli/session/session_options.h"
#include "cli/tasks/tasks_options.h"
#include "cli/term/term.h"
#include "cli/token/token_options.h"
#include "cli/tools/tools_options.h"

#define LIST cli_list_options_table, &cli_list_options_rows

static const struct cli_command commands[] = {
    { "run", cli_cmd_run, "run code in a box", cli_run_options_table, &cli_run_options_rows,
      "SCRIPT", NULL },
    { "exec", cli_cmd_exec, "run a command in a box, with a terminal", cli_exec_options_table,
      &cli_exec_options_rows, "COMMAND", NULL },
    { "diff", cli_cmd_diff, "what a run with --dir changed in a folder", cli_diff_options_table,
      &cli_diff_options_rows, "RUN", NULL },
    { "apply", cli_cmd_apply, "bring those changes into the folder", cli_apply_options_table,
      &cli_apply_options_rows, "RUN", NULL },
    { "ask", cli_cmd_ask, "answer a question by code that is run and checked",
      cli_ask_options_table, &cli_ask_options_rows, "QUESTION", NULL },
    { "chat", cli_cmd_chat, "questions one after another about the same files",
      cli_chat_options_table, &cli_chat_options_rows, "FILE", NULL },
    { "tasks", cli_cmd_tasks, "recorded tasks: show, resume, replay, export",
      cli_tasks_options_table, &cli_tasks_options_rows, "VERB", &cli_tasks_commands },
    { "session", cli_cmd_session, "runs that share variables, imports and files",
      cli_session_options_table, &cli_session_options_rows, "VERB", &cli_session_commands },
    { "repl", cli_cmd_repl, "a prompt on a session", cli_repl_options_table,
      &cli_repl_options_rows, "ID", NULL },
    { "runs", cli_cmd_runs, "the record of runs: search, show, export", cli_runs_options_table,
      &cli_runs_options_rows, "VERB", &cli_runs_commands },
    { "serve", cli_cmd_serve, "keep an engine ready, so that runs start at once",
      cli_serve_options_table, &cli_serve_options_rows, NULL, NULL },
    { "mcp", cli_cmd_mcp, "tools for MCP clients, on standard input and output",
      cli_mcp_options_table, &cli_mcp_options_rows, "VERB", &cli_mcp_commands },
    { "config", cli_cmd_config, "the configuration, and where each value came from",
      cli_config_options_table, &cli_config_options_rows, "KEY", NULL },
    { "token", cli_cmd_token, "tokens for the HTTP API of cupel serve", cli_token_options_table,
      &cli_token_options_rows, "VERB", &cli_token_commands },
    { "tools", cli_cmd_tools, "programs that code may call: list, check, try",
      cli_tools_options_table, &cli_tools_options_rows, "VERB", &cli_tools_commands },
    { "models", cli_cmd_models, "models for cupel ask", cli_models_options_table,
      &cli_models_options_rows, NULL, NULL },
    { "languages", cli_cmd_languages, "languages, their versions and packages", LIST, NULL, NULL },
    { "images", cli_cmd_images, "what code can run in: list, show, verify, remove", LIST,
      "VERB", &cli_images_commands },
    { "doctor", cli_cmd_doctor, "faults of this host, with a fix for each", LIST, NULL, NULL },
    { "completion", cli_cmd_completion, "completion script for a shell",
      cli_completion_options_table, &cli_completion_options_rows, "SHELL", NULL },
    { "version", cli_cmd_version, "print the version of cupel", NULL, NULL, NULL, NULL },
    { "help", cli_cmd_help, "show this text, or a command's: cupel help run", NULL, NULL, "COMMAND",
      NULL },
};

const struct cli_commands cli_all_commands = { commands, array_len(commands) };

/* Other spellings that people try. */
static const struct {
    const char *spelling, *name;
} spellings[] = {
    { "--version", "version" },
    { "-V", "version" },
    { "--help", "help" },
    { "-h", "help" },
};

const struct cli_command *cli_find_command(const char *name)
{
    for (size_t i = 0; i < array_len(spellings); i++)
        if (strcmp(name, spellings[i].spelling) == 0)
            name = spellings[i].name;
    for (size_t i = 0; i < array_len(commands); i++)
        if (strcmp(name, commands[i].name) == 0)
            return &commands[i];
    return NULL;
}

static const char *command_name(const void *table, size_t i)
{
    return ((const struct cli_command *)table)[i].name;
}

int cli_refuse_command(const char *name)
{
    struct err err = ERR_INIT;
    const char *near = opt_nearest(name, array_len(commands), command_name, commands);
    err_set(&err, ERR_USAGE, "unknown command '%.80s'", name);
    if (near)
        err_hint(&err, "did you mean cupel %s?", near);
    else
        err_hint(&err, "cupel help lists the commands; code is run by cupel run 'CODE'");
    return cli_term_refuse(&err, /* json= */ false);
}

void cli_print_overview(FILE *to)
{
    fputs("usage: cupel COMMAND [OPTION]...\n\nRun untrusted code in a box it cannot leave.\n\n",
          to);
    for (size_t i = 0; i < array_len(commands); i++)
        fprintf(to, "  %-11s %s\n", commands[i].name, commands[i].summary);
    fputs("\ncupel COMMAND --help shows a command's options. For example:\n"
          "  cupel run 'print(1+1)'\n"
          "  cupel run -f sales.csv -o out report.py\n"
          "  cupel ask 'Which customer spent most?' sales.csv\n",
          to);
}

int cli_cmd_help(int argc, char **argv)
{
    if (argc == 0) {
        cli_print_overview(stdout);
        return 0;
    }
    const struct cli_command *command = cli_find_command(argv[0]);
    if (!command)
        return cli_refuse_command(argv[0]);
    if (command->run == cli_cmd_help) {
        cli_print_overview(stdout);
        return 0;
    }
    char help[] = "--help";
    char *words[] = { argc > 1 && command->subs ? argv[1] : help, help, NULL };
    return command->run(argc > 1 && command->subs ? 2 : 1, words);
}

int cli_cmd_version(int argc, char **argv)
{
    if (argc > 0 && strcmp(argv[0], "--help") == 0) {
        puts("usage: cupel version\n\nPrint the version of cupel.");
        return 0;
    }
    if (argc > 0) {
        struct err err = ERR_INIT;
        err_set(&err, ERR_USAGE, "'cupel version' takes no operand, but got '%.80s'", argv[0]);
        return cli_term_refuse(&err, /* json= */ false);
    }
    puts("cupel " CUPEL_VERSION);
    return 0;
}
