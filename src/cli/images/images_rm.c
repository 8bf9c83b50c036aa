/* `cupel images rm` and `cupel images prune`. Runs in the cli process. */
#include <stdint.h>
#include <stdio.h>

#include "base/json.h"
#include "cli/images/images.h"
#include "cli/term/term.h"

static int check_all(struct cli_images *images, const struct opt_operands *names, json_t *out,
                     struct err *err)
{
    for (size_t i = 0; i < names->count; i++) {
        own_image_entry entry = IMAGE_ENTRY_INIT;
        char digest[80];
        if (cli_images_find(images, names->at[i], &entry, err) < 0)
            return -1;
        snprintf(digest, sizeof digest, "sha256:%s", entry.hex);
        json_array_append_new(out, json_pack("{s:s,s:s}", "name", entry.name, "tree", digest));
    }
    return 0;
}

static int go_rm(struct cli_images *images, const struct cli_images_options *options,
                 struct err *err)
{
    own_json removed = json_array();
    size_t i;
    json_t *row;
    if (check_all(images, &options->names, removed, err) < 0)
        return -1; /* none was removed */
    json_array_foreach (removed, i, row) {
        struct str name = json_get_str(row, "name");
        struct err gone = ERR_INIT;
        /* The same name twice is gone after the first. */
        if (name.len > 0 && image_store_remove(&images->store, name.at, &gone) < 0 &&
            gone.kind != ERR_INPUT) {
            *err = gone;
            return -1;
        }
    }
    if (options->json) {
        own_json out = json_pack("{s:O}", "removed", removed);
        return cli_term_json(out);
    }
    cli_term_note("'cupel images prune' frees the space of what no name leads to");
    return 0;
}

int cli_images_rm(int argc, char **argv)
{
    static const struct cli_images_verb verb = {
        .name = "rm",
        .operands = " NAME...",
        .about = "Remove images: new runs no longer find them, and boxes that use them go on.",
        .least = 1,
        .most = SIZE_MAX,
        .notes = "\nIf one of several does not exist, none is removed. The space is freed by\n"
                 "cupel images prune.\n",
        .make = true,
        .go = go_rm,
    };
    return cli_images_do(&verb, argc, argv);
}

/* --- prune --- */

static int go_prune(struct cli_images *images, const struct cli_images_options *options,
                    struct err *err)
{
    int64_t bytes = 0, count = 0;
    own_buf size = BUF_INIT(64);
    if (image_store_prune(&images->store, &bytes, &count, err) < 0)
        return -1;
    if (options->json) {
        own_json out = json_pack("{s:I,s:I}", "images", (json_int_t)count, "freed_bytes",
                                 (json_int_t)bytes);
        return cli_term_json(out);
    }
    cli_term_add_size(&size, (double)bytes);
    printf("%lld image%s removed, %s freed\n", (long long)count, count == 1 ? "" : "s", size.at);
    return 0;
}

int cli_images_prune(int argc, char **argv)
{
    static const struct cli_images_verb verb = {
        .name = "prune",
        .operands = "",
        .about = "Free the space of images without a name, and of files without an image.",
        .notes = "\nWhat running boxes use stays until the next time.\n",
        .make = true,
        .go = go_prune,
    };
    return cli_images_do(&verb, argc, argv);
}
