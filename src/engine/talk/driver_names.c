/* A session's names and completions. Runs in the engine; every byte comes from the box: anything
 * that breaks drivers/PROTOCOL.md is dropped. */
#include "engine/talk/driver_names.h"

#include <string.h>

#include "base/attr.h"
#include "base/json.h"
#include "base/own.h"

#define ENTRIES_MAX 200
#define MATCHES_MAX 100
#define NAME_MAX_BYTES 800 /* 200 characters */
#define TEXT_MAX_BYTES 4000 /* 1,000 characters: the columns of a frame */
#define SHAPE_MAX 32

static bool add_text(json_t *out, const json_t *entry, const char *name, size_t most)
{
    const json_t *value = json_object_get(entry, name);
    if (!json_is_string(value) || json_string_length(value) > most)
        return false;
    json_object_set_new(out, name, json_text(json_str(value)));
    return true;
}

static void add_count(json_t *out, const json_t *entry, const char *name)
{
    const json_t *value = json_object_get(entry, name);
    if (json_is_integer(value) && json_integer_value(value) >= 0)
        json_object_set_new(out, name, json_integer(json_integer_value(value)));
}

static void add_shape(json_t *out, const json_t *entry)
{
    const json_t *shape = json_object_get(entry, "shape"), *one;
    size_t i;
    if (!json_is_array(shape) || json_array_size(shape) > SHAPE_MAX)
        return;
    own_json kept = json_array();
    json_array_foreach (shape, i, one) {
        if (!json_is_integer(one))
            return;
        json_array_append_new(kept, json_integer(json_integer_value(one)));
    }
    json_object_set(out, "shape", kept);
}

static json_t *entry_of(const json_t *entry)
{
    own_json out = json_object();
    if (!json_is_object(entry) || !add_text(out, entry, "name", NAME_MAX_BYTES))
        return NULL;
    add_text(out, entry, "type", NAME_MAX_BYTES);
    add_shape(out, entry);
    add_count(out, entry, "length");
    add_count(out, entry, "size_bytes");
    add_text(out, entry, "text", TEXT_MAX_BYTES);
    return take_ptr(out);
}

static json_t *entries_of(const json_t *list)
{
    json_t *out = json_array();
    const json_t *one;
    size_t i;
    json_array_foreach (list, i, one) {
        json_t *entry = i < ENTRIES_MAX ? entry_of(one) : NULL;
        if (entry)
            json_array_append_new(out, entry);
    }
    return out;
}

static int64_t more_of(const json_t *object)
{
    json_int_t more = json_integer_value(json_object_get(object, "more"));
    return more > 0 ? more : 0;
}

json_t *driver_names_changes(const json_t *names)
{
    static const char *const words[] = { "added", "changed", "removed" };
    if (!json_is_object(names))
        return NULL;
    json_t *out = json_object();
    for (size_t i = 0; i < array_len(words); i++)
        json_object_set_new(out, words[i], entries_of(json_object_get(names, words[i])));
    if (more_of(names))
        json_object_set_new(out, "more", json_integer(more_of(names)));
    return out;
}

json_t *driver_names_answer(const json_t *line)
{
    const json_t *names = json_object_get(line, "names");
    const json_t *matches = json_object_get(line, "matches"), *one;
    size_t i;
    if (json_is_array(names))
        return json_pack("{s:o, s:I}", "names", entries_of(names), "names_more",
                         (json_int_t)more_of(line));
    if (!json_is_array(matches))
        return NULL;
    own_json kept = json_array();
    json_array_foreach (matches, i, one) {
        if (i < MATCHES_MAX && json_is_string(one) && json_string_length(one) <= NAME_MAX_BYTES)
            json_array_append_new(kept, json_text(json_str(one)));
    }
    json_int_t start = json_integer_value(json_object_get(line, "start"));
    return json_pack("{s:O, s:I}", "matches", kept, "start", start > 0 ? start : 0);
}
