/* One queue of rows for each call: its tool and its arguments as canonical JSON. */
#include "contract/past_calls.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"

struct past_calls {
    json_t *queues; /* {"[TOOL,ARGUMENTS]":[row]}; the next row is the last */
    struct past_calls_counts counts;
};

static char *key_of(struct str tool, const json_t *arguments)
{
    own_json call = json_pack("[o, O]", json_text(tool), (json_t *)(uintptr_t)arguments);
    char *key = json_write(call, JSON_COMPACT | JSON_SORT_KEYS);
    return key ? key : buf_strdup(STR(""));
}

static bool is_usable(const json_t *row)
{
    return json_is_string(json_object_get(row, "tool")) &&
           json_is_object(json_object_get(row, "arguments")) &&
           json_is_object(json_object_get(row, "outcome"));
}

static json_int_t number_of(const json_t *row)
{
    return json_integer_value(json_object_get(row, "number"));
}

/* The latest first; equal numbers keep their order in the list. */
struct place {
    size_t index;
    json_t *row;
};

static int later_first(const void *one, const void *other)
{
    const struct place *a = one, *b = other;
    json_int_t x = number_of(a->row), y = number_of(b->row);
    if (x != y)
        return x < y ? 1 : -1;
    return a->index < b->index ? 1 : -1;
}

/* The usable rows; `out` has room for all of them. */
static size_t sort(const json_t *rows, struct place *out)
{
    size_t i, count = 0;
    json_t *row;
    json_array_foreach (rows, i, row)
        if (is_usable(row))
            out[count++] = (struct place){ i, row };
    qsort(out, count, sizeof *out, later_first);
    return count;
}

static void push(struct past_calls *past, json_t *row)
{
    own_str key = key_of(json_get_str(row, "tool"), json_object_get(row, "arguments"));
    json_t *queue = json_object_get(past->queues, key);
    if (!queue) {
        queue = json_array();
        json_object_set_new(past->queues, key, queue);
    }
    json_array_append(queue, row);
    past->counts.left++;
}

struct past_calls *past_calls_new(const json_t *rows)
{
    struct past_calls *past = buf_alloc_zero(1, sizeof *past);
    struct place *places = buf_alloc_zero(json_array_size(rows) + 1, sizeof *places);
    size_t count = sort(rows, places);
    past->queues = json_object();
    past->counts.unusable = json_array_size(rows) - count;
    for (size_t i = 0; i < count; i++)
        push(past, places[i].row);
    free(places);
    return past;
}

void past_calls_free(struct past_calls *past)
{
    if (!past)
        return;
    json_decref(past->queues);
    free(past);
}

const json_t *past_calls_find(struct past_calls *past, struct str tool, const json_t *arguments)
{
    own_str key = key_of(tool, arguments);
    json_t *queue = json_object_get(past->queues, key);
    size_t size = json_array_size(queue);
    if (size == 0) {
        past->counts.unknown++;
        return NULL;
    }
    const json_t *row = json_array_get(queue, size - 1);
    json_array_remove(queue, size - 1); /* the caller's list holds it */
    past->counts.served++;
    past->counts.left--;
    return row;
}

const json_t *past_calls_take(struct past_calls *past, struct str tool, const json_t *arguments)
{
    return json_object_get(past_calls_find(past, tool, arguments), "outcome");
}

json_t *past_calls_left(const struct past_calls *past)
{
    const char *key;
    json_t *queue;
    own_json rows = json_array();
    json_t *left = json_array();
    json_object_foreach (past->queues, key, queue)
        for (size_t i = json_array_size(queue); i-- > 0;) /* equal numbers keep their order */
            json_array_append(rows, json_array_get(queue, i));
    struct place *places = buf_alloc_zero(json_array_size(rows) + 1, sizeof *places);
    for (size_t count = sort(rows, places); count > 0; count--)
        json_array_append(left, places[count - 1].row);
    free(places);
    return left;
}

struct past_calls_counts past_calls_count(const struct past_calls *past)
{
    return past->counts;
}
