/* The bodies of requests for runs and sessions. Runs in the serve process; pure. */
#include "serve/api/bodies.h"

#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/json.h"
#include "contract/frame.h"
#include "contract/limits.h"

static int take_flag(json_t *body, const char *name, bool *out, struct err *err)
{
    const json_t *flag = json_object_get(body, name);
    char value[sizeof err->value];
    if (flag && !json_is_boolean(flag)) {
        json_brief(flag, value, sizeof value);
        return err_input(err, name, value, "true or false", "field '%s' is not a boolean", name);
    }
    *out = flag ? json_is_true(flag) : *out;
    json_object_del(body, name);
    return 0;
}

int bodies_run(json_t *body, struct bodies_run *out, struct err *err)
{
    struct bodies_run own = { .wait = true };
    if (take_flag(body, "wait", &own.wait, err) < 0 ||
        take_flag(body, "approve", &own.approve, err) < 0)
        return -1;
    *out = own;
    return 0;
}

int bodies_decision(const json_t *body, bool *out_allow, struct str *out_reason, struct err *err)
{
    const json_t *allow = json_object_get(body, "allow"), *reason = json_object_get(body, "reason");
    const char *name;
    json_t *value;
    char brief[sizeof err->value];
    json_object_foreach ((json_t *)(uintptr_t)body, name, value)
        if (value != allow && value != reason)
            return err_input(err, name, NULL, "allow, reason", "field '%.80s' is unknown", name);
    if (!json_is_boolean(allow)) {
        json_brief(allow, brief, sizeof brief);
        return err_input(err, "allow", allow ? brief : NULL, "true or false", "field 'allow' is %s",
                         allow ? "not a boolean" : "missing");
    }
    if (reason && (json_is_true(allow) || !json_is_string(reason) ||
                   json_string_length(reason) > FRAME_REASON_MAX)) {
        json_brief(reason, brief, sizeof brief);
        return err_input(err, "reason", brief,
                         "a string of at most 1000 bytes, beside \"allow\": false",
                         "field 'reason' is not the reason of a refusal");
    }
    *out_allow = json_is_true(allow);
    *out_reason = reason ? json_str(reason) : STR_NONE;
    return 0;
}

static int check_names(const json_t *body, struct err *err)
{
    static const char *const known[] = { "code", "files", "timeout_ms" };
    void *at = json_object_iter((json_t *)(uintptr_t)body);
    for (; at; at = json_object_iter_next((json_t *)(uintptr_t)body, at)) {
        const char *name = json_object_iter_key(at);
        size_t i = 0;
        while (i < array_len(known) && strcmp(known[i], name) != 0)
            i++;
        if (i == array_len(known))
            return err_input(err, name, NULL, "code, files, timeout_ms", "field '%.80s' is unknown",
                             name);
    }
    return 0;
}

/* The stored unit of timeout_s is the millisecond. */
static int check_timeout(const json_t *timeout, struct err *err)
{
    const struct limits_row *row = &limits_rows[LIMITS_TIMEOUT];
    char brief[sizeof err->value], bound[sizeof err->bound];
    double ms = json_number_value(timeout);
    if (!timeout ||
        (json_is_number(timeout) && ms >= (double)row->least && ms <= (double)row->most))
        return 0;
    json_brief(timeout, brief, sizeof brief);
    snprintf(bound, sizeof bound, "%lld to %lld", (long long)row->least, (long long)row->most);
    return err_input(err, "timeout_ms", brief, bound, "field 'timeout_ms' is out of range");
}

json_t *bodies_python(const json_t *body, struct err *err)
{
    const json_t *timeout = json_object_get(body, "timeout_ms");
    if (check_names(body, err) < 0 || check_timeout(timeout, err) < 0)
        return NULL;
    json_t *request = json_copy((json_t *)(uintptr_t)body);
    json_object_del(request, "timeout_ms");
    json_object_set_new(request, "language", json_string("python"));
    if (timeout)
        json_object_set_new(request, "limits",
                            json_pack("{s:f}", "timeout_s", json_number_value(timeout) / 1000));
    return request;
}

json_t *bodies_session(const json_t *body)
{
    static const char *const beside[] = { "ttl_s", "life_s", "undo_levels" };
    json_t *request = json_copy((json_t *)(uintptr_t)body);
    json_t *frame = json_pack("{s:s, s:o}", "do", "new", "request", request);
    for (size_t i = 0; i < array_len(beside); i++) {
        json_t *value = json_object_get(body, beside[i]);
        if (value)
            json_object_set(frame, beside[i], value);
        json_object_del(request, beside[i]);
    }
    return frame;
}
