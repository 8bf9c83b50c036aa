/* `cupel images`: the images, with digests computed from their content. Runs in the cli process.
 * Runs trust the cache; this command renews it. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/cli.h"
#include "cli/images/images_pull.h"
#include "cli/list/list_options.h"
#include "cli/term/term.h"
#include "engine/engine.h"

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "?";
}

static int show(const json_t *manifest, bool json)
{
    if (json) {
        own_json out = json_pack("{s:[O]}", "images", manifest);
        return cli_term_json(out);
    }
    printf("%s%s%s\n  digest    %s\n  languages", cli_term_style(1, CLI_BOLD),
           text_of(manifest, "name"), cli_term_style(1, CLI_PLAIN), text_of(manifest, "digest"));
    size_t i;
    json_t *language;
    json_array_foreach (json_object_get(manifest, "languages"), i, language)
        printf("%s %s %s (%zu packages)", i > 0 ? "," : "", text_of(language, "name"),
               text_of(language, "version"),
               json_object_size(json_object_get(language, "packages")));
    json_t *font;
    printf("\n  fonts    ");
    json_array_foreach (json_object_get(manifest, "fonts"), i, font)
        printf("%s %s", i > 0 ? "," : "", json_string_value(font) ? json_string_value(font) : "?");
    putchar('\n');
    return 0;
}

int cli_cmd_images(int argc, char **argv)
{
    struct cli_list_options options = { 0 };
    struct err err = ERR_INIT;
    if (argc > 0 && strcmp(argv[0], "extras") == 0)
        return cli_cmd_extras(argc - 1, argv + 1);
    if (argc > 0 && strcmp(argv[0], "pull") == 0)
        return cli_images_pull(argc - 1, argv + 1);
    if (cli_list_options_parse(argc, argv, "cupel images",
                               "Images, their digests (computed again) and their content.\n\n"
                               "Commands:\n"
                               "  extras  packages that can be added, and the command for it\n"
                               "  pull    load an image from a registry",
                               &options, &err) < 0)
        return cli_term_refuse(&err, options.json);
    if (options.help)
        return 0;
    struct engine *engine = engine_open(&(struct engine_options){ 0 }, &err);
    own_json manifest = NULL;
    int failed = !engine || engine_image(engine, "host", /* recompute= */ true, &manifest, &err);
    int code = failed ? cli_term_refuse(&err, options.json) : show(manifest, options.json);
    engine_close(engine);
    return code;
}
