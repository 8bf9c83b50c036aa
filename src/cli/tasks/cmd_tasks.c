/* `cupel tasks`: a table of subcommands on the tasks in the state folder. Runs in the cli process.
 * The folder, files and models are opened as the caller, then rights are dropped, and only then the
 * database is opened: its texts are an attacker's. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "box/host/box.h"
#include "cli/cli.h"
#include "cli/tasks/tasks.h"
#include "cli/term/term.h"

static const struct {
    int (*open)(struct cli_tasks *tasks, struct err *err); /* as the caller */
    int (*go)(struct cli_tasks *tasks, struct err *err);
} verbs[CLI_TASKS_VERBS] = {
    [CLI_TASKS_LS] = { cli_tasks_look_open, cli_tasks_ls },
    [CLI_TASKS_SHOW] = { cli_tasks_look_open, cli_tasks_show },
    [CLI_TASKS_RESUME] = { cli_tasks_again_open, cli_tasks_resume },
    [CLI_TASKS_REPLAY] = { cli_tasks_again_open, cli_tasks_replay },
    [CLI_TASKS_EXPORT] = { cli_tasks_export_open, cli_tasks_export },
    [CLI_TASKS_RM] = { cli_tasks_look_open, cli_tasks_rm },
};

static int do_verb(struct cli_tasks *tasks, enum cli_tasks_verb verb, struct err *err)
{
    if (verbs[verb].open(tasks, err) < 0 || box_drop_door(err) < 0)
        return -1;
    return verbs[verb].go(tasks, err);
}

static int run_verb(enum cli_tasks_verb verb, int argc, char **argv)
{
    struct cli_tasks tasks = { .options = CLI_TASKS_OPTIONS_INIT,
                               .ask = CLI_ASK_INIT,
                               .steward = CLI_STEWARD_INIT };
    struct err err = ERR_INIT;
    int code = 0;
    int parsed = cli_tasks_options_parse(verb, argc, argv, &tasks.options, &err);
    const struct cli_run_options *run = &tasks.options.ask.run;
    bool live = verb == CLI_TASKS_RESUME && cli_term_style(STDERR_FILENO, CLI_DIM)[0];
    cli_term_set_quiet(run->quiet);
    cli_ask_draw_init(&tasks.ask.draw, STDERR_FILENO, run->json ? -1 : STDOUT_FILENO, run->quiet,
                      live);
    tasks.ask.draw.why = tasks.options.ask.why;
    tasks.ask.options = tasks.options.ask;
    if (parsed == 0 && run->help)
        cli_tasks_options_help(verb);
    else if (parsed < 0 || (code = do_verb(&tasks, verb, &err)) < 0)
        code = cli_term_refuse(&err, run->json);
    tasks.ask.options = CLI_ASK_OPTIONS_INIT; /* ours has them */
    cli_ask_done(&tasks.ask);
    cli_steward_close(&tasks.steward);
    free(tasks.file);
    cli_tasks_options_done(verb, &tasks.options);
    return code;
}

static const char *verb_name(const void *table, size_t i)
{
    return ((const struct cli_command *)table)[i].name;
}

int cli_cmd_tasks(int argc, char **argv)
{
    struct err err = ERR_INIT;
    if (argc > 0 && (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0)) {
        cli_tasks_options_help(CLI_TASKS_VERBS);
        return 0;
    }
    for (size_t i = 0; argc > 0 && i < cli_tasks_commands.count; i++)
        if (strcmp(argv[0], cli_tasks_commands.at[i].name) == 0)
            return run_verb((enum cli_tasks_verb)i, argc - 1, argv + 1);
    const char *near = argc > 0 ? opt_nearest(argv[0], cli_tasks_commands.count, verb_name,
                                              cli_tasks_commands.at)
                                : NULL;
    if (argc == 0)
        err_set(&err, ERR_USAGE, "'cupel tasks' needs a command");
    else
        err_set(&err, ERR_USAGE, "unknown command 'tasks %.80s'", argv[0]);
    if (near)
        err_hint(&err, "did you mean cupel tasks %s?", near);
    else
        err_hint(&err, "cupel tasks --help lists the commands");
    return cli_term_refuse(&err, /* json= */ false);
}
