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
#include "cli/images/images.h"
#include "cli/images/images_archive.h"
#include "cli/term/term.h"
#include "image/archive/archive.h"

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

/* An existing file keeps its bytes until the image is found. */
static int open_output(const MINE *options, bool *out_made, struct err *err)
{
    const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY;
    if (options->output && strcmp(options->output, "-") != 0) {
        int fd = open(options->output, flags | O_EXCL, 0666);
        *out_made = fd >= 0;
        if (fd < 0 && errno == EEXIST)
            fd = open(options->output, flags, 0666);
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

/* One that was found changed is refused here. */
static int find(struct cli_images *images, const char *name, struct image_entry *out,
                struct err *err)
{
    own_image_entry sound = IMAGE_ENTRY_INIT;
    char digest[72];
    if (cli_images_find(images, name, out, err) < 0)
        return -1;
    snprintf(digest, sizeof digest, "sha256:%s", out->hex);
    return image_store_find(&images->store, digest, &sound, err);
}

static int write_to(struct cli_images *images, const MINE *options, const char *name, int fd,
                    struct image_entry *entry, struct err *err)
{
    struct stat st;
    if (cli_images_open_store(images, /* make= */ false, err) < 0 ||
        find(images, name, entry, err) < 0 || fstat(fd, &st) < 0)
        return -1;
    bool regular = S_ISREG(st.st_mode) && options->output;
    if (regular && ftruncate(fd, 0) < 0)
        return err_sys(err, "make '%.200s' empty", options->output);
    if (image_export(&images->store, entry, options->added, fd, err) == 0)
        return 0;
    if (regular)
        (void)!ftruncate(fd, 0); /* half an archive looks like one */
    return -1;
}

static int export(struct cli_images *images, const MINE *options, const char *name,
                  struct image_entry *entry, struct err *err)
{
    bool made = false;
    if (cli_images_open_state(images, err) < 0)
        return -1;
    own_fd fd = open_output(options, &made, err);
    if (fd < 0)
        return -1;
    int rc = write_to(images, options, name, fd, entry, err);
    if (rc < 0 && made)
        unlink(options->output); /* as root, the rights to do so are gone, and it stays empty */
    return rc;
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
    struct cli_images images = CLI_IMAGES_INIT;
    if (rc == 0)
        rc = export(&images, &options, operands.at[0], &entry, &err);
    cli_images_close(&images);
    return rc < 0 ? cli_term_refuse(&err, options.json) : show(&options, &entry);
}
