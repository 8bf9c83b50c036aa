/* The completion script for fish. Pure except for printing. */
#include "dev/completion/completion.h"

static const char head[] =
    "# fish completion of cupel. Made by: cupel completion fish\n"
    "function __cupel_first\n"
    "    test (count (commandline -opc)) -eq 1\n"
    "end\n"
    "function __cupel_in\n"
    "    set -l words (commandline -opc)\n"
    "    test (count $words) -gt 1; and test \"$words[2]\" = $argv[1]; or return 1\n"
    "    test (count $argv) -lt 2; and return 0\n"
    "    test (count $words) -gt 2; and test \"$words[3]\" = $argv[2]\n"
    "end\n"
    "function __cupel_second\n"
    "    __cupel_in $argv[1]; and test (count (commandline -opc)) -eq 2\n"
    "end\n"
    "complete -c cupel -f\n";

/* Flags of `complete`: -r a value is needed, -F it is a file, -x it is not. */
static const char *const fills[COMPLETE_FILLS] = {
    [COMPLETE_NOTHING] = " -x",
    [COMPLETE_WORDS] = " -x -a '",
    [COMPLETE_FILES] = " -r -F",
    [COMPLETE_FOLDERS] = " -x -a '(__fish_complete_directories)'",
};

static void print_text(const char *text, FILE *to)
{
    fputs(" -d '", to);
    completion_escape(text, "'\\", to);
    fputc('\'', to);
}

static void print_words(const struct completion_value *value,
                        const struct cli_commands *commands, FILE *to)
{
    completion_words(value, commands, to);
    fputc('\'', to);
}

static void print_option(const char *name, const struct opt *option,
                         const struct cli_commands *commands, FILE *to)
{
    const struct completion_value *value = completion_of_option(option);
    fprintf(to, "complete -c cupel -n '__cupel_in %s'", name);
    if (option->letter)
        fprintf(to, " -s %c", option->letter);
    fprintf(to, " -l %s", option->name);
    if (option->kind != OPT_FLAG)
        fputs(fills[value->fill], to);
    if (option->kind != OPT_FLAG && value->word)
        print_words(value, commands, to);
    print_text(option->help, to);
    fputc('\n', to);
}

static void print_operand(const struct cli_command *command, const char *name,
                          const struct cli_commands *commands, FILE *to)
{
    const struct completion_value *value = completion_of_operand(command->operand);
    if (value->fill == COMPLETE_NOTHING || command->subs)
        return;
    fprintf(to, "complete -c cupel -n '__cupel_in %s'", name);
    if (value->word) {
        fputs(" -a '", to);
        print_words(value, commands, to);
    } else {
        fputs(" -F", to);
    }
    fputc('\n', to);
}

static void print_command(const struct cli_command *command, const char *name,
                          const struct cli_commands *commands, FILE *to)
{
    for (size_t i = 0; command->options && i < *command->rows; i++)
        print_option(name, &command->options[i], commands, to);
    print_operand(command, name, commands, to);
}

static void print_subs(const struct cli_command *command, const struct cli_commands *commands,
                       FILE *to)
{
    char name[80];
    for (size_t i = 0; command->subs && i < command->subs->count; i++) {
        const struct cli_command *sub = &command->subs->at[i];
        fprintf(to, "complete -c cupel -n '__cupel_second %s' -a %s", command->name, sub->name);
        print_text(sub->summary, to);
        fputc('\n', to);
        snprintf(name, sizeof name, "%s %s", command->name, sub->name);
        print_command(sub, name, commands, to);
    }
}

void completion_fish(const struct cli_commands *commands, FILE *to)
{
    fputs(head, to);
    for (size_t i = 0; i < commands->count; i++) {
        fprintf(to, "complete -c cupel -n __cupel_first -a %s", commands->at[i].name);
        print_text(commands->at[i].summary, to);
        fputc('\n', to);
    }
    for (size_t i = 0; i < commands->count; i++) {
        print_command(&commands->at[i], commands->at[i].name, commands, to);
        print_subs(&commands->at[i], commands, to);
    }
}
