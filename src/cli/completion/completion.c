/* What the three writers of completions share: which shells there are, and what
 * completes a value. Pure but for printing. */
#include "cli/completion/completion.h"

#include <string.h>

#include "base/attr.h"
#include "contract/limits.h"
#include "contract/request.h"

const struct cli_completion_shell cli_completion_shells[] = {
    { "bash", "~/.local/share/bash-completion/completions/cupel", cli_completion_bash },
    { "zsh", "_cupel in a folder of $fpath", cli_completion_zsh },
    { "fish", "~/.config/fish/completions/cupel.fish", cli_completion_fish },
};
const size_t cli_completion_shell_count = array_len(cli_completion_shells);

static const char *language_at(const struct cli_commands *commands, size_t i)
{
    (void)commands;
    return i < REQUEST_LANGUAGES ? request_languages[i].name : NULL;
}

static const char *profile_at(const struct cli_commands *commands, size_t i)
{
    (void)commands;
    return i < limits_profile_count ? limits_profiles[i].name : NULL;
}

static const char *shell_at(const struct cli_commands *commands, size_t i)
{
    (void)commands;
    return i < cli_completion_shell_count ? cli_completion_shells[i].name : NULL;
}

static const char *command_at(const struct cli_commands *commands, size_t i)
{
    return i < commands->count ? commands->at[i].name : NULL;
}

static const char *on_error_at(const struct cli_commands *commands, size_t i)
{
    (void)commands;
    static const char *const words[] = { "keep", "rollback" };
    return i < array_len(words) ? words[i] : NULL;
}

static const char *mode_at(const struct cli_commands *commands, size_t i)
{
    (void)commands;
    static const char *const words[] = { "code", "tools" };
    return i < array_len(words) ? words[i] : NULL;
}

/* Aliases of languages are left out: they are short enough to type, and would
 * keep `j` from being one word. */
static const struct cli_completion_value values[] = {
    { "language", CLI_COMPLETE_WORDS, language_at },
    { "profile", CLI_COMPLETE_WORDS, profile_at },
    { "on-error", CLI_COMPLETE_WORDS, on_error_at },
    { "mode", CLI_COMPLETE_WORDS, mode_at },
    { "SHELL", CLI_COMPLETE_WORDS, shell_at },
    { "COMMAND", CLI_COMPLETE_WORDS, command_at },
    { "VERB", CLI_COMPLETE_WORDS, command_at },
    { "FILE", CLI_COMPLETE_FILES, NULL },
    { "SCRIPT", CLI_COMPLETE_FILES, NULL },
    { "QUESTION", CLI_COMPLETE_FILES, NULL }, /* and after it files */
    { "ID|FILE", CLI_COMPLETE_FILES, NULL },
    { "PATH", CLI_COMPLETE_FILES, NULL },
    { "HOST[:PATH][:ro]", CLI_COMPLETE_FILES, NULL },
    { "DIR", CLI_COMPLETE_FOLDERS, NULL },
};
static const struct cli_completion_value nothing = { "", CLI_COMPLETE_NOTHING, NULL };

static const struct cli_completion_value *find(const char *key)
{
    for (size_t i = 0; key && i < array_len(values); i++)
        if (strcmp(values[i].key, key) == 0)
            return &values[i];
    return &nothing;
}

const struct cli_completion_value *cli_completion_of_option(const struct opt *option)
{
    const struct cli_completion_value *by_name = find(option->arg ? option->name : NULL);
    return by_name == &nothing ? find(option->arg) : by_name;
}

const struct cli_completion_value *cli_completion_of_operand(const char *operand)
{
    return find(operand);
}

void cli_completion_words(const struct cli_completion_value *value,
                          const struct cli_commands *commands, FILE *to)
{
    const char *word;
    for (size_t i = 0; value->word && (word = value->word(commands, i)); i++)
        fprintf(to, "%s%s", i > 0 ? " " : "", word);
}

void cli_completion_escape(const char *text, const char *special, FILE *to)
{
    for (; *text; text++) {
        if (strchr(special, *text))
            fputc('\\', to);
        fputc(*text, to);
    }
}
