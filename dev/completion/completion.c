/* Shared by the three completion writers: the shells, and the completion of values. Pure except for
 * printing. */
#include "dev/completion/completion.h"

#include <string.h>

#include "base/attr.h"
#include "contract/config.h"
#include "contract/limits.h"
#include "contract/request.h"

const struct completion_shell completion_shells[] = {
    { "bash", completion_bash },
    { "zsh", completion_zsh },
    { "fish", completion_fish },
};
const size_t completion_shell_count = array_len(completion_shells);

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
    return i < completion_shell_count ? completion_shells[i].name : NULL;
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

static const char *key_at(const struct cli_commands *commands, size_t i)
{
    (void)commands;
    return i < CONFIG_COUNT ? config_row((enum config_key)i)->name : NULL;
}

static const char *mode_at(const struct cli_commands *commands, size_t i)
{
    (void)commands;
    static const char *const words[] = { "code", "tools" };
    return i < array_len(words) ? words[i] : NULL;
}

/* Without aliases of languages: they are short, and would make `j` ambiguous. */
static const struct completion_value values[] = {
    { "language", COMPLETE_WORDS, language_at },
    { "profile", COMPLETE_WORDS, profile_at },
    { "on-error", COMPLETE_WORDS, on_error_at },
    { "mode", COMPLETE_WORDS, mode_at },
    { "KEY", COMPLETE_WORDS, key_at },
    { "SHELL", COMPLETE_WORDS, shell_at },
    { "COMMAND", COMPLETE_WORDS, command_at },
    { "VERB", COMPLETE_WORDS, command_at },
    { "FILE", COMPLETE_FILES, NULL },
    { "SCRIPT", COMPLETE_FILES, NULL },
    { "QUESTION", COMPLETE_FILES, NULL }, /* further words are files */
    { "ID|FILE", COMPLETE_FILES, NULL },
    { "PATH", COMPLETE_FILES, NULL },
    { "HOST[:PATH][:ro]", COMPLETE_FILES, NULL },
    { "DIR", COMPLETE_FOLDERS, NULL },
};
static const struct completion_value nothing = { "", COMPLETE_NOTHING, NULL };

static const struct completion_value *find(const char *key)
{
    for (size_t i = 0; key && i < array_len(values); i++)
        if (strcmp(values[i].key, key) == 0)
            return &values[i];
    return &nothing;
}

const struct completion_value *completion_of_option(const struct opt *option)
{
    const struct completion_value *by_name = find(option->arg ? option->name : NULL);
    return by_name == &nothing ? find(option->arg) : by_name;
}

const struct completion_value *completion_of_operand(const char *operand)
{
    return find(operand);
}

void completion_words(const struct completion_value *value,
                          const struct cli_commands *commands, FILE *to)
{
    const char *word;
    for (size_t i = 0; value->word && (word = value->word(commands, i)); i++)
        fprintf(to, "%s%s", i > 0 ? " " : "", word);
}

void completion_escape(const char *text, const char *special, FILE *to)
{
    for (; *text; text++) {
        if (strchr(special, *text))
            fputc('\\', to);
        fputc(*text, to);
    }
}

void completion_each(const struct cli_commands *commands, completion_print *print, FILE *to)
{
    for (size_t i = 0; i < commands->count; i++) {
        const struct cli_command *command = &commands->at[i];
        print(command, command->name, commands, to);
        for (size_t k = 0; command->subs && k < command->subs->count; k++) {
            char name[80];
            snprintf(name, sizeof name, "'%s %s'", command->name, command->subs->at[k].name);
            print(&command->subs->at[k], name, commands, to);
        }
    }
}
