/* `cupel ask`: a question and files in, an answer with its proof out. Runs in the cli process. */
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "box/host/box.h"
#include "cli/ask/ask.h"
#include "cli/cli.h"
#include "cli/term/term.h"

static void tell_where(const struct cli_ask *ask, const json_t *report)
{
    size_t made = json_array_size(json_object_get(report, "artifacts"));
    if (made > 0 && !ask->options.run.out)
        cli_term_note("-o DIR saves %s",
                      made == 1 ? "the file that was made" : "the files that were made");
    cli_ask_store_tell(&ask->store);
    if (ask->store.begun)
        cli_term_note("cupel ask --show %s shows it again", ask->id);
}

static int answer(struct cli_ask *ask, struct err *err)
{
    own_json report = NULL;
    const char *given = ask->options.question;
    if (cli_ask_open(ask, err) < 0 || box_drop_door(err) < 0 ||
        cli_ask_question(strcmp(given, "-") == 0 ? NULL : given, &ask->question, err) < 0 ||
        cli_ask_ready(ask, err) < 0)
        return -1;
    struct agent *agent = cli_ask_begin(ask, ask->question.at, /* conversation= */ false, err);
    if (!agent)
        return -1;
    int code = cli_ask_turn(ask, agent, &report);
    agent_done(agent);
    tell_where(ask, report);
    if (ask->options.run.json && cli_term_json(report) != 0)
        return 125;
    return code;
}

static int show(struct cli_ask *ask, struct err *err)
{
    own_json report = NULL;
    if (cli_ask_store_open(&ask->store, /* imports= */ true) < 0)
        return err_set(err, ERR_ABSENT, "there is no state folder");
    if (box_drop_door(err) < 0 || cli_ask_store_ready(&ask->store, /* reads= */ true, err) < 0 ||
        cli_ask_store_show(&ask->store, ask->options.show, &ask->draw, &report, err) < 0)
        return -1;
    if (!report)
        cli_term_note("the record ends before the task did");
    return report && ask->options.run.json ? cli_term_json(report) : 0;
}

int cli_cmd_ask(int argc, char **argv)
{
    struct cli_ask ask = CLI_ASK_INIT;
    struct err err = ERR_INIT;
    bool json = cli_run_options_ask_for_json(argc, argv);
    int code = 0;
    int parsed = cli_ask_options_parse(argc, argv, &ask.options, &err);
    cli_term_set_quiet(ask.options.run.quiet);
    bool live = !ask.options.show && cli_term_style(STDERR_FILENO, CLI_DIM)[0];
    cli_ask_draw_init(&ask.draw, STDERR_FILENO, json ? -1 : STDOUT_FILENO, ask.options.run.quiet,
                      live);
    ask.draw.why = ask.options.why;
    if (parsed == 0 && ask.options.run.help)
        cli_ask_options_help();
    else if (parsed < 0 || (code = ask.options.show ? show(&ask, &err) : answer(&ask, &err)) < 0)
        code = cli_term_refuse(&err, json);
    cli_ask_done(&ask);
    return code;
}
