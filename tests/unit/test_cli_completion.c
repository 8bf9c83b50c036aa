/* Completion scripts: what a table of commands becomes in each shell's language. */
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/own.h"
#include "check.h"
#include "dev/completion/completion.h"
#include "cli/run/run_options.h"

#define LANGUAGES "python javascript bash typescript r java"

struct sample {
    bool quiet;
    const char *language, *folder;
    struct opt_list files;
    struct opt_number seconds;
};

#define AT(member) offsetof(struct sample, member)

static const struct opt options[] = {
    { "quiet", 'q', NULL, OPT_FLAG, AT(quiet), "don't say: [much]" },
    { "language", 'l', "NAME", OPT_TEXT, AT(language), "which one" },
    { "file", 'f', "FILE", OPT_LIST, AT(files), "a file" },
    { "out", 0, "DIR", OPT_TEXT, AT(folder), "a folder" },
    { "timeout", 't', "S", OPT_NUMBER, AT(seconds), "seconds" },
};
static const size_t rows = array_len(options);

static const struct cli_command seconds[] = {
    { "one", NULL, "the first", options, &rows, "FILE", NULL },
    { "two", NULL, "the second", NULL, NULL, NULL, NULL },
};
static const struct cli_commands pairs = { seconds, array_len(seconds) };

static const struct cli_command table[] = {
    { "go", NULL, "the cat's way", options, &rows, "SCRIPT", NULL },
    { "stay", NULL, "do nothing", NULL, NULL, NULL, NULL },
    { "tell", NULL, "about a command", NULL, NULL, "COMMAND", NULL },
    { "pair", NULL, "two words", NULL, NULL, "VERB", &pairs },
};
static const struct cli_commands commands = { table, array_len(table) };

static char *written(void (*print)(const struct cli_commands *all, FILE *to))
{
    char *text = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&text, &len);
    CHECK(to != NULL);
    print(&commands, to);
    CHECK_INT(fclose(to), 0);
    return text;
}

static bool has(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

TEST(cli_completion_finds_a_value_by_the_options_name_and_then_by_the_values)
{
    CHECK_INT(completion_of_option(&options[0])->fill, COMPLETE_NOTHING);
    CHECK_INT(completion_of_option(&options[1])->fill, COMPLETE_WORDS);
    CHECK_INT(completion_of_option(&options[2])->fill, COMPLETE_FILES);
    CHECK_INT(completion_of_option(&options[3])->fill, COMPLETE_FOLDERS);
    CHECK_INT(completion_of_option(&options[4])->fill, COMPLETE_NOTHING);
    CHECK_INT(completion_of_operand("SCRIPT")->fill, COMPLETE_FILES);
    CHECK_INT(completion_of_operand(NULL)->fill, COMPLETE_NOTHING);
}

TEST(cli_completion_knows_what_run_takes)
{
    static const struct {
        const char *name;
        enum completion_fill fill;
    } wanted[] = {
        { "language", COMPLETE_WORDS }, { "profile", COMPLETE_WORDS }, { "file", COMPLETE_FILES },
        { "stdin", COMPLETE_FILES },    { "request", COMPLETE_FILES }, { "out", COMPLETE_FOLDERS },
        { "code", COMPLETE_NOTHING },
    };
    size_t found = 0;
    for (size_t i = 0; i < cli_run_options_rows; i++) {
        for (size_t j = 0; j < array_len(wanted); j++) {
            if (strcmp(cli_run_options_table[i].name, wanted[j].name) != 0)
                continue;
            CHECK_INT(completion_of_option(&cli_run_options_table[i])->fill, wanted[j].fill);
            found++;
        }
    }
    CHECK_INT(found, array_len(wanted));
}

TEST(cli_completion_writes_bash)
{
    own_str text = written(completion_bash);
    CHECK(has(text, "'') fill=words words='go stay tell pair' ;;"));
    CHECK(has(text, "fill=files options='--quiet -q --language -l --file -f --out "));
    CHECK(has(text, "--language | -l) options='' fill=words words='" LANGUAGES "' ;;"));
    CHECK(has(text, "--out) options='' fill=folders ;;"));
    CHECK(has(text, "--timeout | -t) options='' fill='' ;;"));
    CHECK(!has(text, "--quiet | -q)"));
    CHECK(has(text, "tell)\n        fill=words words='go stay tell pair'\n"));
}

TEST(cli_completion_knows_commands_of_two_words)
{
    own_str bash = written(completion_bash);
    own_str zsh = written(completion_zsh);
    own_str fish = written(completion_fish);
    CHECK(has(bash, "    pair) command=\"$command ${COMP_WORDS[2]}\" ;;\n"));
    CHECK(has(bash, "    pair)\n        fill=words words='one two'\n"));
    CHECK(has(bash, "    'pair one')\n        fill=files options='--quiet -q "));
    CHECK(has(zsh, "pair) shift words; (( CURRENT-- )); name=\"$name $words[1]\" ;;\n"));
    CHECK(has(zsh, "'1:VERB:(one two)'"));
    CHECK(has(zsh, "        'pair one')\n"));
    CHECK(!has(zsh, "'pair two')"));
    CHECK(has(fish, "-n '__cupel_second pair' -a one -d 'the first'\n"));
    CHECK(has(fish, "-n '__cupel_in pair one' -s q -l quiet "));
    CHECK(!has(fish, "__cupel_in pair' -a"));
}

TEST(cli_completion_writes_zsh_and_escapes_for_its_quotes_and_specs)
{
    own_str text = written(completion_zsh);
    CHECK(strncmp(text, "#compdef cupel\n", 15) == 0);
    CHECK(has(text, "'go:the cat'\\''s way'"));
    CHECK(has(text, "'(-q --quiet)'{-q,--quiet}'[don'\\''t say\\: \\[much\\]]' \\\n"));
    CHECK(has(text, "{-l+,--language=}'[which one]:NAME:(" LANGUAGES ")'"));
    CHECK(has(text, "'*'{-f+,--file=}'[a file]:FILE:_files'"));
    CHECK(has(text, "'--out=[a folder]:DIR:_files -/'"));
    CHECK(has(text, "'1:COMMAND:(go stay tell pair)'"));
    CHECK(!has(text, " stay)\n"));
}

TEST(cli_completion_writes_fish_and_escapes_for_its_quotes)
{
    own_str text = written(completion_fish);
    CHECK(has(text, "-n __cupel_first -a go -d 'the cat\\'s way'\n"));
    CHECK(has(text, "-n '__cupel_in go' -s q -l quiet -d 'don\\'t say: [much]'\n"));
    CHECK(has(text, "-s l -l language -x -a '" LANGUAGES "' -d 'which one'\n"));
    CHECK(has(text, "-s f -l file -r -F -d 'a file'\n"));
    CHECK(has(text, "-n '__cupel_in go' -F\n"));
    CHECK(has(text, "-n '__cupel_in tell' -a 'go stay tell pair'\n"));
    CHECK(!has(text, "__cupel_in stay"));
}
