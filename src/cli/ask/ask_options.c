/* The table behind `cupel ask --help`, and the rules between its options. Uses argv alone, before
 * any file is opened. */
#include "cli/ask/ask_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/own.h"
#include "cli/approve/approve.h"

#define AT(member) offsetof(struct cli_ask_options, member)

/* The rows of both commands. */
#define ROWS_WHO                                                                                   \
    { "model", 0, "MODEL", OPT_TEXT, AT(model), "the model that answers, see cupel models" },      \
        { "planner", 0, "[MODEL]", OPT_TEXT, AT(planner), "plan in a separate call" },             \
        { "judge", 0, "MODEL|off", OPT_TEXT, AT(judge),                                            \
          "the model that judges the answer; the task's own by default" },                         \
        { "cross-check", 0, NULL, OPT_FLAG, AT(cross_check),                                       \
          "let a second program compute the values, and compare" },                                \
        { "mode", 0, "MODE", OPT_TEXT, AT(mode_name), "code (default) or tools" },                 \
        { "instructions", 0, "FILE", OPT_TEXT, AT(instructions),                                   \
          "house rules for the model, as text" },                                                  \
        CLI_RUN_ROW_TOOLS, CLI_RUN_ROWS_SOURCES, CLI_RUN_ROWS_APPROVE
#define ROWS_HOW                                                                                   \
    CLI_RUN_ROW_OUT,                                                                               \
        { "budget", 0, "KEY=VALUE,...", OPT_TEXT, AT(budgets), "limits of the task, see below" },  \
        { "max-steps", 0, "N", OPT_NUMBER, AT(max_steps), "cells that may run, 12 by default" },   \
        { "timeout", 't', "S", OPT_NUMBER, AT(run.timeout), "wall-clock seconds of a cell" },      \
        CLI_RUN_ROW_MEMORY,                                                                        \
        { "profile", 0, "NAME", OPT_TEXT, AT(run.profile),                                         \
          "defaults of cells: analysis, unless named" },                                           \
        CLI_RUN_ROW_IMAGE,                                                                         \
        { "continue", 0, "ID", OPT_TEXT, AT(again), "ask further in a recorded task" },            \
        { "why", 0, NULL, OPT_FLAG, AT(why), "show the lines of code behind each value" },         \
        { "yes", 0, NULL, OPT_FLAG, AT(yes), "do not ask before spending at an unknown price" },   \
        { "quiet", 'q', NULL, OPT_FLAG, AT(run.quiet), "no progress on standard error" },          \
        CLI_RUN_ROW_HELP

const struct opt cli_ask_options_table[] = {
    ROWS_WHO,
    { "schema", 0, "FILE", OPT_TEXT, AT(schema), "JSON Schema that the answer's values satisfy" },
    { "show", 0, "ID", OPT_TEXT, AT(show), "show a task again, from its record" },
    { "json", 0, NULL, OPT_FLAG, AT(run.json), "print the report as JSON in place of the answer" },
    ROWS_HOW,
};
const size_t cli_ask_options_rows = array_len(cli_ask_options_table);

const struct opt cli_chat_options_table[] = { ROWS_WHO, ROWS_HOW };
const size_t cli_chat_options_rows = array_len(cli_chat_options_table);

void cli_ask_options_help(void)
{
    fputs("usage: cupel ask [OPTION]... QUESTION [FILE]...\n"
          "       cupel ask --continue ID [OPTION]... QUESTION [FILE]...\n"
          "\n"
          "Answer a question by code that runs in a box, with each value traced to the data.\n"
          "\n"
          "QUESTION - reads it from standard input. Each FILE, or FILE:PATH for another name, is\n"
          "put into the box read-only. Progress goes to standard error, the answer to standard\n"
          "output. Without --model the model is $CUPEL_MODEL, else one whose key is set.\n"
          "\n"
          "Options:\n",
          stdout);
    opt_print_help(cli_ask_options_table, cli_ask_options_rows, stdout);
    fputs(
        "\n"
        "Budgets: steps, wall_s, model_s, execution_s, tokens, usd, artifact_bytes; 'none'\n"
        "lifts one, and --budget 0.50 is usd=0.50. A MODEL is exec:PROGRAM, replay:FILE,\n"
        "PROVIDER/NAME or a name that cupel models lists; --planner without one uses the task's.\n"
        "\n"
        "verified: every value comes from the data, all cells gave the same again in a fresh\n"
        "box, and the judge passed it. computed: the same without a judge. Both exit with 0;\n"
        "3 unverified, 7 unanswerable, 4 stuck, 5 budget exhausted, 6 denied, 1 failed,\n"
        "130 interrupted, 2 refused, 125 cupel failed.\n",
        stdout);
}

void cli_chat_options_help(void)
{
    fputs("usage: cupel chat [OPTION]... [FILE]...\n"
          "\n"
          "Questions one after another about the same files, each answered as by cupel ask.\n"
          "\n"
          "A line is a question; the session and the conversation go on from one to the next.\n"
          "Ctrl-C stops the running question, Ctrl-D leaves. :help lists the commands: :add gives\n"
          "another file, :why shows the code behind each value, :undo takes a question back.\n"
          "\n"
          "Options:\n",
          stdout);
    opt_print_help(cli_chat_options_table, cli_chat_options_rows, stdout);
    fputs("\nBudgets are those of cupel ask, for each question.\n"
          "\nWithout a terminal, questions are read from standard input, one a line, and the exit\n"
          "code is that of the last one.\n",
          stdout);
}

/* --- budgets --- */

static const char *key_at(const void *table, size_t i)
{
    return ((const struct agent_budget_row *)table)[i].key;
}

static const struct agent_budget_row *find_key(struct str key)
{
    for (size_t i = 0; i < AGENT_BUDGET_ROWS; i++)
        if (str_is(key, agent_budget_rows[i].key))
            return &agent_budget_rows[i];
    return NULL;
}

/* Digits with at most one point: no sign, no exponent, no "inf". */
static bool read_amount(const char *text, enum agent_amount amount, double *out)
{
    uint64_t bytes;
    size_t digits = strspn(text, "0123456789");
    size_t fraction = text[digits] == '.' ? strspn(text + digits + 1, "0123456789") : 0;
    size_t all = digits + (text[digits] == '.' ? 1 + fraction : 0);
    if (amount == AGENT_BYTES) {
        if (!str_to_bytes(str_of(text), &bytes))
            return false;
        *out = (double)bytes;
        return true;
    }
    if (digits + fraction == 0 || all > 24 || text[all] != 0 ||
        (amount == AGENT_WHOLE && all > digits))
        return false;
    *out = strtod(text, NULL);
    return true;
}

static int set_amount(const struct agent_budget_row *row, const char *text,
                      struct agent_budget *out, struct err *err)
{
    double value;
    if (row->endless && strcmp(text, "none") == 0) {
        value = -1;
    } else if (!read_amount(text, row->amount, &value) || value < row->least || value > row->most) {
        char field[48], quoted[80];
        snprintf(field, sizeof field, "budget.%s", row->key);
        snprintf(quoted, sizeof quoted, "\"%.70s\"", text);
        return err_input(err, field, quoted, row->bound, "field '%s' is '%.70s': allowed is %s",
                         field, text, row->bound);
    }
    agent_budget_set(row, value, out);
    return 0;
}

/* Once only: "1,50" means a decimal comma, and would set a budget of 50. */
static int set_once(const struct agent_budget_row *row, const char *text, unsigned *named,
                    struct agent_budget *out, struct err *err)
{
    unsigned mark = 1u << (row - agent_budget_rows);
    if (*named & mark) {
        err_input(err, "budget", NULL, "each once", "budget '%s' is given twice", row->key);
        err_hint(err, "a fraction has a point: --budget 1.50");
        return -1;
    }
    *named |= mark;
    return set_amount(row, text, out, err);
}

/* One KEY=VALUE, or money alone; `named` marks the rows that were set. */
static int set_budget(const char *text, unsigned *named, struct agent_budget *out, struct err *err)
{
    const char *equals = strchr(text, '=');
    struct str key = { text, equals ? (size_t)(equals - text) : strlen(text) };
    double money;
    if (!equals && read_amount(text, AGENT_NUMBER, &money))
        return set_once(find_key(STR("usd")), text, named, out, err);
    const struct agent_budget_row *row = find_key(key);
    if (row && equals)
        return set_once(row, equals + 1, named, out, err);
    own_str typed = buf_strdup(key);
    const char *near = opt_nearest(typed, AGENT_BUDGET_ROWS, key_at, agent_budget_rows);
    err_input(err, "budget", NULL, AGENT_BUDGET_KEYS,
              row ? "budget '%.40s' has no value: write %.40s=VALUE"
                  : "unknown budget '%.40s': there are %s",
              typed, row ? typed : AGENT_BUDGET_KEYS);
    if (near && !row)
        err_hint(err, "did you mean %s=?", near);
    return -1;
}

int cli_ask_options_budget(const char *text, struct agent_budget *out, struct err *err)
{
    own_str copy = buf_strdup(str_of(text));
    char *rest = copy;
    unsigned named = 0;
    for (char *part; (part = strsep(&rest, ","));)
        if (set_budget(part, &named, out, err) < 0)
            return -1;
    return 0;
}

int cli_ask_options_limits(struct cli_ask_options *o, struct err *err)
{
    if (o->budgets && cli_ask_options_budget(o->budgets, &o->budget, err) < 0)
        return -1;
    if (!o->max_steps.given)
        return 0;
    if (o->budget.steps != AGENT_BUDGET_DEFAULT.steps)
        return err_set(err, ERR_USAGE,
                       "options '--max-steps' and '--budget steps=' cannot be combined");
    char text[32];
    snprintf(text, sizeof text, "%.15g", o->max_steps.value);
    return set_amount(find_key(STR("steps")), text, &o->budget, err);
}

/* --- the rest --- */

/* A word that names a model and is hardly a question or a file. */
static bool is_model(const char *text)
{
    static const char *const starts[] = { "exec:",       "replay:",   "anthropic/",     "openai/",
                                          "openrouter/", "ollama/",   "llamacpp/",      "vllm/",
                                          "chat/",       "chat+http", "responses+http",
                                          "anthropic+http" };
    for (size_t i = 0; text && i < array_len(starts); i++)
        if (strncmp(text, starts[i], strlen(starts[i])) == 0)
            return true;
    return false;
}

/* The option parser has no optional values: inserts an empty one if none follows. */
static void fill_optional(int argc, char **argv)
{
    static struct {
        const char *name;
        char with[16];
    } optional[] = { { "--planner", "--planner=" } };
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        for (size_t j = 0; j < array_len(optional); j++)
            if (strcmp(argv[i], optional[j].name) == 0 && !(i + 1 < argc && is_model(argv[i + 1])))
                argv[i] = optional[j].with;
}

static int find_mode(const char *name, enum agent_mode *out, struct err *err)
{
    static const char *const names[] = { [AGENT_CODE] = "code", [AGENT_TOOLS] = "tools" };
    for (size_t i = 0; i < array_len(names); i++)
        if (!name || strcmp(name, names[i]) == 0) {
            *out = (enum agent_mode)i;
            return 0;
        }
    return err_set(err, ERR_USAGE, "option '--mode' takes code or tools, not '%.80s'", name);
}

static void take_files(struct cli_ask_options *o, size_t from)
{
    const struct opt_operands *operands = &o->run.operands;
    o->run.files.count = operands->count - from;
    o->run.files.at = buf_alloc_zero(operands->count + 1, sizeof *o->run.files.at);
    for (size_t i = from; i < operands->count; i++)
        o->run.files.at[i - from] = operands->at[i];
}

static int take_operands(struct cli_ask_options *o, struct err *err)
{
    const struct opt_operands *operands = &o->run.operands;
    if (o->show && (operands->count > 0 || o->again)) {
        err_set(err, ERR_USAGE, "'--show' takes no question, but got '%.80s'",
                operands->count > 0 ? operands->at[0] : "--continue");
        return -1;
    }
    if (o->show)
        return 0;
    if (operands->count == 0) {
        err_set(err, ERR_USAGE, "nothing to answer: give a question");
        err_hint(err, "for example: cupel ask 'Which customer spent most?' sales.csv; - reads the "
                      "question from standard input");
        return -1;
    }
    o->question = operands->at[0];
    take_files(o, 1);
    for (size_t i = 0; i < o->run.files.count; i++)
        if (strcmp(o->run.files.at[i], "-") == 0 && strcmp(o->question, "-") == 0)
            return err_set(err, ERR_USAGE, "standard input cannot be both question and file");
    return 0;
}

/* Tools that nobody named reach no code: an option that only offers them is a mistake. */
static int check_tools(const struct cli_ask_options *o, struct err *err)
{
    char *offered[CLI_RUN_ENGINE_OPTIONS];
    if (o->run.tools.count > 0 && o->cross_check) {
        err_set(err, ERR_USAGE, "options '--cross-check' and '--tools' cannot be combined");
        err_hint(err, "a second program would have to call the tools again");
        return -1;
    }
    if (o->run.tools.count > 0 || o->again || !cli_run_options_engine(&o->run, offered))
        return 0;
    err_set(err, ERR_USAGE, "option '%s' offers tools, and none is named", offered[0]);
    err_hint(err, "--tools NAME names one, --tools '*' all");
    return -1;
}

static int parse(const struct opt *table, size_t rows, int argc, char **argv,
                 struct cli_ask_options *out, struct err *err)
{
    fill_optional(argc, argv);
    if (opt_parse(table, rows, argc, argv, out, &out->run.operands, err) < 0)
        return -1;
    if (out->run.help)
        return 0;
    if (out->judge && strcmp(out->judge, "off") == 0)
        out->judge = NULL;
    if (!out->run.profile)
        out->run.profile = "analysis";
    if (check_tools(out, err) < 0 ||
        cli_approve_check(&out->run.approve, &out->run.refuse, err) < 0)
        return -1;
    return find_mode(out->mode_name, &out->mode, err) < 0 ? -1 : cli_ask_options_limits(out, err);
}

int cli_ask_options_parse(int argc, char **argv, struct cli_ask_options *out, struct err *err)
{
    if (parse(cli_ask_options_table, cli_ask_options_rows, argc, argv, out, err) < 0)
        return -1;
    return out->run.help ? 0 : take_operands(out, err);
}

bool cli_chat_options_is_input(const char *file)
{
    return file[0] == '-' && (file[1] == 0 || file[1] == ':');
}

int cli_chat_options_parse(int argc, char **argv, struct cli_ask_options *out, struct err *err)
{
    if (parse(cli_chat_options_table, cli_chat_options_rows, argc, argv, out, err) < 0)
        return -1;
    take_files(out, 0);
    for (size_t i = 0; i < out->run.files.count; i++)
        if (cli_chat_options_is_input(out->run.files.at[i]))
            return err_set(err, ERR_USAGE, "standard input holds the questions: '-' is no file");
    return 0;
}

void cli_ask_options_done(struct cli_ask_options *options)
{
    free(options->run.files.at); /* made of the operands: no row of the table frees it */
    options->run.files = (struct opt_list){ 0 };
    opt_done(cli_ask_options_table, cli_ask_options_rows, options);
}
