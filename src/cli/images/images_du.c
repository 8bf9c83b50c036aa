/* `cupel images du`: the space that each image takes alone, and what it shares with others. Runs in
 * the cli process. */
#include <stdio.h>

#include "base/json.h"
#include "cli/images/images.h"
#include "cli/term/term.h"

static const char *size_of(const json_t *object, const char *name, struct buf *room)
{
    room->len = 0;
    cli_term_add_size(room, (double)json_integer_value(json_object_get(object, name)));
    return room->at;
}

static void print(const json_t *usage)
{
    own_buf own = BUF_INIT(64), shared = BUF_INIT(64);
    size_t i;
    json_t *row;
    printf("%s%-20s %10s  %10s%s\n", cli_term_style(1, CLI_BOLD), "name", "own", "shared",
           cli_term_style(1, CLI_PLAIN));
    json_array_foreach (json_object_get(usage, "images"), i, row) {
        struct str name = json_get_str(row, "name");
        printf("%-20s %10s  %10s\n", name.len > 0 ? cli_images_plain(name.at) : "(no name)",
               size_of(row, "own_bytes", &own), size_of(row, "shared_bytes", &shared));
    }
    printf("%-20s %10s\n", "(no image)", size_of(usage, "unused_bytes", &own));
    printf("%-20s %10s\n", "total", size_of(usage, "total_bytes", &own));
}

static int go(struct cli_images *images, const struct cli_images_options *options, struct err *err)
{
    own_json usage = NULL;
    if (images->store.dirfd < 0)
        usage = json_pack("{s:[],s:i,s:i}", "images", "unused_bytes", 0, "total_bytes", 0);
    else if (image_store_usage(&images->store, &usage, err) < 0)
        return -1;
    if (options->json)
        return cli_term_json(usage);
    print(usage);
    return 0;
}

int cli_images_du(int argc, char **argv)
{
    static const struct cli_images_verb verb = {
        .name = "du",
        .operands = "",
        .about = "The space on the disk: of an image alone, and shared with other images.",
        .notes = "\n'cupel images prune' frees what has no name, or no image.\n",
        .go = go,
    };
    return cli_images_do(&verb, argc, argv);
}
