/* `cupel images lock NAME`. Runs in the cli process, without rights; the manifest may come from an
 * archive of anybody. */
#include <stdio.h>

#include "base/json.h"
#include "base/own.h"
#include "cli/images/images.h"
#include "cli/term/term.h"
#include "image/make/lock.h"

static int go(struct cli_images *images, const struct cli_images_options *options, struct err *err)
{
    const char *name = options->names.at[0];
    own_image_entry image = IMAGE_ENTRY_INIT;
    own_make_lock checked = { 0 };
    if (cli_images_find(images, name, &image, err) < 0)
        return -1;
    const json_t *lock = json_object_get(image.manifest, "lock");
    if (!json_is_object(lock)) {
        err_input(err, "image", name, "an image that 'cupel images add' made",
                  "image '%.80s' has no lock", name);
        err_hint(err, "'cupel images show %.80s' says where it comes from", name);
        return -1;
    }
    if (make_lock_from_json(lock, &checked, err) < 0)
        return err_wrap(err, "the lock of '%.80s'", name);
    own_json clean = make_lock_to_json(&checked);
    if (options->json)
        return cli_term_json(clean);
    own_str text = json_write(clean, JSON_INDENT(1));
    cli_term_write(1, str_of(text));
    cli_term_write(1, STR("\n"));
    return 0;
}

int cli_images_lock(int argc, char **argv)
{
    static const struct cli_images_verb verb = {
        .name = "lock",
        .operands = " NAME",
        .about = "Print the lock of an image: exact versions and hashes of what was added to it.",
        .least = 1,
        .most = 1,
        .notes = "\nFor example:\n"
                 "  cupel images lock data > data.lock\n"
                 "  cupel images add data --lock data.lock\n",
        .go = go,
    };
    return cli_images_do(&verb, argc, argv);
}
