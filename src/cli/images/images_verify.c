/* `cupel images verify`: every file of an image is read and compared with its hash. Runs in the cli
 * process. */
#include <stdint.h>
#include <stdio.h>

#include "base/json.h"
#include "cli/images/images.h"
#include "cli/term/term.h"

struct found {
    json_t *list;
    bool differs;
    bool json;
};

/* An image that was marked before stays refused, whatever is there now. */
static int verify_one(struct cli_images *images, const struct image_entry *entry,
                      struct found *found, struct err *err)
{
    own_image_entry again = IMAGE_ENTRY_INIT;
    char digest[80];
    struct err bad = ERR_INIT;
    snprintf(digest, sizeof digest, "sha256:%s", entry->hex);
    int rc = image_store_verify(&images->store, entry, &bad);
    if (rc == 0)
        rc = image_store_find(&images->store, digest, &again, &bad);
    if (rc < 0 && bad.kind != ERR_INPUT) {
        *err = bad;
        return -1;
    }
    found->differs |= rc < 0;
    json_array_append_new(found->list,
                          json_pack("{s:s,s:s,s:b,s:o}", "name", entry->name, "tree", digest, "ok",
                                    rc == 0, "reason", json_text_or_null(bad.text)));
    if (found->json)
        return 0;
    if (rc == 0)
        printf("%s: ok\n", entry->name[0] ? entry->name : digest);
    else
        cli_term_refuse(&bad, /* json= */ false);
    return 0;
}

static int verify_named(struct cli_images *images, const char *name, struct found *found,
                        struct err *err)
{
    own_image_entry entry = IMAGE_ENTRY_INIT;
    return cli_images_find(images, name, &entry, err) < 0 ||
                   verify_one(images, &entry, found, err) < 0
               ? -1
               : 0;
}

static int verify_all(struct cli_images *images, struct found *found, struct err *err)
{
    own_json list = NULL;
    size_t i;
    json_t *row;
    if (image_store_list(&images->store, &list, err) < 0)
        return -1;
    json_array_foreach (list, i, row)
        if (verify_named(images, json_get_str(row, "name").at, found, err) < 0)
            return -1;
    return 0;
}

static int go(struct cli_images *images, const struct cli_images_options *options, struct err *err)
{
    own_json list = json_array();
    struct found found = { .list = list, .json = options->json };
    for (size_t i = 0; i < options->names.count; i++)
        if (verify_named(images, options->names.at[i], &found, err) < 0)
            return -1;
    if (options->names.count == 0 && verify_all(images, &found, err) < 0)
        return -1;
    if (options->json) {
        own_json out = json_pack("{s:O}", "images", list);
        int code = cli_term_json(out);
        if (code != 0)
            return code;
    }
    return found.differs;
}

int cli_images_verify(int argc, char **argv)
{
    static const struct cli_images_verb verb = {
        .name = "verify",
        .operands = " [NAME]...",
        .about = "Read every file of the images and compare it with its hash.",
        .most = SIZE_MAX,
        .notes = "\nThe exit code is 0 if all are as they were made, 1 if one differs: it is then\n"
                 "refused everywhere until it is made again.\n",
        .make = true,
        .go = go,
    };
    return cli_images_do(&verb, argc, argv);
}
