/* Any definition of a tool and any arguments, with a NUL between them: one that is read has a good
 * name and a verdict for all arguments. The whole is also taken as an outcome. */
#include <stdint.h>
#include <stdlib.h>

#include "base/json.h"
#include "tool/define/define.h"
#include "tool/define/outcome.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void as_outcome(const json_t *json)
{
    if (outcome_is_good(json) && !json_object_get(json, "value") &&
        outcome_kind_of(json) == OUTCOME_KINDS_COUNT)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    const uint8_t *nul = len ? memchr(bytes, 0, len) : NULL;
    size_t first = nul ? (size_t)(nul - bytes) : len;
    struct err err = ERR_INIT;
    own_json text = json_read((struct str){ (const char *)bytes, first }, 1 << 20, &err);
    if (!text)
        return 0;
    as_outcome(text);
    own_tool tool = TOOL_INIT;
    if (tool_read(text, &tool, &err) < 0) {
        if (err.kind != ERR_INPUT || !*err.text || tool.name)
            abort();
        return 0;
    }
    if (!tool_name_is_good(str_of(tool.name)) || !tool_name_fits(str_of(tool.name), "*") ||
        !tool_name_fits(str_of(tool.name), tool.name) || tool.timeout_ms < 1 || tool.at_once < 1)
        abort();
    struct str rest = nul ? (struct str){ (const char *)nul + 1, len - first - 1 } : STR("{}");
    own_json arguments = json_read(rest, 1 << 20, &err);
    if (arguments && tool_judge(&tool, arguments) >= TOOL_VERDICTS)
        abort();
    return 0;
}
