/* The differences of two requests: what was asked for, and on what. Pure. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"
#include "contract/request.h"
#include "replay/diff.h"

static const json_t *get(const json_t *record, const char *part, const char *name)
{
    const json_t *value = json_object_get(json_object_get(record, part), name);
    return json_is_null(value) ? NULL : value;
}

static const json_t *provenance(const json_t *record, const char *name)
{
    const json_t *value = json_object_get(get(record, "result", "provenance"), name);
    return json_is_null(value) ? NULL : value;
}

/* A language by its own name, whatever alias the request has. */
static const char *language_of(const json_t *record)
{
    const char *name = json_string_value(get(record, "request", "language"));
    int found = name ? request_language_find(name) : REQUEST_PYTHON;
    return found < 0 ? name : request_languages[found].name;
}

static void diff_limits(struct diff *diff, const json_t *was, const json_t *is)
{
    const json_t *a = provenance(was, "limits"), *b = provenance(is, "limits");
    char field[64];
    if (!json_is_object(a) || !json_is_object(b)) { /* one never ran */
        a = get(was, "request", "limits");
        b = get(is, "request", "limits");
    }
    for (int i = 0; i < LIMITS_COUNT; i++) {
        const char *name = limits_rows[i].name;
        const json_t *x = json_object_get(a, name), *y = json_object_get(b, name);
        snprintf(field, sizeof field, "limits.%s", name);
        if (json_is_number(x) && json_is_number(y) && json_number_value(x) == json_number_value(y))
            continue;
        diff_value(diff, field, x, y);
    }
}

/* An object's members, each as a field of its own. */
static void diff_env(struct diff *diff, const json_t *was, const json_t *is)
{
    const char *name;
    json_t *value;
    char field[128];
    json_object_foreach ((json_t *)(uintptr_t)was, name, value) {
        json_t *other = json_object_get(is, name);
        snprintf(field, sizeof field, "env.%.100s", name);
        if (other)
            diff_value(diff, field, value, other);
        else
            diff_add(diff, field, "gone", json_deep_copy(value), NULL);
    }
    json_object_foreach ((json_t *)(uintptr_t)is, name, value) {
        snprintf(field, sizeof field, "env.%.100s", name);
        if (!json_object_get(was, name))
            diff_add(diff, field, "added", NULL, json_deep_copy(value));
    }
}

static void diff_image(struct diff *diff, const json_t *was, const json_t *is)
{
    const json_t *a = provenance(was, "image_digest"), *b = provenance(is, "image_digest");
    if (a && b && !json_equal(a, b))
        diff_add(diff, "image", "value", json_deep_copy(a), json_deep_copy(b));
}

/* Defaults, spelled or not, are the same. */
static void diff_choice(struct diff *diff, const char *field, const char *standard,
                        const json_t *was, const json_t *is)
{
    const char *a = json_string_value(get(was, "request", field));
    const char *b = json_string_value(get(is, "request", field));
    a = a ? a : standard;
    b = b ? b : standard;
    if (strcmp(a, b) != 0)
        diff_add(diff, field, "value", json_text(str_of(a)), json_text(str_of(b)));
}

void diff_request(struct diff *diff, const json_t *was, const json_t *is)
{
    static const char *const file[] = { "sha256", "size_bytes", "readonly", NULL };
    const char *a = language_of(was), *b = language_of(is);
    if (strcmp(a, b) != 0)
        diff_add(diff, "language", "value", json_text(str_of(a)), json_text(str_of(b)));
    diff_value(diff, "code", get(was, "request", "code"), get(is, "request", "code"));
    diff_value(diff, "stdin", get(was, "request", "stdin"), get(is, "request", "stdin"));
    diff_value(diff, "args", get(was, "request", "args"), get(is, "request", "args"));
    diff_env(diff, get(was, "request", "env"), get(is, "request", "env"));
    diff_value(diff, "call", get(was, "request", "call"), get(is, "request", "call"));
    diff_rows(diff, "files", "path", file, get(was, "request", "files"),
              get(is, "request", "files"));
    diff_image(diff, was, is);
    diff_choice(diff, "profile", "baseline", was, is);
    diff_choice(diff, "on_output_limit", "truncate", was, is);
    diff_choice(diff, "on_error", "keep", was, is);
    diff_limits(diff, was, is);
    diff_value(diff, "seed", get(was, "request", "seed"), get(is, "request", "seed"));
}
