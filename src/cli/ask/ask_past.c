/* A question that is taken up where it stopped, or replayed: everything that its record says and no
 * option does. Runs in the cli process. The record may be of any form: what it names is opened as a
 * person would open it, and checked likewise. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "cli/ask/ask.h"

static const char *text_or(const json_t *object, const char *name, const char *other)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : other;
}

/* NULL: none, "": the task's own model, else a model by name. */
static const char *helper_of(const json_t *setup, const char *name, const char *own)
{
    const char *model = text_or(setup, name, NULL);
    return model && strcmp(model, own) == 0 ? "" : model;
}

static void remember_models(struct cli_ask *ask, const char *name, const json_t *setup)
{
    ask->model = llm_remembered(name, json_is_true(json_object_get(setup, "sees")),
                                json_is_true(json_object_get(setup, "calls_tools")));
    ask->planner = json_is_string(json_object_get(setup, "planner")) ? ask->model : NULL;
    ask->judge = json_is_string(json_object_get(setup, "judge")) ? ask->model : NULL;
}

int cli_ask_past_setup(struct cli_ask *ask, struct err *err)
{
    struct cli_ask_options *o = &ask->options;
    const json_t *setup = json_object_get(ask->peeked, "setup");
    const json_t *task = json_object_get(ask->peeked, "task");
    const struct agent_past past = { .task = (json_t *)(uintptr_t)task,
                                     .setup = (json_t *)(uintptr_t)setup };
    const char *name = text_or(task, "model", "");
    if (!json_is_object(setup))
        return agent_past_is_whole(&(struct agent_past){ 0 }, err);
    o->mode = strcmp(text_or(setup, "mode", "code"), "tools") == 0 ? AGENT_TOOLS : AGENT_CODE;
    o->cross_check = json_is_true(json_object_get(setup, "cross_check"));
    if (!o->budgets && !o->max_steps.given)
        agent_past_budget(&past, &o->budget);
    if (json_is_object(json_object_get(setup, "schema")))
        ask->schema = json_incref(json_object_get(setup, "schema"));
    struct str house = json_get_str(setup, "instructions");
    ask->instructions = BUF_INIT(house.len + 1);
    buf_add_str(&ask->instructions, house);
    if (o->replays) {
        remember_models(ask, name, setup);
        return 0;
    }
    o->planner = helper_of(setup, "planner", name);
    o->judge = helper_of(setup, "judge", name);
    if (!o->model)
        o->model = name;
    return 0;
}

/* A further question has the tools of the last one, unless it names others. */
static void remember_tools(struct cli_ask *ask)
{
    json_t *tools = NULL, *event;
    size_t i;
    json_array_foreach (ask->events, i, event)
        if (str_is(json_get_str(event, "kind"), "setup"))
            tools = json_object_get(json_object_get(json_object_get(event, "data"), "session"),
                                    "tools");
    if (json_is_array(tools) && ask->options.run.tools.count == 0)
        json_object_set(ask->session, "tools", tools);
}

int cli_ask_past_ready(struct cli_ask *ask, struct err *err)
{
    const struct cli_ask_options *o = &ask->options;
    if (!o->resumes && !o->replays) {
        remember_tools(ask);
        return 0;
    }
    size_t questions = agent_past_questions(ask->events);
    if (agent_past_read(ask->events, o->resumes ? questions - 1 : 0, o->replays, &ask->past, err) <
            0 ||
        agent_past_is_whole(&ask->past, err) < 0 ||
        (o->resumes && agent_past_may_resume(&ask->past, err) < 0))
        return -1;
    json_t *session = json_object_get(ask->past.setup, "session");
    if (json_is_object(session)) {
        json_decref(ask->session);
        ask->session = json_deep_copy(session);
    }
    return 0;
}
