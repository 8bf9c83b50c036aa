/* The table behind `cupel serve --help`, and the rules between its options. */
#include "cli/serve/serve_options.h"

#include <stddef.h>
#include <stdio.h>

#include "base/attr.h"
#include "engine/engine.h"

#define AT(member) offsetof(struct cli_serve_options, member)
#define RUNS_MAX 4096
#define QUEUE_MAX 100000
#define IDLE_MAX_S (366 * 86400)

const struct opt cli_serve_options_table[] = {
    { "socket", 0, "PATH", OPT_TEXT, AT(socket), "listen here, not in the runtime directory" },
    { "listen", 0, "ADDR:PORT", OPT_LIST, AT(listen), "serve HTTP here, too; may be repeated" },
    { "tls-cert", 0, "FILE", OPT_TEXT, AT(tls_cert), "serve HTTPS with this certificate chain" },
    { "tls-key", 0, "FILE", OPT_TEXT, AT(tls_key), "and this private key" },
    { "host", 0, "NAME", OPT_LIST, AT(hosts), "a name that clients may call it by" },
    { "origin", 0, "URL", OPT_LIST, AT(origins), "a web page whose scripts may call it" },
    { "insecure-http", 0, NULL, OPT_FLAG, AT(insecure_http),
      "no TLS on addresses that other hosts can reach" },
    { "config", 0, "FILE", OPT_TEXT, AT(config), "read this configuration and no other" },
    { "fd", 0, "N", OPT_NUMBER, AT(fd), "serve this inherited, connected socket alone" },
    { "runs", 0, "N", OPT_NUMBER, AT(runs), "runs at one time; others wait" },
    { "queue", 0, "N", OPT_NUMBER, AT(queue), "requests that may wait; others are refused" },
    { "pool", 0, "N", OPT_NUMBER, AT(pool), "waiting occupants of each kind; default: by demand" },
    { "tools-dir", 0, "DIR", OPT_TEXT, AT(tools), "tools for code, from this folder" },
    { "mcp", 0, "FILE", OPT_TEXT, AT(mcp), "and of the MCP servers in this file" },
    { "secrets", 0, "FILE", OPT_TEXT, AT(secrets), "secrets for tools, from this file" },
    { "dir", 0, "DIR", OPT_TEXT, AT(dir), "with --fd: the session's /workspace is this folder" },
    { "write", 0, NULL, OPT_FLAG, AT(write), "with --dir: its code writes into the folder itself" },
    { "no-records", 0, NULL, OPT_FLAG, AT(no_records), "store no records of runs" },
    { "durable", 0, NULL, OPT_FLAG, AT(durable), "wait for the disk before a run is answered" },
    { "idle-exit", 0, "S", OPT_NUMBER, AT(idle_exit), "exit so long after the last session" },
    { "status", 0, NULL, OPT_FLAG, AT(status), "tell of the running engine, and end" },
    { "stop", 0, NULL, OPT_FLAG, AT(stop), "stop the running engine in order, and wait for it" },
    { "json", 0, NULL, OPT_FLAG, AT(json), "with --status: print JSON" },
    { "quiet", 'q', NULL, OPT_FLAG, AT(quiet), "no notes on standard error" },
    { "help", 'h', NULL, OPT_FLAG, AT(help), "show this text" },
};
const size_t cli_serve_options_rows = array_len(cli_serve_options_table);

void cli_serve_options_help(void)
{
    fputs("usage: cupel serve [OPTION]...\n"
          "\n"
          "Keep an engine ready, on a socket for this user alone, until SIGTERM or Ctrl-C.\n"
          "'cupel run' and libcupel use it automatically; boxes then wait instead of being\n"
          "built. With --listen it is a service for others, too, by HTTP and tokens:\n"
          "SIGHUP reads its configuration again; see cupel config and cupel token.\n"
          "\n"
          "Options:\n",
          stdout);
    opt_print_help(cli_serve_options_table, cli_serve_options_rows, stdout);
    fputs("\n"
          "The exit code is 0 after an orderly end, 2 for a wrong command line, 75 if an\n"
          "engine already listens there, 125 if the host lacks something or cupel failed.\n",
          stdout);
}

static int check_whole(const char *name, const struct opt_number *number, double least, double most,
                       struct err *err)
{
    if (!number->given || (number->value >= least && number->value <= most &&
                           number->value == (double)(long)number->value))
        return 0;
    return err_set(err, ERR_USAGE, "option '--%s' takes a whole number from %.0f to %.0f, not %g",
                   name, least, most, number->value);
}

int cli_serve_options_parse(int argc, char **argv, struct cli_serve_options *out, struct err *err)
{
    struct opt_operands operands;
    if (opt_parse(cli_serve_options_table, cli_serve_options_rows, argc, argv, out, &operands,
                  err) < 0)
        return -1;
    if (out->help)
        return 0;
    if (operands.count > 0)
        return err_set(err, ERR_USAGE, "'cupel serve' takes no operand, but got '%.80s'",
                       operands.at[0]);
    if (out->fd.given && out->socket)
        return err_set(err, ERR_USAGE, "options '--fd' and '--socket' cannot be combined");
    if (out->status && out->stop)
        return err_set(err, ERR_USAGE, "options '--status' and '--stop' cannot be combined");
    if (out->json && !out->status)
        return err_set(err, ERR_USAGE, "option '--json' needs '--status'");
    if (out->dir && !out->fd.given)
        return err_set(err, ERR_USAGE, "option '--dir' needs '--fd': a folder is for one client");
    if (out->write && !out->dir)
        return err_set(err, ERR_USAGE, "option '--write' needs a folder: --dir DIR");
    if (out->fd.given && out->listen.count > 0)
        return err_set(err, ERR_USAGE, "options '--fd' and '--listen' cannot be combined");
    return check_whole("fd", &out->fd, 3, 1 << 20, err) < 0 ||
                   check_whole("runs", &out->runs, 1, RUNS_MAX, err) < 0 ||
                   check_whole("queue", &out->queue, 1, QUEUE_MAX, err) < 0 ||
                   check_whole("pool", &out->pool, 0, ENGINE_POOL_MAX, err) < 0 ||
                   check_whole("idle-exit", &out->idle_exit, 1, IDLE_MAX_S, err) < 0
               ? -1
               : 0;
}

void cli_serve_options_done(struct cli_serve_options *options)
{
    opt_done(cli_serve_options_table, cli_serve_options_rows, options);
}
