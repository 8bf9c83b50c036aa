/* `cupel config`: every value of the configuration and where it came from. Runs in the cli process,
 * as the caller; changes nothing. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/json.h"
#include "base/own.h"
#include "cli/cli.h"
#include "cli/config/config_options.h"
#include "cli/link/settings.h"
#include "cli/term/term.h"
#include "cli/term/visible.h"
#include "contract/config.h"
#include "store/redact/redact.h"

#define AT(member) offsetof(struct cli_config_options, member)
#define TABLE_MAX (1u << 20)

const struct opt cli_config_options_table[] = {
    { "check", 0, "FILE", OPT_TEXT, AT(check), "only check this file, and print nothing" },
    { "config", 0, "FILE", OPT_TEXT, AT(config), "read this file in place of the others" },
    { "json", 0, NULL, OPT_FLAG, AT(json), "print JSON" },
    { "quiet", 'q', NULL, OPT_FLAG, AT(quiet), "no notes on standard error" },
    { "help", 'h', NULL, OPT_FLAG, AT(help), "show this text" },
};
const size_t cli_config_options_rows = array_len(cli_config_options_table);

static void print_help(void)
{
    fputs("usage: cupel config [OPTION]... [KEY]\n"
          "\n"
          "Show each value of the configuration and where it came from: an environment\n"
          "variable, the user's file (~/.config/cupel/config.json), /etc/cupel/config.json,\n"
          "or the default. KEY shows one, as http.connections, or a group, as http.\n"
          "\n"
          "Options:\n",
          stdout);
    opt_print_help(cli_config_options_table, cli_config_options_rows, stdout);
    fputs("\n"
          "The exit code is 0, or 2 for a wrong command line, an unknown KEY, or a file that is\n"
          "not valid.\n",
          stdout);
}

/* Is `name` the key, or in the group, that was asked for? */
static bool is_asked(const char *name, const char *asked)
{
    size_t len = asked ? strlen(asked) : 0;
    return !asked || (strncmp(name, asked, len) == 0 && (name[len] == 0 || name[len] == '.'));
}

static const char *key_name(const void *table, size_t i)
{
    (void)table;
    return config_row((enum config_key)i)->name;
}

static int check_asked(const char *asked, struct err *err)
{
    for (enum config_key key = 0; key < CONFIG_COUNT; key++)
        if (is_asked(config_row(key)->name, asked))
            return 0;
    err_set(err, ERR_USAGE, "unknown key '%.80s'", asked);
    const char *near = opt_nearest(asked, CONFIG_COUNT, key_name, NULL);
    if (near)
        err_hint(err, "did you mean '%s'?", near);
    else
        err_hint(err, "cupel config lists the keys");
    return -1;
}

static void add_row(struct buf *out, const struct config *config, enum config_key key)
{
    own_str value = json_write(config->at[key].value, JSON_COMPACT | JSON_ENCODE_ANY);
    own_buf shown = BUF_INIT(TABLE_MAX);
    cli_visible_line(str_of(value), 200, &shown);
    buf_printf(out, "%-29s %-24s ", config_row(key)->name, buf_str(&shown).at);
    cli_visible_line(str_of(config->at[key].from), 400, out);
    buf_add_text(out, "\n");
}

/* One key: the row, and what the table says of it. */
static void add_about(struct buf *out, enum config_key key)
{
    const struct config_row *row = config_row(key);
    char bound[200];
    config_bound(key, bound, sizeof bound);
    buf_printf(out, "  %s\n  allowed: %s\n  %s\n", row->doc, bound,
               row->reloads ? "SIGHUP changes it in a running server"
                            : "it changes with the next start");
}

static int show(const struct config *config, const char *asked)
{
    own_buf out = BUF_INIT(TABLE_MAX);
    for (enum config_key key = 0; key < CONFIG_COUNT; key++) {
        if (!is_asked(config_row(key)->name, asked))
            continue;
        add_row(&out, config, key);
        if (asked && strcmp(asked, config_row(key)->name) == 0)
            add_about(&out, key);
    }
    cli_term_write(STDOUT_FILENO, buf_str(&out));
    return 0;
}

static int show_json(const struct config *config, const char *asked)
{
    own_json all = config_describe(config);
    own_json some = json_array();
    size_t i;
    json_t *row;
    json_array_foreach (all, i, row)
        if (is_asked(json_string_value(json_object_get(row, "key")), asked))
            json_array_append(some, row);
    own_json whole = json_pack("{s:O}", "config", some);
    return cli_term_json(whole);
}

/* A file alone, without the others. */
static int check_file(const char *path, bool json)
{
    own_config config;
    struct err err = ERR_INIT;
    config_init(&config);
    if (cli_settings_take_file(&config, path, /* named= */ true, &err) < 0 ||
        config_check(&config, &err) < 0)
        return cli_term_refuse(&err, json);
    const char **patterns = config_texts(&config, CONFIG_REDACT);
    int checked = redact_check(patterns, &err);
    free(patterns);
    if (checked < 0)
        return cli_term_refuse(&err, json);
    cli_term_note("'%.200s' is valid", path);
    return 0;
}

int cli_cmd_config(int argc, char **argv)
{
    struct cli_config_options options = { 0 };
    struct opt_operands operands = { 0 };
    struct err err = ERR_INIT;
    own_config config;
    config_init(&config);
    int parsed = opt_parse(cli_config_options_table, cli_config_options_rows, argc, argv, &options,
                           &operands, &err);
    cli_term_set_quiet(options.quiet);
    if (parsed == 0 && options.help) {
        print_help();
        return 0;
    }
    const char *asked = operands.count > 0 ? operands.at[0] : NULL;
    if (parsed == 0 && operands.count > (options.check ? 0 : 1))
        parsed = err_set(&err, ERR_USAGE, "'cupel config' takes one key, but got '%.80s' too",
                         operands.at[operands.count - 1]);
    if (parsed == 0 && options.check)
        return check_file(options.check, options.json);
    if (parsed < 0 || (asked && check_asked(asked, &err) < 0) ||
        cli_settings_read(options.config, &config, &err) < 0)
        return cli_term_refuse(&err, options.json);
    return options.json ? show_json(&config, asked) : show(&config, asked);
}
