/* `cupel images import`: an archive or a folder becomes an image. Runs in the cli process: the
 * input is opened as the caller, then rights are dropped, and only then is a byte read. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "cli/images/images.h"
#include "cli/images/images_archive.h"
#include "cli/images/images_input.h"
#include "cli/term/term.h"
#include "image/archive/archive.h"

#define MINE struct cli_images_import_options

const struct opt cli_images_import_table[] = {
    { "name", 0, "NAME", OPT_TEXT, offsetof(MINE, name),
      "name of the image (the archive's own, or the file's)" },
    { "ref", 0, "REF", OPT_TEXT, offsetof(MINE, ref),
      "which image of an archive that holds several" },
    { "max-size", 0, "SIZE", OPT_BYTES, offsetof(MINE, max_size),
      "refuse an image that is larger unpacked (64G)" },
    { "json", 0, NULL, OPT_FLAG, offsetof(MINE, json), "print JSON" },
    { "quiet", 'q', NULL, OPT_FLAG, offsetof(MINE, quiet), "no notes on standard error" },
    { "help", 'h', NULL, OPT_FLAG, offsetof(MINE, help), "show this text" },
};
const size_t cli_images_import_rows = array_len(cli_images_import_table);

struct progress {
    int64_t next_ns;
    bool shown;
};

static void on_progress(void *user, int64_t bytes, int64_t entries)
{
    struct progress *progress = user;
    own_buf line = BUF_INIT(200);
    if (clock_now_ns() < progress->next_ns)
        return;
    progress->next_ns = clock_now_ns() + 100 * CLOCK_MS;
    buf_add_text(&line, "\r\x1b[K");
    if (entries > 0) {
        buf_printf(&line, "%lld entries, ", (long long)entries);
        cli_term_add_size(&line, (double)bytes);
    } else {
        buf_add_text(&line, "reading the archive");
    }
    cli_term_write(STDERR_FILENO, buf_str(&line));
    progress->shown = true;
}

static void end_progress(const struct progress *progress)
{
    if (progress->shown)
        cli_term_write(STDERR_FILENO, STR("\r\x1b[K"));
}

/* Text of an archive or a path as a name of an image: "docker.io/library/Debian:12" is "debian-12",
 * "./root.tar.gz" is "root". False: nothing of it is left. */
static bool name_from(const char *text, bool file, char out[IMAGE_NAME_ROOM])
{
    static const char *const ends[] = { ".gz", ".xz", ".zst", ".bz2", ".tgz", ".tar", ".oci" };
    struct str rest = str_of(text);
    while (rest.len > 1 && rest.at[rest.len - 1] == '/')
        rest.len--;
    const char *slash = memrchr(rest.at, '/', rest.len);
    if (slash)
        rest = (struct str){ slash + 1, rest.len - (size_t)(slash + 1 - rest.at) };
    for (int i = 0; file && i < 2; i++)
        for (size_t j = 0; j < array_len(ends); j++)
            if (str_ends(rest, str_of(ends[j])))
                rest.len -= strlen(ends[j]);
    if (!file && str_ends(rest, STR(":latest")))
        rest.len -= strlen(":latest");
    size_t len = 0;
    for (size_t i = 0; i < rest.len && len + 1 < IMAGE_NAME_ROOM; i++) {
        char c = rest.at[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (c >= 'A' && c <= 'Z')
            c = (char)(c - 'A' + 'a');
        else if (!letter && c != '.' && c != '_')
            c = '-';
        if (len > 0 || (c != '-' && c != '.' && c != '_'))
            out[len++] = c;
    }
    out[len] = '\0';
    return image_store_name_valid(out);
}

static int choose_name(const MINE *options, const char *path,
                       const struct image_import_report *report, char out[IMAGE_NAME_ROOM],
                       struct err *err)
{
    if (options->name) {
        snprintf(out, IMAGE_NAME_ROOM, "%s", options->name);
        return 0;
    }
    if (name_from(report->name, /* file= */ false, out) ||
        (strcmp(path, "-") != 0 && name_from(path, /* file= */ true, out)))
        return 0;
    err_input(err, "name", NULL, NULL, "the archive gives the image no name");
    err_hint(err, "give it one: cupel images import --name NAME %.100s", path);
    return -1;
}

static int check(const MINE *options, struct err *err)
{
    const char *name = options->name;
    if (name && !image_store_name_valid(name)) {
        err_input(err, "name", NULL, "a-z 0-9 . _ -, at most 63, not 'host'",
                  "'%.80s' is no name of an image", name);
        err_hint(err, "small letters, digits, '.', '_' and '-', for example my-image");
        return -1;
    }
    if (options->max_size.given && options->max_size.value < 1)
        return err_input(err, "max_size", NULL, "at least 1 byte", "no image has no bytes");
    return 0;
}

struct work {
    const MINE *options;
    const char *path;
    struct cli_images images;
    struct images_input input;
    struct image_import_report report;
    struct image_entry entry;
};

static void work_done(struct work *work)
{
    images_input_close(&work->input);
    cli_images_close(&work->images);
    image_import_report_done(&work->report);
    image_entry_done(&work->entry);
}

static int read_archive(struct work *work, struct image_build *build, struct err *err)
{
    struct progress progress = { 0 };
    bool watched = isatty(STDERR_FILENO) && !cli_term_is_quiet();
    const struct image_import_options options = {
        .ref = work->options->ref,
        .bytes_max = work->options->max_size.given ? (int64_t)work->options->max_size.value : 0,
        .progress = watched ? on_progress : NULL,
        .user = &progress,
    };
    (void)!image_import(build, work->input.fd, &options, &work->report, err);
    end_progress(&progress);
    return images_input_check(&work->input, err);
}

static int finish(struct work *work, struct image_build *build, struct err *err)
{
    char name[IMAGE_NAME_ROOM], source[300];
    const struct image_import_report *report = &work->report;
    if (choose_name(work->options, work->path, report, name, err) < 0)
        return -1;
    snprintf(source, sizeof source, "import of %s%s%s",
             strcmp(report->form, "root") == 0  ? "a root file system"
             : strcmp(report->form, "oci") == 0 ? "an OCI layout"
                                                : "docker save",
             *report->name ? ": " : "", report->name);
    json_object_set_new(report->facts, "source", json_string(source));
    json_object_set_new(report->facts, "layers", json_integer(report->layers));
    json_object_set_new(report->facts, "skipped", json_integer(report->skipped));
    return image_build_finish(build, name, report->facts, &work->entry, err);
}

static int import(struct work *work, struct err *err)
{
    struct cli_images *images = &work->images;
    struct image_build *build = NULL;
    if (cli_images_open_state(images, err) < 0 ||
        images_input_open(work->path, &work->input, err) < 0 ||
        cli_images_open_store(images, /* make= */ true, err) < 0 ||
        image_build_start(&images->store, NULL, &build, err) < 0)
        return -1;
    int rc = read_archive(work, build, err) < 0 ? -1 : finish(work, build, err);
    image_build_close(build);
    return rc;
}

static int show(const struct work *work)
{
    const struct image_entry *entry = &work->entry;
    const struct image_import_report *report = &work->report;
    char digest[72];
    if (work->options->json) {
        own_json out = json_pack("{s:s,s:O}", "image", entry->name, "manifest", entry->manifest);
        return cli_term_json(out);
    }
    snprintf(digest, sizeof digest, "sha256:%s", entry->hex);
    printf("%s%s%s %s\n", cli_term_style(1, CLI_BOLD), entry->name, cli_term_style(1, CLI_PLAIN),
           digest);
    if (report->skipped > 0)
        cli_term_note("%lld devices, pipes and sockets of the archive are not in the image",
                      (long long)report->skipped);
    return 0;
}

static void help(void)
{
    puts("usage: cupel images import [OPTION]... PATH|-\n\n"
         "Make an image of a docker save archive, an OCI layout (folder or tar) or a root file\n"
         "system (folder or tar), compressed by gzip, zstd, xz, bzip2 or not at all.\n\nOptions:");
    opt_print_help(cli_images_import_table, cli_images_import_rows, stdout);
}

int cli_images_import(int argc, char **argv)
{
    MINE options = { 0 };
    struct opt_operands operands;
    struct err err = ERR_INIT;
    int rc = opt_parse(cli_images_import_table, cli_images_import_rows, argc, argv, &options,
                       &operands, &err);
    cli_term_set_quiet(options.quiet);
    if (rc == 0 && options.help) {
        help();
        return 0;
    }
    if (rc == 0 && operands.count != 1)
        rc = err_set(&err, ERR_USAGE, "'cupel images import' takes one path, or - for a pipe");
    if (rc < 0 || check(&options, &err) < 0)
        return cli_term_refuse(&err, options.json);
    attr_cleanup(work_done) struct work work = { .options = &options, .path = operands.at[0],
                                                 .images = CLI_IMAGES_INIT,
                                                 .input = IMAGES_INPUT_INIT };
    rc = import(&work, &err);
    return rc < 0 ? cli_term_refuse(&err, options.json) : show(&work);
}
