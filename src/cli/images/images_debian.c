/* `cupel images build`. Runs in the cli process: settings are opened as the caller, then rights are
 * dropped, and only then the mirror is asked, and the store written. */
#include "cli/images/images_debian.h"

#include <stdio.h>

#include "base/own.h"
#include "cli/cli.h"
#include "cli/images/images_build.h"
#include "cli/term/term.h"
#include "image/make/debian.h"

#define TIMEOUT_MOST 86400
#define AT(member) offsetof(struct cli_images_build_options, member)

const struct opt cli_images_build_table[] = {
    { "debian", 0, "SUITE", OPT_TEXT, AT(debian), "of this release, such as bookworm" },
    { "apt", 0, "PACKAGE", OPT_LIST, AT(apt), "add a package of Debian, without its scripts" },
    { "mirror", 0, "URL", OPT_TEXT, AT(mirror), "load from here; by default as apt of this host" },
    { "timeout", 't', "S", OPT_NUMBER, AT(timeout_s), "give up after so long; 1800" },
    { "verbose", 'v', NULL, OPT_FLAG, AT(verbose), "show all that mmdebstrap says" },
    { "json", 0, NULL, OPT_FLAG, AT(json), "print the answer as JSON and nothing else" },
    { "quiet", 'q', NULL, OPT_FLAG, AT(quiet), "no progress and no notes on standard error" },
    { "help", 'h', NULL, OPT_FLAG, AT(help), "show this text" },
};
const size_t cli_images_build_rows = array_len(cli_images_build_table);

static void print_help(void)
{
    fputs("usage: cupel images build --debian SUITE [OPTION]... NAME\n"
          "\n"
          "Make an image of Debian's essential packages that shares no file with the host.\n"
          "\n"
          "Options:\n",
          stdout);
    opt_print_help(cli_images_build_table, cli_images_build_rows, stdout);
    fputs("\nPackages are unpacked, and no script of them runs. For example:\n"
          "  cupel images build --debian bookworm --apt python3 alone\n"
          "  cupel run --profile strict --image alone 'import sys; sys.version'\n",
          stdout);
}

static int check(const struct cli_images_build_options *o, struct err *err)
{
    const struct opt_number *timeout = &o->timeout_s;
    if (o->operands.count != 1) {
        err_set(err, ERR_USAGE,
                o->operands.count ? "'cupel images build' takes one name, but got '%.80s' too"
                                  : "'cupel images build' needs a name for the image",
                o->operands.count ? o->operands.at[1] : "");
        err_hint(err, "cupel images build --debian bookworm NAME");
        return -1;
    }
    if (!o->debian) {
        err_set(err, ERR_USAGE, "'cupel images build' needs a release of Debian");
        err_hint(err, "cupel images build --debian bookworm %.64s", o->operands.at[0]);
        return -1;
    }
    if (!make_debian_suite_valid(str_of(o->debian)))
        return err_input(err, "debian", o->debian, "a-z 0-9 -, at most 40",
                         "'%.80s' is no release of Debian", o->debian);
    if (o->mirror && !make_debian_mirror_valid(str_of(o->mirror)))
        return err_input(err, "mirror", o->mirror, "http:// or https://, without spaces",
                         "'%.200s' is no address of a mirror", o->mirror);
    if (timeout->given && !(timeout->value >= 1 && timeout->value <= TIMEOUT_MOST))
        return err_input(err, "timeout", NULL, "1 to 86400",
                         "option '--timeout' is a number of seconds, 1 to %d", TIMEOUT_MOST);
    return 0;
}

/* The exit code, or -1. */
static int make(const struct cli_images_build_options *o, struct err *err)
{
    own_image_entry image = IMAGE_ENTRY_INIT;
    own_cli_builder builder = CLI_BUILDER_INIT;
    own_make_wants wants = { 0 };
    if (check(o, err) < 0 || cli_builder_open(&builder, err) < 0)
        return -1;
    for (size_t i = 0; i < o->apt.count; i++)
        if (make_wants_add(&wants, MAKE_APT, str_of(o->apt.at[i]), err) < 0)
            return -1;
    const struct make_debian debian = { o->debian, o->mirror };
    const struct cli_build build = {
        .name = o->operands.at[0],
        .wants = &wants,
        .debian = &debian,
        .timeout_s = o->timeout_s.given ? (int64_t)o->timeout_s.value : 0,
        .verbose = o->verbose,
    };
    if (cli_builder_make(&builder, &build, &image, err) < 0)
        return -1;
    return cli_builder_tell(&builder, &image, o->json, err);
}

int cli_images_build(int argc, char **argv)
{
    struct cli_images_build_options options = { 0 };
    struct err err = ERR_INIT;
    int code = 0;
    int parsed = opt_parse(cli_images_build_table, cli_images_build_rows, argc, argv, &options,
                           &options.operands, &err);
    cli_term_set_quiet(options.quiet);
    if (parsed == 0 && options.help)
        print_help();
    else if (parsed < 0 || (code = make(&options, &err)) < 0)
        code = cli_term_refuse(&err, options.json);
    opt_done(cli_images_build_table, cli_images_build_rows, &options);
    return code;
}
