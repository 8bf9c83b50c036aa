/* `cupel images export`: an image as an archive that others load. Runs in the cli process: the file
 * is opened as the caller, then rights are dropped. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "box/host/box.h"
#include "cli/images/images_archive.h"
#include "cli/link/state_files.h"
#include "cli/term/term.h"
#include "image/archive/archive.h"
#include "image/store/store.h"

#define MINE struct cli_images_export_options

const struct opt cli_images_export_table[] = {
    { "output", 'o', "FILE", OPT_TEXT, offsetof(MINE, output),
      "write to this file (standard output, if it is no terminal)" },
    { "added", 0, NULL, OPT_FLAG, offsetof(MINE, added),
      "of an image on the host: what it adds, though that is no whole system" },
    { "json", 0, NULL, OPT_FLAG, offsetof(MINE, json), "print JSON; needs --output" },
    { "quiet", 'q', NULL, OPT_FLAG, offsetof(MINE, quiet), "no notes on standard error" },
    { "help", 'h', NULL, OPT_FLAG, offsetof(MINE, help), "show this text" },
};
const size_t cli_images_export_rows = array_len(cli_images_export_table);

static int open_output(const MINE *options, struct err *err)
{
    if (options->output && strcmp(options->output, "-") != 0) {
        int fd = open(options->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
        return fd >= 0 ? fd : err_sys(err, "open '%.200s'", options->output);
    }
    if (isatty(STDOUT_FILENO)) {
        err_set(err, ERR_USAGE, "standard output is a terminal, and an archive is binary");
        err_hint(err, "name a file: cupel images export NAME -o FILE");
        return -1;
    }
    if (options->json)
        return err_set(err, ERR_USAGE, "with --json, the archive needs a file: --output FILE");
    int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    return fd >= 0 ? fd : err_sys(err, "open standard output");
}

static int find(int state, const char *name, struct image_store *store, struct image_entry *out,
                struct err *err)
{
    if (image_store_open(state, /* make= */ false, store, err) < 0)
        return -1;
    return image_store_find(store, name, out, err);
}

/* A file that an earlier refusal would leave empty is opened last, and one that is half written is
 * made empty: its folder is the caller's, and the rights to remove it are gone. */
static int export(const MINE *options, const char *name, struct image_entry *entry, struct err *err)
{
    own_image_store store = IMAGE_STORE_INIT;
    own_fd state = cli_state_open(), out = -1;
    struct stat st;
    if (state < 0)
        return err_sys(err, "open the state folder");
    if (strcmp(name, "host") == 0) {
        err_input(err, "image", "\"host\"", NULL, "image 'host' is the host's own /usr");
        err_hint(err, "cupel images lists those that can be exported");
        return -1;
    }
    out = open_output(options, err);
    if (out < 0 || box_drop_door(err) < 0 || find(state, name, &store, entry, err) < 0)
        return -1;
    if (image_export(&store, entry, options->added, out, err) == 0)
        return 0;
    if (fstat(out, &st) == 0 && S_ISREG(st.st_mode) && options->output)
        (void)!ftruncate(out, 0);
    return -1;
}

static int show(const MINE *options, const struct image_entry *entry)
{
    char digest[72];
    struct stat st;
    if (!options->json)
        return 0;
    snprintf(digest, sizeof digest, "sha256:%s", entry->hex);
    int64_t bytes = stat(options->output, &st) == 0 ? st.st_size : 0;
    own_json out = json_pack("{s:s,s:s,s:s,s:I}", "image", entry->name, "digest", digest, "output",
                             options->output, "bytes", (json_int_t)bytes);
    return cli_term_json(out);
}

static void help(void)
{
    puts("usage: cupel images export [OPTION]... NAME\n\n"
         "Write an image as the tar of an OCI layout, which docker, podman and skopeo load.\n\n"
         "Options:");
    opt_print_help(cli_images_export_table, cli_images_export_rows, stdout);
}

int cli_images_export(int argc, char **argv)
{
    MINE options = { 0 };
    struct opt_operands operands;
    struct err err = ERR_INIT;
    own_image_entry entry = IMAGE_ENTRY_INIT;
    int rc = opt_parse(cli_images_export_table, cli_images_export_rows, argc, argv, &options,
                       &operands, &err);
    cli_term_set_quiet(options.quiet);
    if (rc == 0 && options.help) {
        help();
        return 0;
    }
    if (rc == 0 && operands.count != 1)
        rc = err_set(&err, ERR_USAGE, "'cupel images export' takes the name of one image");
    if (rc < 0 || export(&options, operands.at[0], &entry, &err) < 0)
        return cli_term_refuse(&err, options.json);
    return show(&options, &entry);
}
