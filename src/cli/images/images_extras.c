/* `cupel images extras`: the packages that code can use if the host has them, and the command that
 * installs the missing ones. Runs in the cli process, as the caller: reads dpkg's list alone. */
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/json.h"
#include "cli/images/images.h"
#include "cli/list/list_options.h"
#include "cli/term/term.h"
#include "image/extras.h"

#define COMMAND_MAX (16u << 10)

/* "sudo apt-get install ...", or nothing if none is missing. Languages are in it too. */
static void add_command(char versions[][IMAGE_EXTRAS_WORD], struct buf *out)
{
    size_t count;
    const struct image_extra *rows = image_extras(&count);
    char package[IMAGE_EXTRAS_WORD];
    for (size_t i = 0; i < count; i++) {
        if (*versions[i])
            continue;
        if (out->len == 0)
            buf_add_text(out, "sudo apt-get install --no-install-recommends");
        buf_printf(out, " %s", image_extra_package(&rows[i], package));
    }
}

static int show_json(char versions[][IMAGE_EXTRAS_WORD], const struct buf *command)
{
    size_t count;
    const struct image_extra *rows = image_extras(&count);
    char package[IMAGE_EXTRAS_WORD];
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_pack("{s:s,s:s,s:s,s:s,s:s?}", "set", rows[i].set, "kind",
                                              rows[i].kind, "name", rows[i].name, "package",
                                              image_extra_package(&rows[i], package), "version",
                                              *versions[i] ? versions[i] : NULL));
    own_json out = json_pack("{s:o,s:s?}", "extras", list, "command",
                             command->len > 0 ? buf_str(command).at : NULL);
    return cli_term_json(out);
}

static int show(char versions[][IMAGE_EXTRAS_WORD], const struct buf *command)
{
    size_t count;
    const struct image_extra *rows = image_extras(&count);
    char package[IMAGE_EXTRAS_WORD];
    for (size_t i = 0; i < count; i++)
        printf("%-8s  %-12s %-24s %s\n", rows[i].kind, rows[i].name,
               image_extra_package(&rows[i], package), *versions[i] ? versions[i] : "missing");
    if (command->len > 0)
        printf("\nThis adds the missing ones:\n  %s\n", buf_str(command).at);
    return 0;
}

static int tell(bool json, struct err *err)
{
    static char versions[IMAGE_EXTRAS_MAX][IMAGE_EXTRAS_WORD];
    if (!image_extras_installed(versions)) {
        err_set(err, ERR_HOST, "this host has no dpkg, so its packages are not known");
        err_hint(err, "cupel languages lists what code can use; the names of Debian's packages are "
                      "in dev/image-packages");
        return -1;
    }
    own_buf command = BUF_INIT(COMMAND_MAX);
    add_command(versions, &command);
    return json ? show_json(versions, &command) : show(versions, &command);
}

/* Needs no store, so it is no verb of cli_images_do. */
int cli_images_extras(int argc, char **argv)
{
    struct cli_list_options options = { 0 };
    struct err err = ERR_INIT;
    if (cli_list_options_parse(argc, argv, "cupel images extras",
                               "Packages that code can use if the host has them, and the command "
                               "that adds the missing ones.",
                               &options, &err) < 0)
        return cli_term_refuse(&err, options.json);
    int code = options.help ? 0 : tell(options.json, &err);
    return code < 0 ? cli_term_refuse(&err, options.json) : code;
}
