/* tools: the tools that the code may call. Runs in any process that reads requests; pure. Checks
 * shape and size only; src/tool reads the definitions. */
#include <stdio.h>
#include <stdlib.h>

#include "base/own.h"
#include "contract/request_int.h"

static int refuse_language(const json_t *value, enum request_language language, struct err *err)
{
    char reason[48];
    snprintf(reason, sizeof reason, "not possible in %s", request_languages[language].name);
    request_refuse("tools", value, "a request in " REQUEST_TOOLS_LANGUAGES, reason, err);
    err_hint(err, "leave 'tools' out, or write the program in python");
    return -1;
}

static int check_entry(const json_t *entry, size_t index, struct err *err)
{
    char field[32];
    snprintf(field, sizeof field, "tools[%zu]", index);
    if (json_is_object(entry))
        return 0;
    if (!json_is_string(entry))
        return request_refuse(field, entry, "a name, a pattern or a definition",
                              "neither text nor an object", err);
    if (request_check_text(entry, field, err) < 0)
        return -1;
    size_t len = json_string_length(entry);
    if (len == 0 || len > REQUEST_TOOL_NAME_MAX)
        return request_refuse(field, entry, "1 to 64 bytes", "not a tool's name", err);
    return 0;
}

int request_take_tools(struct request_intake *intake, const json_t *value, struct err *err)
{
    enum request_language language = intake->out->language;
    if (!json_is_array(value))
        return request_refuse("tools", value, "an array of names and definitions", "not an array",
                              err);
    size_t count = json_array_size(value);
    if (count > REQUEST_TOOLS_MAX)
        return request_refuse_size("tools", count, REQUEST_TOOLS_MAX, "tools", err);
    for (size_t i = 0; i < count; i++)
        if (check_entry(json_array_get(value, i), i, err) < 0)
            return -1;
    own_str text = json_write(value, JSON_COMPACT);
    size_t size = text ? strlen(text) : SIZE_MAX;
    if (size > REQUEST_TOOLS_BYTES) {
        request_refuse_size("tools", size, REQUEST_TOOLS_BYTES, "bytes", err);
        err_hint(err, "give fewer tools, or shorter descriptions");
        return -1;
    }
    if (count > 0 && !request_languages[language].tools)
        return refuse_language(value, language, err);
    intake->out->tools = count > 0 ? value : NULL;
    return 0;
}
