/* Completions: one script a shell, written from the tables of commands and
 * options. What completes a value is found by its name, so that a new option
 * that takes a FILE needs no row here. */
#ifndef DEV_COMPLETION_COMPLETION_H
#define DEV_COMPLETION_COMPLETION_H

#include <stdio.h>

#include "base/opt.h"
#include "cli/cli.h"

struct completion_shell {
    const char *name;
    void (*print)(const struct cli_commands *commands, FILE *to);
};
extern const struct completion_shell completion_shells[];
extern const size_t completion_shell_count;

enum completion_fill {
    COMPLETE_NOTHING,
    COMPLETE_WORDS,
    COMPLETE_FILES,
    COMPLETE_FOLDERS,
    COMPLETE_FILLS
};

struct completion_value {
    const char *key; /* long name of an option, or the value's name in --help */
    enum completion_fill fill;
    /* COMPLETE_WORDS: the i-th, NULL after the last. */
    const char *(*word)(const struct cli_commands *commands, size_t i);
};

/* What completes an option's value, or an operand. Never NULL. */
const struct completion_value *completion_of_option(const struct opt *option);
const struct completion_value *completion_of_operand(const char *operand);

/* The words of a value with a space between; nothing where it has none. */
void completion_words(const struct completion_value *value,
                          const struct cli_commands *commands, FILE *to);
/* Prints every command, and after it its subcommands, named 'COMMAND SUBCOMMAND' in quotes. */
typedef void completion_print(const struct cli_command *command, const char *name,
                              const struct cli_commands *commands, FILE *to);
void completion_each(const struct cli_commands *commands, completion_print *print, FILE *to);
/* A text with a backslash before each character of `special`. */
void completion_escape(const char *text, const char *special, FILE *to);

void completion_bash(const struct cli_commands *commands, FILE *to);
void completion_zsh(const struct cli_commands *commands, FILE *to);
void completion_fish(const struct cli_commands *commands, FILE *to);

#endif
