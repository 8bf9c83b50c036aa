/* A whole task from its record, without a model: one question after another on one session. Runs in
 * the task's process or thread; blocks. */
#include <stdio.h>
#include <string.h>

#include "agent/past.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/own.h"

/* Files that are not what they were: the reason for most differences. */
static void compare_files(const struct agent_replay *replay, const json_t *task, json_t *out)
{
    size_t i;
    json_t *row;
    json_array_foreach (json_object_get(task, "files"), i, row) {
        char digest[HASH_HEX_ROOM] = "";
        own_buf what = BUF_INIT(8192);
        struct str path = json_get_str(row, "path");
        for (size_t j = 0; j < replay->file_count; j++)
            if (str_is(path, replay->files[j].path))
                hash_hex(replay->files[j].content, digest);
        if (str_is(json_get_str(row, "sha256"), digest))
            continue;
        buf_printf(&what, "file %.4000s", path.at);
        json_array_append_new(out, json_pack("{s:o, s:o, s:o}", "what", json_text(buf_str(&what)),
                                             "recorded", json_text(json_get_str(row, "sha256")),
                                             "now", json_text_or_null(digest)));
    }
}

static struct agent *begin(const struct agent_replay *replay, const struct agent_past *past,
                           struct llm_model *model, bool conversation)
{
    const json_t *setup = past->setup;
    struct str house = json_get_str(setup, "instructions");
    json_t *schema = json_object_get(setup, "schema");
    json_t *session = json_object_get(setup, "session");
    struct agent_task task = {
        .id = replay->id,
        .question = json_get_str(past->task, "question").at,
        .files = replay->files,
        .file_count = replay->file_count,
        .budget = AGENT_BUDGET_DEFAULT,
        .mode = str_is(json_get_str(setup, "mode"), "tools") ? AGENT_TOOLS : AGENT_CODE,
        .model = model,
        .planner = json_is_string(json_object_get(setup, "planner")) ? model : NULL,
        .judge = json_is_string(json_object_get(setup, "judge")) ? model : NULL,
        .cross_check = json_is_true(json_object_get(setup, "cross_check")),
        .schema = json_is_object(schema) ? schema : NULL,
        .instructions = house.len ? house.at : NULL,
        .verify = !json_is_false(json_object_get(setup, "verify")),
        .conversation = conversation,
        .engine = replay->engine,
        .session = json_is_object(session) ? session : NULL,
        .past = past,
        .replays = true,
    };
    agent_past_budget(past, &task.budget);
    return agent_new(&task);
}

/* One question; its report, redacted as the record is. NULL: err. */
static json_t *run(const struct agent_replay *replay, struct agent *agent, json_t *differences,
                   const struct agent_past *past)
{
    enum agent_status status;
    own_json report = agent_run(agent, replay->watch, &status);
    json_t *copy = json_deep_copy(report);
    if (replay->redact)
        replay->redact(replay->user, copy);
    agent_past_compare(past, copy, differences);
    return copy;
}

json_t *agent_replay(const struct agent_replay *replay, struct err *err)
{
    const size_t questions = agent_past_questions(replay->events);
    own_json differences = json_array();
    own_json report = NULL;
    struct agent_past past = AGENT_PAST_INIT; /* the agent looks at it */
    struct llm_model *model = NULL;
    struct agent *agent = NULL;
    int rc = questions ? 0 : err_set(err, ERR_INPUT, "the record has no question");
    for (size_t i = 0; rc == 0 && i < questions; i++) {
        agent_past_done(&past);
        rc = agent_past_read(replay->events, i, /* replays= */ true, &past, err);
        if (rc < 0 || (rc = agent_past_is_whole(&past, err)) < 0)
            break;
        if (i + 1 == questions)
            compare_files(replay, past.task, differences);
        if (!agent) {
            model = llm_remembered(json_get_str(past.task, "model").at,
                                   json_is_true(json_object_get(past.setup, "sees")),
                                   json_is_true(json_object_get(past.setup, "calls_tools")));
            agent = begin(replay, &past, model, questions > 1);
        } else {
            rc = agent_follow(agent, json_get_str(past.task, "question").at, replay->files,
                              replay->file_count, err);
        }
        json_t *next = rc == 0 ? run(replay, agent, differences, &past) : NULL;
        json_decref(report);
        report = next;
    }
    agent_done(agent);
    llm_close(model);
    agent_past_done(&past);
    if (rc < 0)
        return NULL;
    return json_pack("{s:s, s:b, s:O, s:O?}", "task", replay->id, "same",
                     json_array_size(differences) == 0, "differences", differences, "report",
                     report);
}
