/* Definitions are compiled once for all who have the same list. */
#include "check.h"

#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "tool/call/ready.h"

#define TOOL(name) \
    "{\"name\":\"" name "\",\"description\":\"d\",\"input_schema\":{\"type\":\"object\"}}"

static json_t *parsed(const char *text)
{
    struct err err = ERR_INIT;
    json_t *value = json_read(str_of(text), 1 << 20, &err);
    CHECK(value != NULL);
    return value;
}

TEST(ready_compiles_a_definition_once_and_tells_what_is_bad)
{
    struct err err = ERR_INIT;
    own_json list = parsed("[\"a.*\"," TOOL("a") ",{\"name\":\"b\"}]");
    struct ready *ready = ready_new(list), *other = ready_share(ready);
    const struct ready_tool *tool = ready_at(ready, 1, &err);
    CHECK_TEXT(tool->of.name, "a");
    CHECK(strstr(tool->told_text, "\"effect\":\"write\"") != NULL);
    CHECK(ready_at(other, 1, &err) == tool);
    for (int i = 0; i < 2; i++) {
        err = ERR_INIT;
        CHECK(ready_at(ready, 2, &err) == NULL);
        CHECK_INT(err.kind, ERR_INPUT);
    }
    ready_drop(ready);
    CHECK_TEXT(tool->of.name, "a"); /* the other holder keeps it */
    ready_drop(other);
    ready_drop(NULL);
    CHECK(ready_share(NULL) == NULL);
}

TEST(ready_keeps_the_list_of_a_session_until_its_end)
{
    struct err err = ERR_INIT;
    own_json list = parsed("[" TOOL("a") "]");
    own_json same = parsed("[" TOOL("a") "]");
    struct readies *readies = readies_new();
    struct ready *first = readies_of(readies, "s_1", list);
    const struct ready_tool *tool = ready_at(first, 0, &err);
    ready_drop(first);
    struct ready *next = readies_of(readies, "s_1", list);
    CHECK(next == first && ready_at(next, 0, &err) == tool);
    struct ready *foreign = readies_of(readies, "s_2", list);
    CHECK(foreign != first);
    struct ready *changed = readies_of(readies, "s_1", same);
    CHECK(changed != next && ready_at(changed, 0, &err) != tool);
    readies_forget(readies, "s_1");
    readies_forget(readies, "s_3");
    CHECK_TEXT(tool->of.name, "a"); /* a call still runs */
    ready_drop(next);
    ready_drop(changed);
    ready_drop(foreign);
    readies_free(readies);
    readies_free(NULL);
}
