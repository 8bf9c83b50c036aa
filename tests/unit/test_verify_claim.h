/* Claims for the tests of the checks: a question, an answer, cells with what they printed. */
#ifndef TESTS_UNIT_TEST_VERIFY_CLAIM_H
#define TESTS_UNIT_TEST_VERIFY_CLAIM_H

#include <jansson.h>

#include "agent/verify/verify.h"
#include "check.h"

struct claim_file {
    const char *path;
    struct str content;
};

/* A step that ran and whose state stands. */
static inline json_t *claim_step(int n, const char *code, const char *out)
{
    return json_pack("{s:i, s:s, s:s, s:s, s:b, s:{s:s, s:[]}}", "n", n, "code", code, "status",
                     "ok", "state", "kept", "repeated", 0, "result", "stdout", out, "results");
}

static inline struct str claim_content(void *user, const char *path)
{
    const struct claim_file *file = user;
    for (; file && file->path; file++) {
        if (!strcmp(file->path, path))
            return file->content;
    }
    return STR_NONE;
}

static inline json_t *claim_artifacts(const struct claim_file *file)
{
    json_t *out = json_array();
    for (; file && file->path; file++)
        json_array_append_new(out,
                              json_pack("{s:s, s:I, s:s, s:s}", "path", file->path, "size_bytes",
                                        (json_int_t)file->content.len, "sha256", "-", "mime", "-"));
    return out;
}

/* The outcome of the first check whose name begins so; "" where there is none. */
static inline const char *claim_outcome(const json_t *checks, const char *name)
{
    size_t i;
    json_t *check;
    json_array_foreach (checks, i, check) {
        const char *at = json_string_value(json_object_get(check, "check"));
        if (at && !strncmp(at, name, strlen(name)))
            return json_string_value(json_object_get(check, "outcome"));
    }
    return "";
}

static inline const char *claim_text(const json_t *checks, const char *name, const char *member)
{
    size_t i;
    json_t *check;
    json_array_foreach (checks, i, check) {
        const char *at = json_string_value(json_object_get(check, "check"));
        if (at && !strncmp(at, name, strlen(name)))
            return json_string_value(json_object_get(check, member));
    }
    return "";
}

#endif
