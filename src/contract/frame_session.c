/* Reads a client's session actions. Runs at the engine's end of the socket; pure. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "contract/frame.h"

const char *const frame_do_names[FRAME_DOS] = {
    [FRAME_DO_NEW] = "new",         [FRAME_DO_LIST] = "list",
    [FRAME_DO_INFO] = "info",       [FRAME_DO_END] = "end",
    [FRAME_DO_PUT] = "put",         [FRAME_DO_GET] = "get",
    [FRAME_DO_FILES] = "files",     [FRAME_DO_CHECKPOINT] = "checkpoint",
    [FRAME_DO_UNDO] = "undo",       [FRAME_DO_FORK] = "fork",
    [FRAME_DO_COMPLETE] = "complete", [FRAME_DO_CHECK] = "check",
    [FRAME_DO_INTERRUPT] = "interrupt", [FRAME_DO_REMOVE] = "remove",
    [FRAME_DO_DROP] = "drop",
};

/* --- one function for each member --- */

typedef int take(const json_t *value, struct frame_session *out, struct err *err);

static int take_session(const json_t *value, struct frame_session *out, struct err *err)
{
    const char *text = json_string_value(value);
    if (!text || strlen(text) != REQUEST_SESSION_LEN || strncmp(text, "s_", 2) != 0 ||
        strspn(text + 2, "0123456789abcdef") != REQUEST_SESSION_LEN - 2 ||
        json_string_length(value) != REQUEST_SESSION_LEN)
        return frame_refuse("session", value, "s_ and 24 hexadecimal digits", "not a session id",
                            err);
    out->session = text;
    return 0;
}

static int take_request(const json_t *value, struct frame_session *out, struct err *err)
{
    if (!json_is_object(value))
        return frame_refuse("request", value, "an object", "not an object", err);
    out->request = (json_t *)(uintptr_t)value;
    return 0;
}

static int take_whole(const char *field, const json_t *value, int64_t least, int64_t most,
                      int64_t *out, struct err *err)
{
    int64_t number = json_is_integer(value) ? json_integer_value(value) : -1;
    char bound[64];
    snprintf(bound, sizeof bound, "a whole number from %lld to %lld", (long long)least,
             (long long)most);
    if (!json_is_integer(value) || number < least || number > most)
        return frame_refuse(field, value, bound, "out of range", err);
    *out = number;
    return 0;
}

static int take_ttl(const json_t *value, struct frame_session *out, struct err *err)
{
    return take_whole("ttl_s", value, 1, FRAME_LIFE_MAX_S, &out->ttl_s, err);
}

static int take_life(const json_t *value, struct frame_session *out, struct err *err)
{
    return take_whole("life_s", value, 1, FRAME_LIFE_MAX_S, &out->life_s, err);
}

static int take_levels(const json_t *value, struct frame_session *out, struct err *err)
{
    return take_whole("undo_levels", value, 0, FRAME_LEVELS_MAX, &out->undo_levels, err);
}

static int take_names(const json_t *value, struct frame_session *out, struct err *err)
{
    if (!json_is_boolean(value))
        return frame_refuse("names", value, "true or false", "not a boolean", err);
    out->names = json_is_true(value);
    return 0;
}

static int take_files(const json_t *value, struct frame_session *out, struct err *err)
{
    if (!json_is_array(value) || json_array_size(value) == 0)
        return frame_refuse("files", value, "an array of files", "not an array, or empty", err);
    out->files = (json_t *)(uintptr_t)value;
    return 0;
}

static int take_path(const json_t *value, struct frame_session *out, struct err *err)
{
    size_t len = json_string_length(value);
    if (len == 0 || len > REQUEST_PATH_MAX || memchr(json_string_value(value), 0, len))
        return frame_refuse("path", value, "text of 1 to 1024 bytes", "not a path", err);
    out->path = json_string_value(value);
    return 0;
}

/* A name is shown in tables and typed in shells. */
static int take_plain(const char *field, const json_t *value, const char **out, struct err *err)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    const char *text = json_string_value(value);
    size_t len = json_string_length(value);
    if (!text || len == 0 || len > FRAME_NAME_MAX || strspn(text, plain) != len)
        return frame_refuse(field, value, "1 to 64 letters, digits, '_', '.', '-'",
                            "not a checkpoint name", err);
    *out = text;
    return 0;
}

static int take_name(const json_t *value, struct frame_session *out, struct err *err)
{
    return take_plain("name", value, &out->name, err);
}

static int take_to(const json_t *value, struct frame_session *out, struct err *err)
{
    return take_plain("to", value, &out->to, err);
}

static int take_code(const json_t *value, struct frame_session *out, struct err *err)
{
    if (!json_is_string(value) || json_string_length(value) > REQUEST_CODE_MAX ||
        memchr(json_string_value(value), 0, json_string_length(value)))
        return frame_refuse("code", value, "text without NUL", "not program text", err);
    out->code = json_str(value);
    return 0;
}

static int take_cursor(const json_t *value, struct frame_session *out, struct err *err)
{
    return take_whole("cursor", value, 0, REQUEST_CODE_MAX, &out->cursor, err);
}

static int take_upload(const json_t *value, struct frame_session *out, struct err *err)
{
    return take_whole("upload", value, 1, UINT32_MAX, &out->upload, err);
}

static int take_more(const json_t *value, struct frame_session *out, struct err *err)
{
    if (!json_is_boolean(value))
        return frame_refuse("more", value, "true or false", "not a boolean", err);
    out->more = json_is_true(value);
    return 0;
}

static int take_offset(const json_t *value, struct frame_session *out, struct err *err)
{
    out->is_part = true;
    return take_whole("offset", value, 0, FRAME_OFFSET_MAX, &out->offset, err);
}

static int take_length(const json_t *value, struct frame_session *out, struct err *err)
{
    out->is_part = true;
    return take_whole("length", value, 1, FRAME_GET_MAX, &out->length, err);
}

enum member {
    M_SESSION, M_REQUEST, M_TTL, M_LIFE, M_LEVELS, M_NAMES, M_FILES, M_PATH, M_NAME, M_TO, M_CODE,
    M_CURSOR, M_UPLOAD, M_MORE, M_OFFSET, M_LENGTH, M_COUNT
};
#define BIT(m) (1u << (m))

static const struct {
    const char *name;
    take *take;
} members[M_COUNT] = {
    [M_SESSION] = { "session", take_session }, [M_REQUEST] = { "request", take_request },
    [M_TTL] = { "ttl_s", take_ttl },           [M_LIFE] = { "life_s", take_life },
    [M_LEVELS] = { "undo_levels", take_levels }, [M_NAMES] = { "names", take_names },
    [M_FILES] = { "files", take_files },       [M_PATH] = { "path", take_path },
    [M_NAME] = { "name", take_name },          [M_TO] = { "to", take_to },
    [M_CODE] = { "code", take_code },          [M_CURSOR] = { "cursor", take_cursor },
    [M_UPLOAD] = { "upload", take_upload },   [M_MORE] = { "more", take_more },
    [M_OFFSET] = { "offset", take_offset },   [M_LENGTH] = { "length", take_length },
};

static const struct {
    unsigned may, must;
} dos[FRAME_DOS] = {
    [FRAME_DO_NEW] = { BIT(M_REQUEST) | BIT(M_TTL) | BIT(M_LIFE) | BIT(M_LEVELS), 0 },
    [FRAME_DO_LIST] = { 0, 0 },
    [FRAME_DO_INFO] = { BIT(M_SESSION) | BIT(M_NAMES), BIT(M_SESSION) },
    [FRAME_DO_END] = { BIT(M_SESSION), BIT(M_SESSION) },
    [FRAME_DO_PUT] = { BIT(M_SESSION) | BIT(M_FILES) | BIT(M_UPLOAD) | BIT(M_MORE),
                       BIT(M_SESSION) | BIT(M_FILES) },
    [FRAME_DO_GET] = { BIT(M_SESSION) | BIT(M_PATH) | BIT(M_OFFSET) | BIT(M_LENGTH),
                       BIT(M_SESSION) | BIT(M_PATH) },
    [FRAME_DO_FILES] = { BIT(M_SESSION), BIT(M_SESSION) },
    [FRAME_DO_CHECKPOINT] = { BIT(M_SESSION) | BIT(M_NAME), BIT(M_SESSION) | BIT(M_NAME) },
    [FRAME_DO_UNDO] = { BIT(M_SESSION) | BIT(M_TO), BIT(M_SESSION) },
    [FRAME_DO_FORK] = { BIT(M_SESSION), BIT(M_SESSION) },
    [FRAME_DO_COMPLETE] = { BIT(M_SESSION) | BIT(M_CODE) | BIT(M_CURSOR),
                            BIT(M_SESSION) | BIT(M_CODE) | BIT(M_CURSOR) },
    [FRAME_DO_CHECK] = { BIT(M_SESSION) | BIT(M_CODE), BIT(M_SESSION) | BIT(M_CODE) },
    [FRAME_DO_INTERRUPT] = { BIT(M_SESSION), BIT(M_SESSION) },
    [FRAME_DO_REMOVE] = { BIT(M_SESSION) | BIT(M_PATH), BIT(M_SESSION) | BIT(M_PATH) },
    [FRAME_DO_DROP] = { BIT(M_SESSION) | BIT(M_UPLOAD), BIT(M_SESSION) | BIT(M_UPLOAD) },
};

static int take_do(const json_t *value, struct frame_session *out, struct err *err)
{
    static const char bound[] = "one of new, list, info, end, put, get, files, checkpoint, undo, "
                                "fork, complete, check, interrupt, remove, drop";
    for (int what = 0; what < FRAME_DOS; what++) {
        if (json_is_string(value) && str_is(json_str(value), frame_do_names[what])) {
            out->what = (enum frame_do)what;
            return 0;
        }
    }
    return frame_refuse("do", value, bound, value ? "unknown" : "required", err);
}

static int find_member(const char *name)
{
    for (int m = 0; m < M_COUNT; m++) {
        if (strcmp(name, members[m].name) == 0)
            return m;
    }
    return -1;
}

int frame_session_read(const struct frame_ask *ask, struct frame_session *out, struct err *err)
{
    const char *name;
    json_t *value;
    *out = (struct frame_session){ .ttl_s = -1, .life_s = -1, .undo_levels = -1 };
    if (take_do(json_object_get(ask->root, "do"), out, err) < 0)
        return -1;
    json_object_foreach (ask->root, name, value) {
        int m = find_member(name);
        bool around = strcmp(name, "op") == 0 || strcmp(name, "id") == 0 || strcmp(name, "do") == 0;
        if (!around && (m < 0 || !(dos[out->what].may & BIT(m)))) {
            own_str shown = buf_strdup((struct str){ name, strnlen(name, 60) });
            return frame_refuse(shown, value, "a field of this kind of frame", "unknown", err);
        }
        if (!around && members[m].take(value, out, err) < 0)
            return -1;
    }
    for (int m = 0; m < M_COUNT; m++) {
        if ((dos[out->what].must & BIT(m)) && !json_object_get(ask->root, members[m].name))
            return frame_refuse(members[m].name, NULL, "there", "required", err);
    }
    if (out->files && (out->more || out->upload) && json_array_size(out->files) != 1)
        return frame_refuse("files", out->files, "one file, with 'more' or 'upload'",
                            "more than one file", err);
    return 0;
}
