/* Sets of changes in memory and as JSON. A path or target that is no UTF-8 is written as base64.
 * Reading checks every path, so that later steps may rely on them. Any process; pure. */
#include "folder/changes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/own.h"

#define SCHEMA 1

const char *const change_kind_names[CHANGE_KINDS] = {
    [CHANGE_NOTHING] = "nothing", [CHANGE_FILE] = "file",   [CHANGE_LINK] = "link",
    [CHANGE_FOLDER] = "folder",   [CHANGE_OTHER] = "other",
};

/* --- the set --- */

void changes_done(struct changes *changes)
{
    for (size_t i = 0; i < changes->count; i++) {
        free(changes->at[i].path);
        free(changes->at[i].was.target);
        free(changes->at[i].is.target);
    }
    for (size_t i = 0; i < changes->skipped_count; i++) {
        free(changes->skipped[i].path);
        free(changes->skipped[i].why);
    }
    free(changes->at);
    free(changes->skipped);
    free(changes->folder);
    *changes = CHANGES_INIT;
}

struct change *changes_add(struct changes *changes, struct str path)
{
    changes->at = buf_list_room(changes->at, changes->count, sizeof *changes->at);
    struct change *change = &changes->at[changes->count++];
    *change = (struct change){ .path = buf_strdup(path), .len = path.len, .number = -1 };
    return change;
}

void changes_skip(struct changes *changes, struct str path, const char *why)
{
    changes->skipped = buf_list_room(changes->skipped, changes->skipped_count,
                                     sizeof *changes->skipped);
    changes->skipped[changes->skipped_count++] =
        (struct changes_skipped){ .path = buf_strdup(path), .why = buf_strdup(str_of(why)),
                                  .len = path.len };
}

static int order(struct str a, struct str b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int by = memcmp(a.at, b.at, len);
    return by ? by : (a.len > b.len) - (a.len < b.len);
}

static int by_path(const void *a, const void *b)
{
    return order(change_path(a), change_path(b));
}

void changes_sort(struct changes *changes)
{
    if (changes->count)
        qsort(changes->at, changes->count, sizeof *changes->at, by_path);
}

struct change *changes_find(const struct changes *changes, struct str path)
{
    const struct change key = { .path = (char *)(uintptr_t)path.at, .len = path.len };
    return changes->count ? bsearch(&key, changes->at, changes->count, sizeof key, by_path) : NULL;
}

bool changes_path_is_clean(struct str path)
{
    if (path.len == 0 || path.len > CHANGES_PATH_MAX || memchr(path.at, 0, path.len))
        return false;
    for (size_t from = 0; from <= path.len;) {
        const char *slash = from < path.len ? memchr(path.at + from, '/', path.len - from) : NULL;
        size_t end = slash ? (size_t)(slash - path.at) : path.len;
        struct str part = { path.at + from, end - from };
        if (part.len == 0 || part.len > 255 || str_is(part, ".") || str_is(part, ".."))
            return false;
        from = end + 1;
    }
    return true;
}

bool changes_leads_out(struct str path, struct str target)
{
    long depth = 0;
    if (target.len == 0 || target.at[0] == '/')
        return true;
    for (size_t i = 0; i < path.len; i++)
        depth += path.at[i] == '/';
    for (size_t from = 0; from < target.len;) {
        const char *slash = memchr(target.at + from, '/', target.len - from);
        size_t end = slash ? (size_t)(slash - target.at) : target.len;
        struct str part = { target.at + from, end - from };
        bool stays = part.len == 0 || str_is(part, ".");
        depth += stays ? 0 : str_is(part, "..") ? -1 : 1;
        if (depth < 0)
            return true;
        from = end + 1;
    }
    return false;
}

static bool same_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

bool change_entry_same(const struct change_entry *a, const struct change_entry *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind == CHANGE_LINK)
        return same_text(a->target, b->target);
    if (a->kind == CHANGE_FILE)
        return a->size == b->size && a->mode == b->mode && a->sum[0] && strcmp(a->sum, b->sum) == 0;
    return a->kind != CHANGE_FOLDER || a->mode == b->mode;
}

/* --- writing --- */

static void set_bytes(json_t *object, const char *name, struct str bytes)
{
    char other[32] = "";
    if (str_is_utf8(bytes) && !memchr(bytes.at, 0, bytes.len)) {
        json_object_set_new(object, name, json_stringn(bytes.at, bytes.len));
        return;
    }
    snprintf(other, sizeof other, "%s_base64", name);
    json_object_set_new(object, other, base64_json(bytes));
}

static json_t *entry_json(const struct change_entry *entry, bool was)
{
    if (entry->kind == CHANGE_NOTHING)
        return json_null();
    json_t *out = json_pack("{s:s}", "kind", change_kind_names[entry->kind]);
    if (entry->kind == CHANGE_FILE || entry->kind == CHANGE_FOLDER)
        json_object_set_new(out, "mode", json_integer(entry->mode));
    if (entry->kind == CHANGE_FILE)
        json_object_set_new(out, "size_bytes", json_integer((json_int_t)entry->size));
    if (entry->sum[0])
        json_object_set_new(out, "sha256", json_string(entry->sum));
    if (entry->target)
        set_bytes(out, "target", str_of(entry->target));
    if (was) {
        json_object_set_new(out, "mtime_ns", json_integer(entry->mtime_ns));
        json_object_set_new(out, "ctime_ns", json_integer(entry->ctime_ns));
    }
    return out;
}

static json_t *change_json(const struct change *change)
{
    json_t *out = json_object();
    set_bytes(out, "path", change_path(change));
    json_object_set_new(out, "was", entry_json(&change->was, true));
    json_object_set_new(out, "is", entry_json(&change->is, false));
    json_object_set_new(out, "moved", json_boolean(change->moved));
    if (change->number >= 0)
        json_object_set_new(out, "content", json_integer(change->number));
    return out;
}

json_t *changes_to_json(const struct changes *changes)
{
    json_t *list = json_array(), *skipped = json_array();
    for (size_t i = 0; i < changes->count; i++)
        json_array_append_new(list, change_json(&changes->at[i]));
    for (size_t i = 0; i < changes->skipped_count; i++) {
        json_t *row = json_object();
        set_bytes(row, "path", (struct str){ changes->skipped[i].path, changes->skipped[i].len });
        json_object_set_new(row, "reason", json_text(str_of(changes->skipped[i].why)));
        json_array_append_new(skipped, row);
    }
    json_t *out = json_pack("{s:i, s:s, s:I, s:I, s:I, s:b}", "schema", SCHEMA, "run", changes->run,
                            "began_ns", (json_int_t)changes->began_ns, "device",
                            (json_int_t)changes->device, "inode", (json_int_t)changes->inode, "cut",
                            changes->cut);
    set_bytes(out, "folder", str_of(changes->folder));
    json_object_set_new(out, "changes", list);
    json_object_set_new(out, "skipped", skipped);
    return out;
}

/* --- reading --- */

static int refuse(struct err *err, const char *field)
{
    return err_input(err, field, NULL, NULL, "the set of changes is damaged: '%s'", field);
}

/* A member as heap bytes without NUL, or NULL. */
static char *get_bytes(const json_t *object, const char *name, size_t *out_len)
{
    char other[32] = "";
    const json_t *text = json_object_get(object, name);
    if (json_is_string(text)) {
        struct str bytes = json_str(text);
        *out_len = bytes.len;
        return memchr(bytes.at, 0, bytes.len) ? NULL : buf_strdup(bytes);
    }
    snprintf(other, sizeof other, "%s_base64", name);
    text = json_object_get(object, other);
    own_str bytes = json_is_string(text) ? base64_decode_exact(json_str(text), out_len) : NULL;
    return bytes && !memchr(bytes, 0, *out_len) ? take_ptr(bytes) : NULL;
}

static bool get_number(const json_t *object, const char *name, int64_t most, int64_t *out)
{
    const json_t *value = json_object_get(object, name);
    *out = json_integer_value(value);
    return json_is_integer(value) && *out >= 0 && *out <= most;
}

static bool is_sum(struct str text)
{
    if (text.len != HASH_HEX_ROOM - 1)
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (!strchr("0123456789abcdef", text.at[i]))
            return false;
    return true;
}

static int read_entry(const json_t *object, bool was, struct change_entry *out)
{
    int64_t mode = 0, size = 0;
    size_t len;
    if (json_is_null(object))
        return 0;
    struct str kind = json_get_str(object, "kind"), sum = json_get_str(object, "sha256");
    for (out->kind = CHANGE_FILE; out->kind < CHANGE_KINDS; out->kind++)
        if (str_is(kind, change_kind_names[out->kind]))
            break;
    if (out->kind == CHANGE_KINDS || (out->kind == CHANGE_OTHER && !was)) {
        out->kind = CHANGE_NOTHING;
        return -1;
    }
    bool has_mode = out->kind == CHANGE_FILE || out->kind == CHANGE_FOLDER;
    if (has_mode && !get_number(object, "mode", 07777, &mode))
        return -1;
    if (out->kind == CHANGE_FILE && !get_number(object, "size_bytes", INT64_MAX, &size))
        return -1;
    if (sum.len > 0 && !is_sum(sum))
        return -1;
    memcpy(out->sum, sum.at, sum.len);
    out->mode = (uint32_t)mode;
    out->size = (uint64_t)size;
    if (out->kind == CHANGE_LINK && !(out->target = get_bytes(object, "target", &len)))
        return -1;
    return was && (!get_number(object, "mtime_ns", INT64_MAX, &out->mtime_ns) ||
                   !get_number(object, "ctime_ns", INT64_MAX, &out->ctime_ns))
               ? -1
               : 0;
}

static int read_change(const json_t *object, struct changes *out, struct err *err)
{
    size_t len = 0;
    int64_t number = -1;
    own_str path = get_bytes(object, "path", &len);
    struct str name = { path, len };
    if (!path || !changes_path_is_clean(name))
        return refuse(err, "path");
    if (out->count > 0 && order(change_path(&out->at[out->count - 1]), name) >= 0)
        return refuse(err, "path");
    struct change *change = changes_add(out, name);
    change->moved = json_is_true(json_object_get(object, "moved"));
    if (read_entry(json_object_get(object, "was"), true, &change->was) < 0)
        return refuse(err, "was");
    if (read_entry(json_object_get(object, "is"), false, &change->is) < 0)
        return refuse(err, "is");
    if (change->is.kind == CHANGE_FILE &&
        (!get_number(object, "content", CHANGES_MAX, &number) || !change->is.sum[0]))
        return refuse(err, "content");
    change->number = (int)number;
    return 0;
}

static int read_lists(const json_t *root, struct changes *out, struct err *err)
{
    size_t i, len = 0;
    const json_t *list = json_object_get(root, "changes"), *row;
    if (!json_is_array(list) || json_array_size(list) > CHANGES_MAX)
        return refuse(err, "changes");
    json_array_foreach ((json_t *)(uintptr_t)list, i, row) {
        if (read_change(row, out, err) < 0)
            return -1;
    }
    list = json_object_get(root, "skipped");
    if (!json_is_array(list) || json_array_size(list) > CHANGES_MAX)
        return refuse(err, "skipped");
    json_array_foreach ((json_t *)(uintptr_t)list, i, row) {
        own_str path = get_bytes(row, "path", &len);
        own_str why = buf_strdup(json_get_str(row, "reason"));
        if (!path)
            return refuse(err, "skipped");
        changes_skip(out, (struct str){ path, len }, why);
    }
    return 0;
}

static int read_root(const json_t *root, struct changes *out, struct err *err)
{
    int64_t number;
    size_t len;
    struct str run = json_get_str(root, "run");
    if (!get_number(root, "schema", SCHEMA, &number) || number != SCHEMA)
        return refuse(err, "schema");
    if (run.len >= sizeof out->run)
        return refuse(err, "run");
    str_plain(out->run, sizeof out->run, run);
    out->folder = get_bytes(root, "folder", &len);
    if (!out->folder)
        return refuse(err, "folder");
    if (!get_number(root, "began_ns", INT64_MAX, &out->began_ns))
        return refuse(err, "began_ns");
    out->device = (uint64_t)json_integer_value(json_object_get(root, "device"));
    out->inode = (uint64_t)json_integer_value(json_object_get(root, "inode"));
    out->cut = json_is_true(json_object_get(root, "cut"));
    return read_lists(root, out, err);
}

int changes_read(struct str text, struct changes *out, struct err *err)
{
    own_json root = json_read(text, CHANGES_JSON_MAX, err);
    if (!root)
        return -1;
    *out = CHANGES_INIT;
    if (read_root(root, out, err) == 0)
        return 0;
    changes_done(out);
    return -1;
}
