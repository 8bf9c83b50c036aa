/* The files of a request: paths, base64, sizes, clashes. Runs in any process that reads requests;
 * pure. Afterwards others rely on:
 * 1. every path is relative and clean, so joining it to a folder stays inside;
 * 2. no path equals another, nor is a folder on the way to another;
 * 3. stdin and all files together are within limits.input_bytes. */
#include <stdio.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/own.h"
#include "contract/request_int.h"

const char *const request_file_members[] = { "path", "text", "base64", "blob", "readonly", NULL };

#define FILE_FIELD_ROOM 48
#define BLOB_PREFIX "sha256:"
#define BLOB_DIGITS 64

static int refuse_path(struct str path, const char *field, const char *why, struct err *err)
{
    own_json value = json_text(path);
    return request_refuse(field, value, "a relative path without '.', '..' or empty components",
                          why, err);
}

static const char *component_fault(struct str part)
{
    if (part.len == 0)
        return "a path with an empty component";
    if (part.len > REQUEST_COMPONENT_MAX)
        return "a path with a component of more than 255 bytes";
    if (str_is(part, ".") || str_is(part, ".."))
        return "a path with '.' or '..'";
    return NULL;
}

int request_check_path(struct str path, const char *field, struct err *err)
{
    if (path.len == 0)
        return refuse_path(path, field, "an empty path", err);
    if (path.len > REQUEST_PATH_MAX)
        return request_refuse_size(field, path.len, REQUEST_PATH_MAX, "bytes", err);
    if (memchr(path.at, 0, path.len))
        return refuse_path(path, field, "a path with a NUL byte", err);
    if (path.at[0] == '/') {
        refuse_path(path, field, "an absolute path", err);
        err_hint(err, "paths are relative to the work directory, /workspace");
        return -1;
    }
    size_t from = 0;
    while (from <= path.len) {
        const char *slash = memchr(path.at + from, '/', path.len - from);
        size_t len = slash ? (size_t)(slash - path.at) - from : path.len - from;
        struct str part = { path.at + from, len };
        const char *fault = component_fault(part);
        if (fault)
            return refuse_path(path, field, fault, err);
        if (from == 0 && str_is(part, ".cupel"))
            return refuse_path(path, field, "a path inside '.cupel', which is reserved", err);
        from += len + 1;
    }
    return 0;
}

int request_check_input_bytes(const struct request *request, const char *field, struct err *err)
{
    uint64_t most = (uint64_t)request->limits.value[LIMITS_INPUT];
    uint64_t total = request->stdin_text.len;
    for (size_t i = 0; i < request->file_count; i++)
        total += request->files[i].data.len;
    if (total <= most)
        return 0;
    request_refuse_size(field, total, most, "bytes in stdin and files together", err);
    err_hint(err, "send less, or raise limits.input_bytes; profile analysis takes 256 MiB");
    return -1;
}

static int take_base64(struct request_file *file, const json_t *value, uint64_t most,
                       const char *field, struct err *err)
{
    if (!json_is_string(value))
        return request_refuse(field, value, "a string", "not a string", err);
    /* Refuses before allocating. */
    uint64_t least_size = json_string_length(value) / 4 * 3;
    if (least_size > most + 2)
        return request_refuse_size(field, least_size, most, "bytes", err);
    size_t len = 0;
    file->owned = base64_decode_exact(json_str(value), &len);
    if (!file->owned)
        return request_refuse(field, value, "RFC 4648 base64 with padding and no white space",
                              "not base64", err);
    file->data = (struct str){ file->owned, len };
    return 0;
}

const char *request_blob_sum(struct str text)
{
    static const size_t from = sizeof BLOB_PREFIX - 1;
    if (text.len != from + BLOB_DIGITS || memcmp(text.at, BLOB_PREFIX, from) != 0 ||
        strspn(text.at + from, "0123456789abcdef") != BLOB_DIGITS)
        return NULL;
    return text.at + from;
}

static int take_blob(struct request_file *file, const json_t *value, bool has_blobs,
                     const char *field, struct err *err)
{
    const char *sum = json_is_string(value) ? request_blob_sum(json_str(value)) : NULL;
    if (!sum)
        return request_refuse(field, value, "sha256: and 64 hexadecimal digits, lower case",
                              "not the name of a blob", err);
    if (!has_blobs) {
        request_refuse(field, value, "'text' or 'base64'", "a blob, and this door has none", err);
        err_hint(err, "send the bytes as 'base64', or the request over HTTP (PUT /v1/blobs)");
        return -1;
    }
    memcpy(file->blob, sum, BLOB_DIGITS + 1);
    return 0;
}

static int take_content(struct request_file *file, const json_t *value,
                        const struct request_intake *intake, const char *prefix, struct err *err)
{
    const json_t *text = json_object_get(value, "text");
    const json_t *base64 = json_object_get(value, "base64");
    const json_t *blob = json_object_get(value, "blob");
    uint64_t most = (uint64_t)intake->out->limits.value[LIMITS_INPUT];
    char field[FILE_FIELD_ROOM + 16];
    int count = !!text + !!base64 + !!blob;
    if (count != 1)
        return err_input(err, prefix, NULL, "one of 'text', 'base64' and 'blob'",
                         "field '%s' has %s of 'text', 'base64' and 'blob'", prefix,
                         count ? "more than one" : "none");
    if (blob) {
        snprintf(field, sizeof field, "%s.blob", prefix);
        return take_blob(file, blob, intake->ceilings->blobs, field, err);
    }
    if (base64) {
        snprintf(field, sizeof field, "%s.base64", prefix);
        return take_base64(file, base64, most, field, err);
    }
    snprintf(field, sizeof field, "%s.text", prefix);
    if (!json_is_string(text))
        return request_refuse(field, text, "a string", "not a string", err);
    file->data = json_str(text);
    return 0;
}

static int take_readonly(struct request_file *file, const json_t *value, const char *prefix,
                         struct err *err)
{
    char field[FILE_FIELD_ROOM + 16];
    if (!value)
        return 0;
    snprintf(field, sizeof field, "%s.readonly", prefix);
    if (!json_is_boolean(value))
        return request_refuse(field, value, "true or false", "not a boolean", err);
    file->readonly = json_is_true(value);
    return 0;
}

/* Counts the file even on failure, so that request_done frees it. */
static int take_one(const struct request_intake *intake, const json_t *value, struct err *err)
{
    struct request *request = intake->out;
    char prefix[FILE_FIELD_ROOM], field[FILE_FIELD_ROOM + 16];
    snprintf(prefix, sizeof prefix, "files[%zu]", request->file_count);
    request->files = buf_list_room(request->files, request->file_count, sizeof *request->files);
    struct request_file *file = &request->files[request->file_count++];
    if (!json_is_object(value))
        return request_refuse(prefix, value, "an object", "not an object", err);
    if (request_check_members(value, prefix, request_file_members, err) < 0)
        return -1;
    const json_t *path = json_object_get(value, "path");
    snprintf(field, sizeof field, "%s.path", prefix);
    if (!path)
        return err_input(err, field, NULL, "a relative path", "field '%s' is required", field);
    if (!json_is_string(path))
        return request_refuse(field, path, "a string", "not a string", err);
    if (request_check_path(json_str(path), field, err) < 0)
        return -1;
    file->path = buf_strdup(json_str(path));
    if (take_content(file, value, intake, prefix, err) < 0)
        return -1;
    return take_readonly(file, json_object_get(value, "readonly"), prefix, err);
}

/* Byte order, but '/' first: a folder's content follows it directly, so that clashes are always
 * between neighbours. */
static int compare_paths(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    int left = *a == '/' ? 1 : *a ? (unsigned char)*a + 1 : 0;
    int right = *b == '/' ? 1 : *b ? (unsigned char)*b + 1 : 0;
    return left - right;
}

static int compare_files(const void *a, const void *b)
{
    const struct request_file *const *left = a, *const *right = b;
    return compare_paths((*left)->path, (*right)->path);
}

/* Same path, or one is a folder on the way to the other. */
static bool clash(const char *a, const char *b)
{
    size_t i = 0;
    while (a[i] && a[i] == b[i])
        i++;
    return (!a[i] && !b[i]) || (!a[i] && b[i] == '/') || (!b[i] && a[i] == '/');
}

static int refuse_clash(const struct request *request, size_t first, size_t second, struct err *err)
{
    char field[FILE_FIELD_ROOM], why[80];
    const char *one = request->files[first].path, *other = request->files[second].path;
    own_json value = json_text(str_of(other));
    snprintf(field, sizeof field, "files[%zu].path", second);
    if (strcmp(one, other) == 0)
        snprintf(why, sizeof why, "'%.40s', the same as files[%zu].path", other, first);
    else
        snprintf(why, sizeof why, "a file where files[%zu].path needs a folder, or inside it",
                 first);
    return request_refuse(field, value, "each path once, and no file inside a file", why, err);
}

static int check_clashes(const struct request *request, struct err *err)
{
    size_t count = request->file_count;
    const struct request_file **sorted = buf_alloc_zero(count + 1, sizeof(void *));
    int result = 0;
    for (size_t i = 0; i < count; i++)
        sorted[i] = &request->files[i];
    qsort(sorted, count, sizeof(void *), compare_files);
    for (size_t i = 1; i < count && result == 0; i++) {
        if (!clash(sorted[i - 1]->path, sorted[i]->path))
            continue;
        size_t a = (size_t)(sorted[i - 1] - request->files);
        size_t b = (size_t)(sorted[i] - request->files);
        result = refuse_clash(request, a < b ? a : b, a < b ? b : a, err);
    }
    free(sorted);
    return result;
}

int request_take_files(struct request_intake *intake, const json_t *value, struct err *err)
{
    struct request *request = intake->out;
    if (!json_is_array(value))
        return request_refuse("files", value, "an array of objects", "not an array", err);
    size_t count = json_array_size(value);
    if (count > REQUEST_FILES_MAX)
        return request_refuse_size("files", count, REQUEST_FILES_MAX, "files", err);
    for (size_t i = 0; i < count; i++) {
        if (take_one(intake, json_array_get(value, i), err) < 0)
            return -1;
    }
    if (request_check_input_bytes(request, "files", err) < 0)
        return -1;
    return check_clashes(request, err);
}

int request_add_file(struct request *request, const char *path, char *bytes, size_t len,
                     bool readonly, struct err *err)
{
    own_str content = bytes;
    char field[FILE_FIELD_ROOM];
    size_t index = request->file_count;
    snprintf(field, sizeof field, "files[%zu].path", index);
    if (index >= REQUEST_FILES_MAX)
        return request_refuse_size("files", index + 1, REQUEST_FILES_MAX, "files", err);
    if (request_check_path(str_of(path), field, err) < 0)
        return -1;
    request->files = buf_list_room(request->files, index, sizeof *request->files);
    struct request_file *file = &request->files[index];
    *file = (struct request_file){ .path = buf_strdup(str_of(path)), .data = { content, len },
                                   .readonly = readonly };
    request->file_count++;
    int result = 0;
    for (size_t i = 0; i < index && result == 0; i++) {
        if (clash(request->files[i].path, path))
            result = refuse_clash(request, i, index, err);
    }
    if (result == 0)
        result = request_check_input_bytes(request, "files", err);
    if (result < 0) {
        request->file_count--;
        own_free_str(&file->path);
        return -1;
    }
    file->owned = take_ptr(content);
    return 0;
}

int request_fill_blob(struct request *request, size_t index, char *bytes, size_t len,
                      struct err *err)
{
    struct request_file *file = &request->files[index];
    free(file->owned);
    file->owned = bytes;
    file->data = (struct str){ bytes, len };
    return request_check_input_bytes(request, "files", err);
}
