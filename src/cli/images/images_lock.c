/* `cupel images lock NAME`. Runs in the cli process: the state folder is opened as the caller, then
 * rights are dropped, and only then the store is read. */
#include "cli/images/images_lock.h"

#include <stdio.h>

#include "base/json.h"
#include "base/own.h"
#include "box/host/box.h"
#include "cli/images/images_build.h"
#include "cli/link/state_files.h"
#include "cli/term/term.h"
#include "image/store/store.h"

#define AT(member) offsetof(struct cli_images_lock_options, member)

const struct opt cli_images_lock_table[] = {
    { "json", 0, NULL, OPT_FLAG, AT(json), "print it as one line; errors, too, are JSON" },
    { "quiet", 'q', NULL, OPT_FLAG, AT(quiet), "no notes on standard error" },
    { "help", 'h', NULL, OPT_FLAG, AT(help), "show this text" },
};
const size_t cli_images_lock_rows = array_len(cli_images_lock_table);

static void print_help(void)
{
    fputs("usage: cupel images lock NAME [OPTION]...\n"
          "\n"
          "Print the lock of an image: exact versions and hashes of the packages that were added.\n"
          "\n"
          "Options:\n",
          stdout);
    opt_print_help(cli_images_lock_table, cli_images_lock_rows, stdout);
    fputs("\nFor example:\n"
          "  cupel images lock data > data.lock\n"
          "  cupel images add data --lock data.lock\n",
          stdout);
}

static int show(const struct cli_images_lock_options *o, struct err *err)
{
    own_image_store store = IMAGE_STORE_INIT;
    own_image_entry image = IMAGE_ENTRY_INIT;
    if (o->operands.count != 1) {
        err_set(err, ERR_USAGE, "'cupel images lock' takes the name of one image");
        err_hint(err, "'cupel images' lists them");
        return -1;
    }
    own_fd state = cli_state_open();
    if (state < 0)
        return err_sys(err, "open the state folder");
    if (box_drop_door(err) < 0 || image_store_open(state, /* make= */ false, &store, err) < 0 ||
        image_store_find(&store, o->operands.at[0], &image, err) < 0)
        return -1;
    const json_t *lock = json_object_get(image.manifest, "lock");
    if (!json_is_object(lock)) {
        err_input(err, "image", o->operands.at[0], "an image that 'cupel images add' made",
                  "image '%.80s' has no lock", o->operands.at[0]);
        err_hint(err, "'cupel images show %.80s' says where it comes from", o->operands.at[0]);
        return -1;
    }
    if (o->json)
        return cli_term_json(lock);
    own_str text = json_write(lock, JSON_INDENT(1));
    cli_term_write(1, str_of(text));
    cli_term_write(1, STR("\n"));
    return cli_term_lost_output() ? 125 : 0;
}

int cli_images_lock(int argc, char **argv)
{
    struct cli_images_lock_options options = { 0 };
    struct err err = ERR_INIT;
    int code = 0;
    int parsed = opt_parse(cli_images_lock_table, cli_images_lock_rows, argc, argv, &options,
                           &options.operands, &err);
    cli_term_set_quiet(options.quiet);
    if (parsed == 0 && options.help)
        print_help();
    else if (parsed < 0 || (code = show(&options, &err)) < 0)
        code = cli_term_refuse(&err, options.json);
    opt_done(cli_images_lock_table, cli_images_lock_rows, &options);
    return code;
}
