/* Checks a value against a compiled schema. The work has a bound: no author of schema and value can
 * make one check take longer than SCHEMA_STEPS_MAX steps. Alternatives are tried without a
 * message; the message is made afterwards, from the alternative that came furthest. Any process; no
 * I/O. */
#include <stdio.h>

#include "base/buf.h"
#include "base/json.h"
#include "tool/define/schema_int.h"

/* The way from the whole value to a part of it, on the stack. */
struct place {
    const struct place *above;
    const char *key; /* NULL: a list's member */
    size_t index;
    size_t depth;
};

struct check {
    struct schema_work *work;
    struct err *err; /* NULL: only the verdict counts */
    size_t furthest; /* depth of the deepest fault */
    size_t depth;
};

static int check_node(struct check *with, const struct schema_node *node, const json_t *value,
                      const struct place *place);

static void path_add(struct buf *out, const struct place *place)
{
    if (!place->above)
        return;
    path_add(out, place->above);
    if (place->key)
        buf_printf(out, "%s%.60s", out->len ? "." : "", place->key);
    else
        buf_printf(out, "[%zu]", place->index);
}

/* A fault that nobody reads: a rule may be long, so its words are made for a message only. */
static int quiet_fault(struct check *with, const struct place *place)
{
    if (place->depth > with->furthest)
        with->furthest = place->depth;
    return -1;
}

static int fault(struct check *with, const struct place *place, const json_t *value,
                 const char *bound)
{
    quiet_fault(with, place);
    if (!with->err)
        return -1;
    char given[96];
    own_buf path = BUF_INIT(95);
    path_add(&path, place);
    json_brief(value, given, sizeof given);
    const char *name = path.len ? path.at : "";
    err_input(with->err, name, value ? given : NULL, bound, "%s%s%s is %s, %s", *name ? "'" : "",
              *name ? name : "the value", *name ? "'" : "", value ? given : "missing", bound);
    return -1;
}

static unsigned type_of(const json_t *value)
{
    static const unsigned types[] = {
        [JSON_OBJECT] = TYPE_OBJECT, [JSON_ARRAY] = TYPE_ARRAY,
        [JSON_STRING] = TYPE_STRING, [JSON_INTEGER] = TYPE_INTEGER | TYPE_NUMBER,
        [JSON_REAL] = TYPE_NUMBER,   [JSON_TRUE] = TYPE_BOOLEAN,
        [JSON_FALSE] = TYPE_BOOLEAN, [JSON_NULL] = TYPE_NULL,
    };
    unsigned type = types[json_typeof(value)];
    return json_is_real(value) && schema_is_integer(value) ? type | TYPE_INTEGER : type;
}

static int check_type(struct check *with, const struct schema_node *node, const json_t *value,
                      const struct place *place)
{
    if (node->never)
        return fault(with, place, value, "not allowed");
    if (!node->types || node->types & type_of(value))
        return 0;
    if (!with->err)
        return quiet_fault(with, place);
    char bound[96];
    size_t len = (size_t)snprintf(bound, sizeof bound, "must be ");
    unsigned types = node->types;
    if (types & TYPE_NUMBER)
        types &= ~(unsigned)TYPE_INTEGER;
    for (size_t i = 0; i < SCHEMA_TYPES && len < sizeof bound; i++)
        if (types & schema_types[i].type)
            len += (size_t)snprintf(bound + len, sizeof bound - len, "%s%s",
                                    len > strlen("must be ") ? " or " : "", schema_types[i].phrase);
    return fault(with, place, value, bound);
}

static int check_choices(struct check *with, const struct schema_node *node, const json_t *value,
                         const struct place *place)
{
    char bound[96], list[80];
    bool same = !node->constant || schema_same(node->constant, value, with->work);
    bool found = same && !node->choices;
    for (size_t i = 0; same && !found && i < json_array_size(node->choices); i++)
        found = schema_same(json_array_get(node->choices, i), value, with->work);
    if (found)
        return 0;
    if (!with->err)
        return quiet_fault(with, place);
    json_brief(same ? node->choices : node->constant, list, sizeof list);
    snprintf(bound, sizeof bound, "must be %s%s", same ? "one of " : "", list);
    return fault(with, place, value, bound);
}

static int check_number(struct check *with, const struct schema_node *node, const json_t *value,
                        const struct place *place)
{
    static const char *const words[] = { [LEAST] = "at least",
                                         [MOST] = "at most",
                                         [ABOVE] = "must be above",
                                         [BELOW] = "must be below",
                                         [MULTIPLE] = "must be a multiple of" };
    for (int i = 0; json_is_number(value) && i < NUMBER_LIMITS; i++) {
        const json_t *limit = node->number[i];
        int order = limit ? schema_compare(value, limit) : 0;
        bool good = !limit || (i == LEAST   ? order >= 0
                               : i == MOST  ? order <= 0
                               : i == ABOVE ? order > 0
                               : i == BELOW ? order < 0
                                            : schema_is_multiple(value, limit));
        if (good)
            continue;
        if (!with->err)
            return quiet_fault(with, place);
        char bound[96], text[48];
        json_brief(limit, text, sizeof text);
        snprintf(bound, sizeof bound, "%s %s", words[i], text);
        return fault(with, place, value, bound);
    }
    return 0;
}

static int64_t code_points(const json_t *value)
{
    struct str text = json_str(value);
    int64_t count = 0;
    for (size_t i = 0; i < text.len; i++)
        count += ((unsigned char)text.at[i] & 0xc0) != 0x80;
    return count;
}

static int check_counts(struct check *with, const struct schema_node *node, const json_t *value,
                        const struct place *place)
{
    static const char *const words[] = { [LENGTH] = "characters",
                                         [ITEMS] = "members",
                                         [PROPERTIES] = "properties" };
    int which = json_is_string(value) ? LENGTH : json_is_array(value) ? ITEMS : PROPERTIES;
    if (which == PROPERTIES && !json_is_object(value))
        return 0;
    int64_t least = node->least[which], most = node->most[which];
    if (least < 0 && most < 0)
        return 0;
    if (which == LENGTH && !schema_step(with->work, json_string_length(value) / 64))
        return -1;
    int64_t count = which == LENGTH  ? code_points(value)
                    : which == ITEMS ? (int64_t)json_array_size(value)
                                     : (int64_t)json_object_size(value);
    bool few = least >= 0 && count < least;
    if (!few && (most < 0 || count <= most))
        return 0;
    if (!with->err)
        return quiet_fault(with, place);
    char bound[96];
    snprintf(bound, sizeof bound, "must have at %s %lld %s, has %lld", few ? "least" : "most",
             (long long)(few ? least : most), words[which], (long long)count);
    return fault(with, place, value, bound);
}

static int check_array(struct check *with, const struct schema_node *node, const json_t *value,
                       const struct place *place)
{
    size_t first, second, count = json_array_size(value);
    bool each = node->items || node->prefix.count;
    for (size_t i = 0; each && i < count; i++) {
        struct place inner = { place, NULL, i, place->depth + 1 };
        const struct schema_node *of = i < node->prefix.count ? node->prefix.at[i] : node->items;
        if (of && check_node(with, of, json_array_get(value, i), &inner) < 0)
            return -1;
    }
    if (!node->unique || !schema_find_twins(value, &first, &second, with->work))
        return 0;
    char bound[96];
    snprintf(bound, sizeof bound, "must not repeat a member: [%zu] and [%zu] are equal", first,
             second);
    return fault(with, place, value, bound);
}

static int check_required(struct check *with, const json_t *names, const json_t *value,
                          const struct place *place, const char *bound)
{
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        struct place missing = { place, name, 0, place->depth + 1 };
        if (!schema_step(with->work, 1) || !json_object_get(value, name))
            return fault(with, &missing, NULL, bound);
    }
    return 0;
}

static int check_dependent(struct check *with, const struct schema_node *node, const json_t *value,
                           const struct place *place)
{
    const char *name;
    json_t *names;
    json_object_foreach ((json_t *)(uintptr_t)node->dependent, name, names) {
        char bound[96];
        snprintf(bound, sizeof bound, "required beside '%.60s'", name);
        if (!schema_step(with->work, 1))
            return -1;
        if (json_object_get(value, name) && check_required(with, names, value, place, bound) < 0)
            return -1;
    }
    return 0;
}

/* A property that the schema does not name: the fault lists those that it does. */
static int check_unknown(struct check *with, const struct schema_node *node, const json_t *value,
                         const struct place *place)
{
    if (!node->additional->never)
        return check_node(with, node->additional, value, place);
    if (!with->err)
        return quiet_fault(with, place);
    char bound[96];
    const char *name;
    json_t *number;
    size_t len = (size_t)snprintf(bound, sizeof bound, "not a property; known:");
    json_object_foreach (node->property_places, name, number)
        if (len < sizeof bound)
            len += (size_t)snprintf(bound + len, sizeof bound - len, " %.40s", name);
    return fault(with, place, value,
                 json_object_size(node->property_places) ? bound
                                                         : "not a property; there are none");
}

static int check_object(struct check *with, const struct schema_node *node, const json_t *value,
                        const struct place *place)
{
    const char *name;
    json_t *member;
    if (check_required(with, node->required, value, place, "required") < 0 ||
        check_dependent(with, node, value, place) < 0)
        return -1;
    if (!node->properties.count && !node->additional && !node->names)
        return 0;
    json_object_foreach ((json_t *)(uintptr_t)value, name, member) {
        struct place inner = { place, name, 0, place->depth + 1 };
        const json_t *known = json_object_get(node->property_places, name);
        if (!schema_step(with->work, 1 + strlen(name) / 64))
            return -1;
        if (node->names) {
            own_json text = json_string(name);
            if (check_node(with, node->names, text, &inner) < 0)
                return -1;
        }
        if (known &&
            check_node(with, node->properties.at[json_integer_value(known)], member, &inner) < 0)
            return -1;
        if (!known && node->additional && check_unknown(with, node, member, &inner) < 0)
            return -1;
    }
    return 0;
}

/* The verdict alone, and how far a failed check came. */
static bool fits(struct check *with, const struct schema_node *node, const json_t *value,
                 const struct place *place, size_t *out_furthest)
{
    struct check quiet = { with->work, NULL, 0, with->depth };
    bool good = check_node(&quiet, node, value, place) == 0;
    *out_furthest = quiet.furthest;
    return good;
}

/* anyOf and oneOf. */
static int check_alternatives(struct check *with, const struct schema_list *list, bool only_one,
                              const json_t *value, const struct place *place)
{
    size_t matched = 0, nearest = 0, best = 0;
    for (size_t i = 0; i < list->count && (only_one || !matched); i++) {
        size_t far;
        matched += fits(with, list->at[i], value, place, &far);
        if (far > best)
            nearest = i, best = far;
        if (with->work->spent)
            return -1;
    }
    if (matched == 1 || !list->count)
        return 0;
    if (matched)
        return fault(with, place, value, "fits more than one of the alternatives of oneOf");
    if (best > with->furthest)
        with->furthest = best;
    if (!with->err)
        return -1;
    /* The alternative that came into the value furthest is probably the one that was meant. */
    if (best > place->depth)
        return check_node(with, list->at[nearest], value, place);
    char bound[96];
    snprintf(bound, sizeof bound, "fits none of the %zu alternatives of %s", list->count,
             only_one ? "oneOf" : "anyOf");
    return fault(with, place, value, bound);
}

static int check_combined(struct check *with, const struct schema_node *node, const json_t *value,
                          const struct place *place)
{
    size_t far;
    if (node->reference && check_node(with, node->reference, value, place) < 0)
        return -1;
    for (size_t i = 0; i < node->all.count; i++)
        if (check_node(with, node->all.at[i], value, place) < 0)
            return -1;
    if (check_alternatives(with, &node->any, /* only_one= */ false, value, place) < 0 ||
        check_alternatives(with, &node->one, /* only_one= */ true, value, place) < 0)
        return -1;
    if (node->refused && fits(with, node->refused, value, place, &far))
        return fault(with, place, value, "fits what 'not' forbids");
    return with->work->spent ? -1 : 0;
}

static int check_node(struct check *with, const struct schema_node *node, const json_t *value,
                      const struct place *place)
{
    if (!schema_step(with->work, 1))
        return -1;
    if (with->depth >= SCHEMA_CHECK_DEPTH_MAX) {
        with->work->spent = true;
        return -1;
    }
    with->depth++;
    int done = check_type(with, node, value, place);
    if (done == 0)
        done = check_choices(with, node, value, place);
    if (done == 0)
        done = check_number(with, node, value, place);
    if (done == 0)
        done = check_counts(with, node, value, place);
    if (done == 0 && json_is_array(value))
        done = check_array(with, node, value, place);
    if (done == 0 && json_is_object(value))
        done = check_object(with, node, value, place);
    if (done == 0)
        done = check_combined(with, node, value, place);
    with->depth--;
    return with->work->spent ? -1 : done;
}

int schema_check(const struct schema *schema, const json_t *value, struct err *err)
{
    static const struct place whole = { .above = NULL };
    struct schema_work work = { .steps = SCHEMA_STEPS_MAX };
    struct check with = { &work, err, 0, 0 };
    int done = check_node(&with, schema->nodes[0], value, &whole);
    if (!work.spent)
        return done;
    err_input(err, "", NULL, "a value that a million steps can check",
              "the value takes more than %d steps, or %d levels, to check against its schema",
              SCHEMA_STEPS_MAX, SCHEMA_CHECK_DEPTH_MAX);
    err_hint(err, "the schema has too many alternatives for a value of this size");
    return -1;
}
