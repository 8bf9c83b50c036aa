/* The completion script for bash. Pure except for printing. It needs bash 4, not the
 * bash-completion package. readline completes and quotes file names; the script never expands a
 * name from disk. */
#include "dev/completion/completion.h"

static const char head[] =
    "# bash completion of cupel. Made by: cupel completion bash\n"
    "_cupel()\n"
    "{\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
    "    local command=${COMP_WORDS[1]} prefix='' fill='' words='' options='' ended='' i\n"
    "    COMPREPLY=()\n"
    "    # --name=value: \"=\" is a word of its own, unless COMP_WORDBREAKS lacks it.\n"
    "    if [[ $cur == '=' ]]; then\n"
    "        cur=''\n"
    "    elif [[ $prev == '=' ]]; then\n"
    "        prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
    "    elif [[ $cur == --*=* ]]; then\n"
    "        prev=${cur%%=*} prefix=${cur%%=*}= cur=${cur#*=}\n"
    "    fi\n"
    "    # A command of two words has a row of its own.\n"
    "    ((COMP_CWORD > 2)) && case $command in\n";

static const char middle[] =
    "    esac\n"
    "    # After -- there are operands only.\n"
    "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
    "        [[ ${COMP_WORDS[i]} == -- ]] && prev='' ended=1\n"
    "    done\n"
    "    ((COMP_CWORD == 1)) && command=''\n"
    "    case $command in\n";

static const char tail[] =
    "    esac\n"
    "    [[ $options && ! $ended && $cur == -* ]] && fill=words words=$options\n"
    "    case $fill in\n"
    "    words) mapfile -t COMPREPLY < <(compgen -P \"$prefix\" -W \"$words\" -- \"$cur\") ;;\n"
    "    files) compopt -o default 2>/dev/null ;;\n"
    "    folders) compopt -o dirnames 2>/dev/null ;;\n"
    "    esac\n"
    "}\n"
    "complete -F _cupel cupel\n";

static const char *const fills[COMPLETE_FILLS] = {
    [COMPLETE_NOTHING] = "''",
    [COMPLETE_WORDS] = "words",
    [COMPLETE_FILES] = "files",
    [COMPLETE_FOLDERS] = "folders",
};

static void print_fill(const struct completion_value *value,
                       const struct cli_commands *commands, FILE *to)
{
    fprintf(to, "fill=%s", fills[value->fill]);
    if (!value->word)
        return;
    fputs(" words='", to);
    completion_words(value, commands, to);
    fputc('\'', to);
}

static void print_options(const struct cli_command *command, FILE *to)
{
    fputs(" options='", to);
    for (size_t i = 0; i < *command->rows; i++) {
        fprintf(to, "%s--%s", i > 0 ? " " : "", command->options[i].name);
        if (command->options[i].letter)
            fprintf(to, " -%c", command->options[i].letter);
    }
    fputc('\'', to);
}

/* The word after an option with a value is that value, whatever it looks like. */
static void print_values(const struct cli_command *command, const struct cli_commands *commands,
                         FILE *to)
{
    fputs("        case $prev in\n", to);
    for (size_t i = 0; i < *command->rows; i++) {
        const struct opt *option = &command->options[i];
        if (option->kind == OPT_FLAG)
            continue;
        fprintf(to, "        --%s", option->name);
        if (option->letter)
            fprintf(to, " | -%c", option->letter);
        fputs(") options='' ", to);
        print_fill(completion_of_option(option), commands, to);
        fputs(" ;;\n", to);
    }
    fputs("        esac\n", to);
}

static bool takes_values(const struct cli_command *command)
{
    for (size_t i = 0; command->options && i < *command->rows; i++)
        if (command->options[i].kind != OPT_FLAG)
            return true;
    return false;
}

static void print_command(const struct cli_command *command, const char *name,
                          const struct cli_commands *commands, FILE *to)
{
    fprintf(to, "    %s)\n        ", name);
    print_fill(completion_of_operand(command->operand),
               command->subs ? command->subs : commands, to);
    if (command->options)
        print_options(command, to);
    fputc('\n', to);
    if (takes_values(command))
        print_values(command, commands, to);
    fputs("        ;;\n", to);
}

/* The commands with a second word. */
static void print_pairs(const struct cli_commands *commands, FILE *to)
{
    for (size_t i = 0; i < commands->count; i++)
        if (commands->at[i].subs)
            fprintf(to, "    %s) command=\"$command ${COMP_WORDS[2]}\" ;;\n",
                    commands->at[i].name);
}

void completion_bash(const struct cli_commands *commands, FILE *to)
{
    fputs(head, to);
    print_pairs(commands, to);
    fputs(middle, to);
    fputs("    '') ", to);
    print_fill(completion_of_operand("COMMAND"), commands, to);
    fputs(" ;;\n", to);
    completion_each(commands, print_command, to);
    fputs(tail, to);
}
