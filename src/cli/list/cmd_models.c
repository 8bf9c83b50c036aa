/* `cupel models`: the configured models, the default one, and their prices. Runs in the cli
 * process, as the caller: reads keys, and never shows them. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/json.h"
#include "box/host/box.h"
#include "cli/cli.h"
#include "cli/link/settings.h"
#include "cli/list/models_options.h"
#include "cli/term/term.h"
#include "cli/term/visible.h"
#include "llm/llm.h"

#define AT(member) offsetof(struct cli_models_options, member)
#define TABLE_MAX (1u << 20)
#define NAME_WIDTH 36

const struct opt cli_models_options_table[] = {
    { "probe", 0, NULL, OPT_FLAG, AT(probe), "ask the servers whether they answer" },
    { "json", 0, NULL, OPT_FLAG, AT(json), "print JSON" },
    { "quiet", 'q', NULL, OPT_FLAG, AT(quiet), "no notes on standard error" },
    { "help", 'h', NULL, OPT_FLAG, AT(help), "show this text" },
};
const size_t cli_models_options_rows = array_len(cli_models_options_table);

static void print_help(void)
{
    fputs("usage: cupel models [OPTION]...\n"
          "\n"
          "The models that cupel ask can use: those that are configured, and a few that are known\n"
          "to work well. The one with a star is the default of --model.\n"
          "\n"
          "Options:\n",
          stdout);
    opt_print_help(cli_models_options_table, cli_models_options_rows, stdout);
}

static void add_price(struct buf *out, const json_t *entry)
{
    const json_t *in = json_object_get(entry, "input_usd_per_mtok");
    const json_t *back = json_object_get(entry, "output_usd_per_mtok");
    if (json_is_number(in) && json_is_number(back))
        buf_printf(out, "$%.2f in, $%.2f out per million tokens", json_number_value(in),
                   json_number_value(back));
    else
        buf_add_text(out, "price unknown");
}

static void add_row(struct buf *out, const json_t *entry)
{
    const json_t *reachable = json_object_get(entry, "reachable");
    struct str detail = json_get_str(entry, "detail");
    bool chosen = json_is_true(json_object_get(entry, "chosen"));
    own_buf name = BUF_INIT(4096);
    cli_visible_line(json_get_str(entry, "model"), NAME_WIDTH, &name);
    buf_printf(out, "%s%s %-*s%s  ", chosen ? cli_term_style(1, CLI_BOLD) : "", chosen ? "*" : " ",
               NAME_WIDTH, buf_str(&name).at, chosen ? cli_term_style(1, CLI_PLAIN) : "");
    buf_add_text(out, "key: ");
    cli_visible_line(json_get_str(entry, "key"), 20, out);
    buf_add_text(out, "; ");
    add_price(out, entry);
    if (json_is_boolean(reachable))
        buf_add_text(out, json_is_true(reachable) ? "; reachable" : "; not reachable");
    if (detail.len > 0) {
        buf_add_text(out, "; ");
        cli_visible_line(detail, 120, out);
    }
    buf_add_text(out, "\n");
}

static int show(const json_t *list, bool json)
{
    size_t i;
    json_t *entry;
    bool chosen = false;
    own_json whole = json_pack("{s:O}", "models", list);
    if (json)
        return cli_term_json(whole);
    own_buf out = BUF_INIT(TABLE_MAX);
    json_array_foreach (list, i, entry) {
        add_row(&out, entry);
        chosen = chosen || json_is_true(json_object_get(entry, "chosen"));
    }
    cli_term_write(STDOUT_FILENO, buf_str(&out));
    if (!chosen)
        cli_term_note("no model is configured: set a key, CUPEL_MODEL, or use --model");
    return 0;
}

/* Reads the servers' answers without the caller's rights. */
static json_t *make_list(bool probe, struct err *err)
{
    if (cli_settings_use_model(err) < 0)
        return NULL;
    llm_remember_configuration();
    json_t *list = llm_list(/* probe= */ false, err);
    if (!list || !probe)
        return list;
    json_decref(list);
    return box_drop_door(err) < 0 ? NULL : llm_list(/* probe= */ true, err);
}

int cli_cmd_models(int argc, char **argv)
{
    struct cli_models_options options = { 0 };
    struct opt_operands operands;
    struct err err = ERR_INIT;
    int parsed = opt_parse(cli_models_options_table, cli_models_options_rows, argc, argv, &options,
                           &operands, &err);
    cli_term_set_quiet(options.quiet);
    if (parsed == 0 && options.help) {
        print_help();
        return 0;
    }
    if (parsed == 0 && operands.count > 0)
        parsed = err_set(&err, ERR_USAGE, "'cupel models' takes no operand, but got '%.80s'",
                         operands.at[0]);
    own_json list = parsed == 0 ? make_list(options.probe, &err) : NULL;
    return list ? show(list, options.json) : cli_term_refuse(&err, options.json);
}
