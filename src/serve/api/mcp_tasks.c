/* The tool `ask` over HTTP: its tasks are those of /v1/tasks, with the token's rights and quotas.
 * Runs in the serve process, in its loop. */
#include <stdio.h>
#include <string.h>

#include "serve/api/mcp.h"
#include "serve/api/tasks.h"

static int begin(void *user, json_t *request, char out_id[MCP_TASK_ROOM], struct err *err)
{
    const struct api_mcp_owner *owner = user;
    bool unused;
    struct api_task *task = task_check_open(owner->api, err) < 0
                                ? NULL
                                : task_new(owner->api, owner->who, request, &unused, err);
    if (!task)
        return -1;
    task->kept = true;
    task->mcp = owner->serial;
    snprintf(out_id, MCP_TASK_ROOM, "%s", task->id);
    return 0;
}

static struct api_task *find(const struct api_mcp_owner *owner, const char *id)
{
    return task_of(owner->api, owner->who, id);
}

static int reply(void *user, const char *id, struct str text, struct err *err)
{
    struct api_task *task = find(user, id);
    if (task)
        return task_answer_model(task, text, err);
    api_absent(err, "task", id);
    return -1;
}

static void stop(void *user, const char *id)
{
    struct api_task *task = find(user, id);
    if (task)
        tasks_thread_cancel(task->thread);
}

static struct str file(void *user, const char *id, const char *path)
{
    const struct api_task *task = find(user, id);
    for (size_t i = 0; task && i < task->artifact_count; i++)
        if (strcmp(task->artifacts[i].path, path) == 0)
            return buf_str(&task->artifacts[i].content);
    return STR_NONE;
}

const struct mcp_agent api_mcp_agent = { begin, reply, stop, file, /* forget= */ NULL };

/* --- news --- */

static struct mcp_hall *hall_of(const struct api_task *task)
{
    const struct api_mcp *all = task->tasks->api->mcp;
    return task->mcp && all ? api_mcp_hall(all, task->mcp) : NULL;
}

void task_tell_mcp(const struct api_task *task, const char *kind, const json_t *data)
{
    struct mcp_hall *hall = hall_of(task);
    if (hall)
        mcp_hall_task_news(hall, task->id, kind, data);
}

void task_tell_mcp_ask(const struct api_task *task)
{
    struct mcp_hall *hall = hall_of(task);
    if (hall)
        mcp_hall_task_asks(hall, task->id, task->asks);
}

void task_tell_mcp_end(const struct api_task *task, const json_t *report)
{
    struct mcp_hall *hall = hall_of(task);
    if (hall)
        mcp_hall_task_over(hall, task->id, report);
}
