/* `cupel images add`. Runs in the cli process: files and settings are opened as the caller, then
 * rights are dropped, and only then a byte of them is read, and the store written. */
#include "cli/images/images_add.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "cli/cli.h"
#include "cli/images/images_build.h"
#include "cli/images/images_progress.h"
#include "cli/term/term.h"
#include "image/make/make.h"

#define FILES_MAX 16
#define TIMEOUT_MOST 86400
#define AT(member) offsetof(struct cli_images_add_options, member)

const struct opt cli_images_add_table[] = {
    { "pip", 0, "PACKAGE", OPT_LIST, AT(pip), "add a package of Python, such as 'polars>=1'" },
    { "requirements", 'r', "FILE", OPT_LIST, AT(requirements),
      "add what this requirements.txt names" },
    { "npm", 0, "PACKAGE", OPT_LIST, AT(npm), "add a package of JavaScript, such as zod@4" },
    { "apt", 0, "PACKAGE", OPT_LIST, AT(apt), "add a package of Debian, without its scripts" },
    { "from", 0, "IMAGE", OPT_TEXT, AT(from), "add to this image; by default to the host" },
    { "lock", 0, "FILE", OPT_TEXT, AT(lock), "make the image of this lock again" },
    { "timeout", 't', "S", OPT_NUMBER, AT(timeout_s), "give up after so long; 1800" },
    { "verbose", 'v', NULL, OPT_FLAG, AT(verbose), "show all that pip, npm and apt say" },
    { "json", 0, NULL, OPT_FLAG, AT(json), "print the answer as JSON and nothing else" },
    { "quiet", 'q', NULL, OPT_FLAG, AT(quiet), "no progress and no notes on standard error" },
    { "help", 'h', NULL, OPT_FLAG, AT(help), "show this text" },
};
const size_t cli_images_add_rows = array_len(cli_images_add_table);

static void print_help(void)
{
    fputs("usage: cupel images add NAME [OPTION]...\n"
          "\n"
          "Make an image of packages, on top of the host or of another image.\n"
          "\n"
          "Options:\n",
          stdout);
    opt_print_help(cli_images_add_table, cli_images_add_rows, stdout);
    fputs("\nNo code of a package runs: wheels alone, no install scripts. The indexes are those\n"
          "that pip, npm and apt of this host are set to. For example:\n"
          "  cupel images add data --pip 'polars>=1' --pip -r requirements.txt --npm zod\n"
          "  cupel images lock data > data.lock\n"
          "  cupel images add data --lock data.lock\n",
          stdout);
}

/* "--pip -r FILE" is "-r FILE". */
static int drop_pip_before_r(int argc, char **argv)
{
    int kept = 0;
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--") == 0)
            return argc; /* argv is whole up to here, or shorter below */
        if (strcmp(argv[i], "--pip") == 0 && i + 1 < argc && strncmp(argv[i + 1], "-r", 2) == 0)
            continue;
        argv[kept++] = argv[i];
    }
    return kept;
}

static int check(const struct cli_images_add_options *o, struct err *err)
{
    const struct opt_number *timeout = &o->timeout_s;
    size_t asked = o->pip.count + o->npm.count + o->apt.count + o->requirements.count;
    if (o->operands.count != 1) {
        err_set(err, ERR_USAGE,
                o->operands.count ? "'cupel images add' takes one name, but got "
                                    "'%.80s' too"
                                  : "'cupel images add' needs a name for the image",
                o->operands.count ? o->operands.at[1] : "");
        err_hint(err, "cupel images add NAME --pip PACKAGE");
        return -1;
    }
    if (asked == 0 && !o->lock) {
        err_set(err, ERR_USAGE, "'cupel images add' needs a package to add");
        err_hint(err, "name one with --pip, --npm, --apt or -r, or a lock with --lock");
        return -1;
    }
    if (asked > 0 && o->lock)
        return err_set(err, ERR_USAGE, "--lock says all that is added: no package beside it");
    if (timeout->given && !(timeout->value >= 1 && timeout->value <= TIMEOUT_MOST))
        return err_input(err, "timeout", NULL, "1 to 86400",
                         "option '--timeout' is a number of seconds, 1 to %d", TIMEOUT_MOST);
    if (o->requirements.count > FILES_MAX)
        return err_input(err, "requirements", NULL, "at most 16 files",
                         "option '-r' is there more than %d times", FILES_MAX);
    return 0;
}

/* ---- files ---- */

static int open_file(const char *path, struct err *err)
{
    struct stat info;
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0 && fstat(fd, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISFIFO(info.st_mode))
        return err_set(err, ERR_INPUT, "'%.200s' is not a regular file", path);
    if (fd < 0) {
        int kind = errno == ENOENT ? ERR_ABSENT : ERR_INPUT;
        return err_set(err, kind, "open '%.200s': %s", path, strerror(errno));
    }
    return fcntl(fd, F_SETFL, 0) < 0 ? err_sys(err, "open '%.200s'", path) : take_fd(&fd);
}

static int read_file(int fd, const char *path, struct buf *out, struct err *err)
{
    if (buf_read(out, fd) == 0)
        return 0;
    if (errno == EFBIG)
        return err_set(err, ERR_LIMIT, "'%.200s' has more than %zu bytes", path, out->max);
    return err_sys(err, "read '%.200s'", path);
}

struct add_files {
    int requirements[FILES_MAX];
    int lock;
};

static int open_files(const struct cli_images_add_options *o, struct add_files *files,
                      struct err *err)
{
    for (size_t i = 0; i < o->requirements.count; i++)
        if ((files->requirements[i] = open_file(o->requirements.at[i], err)) < 0)
            return -1;
    if (o->lock && (files->lock = open_file(o->lock, err)) < 0)
        return -1;
    return 0;
}

static void close_files(struct add_files *files)
{
    for (size_t i = 0; i < FILES_MAX; i++)
        own_close_fd(&files->requirements[i]);
    own_close_fd(&files->lock);
}

static int read_wants(const struct cli_images_add_options *o, const struct add_files *files,
                      struct make_wants *wants, struct err *err)
{
    const struct opt_list *lists[MAKE_KINDS] = { &o->pip, &o->npm, &o->apt };
    for (enum make_kind kind = 0; kind < MAKE_KINDS; kind++)
        for (size_t i = 0; i < lists[kind]->count; i++)
            if (make_wants_add(wants, kind, str_of(lists[kind]->at[i]), err) < 0)
                return -1;
    for (size_t i = 0; i < o->requirements.count; i++) {
        own_buf text = BUF_INIT(MAKE_REQUIREMENTS_MAX);
        if (read_file(files->requirements[i], o->requirements.at[i], &text, err) < 0 ||
            make_wants_add_file(wants, buf_str(&text), o->requirements.at[i], err) < 0)
            return -1;
    }
    return 0;
}

static int read_lock(const struct cli_images_add_options *o, const struct add_files *files,
                     struct make_lock *lock, struct err *err)
{
    own_buf text = BUF_INIT(MAKE_LOCK_BYTES);
    if (!o->lock)
        return 0;
    if (read_file(files->lock, o->lock, &text, err) < 0)
        return -1;
    return make_lock_read(buf_str(&text), lock, err) < 0 ? err_wrap(err, "%.200s", o->lock) : 0;
}

/* The exit code, or -1. */
static int add(const struct cli_images_add_options *o, struct err *err)
{
    own_image_entry image = IMAGE_ENTRY_INIT;
    own_cli_builder builder = CLI_BUILDER_INIT;
    own_make_wants wants = { 0 };
    own_make_lock lock = { 0 };
    struct add_files files;
    memset(&files, 0xff, sizeof files); /* no descriptor */
    int rc = check(o, err);
    if (rc == 0)
        rc = open_files(o, &files, err);
    if (rc == 0)
        rc = cli_builder_open(&builder, err);
    if (rc == 0)
        rc = read_wants(o, &files, &wants, err);
    if (rc == 0)
        rc = read_lock(o, &files, &lock, err);
    close_files(&files);
    if (rc < 0)
        return -1;
    const struct cli_build build = {
        .name = o->operands.at[0],
        .from = o->from,
        .wants = &wants,
        .lock = o->lock ? &lock : NULL,
        .timeout_s = o->timeout_s.given ? (int64_t)o->timeout_s.value : 0,
        .verbose = o->verbose,
    };
    if (cli_builder_make(&builder, &build, &image, err) < 0)
        return -1;
    return cli_builder_tell(&builder, &image, o->json, err);
}

int cli_images_add(int argc, char **argv)
{
    struct cli_images_add_options options = { 0 };
    struct err err = ERR_INIT;
    int code = 0;
    argc = drop_pip_before_r(argc, argv);
    int parsed = opt_parse(cli_images_add_table, cli_images_add_rows, argc, argv, &options,
                           &options.operands, &err);
    cli_term_set_quiet(options.quiet);
    if (parsed == 0 && options.help)
        print_help();
    else if (parsed < 0 || (code = add(&options, &err)) < 0)
        code = cli_term_refuse(&err, options.json);
    opt_done(cli_images_add_table, cli_images_add_rows, &options);
    return code;
}
