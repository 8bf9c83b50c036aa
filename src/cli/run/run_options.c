/* The table behind `cupel run --help`, and the rules between its options. Uses argv alone, before
 * any file is opened. */
#include "cli/run/run_options.h"

#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/str.h"
#include "cli/approve/approve.h"

const struct opt cli_run_options_table[] = {
    CLI_RUN_ROW_LANGUAGE, CLI_RUN_ROW_CODE,    CLI_RUN_ROW_FILES,
    CLI_RUN_ROWS_DIR,     CLI_RUN_ROW_VENV,    CLI_RUN_ROW_OUT,
    CLI_RUN_ROW_TIMEOUT,  CLI_RUN_ROW_MEMORY,  CLI_RUN_ROW_CPUS,
       CLI_RUN_ROW_DISK,    CLI_RUN_ROW_PIDS,
    CLI_RUN_ROW_LIMIT,    CLI_RUN_ROW_ENV,     CLI_RUN_ROW_STDIN,
    CLI_RUN_ROW_PROFILE,  CLI_RUN_ROW_IMAGE,   CLI_RUN_ROW_PACKAGE, CLI_RUN_ROW_SEED,
    CLI_RUN_ROW_CACHE,    CLI_RUN_ROW_TOOLS,   CLI_RUN_ROWS_SOURCES,
    CLI_RUN_ROWS_APPROVE, CLI_RUN_ROW_REQUEST, CLI_RUN_ROW_JSON,
    CLI_RUN_ROW_INLINE,   CLI_RUN_ROW_CURL,    CLI_RUN_ROW_COLD,
    CLI_RUN_ROW_RECORD,   CLI_RUN_ROW_RAW,     CLI_RUN_ROW_VERBOSE,
    CLI_RUN_ROW_QUIET,    CLI_RUN_ROW_HELP,
};
const size_t cli_run_options_rows = array_len(cli_run_options_table);

void cli_run_options_help(void)
{
    fputs("usage: cupel run [OPTION]... CODE | SCRIPT | - [ARGUMENT]...\n"
          "       cupel run --dir DIR [OPTION]... -- COMMAND [ARGUMENT]...\n"
          "\n"
          "Run untrusted code in a box it cannot leave.\n"
          "\n"
          "The first operand is a script if it names a file, or if it is one word that ends in\n"
          ".py, .js, .sh and the like (which also sets the language); otherwise it is code.\n"
          "- reads the code from standard input. Further operands are the code's arguments;\n"
          "write -- before those that begin with a dash. Only --stdin - passes standard input\n"
          "to the code.\n"
          "\n"
          "Options:\n",
          stdout);
    opt_print_help(cli_run_options_table, cli_run_options_rows, stdout);
    fputs("\n"
          "The exit code is the code's own; 124 time limit, 152 CPU limit, 137 memory limit,\n"
          "126 another limit or a forbidden call, 130 interrupted, 2 refused, 125 cupel failed.\n"
          "Control characters other than newline and tab are shown as text unless --raw.\n",
          stdout);
}

/* Options that set a field of the request exclude --request. */
static int check_request_alone(const struct cli_run_options *o, struct err *err)
{
    const struct {
        const char *name;
        bool given;
    } fields[] = {
        { "language", o->language != NULL }, { "code", o->code != NULL },
        { "file", o->files.count > 0 },      { "timeout", o->timeout.given },
        { "memory", o->memory.given },       { "cpus", o->cpus.given },
        { "disk", o->disk.given },           { "pids", o->pids.given },
        { "env", o->env.count > 0 },         { "stdin", o->stdin_file != NULL },
        { "profile", o->profile != NULL },   { "image", o->image != NULL },
        { "limit", o->limits.count > 0 },    { "seed", o->seed.given },
        { "cache", o->cache.given },         { "tools", o->tools.count > 0 },
        { "package", o->packages.count > 0 },
    };
    for (size_t i = 0; i < array_len(fields); i++) {
        if (!fields[i].given)
            continue;
        err_set(err, ERR_USAGE, "options '--request' and '--%s' cannot be combined",
                fields[i].name);
        err_hint(err, "put the field into the request's JSON");
        return -1;
    }
    if (o->operands.count > 0)
        return err_set(err, ERR_USAGE, "'--request' takes no operand, but got '%.80s'",
                       o->operands.at[0]);
    return 0;
}

static int check_env(const struct cli_run_options *o, struct err *err)
{
    for (size_t i = 0; i < o->env.count; i++) {
        const char *text = o->env.at[i], *equals = strchr(text, '=');
        if (equals && equals != text)
            continue;
        err_set(err, ERR_USAGE, "option '--env' takes NAME=VALUE, not '%.80s'", text);
        if (!equals)
            err_hint(err, "the caller's variables are not passed on: write -e %.60s=\"$%.60s\"",
                     text, text);
        return -1;
    }
    return 0;
}

/* Our standard input has only one use. */
static int check_stdin_once(const struct cli_run_options *o, struct err *err)
{
    bool as_code = !o->code && o->operands.count > 0 && strcmp(o->operands.at[0], "-") == 0;
    bool as_stdin = o->stdin_file && strcmp(o->stdin_file, "-") == 0;
    if (as_code && as_stdin)
        return err_set(err, ERR_USAGE, "standard input cannot be both the code and '--stdin -'");
    return 0;
}

bool cli_run_options_engine(const struct cli_run_options *o, char *out[CLI_RUN_ENGINE_OPTIONS])
{
    static char names[][16] = { "--tools-dir", "--mcp", "--secrets" };
    const char *const values[] = { o->tools_dir, o->mcp, o->secrets };
    size_t count = 0;
    for (size_t i = 0; i < array_len(values); i++) {
        if (!values[i])
            continue;
        out[count++] = names[i];
        out[count++] = (char *)(uintptr_t)values[i];
    }
    out[count] = NULL;
    return count > 0;
}

/* Tools that nobody named reach no code: an option that only offers them is a mistake. */
static int check_tools(const struct cli_run_options *o, struct err *err)
{
    char *offered[CLI_RUN_ENGINE_OPTIONS];
    bool offers = cli_run_options_engine(o, offered);
    if (o->cold && (o->tools.count > 0 || offers)) {
        err_set(err, ERR_USAGE, "options '--cold' and '%s' cannot be combined",
                offers ? offered[0] : "--tools");
        err_hint(err, "an engine runs the tools: leave '--cold' out");
        return -1;
    }
    if (o->tools.count > 0 || o->request || !offers)
        return 0;
    err_set(err, ERR_USAGE, "option '%s' offers tools, and none is named", offered[0]);
    err_hint(err, "--tools NAME names one, --tools '*' all");
    return -1;
}

int cli_run_options_check_alone(const struct cli_run_options *o, const char *what, struct err *err)
{
    const struct {
        const char *name;
        bool given;
    } others[] = {
        { "request", o->request != NULL }, { "curl", o->curl },    { "tools", o->tools.count > 0 },
        { "cache", o->cache.given },       { "record", o->record },
    };
    for (size_t i = 0; i < array_len(others); i++) {
        if (others[i].given)
            return err_set(err, ERR_USAGE, "%s and '--%s' cannot be combined", what,
                           others[i].name);
    }
    return 0;
}

static int check_dir(const struct cli_run_options *o, struct err *err)
{
    if (!o->dir && o->write)
        return err_set(err, ERR_USAGE, "option '--write' needs a folder: --dir DIR");
    if (o->dir && o->files.count > 0) {
        err_set(err, ERR_USAGE, "options '--dir' and '--file' cannot be combined");
        err_hint(err, "put the file into the folder");
        return -1;
    }
    if (o->dir && cli_run_options_check_alone(o, "options '--dir'", err) < 0)
        return -1;
    return o->venv ? cli_run_options_check_alone(o, "options '--venv'", err) : 0;
}

int cli_run_options_check(const struct cli_run_options *options, struct err *err)
{
    if (check_tools(options, err) < 0 || check_dir(options, err) < 0 ||
        cli_approve_check(&options->approve, &options->refuse, err) < 0)
        return -1;
    return check_env(options, err) < 0 ? -1 : check_stdin_once(options, err);
}

/* The word after the first "--", or NULL. */
static const char *after_dashes(int argc, char **argv)
{
    for (int i = 0; i + 1 < argc; i++)
        if (strcmp(argv[i], "--") == 0)
            return argv[i + 1];
    return NULL;
}

int cli_run_options_parse(int argc, char **argv, struct cli_run_options *out, struct err *err)
{
    const char *first = after_dashes(argc, argv);
    if (opt_parse(cli_run_options_table, cli_run_options_rows, argc, argv, out, &out->operands,
                  err) < 0)
        return -1;
    if (out->help)
        return 0;
    out->command = out->dir && !out->code && out->operands.count > 0 &&
                   out->operands.at[0] == first;
    if (out->command && out->language)
        return err_set(err, ERR_USAGE, "a command after '--' has no language");
    if (out->request)
        return check_request_alone(out, err) < 0 ? -1 : cli_run_options_check(out, err);
    if (!out->code && out->operands.count == 0) {
        err_set(err, ERR_USAGE, "nothing to run: give code, a script or -");
        err_hint(err, "for example: cupel run 'print(1+1)'; - reads the code from standard input");
        return -1;
    }
    return cli_run_options_check(out, err);
}

void cli_run_options_done(struct cli_run_options *options)
{
    opt_done(cli_run_options_table, cli_run_options_rows, options);
}

bool cli_run_options_ask_for_json(int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--json") == 0)
            return true;
    return false;
}
