/* `cupel runs`: a table of subcommands on the records in the state folder. No engine is needed.
 * Runs in the cli process. The folder and the caller's files are opened as the caller, then rights
 * are dropped, and only then the database is opened: its texts are an attacker's. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "box/host/box.h"
#include "cli/cli.h"
#include "cli/link/state_files.h"
#include "cli/runs/runs.h"
#include "cli/term/term.h"
#include "engine/engine.h"

#define LOG_MAX (16 << 20)

static const struct {
    int (*open)(struct cli_runs *runs, struct err *err); /* as the caller; NULL: nothing to open */
    int (*go)(struct cli_runs *runs, struct err *err);
} verbs[CLI_RUNS_VERBS] = {
    [CLI_RUNS_LS] = { NULL, cli_runs_ls },
    [CLI_RUNS_SHOW] = { NULL, cli_runs_show },
    [CLI_RUNS_LOG] = { NULL, cli_runs_log },
    [CLI_RUNS_ARTIFACTS] = { cli_runs_artifacts_open, cli_runs_artifacts },
    [CLI_RUNS_STATS] = { NULL, cli_runs_stats },
    [CLI_RUNS_EXPORT] = { cli_runs_export_open, cli_runs_export },
    [CLI_RUNS_REPLAY] = { cli_runs_replay_open, cli_runs_replay },
    [CLI_RUNS_DIFF] = { NULL, cli_runs_diff },
    [CLI_RUNS_PIN] = { NULL, cli_runs_pin },
    [CLI_RUNS_UNPIN] = { NULL, cli_runs_unpin },
    [CLI_RUNS_RM] = { NULL, cli_runs_rm },
};

static int open_state(struct cli_runs *runs, struct err *err)
{
    bool named;
    if (!engine_state_path(runs->path, sizeof runs->path, &named)) {
        err_set(err, ERR_HOST, "there is no state folder for records: HOME is not set");
        err_hint(err, "set CUPEL_STATE to the folder of the engine");
        return -1;
    }
    runs->state_dir = cli_state_open();
    if (runs->state_dir >= 0)
        return 0;
    err_sys(err, "open the state folder '%.200s'", runs->path);
    err_hint(err, "make it writable for this user, or set CUPEL_STATE to another folder");
    return -1;
}

/* No database is an answer, not an error. */
static int open_records(struct cli_runs *runs, struct err *err)
{
    const struct db_options options = { .state_dir = runs->state_dir, .only_if_there = true };
    runs->db = db_open(&options, err);
    if (runs->db)
        return 0;
    if (err->kind == ERR_ABSENT) {
        *err = ERR_INIT;
        return 0;
    }
    if (err->kind == ERR_HOST && (err->sys == EACCES || err->sys == EPERM))
        err_hint(err, "the folder must belong to the uid of the service: 'chown %u %.200s'",
                 (unsigned)geteuid(), runs->path);
    return -1;
}

/* Without an engine, opening a long log of writes takes long, and nobody else shortens it. The
 * first call moves the pages while others write; the second then has little left to move. */
static void shorten_log(const struct cli_runs *runs)
{
    struct stat st;
    struct err ignored = ERR_INIT;
    if (runs->db && fstatat(runs->state_dir, DB_FILE "-wal", &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        st.st_size > LOG_MAX && db_checkpoint(runs->db, /* wait= */ false, &ignored) == 0)
        db_checkpoint(runs->db, /* wait= */ true, &ignored);
}

static int do_verb(struct cli_runs *runs, enum cli_runs_verb verb, struct err *err)
{
    if (open_state(runs, err) < 0 || (verbs[verb].open && verbs[verb].open(runs, err) < 0) ||
        box_drop_door(err) < 0 || open_records(runs, err) < 0)
        return -1;
    int code = verbs[verb].go(runs, err);
    shorten_log(runs);
    return code;
}

static int run_verb(enum cli_runs_verb verb, int argc, char **argv)
{
    struct cli_runs runs = { .state_dir = -1, .steward = CLI_STEWARD_INIT,
                             .remote = CLI_REMOTE_INIT };
    struct err err = ERR_INIT;
    int code = 0;
    int parsed = cli_runs_options_parse(verb, argc, argv, &runs.options, &err);
    cli_term_set_quiet(runs.options.quiet);
    if (parsed == 0 && runs.options.help)
        cli_runs_options_help(verb);
    else if (parsed < 0 || (code = do_verb(&runs, verb, &err)) < 0)
        code = cli_term_refuse(&err, runs.options.json);
    cli_steward_close(&runs.steward);
    cli_remote_close(&runs.remote);
    json_decref(runs.secrets);
    db_close(runs.db);
    own_close_fd(&runs.state_dir);
    cli_runs_options_done(verb, &runs.options);
    return code;
}

static const char *verb_name(const void *table, size_t i)
{
    return ((const struct cli_command *)table)[i].name;
}

int cli_cmd_runs(int argc, char **argv)
{
    struct err err = ERR_INIT;
    if (argc > 0 && (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0)) {
        cli_runs_options_help(CLI_RUNS_VERBS);
        return 0;
    }
    for (size_t i = 0; argc > 0 && i < cli_runs_commands.count; i++)
        if (strcmp(argv[0], cli_runs_commands.at[i].name) == 0)
            return run_verb((enum cli_runs_verb)i, argc - 1, argv + 1);
    const char *near = argc > 0 ? opt_nearest(argv[0], cli_runs_commands.count, verb_name,
                                              cli_runs_commands.at)
                                : NULL;
    if (argc == 0)
        err_set(&err, ERR_USAGE, "'cupel runs' needs a command");
    else
        err_set(&err, ERR_USAGE, "unknown command 'runs %.80s'", argv[0]);
    if (near)
        err_hint(&err, "did you mean cupel runs %s?", near);
    else
        err_hint(&err, "cupel runs --help lists the commands");
    return cli_term_refuse(&err, /* json= */ false);
}
