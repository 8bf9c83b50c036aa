/* `cupel mcp config CLIENT`: what to put into a client's configuration, and with --write puts it
 * there. Runs in the cli process, as the caller.
 * 1. A file that is there is read whole and understood, or left alone.
 * 2. All else in it stays; before a change it is copied beside itself, to NAME.cupel-backup.
 * 3. The new file appears complete, by rename. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/json.h"
#include "base/own.h"
#include "cli/mcp/config_file.h"
#include "cli/mcp/mcp_options.h"
#include "cli/term/term.h"

#define AT(member) offsetof(struct cli_mcp_config_options, member)

const struct opt cli_mcp_config_options_table[] = {
    { "write", 0, NULL, OPT_FLAG, AT(write), "change the client's file, and keep a backup" },
    { "file", 0, "FILE", OPT_TEXT, AT(file), "that file in place of the client's usual one" },
    { "quiet", 'q', NULL, OPT_FLAG, AT(quiet), "no notes on standard error" },
    { "help", 'h', NULL, OPT_FLAG, AT(help), "show this text" },
};
const size_t cli_mcp_config_options_rows = array_len(cli_mcp_config_options_table);

static int run_config(int argc, char **argv)
{
    return cli_mcp_config(argc, argv);
}

static const struct cli_command subs[] = {
    { "config", run_config, "what to put into a client's configuration",
      cli_mcp_config_options_table, &cli_mcp_config_options_rows, "CLIENT", NULL },
};
const struct cli_commands cli_mcp_commands = { subs, array_len(subs) };

static void print_help(void)
{
    fputs("usage: cupel mcp config CLIENT [OPTION]...\n"
          "\n"
          "Print what to put into a client's configuration, so that it starts cupel mcp.\n"
          "CLIENT is one of\n"
          "\n",
          stdout);
    for (size_t i = 0; i < cli_mcp_client_count; i++)
        printf("  %-15s %s%s\n", cli_mcp_clients[i].name, cli_mcp_clients[i].in_home ? "~/" : "",
               cli_mcp_clients[i].place);
    fputs("\nOptions:\n", stdout);
    opt_print_help(cli_mcp_config_options_table, cli_mcp_config_options_rows, stdout);
}

static const char *client_name(const void *table, size_t i)
{
    (void)table;
    return cli_mcp_clients[i].name;
}

static const struct cli_mcp_client *find_client(const struct opt_operands *operands,
                                                struct err *err)
{
    if (operands->count != 1) {
        err_set(err, ERR_USAGE, "'cupel mcp config' takes the name of one client");
        err_hint(err, "for example: cupel mcp config claude-code");
        return NULL;
    }
    const char *name = operands->at[0];
    for (size_t i = 0; i < cli_mcp_client_count; i++)
        if (strcmp(cli_mcp_clients[i].name, name) == 0)
            return &cli_mcp_clients[i];
    const char *near = opt_nearest(name, cli_mcp_client_count, client_name, NULL);
    err_set(err, ERR_USAGE, "unknown client '%.80s'", name);
    if (near)
        err_hint(err, "did you mean cupel mcp config %s?", near);
    else
        err_hint(err, "cupel mcp config --help lists the clients");
    return NULL;
}

/* The client starts it from any folder. */
static int find_program(char out[PATH_MAX], struct err *err)
{
    ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);
    if (n <= 0)
        return err_sys(err, "find the path of cupel");
    out[n] = 0;
    return str_is_utf8((struct str){ out, (size_t)n })
               ? 0
               : err_set(err, ERR_HOST, "the path of cupel is not UTF-8 text");
}

static char *usual_file(const struct cli_mcp_client *client, struct err *err)
{
    const char *home = getenv("HOME");
    struct buf path = BUF_INIT(PATH_MAX - 1);
    if (client->in_home && (!home || home[0] != '/')) {
        err_set(err, ERR_USAGE, "HOME is not set, so the client's file is not known");
        err_hint(err, "name it with --file");
        return NULL;
    }
    if (buf_printf(&path, "%s%s%s", client->in_home ? home : "", client->in_home ? "/" : "",
                   client->place) < 0) {
        err_set(err, ERR_USAGE, "the path of the client's file is too long");
        return NULL;
    }
    return buf_take(&path);
}

static int run(const struct cli_mcp_config_options *options, const struct opt_operands *operands,
               struct err *err)
{
    char program[PATH_MAX];
    const struct cli_mcp_client *client = find_client(operands, err);
    if (!client || find_program(program, err) < 0)
        return -1;
    own_str file = options->file ? buf_strdup(str_of(options->file)) : usual_file(client, err);
    if (!file)
        return -1;
    if (options->write)
        return cli_mcp_config_write(client, file, program, err);
    own_str lines = cli_mcp_config_text(client, program);
    cli_term_note("for %s; --write puts it there", file);
    fputs(lines, stdout);
    return 0;
}

int cli_mcp_config(int argc, char **argv)
{
    struct cli_mcp_config_options options = { 0 };
    struct opt_operands operands;
    struct err err = ERR_INIT;
    if (opt_parse(cli_mcp_config_options_table, cli_mcp_config_options_rows, argc, argv, &options,
                  &operands, &err) < 0)
        return cli_term_refuse(&err, /* json= */ false);
    cli_term_set_quiet(options.quiet);
    if (options.help) {
        print_help();
        return 0;
    }
    return run(&options, &operands, &err) < 0 ? cli_term_refuse(&err, /* json= */ false) : 0;
}
