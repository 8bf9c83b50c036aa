/* The commands. Each gets the arguments after its name and returns the program's exit code. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stddef.h>
#include <stdio.h>

#include "base/opt.h"

/* One command. Its row in src/cli/commands.c starts it, lists it in the overview,
 * and gives the completions their words. */
struct cli_commands;
struct cli_command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
    const struct opt *options; /* NULL: none */
    const size_t *rows;        /* number of options */
    const char *operand;       /* the first one's name in --help; NULL: takes none */
    const struct cli_commands *subs; /* its subcommands; NULL: none */
};

struct cli_commands {
    const struct cli_command *at;
    size_t count;
};
extern const struct cli_commands cli_all_commands;
extern const struct cli_commands cli_images_commands;
/* By name or by another spelling (--help); NULL: there is none. */
const struct cli_command *cli_find_command(const char *name);
int cli_refuse_command(const char *name);
void cli_print_overview(FILE *to);

int cli_cmd_run(int argc, char **argv);
int cli_cmd_exec(int argc, char **argv);
int cli_cmd_diff(int argc, char **argv);
int cli_cmd_apply(int argc, char **argv);
int cli_cmd_ask(int argc, char **argv);
int cli_cmd_chat(int argc, char **argv);
int cli_cmd_tasks(int argc, char **argv);
int cli_cmd_session(int argc, char **argv);
int cli_cmd_repl(int argc, char **argv);
int cli_cmd_runs(int argc, char **argv);
int cli_cmd_serve(int argc, char **argv);
int cli_cmd_mcp(int argc, char **argv);
int cli_cmd_config(int argc, char **argv);
int cli_cmd_token(int argc, char **argv);
int cli_cmd_tools(int argc, char **argv);
int cli_cmd_models(int argc, char **argv);
int cli_cmd_languages(int argc, char **argv);
int cli_cmd_images(int argc, char **argv);
int cli_cmd_doctor(int argc, char **argv);
int cli_cmd_completion(int argc, char **argv);
int cli_cmd_version(int argc, char **argv);
int cli_cmd_help(int argc, char **argv);

#endif
