/* Inside of schemas: the compiled form. Only the files of tool/define include this. */
#ifndef TOOL_DEFINE_SCHEMA_INT_H
#define TOOL_DEFINE_SCHEMA_INT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "tool/define/schema.h"

enum schema_type {
    TYPE_NULL = 1,
    TYPE_BOOLEAN = 2,
    TYPE_INTEGER = 4,
    TYPE_NUMBER = 8,
    TYPE_STRING = 16,
    TYPE_ARRAY = 32,
    TYPE_OBJECT = 64,
};

struct schema_names {
    unsigned type;
    const char *name;
    const char *phrase; /* as in "must be ..." */
};
#define SCHEMA_TYPES 7
extern const struct schema_names schema_types[SCHEMA_TYPES];

struct schema_list {
    const struct schema_node **at;
    size_t count;
};

/* Number keywords and counts. A limit that is absent is NULL or -1. */
enum { LEAST, MOST, ABOVE, BELOW, MULTIPLE, NUMBER_LIMITS };
enum { LENGTH, ITEMS, PROPERTIES, COUNTS };

struct schema_node {
    const json_t *text;                    /* borrowed from the schema's own copy */
    bool never;                            /* the schema `false` */
    bool unique;                           /* uniqueItems */
    unsigned types;                        /* 0: every type */
    const json_t *constant, *choices;      /* const, enum */
    const json_t *number[NUMBER_LIMITS];   /* minimum, maximum, exclusive both, multipleOf */
    int64_t least[COUNTS], most[COUNTS];   /* minLength, maxItems and so on */
    const json_t *required;                /* array of names */
    const json_t *dependent;               /* dependentRequired */
    json_t *property_places;               /* name to its place in `properties` */
    struct schema_list properties, prefix; /* properties, prefixItems */
    const struct schema_node *additional, *names, *items, *refused, *reference;
    struct schema_list all, any, one;      /* allOf, anyOf, oneOf */
    int colour;                            /* of the search for circles */
};

struct schema {
    json_t *text; /* deep copy, never changed */
    struct schema_node **nodes;
    size_t count;
    json_t *places; /* JSON pointer to the node's number */
};

/* Fill the nodes from schema->text. The root's node, or NULL. */
const struct schema_node *schema_compile(struct schema *schema, struct err *err);

/* The work that one check may still do. */
struct schema_work {
    int64_t steps;
    bool spent; /* the bound was met: the check has failed, whatever came before */
};

/* Take steps; false when there are none left. */
static inline bool schema_step(struct schema_work *work, size_t steps)
{
    work->steps -= (int64_t)steps;
    work->spent |= work->steps < 0;
    return !work->spent;
}

/* Equality as JSON Schema has it: 1 is 1.0, members have no order. False also when the work is
 * spent. */
bool schema_same(const json_t *a, const json_t *b, struct schema_work *work);
/* -1, 0, 1: two numbers, compared exactly. */
int schema_compare(const json_t *a, const json_t *b);
bool schema_is_integer(const json_t *value);
/* Whether value is a multiple of unit, within the precision of a double. */
bool schema_is_multiple(const json_t *value, const json_t *unit);
/* The places of two equal members of an array, by sorting hashes of them: true where there are. */
bool schema_find_twins(const json_t *array, size_t *out_first, size_t *out_second,
                       struct schema_work *work);

#endif
