/* The command line of most verbs of `cupel images`, and the order of steps: the state folder is
 * opened as the caller, then rights are dropped, and only then the store is read. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "box/host/box.h"
#include "cli/images/images.h"
#include "cli/link/state_files.h"
#include "cli/term/term.h"
#include "engine/engine.h"
#include "image/image.h"

#define AT(member) offsetof(struct cli_images_options, member)

const struct opt cli_images_options_table[] = {
    { "json", 0, NULL, OPT_FLAG, AT(json), "print JSON" },
    { "quiet", 'q', NULL, OPT_FLAG, AT(quiet), "no notes on standard error" },
    { "help", 'h', NULL, OPT_FLAG, AT(help), "show this text" },
};
const size_t cli_images_options_rows = array_len(cli_images_options_table);

/* --- the store --- */

int cli_images_open_state(struct cli_images *images, struct err *err)
{
    bool named;
    if (!engine_state_path(images->path, sizeof images->path, &named)) {
        err_set(err, ERR_HOST, "there is no state folder for images: HOME is not set");
        err_hint(err, "set CUPEL_STATE to a folder");
        return -1;
    }
    images->state = cli_state_open();
    if (images->state >= 0)
        return 0;
    err_sys(err, "open the state folder '%.200s'", images->path);
    err_hint(err, "make it writable for this user, or set CUPEL_STATE to another folder");
    return -1;
}

int cli_images_open_store(struct cli_images *images, bool make, struct err *err)
{
    if (box_drop_door(err) < 0)
        return -1;
    if (make)
        umask(077); /* the caller's could lock the store out of its own folders */
    if (image_store_open(images->state, make, &images->store, err) == 0)
        return 0;
    if (err->kind == ERR_INPUT) {
        *err = ERR_INIT;
        return 0;
    }
    if (err->kind == ERR_HOST && (err->sys == EACCES || err->sys == EPERM))
        err_hint(err, "the folder must belong to the uid of the service: 'chown %u %.200s'",
                 (unsigned)geteuid(), images->path);
    return -1;
}

void cli_images_close(struct cli_images *images)
{
    engine_close(images->engine);
    images->engine = NULL;
    image_store_close(&images->store);
    own_close_fd(&images->state);
}

int cli_images_host_digest(const struct cli_images *images, char out[72], struct err *err)
{
    own_image host = IMAGE_INIT;
    if (image_open("host", images->state, /* recompute= */ false, &host, err) < 0)
        return -1;
    snprintf(out, 72, "%s", host.digest);
    return 0;
}

static int check_digest(const struct cli_images *images, const struct image_entry *entry,
                        const char *name, const char *wanted, struct err *err)
{
    char host[72] = "", outside[72], tree[80];
    if (entry->on_host && cli_images_host_digest(images, host, err) < 0)
        return -1;
    image_store_digest(entry, host, outside);
    snprintf(tree, sizeof tree, "sha256:%s", entry->hex);
    if (strcmp(wanted, outside) == 0 || strcmp(wanted, tree) == 0)
        return 0;
    err_input(err, "image", name, outside, "image '%.64s' is now '%s'", entry->name, outside);
    err_hint(err, "name '%.64s' alone, or make the image again that had this digest", entry->name);
    return -1;
}

int cli_images_find(const struct cli_images *images, const char *name, struct image_entry *out,
                    struct err *err)
{
    own_image_entry entry = IMAGE_ENTRY_INIT;
    char alone[IMAGE_NAME_ROOM + 80];
    size_t len = strcspn(name, "@");
    snprintf(alone, sizeof alone, "%.*s", (int)(len < sizeof alone ? len : sizeof alone), name);
    if (strcmp(alone, "host") == 0) {
        err_input(err, "image", "host", "a stored image", "nothing of image 'host' is stored");
        err_hint(err, "it is the host's own /usr: 'cupel images show host' shows it");
        return -1;
    }
    if (images->store.dirfd < 0) {
        err_input(err, "image", alone, "host", "unknown image '%.80s': there are none but 'host'",
                  cli_images_plain(alone));
        err_hint(err, "'cupel images --help' lists the commands that make one");
        return -1;
    }
    if (image_store_find_any(&images->store, alone, &entry, err) < 0 ||
        (name[len] == '@' && check_digest(images, &entry, name, name + len + 1, err) < 0))
        return -1;
    *out = entry;
    entry = IMAGE_ENTRY_INIT;
    return 0;
}

const char *cli_images_plain(const char *text)
{
    static char rooms[4][400];
    static unsigned next;
    char *room = rooms[next++ % array_len(rooms)];
    str_plain(room, sizeof rooms[0], str_of(text ? text : "?"));
    return room;
}

/* As root it needs the caller's rights, and drops them. */
static int open_engine(struct cli_images *images, bool wanted)
{
    if (wanted)
        images->engine = engine_open(&(struct engine_options){ 0 }, &images->engine_err);
    return 0;
}

/* --- the command line --- */

static void print_help(const struct cli_images_verb *verb)
{
    printf("usage: cupel images %s [OPTION]...%s\n\n%s\n\nOptions:\n", verb->name, verb->operands,
           verb->about);
    opt_print_help(cli_images_options_table, cli_images_options_rows, stdout);
    fputs(verb->notes ? verb->notes : "", stdout);
}

static int parse(const struct cli_images_verb *verb, int argc, char **argv,
                 struct cli_images_options *out, struct err *err)
{
    if (opt_parse(cli_images_options_table, cli_images_options_rows, argc, argv, out, &out->names,
                  err) < 0)
        return -1;
    if (out->help)
        return 0;
    if (out->names.count < verb->least) {
        err_set(err, ERR_USAGE, "'cupel images %s' needs the name of an image", verb->name);
        err_hint(err, "usage: cupel images %s%s; 'cupel images ls' lists them", verb->name,
                 verb->operands);
        return -1;
    }
    if (out->names.count > verb->most)
        return err_set(err, ERR_USAGE, "'cupel images %s' takes no %soperand, but got '%.80s'",
                       verb->name, verb->most > 0 ? "further " : "", out->names.at[verb->most]);
    return 0;
}

static bool is_host(const struct opt_operands *names)
{
    return names->count == 1 && strncmp(names->at[0], "host", 4) == 0 &&
           (names->at[0][4] == 0 || names->at[0][4] == '@');
}

int cli_images_do(const struct cli_images_verb *verb, int argc, char **argv)
{
    struct cli_images_options options = { 0 };
    struct cli_images images = CLI_IMAGES_INIT;
    struct err err = ERR_INIT;
    int code = 0;
    int parsed = parse(verb, argc, argv, &options, &err);
    cli_term_set_quiet(options.quiet);
    if (parsed == 0 && options.help)
        print_help(verb);
    else if (parsed == 0 && verb->host && is_host(&options.names))
        code = verb->host(options.names.at[0], options.json);
    else if (parsed < 0 || cli_images_open_state(&images, &err) < 0 ||
             open_engine(&images, verb->engine) < 0 ||
             cli_images_open_store(&images, verb->make, &err) < 0 ||
             (code = verb->go(&images, &options, &err)) < 0)
        code = cli_term_refuse(&err, options.json);
    cli_images_close(&images);
    opt_done(cli_images_options_table, cli_images_options_rows, &options);
    return code;
}
