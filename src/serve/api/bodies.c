/* The bodies of requests for runs and sessions. Runs in the serve process; pure. */
#include "serve/api/bodies.h"

#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/json.h"
#include "contract/limits.h"

int bodies_run(json_t *body, bool *out_wait, struct err *err)
{
    const json_t *wait = json_object_get(body, "wait");
    char value[sizeof err->value];
    if (wait && !json_is_boolean(wait)) {
        json_brief(wait, value, sizeof value);
        return err_input(err, "wait", value, "true or false", "field 'wait' is not a boolean");
    }
    *out_wait = !wait || json_is_true(wait);
    json_object_del(body, "wait");
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
