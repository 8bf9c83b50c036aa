/* `cupel languages`: the languages and their packages. Runs in the cli process; the facts are the
 * image's manifest, probed in a box. */
#include <stdio.h>

#include "base/json.h"
#include "cli/cli.h"
#include "cli/list/list_options.h"
#include "cli/term/term.h"
#include "engine/engine.h"

static void print_language(const json_t *language)
{
    const char *name = json_string_value(json_object_get(language, "name"));
    const char *version = json_string_value(json_object_get(language, "version"));
    printf("%s%s%s %s\n", cli_term_style(1, CLI_BOLD), name ? name : "?",
           cli_term_style(1, CLI_PLAIN), version ? version : "");
    const char *package;
    json_t *of;
    json_object_foreach (json_object_get(language, "packages"), package, of)
        printf("  %-20s %s\n", package, json_string_value(of) ? json_string_value(of) : "");
}

static int show(const json_t *manifest, bool json)
{
    const json_t *languages = json_object_get(manifest, "languages");
    if (json) {
        own_json out = json_pack("{s:O?,s:O?}", "image", json_object_get(manifest, "name"),
                                 "languages", languages);
        return cli_term_json(out);
    }
    size_t i;
    json_t *language;
    json_array_foreach (languages, i, language)
        print_language(language);
    return 0;
}

int cli_cmd_languages(int argc, char **argv)
{
    struct cli_list_options options = { 0 };
    struct err err = ERR_INIT;
    if (cli_list_options_parse(argc, argv, "cupel languages",
                               "Languages of image host, their versions and packages.", &options,
                               &err) < 0)
        return cli_term_refuse(&err, options.json);
    if (options.help)
        return 0;
    struct engine *engine = engine_open(&(struct engine_options){ 0 }, &err);
    own_json manifest = NULL;
    int failed = !engine || engine_image(engine, "host", /* recompute= */ false, &manifest, &err);
    int code = failed ? cli_term_refuse(&err, options.json) : show(manifest, options.json);
    engine_close(engine);
    return code;
}
