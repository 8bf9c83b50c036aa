/* The table behind `cupel run --help`, and the rules between its options. Runs
 * on argv alone, before any file is opened. */
#include "cli/run_options.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/str.h"

#define AT(member) offsetof(struct cli_run_options, member)

const struct opt cli_run_options_table[] = {
    { "language", 'l', "NAME", OPT_TEXT, AT(language), "python, javascript or bash" },
    { "code", 'c', "CODE", OPT_TEXT, AT(code), "run this text; operands are its arguments" },
    { "file", 'f', "HOST[:PATH][:ro]", OPT_LIST, AT(files),
      "copy a file into the work directory, read-only with :ro" },
    { "out", 'o', "DIR", OPT_TEXT, AT(out), "save artifacts and pictures in this folder" },
    { "timeout", 't', "S", OPT_NUMBER, AT(timeout), "wall-clock seconds" },
    { "memory", 'm', "SIZE", OPT_BYTES, AT(memory), "memory, for example 512M or 2G" },
    { "cpus", 0, "N", OPT_NUMBER, AT(cpus), "processors, for example 0.5 or 2" },
    { "disk", 0, "SIZE", OPT_BYTES, AT(disk), "writable space, part of the memory" },
    { "pids", 0, "N", OPT_NUMBER, AT(pids), "processes and threads at one time" },
    { "env", 'e', "NAME=VALUE", OPT_LIST, AT(env), "set an environment variable" },
    { "stdin", 0, "FILE", OPT_TEXT, AT(stdin_file),
      "standard input of the code; - passes ours on" },
    { "profile", 0, "NAME", OPT_TEXT, AT(profile), "defaults: baseline, analysis or strict" },
    { "image", 0, "NAME", OPT_TEXT, AT(image), "root file system, see cupel images" },
    { "request", 0, "FILE", OPT_TEXT, AT(request), "a whole request as JSON; - reads ours" },
    { "json", 0, NULL, OPT_FLAG, AT(json), "print the result as JSON and nothing else" },
    { "cold", 0, NULL, OPT_FLAG, AT(cold), "use no running engine, see cupel serve" },
    { "raw", 0, NULL, OPT_FLAG, AT(raw), "pass control characters of the code on" },
    { "verbose", 'v', NULL, OPT_FLAG, AT(verbose), "say what the run cost and which walls stood" },
    { "quiet", 'q', NULL, OPT_FLAG, AT(quiet), "no notes on standard error" },
    { "help", 'h', NULL, OPT_FLAG, AT(help), "show this text" },
};
const size_t cli_run_options_rows = array_len(cli_run_options_table);

void cli_run_options_help(void)
{
    fputs("usage: cupel run [OPTION]... CODE | SCRIPT | - [ARGUMENT]...\n"
          "\n"
          "Run untrusted code in a box it cannot leave.\n"
          "\n"
          "The first operand is a script where it names a file, or where it is one word that\n"
          "ends in .py, .js, .sh and the like (which also gives the language); otherwise it is\n"
          "code. - reads the code from standard input. Further operands are the code's\n"
          "arguments; write -- before those that begin with a dash. Standard input is passed\n"
          "on only with --stdin -.\n"
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

/* Options that set a field of the request cannot meet --request. */
static int check_request_alone(const struct cli_run_options *o, struct err *err)
{
    const struct {
        const char *name;
        bool given;
    } fields[] = {
        { "language", o->language != NULL },  { "code", o->code != NULL },
        { "file", o->files.count > 0 },       { "timeout", o->timeout.given },
        { "memory", o->memory.given },        { "cpus", o->cpus.given },
        { "disk", o->disk.given },            { "pids", o->pids.given },
        { "env", o->env.count > 0 },          { "stdin", o->stdin_file != NULL },
        { "profile", o->profile != NULL },    { "image", o->image != NULL },
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
            err_hint(err, "no variable of the caller's is passed on: write -e %.60s=\"$%.60s\"",
                     text, text);
        return -1;
    }
    return 0;
}

/* Our standard input can be one thing only. */
static int check_stdin_once(const struct cli_run_options *o, struct err *err)
{
    bool as_code = !o->code && o->operands.count > 0 && strcmp(o->operands.at[0], "-") == 0;
    bool as_stdin = o->stdin_file && strcmp(o->stdin_file, "-") == 0;
    if (as_code && as_stdin)
        return err_set(err, ERR_USAGE, "standard input cannot be both the code and '--stdin -'");
    return 0;
}

int cli_run_options_parse(int argc, char **argv, struct cli_run_options *out, struct err *err)
{
    if (opt_parse(cli_run_options_table, cli_run_options_rows, argc, argv, out, &out->operands,
                  err) < 0)
        return -1;
    if (out->help)
        return 0;
    if (out->request)
        return check_request_alone(out, err);
    if (!out->code && out->operands.count == 0) {
        err_set(err, ERR_USAGE, "nothing to run: give code, a script or -");
        err_hint(err, "for example: cupel run 'print(1+1)'; - reads the code from standard input");
        return -1;
    }
    if (check_env(out, err) < 0)
        return -1;
    return check_stdin_once(out, err);
}

void cli_run_options_done(struct cli_run_options *options)
{
    opt_done(cli_run_options_table, cli_run_options_rows, options);
}
