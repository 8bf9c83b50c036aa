/* Sessions in a request: a cell's session, the fields of a new session, and the fields that a cell
 * inherits. Runs in any process that reads requests; pure. */
#include <stdio.h>

#include "base/own.h"
#include "contract/request_int.h"

const char *const request_on_errors[] = {
    [REQUEST_KEEP] = "keep",
    [REQUEST_ROLLBACK] = "rollback",
    NULL,
};

int request_take_session(struct request_intake *in, const json_t *value, struct err *err)
{
    if (request_check_text(value, "session", err) < 0)
        return -1;
    const char *text = json_string_value(value);
    if (strlen(text) != REQUEST_SESSION_LEN || strncmp(text, "s_", 2) != 0 ||
        strspn(text + 2, "0123456789abcdef") != REQUEST_SESSION_LEN - 2)
        return request_refuse("session", value, "s_ and 24 hexadecimal digits", "not a session id",
                              err);
    in->out->session = text;
    return 0;
}

static int refuse_without_session(const char *field, const json_t *value, struct err *err)
{
    request_refuse(field, value, "a request with 'session'", "only for cells of a session", err);
    err_hint(err, "leave '%s' out, or name the session", field);
    return -1;
}

int request_take_on_error(struct request_intake *in, const json_t *value, struct err *err)
{
    if (request_check_text(value, "on_error", err) < 0)
        return -1;
    int found = request_find_name(request_on_errors, json_str(value));
    if (found < 0)
        return request_refuse("on_error", value, "keep or rollback", "neither of its values", err);
    in->out->on_error = (enum request_on_error)found;
    return in->out->session ? 0 : refuse_without_session("on_error", value, err);
}

int request_take_names(struct request_intake *in, const json_t *value, struct err *err)
{
    if (!json_is_boolean(value))
        return request_refuse("names", value, "true or false", "not a boolean", err);
    in->out->names = json_is_true(value);
    return in->out->session ? 0 : refuse_without_session("names", value, err);
}

/* Fixed for a session's life: its box is built with them. */
static const enum limits_id fixed[] = { LIMITS_MEMORY, LIMITS_DISK, LIMITS_PIDS, LIMITS_CPUS };

static const char *const session_members[] = { "language", "profile", "limits", "env",
                                               "files",    "image",   "tier",   "seed",
                                               "packages", "tools",  NULL };

int request_from_session_json(json_t *object, const struct request_ceilings *ceilings,
                              struct request *out, struct err *err)
{
    if (!json_is_object(object))
        return request_refuse("request", object, "an object", "not an object", err);
    if (request_check_members(object, "", session_members, err) < 0)
        return -1;
    own_json whole = json_copy(object);
    json_object_set_new(whole, "code", json_string(""));
    if (request_from_json(whole, ceilings, out, err) < 0)
        return -1;
    if (request_languages[out->language].sessions)
        return 0;
    request_done(out);
    request_refuse("language", json_object_get(object, "language"),
                   "python, javascript, bash or typescript", "a language without sessions", err);
    err_hint(err, "use cupel run, and keep the state in files");
    return -1;
}

static int check_fixed(const json_t *limits, const struct request *session, struct err *err)
{
    for (size_t i = 0; i < array_len(fixed); i++) {
        const struct limits_row *row = &limits_rows[fixed[i]];
        const json_t *given = json_object_get(limits, row->name);
        own_json own = limits_value_json(fixed[i], session->limits.value[fixed[i]]);
        if (!given || (json_is_number(given) && json_number_value(given) == json_number_value(own)))
            continue;
        char field[48], bound[64];
        snprintf(field, sizeof field, "limits.%s", row->name);
        snprintf(bound, sizeof bound, "%.15g, the session's", json_number_value(own));
        request_refuse(field, given, bound, "fixed by its session", err);
        err_hint(err, "start a new session with this value");
        return -1;
    }
    return 0;
}

static int check_same(const json_t *cell, const char *field, const char *own, struct err *err)
{
    const json_t *given = json_object_get(cell, field);
    if (!given || (json_is_string(given) && str_is(json_str(given), own)))
        return 0;
    int language = strcmp(field, "language") == 0 && json_is_string(given)
                       ? request_language_find(json_string_value(given))
                       : -1;
    if (language >= 0 && strcmp(request_languages[language].name, own) == 0)
        return 0;
    return request_refuse(field, given, own, "different from the session's", err);
}

/* A session's interpreter has its seed, or none, from its start. */
static int check_seed(const json_t *cell, const struct request *session, struct err *err)
{
    const json_t *given = json_object_get(cell, "seed");
    char bound[64] = "none, as the session";
    if (!given ||
        (session->has_seed && json_is_number(given) && json_number_value(given) == session->seed))
        return 0;
    if (session->has_seed)
        snprintf(bound, sizeof bound, "%u, the session's", session->seed);
    request_refuse("seed", given, bound, "fixed by its session", err);
    err_hint(err, "start a new session with this seed");
    return -1;
}

/* A cell runs in the image of its session, whatever the default is now. */
static int check_image(const json_t *cell, const struct request *session, struct err *err)
{
    const json_t *given = json_object_get(cell, "image");
    char pinned[2 * REQUEST_IMAGE_ROOM];
    snprintf(pinned, sizeof pinned, "%s@%s", session->image,
             session->image_digest ? session->image_digest : "");
    if (json_is_string(given) && str_is(json_str(given), pinned))
        return 0;
    if (check_same(cell, "image", session->image, err) == 0)
        return 0;
    err_hint(err, "leave 'image' out, or start a new session with this image");
    return -1;
}

json_t *request_of_cell(const json_t *cell, const struct request *session, struct err *err)
{
    const json_t *limits = json_object_get(cell, "limits");
    const char *language = request_languages[session->language].name;
    if (check_same(cell, "language", language, err) < 0 ||
        check_same(cell, "profile", session->profile->name, err) < 0 ||
        check_image(cell, session, err) < 0 || check_seed(cell, session, err) < 0 ||
        (limits && check_fixed(limits, session, err) < 0))
        return NULL;
    json_t *whole = json_copy((json_t *)(uintptr_t)cell);
    json_object_set_new(whole, "language", json_string(language));
    json_object_set_new(whole, "profile", json_string(session->profile->name));
    json_object_set_new(whole, "image", json_string(session->image));
    if (session->has_seed)
        json_object_set_new(whole, "seed", json_integer(session->seed));
    if (session->tools && !json_object_get(cell, "tools"))
        json_object_set(whole, "tools", (json_t *)(uintptr_t)session->tools);
    if (limits && !json_is_object(limits))
        return whole; /* refused as in any request */
    own_json filled = limits_to_json(&session->limits);
    if (limits && json_object_get(limits, "timeout_s"))
        json_object_del(filled, "cpu_s"); /* derived from it, unless given */
    json_object_update(filled, (json_t *)(uintptr_t)limits);
    json_object_set(whole, "limits", filled);
    return whole;
}
