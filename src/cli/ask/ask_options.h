/* The command lines of `cupel ask` and `cupel chat`. */
#ifndef CLI_ASK_ASK_OPTIONS_H
#define CLI_ASK_ASK_OPTIONS_H

#include <stdbool.h>

#include "agent/agent.h"
#include "cli/run/run_options.h"

struct cli_ask_options {
    struct cli_run_options run; /* first: the rows of `cupel run` fill it; files are the operands */
    const char *model;
    const char *planner, *judge; /* NULL: none, "": the task's own model */
    const char *mode_name, *show, *budgets;
    const char *again; /* --continue, or a task that is taken up or replayed: its id */
    const char *schema, *instructions; /* files */
    struct opt_number max_steps;
    bool cross_check, yes, why;
    /* derived from several options */
    const char *question; /* "-": standard input */
    struct agent_budget budget;
    enum agent_mode mode;
    /* of cupel tasks */
    bool resumes, replays;
    bool changed; /* files may differ from the recorded ones */
};
#define CLI_ASK_OPTIONS_INIT \
    ((struct cli_ask_options){ .judge = "", .budget = AGENT_BUDGET_DEFAULT })

extern const struct opt cli_ask_options_table[];
extern const size_t cli_ask_options_rows;
extern const struct opt cli_chat_options_table[];
extern const size_t cli_chat_options_rows;

/* As cli_run_options_parse. --planner needs no value; the next word is taken if it can only be a
 * model. Without --judge the task's model judges; --judge off is NULL. */
int cli_ask_options_parse(int argc, char **argv, struct cli_ask_options *out, struct err *err);
/* Is this file our standard input: "-" or "-:PATH"? */
bool cli_chat_options_is_input(const char *file);
/* The same for a chat: all operands are files, and there is no question. */
int cli_chat_options_parse(int argc, char **argv, struct cli_ask_options *out, struct err *err);
void cli_ask_options_done(struct cli_ask_options *options);
void cli_ask_options_help(void);
void cli_chat_options_help(void);

/* The budget of --budget and --max-steps. */
int cli_ask_options_limits(struct cli_ask_options *options, struct err *err);
/* Reads KEY=VALUE,... or a bare sum of money into `out`; others stay. Pure. */
int cli_ask_options_budget(const char *text, struct agent_budget *out, struct err *err);

#endif
