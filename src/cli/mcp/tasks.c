/* Tasks of `cupel mcp`, in threads as the HTTP service has them (serve/api/tasks_thread.h). Runs in
 * the cli process, in its loop, after the drop of rights: the starter reaches the engine of each
 * task. Tasks are recorded as those of `cupel ask` are. */
#include "cli/mcp/tasks.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/json.h"
#include "base/loop.h"
#include "base/own.h"
#include "cli/link/settings.h"
#include "cli/link/state_files.h"
#include "serve/api/models.h"
#include "serve/api/tasks_request.h"
#include "serve/api/tasks_thread.h"
#include "store/tasks/tasklog.h"

#define TASKS_MAX 4 /* at once: each may have an engine of its own */
#define ASK_S 3600 /* the longest wait for the user's answer */

struct task {
    struct task *next;
    struct cli_mcp_tasks *tasks;
    struct tasks_thread *thread;
    struct tasks_request request;
    struct agent_file *files;
    struct tasks_end end;
    int line; /* the engine's connection once more, to end it */
    bool over, forgotten;
};

struct cli_mcp_tasks {
    struct api_models *models;
    json_t *patterns; /* of redaction */
    const char **redact; /* the same, ended by NULL */
    int state_dir; /* -1: tasks are not recorded */
    struct loop loop;
    struct tasks_threads *threads;
    struct cli_starter *starter;
    struct mcp *const *mcp;
    struct task *first;
};

/* --- what the threads tell --- */

static void task_free(struct task *task)
{
    struct task **at = &task->tasks->first;
    while (*at != task)
        at = &(*at)->next;
    *at = task->next;
    tasks_thread_free(task->thread); /* it reads the request until then */
    tasks_request_done(&task->request);
    tasks_end_done(&task->end);
    own_close_fd(&task->line);
    free(task->files);
    free(task);
}

static void on_event(void *user, const char *kind, json_t *data)
{
    const struct task *task = user;
    own_json owned = data;
    mcp_task_news(*task->tasks->mcp, tasks_thread_id(task->thread), kind, owned);
}

static void on_ask(void *user, const char *question)
{
    const struct task *task = user;
    mcp_task_asks(*task->tasks->mcp, tasks_thread_id(task->thread), question ? question : "");
}

static void on_end(void *user, struct tasks_end *end)
{
    struct task *task = user;
    task->over = true;
    own_close_fd(&task->line);
    task->end = *end;
    *end = (struct tasks_end){ 0 };
    mcp_task_over(*task->tasks->mcp, tasks_thread_id(task->thread), task->end.report);
    json_decref(take_ptr(task->end.report)); /* its files stay */
    if (task->forgotten)
        task_free(task);
}

static const struct tasks_hooks hooks = { on_event, on_ask, on_end };

/* --- the agent --- */

static struct task *find(const struct cli_mcp_tasks *tasks, const char *id)
{
    struct task *task = tasks->first;
    while (task && strcmp(tasks_thread_id(task->thread), id) != 0)
        task = task->next;
    return task;
}

static int start(struct task *task, struct err *err)
{
    struct cli_mcp_tasks *tasks = task->tasks;
    struct tasks_question question = { .engine = -1, .owner = "", .door = "mcp", .ask_s = ASK_S };
    const size_t count = tasks_request_files(&task->request, task->files);
    question.task = tasks_request_task(&task->request, task->files, count);
    if (cli_starter_reach(tasks->starter, &question.engine, err) < 0)
        return -1;
    task->line = fcntl(question.engine, F_DUPFD_CLOEXEC, 0);
    if (api_models_choose(tasks->models, &task->request.models, &question.models, err) == 0)
        return tasks_thread_begin(task->thread, &question, err);
    own_close_fd(&question.engine);
    return -1;
}

static int begin(void *user, json_t *request, char out_id[MCP_TASK_ROOM], struct err *err)
{
    struct cli_mcp_tasks *tasks = user;
    const struct request_ceilings ceilings = {
        .host_memory_bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE),
    };
    struct tasks_request read;
    if (tasks_threads_running(tasks->threads) >= TASKS_MAX) {
        err_set(err, ERR_BUSY, "%d tasks run already, as many as may", TASKS_MAX);
        err_hint(err, "wait for one to end, or end one with the tool runs, do=stop");
        return -1;
    }
    if (tasks_request_read(request, &ceilings, &read, err) < 0)
        return -1;
    struct task *task = buf_alloc_zero(1, sizeof *task);
    *task = (struct task){ .tasks = tasks, .request = read, .line = -1, .next = tasks->first };
    tasks->first = task;
    task->files = buf_alloc_zero(read.made_of.file_count + 1, sizeof *task->files);
    task->thread = tasks_thread_new(tasks->threads, task);
    if (start(task, err) < 0) {
        task_free(task);
        return -1;
    }
    snprintf(out_id, MCP_TASK_ROOM, "%s", tasks_thread_id(task->thread));
    return 0;
}

static int reply(void *user, const char *id, struct str text, struct err *err)
{
    struct task *task = find(user, id);
    if (task && tasks_thread_reply(task->thread, text) == 0)
        return 0;
    err_set(err, ERR_CONFLICT, "task '%s' does not wait for a reply", id);
    err_hint(err, "its status is 'asking' while it waits for one");
    return -1;
}

static void stop(void *user, const char *id)
{
    struct task *task = find(user, id);
    if (task)
        tasks_thread_cancel(task->thread);
}

static struct str file(void *user, const char *id, const char *path)
{
    const struct task *task = find(user, id);
    for (size_t i = 0; task && i < task->end.artifact_count; i++)
        if (strcmp(task->end.artifacts[i].path, path) == 0)
            return buf_str(&task->end.artifacts[i].content);
    return STR_NONE;
}

static void forget(void *user, const char *id)
{
    struct task *task = find(user, id);
    if (task && task->over)
        task_free(task);
    else if (task)
        task->forgotten = true;
}

const struct mcp_agent cli_mcp_agent = { begin, reply, stop, file, forget };

/* --- begin and end --- */

/* A configuration that cannot be read was refused with the model. */
static void read_patterns(struct cli_mcp_tasks *tasks)
{
    struct err unheard = ERR_INIT;
    own_config config;
    config_init(&config);
    cli_settings_read(NULL, &config, &unheard);
    tasks->patterns = json_deep_copy(config.at[CONFIG_REDACT].value);
    const size_t count = json_array_size(tasks->patterns);
    tasks->redact = buf_alloc_zero(count + 1, sizeof *tasks->redact);
    for (size_t i = 0; i < count; i++)
        tasks->redact[i] = json_string_value(json_array_get(tasks->patterns, i));
}

struct cli_mcp_tasks *cli_mcp_tasks_open(struct err *err)
{
    struct api_models_options usual = { 0 };
    struct api_models *models = NULL;
    if (cli_settings_use_model(err) == 0) {
        const char *named = getenv("CUPEL_MODEL");
        usual.model = named && *named ? named : NULL;
        models = api_models_open(&usual, err);
    }
    if (!models || !api_models_any(models)) {
        api_models_close(models);
        return NULL;
    }
    struct cli_mcp_tasks *tasks = buf_alloc_zero(1, sizeof *tasks);
    tasks->models = models;
    tasks->loop = LOOP_INIT;
    read_patterns(tasks);
    tasks->state_dir = cli_state_open();
    return tasks;
}

int cli_mcp_tasks_ready(struct cli_mcp_tasks *tasks, struct cli_starter *starter,
                        struct mcp *const *mcp, struct err *err)
{
    const struct tasklog_options store = { .state_dir = tasks->state_dir, .redact = tasks->redact };
    tasks->starter = starter;
    tasks->mcp = mcp;
    if (api_models_ready(tasks->models, err) < 0)
        return -1;
    if (loop_open(&tasks->loop) < 0)
        return err_sys(err, "watch threads");
    tasks->threads = tasks_threads_open(&tasks->loop, &hooks, &store, err);
    return tasks->threads ? 0 : -1;
}

int cli_mcp_tasks_fd(const struct cli_mcp_tasks *tasks)
{
    return tasks ? tasks->loop.epoll : -1;
}

void cli_mcp_tasks_take(struct cli_mcp_tasks *tasks)
{
    if (loop_turn(&tasks->loop) < 0)
        loop_close(&tasks->loop);
}

void cli_mcp_tasks_close(struct cli_mcp_tasks *tasks)
{
    if (!tasks)
        return;
    for (struct task *task = tasks->first; task; task = task->next) {
        tasks_thread_cancel(task->thread);
        if (task->line >= 0)
            shutdown(task->line, SHUT_RDWR); /* an engine that hangs holds no thread */
    }
    tasks_threads_close(tasks->threads);
    while (tasks->first)
        task_free(tasks->first);
    api_models_close(tasks->models);
    loop_close(&tasks->loop);
    own_close_fd(&tasks->state_dir);
    json_decref(tasks->patterns);
    free(tasks->redact);
    free(tasks);
}
