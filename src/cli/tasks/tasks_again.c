/* Tasks that run again: resume goes on where one stopped, replay runs one from its record. Runs in
 * the cli process, like `cupel ask`. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/past.h"
#include "base/json.h"
#include "base/own.h"
#include "cli/tasks/tasks.h"
#include "cli/term/term.h"
#include "cli/term/visible.h"

#define TOLD_MAX (1u << 20)
#define SHOWN_WIDTH 140

int cli_tasks_again_open(struct cli_tasks *tasks, struct err *err)
{
    return cli_ask_open(&tasks->ask, err);
}

/* --- resume --- */

int cli_tasks_resume(struct cli_tasks *tasks, struct err *err)
{
    struct cli_ask *ask = &tasks->ask;
    own_json report = NULL;
    if (cli_ask_ready(ask, err) < 0)
        return -1;
    struct str question = json_get_str(ask->past.task, "question");
    ask->question = BUF_INIT(question.len + 1);
    buf_add_str(&ask->question, question);
    bool talks = json_is_true(json_object_get(ask->past.setup, "conversation"));
    struct agent *agent = cli_ask_begin(ask, buf_str(&ask->question).at, talks, err);
    if (!agent)
        return -1;
    int code = cli_ask_turn(ask, agent, &report);
    agent_done(agent);
    cli_ask_store_tell(&ask->store);
    if (ask->options.run.json && cli_term_json(report) != 0)
        return 125;
    return code;
}

/* --- replay --- */

static void add_short(struct buf *out, const json_t *value)
{
    own_str text = json_write(value, JSON_COMPACT | JSON_ENCODE_ANY);
    cli_visible_line(str_of(text ? text : "?"), SHOWN_WIDTH, out);
}

static void print_differences(const json_t *differences)
{
    own_buf out = BUF_INIT(TOLD_MAX);
    size_t i;
    json_t *one;
    json_array_foreach (differences, i, one) {
        cli_visible_line(json_get_str(one, "what"), SHOWN_WIDTH, &out);
        buf_add_text(&out, "\n  recorded  ");
        add_short(&out, json_object_get(one, "recorded"));
        buf_add_text(&out, "\n  now       ");
        add_short(&out, json_object_get(one, "now"));
        buf_add_text(&out, "\n");
    }
    if (json_array_size(differences) == 0)
        buf_add_text(&out, "no difference\n");
    cli_term_write(STDOUT_FILENO, buf_str(&out));
}

static void on_event(void *user, const char *kind, const json_t *data)
{
    struct cli_ask *ask = user;
    cli_ask_draw_event(&ask->draw, kind, data);
}

static size_t redact(void *user, json_t *report)
{
    return tasklog_redact(user, report);
}

int cli_tasks_replay(struct cli_tasks *tasks, struct err *err)
{
    struct cli_ask *ask = &tasks->ask;
    ask->draw.answer_fd = -1;
    ask->draw.quiet = true;
    if (cli_ask_ready(ask, err) < 0)
        return -1;
    const struct agent_watch watch = { .on = on_event,
                                       .user = ask,
                                       .cancel_fd = ask->interrupt_fd };
    const struct agent_replay replay = { .id = ask->id,
                                         .events = ask->events,
                                         .files = ask->files,
                                         .file_count = ask->made_of.file_count,
                                         .engine = &ask->remote.client,
                                         .watch = &watch,
                                         .redact = redact,
                                         .user = ask->store.log };
    own_json told = agent_replay(&replay, err);
    if (!told)
        return -1;
    int code = json_is_true(json_object_get(told, "same")) ? 0 : 1;
    if (ask->options.run.json)
        return cli_term_json(told) != 0 ? 125 : code;
    print_differences(json_object_get(told, "differences"));
    return code;
}
