/* `cupel images` and `cupel images ls`: one row for each image. The list needs no engine: of the
 * host it shows what the state folder remembers. Runs in the cli process. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/images/images.h"
#include "cli/term/term.h"
#include "engine/engine.h"
#include "image/image.h"

#define SHORT_DIGEST (7 + 12)

/* With the digest that runs see: of an image on the host it covers the host's. */
static void set_digest(json_t *row, const char *host_digest)
{
    struct image_entry entry = IMAGE_ENTRY_INIT;
    struct str tree = json_get_str(row, "digest");
    char digest[72];
    if (tree.len != 71)
        return;
    memcpy(entry.hex, tree.at + 7, IMAGE_HEX_ROOM);
    entry.on_host = str_is(json_get_str(row, "base"), "host");
    image_store_digest(&entry, host_digest, digest);
    json_object_set(row, "tree", json_object_get(row, "digest"));
    json_object_set_new(row, "digest", json_string(digest));
}

static void add_language(json_t *list, const char *name, const char *path, const char *version)
{
    if (path[0])
        json_array_append_new(list, json_pack("{s:s,s:s}", "name", name, "version", version));
}

/* As the state folder remembers from a look into the image; else as its files tell, without
 * versions that nobody asked for. */
static json_t *languages_of(const struct image *image)
{
    char version[16] = "";
    const struct image_facts *facts = &image->facts;
    json_t *known = json_object_get(image->manifest, "languages");
    if (json_is_array(known))
        return json_incref(known);
    json_t *list = json_array();
    if (facts->python_minor > 0)
        snprintf(version, sizeof version, "3.%d", facts->python_minor);
    add_language(list, "python", facts->python, version);
    add_language(list, "javascript", facts->node, "");
    add_language(list, "bash", facts->bash, "");
    return list;
}

static void set_languages(const struct cli_images *images, json_t *row)
{
    own_image image = IMAGE_INIT;
    struct err ignored = ERR_INIT;
    if (image_open(json_get_str(row, "name").at, images->state, /* recompute= */ false, &image,
                   &ignored) == 0)
        json_object_set_new(row, "languages", languages_of(&image));
}

static int add_stored(const struct cli_images *images, const char *host_digest, json_t *list,
                      struct err *err)
{
    own_json stored = NULL;
    size_t i;
    json_t *row;
    if (images->store.dirfd < 0)
        return 0;
    if (image_store_list(&images->store, &stored, err) < 0)
        return -1;
    json_array_foreach (stored, i, row) {
        set_digest(row, host_digest);
        set_languages(images, row);
        json_array_append(list, row);
    }
    return 0;
}

static void print_languages(const json_t *row)
{
    size_t i;
    json_t *language;
    json_array_foreach (json_object_get(row, "languages"), i, language) {
        struct str version = json_get_str(language, "version");
        printf("%s%s%s%s", i > 0 ? ", " : "", cli_images_plain(json_get_str(language, "name").at),
               version.len > 0 ? " " : "", cli_images_plain(version.at));
    }
}

static void print_row(const json_t *row)
{
    own_buf size = BUF_INIT(64);
    const json_t *bytes = json_object_get(row, "bytes");
    if (json_is_integer(bytes))
        cli_term_add_size(&size, (double)json_integer_value(bytes));
    else
        buf_add_text(&size, "-");
    struct str base = json_get_str(row, "base"), created = json_get_str(row, "created");
    printf("%-20s %.*s  %-4s %10s  %-10.10s  ", cli_images_plain(json_get_str(row, "name").at),
           SHORT_DIGEST, cli_images_plain(json_get_str(row, "digest").at),
           base.len ? cli_images_plain(base.at) : "-", size.at,
           created.len ? cli_images_plain(created.at) : "-");
    if (json_get_str(row, "changed").len > 0)
        printf("refused: %s", cli_images_plain(json_get_str(row, "changed").at));
    else
        print_languages(row);
    putchar('\n');
}

static void print_table(const json_t *list, size_t from)
{
    printf("%s%-20s %-19s  %-4s %10s  %-10s  %s%s\n", cli_term_style(1, CLI_BOLD), "name", "digest",
           "base", "size", "created", "languages", cli_term_style(1, CLI_PLAIN));
    for (size_t i = from; i < json_array_size(list); i++)
        print_row(json_array_get(list, i));
}

static int show(json_t *list, bool json, size_t from)
{
    if (json) {
        own_json out = json_pack("{s:O}", "images", list);
        return cli_term_json(out);
    }
    print_table(list, from);
    return 0;
}

static int go(struct cli_images *images, const struct cli_images_options *options, struct err *err)
{
    own_image host = IMAGE_INIT;
    own_json list = json_array();
    if (image_open("host", images->state, /* recompute= */ false, &host, err) < 0)
        return -1;
    json_t *row = json_pack("{s:s,s:s,s:n,s:n,s:n,s:n,s:n,s:n,s:n}", "name", "host", "digest",
                            host.digest, "tree", "base", "bytes", "files", "created", "source",
                            "changed");
    json_object_set_new(row, "languages", languages_of(&host));
    json_array_append_new(list, row);
    if (add_stored(images, host.digest, list, err) < 0)
        return -1;
    return show(list, options->json, 0);
}

int cli_images_ls(int argc, char **argv)
{
    static const struct cli_images_verb verb = {
        .name = "ls",
        .operands = "",
        .about = "The images, with their digests and sizes. Of the host, what is remembered.",
        .go = go,
    };
    return cli_images_do(&verb, argc, argv);
}

/* --- alone --- */

static int find_all(struct cli_images *images, json_t *list, struct err *err)
{
    bool named;
    json_t *host = NULL;
    /* Without a state folder there is the host alone. */
    if (engine_state_path(images->path, sizeof images->path, &named) &&
        cli_images_open_state(images, err) < 0 && named)
        return -1;
    *err = ERR_INIT;
    if (cli_images_host("host", &host, err) < 0)
        return -1;
    json_array_append_new(list, host);
    if (images->state >= 0 && cli_images_open_store(images, /* make= */ false, err) < 0)
        return -1;
    return add_stored(images, json_get_str(host, "digest").at, list, err);
}

int cli_images_all(bool json)
{
    struct cli_images images = CLI_IMAGES_INIT;
    struct err err = ERR_INIT;
    own_json list = json_array();
    int code = 0;
    if (find_all(&images, list, &err) < 0) {
        code = cli_term_refuse(&err, json);
    } else if (json) {
        code = show(list, json, 0);
    } else {
        cli_images_print_host(json_array_get(list, 0));
        if (json_array_size(list) > 1) {
            putchar('\n');
            print_table(list, 1);
        }
    }
    cli_images_close(&images);
    return code;
}
