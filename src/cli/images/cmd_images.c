/* `cupel images`: alone, all images, the host's found again from its content; else a verb of the
 * table in images_commands.c. Runs in the cli process. Runs trust the host's cached digest; this
 * command renews it. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/cli.h"
#include "cli/images/images.h"
#include "cli/list/list_options.h"
#include "cli/term/term.h"
#include "engine/engine.h"

int cli_images_host(const char *name, json_t **out, struct err *err)
{
    struct engine *engine = engine_open(&(struct engine_options){ 0 }, err);
    int rc = engine ? engine_image(engine, name, /* recompute= */ true, out, err) : -1;
    engine_close(engine);
    return rc;
}

void cli_images_print_host(const json_t *manifest)
{
    size_t i;
    json_t *language, *font;
    printf("%s%s%s\n  digest    %s\n  languages", cli_term_style(1, CLI_BOLD),
           cli_images_plain(json_get_str(manifest, "name").at), cli_term_style(1, CLI_PLAIN),
           cli_images_plain(json_get_str(manifest, "digest").at));
    json_array_foreach (json_object_get(manifest, "languages"), i, language)
        printf("%s %s %s (%zu packages)", i > 0 ? "," : "",
               cli_images_plain(json_get_str(language, "name").at),
               cli_images_plain(json_get_str(language, "version").at),
               json_object_size(json_object_get(language, "packages")));
    printf("\n  fonts    ");
    json_array_foreach (json_object_get(manifest, "fonts"), i, font)
        printf("%s %s", i > 0 ? "," : "", cli_images_plain(json_string_value(font)));
    putchar('\n');
}

static void print_help(void)
{
    fputs("usage: cupel images [OPTION]...\n"
          "       cupel images COMMAND [OPTION]... [NAME]...\n"
          "\n"
          "Without a command: all images; the host's digest and content are found again.\n"
          "\n"
          "Commands:\n",
          stdout);
    for (size_t i = 0; i < cli_images_commands.count; i++)
        printf("  %-11s %s\n", cli_images_commands.at[i].name, cli_images_commands.at[i].summary);
    fputs("\nOptions:\n", stdout);
    opt_print_help(cli_list_options_table, cli_list_options_rows, stdout);
    fputs("\ncupel images COMMAND --help shows a command's options.\n", stdout);
}

static const char *verb_name(const void *table, size_t i)
{
    return ((const struct cli_command *)table)[i].name;
}

static int refuse_verb(const char *word, struct err *err)
{
    const char *near = opt_nearest(word, cli_images_commands.count, verb_name,
                                   cli_images_commands.at);
    err_set(err, ERR_USAGE, "unknown command 'images %.80s'", word);
    if (near)
        err_hint(err, "did you mean cupel images %s?", near);
    else
        err_hint(err, "cupel images --help lists the commands");
    return cli_term_refuse(err, /* json= */ false);
}

int cli_cmd_images(int argc, char **argv)
{
    struct cli_list_options options = { 0 };
    struct opt_operands words;
    struct err err = ERR_INIT;
    for (size_t i = 0; argc > 0 && i < cli_images_commands.count; i++)
        if (strcmp(argv[0], cli_images_commands.at[i].name) == 0)
            return cli_images_commands.at[i].run(argc - 1, argv + 1);
    if (opt_parse(cli_list_options_table, cli_list_options_rows, argc, argv, &options, &words,
                  &err) < 0)
        return cli_term_refuse(&err, options.json);
    cli_term_set_quiet(options.quiet);
    if (options.help) {
        print_help();
        return 0;
    }
    return words.count > 0 ? refuse_verb(words.at[0], &err) : cli_images_all(options.json);
}
