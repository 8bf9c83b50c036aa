/* The body of POST /v1/tasks and of a reply, checked. Pure. */
#ifndef SERVE_API_TASKS_REQUEST_H
#define SERVE_API_TASKS_REQUEST_H

#include <jansson.h>

#include "agent/agent.h"
#include "base/buf.h"
#include "base/err.h"
#include "contract/request.h"
#include "serve/api/models.h"

#define TASKS_QUESTION_MAX (256u << 10)
#define TASKS_INSTRUCTIONS_MAX (64u << 10)
#define TASKS_SCHEMA_MAX (1u << 20)
#define TASKS_REPLY_MAX 60000 /* bytes of a text for the model */

struct tasks_request {
    json_t *root; /* keeps what is below */
    struct buf question;
    struct request made_of; /* the session's request, with the files */
    json_t *session;        /* the same for the agent, without files */
    struct agent_budget budget;
    enum agent_mode mode;
    bool cross_check, verify, conversation, wait;
    const json_t *schema;     /* or NULL */
    const char *instructions; /* or NULL */
    const json_t *allow; /* of a reply: true or false; NULL: not there */
    const char *text;         /* a reply to ask_user; NULL: a question */
    struct api_models_wish models;
};
#define TASKS_REQUEST_INIT \
    ((struct tasks_request){ .budget = AGENT_BUDGET_DEFAULT, .verify = true })
void tasks_request_done(struct tasks_request *request);

int tasks_request_read(json_t *root, const struct request_ceilings *ceilings,
                       struct tasks_request *out, struct err *err);
/* For the agent: without engine, models and record. The request stays the caller's. */
struct agent_task tasks_request_task(const struct tasks_request *request,
                                     const struct agent_file *files, size_t file_count);
/* Its files, into room for all of them. Returns how many. */
size_t tasks_request_files(const struct tasks_request *request, struct agent_file *out);

/* {"text"}, or {"question","files"?,"wait"?}. The files are added to those of `first`, the task's
 * request; a path that is there already is refused. */
int tasks_request_read_reply(json_t *root, const struct tasks_request *first,
                             const struct request_ceilings *ceilings, struct tasks_request *out,
                             struct err *err);

/* {"budget"?,"model"?,"wait"?} of a task that is taken up: changes `first`, the task's request. */
int tasks_request_read_resume(json_t *root, struct tasks_request *first, bool *out_wait,
                              struct err *err);

#endif
