/* Tools as the box is told of them, and clients that ask for the owner's list. Runs in the serve
 * process. Commands, URLs, secrets and the patterns of a policy are never told. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/json.h"
#include "tool/call/call_int.h"
#include "tool/call/shed.h"

#define LIST_BYTES ((size_t)8 << 20) /* of one list */

static const char *const told_members[] = { "name", "description", "input_schema",
                                            "output_schema" };

json_t *calls_told_of(const struct tool *tool)
{
    json_t *told = json_pack("{s:s}", "effect", tool_effect_name(tool->effect));
    for (size_t i = 0; i < array_len(told_members); i++) {
        json_t *value = json_object_get(tool->definition, told_members[i]);
        if (value)
            json_object_set(told, told_members[i], value);
    }
    return told;
}

/* A verdict where one holds for every call, else "rules". */
static const char *policy_of(const struct tool *tool)
{
    if (json_is_array(tool->policy))
        return "rules";
    if (tool->policy)
        return json_string_value(tool->policy);
    return tool_verdict_name(tool->effect == TOOL_READ ? TOOL_ALLOW : TOOL_ASK);
}

json_t *shed_told_of(const struct tool *tool)
{
    json_t *told = calls_told_of(tool);
    json_object_set_new(told, "policy", json_string(policy_of(tool)));
    json_object_set_new(told, "caps",
                        json_pack("{s:I, s:f, s:I, s:I}", "calls", (json_int_t)tool->calls_max,
                                  "timeout_s", (double)tool->timeout_ms / 1000, "result_bytes",
                                  (json_int_t)tool->result_bytes, "at_once",
                                  (json_int_t)tool->at_once));
    return told;
}

static bool has_word(struct str text, struct str word)
{
    for (size_t i = 0; i + word.len <= text.len; i++)
        if (strncasecmp(text.at + i, word.at, word.len) == 0)
            return true;
    return false;
}

/* Each word occurs in the name or in the description. */
static bool fits_words(const json_t *tool, struct str words)
{
    while (words.len > 0) {
        size_t len = 0;
        while (len < words.len && !isspace((unsigned char)words.at[len]))
            len++;
        const struct str word = { words.at, len };
        if (len > 0 && !has_word(json_get_str(tool, "name"), word) &&
            !has_word(json_get_str(tool, "description"), word))
            return false;
        len += len < words.len;
        words = (struct str){ words.at + len, words.len - len };
    }
    return true;
}

static bool fits_names(struct str name, const json_t *patterns)
{
    size_t i;
    json_t *pattern;
    json_array_foreach ((json_t *)(uintptr_t)patterns, i, pattern)
        if (tool_name_fits(name, json_string_value(pattern)))
            return true;
    return !patterns;
}

json_t *shed_list(const struct shed *shed, const struct shed_want *want)
{
    json_t *list = json_array();
    size_t i, bytes = 0, more = 0;
    json_t *tool;
    json_array_foreach ((json_t *)(uintptr_t)shed_told(shed), i, tool) {
        struct err refused = ERR_INIT;
        struct str name = json_get_str(tool, "name");
        if (!fits_names(name, want->names) || !fits_words(tool, want->words) ||
            (want->allows && want->allows(want->user, name.at, &refused) < 0))
            continue;
        size_t size = json_dumpb(tool, NULL, 0, JSON_COMPACT);
        if (bytes + size > LIST_BYTES) {
            more++;
            continue;
        }
        bytes += size;
        json_array_append(list, tool);
    }
    return json_pack("{s:o, s:I}", "tools", list, "more", (json_int_t)more);
}
