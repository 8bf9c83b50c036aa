/* A driver's frames and values of an error, and problems of code that has not run. Runs in the
 * engine; every byte comes from the box: texts are cut to their caps, and anything that breaks
 * drivers/PROTOCOL.md is dropped. */
#include "engine/talk/driver_advice.h"

#include <stdint.h>
#include <string.h>

#include "base/attr.h"
#include "base/json.h"
#include "base/own.h"

#define FRAMES_MAX 5
#define VALUES_MAX 8
#define PROBLEMS_MAX 20
#define NAME_MAX_BYTES 800  /* 200 characters */
#define TEXT_MAX_BYTES 320  /* of a value: 80 */
#define LINE_MAX_BYTES 800  /* of a source line */
#define WORDS_MAX_BYTES 2000 /* of a message or a hint */

/* A text within its cap, or NULL. */
static json_t *text_of(const json_t *from, const char *name, size_t most)
{
    const json_t *value = json_object_get(from, name);
    if (!json_is_string(value))
        return NULL;
    struct str text = json_str(value);
    text.len = str_cut_utf8(text, most);
    return json_text(text);
}

static bool add_text(json_t *out, const json_t *from, const char *name, size_t most)
{
    json_t *text = text_of(from, name, most);
    return text && json_object_set_new(out, name, text) == 0;
}

static void add_text_or_null(json_t *out, const json_t *from, const char *name, size_t most)
{
    json_t *text = text_of(from, name, most);
    json_object_set_new(out, name, text ? text : json_null());
}

/* A line or a column: from 1. */
static json_t *position_of(const json_t *from, const char *name)
{
    json_int_t position = json_integer_value(json_object_get(from, name));
    return position > 0 && position < INT32_MAX ? json_integer(position) : json_null();
}

static json_t *frame_of(const json_t *from)
{
    own_json out = json_object();
    own_json line = position_of(from, "line");
    if (json_is_null(line) || !add_text(out, from, "function", NAME_MAX_BYTES))
        return NULL;
    json_object_set(out, "line", line);
    return add_text(out, from, "text", LINE_MAX_BYTES) ? take_ptr(out) : NULL;
}

static json_t *value_of(const json_t *from)
{
    own_json out = json_object();
    bool whole = add_text(out, from, "name", NAME_MAX_BYTES) &&
                 add_text(out, from, "text", TEXT_MAX_BYTES) &&
                 add_text(out, from, "type", NAME_MAX_BYTES);
    return whole ? take_ptr(out) : NULL;
}

static json_t *problem_of(const json_t *from)
{
    static const char *const kinds[] = { "syntax", "name", "module" };
    const char *kind = json_string_value(json_object_get(from, "kind"));
    own_json out = json_object();
    for (size_t i = 0; kind && i < array_len(kinds); i++) {
        if (strcmp(kind, kinds[i]) != 0)
            continue;
        json_object_set_new(out, "kind", json_string(kinds[i]));
        json_object_set_new(out, "line", position_of(from, "line"));
        json_object_set_new(out, "column", position_of(from, "column"));
        add_text_or_null(out, from, "name", NAME_MAX_BYTES);
        if (!add_text(out, from, "message", WORDS_MAX_BYTES))
            return NULL;
        add_text_or_null(out, from, "hint", WORDS_MAX_BYTES);
        return take_ptr(out);
    }
    return NULL;
}

static json_t *list_of(const json_t *list, size_t most, json_t *(*copy)(const json_t *from))
{
    const json_t *one;
    size_t i;
    if (!json_is_array(list))
        return NULL;
    json_t *out = json_array();
    json_array_foreach (list, i, one) {
        json_t *kept = i < most ? copy(one) : NULL;
        if (kept)
            json_array_append_new(out, kept);
    }
    return out;
}

json_t *driver_advice_frames(const json_t *line)
{
    return list_of(json_object_get(line, "frames"), FRAMES_MAX, frame_of);
}

json_t *driver_advice_values(const json_t *line)
{
    return list_of(json_object_get(line, "values"), VALUES_MAX, value_of);
}

json_t *driver_advice_problems(const json_t *line)
{
    return list_of(json_object_get(line, "problems"), PROBLEMS_MAX, problem_of);
}
