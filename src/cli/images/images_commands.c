/* The verbs of `cupel images`: one row each. Help, completions and the dispatch read them. */
#include "base/attr.h"
#include "cli/images/images.h"
#include "cli/images/images_archive.h"
#include "cli/images/images_pull.h"
#include "cli/images/images_add.h"
#include "cli/images/images_debian.h"

#define PLAIN cli_images_options_table, &cli_images_options_rows

static const struct cli_command commands[] = {
    { "ls", cli_images_ls, "list the images",
      PLAIN, NULL, NULL },
    { "show", cli_images_show, "show what is in an image",
      PLAIN, "NAME", NULL },
    { "add", cli_images_add, "make an image of packages of Python, JavaScript and Debian",
      cli_images_add_table, &cli_images_add_rows, "NAME", NULL },
    { "build", cli_images_build, "make an image of a minimal Debian that stands alone",
      cli_images_build_table, &cli_images_build_rows, "NAME", NULL },
    { "lock", cli_images_lock, "print the exact versions and hashes of an image's packages",
      PLAIN, "NAME", NULL },
    { "pull", cli_images_pull, "load an image from a registry",
      cli_images_pull_table, &cli_images_pull_rows, "REF", NULL },
    { "import", cli_images_import, "make an image of an archive or a folder",
      cli_images_import_table, &cli_images_import_rows, "PATH", NULL },
    { "export", cli_images_export, "write an image as an archive that others load",
      cli_images_export_table, &cli_images_export_rows, "NAME", NULL },
    { "rm", cli_images_rm, "remove images",
      PLAIN, "NAME", NULL },
    { "prune", cli_images_prune, "free the space of what no name leads to",
      PLAIN, NULL, NULL },
    { "du", cli_images_du, "show the space that images take",
      PLAIN, NULL, NULL },
    { "verify", cli_images_verify, "compare every file with its hash again",
      PLAIN, "NAME", NULL },
    { "extras", cli_images_extras, "packages that can be added to the host, and the command for it",
      PLAIN, NULL, NULL },
};
const struct cli_commands cli_images_commands = { commands, array_len(commands) };
