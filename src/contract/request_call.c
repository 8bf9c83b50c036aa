/* call: the function to run after the code, with its arguments. Runs in any process that reads
 * requests; pure. Checks shape and size only; the driver gets the values as they are. */
#include <stdio.h>
#include <stdlib.h>

#include "contract/request_int.h"
#include "base/own.h"

const char *const request_call_members[] = { "function", "args", "kwargs", NULL };

/* A plain ASCII name: a driver can look it up without evaluating it. */
static bool is_identifier(struct str name, bool dollar)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
                      (dollar && c == '$');
        if (!letter && !(i > 0 && c >= '0' && c <= '9'))
            return false;
    }
    return name.len > 0 && name.len <= 255;
}

static int check_function(const json_t *name, bool dollar, struct err *err)
{
    if (!name)
        return err_input(err, "call.function", NULL, "the name of a function",
                         "field 'call.function' is required");
    if (request_check_text(name, "call.function", err) < 0)
        return -1;
    if (!is_identifier(json_str(name), dollar))
        return request_refuse("call.function", name, "an identifier of at most 255 bytes",
                              "not an identifier", err);
    return 0;
}

int request_take_call(struct request_intake *intake, const json_t *value, struct err *err)
{
    enum request_language language = intake->out->language;
    if (!json_is_object(value))
        return request_refuse("call", value, "an object with 'function'", "not an object", err);
    if (!request_languages[language].calls) {
        char reason[48];
        snprintf(reason, sizeof reason, "not possible in %s", request_languages[language].name);
        request_refuse("call", value, "python, javascript or typescript", reason, err);
        err_hint(err, "write the call into 'code'");
        return -1;
    }
    const json_t *args = json_object_get(value, "args");
    const json_t *kwargs = json_object_get(value, "kwargs");
    if (request_check_members(value, "call", request_call_members, err) < 0 ||
        check_function(json_object_get(value, "function"), request_is_node(language), err) < 0)
        return -1;
    if (args && !json_is_array(args))
        return request_refuse("call.args", args, "an array", "not an array", err);
    if (kwargs && !json_is_object(kwargs))
        return request_refuse("call.kwargs", kwargs, "an object", "not an object", err);
    own_str text = json_write(value, JSON_COMPACT);
    size_t size = text ? strlen(text) : SIZE_MAX;
    if (size > REQUEST_CALL_MAX) {
        request_refuse_size("call", size, REQUEST_CALL_MAX, "bytes", err);
        err_hint(err, "put large data into 'files' and let the function read it");
        return -1;
    }
    intake->out->call = value;
    return 0;
}
