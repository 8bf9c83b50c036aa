/* Completions: one script a shell, written from the tables of commands and
 * options. What completes a value is found by its name, so that a new option
 * that takes a FILE needs no row here. */
#ifndef CLI_COMPLETION_COMPLETION_H
#define CLI_COMPLETION_COMPLETION_H

#include <stdio.h>

#include "base/opt.h"
#include "cli/cli.h"

struct cli_completion_shell {
    const char *name;
    const char *place; /* where the shell looks for the script, for --help */
    void (*print)(const struct cli_commands *commands, FILE *to);
};
extern const struct cli_completion_shell cli_completion_shells[];
extern const size_t cli_completion_shell_count;

enum cli_completion_fill {
    CLI_COMPLETE_NOTHING,
    CLI_COMPLETE_WORDS,
    CLI_COMPLETE_FILES,
    CLI_COMPLETE_FOLDERS,
    CLI_COMPLETE_FILLS
};

struct cli_completion_value {
    const char *key; /* long name of an option, or the value's name in --help */
    enum cli_completion_fill fill;
    /* CLI_COMPLETE_WORDS: the i-th, NULL after the last. */
    const char *(*word)(const struct cli_commands *commands, size_t i);
};

/* What completes an option's value, or an operand. Never NULL. */
const struct cli_completion_value *cli_completion_of_option(const struct opt *option);
const struct cli_completion_value *cli_completion_of_operand(const char *operand);

/* The words of a value with a space between; nothing where it has none. */
void cli_completion_words(const struct cli_completion_value *value,
                          const struct cli_commands *commands, FILE *to);
/* A text with a backslash before each character of `special`. */
void cli_completion_escape(const char *text, const char *special, FILE *to);

void cli_completion_bash(const struct cli_commands *commands, FILE *to);
void cli_completion_zsh(const struct cli_commands *commands, FILE *to);
void cli_completion_fish(const struct cli_commands *commands, FILE *to);

#endif
