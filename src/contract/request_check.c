/* Refusals and checks that several request fields share. Runs in any process that reads requests;
 * pure. */
#include <stdio.h>

#include "contract/request_int.h"

int request_refuse(const char *field, const json_t *value, const char *bound, const char *why,
                   struct err *err)
{
    char brief[160];
    json_brief(value, brief, sizeof brief);
    if (!*field)
        return err_input(err, field, brief, bound, "the request is %s", why);
    return err_input(err, field, brief, bound, "field '%s' is %s", field, why);
}

int request_refuse_later(const char *field, const json_t *value, struct err *err)
{
    char brief[160];
    json_brief(value, brief, sizeof brief);
    err_input(err, field, brief, NULL, "field '%s' is not supported by this version", field);
    err_hint(err, "leave '%s' out", field);
    return -1;
}

int request_refuse_size(const char *field, uint64_t size, uint64_t most, const char *unit,
                        struct err *err)
{
    char value[32], bound[96];
    snprintf(value, sizeof value, "%llu", (unsigned long long)size);
    snprintf(bound, sizeof bound, "at most %llu %s", (unsigned long long)most, unit);
    return err_input(err, field, value, bound, "field '%s' has %s %s, more than %llu", field, value,
                     unit, (unsigned long long)most);
}

int request_find_name(const char *const *names, struct str text)
{
    for (int i = 0; names[i]; i++) {
        if (str_is(text, names[i]))
            return i;
    }
    return -1;
}

int request_check_text(const json_t *value, const char *field, struct err *err)
{
    if (!json_is_string(value))
        return request_refuse(field, value, "a string", "not a string", err);
    if (memchr(json_string_value(value), 0, json_string_length(value)))
        return request_refuse(field, value, "text without NUL", "text with a NUL byte", err);
    return 0;
}

static bool is_limit(const char *name)
{
    for (int id = 0; id < LIMITS_COUNT; id++) {
        if (strcmp(limits_rows[id].name, name) == 0)
            return true;
    }
    return false;
}

static void hint_members(const char *name, bool top, const char *const *members, struct err *err)
{
    char known[sizeof err->hint - 32] = "";
    size_t len = 0;
    if (top && is_limit(name)) {
        err_hint(err, "'%s' is a limit: write {\"limits\": {\"%s\": ...}}", name, name);
        return;
    }
    for (size_t i = 0; members[i] && len < sizeof known; i++)
        len += (size_t)snprintf(known + len, sizeof known - len, "%s%s", i ? ", " : "", members[i]);
    err_hint(err, "the fields are %s", known);
}

int request_check_members(const json_t *object, const char *field, const char *const *members,
                          struct err *err)
{
    const char *name;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)object, name, value) {
        if (request_find_name(members, str_of(name)) >= 0)
            continue;
        char whole[96], brief[160];
        /* The caller chose the key: the cut must not split a character. */
        size_t cut = str_cut_utf8(str_of(name), 64);
        snprintf(whole, sizeof whole, "%s%s%.*s", field, *field ? "." : "", (int)cut, name);
        json_brief(value, brief, sizeof brief);
        err_input(err, whole, brief, NULL, "unknown field '%s'", whole);
        hint_members(name, !*field, members, err);
        return -1;
    }
    return 0;
}
