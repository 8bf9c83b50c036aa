/* The differences of two records: the results' part, and rows of any part. Pure. */
#include "replay/diff.h"

#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/own.h"

#define FIELD_ROOM 160
#define ROWS_MAX 5000 /* more than any run has: an edited store */

json_t *diff_add(struct diff *diff, const char *field, const char *kind, json_t *was, json_t *is)
{
    json_t *row = NULL;
    if (json_array_size(diff->list) >= DIFF_MAX) {
        diff->more++;
        json_decref(was);
        json_decref(is);
        return NULL;
    }
    row = json_pack("{s:o, s:s}", "field", json_text(str_of(field)), "kind", kind);
    json_object_set_new(row, "was", was ? was : json_null());
    json_object_set_new(row, "is", is ? is : json_null());
    json_array_append_new(diff->list, row);
    return row;
}

/* --- values --- */

json_t *diff_brief(const json_t *value)
{
    own_buf text = BUF_INIT(SIZE_MAX / 4);
    if (!value || json_add(&text, value) < 0)
        return json_null();
    if (text.len <= DIFF_BRIEF)
        return json_deep_copy(value);
    text.len = str_cut_utf8(buf_str(&text), DIFF_BRIEF);
    buf_add_text(&text, "…");
    return json_text(buf_str(&text));
}

/* Goes to the first place where the two differ; `path` is the way there. */
static void find_place(const json_t **was, const json_t **is, struct buf *path)
{
    const char *name;
    json_t *value;
    for (;;) {
        const json_t *a = NULL, *b = NULL;
        if (json_is_object(*was) && json_is_object(*is)) {
            own_json all = json_copy((json_t *)(uintptr_t)*was);
            json_object_update_missing(all, (json_t *)(uintptr_t)*is);
            json_object_foreach (all, name, value) {
                a = json_object_get(*was, name);
                b = json_object_get(*is, name);
                if (a && b && json_equal(a, b))
                    continue;
                buf_printf(path, "%s%.60s", path->len ? "." : "", name);
                break;
            }
        } else if (json_is_array(*was) && json_is_array(*is)) {
            size_t i = 0, most = json_array_size(*was), other = json_array_size(*is);
            for (most = most > other ? most : other; i < most; i++) {
                a = json_array_get(*was, i);
                b = json_array_get(*is, i);
                if (!a || !b || !json_equal(a, b))
                    break;
            }
            buf_printf(path, "[%zu]", i);
        }
        if (!a && !b)
            return;
        *was = a;
        *is = b;
    }
}

void diff_value(struct diff *diff, const char *field, const json_t *was, const json_t *is)
{
    own_buf path = BUF_INIT(2000);
    if (was == is || (was && is && json_equal(was, is)))
        return;
    if (json_is_string(was) && json_is_string(is)) {
        diff_text(diff, field, json_str(was), json_str(is));
        return;
    }
    find_place(&was, &is, &path);
    json_t *row = diff_add(diff, field, "value", diff_brief(was), diff_brief(is));
    if (row && path.len > 0)
        json_object_set_new(row, "path", json_text(buf_str(&path)));
}

/* null and a missing member are the same. */
static void diff_member(struct diff *diff, const char *field, const json_t *was, const json_t *is,
                        const char *name)
{
    const json_t *a = json_object_get(was, name), *b = json_object_get(is, name);
    a = json_is_null(a) ? NULL : a;
    b = json_is_null(b) ? NULL : b;
    if (json_is_string(a) && json_is_string(b) && strlen(json_string_value(a)) < 40 &&
        strlen(json_string_value(b)) < 40 && !strchr(json_string_value(a), '\n') &&
        !strchr(json_string_value(b), '\n')) {
        struct diff lines = { .list = json_array() };
        diff_text(&lines, field, json_str(a), json_str(b)); /* addresses do not count */
        if (json_array_size(lines.list))
            diff_add(diff, field, "value", json_deep_copy(a), json_deep_copy(b));
        json_decref(lines.list);
        return;
    }
    diff_value(diff, field, a, b);
}

/* --- rows --- */

static const json_t *row_of(const json_t *rows, const char *key, const json_t *like)
{
    size_t i;
    json_t *row;
    const json_t *wanted = json_object_get(like, key);
    const json_t *exact = json_object_get(like, "path_base64");
    json_array_foreach (rows, i, row)
        if (json_equal(row, like))
            return row;
    json_array_foreach (rows, i, row) {
        const json_t *other = json_object_get(row, "path_base64");
        if (json_equal(json_object_get(row, key), wanted) &&
            (exact && other ? json_equal(exact, other) : exact == other))
            return row;
    }
    return NULL;
}

static json_t *shown_of(const json_t *row, const char *const *shown)
{
    json_t *out = json_object();
    for (; *shown; shown++) {
        json_t *value = json_object_get(row, *shown);
        if (value && !json_is_null(value))
            json_object_set(out, *shown, value);
    }
    return out;
}

/* Takes `was` and `is`. */
static void add_row(struct diff *diff, const char *field, const char *key, const json_t *name,
                    const char *kind, json_t *was, json_t *is)
{
    json_t *row = diff_add(diff, field, kind, was, is);
    if (row && name)
        json_object_set_new(row, key, json_deep_copy(name));
}

void diff_rows(struct diff *diff, const char *field, const char *key, const char *const *shown,
               const json_t *was, const json_t *is)
{
    size_t i;
    json_t *row;
    const char *kind = strcmp(shown[0], "sha256") == 0 ? "bytes" : "value";
    if (json_array_size(was) > ROWS_MAX || json_array_size(is) > ROWS_MAX) {
        diff_value(diff, field, was, is);
        return;
    }
    json_array_foreach (was, i, row) {
        const json_t *other = row_of(is, key, row), *name = json_object_get(row, key);
        own_json a = shown_of(row, shown);
        own_json b = other ? shown_of(other, shown) : NULL;
        if (!other)
            add_row(diff, field, key, name, "gone", json_incref(a), NULL);
        else if (!json_equal(a, b))
            add_row(diff, field, key, name, kind, json_incref(a), json_incref(b));
    }
    json_array_foreach (is, i, row)
        if (!row_of(was, key, row))
            add_row(diff, field, key, json_object_get(row, key), "added", NULL,
                    shown_of(row, shown));
}

/* Arrays of names. */
static void diff_names(struct diff *diff, const char *field, const json_t *was, const json_t *is)
{
    const json_t *sides[] = { was, is };
    if (json_array_size(was) > ROWS_MAX || json_array_size(is) > ROWS_MAX) {
        diff_value(diff, field, was, is);
        return;
    }
    for (int side = 0; side < 2; side++) {
        size_t i, j;
        json_t *name, *other;
        json_array_foreach (sides[side], i, name) {
            bool found = false;
            json_array_foreach (sides[!side], j, other)
                found |= json_equal(name, other);
            if (!found)
                diff_add(diff, field, side ? "added" : "gone", side ? NULL : diff_brief(name),
                         side ? diff_brief(name) : NULL);
        }
    }
}

/* --- results --- */

static json_t *sum_of(struct str bytes)
{
    char sum[HASH_HEX_ROOM];
    hash_hex(bytes, sum);
    return json_pack("{s:s, s:I}", "sha256", sum, "size_bytes", (json_int_t)bytes.len);
}

/* Base64 in JSON, by the hash of its bytes. */
static json_t *sum_of_coded(const json_t *coded)
{
    size_t len = 0;
    own_str bytes = base64_decode(json_str(coded), &len);
    return sum_of(bytes ? (struct str){ bytes, len } : json_str(coded));
}

static bool is_text_form(const char *mime)
{
    return strncmp(mime, "text/", 5) == 0 || strcmp(mime, "image/svg+xml") == 0 ||
           strcmp(mime, "application/javascript") == 0;
}

static void diff_form(struct diff *diff, const char *field, const char *mime, const json_t *was,
                      const json_t *is)
{
    if (json_equal(was, is))
        return;
    if (is_text_form(mime) || !json_is_string(was) || !json_is_string(is))
        diff_value(diff, field, was, is);
    else
        diff_add(diff, field, "bytes", sum_of_coded(was), sum_of_coded(is));
}

static json_t *forms_of(const json_t *bundle)
{
    json_t *list = json_array(), *value;
    const char *name;
    json_object_foreach ((json_t *)(uintptr_t)bundle, name, value)
        json_array_append_new(list, json_text(str_of(name)));
    return list;
}

/* One value in its forms. */
static void diff_bundle(struct diff *diff, size_t index, const json_t *was, const json_t *is)
{
    char field[FIELD_ROOM];
    const char *mime;
    json_t *value;
    snprintf(field, sizeof field, "results[%zu]", index);
    if (!was || !is) {
        diff_add(diff, field, was ? "gone" : "added", was ? forms_of(was) : NULL,
                 is ? forms_of(is) : NULL);
        return;
    }
    json_object_foreach ((json_t *)(uintptr_t)was, mime, value) {
        const json_t *other = json_object_get(is, mime);
        snprintf(field, sizeof field, "results[%zu].%.100s", index, mime);
        if (other)
            diff_form(diff, field, mime, value, other);
        else
            diff_add(diff, field, "gone", diff_brief(value), NULL);
    }
    json_object_foreach ((json_t *)(uintptr_t)is, mime, value) {
        snprintf(field, sizeof field, "results[%zu].%.100s", index, mime);
        if (!json_object_get(was, mime))
            diff_add(diff, field, "added", NULL, diff_brief(value));
    }
}

static void diff_values(struct diff *diff, const json_t *was, const json_t *is)
{
    size_t a = json_array_size(was), b = json_array_size(is);
    for (size_t i = 0; i < a || i < b; i++)
        diff_bundle(diff, i, json_array_get(was, i), json_array_get(is, i));
}

/* --- streams and errors --- */

static void diff_stream(struct diff *diff, const char *name, const json_t *was, const json_t *is)
{
    char exact[32], count[32];
    snprintf(exact, sizeof exact, "%s_base64", name);
    snprintf(count, sizeof count, "%s_bytes", name);
    const json_t *a = json_object_get(was, exact), *b = json_object_get(is, exact);
    struct str before = json_get_str(was, name), after = json_get_str(is, name);
    size_t rows = json_array_size(diff->list);
    diff_text(diff, name, before, after);
    if (json_array_size(diff->list) > rows)
        return;
    if ((a || b) && !(a && b && json_equal(a, b)))
        diff_add(diff, name, "bytes", a ? sum_of_coded(a) : sum_of(before),
                 b ? sum_of_coded(b) : sum_of(after));
    else if (str_eq(before, after)) /* the middle was left out */
        diff_member(diff, count, was, is, count);
}

static void diff_error(struct diff *diff, const json_t *was, const json_t *is)
{
    static const char *const members[] = { "kind", "name", "message", "line", "column",
                                           "traceback", NULL };
    char field[FIELD_ROOM];
    was = json_is_object(was) ? was : NULL;
    is = json_is_object(is) ? is : NULL;
    if (!was || !is) {
        static const char *const shown[] = { "kind", "name", "message", NULL };
        own_json a = was ? shown_of(was, shown) : NULL;
        own_json b = is ? shown_of(is, shown) : NULL;
        if (was || is)
            diff_add(diff, "error", was ? "gone" : "added", diff_brief(a), diff_brief(b));
        return;
    }
    for (size_t i = 0; members[i]; i++) {
        snprintf(field, sizeof field, "error.%s", members[i]);
        diff_member(diff, field, was, is, members[i]);
    }
}

static void diff_result(struct diff *diff, const json_t *was, const json_t *is)
{
    static const char *const scalars[] = { "exit_code", "signal", "state", "truncated", NULL };
    static const char *const file[] = { "sha256", "size_bytes", NULL };
    static const char *const reason[] = { "reason", NULL }, *const call[] = { "call", NULL };
    for (size_t i = 0; scalars[i]; i++)
        diff_member(diff, scalars[i], was, is, scalars[i]);
    diff_names(diff, "limits_hit", json_object_get(was, "limits_hit"),
               json_object_get(is, "limits_hit"));
    diff_stream(diff, "stdout", was, is);
    diff_stream(diff, "stderr", was, is);
    diff_values(diff, json_object_get(was, "results"), json_object_get(is, "results"));
    diff_error(diff, json_object_get(was, "error"), json_object_get(is, "error"));
    diff_rows(diff, "denied", "call", call, json_object_get(was, "denied"),
              json_object_get(is, "denied"));
    diff_rows(diff, "artifacts", "path", file, json_object_get(was, "artifacts"),
              json_object_get(is, "artifacts"));
    diff_rows(diff, "skipped", "path", reason, json_object_get(was, "skipped"),
              json_object_get(is, "skipped"));
}

json_t *diff_records(const json_t *was, const json_t *is)
{
    struct diff diff = { .list = json_array() };
    const json_t *a = json_object_get(was, "result"), *b = json_object_get(is, "result");
    diff_request(&diff, was, is);
    diff_calls(&diff, was, is);
    diff_member(&diff, "status", was, is, "status");
    if (json_is_object(a) && json_is_object(b)) {
        diff_result(&diff, a, b);
    } else {
        if (json_is_object(a) || json_is_object(b))
            diff_add(&diff, "result", json_is_object(a) ? "gone" : "added", NULL, NULL);
        diff_error(&diff, json_object_get(json_is_object(a) ? a : was, "error"),
                   json_object_get(json_is_object(b) ? b : is, "error"));
    }
    if (diff.more)
        json_array_append_new(diff.list, json_pack("{s:s, s:s, s:n, s:I}", "field", "more", "kind",
                                                   "value", "was", "is", (json_int_t)diff.more));
    return diff.list;
}
