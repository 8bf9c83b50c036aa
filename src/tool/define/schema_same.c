/* Equality, order and hashes of JSON values for the schema check. Every look at a value takes steps
 * from the check's bound. Any process; no state. */
#include <stdlib.h>

#include "base/buf.h"
#include "tool/define/schema_int.h"

#define STRING_STEP 64 /* bytes of a string that one step pays for */

int schema_compare(const json_t *a, const json_t *b)
{
    if (json_is_integer(a) && json_is_integer(b)) {
        json_int_t x = json_integer_value(a), y = json_integer_value(b);
        return x < y ? -1 : x > y;
    }
    /* A long double holds every 64-bit integer and every double. */
    long double x = json_is_integer(a) ? (long double)json_integer_value(a) : json_real_value(a);
    long double y = json_is_integer(b) ? (long double)json_integer_value(b) : json_real_value(b);
    return x < y ? -1 : x > y;
}

/* As a 64-bit integer, where it is one. */
static bool whole(double value, int64_t *out)
{
    if (!(value >= -0x1p63 && value < 0x1p63) || (double)(int64_t)value != value)
        return false;
    *out = (int64_t)value;
    return true;
}

bool schema_is_integer(const json_t *value)
{
    int64_t integer;
    if (json_is_integer(value))
        return true;
    double real = json_real_value(value);
    /* From 2^53 on every double is an integer. */
    return json_is_real(value) && (whole(real, &integer) || real >= 0x1p53 || real <= -0x1p53);
}

bool schema_is_multiple(const json_t *value, const json_t *unit)
{
    if (json_is_integer(value) && json_is_integer(unit))
        return json_integer_value(unit) == -1 ||
               json_integer_value(value) % json_integer_value(unit) == 0;
    double times = json_number_value(value) / json_number_value(unit);
    if (times < 0)
        times = -times;
    if (!(times < 0x1p53))
        return times < 0x1p1000; /* too large to have a fraction */
    double rest = times - (double)(int64_t)(times + 0.5);
    double slack = times > 1 ? times * 1e-12 : 1e-12;
    return rest <= slack && rest >= -slack;
}

static bool same_object(const json_t *a, const json_t *b, struct schema_work *work)
{
    const char *key;
    json_t *value;
    if (json_object_size(a) != json_object_size(b))
        return false;
    /* jansson's iteration takes a pointer that is not const, and changes nothing. */
    json_object_foreach ((json_t *)(uintptr_t)a, key, value) {
        const json_t *other = json_object_get(b, key);
        if (!schema_step(work, 1 + strlen(key) / STRING_STEP) || !other ||
            !schema_same(value, other, work))
            return false;
    }
    return true;
}

bool schema_same(const json_t *a, const json_t *b, struct schema_work *work)
{
    if (!schema_step(work, 1))
        return false;
    if (json_is_number(a) && json_is_number(b))
        return schema_compare(a, b) == 0;
    if (json_typeof(a) != json_typeof(b))
        return false;
    if (json_is_string(a)) {
        struct str x = { json_string_value(a), json_string_length(a) };
        struct str y = { json_string_value(b), json_string_length(b) };
        return x.len == y.len && schema_step(work, x.len / STRING_STEP) && str_eq(x, y);
    }
    if (json_is_object(a))
        return same_object(a, b, work);
    if (!json_is_array(a))
        return true;
    if (json_array_size(a) != json_array_size(b))
        return false;
    for (size_t i = 0; i < json_array_size(a); i++)
        if (!schema_same(json_array_get(a, i), json_array_get(b, i), work))
            return false;
    return true;
}

static uint64_t mix(uint64_t hash, uint64_t more)
{
    hash = (hash ^ more) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ (hash >> 29);
}

static uint64_t hash_bytes(const char *at, size_t len)
{
    uint64_t hash = len;
    for (size_t i = 0; i < len; i++)
        hash = mix(hash, (unsigned char)at[i]);
    return hash;
}

static uint64_t hash_number(const json_t *value)
{
    double real = json_number_value(value);
    uint64_t bits;
    if (real == 0)
        real = 0; /* -0.0 too */
    memcpy(&bits, &real, sizeof bits);
    return mix(2, bits);
}

/* Equal values have equal hashes. One who makes others collide gains comparisons, which take steps
 * too. */
static uint64_t hash_of(const json_t *value, struct schema_work *work)
{
    if (!schema_step(work, 1))
        return 0;
    if (json_is_number(value))
        return hash_number(value);
    if (json_is_string(value)) {
        schema_step(work, json_string_length(value) / STRING_STEP);
        return mix(3, hash_bytes(json_string_value(value), json_string_length(value)));
    }
    uint64_t hash = (uint64_t)json_typeof(value) + 16;
    if (json_is_array(value))
        for (size_t i = 0; i < json_array_size(value); i++)
            hash = mix(hash, hash_of(json_array_get(value, i), work));
    if (json_is_object(value)) {
        const char *key;
        json_t *member;
        json_object_foreach ((json_t *)(uintptr_t)value, key, member) {
            schema_step(work, strlen(key) / STRING_STEP);
            hash += mix(hash_bytes(key, strlen(key)), hash_of(member, work)); /* in any order */
        }
    }
    return hash;
}

struct hashed {
    uint64_t hash;
    size_t place;
};

static int by_hash(const void *a, const void *b)
{
    const struct hashed *x = a, *y = b;
    return x->hash < y->hash ? -1 : x->hash > y->hash ? 1 : x->place < y->place ? -1 : 1;
}

bool schema_find_twins(const json_t *array, size_t *out_first, size_t *out_second,
                       struct schema_work *work)
{
    size_t count = json_array_size(array);
    if (count < 2 || !schema_step(work, count * 4)) /* the sorting */
        return false;
    struct hashed *list = buf_alloc_zero(count, sizeof *list);
    for (size_t i = 0; i < count && !work->spent; i++)
        list[i] = (struct hashed){ hash_of(json_array_get(array, i), work), i };
    if (!work->spent)
        qsort(list, count, sizeof *list, by_hash);
    bool found = false;
    for (size_t i = 0; i < count && !found && !work->spent; i++)
        for (size_t j = i + 1; j < count && list[j].hash == list[i].hash && !found; j++) {
            found = schema_same(json_array_get(array, list[i].place),
                                json_array_get(array, list[j].place), work);
            *out_first = list[i].place;
            *out_second = list[j].place;
            if (work->spent)
                break;
        }
    free(list);
    return found;
}
