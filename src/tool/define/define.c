/* Reads definitions by a table of fields. Any process; no I/O. */
#include "tool/define/define.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"

static const char *const effects[] = { [TOOL_READ] = "read",
                                       [TOOL_WRITE] = "write",
                                       [TOOL_IRREVERSIBLE] = "irreversible" };
static const char *const verdicts[] = { [TOOL_ALLOW] = "allow",
                                        [TOOL_ASK] = "ask",
                                        [TOOL_DENY] = "deny" };

static int refuse(const char *field, const json_t *value, const char *bound, struct err *err)
{
    char given[96];
    json_brief(value, given, sizeof given);
    return err_input(err, field, given, bound, "field '%s' is %s, must be %s", field,
                     value ? given : "missing", bound);
}

static int find(const json_t *value, const char *const *names, size_t count)
{
    for (size_t i = 0; json_is_string(value) && i < count; i++)
        if (str_is(json_str(value), names[i]))
            return (int)i;
    return -1;
}

static int read_name(const json_t *value, struct tool *tool, struct err *err)
{
    if (!json_is_string(value) || !tool_name_is_good(json_str(value)))
        return refuse("name", value,
                      "letters, digits, _ and - with dots between the parts, at most 64 bytes",
                      err);
    tool->name = buf_strdup(json_str(value));
    return 0;
}

/* A text without NUL, within a maximum. */
static int read_text(const json_t *value, const char *field, size_t max, const char **out,
                     struct err *err)
{
    char bound[48];
    *out = json_string_value(value);
    if (json_is_string(value) && json_string_length(value) <= max &&
        strlen(*out) == json_string_length(value))
        return 0;
    snprintf(bound, sizeof bound, "a text of at most %zu bytes", max);
    return refuse(field, value, bound, err);
}

static int read_description(const json_t *value, struct tool *tool, struct err *err)
{
    return read_text(value, "description", TOOL_DESCRIPTION_MAX, &tool->description, err);
}

static int read_source(const json_t *value, struct tool *tool, struct err *err)
{
    return value ? read_text(value, "source", TOOL_SOURCE_MAX, &tool->source, err) : 0;
}

static int read_schema(const json_t *value, const char *field, struct schema **out, struct err *err)
{
    *out = schema_new(value, err);
    if (*out)
        return 0;
    char inner[sizeof err->field];
    snprintf(inner, sizeof inner, "%s", err->field);
    err_wrap(err, "%s", field);
    snprintf(err->field, sizeof err->field, "%s%.*s", field, (int)(sizeof inner - 16), inner);
    return -1;
}

static int read_input(const json_t *value, struct tool *tool, struct err *err)
{
    const json_t *type = json_object_get(value, "type");
    if (!json_is_string(type) || !str_is(json_str(type), "object"))
        return refuse("input_schema", value, "an object with \"type\": \"object\"", err);
    return read_schema(value, "input_schema", &tool->input, err);
}

static int read_output(const json_t *value, struct tool *tool, struct err *err)
{
    return value ? read_schema(value, "output_schema", &tool->output, err) : 0;
}

static int read_effect(const json_t *value, struct tool *tool, struct err *err)
{
    int found = value ? find(value, effects, array_len(effects)) : TOOL_WRITE;
    if (found < 0)
        return refuse("effect", value, "\"read\", \"write\" or \"irreversible\"", err);
    tool->effect = (enum tool_effect)found;
    return 0;
}

/* The arguments that a rule, or the idempotency key, may name: those that the input schema
 * declares. A rule for a misspelt one would never match. */
static const json_t *declared(const struct tool *tool, const char *name)
{
    const json_t *input = json_object_get(tool->definition, "input_schema");
    return json_object_get(json_object_get(input, "properties"), name);
}

static int read_when(const json_t *when, const char *field, const struct tool *tool,
                     struct err *err)
{
    const char *name;
    json_t *pattern;
    if (!json_is_object(when) || json_object_size(when) == 0)
        return refuse(field, when, "an object of arguments and patterns", err);
    json_object_foreach ((json_t *)(uintptr_t)when, name, pattern) {
        if (!declared(tool, name))
            return err_input(err, field, name, "an argument that input_schema declares",
                             "field '%s' names '%.60s', which is no property of 'input_schema'",
                             field, name);
        if (!json_is_string(pattern) || json_string_length(pattern) > TOOL_PATTERN_MAX)
            return refuse(field, pattern, "patterns: texts of at most 256 bytes", err);
    }
    return 0;
}

static int read_rule(const json_t *rule, size_t place, const struct tool *tool, struct err *err)
{
    char field[32];
    snprintf(field, sizeof field, "policy[%zu]", place);
    if (!json_is_object(rule) || json_object_size(rule) != 2 ||
        find(json_object_get(rule, "then"), verdicts, array_len(verdicts)) < 0)
        return refuse(field, rule, "{\"when\": {...}, \"then\": \"allow\", \"ask\" or \"deny\"}",
                      err);
    snprintf(field, sizeof field, "policy[%zu].when", place);
    return read_when(json_object_get(rule, "when"), field, tool, err);
}

static int read_policy(const json_t *value, struct tool *tool, struct err *err)
{
    size_t count = json_array_size(value);
    tool->policy = value;
    if (!value || find(value, verdicts, array_len(verdicts)) >= 0)
        return 0;
    if (!json_is_array(value) || count == 0 || count > TOOL_RULES_MAX)
        return refuse("policy", value, "allow, ask, deny, or a list of at most 64 rules", err);
    for (size_t i = 0; i < count; i++) {
        const json_t *rule = json_array_get(value, i);
        bool is_rest = i == count - 1 && find(rule, verdicts, array_len(verdicts)) >= 0;
        if (!is_rest && read_rule(rule, i, tool, err) < 0)
            return -1;
    }
    return 0;
}

static int read_number(const json_t *caps, const char *name, double least, double most,
                       double usual, double *out, struct err *err)
{
    const json_t *value = json_object_get(caps, name);
    char field[32], bound[64];
    *out = value ? json_number_value(value) : usual;
    bool is_count = least == 1;
    if (!value || (json_is_number(value) && *out >= least && *out <= most &&
                   (!is_count || json_is_integer(value))))
        return 0;
    snprintf(field, sizeof field, "caps.%s", name);
    snprintf(bound, sizeof bound, "%s from %g to %.0f", is_count ? "an integer" : "a number", least,
             most);
    return refuse(field, value, bound, err);
}

static int read_caps(const json_t *value, struct tool *tool, struct err *err)
{
    static const char *const names[] = { "calls", "timeout_s", "result_bytes", "at_once" };
    double calls, seconds, bytes, at_once;
    const char *name;
    json_t *member;
    if (value && !json_is_object(value))
        return refuse("caps", value, "an object", err);
    json_object_foreach ((json_t *)(uintptr_t)value, name, member) {
        bool known = false;
        for (size_t i = 0; i < array_len(names); i++)
            known |= strcmp(name, names[i]) == 0;
        if (!known)
            return err_input(err, "caps", name, "calls, timeout_s, result_bytes, at_once",
                             "field 'caps' has an unknown member '%.60s'", name);
    }
    if (read_number(value, "calls", 1, TOOL_CALLS_MAX, 1000, &calls, err) < 0 ||
        read_number(value, "timeout_s", 0.01, TOOL_TIMEOUT_MAX_MS / 1000, 30, &seconds, err) < 0 ||
        read_number(value, "result_bytes", 1, TOOL_RESULT_BYTES_MAX, 1 << 20, &bytes, err) < 0 ||
        read_number(value, "at_once", 1, TOOL_AT_ONCE_MAX, 8, &at_once, err) < 0)
        return -1;
    tool->calls_max = (int64_t)calls;
    tool->timeout_ms = (int64_t)(seconds * 1000);
    tool->result_bytes = (int64_t)bytes;
    tool->at_once = (unsigned)at_once;
    return 0;
}

static int read_key(const json_t *value, struct tool *tool, struct err *err)
{
    tool->key_argument = json_string_value(value);
    if (!value || (json_is_string(value) && declared(tool, tool->key_argument)))
        return 0;
    return refuse("idempotency_key", value, "the name of a property of input_schema", err);
}

/* In this order: a row may use what the rows before it read. */
static const struct {
    const char *name;
    int (*read)(const json_t *value, struct tool *tool, struct err *err);
} fields[] = {
    { "name", read_name },
    { "description", read_description },
    { "input_schema", read_input },
    { "output_schema", read_output },
    { "effect", read_effect },
    { "policy", read_policy },
    { "caps", read_caps },
    { "idempotency_key", read_key },
    { "source", read_source },
};

static int check_fields(const json_t *definition, struct err *err)
{
    const char *name;
    json_t *value;
    if (!json_is_object(definition))
        return refuse("", definition, "an object", err);
    json_object_foreach ((json_t *)(uintptr_t)definition, name, value) {
        bool known = false;
        for (size_t i = 0; i < array_len(fields); i++)
            known |= strcmp(name, fields[i].name) == 0;
        if (!known)
            return err_input(err, name, NULL, "a field of tool definitions",
                             "unknown field '%.60s' in the definition of a tool", name);
    }
    return 0;
}

int tool_read(const json_t *definition, struct tool *out, struct err *err)
{
    own_tool tool = TOOL_INIT;
    if (check_fields(definition, err) < 0)
        return -1;
    tool.definition = json_deep_copy(definition);
    for (size_t i = 0; i < array_len(fields); i++)
        if (fields[i].read(json_object_get(tool.definition, fields[i].name), &tool, err) < 0)
            return -1;
    *out = tool;
    tool = TOOL_INIT;
    return 0;
}

void tool_done(struct tool *tool)
{
    schema_free(tool->input);
    schema_free(tool->output);
    json_decref(tool->definition);
    free(tool->name);
    *tool = TOOL_INIT;
}

/* Texts are compared as they are, other values by their compact JSON, which is made once for all
 * rules: an argument may be long. One that the call does not have matches no pattern. */
static bool argument_fits(const json_t *arguments, json_t *texts, const char *name,
                          struct str pattern)
{
    json_t *value = json_object_get(arguments, name);
    if (json_is_string(value))
        return tool_glob_fits(json_str(value), pattern);
    if (value && !json_object_get(texts, name)) {
        own_str text = json_write(value, JSON_COMPACT);
        json_object_set_new(texts, name, json_text(str_of(text)));
    }
    const json_t *text = json_object_get(texts, name);
    return text && tool_glob_fits(json_str(text), pattern);
}

static bool rule_fits(const json_t *rule, const json_t *arguments, json_t *texts)
{
    const char *name;
    json_t *pattern;
    json_object_foreach (json_object_get(rule, "when"), name, pattern)
        if (!argument_fits(arguments, texts, name, json_str(pattern)))
            return false;
    return true;
}

enum tool_verdict tool_judge(const struct tool *tool, const json_t *arguments)
{
    const json_t *policy = tool->policy;
    own_json texts = json_object();
    if (!json_is_object(arguments))
        return TOOL_DENY;
    for (size_t i = 0; i < json_array_size(tool->policy); i++) {
        const json_t *rule = json_array_get(tool->policy, i);
        if (json_is_object(rule) && !rule_fits(rule, arguments, texts))
            continue;
        policy = json_is_object(rule) ? json_object_get(rule, "then") : rule;
        break;
    }
    int found = find(policy, verdicts, array_len(verdicts));
    if (found >= 0)
        return (enum tool_verdict)found;
    return tool->effect == TOOL_READ ? TOOL_ALLOW : TOOL_ASK;
}

const char *tool_effect_name(enum tool_effect effect)
{
    return effects[effect];
}

const char *tool_verdict_name(enum tool_verdict verdict)
{
    return verdicts[verdict];
}
