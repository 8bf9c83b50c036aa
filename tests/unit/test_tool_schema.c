/* JSON Schema: which values a schema accepts, which schemas are refused, and the bounds on the work
 * of both. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "tests/unit/check.h"
#include "tool/define/schema.h"

static json_t *json_of(const char *text)
{
    struct err err = ERR_INIT;
    json_t *value = json_read(str_of(text), 8 << 20, &err);
    CHECK_TEXT(err.text, "");
    return value;
}

static struct schema *schema_of(const char *text)
{
    struct err err = ERR_INIT;
    own_json json = json_of(text);
    struct schema *schema = schema_new(json, &err);
    CHECK_TEXT(err.text, "");
    return schema;
}

/* The message of a check, "" for a value that fits. */
static const char *verdict(const char *schema_text, const char *value_text)
{
    static struct err err;
    own_schema schema = schema_of(schema_text);
    own_json value = json_of(value_text);
    err = ERR_INIT;
    int done = schema_check(schema, value, &err);
    CHECK_INT(done, *err.text ? -1 : 0);
    CHECK_INT(err.kind, done < 0 ? ERR_INPUT : ERR_NONE);
    return err.text;
}

static const struct {
    const char *schema, *value, *message;
} rows[] = {
    { "{}", "[1,{}]", "" },
    { "true", "1", "" },
    { "false", "1", "the value is 1, not allowed" },
    { "{\"type\":\"integer\"}", "1", "" },
    { "{\"type\":\"integer\"}", "1.0", "" },
    { "{\"type\":\"integer\"}", "1e300", "" },
    { "{\"type\":\"integer\"}", "1.5", "the value is 1.5, must be an integer" },
    { "{\"type\":\"number\"}", "1", "" },
    { "{\"type\":[\"string\",\"null\"]}", "null", "" },
    { "{\"type\":[\"string\",\"null\"]}", "true", "the value is true, must be null or a string" },
    { "{\"type\":\"boolean\"}", "0", "the value is 0, must be true or false" },
    { "{\"type\":\"object\"}", "[]", "the value is [], must be an object" },
    { "{\"type\":\"array\"}", "{}", "the value is {}, must be a list" },
    { "{\"enum\":[\"a\",1,null]}", "1.0", "" },
    { "{\"enum\":[\"a\",1]}", "\"b\"", "the value is \"b\", must be one of [\"a\",1]" },
    { "{\"enum\":[]}", "1", "the value is 1, must be one of []" },
    { "{\"const\":{\"a\":[1,2],\"b\":0}}", "{\"b\":0.0,\"a\":[1.0,2]}", "" },
    { "{\"const\":{\"a\":1}}", "{\"a\":2}", "the value is {\"a\":2}, must be {\"a\":1}" },
    { "{\"const\":null}", "false", "the value is false, must be null" },
    { "{\"const\":false}", "0", "the value is 0, must be false" },
    { "{\"minimum\":0,\"maximum\":100}", "100", "" },
    { "{\"maximum\":100}", "500", "the value is 500, at most 100" },
    { "{\"minimum\":0.5}", "0", "the value is 0, at least 0.5" },
    { "{\"exclusiveMinimum\":0}", "0", "the value is 0, must be above 0" },
    { "{\"exclusiveMaximum\":1}", "1.0", "the value is 1.0, must be below 1" },
    { "{\"maximum\":9007199254740992.0}", "9007199254740993",
      "the value is 9007199254740993, at most 9007199254740992.0" },
    { "{\"minimum\":3}", "\"no number\"", "" },
    { "{\"multipleOf\":0.1}", "0.3", "" },
    { "{\"multipleOf\":3}", "-9", "" },
    { "{\"multipleOf\":3}", "10", "the value is 10, must be a multiple of 3" },
    { "{\"multipleOf\":0.01}", "1.005", "the value is 1.005, must be a multiple of 0.01" },
    { "{\"maxLength\":3}", "\"\xc3\xa4\xf0\x9f\x98\x80\x6b\"", "" },
    { "{\"maxLength\":2}", "\"abc\"",
      "the value is \"abc\", must have at most 2 characters, has 3" },
    { "{\"minLength\":1}", "\"\"", "the value is \"\", must have at least 1 characters, has 0" },
    { "{\"minItems\":1.0}", "[]", "the value is [], must have at least 1 members, has 0" },
    { "{\"maxItems\":1}", "[1,2]", "the value is [1,2], must have at most 1 members, has 2" },
    { "{\"maxProperties\":0}", "{\"a\":1}",
      "the value is {\"a\":1}, must have at most 0 properties, has 1" },
    { "{\"minProperties\":1}", "{}", "the value is {}, must have at least 1 properties, has 0" },
    { "{\"uniqueItems\":true}", "[1,\"1\",true,[1],{\"a\":1}]", "" },
    { "{\"uniqueItems\":true}", "[{\"a\":1,\"b\":2},3,{\"b\":2,\"a\":1.0}]",
      "the value is [{\"a\":1,\"b\":2},3,{\"b\":2,\"a\":1.0}], must not repeat a member: [0] and "
      "[2] are equal" },
    { "{\"uniqueItems\":false}", "[1,1]", "" },
    { "{\"uniqueItems\":true}", "[0.0,-0.0]",
      "the value is [0.0,-0.0], must not repeat a member: [0] and [1] are equal" },
    { "{\"items\":{\"type\":\"integer\"}}", "[1,\"x\"]", "'[1]' is \"x\", must be an integer" },
    { "{\"prefixItems\":[{\"type\":\"string\"}],\"items\":false}", "[\"a\"]", "" },
    { "{\"prefixItems\":[{\"type\":\"string\"}],\"items\":false}", "[\"a\",1]",
      "'[1]' is 1, not allowed" },
    { "{\"properties\":{\"q\":{\"type\":\"string\"}},\"required\":[\"q\"]}", "{\"q\":1}",
      "'q' is 1, must be a string" },
    { "{\"required\":[\"q\"]}", "{}", "'q' is missing, required" },
    { "{\"required\":[\"q\"]}", "7", "" },
    { "{\"properties\":{\"limit\":{},\"q\":{}},\"additionalProperties\":false}", "{\"limt\":5}",
      "'limt' is 5, not a property; known: limit q" },
    { "{\"additionalProperties\":false}", "{\"a\":5}",
      "'a' is 5, not a property; there are none" },
    { "{\"additionalProperties\":{\"type\":\"integer\"}}", "{\"a\":null}",
      "'a' is null, must be an integer" },
    { "{\"propertyNames\":{\"maxLength\":2}}", "{\"abc\":1}",
      "'abc' is \"abc\", must have at most 2 characters, has 3" },
    { "{\"dependentRequired\":{\"a\":[\"b\"]}}", "{\"a\":1}",
      "'b' is missing, required beside 'a'" },
    { "{\"dependentRequired\":{\"a\":[\"b\"]}}", "{\"b\":1}", "" },
    { "{\"allOf\":[{\"minimum\":1},{\"maximum\":2}]}", "3", "the value is 3, at most 2" },
    { "{\"anyOf\":[{\"type\":\"string\"},{\"minimum\":5}]}", "7", "" },
    { "{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}", "7",
      "the value is 7, fits none of the 2 alternatives of anyOf" },
    { "{\"anyOf\":[{\"type\":\"string\"},"
      "{\"properties\":{\"a\":{\"items\":{\"type\":\"null\"}}}}]}",
      "{\"a\":[1]}", "'a[0]' is 1, must be null" },
    { "{\"oneOf\":[{\"type\":\"integer\"},{\"minimum\":2}]}", "1", "" },
    { "{\"oneOf\":[{\"type\":\"integer\"},{\"minimum\":2}]}", "3",
      "the value is 3, fits more than one of the alternatives of oneOf" },
    { "{\"not\":{\"type\":\"string\"}}", "\"x\"", "the value is \"x\", fits what 'not' forbids" },
    { "{\"not\":{\"not\":{\"type\":\"string\"}}}", "\"x\"", "" },
    { "{\"$defs\":{\"n\":{\"type\":\"null\"}},\"items\":{\"$ref\":\"#/$defs/n\"}}", "[null,1]",
      "'[1]' is 1, must be null" },
    { "{\"definitions\":{\"a/b~c\":{\"type\":\"null\"}},\"$ref\":\"#/definitions/a~1b~0c\"}", "1",
      "the value is 1, must be null" },
    { "{\"properties\":{\"kids\":{\"items\":{\"$ref\":\"#\"}}},\"required\":[\"id\"]}",
      "{\"id\":1,\"kids\":[{\"id\":2},{\"id\":3,\"kids\":[{}]}]}",
      "'kids[1].kids[0].id' is missing, required" },
    { "{\"$schema\":\"http://json-schema.org/draft-07/schema#\",\"$id\":\"u:x\",\"title\":\"t\","
      "\"default\":{},\"format\":\"uuid\",\"examples\":[1],\"x-mcp-header\":\"A\","
      "\"$comment\":\"c\",\"deprecated\":true,\"readOnly\":true,\"writeOnly\":false}",
      "1", "" },
};

TEST(schema_schemas_accept_and_refuse_as_the_specification_says)
{
    for (size_t i = 0; i < array_len(rows); i++)
        CHECK_TEXT(verdict(rows[i].schema, rows[i].value), rows[i].message);
}

TEST(schema_a_fault_names_path_value_and_bound)
{
    struct err err = ERR_INIT;
    own_schema schema = schema_of("{\"properties\":{\"rows\":{\"items\":{\"properties\":{\"n\":"
                                  "{\"maximum\":3}}}}}}");
    own_json value = json_of("{\"rows\":[{\"n\":1},{\"n\":9}]}");
    CHECK_INT(schema_check(schema, value, &err), -1);
    CHECK_TEXT(err.field, "rows[1].n");
    CHECK_TEXT(err.value, "9");
    CHECK_TEXT(err.bound, "at most 3");
}

static const struct {
    const char *schema, *field, *message;
} refused[] = {
    { "{\"properties\":{\"q\":{\"pattern\":\"^a\"}}}", "/properties/q/pattern",
      "keyword 'pattern' at '/properties/q/pattern' of the schema is not supported" },
    { "{\"patternProperties\":{}}", "/patternProperties",
      "keyword 'patternProperties' at '/patternProperties' of the schema is not supported" },
    { "{\"$defs\":{\"a/b\":{\"if\":{}}}}", "/$defs/a~1b/if",
      "keyword 'if' at '/$defs/a~1b/if' of the schema is not supported" },
    { "[]", "", "'' of the schema is [], must be a schema: an object, true or false" },
    { "{\"type\":\"text\"}", "/type",
      "'/type' of the schema is \"text\", must be a type: null, boolean, integer, number, string, "
      "array, object" },
    { "{\"type\":[]}", "/type", "'/type' of the schema is [], must be a type or a list of types" },
    { "{\"minimum\":\"1\"}", "/minimum", "'/minimum' of the schema is \"1\", must be a number" },
    { "{\"exclusiveMinimum\":true}", "/exclusiveMinimum",
      "'/exclusiveMinimum' of the schema is true, must be a number" },
    { "{\"multipleOf\":0}", "/multipleOf",
      "'/multipleOf' of the schema is 0, must be a number above 0" },
    { "{\"minItems\":-1}", "/minItems",
      "'/minItems' of the schema is -1, must be a count of 0 or more" },
    { "{\"maxLength\":1.5}", "/maxLength",
      "'/maxLength' of the schema is 1.5, must be a count of 0 or more" },
    { "{\"required\":[1]}", "/required",
      "'/required' of the schema is [1], must be a list of names" },
    { "{\"items\":[{}]}", "/items",
      "'/items' of the schema is [{}], must be a schema: an object, true or false" },
    { "{\"anyOf\":[]}", "/anyOf",
      "'/anyOf' of the schema is [], must be a list of one schema or more" },
    { "{\"$ref\":\"https://evil.example/s.json\"}", "/$ref",
      "'/$ref' of the schema is \"https://evil.example/s.json\", must be a place in the same "
      "schema, such as \"#/$defs/name\"" },
    { "{\"$ref\":\"#/$defs/none\"}", "/$ref",
      "'/$ref' of the schema is \"#/$defs/none\", must be a place that exists in the schema" },
    { "{\"items\":{\"$id\":\"other\"}}", "/items/$id",
      "keyword '$id' at '/items/$id' is supported only at the top of the schema" },
    { "{\"$ref\":\"#\"}", "", "the schema at '' refers to itself without end" },
    { "{\"$defs\":{\"a\":{\"$ref\":\"#/$defs/b\"},"
      "\"b\":{\"anyOf\":[{},{\"$ref\":\"#/$defs/a\"}]}}}",
      "/$defs/a", "the schema at '/$defs/a' refers to itself without end" },
};

TEST(schema_a_schema_that_cannot_be_checked_is_refused_by_its_pointer)
{
    for (size_t i = 0; i < array_len(refused); i++) {
        struct err err = ERR_INIT;
        own_json text = json_of(refused[i].schema);
        CHECK(!schema_new(text, &err));
        CHECK_TEXT(err.text, refused[i].message);
        CHECK_TEXT(err.field, refused[i].field);
        CHECK_INT(err.kind, ERR_INPUT);
    }
}

TEST(schema_a_schema_too_deep_too_wide_or_too_large_is_refused)
{
    struct err err = ERR_INIT;
    own_json deep = json_object();
    for (int i = 0; i < SCHEMA_DEPTH_MAX; i++) {
        json_t *outer = json_object();
        json_object_set_new(outer, "items", take_ptr(deep));
        deep = outer;
    }
    CHECK(!schema_new(deep, &err));
    CHECK(strstr(err.text, "nested more than 48 deep"));
    own_json wide = json_object();
    own_json list = json_array();
    for (int i = 0; i < SCHEMA_NODES_MAX; i++)
        json_array_append_new(list, json_object());
    json_object_set(wide, "anyOf", list);
    CHECK(!schema_new(wide, &err));
    CHECK(strstr(err.text, "more than 4096 schemas"));
    own_buf text = BUF_INIT(SCHEMA_BYTES_MAX + 16);
    while (text.len <= SCHEMA_BYTES_MAX)
        buf_add_text(&text, "abcdefgh");
    own_json large = json_object();
    json_object_set_new(large, "description", json_text(buf_str(&text)));
    CHECK(!schema_new(large, &err));
    CHECK(strstr(err.text, "the maximum is 262144"));
}

/* Each definition names the one before twice: 2^40 checks without a bound. */
static json_t *exploding_schema(const char *how)
{
    json_t *schema = json_object(), *defs = json_object();
    for (int i = 0; i < 40; i++) {
        char name[16], ref[32];
        snprintf(name, sizeof name, "d%d", i);
        snprintf(ref, sizeof ref, "#/$defs/d%d", i - 1);
        json_t *two = json_array(), *each = json_object();
        for (int j = 0; j < 2; j++) {
            json_t *one = i ? json_object() : json_false();
            if (i)
                json_object_set_new(one, "$ref", json_string(ref));
            json_array_append_new(two, one);
        }
        json_object_set_new(each, how, two);
        json_object_set_new(defs, name, each);
    }
    json_object_set_new(schema, "$defs", defs);
    json_object_set_new(schema, "$ref", json_string("#/$defs/d39"));
    return schema;
}

/* Every member of the list fails the first alternative, whose rule has 250 KB. Only the message of
 * a refusal names the rule. */
TEST(schema_a_failed_alternative_does_not_spell_out_its_rule)
{
    static const char *const rules[] = { "enum", "const", "properties" };
    for (size_t i = 0; i < array_len(rules); i++) {
        struct err err = ERR_INIT;
        own_json many = json_object();
        own_json list = json_array();
        char name[32];
        for (int n = 0; n < 4000; n++) {
            snprintf(name, sizeof name, "a_long_name_of_a_property_%d", n);
            json_object_set_new(many, name, json_true());
        }
        json_t *rule = strcmp(rules[i], "enum") == 0 ? json_pack("[O]", many) : json_incref(many);
        own_json text = json_pack("{s:{s:[{s:o, s:b}, {}]}}", "items", "anyOf", rules[i], rule,
                                  "additionalProperties", 0);
        own_schema schema = schema_new(text, &err);
        CHECK_TEXT(err.text, "");
        for (int n = 0; n < 100000; n++)
            json_array_append_new(list, json_pack("{s:i}", "x", n));
        CHECK_INT(schema_check(schema, list, &err), 0);
        CHECK_TEXT(err.text, "");
    }
}

TEST(schema_references_that_explode_end_at_the_bound)
{
    struct err err = ERR_INIT;
    own_json text = exploding_schema("anyOf");
    own_schema schema = schema_new(text, &err);
    CHECK_TEXT(err.text, "");
    own_json value = json_integer(1);
    CHECK_INT(schema_check(schema, value, &err), -1);
    CHECK(strstr(err.text, "more than 1000000 steps"));
}

TEST(schema_a_spent_bound_is_no_success_behind_not)
{
    struct err err = ERR_INIT;
    own_json text = exploding_schema("anyOf");
    json_t *not = json_object();
    json_object_set_new(not, "$ref", json_string("#/$defs/d39"));
    json_object_del(text, "$ref");
    json_object_set_new(text, "not", not);
    own_schema schema = schema_new(text, &err);
    own_json value = json_integer(1);
    CHECK_INT(schema_check(schema, value, &err), -1);
    CHECK(strstr(err.text, "more than 1000000 steps"));
}

TEST(schema_unique_members_of_a_long_list_cost_no_square)
{
    struct err err = ERR_INIT;
    own_schema schema = schema_of("{\"uniqueItems\":true}");
    own_json list = json_array();
    for (int i = 0; i < 100000; i++)
        json_array_append_new(list, json_integer(i));
    CHECK_INT(schema_check(schema, list, &err), 0);
    json_array_append_new(list, json_integer(77));
    CHECK_INT(schema_check(schema, list, &err), -1);
    CHECK(strstr(err.text, "[77] and [100000] are equal"));
}

TEST(schema_a_recursive_schema_follows_a_value_to_its_depth)
{
    struct err err = ERR_INIT;
    own_schema schema = schema_of("{\"items\":{\"$ref\":\"#\"},\"type\":\"array\"}");
    own_json value = json_array();
    for (int i = 0; i < 200; i++) {
        json_t *outer = json_array();
        json_array_append_new(outer, take_ptr(value));
        value = outer;
    }
    CHECK_INT(schema_check(schema, value, &err), 0);
    for (int i = 0; i < 400; i++) {
        json_t *outer = json_array();
        json_array_append_new(outer, take_ptr(value));
        value = outer;
    }
    CHECK_INT(schema_check(schema, value, &err), -1);
    CHECK(strstr(err.text, "or 512 levels"));
}
