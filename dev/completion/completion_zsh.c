/* The completion script for zsh. Pure except for printing. Its texts stand in single quotes; inside
 * them _arguments interprets brackets, colons and backslashes. */
#include "dev/completion/completion.h"

static const char head[] =
    "#compdef cupel\n"
    "# zsh completion of cupel. Made by: cupel completion zsh\n"
    "_cupel()\n"
    "{\n"
    "    local context curcontext=$curcontext state line\n"
    "    typeset -A opt_args\n"
    "    local -a commands=(\n";

static const char middle[] =
    "    )\n"
    "    _arguments -C '1:command:->command' '*::argument:->argument'\n"
    "    case $state in\n"
    "    command) _describe -t commands command commands ;;\n"
    "    argument)\n"
    "        local name=$words[1]\n"
    "        # A command of two words has a row of its own.\n"
    "        (( CURRENT > 2 )) && case $name in\n";

static const char commands_of_one[] =
    "        esac\n"
    "        case $name in\n";

/* compinit uses the file's text as the function; sourcing it only defines the function. */
static const char tail[] =
    "        esac\n"
    "        ;;\n"
    "    esac\n"
    "}\n"
    "if [[ $funcstack[1] == _cupel ]]; then\n"
    "    _cupel \"$@\"\n"
    "else\n"
    "    compdef _cupel cupel\n"
    "fi\n";

static const char *const fills[COMPLETE_FILLS] = {
    [COMPLETE_NOTHING] = " ",
    [COMPLETE_WORDS] = "(",
    [COMPLETE_FILES] = "_files",
    [COMPLETE_FOLDERS] = "_files -/",
};

/* For text inside single quotes: a quote ends them, is escaped, and begins them again. */
static void print_quoted(const char *text, const char *special, FILE *to)
{
    for (; *text; text++) {
        char one[] = { *text, 0 };
        if (*text == '\'')
            fputs("'\\''", to);
        else
            completion_escape(one, special, to);
    }
}

static void print_fill(const struct completion_value *value,
                       const struct cli_commands *commands, FILE *to)
{
    fputs(fills[value->fill], to);
    if (!value->word)
        return;
    completion_words(value, commands, to);
    fputc(')', to);
}

/* '(-l --language)'{-l+,--language=}'[text]:NAME:(words)'; a list may be repeated. */
static void print_option(const struct opt *option, const struct cli_commands *commands, FILE *to)
{
    const char *joined = option->kind == OPT_FLAG ? "" : "+";
    const char *equals = option->kind == OPT_FLAG ? "" : "=";
    fputs("                ", to);
    if (option->kind == OPT_LIST)
        fputs("'*'", to);
    else if (option->letter)
        fprintf(to, "'(-%c --%s)'", option->letter, option->name);
    if (option->letter)
        fprintf(to, "{-%c%s,--%s%s}'[", option->letter, joined, option->name, equals);
    else
        fprintf(to, "'--%s%s[", option->name, equals);
    print_quoted(option->help, "[]:\\", to);
    fputc(']', to);
    if (option->kind != OPT_FLAG) {
        fputc(':', to);
        print_quoted(option->arg, ":\\", to);
        fputc(':', to);
        print_fill(completion_of_option(option), commands, to);
    }
    fputs("' \\\n", to);
}

static void print_command(const struct cli_command *command, const char *name,
                          const struct cli_commands *commands, FILE *to)
{
    const struct completion_value *operand = completion_of_operand(command->operand);
    if (!command->options && !command->operand)
        return;
    fprintf(to, "        %s)\n            _arguments -s -S \\\n", name);
    for (size_t i = 0; command->options && i < *command->rows; i++)
        print_option(&command->options[i], commands, to);
    if (command->operand) {
        /* Only a file can be followed by more operands: the code's arguments. */
        fprintf(to, "                '%s:%s:", operand->word ? "1" : "*", command->operand);
        print_fill(operand, command->subs ? command->subs : commands, to);
        fputs("' \\\n", to);
    }
    fputs("                && return\n            ;;\n", to);
}

static void print_pairs(const struct cli_commands *commands, FILE *to)
{
    for (size_t i = 0; i < commands->count; i++)
        if (commands->at[i].subs)
            fprintf(to, "        %s) shift words; (( CURRENT-- )); name=\"$name $words[1]\" ;;\n",
                    commands->at[i].name);
}

void completion_zsh(const struct cli_commands *commands, FILE *to)
{
    fputs(head, to);
    for (size_t i = 0; i < commands->count; i++) {
        fprintf(to, "        '%s:", commands->at[i].name);
        print_quoted(commands->at[i].summary, ":\\", to);
        fputs("'\n", to);
    }
    fputs(middle, to);
    print_pairs(commands, to);
    fputs(commands_of_one, to);
    completion_each(commands, print_command, to);
    fputs(tail, to);
}
