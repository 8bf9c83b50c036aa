/* The command lines of `cupel token`: one row for each subcommand. */
#ifndef CLI_TOKEN_TOKEN_OPTIONS_H
#define CLI_TOKEN_TOKEN_OPTIONS_H

#include "base/err.h"
#include "base/opt.h"
#include "cli/cli.h"
#include "store/tokens.h"

struct cli_token_options {
    bool json, quiet, help, is_operator;
    const char *expires, *rate;
    struct opt_number runs, cpu_s, sessions, stored;
    struct opt_list limits, profiles, images, tools;
    struct opt_operands names;
};

enum cli_token_verb { CLI_TOKEN_NEW, CLI_TOKEN_LS, CLI_TOKEN_RM, CLI_TOKEN_VERBS };

/* In the order of the enum, for help and completions. */
extern const struct cli_commands cli_token_commands;
extern const struct opt cli_token_options_table[];
extern const size_t cli_token_options_rows;

/* Parses one subcommand's arguments. Fills `out` as far as possible even on failure. */
int cli_token_options_parse(enum cli_token_verb verb, int argc, char **argv,
                            struct cli_token_options *out, struct err *err);
void cli_token_options_done(enum cli_token_verb verb, struct cli_token_options *options);
/* The help of one subcommand, or of all for CLI_TOKEN_VERBS. */
void cli_token_options_help(enum cli_token_verb verb);

/* The quota that the options ask for. */
int cli_token_quota(const struct cli_token_options *options, struct tokens_quota *out,
                    struct err *err);
/* --expires: "45s", "90m", "12h", "30d", "8w", a day or a time in UTC. TOKENS_NEVER for NULL. */
int cli_token_expiry(const char *text, int64_t now, int64_t *out, struct err *err);

#endif
