/* The verbs of `cupel images`: one row each. Help, completions and the dispatch read them. */
#include "base/attr.h"
#include "cli/images/images.h"

#define PLAIN cli_images_options_table, &cli_images_options_rows

static const struct cli_command commands[] = {
    { "ls", cli_images_ls, "list the images",
      PLAIN, NULL, NULL },
    { "show", cli_images_show, "show what is in an image",
      PLAIN, "NAME", NULL },
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
