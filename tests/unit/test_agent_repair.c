/* Errors as a model is told them, and the counting that ends a circle. */
#include <string.h>

#include "agent/read/repair.h"
#include "base/json.h"
#include "base/own.h"
#include "check.h"

/* The tests' JSON has ' for ", so that it can be read. */
static json_t *failed(const char *error, const char *state)
{
    own_str text = buf_strdup(str_of(error));
    for (char *at = text; *at; at++)
        *at = *at == '\'' ? '"' : *at;
    json_t *value = json_loads(text, 0, NULL);
    CHECK(value);
    return json_pack("{s:s, s:o, s:s}", "status", "error", "error", value, "state", state);
}

static uint64_t print_of(const char *error)
{
    own_json result = failed(error, "kept");
    return agent_repair_error_print(result);
}

static char *advice(const char *error, const char *state, int64_t times)
{
    own_json result = failed(error, state);
    own_buf out = BUF_INIT(1u << 20);
    agent_repair_advice(result, times, &out);
    return buf_take(&out);
}

TEST(repair_folds_numbers_in_fingerprints)
{
    uint64_t one = print_of("{'kind':'exception','name':'IndexError','message':'5 of 10'}");
    CHECK(one == print_of("{'kind':'exception','name':'IndexError','message':'77 of 3e76'}"));
    CHECK(one != print_of("{'kind':'exception','name':'KeyError','message':'5 of 10'}"));
    CHECK(print_of("{'kind':'exception','name':'T','message':'<A at 0x7f12ab>'}") ==
          print_of("{'kind':'exception','name':'T','message':'<A at 0x7fff00>'}"));
    own_json fine = json_pack("{s:n}", "error");
    CHECK_INT(agent_repair_error_print(fine), 0);
    /* a kind is exact */
    CHECK(agent_repair_print("print(1)", STR("a")) != agent_repair_print("print(2)", STR("a")));
}

TEST(repair_counts_each_fingerprint)
{
    struct agent_repair repair = { 0 };
    CHECK_INT(agent_repair_count(&repair, 7), 1);
    CHECK_INT(agent_repair_count(&repair, 8), 1);
    CHECK_INT(agent_repair_count(&repair, 7), 2);
    CHECK_INT(agent_repair_count(&repair, 7), 3);
    for (uint64_t i = 100; i < 3000; i++)
        agent_repair_count(&repair, i);
    CHECK(repair.count <= 1000);
    CHECK_INT(agent_repair_count(&repair, 7), 4);
    agent_repair_done(&repair);
}

TEST(repair_shows_line_frames_and_values)
{
    own_json result = failed(
        "{'kind':'exception','name':'ZeroDivisionError','message':'division by zero',"
        "'line':5,'snippet':'  return 1/b','traceback':'long',"
        "'frames':[{'function':'<module>','line':6,'text':'f(1)'},"
        "{'function':'f','line':5,'text':'return 1/b'}],"
        "'values':[{'name':'b','text':'0','type':'int'}],'hint':'names: abc; the "
        "session goes on from the state after cell 2: undone'}",
        "kept");
    own_buf out = BUF_INIT(1u << 20);
    agent_repair_error(result, &out);
    CHECK_TEXT(out.at, "  line 6, in <module>: f(1)\n  line 5, in f: return 1/b\n"
                       "line 5:   return 1/b\nvalues on that line: b = 0\n"
                       "ZeroDivisionError: division by zero\nhint: names: abc\n");
}

TEST(repair_keeps_the_first_and_last_frames_of_a_deep_stack)
{
    own_json frames = json_array();
    for (int i = 0; i < 100; i++)
        json_array_append_new(
            frames, json_pack("{s:s, s:i, s:s}", "function", "f", "line", i + 1, "text", "f()"));
    own_json result = failed("{'kind':'exception','name':'RecursionError','message':''}",
                             "rolled_back");
    own_buf out = BUF_INIT(1u << 20);
    json_object_set(json_object_get(result, "error"), "frames", frames);
    agent_repair_error(result, &out);
    CHECK(strstr(out.at, "  line 1, in f"));
    CHECK(!strstr(out.at, "  line 2, in f"));
    CHECK(strstr(out.at, "  line 98, in f"));
    CHECK(strstr(out.at, "  line 100, in f"));
    CHECK(out.len < 300);
}

TEST(repair_says_what_survived_and_one_hint)
{
    own_str kept = advice("{'kind':'exception','name':'IndexError'}", "kept", 1);
    CHECK_TEXT(kept, "What the cell did before the error is kept: do not do it again.\n"
                     "Hint: Check the length before indexing.\nFix only the lines that need it.\n");
    own_str lost = advice("{'kind':'signal','name':'SIGSEGV'}", "lost", 1);
    CHECK(strstr(lost, "All names are gone"));
    own_str named = advice("{'kind':'exception','name':'KeyError','hint':'columns of df: "
                           "abc; the session goes on from the state after cell 2: undone'}",
                           "rolled_back", 1);
    CHECK_TEXT(named, "Nothing of this cell is kept: names and files are as before it. Send it "
                      "again whole.\nFix only the lines that need it.\n");
}

TEST(repair_asks_for_less_after_a_limit)
{
    own_str slow = advice("{'kind':'timeout','name':'timeout'}", "rolled_back", 1);
    CHECK(strstr(slow, "cheaper algorithm"));
    own_str large = advice("{'kind':'memory','name':'memory'}", "rolled_back", 1);
    CHECK(strstr(large, "chunks"));
    own_str raised = advice("{'kind':'exception','name':'MemoryError'}", "rolled_back", 1);
    CHECK(strstr(raised, "chunks") && strstr(raised, "stream"));
    own_str other = advice("{'kind':'exception','name':'ValueError'}", "rolled_back", 1);
    CHECK(!strstr(other, "chunks"));
}

TEST(repair_says_the_second_and_the_third_time)
{
    own_str second = advice("{'kind':'exception','name':'E'}", "kept", 2);
    CHECK(strstr(second, "second time"));
    CHECK(!strstr(second, "Fix only"));
    own_str third = advice("{'kind':'exception','name':'E'}", "kept", 3);
    CHECK(strstr(third, "another approach"));
}

TEST(repair_tells_only_what_would_certainly_fail)
{
    own_json problems = json_loads(
        "[{\"kind\":\"syntax\",\"line\":2,\"message\":\"invalid syntax\",\"hint\":\"close it\"},"
        "{\"kind\":\"style\",\"line\":3,\"message\":\"ugly\"},"
        "{\"kind\":\"name\",\"line\":4,\"name\":\"x\",\"message\":\"name 'x' is not defined\"},7]",
        0, NULL);
    own_buf out = BUF_INIT(1u << 20);
    agent_repair_problems(problems, &out);
    CHECK_TEXT(out.at, "line 2: invalid syntax\n  hint: close it\n"
                       "line 4: name 'x' is not defined\n");
    own_json none = json_array();
    out.len = 0;
    agent_repair_problems(none, &out);
    CHECK_INT(out.len, 0);
}
