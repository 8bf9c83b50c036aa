/* A cell's observation for a model. Pure. The box controls the whole result: types are checked at
 * every use, and lengths are cut. */
#include "agent/read/observe.h"

#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/own.h"

#define NAMES_MAX 12
#define FILES_MAX 20
#define COLUMNS_MAX 1000 /* bytes of the names of a frame's columns */
#define STDERR_SHARE 4      /* stderr gets this fraction of the output's characters */
#define VALUE_SHARE 2
#define LATE_MAX 4 /* entries of late output */
#define PICTURES_MAX 2
#define PICTURE_MAX (1u << 20) /* characters of base64 */
#define BRIEF_LINE 160

static void add_cut(struct buf *out, struct str text, size_t max)
{
    size_t len = str_cut_utf8(text, max);
    for (size_t i = 0; i < len; i++) /* one line, without terminal control characters */
        buf_add(out, (unsigned char)text.at[i] < ' ' ? " " : text.at + i, 1);
    if (len < text.len)
        buf_add_text(out, "...");
}

static void add_stream(struct buf *out, const json_t *result, const char *name, size_t max)
{
    struct str text = json_get_str(result, name);
    char counter[32];
    snprintf(counter, sizeof counter, "%s_bytes", name);
    json_int_t all = json_integer_value(json_object_get(result, counter));
    if (!text.len)
        return;
    if (strcmp(name, "stdout") != 0)
        buf_printf(out, "[%s]\n", name);
    agent_observe_text(text, max, out);
    if (all > (json_int_t)text.len && json_is_true(json_object_get(result, "truncated")))
        buf_printf(out, "[%s had %lld bytes in all]\n", name, (long long)all);
}

/* Output of earlier cells: of threads and processes that they left behind. */
static void add_late(struct buf *out, const json_t *result, size_t max)
{
    size_t i;
    json_t *entry;
    json_array_foreach (json_object_get(result, "late"), i, entry) {
        struct str text = json_get_str(entry, "text");
        json_int_t cell = json_integer_value(json_object_get(entry, "cell"));
        if (!text.len || i >= LATE_MAX)
            continue;
        buf_printf(out, "[written by cell %lld after its end]\n", (long long)cell);
        agent_observe_text(text, max, out);
    }
}

static void add_values(struct buf *out, const json_t *result, size_t max)
{
    size_t i;
    json_t *value;
    json_array_foreach (json_object_get(result, "results"), i, value) {
        struct str plain = json_get_str(value, "text/plain");
        if (!plain.len)
            continue;
        buf_add_text(out, json_object_get(value, "image/png") ? "[picture] " : "[value] ");
        if (memchr(plain.at, '\n', plain.len))
            buf_add_text(out, "\n");
        agent_observe_text(plain, max, out);
    }
}

/* `df DataFrame 120x4 columns [...]` */
static void add_name(struct buf *out, const json_t *entry)
{
    struct str type = json_get_str(entry, "type"), text = json_get_str(entry, "text");
    const json_t *shape = json_object_get(entry, "shape"), *size;
    const json_t *length = json_object_get(entry, "length");
    size_t i;
    add_cut(out, json_get_str(entry, "name"), 60);
    if (!type.len)
        return;
    buf_add_text(out, " (");
    add_cut(out, type, 40);
    json_array_foreach (shape, i, size)
        buf_printf(out, "%s%lld", i ? "x" : " ", (long long)json_integer_value(size));
    if (json_is_integer(length))
        buf_printf(out, " of %lld", (long long)json_integer_value(length));
    buf_add_text(out, ")");
    if (text.len && !str_is(type, "module") && !str_is(type, "function")) {
        buf_add_text(out, " ");
        add_cut(out, text, str_is(type, "DataFrame") ? COLUMNS_MAX : 80);
    }
}

static bool is_noise(const json_t *entry)
{
    struct str type = json_get_str(entry, "type");
    return str_is(type, "module") || str_is(type, "Space"); /* Space: a module of tools */
}

static void add_names(struct buf *out, const json_t *result, const char *list, const char *title)
{
    size_t i, shown = 0, more = 0;
    json_t *entry;
    json_array_foreach (json_object_get(result, list), i, entry) {
        if (is_noise(entry))
            continue;
        if (shown >= NAMES_MAX) {
            more++;
            continue;
        }
        buf_printf(out, shown++ ? ", " : "[%s] ", title);
        add_name(out, entry);
    }
    if (more)
        buf_printf(out, ", and %zu more", more);
    if (shown)
        buf_add_text(out, "\n");
}

static bool is_own(struct str path)
{
    return path.len >= 7 && memcmp(path.at, ".cupel/", 7) == 0;
}

static void add_files(struct buf *out, const json_t *result)
{
    size_t i, shown = 0;
    json_t *file;
    json_array_foreach (json_object_get(result, "artifacts"), i, file) {
        struct str path = json_get_str(file, "path");
        if (is_own(path) || shown >= FILES_MAX)
            continue;
        buf_add_text(out, shown++ ? ", " : "[files written] ");
        add_cut(out, path, 120);
        buf_printf(out, " (%lld bytes)",
                   (long long)json_integer_value(json_object_get(file, "size_bytes")));
    }
    if (shown)
        buf_add_text(out, "\n");
    json_array_foreach (json_object_get(result, "skipped"), i, file) {
        if (i >= FILES_MAX)
            break;
        buf_add_text(out, "[not kept] ");
        add_cut(out, json_get_str(file, "path"), 120);
        buf_add_text(out, ": ");
        add_cut(out, json_get_str(file, "reason"), 120);
        buf_add_text(out, "\n");
    }
}

static bool has_value(const json_t *call)
{
    return json_object_get(json_object_get(call, "outcome"), "value") ||
           json_object_get(call, "outcome_bytes");
}

static bool repeats(const json_t *call)
{
    return json_object_get(call, "repeats") != NULL;
}

/* Those calls, after the words. */
static void add_calls(struct buf *out, const json_t *result, bool (*fits)(const json_t *call),
                      const char *words)
{
    size_t i, shown = 0;
    json_t *call;
    json_array_foreach (json_object_get(result, "calls"), i, call) {
        char arguments[120];
        if (!fits(call) || shown++ >= NAMES_MAX)
            continue;
        json_brief(json_object_get(call, "arguments"), arguments, sizeof arguments);
        buf_add_text(out, shown == 1 ? words : ", ");
        add_cut(out, json_get_str(call, "tool"), 64);
        buf_printf(out, "(%s)", arguments);
    }
    if (shown > NAMES_MAX)
        buf_printf(out, ", and %zu more", shown - NAMES_MAX);
    if (shown)
        buf_add_text(out, "\n");
}

/* A rollback takes nothing back outside. */
static void add_done(struct buf *out, const json_t *result)
{
    add_calls(out, result, repeats,
              "[calls that this cell made again: they were done, and stayed done, when an equal "
              "cell was undone] ");
    if (str_is(json_get_str(result, "state"), "rolled_back"))
        add_calls(out, result, has_value, "[calls that stay done, though the cell was undone] ");
}

void agent_observe_result(const json_t *result, size_t max, struct buf *out)
{
    add_stream(out, result, "stdout", max);
    add_stream(out, result, "stderr", max / STDERR_SHARE);
    add_values(out, result, max / VALUE_SHARE);
    add_late(out, result, max / STDERR_SHARE);
    if (str_is(json_get_str(result, "state"), "kept")) {
        add_names(out, result, "names_added", "new names");
        add_names(out, result, "names_changed", "changed names");
        add_names(out, result, "names_removed", "names that are gone");
    }
    add_files(out, result);
    add_done(out, result);
}

void agent_observe_brief(const json_t *result, int64_t n, struct buf *out)
{
    struct str status = json_get_str(result, "status");
    struct str stdout_text = json_get_str(result, "stdout");
    const json_t *error = json_object_get(result, "error");
    buf_printf(out, "[older observation, shortened] cell %lld: ", (long long)n);
    add_cut(out, status, 40);
    if (json_is_object(error)) {
        buf_add_text(out, ", ");
        add_cut(out, json_get_str(error, "name"), 60);
        buf_add_text(out, ": ");
        add_cut(out, json_get_str(error, "message"), BRIEF_LINE);
    }
    if (stdout_text.len) {
        buf_printf(out, "; printed %zu bytes: ", stdout_text.len);
        add_cut(out, stdout_text, 2 * BRIEF_LINE);
    }
    buf_add_text(out, "\n");
    if (str_is(json_get_str(result, "state"), "kept"))
        add_names(out, result, "names_added", "new names");
    add_files(out, result);
}

static void add_picture(json_t *pictures, const char *mime, json_t *base64)
{
    if (json_is_string(base64) && json_string_length(base64) <= PICTURE_MAX &&
        json_array_size(pictures) < PICTURES_MAX)
        json_array_append_new(pictures, json_pack("{s:s, s:s, s:O}", "type", "image", "mime", mime,
                                                  "base64", base64));
}

json_t *agent_observe_pictures(const json_t *result,
                               struct str (*content)(void *user, const char *path), void *user)
{
    json_t *pictures = json_array(), *entry;
    size_t i;
    json_array_foreach (json_object_get(result, "results"), i, entry)
        add_picture(pictures, "image/png", json_object_get(entry, "image/png"));
    if (json_array_size(pictures) == 0) { /* saved, but not shown */
        json_array_foreach (json_object_get(result, "artifacts"), i, entry) {
            const char *path = json_string_value(json_object_get(entry, "path"));
            struct str bytes = path && str_is(json_get_str(entry, "mime"), "image/png")
                                   ? content(user, path)
                                   : STR_NONE;
            bool fits = bytes.len && bytes.len < PICTURE_MAX / 4 * 3;
            own_json base64 = fits ? base64_json(bytes) : NULL;
            add_picture(pictures, "image/png", base64);
        }
    }
    if (json_array_size(pictures) > 0)
        return pictures;
    json_decref(pictures);
    return NULL;
}
