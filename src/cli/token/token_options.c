/* The tables behind `cupel token VERB --help`. Uses argv alone. */
#include "cli/token/token_options.h"

#include <stdint.h>
#include <stdio.h>

#include "base/attr.h"

#define AT(member) offsetof(struct cli_token_options, member)
#define ROWS_COMMON                                                                               \
    { "json", 0, NULL, OPT_FLAG, AT(json), "print the answer as JSON and nothing else" },         \
        { "quiet", 'q', NULL, OPT_FLAG, AT(quiet), "no notes on standard error" },                \
        { "help", 'h', NULL, OPT_FLAG, AT(help), "show this text" }

static const struct opt new_table[] = {
    { "expires", 0, "TIME", OPT_TEXT, AT(expires), "after 12h, 30d or 8w, or at 2027-01-31" },
    { "operator", 0, NULL, OPT_FLAG, AT(is_operator), "sees and ends what other tokens made" },
    { "runs", 0, "N", OPT_NUMBER, AT(runs), "runs at once" },
    { "rate", 0, "N/min", OPT_TEXT, AT(rate), "runs that begin in any 60 seconds" },
    { "cpu-s-a-day", 0, "N", OPT_NUMBER, AT(cpu_s), "CPU seconds of a day, in UTC" },
    { "sessions", 0, "N", OPT_NUMBER, AT(sessions), "sessions at once" },
    { "stored", 0, "SIZE", OPT_BYTES, AT(stored), "blobs and files of ended sessions" },
    { "limit", 0, "NAME=N", OPT_LIST, AT(limits), "the largest limit of a run; may be repeated" },
    { "profile", 0, "NAME", OPT_LIST, AT(profiles), "an allowed profile; may be repeated" },
    { "image", 0, "NAME", OPT_LIST, AT(images), "an allowed image; may be repeated" },
    { "tool", 0, "NAME", OPT_LIST, AT(tools), "an allowed tool; may be repeated" },
    ROWS_COMMON,
};
static const struct opt plain_table[] = { ROWS_COMMON };
static const size_t new_rows = array_len(new_table), plain_rows = array_len(plain_table);

const struct opt cli_token_options_table[] = {
    { "help", 'h', NULL, OPT_FLAG, AT(help), "show this text" },
};
const size_t cli_token_options_rows = array_len(cli_token_options_table);

static const struct cli_command commands[CLI_TOKEN_VERBS] = {
    [CLI_TOKEN_NEW] = { "new", NULL, "make a token and print it", new_table, &new_rows, "NAME",
                        NULL },
    [CLI_TOKEN_LS] = { "ls", NULL, "list the tokens and their quotas", plain_table, &plain_rows,
                       NULL, NULL },
    [CLI_TOKEN_RM] = { "rm", NULL, "remove tokens: their next request is refused", plain_table,
                       &plain_rows, "NAME", NULL },
};
const struct cli_commands cli_token_commands = { commands, CLI_TOKEN_VERBS };

static const struct shape {
    const char *operands;
    size_t least, most;
    const char *missing;
} shapes[CLI_TOKEN_VERBS] = {
    [CLI_TOKEN_NEW] = { " NAME", 1, 1, "a name for the token" },
    [CLI_TOKEN_LS] = { "", 0, 0, "" },
    [CLI_TOKEN_RM] = { " NAME|ID...", 1, SIZE_MAX, "the name or id of a token" },
};

static const char *const notes[CLI_TOKEN_VERBS] = {
    [CLI_TOKEN_NEW] =
        "\nThe token is shown this once: only its hash is kept. A bound that is not given does\n"
        "not hold. For example:\n"
        "  cupel token new ci --expires 30d --runs 4 --rate 60/min --limit timeout_s=60\n",
    [CLI_TOKEN_RM] = "\nRuns under way go on to their end.\n",
};

static void help_all(void)
{
    fputs("usage: cupel token COMMAND [OPTION]... [NAME]\n"
          "\n"
          "Tokens let clients use the HTTP API of cupel serve, each within its quota.\n"
          "\n",
          stdout);
    for (size_t i = 0; i < CLI_TOKEN_VERBS; i++)
        printf("  %-11s %s\n", commands[i].name, commands[i].summary);
    fputs("\nOptions:\n", stdout);
    opt_print_help(cli_token_options_table, cli_token_options_rows, stdout);
    fputs("\ncupel token COMMAND --help shows a command's options. For example:\n"
          "  TOKEN=$(cupel token new laptop)\n"
          "  curl -H \"Authorization: Bearer $TOKEN\" http://127.0.0.1:8765/v1/languages\n",
          stdout);
}

void cli_token_options_help(enum cli_token_verb verb)
{
    if (verb == CLI_TOKEN_VERBS) {
        help_all();
        return;
    }
    const struct cli_command *command = &commands[verb];
    printf("usage: cupel token %s [OPTION]...%s\n\n%c%s.\n\nOptions:\n", command->name,
           shapes[verb].operands, command->summary[0] - 'a' + 'A', command->summary + 1);
    opt_print_help(command->options, *command->rows, stdout);
    fputs(notes[verb] ? notes[verb] : "", stdout);
}

int cli_token_options_parse(enum cli_token_verb verb, int argc, char **argv,
                            struct cli_token_options *out, struct err *err)
{
    const struct cli_command *command = &commands[verb];
    const struct shape *shape = &shapes[verb];
    if (opt_parse(command->options, *command->rows, argc, argv, out, &out->names, err) < 0)
        return -1;
    if (out->help)
        return 0;
    if (out->names.count < shape->least) {
        err_set(err, ERR_USAGE, "'cupel token %s' needs %s", command->name, shape->missing);
        err_hint(err, "usage: cupel token %s%s; 'cupel token ls' lists them", command->name,
                 shape->operands);
        return -1;
    }
    if (out->names.count > shape->most)
        return err_set(err, ERR_USAGE, "'cupel token %s' takes no further operand, but got '%.80s'",
                       command->name, out->names.at[shape->most]);
    return 0;
}

void cli_token_options_done(enum cli_token_verb verb, struct cli_token_options *options)
{
    opt_done(commands[verb].options, *commands[verb].rows, options);
}
