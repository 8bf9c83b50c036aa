/* Fuzz the bodies of POST /v1/run, /v1/run_python, /v1/sessions and /v1/tasks, from their bytes to
 * the requests of the contract. A refusal names a field; a request that passes is within the limits
 * of the contract and has no field that is the door's own. */
#include <stdint.h>
#include <stdlib.h>

#include "base/json.h"
#include "contract/frame.h"
#include "contract/request.h"
#include "serve/api/bodies.h"
#include "serve/api/tasks_request.h"

#define BODY_MAX (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct request_ceilings ceilings = { .host_memory_bytes = INT64_C(1) << 34 };

static void check_refusal(const struct err *err)
{
    if (err->kind != ERR_INPUT || !*err->text)
        abort();
}

static void as_request(json_t *body)
{
    own_request request = REQUEST_INIT;
    struct err err = ERR_INIT;
    if (request_from_json(body, &ceilings, &request, &err) < 0)
        check_refusal(&err);
    else if (request.limits.value[LIMITS_TIMEOUT] > limits_rows[LIMITS_TIMEOUT].most)
        abort();
}

static void as_run(const json_t *root)
{
    own_json body = json_deep_copy(root);
    struct err err = ERR_INIT;
    struct bodies_run run;
    if (bodies_run(body, &run, &err) < 0) {
        check_refusal(&err);
        return;
    }
    if (json_object_get(body, "wait") || json_object_get(body, "approve"))
        abort();
    as_request(body);
}

static void as_decision(const json_t *body)
{
    struct err err = ERR_INIT;
    struct str reason = STR_NONE;
    bool allow = false;
    if (bodies_decision(body, &allow, &reason, &err) < 0)
        check_refusal(&err);
}

static void as_python(const json_t *root)
{
    struct err err = ERR_INIT;
    own_json body = bodies_python(root, &err);
    if (!body) {
        check_refusal(&err);
        return;
    }
    if (!str_is(json_get_str(body, "language"), "python") || json_object_get(body, "timeout_ms"))
        abort();
    as_request(body);
}

static void as_session(const json_t *root)
{
    own_frame_ask ask = FRAME_ASK_INIT;
    struct frame_session what;
    struct err err = ERR_INIT;
    own_request request = REQUEST_INIT;
    ask.root = bodies_session(root);
    if (frame_session_read(&ask, &what, &err) < 0) {
        check_refusal(&err);
        return;
    }
    if (what.what != FRAME_DO_NEW)
        abort();
    if (request_from_session_json(what.request, &ceilings, &request, &err) < 0)
        check_refusal(&err);
}

static void as_task(const json_t *root)
{
    own_json body = json_deep_copy(root);
    struct tasks_request task = TASKS_REQUEST_INIT, reply = TASKS_REQUEST_INIT;
    struct err err = ERR_INIT;
    if (tasks_request_read(body, &ceilings, &task, &err) < 0)
        check_refusal(&err);
    else if (task.question.len == 0)
        abort();
    else if (tasks_request_read_reply(body, &task, &ceilings, &reply, &err) < 0)
        check_refusal(&err);
    tasks_request_done(&reply);
    tasks_request_done(&task);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = ERR_INIT;
    own_json root = json_read((struct str){ (const char *)data, size }, BODY_MAX, &err);
    if (!root)
        check_refusal(&err);
    if (!json_is_object(root))
        return 0;
    as_decision(root);
    as_run(root);
    as_python(root);
    as_session(root);
    as_task(root);
    return 0;
}
