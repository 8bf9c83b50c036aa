/* Parameters and bodies of OpenAPI operations, as arguments of a tool. Runs in the tool host; pure.
 * A parameter in a form that an HTTP tool cannot write is left out where it is optional, and
 * refuses the operation where it is required. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"
#include "tool/host/openapi_int.h"

/* ---- parameters ---- */

/* Why a parameter cannot be written, or NULL. */
static const char *fault_of(const json_t *parameter, const json_t *schema)
{
    struct str in = json_get_str(parameter, "in"), style = json_get_str(parameter, "style");
    const json_t *explode = json_object_get(parameter, "explode");
    struct str type = json_get_str(schema, "type");
    bool simple = !str_is(type, "array") && !str_is(type, "object");
    if (!schema)
        return "has no schema";
    if (str_is(in, "cookie"))
        return "is a cookie";
    if (str_is(in, "path"))
        return style.len == 0 || str_is(style, "simple") ? NULL : "has a style other than 'simple'";
    if (str_is(in, "header"))
        return simple ? NULL : "is a list or object in a header";
    if (!str_is(in, "query"))
        return "is in an unknown place";
    if (simple)
        return NULL;
    if (style.len > 0 && !str_is(style, "form"))
        return "has a style other than 'form'";
    return str_is(type, "object") || json_is_false(explode) ? "is not written as name=value" : NULL;
}

static bool is_ignored_header(const json_t *parameter)
{
    const char *name = json_string_value(json_object_get(parameter, "name"));
    return str_is(json_get_str(parameter, "in"), "header") &&
           (strcasecmp(name, "accept") == 0 || strcasecmp(name, "content-type") == 0 ||
            strcasecmp(name, "authorization") == 0);
}

/* The argument's name: the parameter's, with its place behind it where that is taken. */
static void name_argument(const struct operation *operation, struct str name, struct str in,
                          char *out, size_t room)
{
    char shown[96];
    str_plain(shown, sizeof shown, name);
    for (char *at = shown; *at; at++)
        if (strchr("{}$\"\\ ", *at))
            *at = '_';
    snprintf(out, room, "%s", shown);
    if (json_object_get(operation->properties, out))
        snprintf(out, room, "%s_%.*s", shown, (int)in.len, in.at);
}

static void place_argument(struct operation *operation, struct str name, struct str in,
                           const char *argument)
{
    own_buf key = BUF_INIT(1024), template = BUF_INIT(256);
    own_str theirs = buf_strdup(name);
    buf_printf(&key, "%.900s in %.*s", theirs, (int)in.len, in.at);
    json_object_set_new(operation->places, buf_str(&key).at, json_string(argument));
    if (str_is(in, "path"))
        return;
    const char *member = str_is(in, "query") ? "query" : "headers";
    json_t *pairs = json_object_get(operation->http, member);
    if (!pairs)
        json_object_set_new(operation->http, member, pairs = json_object());
    buf_printf(&template, "{%s}", argument);
    if (!json_object_get(pairs, theirs)) /* the tool file's own headers win */
        json_object_set_new(pairs, theirs, json_string(buf_str(&template).at));
}

static int take_parameter(struct operation *operation, const json_t *parameter, struct err *err)
{
    struct str name = json_get_str(parameter, "name"), in = json_get_str(parameter, "in");
    const json_t *schema = json_object_get(parameter, "schema");
    bool required = json_is_true(json_object_get(parameter, "required")) || str_is(in, "path");
    char argument[128], shown[64];
    own_buf key = BUF_INIT(1024);
    str_plain(shown, sizeof shown, name);
    if (name.len == 0 || name.len > 200 || strlen(name.at) != name.len || in.len > 16)
        return err_set(err, ERR_INPUT, "it has a parameter without a good name");
    buf_printf(&key, "%s in %.*s", name.at, (int)in.len, in.at);
    if (is_ignored_header(parameter) || json_object_get(operation->places, buf_str(&key).at))
        return 0;
    const char *fault = fault_of(parameter, openapi_resolve(operation->document, schema));
    if (fault)
        return required ? err_set(err, ERR_INPUT, "its parameter '%s' %s", shown, fault) : 0;
    json_t *made = foreign_schema(&operation->foreign, schema, err);
    if (!made)
        return err_wrap(err, "its parameter '%s'", shown);
    struct str about = json_get_str(parameter, "description");
    if (about.len > 0 && json_is_object(made) && !json_object_get(made, "$ref"))
        json_object_set_new(made, "description", foreign_text(about));
    name_argument(operation, name, in, argument, sizeof argument);
    json_object_set_new(operation->properties, argument, made);
    if (required)
        json_array_append_new(operation->required, json_string(argument));
    place_argument(operation, name, in, argument);
    return 0;
}

static int take_parameters(struct operation *operation, const json_t *list, struct err *err)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *parameter = openapi_resolve(operation->document, json_array_get(list, i));
        if (!parameter)
            return err_set(err, ERR_INPUT, "it refers to a parameter that is not there");
        if (json_object_size(operation->places) >= OPENAPI_PARAMETERS_MAX)
            return err_set(err, ERR_LIMIT, "it has more than %d parameters",
                           OPENAPI_PARAMETERS_MAX);
        if (take_parameter(operation, parameter, err) < 0)
            return -1;
    }
    return 0;
}

/* The operation's own come first: they stand for those of its path. */
int openapi_parameters(struct operation *operation, struct err *err)
{
    if (take_parameters(operation, json_object_get(operation->itself, "parameters"), err) < 0)
        return -1;
    return take_parameters(operation, json_object_get(operation->item, "parameters"), err);
}

/* ---- the body ---- */

static const json_t *content_of(const json_t *content, const char **out_form)
{
    const char *type;
    json_t *media;
    *out_form = "json";
    json_object_foreach ((json_t *)(uintptr_t)content, type, media)
        if (strncasecmp(type, "application/json", 16) == 0 || str_ends(str_of(type), STR("+json")))
            return media;
    *out_form = "form";
    return json_object_get(content, "application/x-www-form-urlencoded");
}

/* Can its members be arguments of their own? */
static bool is_flat(const struct operation *operation, const json_t *schema)
{
    static const char *const plain[] = { "type",     "properties", "required",
                                         "title",    "description", "additionalProperties",
                                         "example",  "examples",   "xml",
                                         "default",  "externalDocs" };
    const json_t *properties = json_object_get(schema, "properties");
    const char *name;
    json_t *value;
    if (!json_is_object(properties) ||
        json_is_object(json_object_get(schema, "additionalProperties")))
        return false;
    json_object_foreach ((json_t *)(uintptr_t)schema, name, value) {
        bool known = strncmp(name, "x-", 2) == 0;
        for (size_t i = 0; i < array_len(plain); i++)
            known = known || strcmp(name, plain[i]) == 0;
        if (!known)
            return false;
    }
    json_object_foreach ((json_t *)(uintptr_t)properties, name, value)
        if (json_object_get(operation->properties, name))
            return false;
    return true;
}

/* The made schema's members become arguments. Required ones only of a required body. */
static void add_members(struct operation *operation, const json_t *made, bool required)
{
    const json_t *names = json_object_get(made, "required");
    json_object_update(operation->properties, json_object_get(made, "properties"));
    for (size_t i = 0; required && i < json_array_size(names); i++)
        json_array_append(operation->required, json_array_get(names, i));
}

static void add_whole(struct operation *operation, json_t *made, bool required)
{
    const char *name = json_object_get(operation->properties, "body") ? "request_body" : "body";
    json_object_set(operation->properties, name, made);
    json_object_set_new(operation->http, "body_argument", json_string(name));
    if (required)
        json_array_append_new(operation->required, json_string(name));
}

int openapi_body(struct operation *operation, struct err *err)
{
    const json_t *given = json_object_get(operation->itself, "requestBody"), *media;
    const json_t *body = openapi_resolve(operation->document, given);
    const char *form;
    if (!given || strcmp(operation->method, "get") == 0 || strcmp(operation->method, "head") == 0)
        return 0;
    if (!body || !(media = content_of(json_object_get(body, "content"), &form)))
        return err_set(err, ERR_INPUT, "its body is neither JSON nor a form");
    bool required = json_is_true(json_object_get(body, "required"));
    const json_t *schema = json_object_get(media, "schema");
    const json_t *resolved = openapi_resolve(operation->document, schema);
    bool flat = resolved && is_flat(operation, resolved);
    own_json made = foreign_schema(&operation->foreign, flat ? resolved : schema, err);
    if (!schema)
        return err_set(err, ERR_INPUT, "its body has no schema");
    if (!made)
        return err_wrap(err, "its body");
    json_object_set_new(operation->http, "body", json_string(form));
    if (flat)
        add_members(operation, made, required);
    else if (strcmp(form, "form") == 0)
        return err_set(err, ERR_INPUT, "its form is no plain object");
    else
        add_whole(operation, made, required);
    return 0;
}
