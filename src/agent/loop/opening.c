/* A model's start of a task: the prompt, the tools, the question with its files, and the plan. The
 * prompt never changes during the task. */
#include <stdio.h>
#include <string.h>

#include "agent/agent_int.h"
#include "agent/prompts.h"
#include "agent/read/observe.h"
#include "agent/loop/plan_reply.h"
#include "base/json.h"
#include "base/own.h"

#define OPENING_MAX (4u << 20)
#define HEADS_MAX 6     /* files whose first lines are shown */
#define HEAD_CHARS 500
#define SCHEMA_CHARS 8000

static const char *const cell_text = "a fenced ```python block.";
static const char *const cell_tool = "a call of the tool `python`, or a fenced ```python block.";

const char *agent_opening_python(void)
{
    static _Thread_local char python[64]; /* tasks run in several threads */
    if (!python[0])
        snprintf(python, sizeof python, "Python %s",
                 &BUILD_PYTHON[strncmp(BUILD_PYTHON, "python", 6) == 0 ? 6 : 0]);
    return python;
}

/* The house rules of a user come last: they may narrow the task, never the marks of data. */
static char *house_of(const struct agent *agent)
{
    own_buf out = BUF_INIT(OPENING_MAX);
    if (agent->task.instructions && agent->task.instructions[0])
        buf_printf(&out, "\n\n# Instructions of the user\n%s\n", agent->task.instructions);
    return buf_take(&out);
}

char *agent_opening_prompt(const struct agent *agent, int prompt)
{
    char seconds[32], memory[32];
    own_str house = house_of(agent);
    own_str offer = agent_offer(agent);
    snprintf(seconds, sizeof seconds, "%.0f", agent->box.timeout_s);
    snprintf(memory, sizeof memory, "%lld MiB of memory",
             (long long)(agent->box.memory_bytes >> 20));
    const struct agent_prompt_word words[] = {
        { "python", agent_opening_python() },
        { "seconds", seconds },
        { "memory", memory },
        { "tag", agent->tag },
        { "house", house },
        { "offer", offer },
        { "cell", agent->tools ? cell_tool : cell_text },
    };
    return agent_prompt_fill((enum agent_prompt)prompt, words, array_len(words));
}

json_t *agent_opening_tools(enum agent_mode mode)
{
    json_t *tools = json_pack(
        "[{s:s, s:s, s:{s:s, s:{s:{s:s, s:s}, s:{s:s, s:s}}, s:[s]}},"
        " {s:s, s:s, s:{s:s, s:{s:{s:s}, s:{s:s}, s:{s:s, s:{s:s}}}, s:[s, s]}}]",
        "name", "python", "description", "Run one cell of Python in the session.", "schema", "type",
        "object", "properties", "code", "type", "string", "description", "the cell", "purpose",
        "type", "string", "description", "what it is for, in a few words", "required", "code",
        "name", "answer", "description",
        "Give the final answer: values are Python expressions over computed names.", "schema",
        "type", "object", "properties", "template", "type", "string", "values", "type", "object",
        "files", "type", "array", "items", "type", "string", "required", "template", "values");
    if (mode == AGENT_CODE)
        return tools;
    json_array_append_new(
        tools, json_pack("{s:s, s:s, s:{s:s, s:{s:{s:s}, s:{s:s}, s:{s:s}}, s:[s]}}", "name",
                         "read_file", "description", "Lines of a file.", "schema", "type", "object",
                         "properties", "path", "type", "string", "start_line", "type", "integer",
                         "lines", "type", "integer", "required", "path"));
    json_array_append_new(tools, json_pack("{s:s, s:s, s:{s:s, s:{}}}", "name", "list_files",
                                           "description", "The files that are there.", "schema",
                                           "type", "object", "properties"));
    return tools;
}

/* The first lines of a text file; only the size of others. */
static void add_head(const struct agent_file *file, struct buf *out)
{
    own_buf head = BUF_INIT(HEAD_CHARS * 4);
    if (agent_observe_head(file->content, HEAD_CHARS, &head) < 0)
        return;
    buf_printf(out, "--- %s begins:\n", file->path);
    agent_observe_text(buf_str(&head), 2 * HEAD_CHARS, out);
}

static void add_files(const struct agent *agent, size_t from, struct buf *out)
{
    own_buf files = BUF_INIT(OPENING_MAX);
    for (size_t i = from; i < agent->task.file_count; i++)
        buf_printf(&files, "%.500s (%zu bytes)\n", agent->task.files[i].path,
                   agent->task.files[i].content.len);
    for (size_t i = from; i < agent->task.file_count && i < from + HEADS_MAX; i++)
        add_head(&agent->task.files[i], &files);
    if (files.len) {
        buf_add_text(out, "Files in /workspace:\n");
        agent_observe_data(buf_str(&files), agent->tag, out);
    } else if (from == 0) {
        buf_add_text(out, "There are no files.\n");
    }
}

static void add_schema(const struct agent *agent, struct buf *out)
{
    own_str schema = agent->task.schema ? json_write(agent->task.schema, JSON_COMPACT) : NULL;
    if (schema)
        buf_printf(out, "The values of answer() must satisfy this JSON Schema:\n%.*s\n",
                   (int)str_cut_utf8(str_of(schema), SCHEMA_CHARS), schema);
}

char *agent_opening_text(const struct agent *agent)
{
    own_buf out = BUF_INIT(OPENING_MAX);
    if (agent->earlier)
        buf_printf(&out, "Asked before, in this conversation:\n%.*s\n", (int)agent->earlier,
                   agent->asked.at);
    buf_printf(&out, "Task:\n%s\n\n", agent->task.question);
    add_schema(agent, &out);
    add_files(agent, 0, &out);
    return buf_take(&out);
}

/* A further question: the model knows the rest. */
static void go_on(struct agent *agent)
{
    own_buf out = BUF_INIT(OPENING_MAX);
    buf_printf(&out, "The user goes on; names and files are still there.\n\nTask:\n%s\n\n",
               agent->task.question);
    if (agent->task.file_count > agent->files_told)
        add_files(agent, agent->files_told, &out);
    agent_history_say(&agent->history, out.at);
}

void agent_opening_plan(struct agent *agent, const char *text)
{
    json_decref(agent->plan);
    agent->plan = agent_plan_read(text);
    agent_tell(agent, "plan", json_incref(agent->plan));
}

/* A separate planner call: its plan is advice for the working model. */
static void ask_planner(struct agent *agent)
{
    own_str instructions = agent_opening_prompt(agent, AGENT_PROMPT_PLAN);
    own_str text = agent_opening_text(agent);
    own_json messages = json_pack("[{s:s, s:[{s:s, s:o}]}]", "role", "user", "content", "type",
                                  "text", "text", json_text(str_of(text)));
    const struct agent_call call = { .by = "planner",
                                     .model = agent->task.planner,
                                     .instructions = instructions,
                                     .messages = messages,
                                     .heard = true };
    struct llm_reply reply;
    agent_phase(agent, "plan");
    agent_call(agent, &call, &reply);
    if (reply.outcome == LLM_OK && !agent->ended) {
        agent_opening_plan(agent, reply.text);
        agent->planned = true;
    } else if (!agent->ended) {
        agent_call_failed(agent, &reply);
    }
    llm_reply_done(&reply);
}

void agent_opening(struct agent *agent)
{
    bool tools_mode = agent->task.mode == AGENT_TOOLS;
    bool further = json_array_size(agent->history.messages) > 0;
    if (!agent->tools && llm_calls_tools(agent->task.model))
        agent->tools = agent_opening_tools(agent->task.mode);
    if (!agent->instructions)
        agent->instructions = agent_opening_prompt(agent, tools_mode ? AGENT_PROMPT_TOOLS
                                                                     : AGENT_PROMPT_SYSTEM);
    if (agent->task.planner)
        ask_planner(agent);
    if (agent->ended)
        return;
    if (further) {
        go_on(agent);
    } else {
        own_str text = agent_opening_text(agent);
        agent_history_say(&agent->history, text);
    }
    if (agent->mark_count)
        agent->marked[agent->mark_count - 1].said = json_incref(
            agent_history_last(&agent->history));
    agent->files_told = agent->task.file_count;
    if (!agent->planned)
        return;
    own_str plan = json_dumps(json_object_get(agent->plan, "steps"), JSON_COMPACT);
    own_buf said = BUF_INIT(OPENING_MAX);
    buf_printf(&said, "A planner advises: %s\n", plan);
    agent_history_say(&agent->history, said.at);
}
