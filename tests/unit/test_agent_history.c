/* The conversation: sides alternate, every call has its result, old observations shrink. */
#include <string.h>

#include "agent/prompts.h"
#include "agent/loop/history.h"
#include "agent/loop/plan_reply.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"
#include "check.h"

static json_t *message(const struct agent_history *history, size_t i)
{
    return json_array_get(history->messages, i);
}

static json_t *part(const struct agent_history *history, size_t i, size_t n)
{
    return json_array_get(json_object_get(message(history, i), "content"), n);
}

static const char *text(const json_t *value)
{
    return json_string_value(json_object_get(value, "text"));
}

/* A reply in the text grammar, and what its cell did. */
static void turn(struct agent_history *history, const char *reply, const char *seen,
                 const char *brief)
{
    struct agent_action action;
    own_json content = json_pack("[{s:s, s:s}]", "type", "text", "text", reply);
    agent_extract(content, reply, &action);
    agent_history_reply(history, content, &action);
    agent_history_observe(history, &action, seen, brief, NULL);
    agent_action_done(&action);
}

TEST(history_drops_what_a_model_wrote_after_its_code)
{
    struct agent_history history;
    agent_history_init(&history);
    agent_history_say(&history, "Task");
    turn(&history, "```python\nprint(1)\n```\nIt prints 2.", "1", NULL);
    CHECK_INT(json_array_size(history.messages), 3);
    CHECK_TEXT(text(part(&history, 1, 0)), "```python\nprint(1)\n```");
    CHECK_TEXT(text(part(&history, 2, 0)), "1");
    agent_history_say(&history, "Answer now.");
    CHECK_INT(json_array_size(history.messages), 3); /* the same side goes on */
    CHECK_TEXT(text(part(&history, 2, 1)), "Answer now.");
    agent_history_done(&history);
}

TEST(history_answers_every_native_call)
{
    struct agent_history history;
    struct agent_action action;
    own_json content = json_pack(
        "[{s:s, s:s, s:{}}, {s:s, s:s, s:s, s:{s:s}}, {s:s, s:s, s:s, s:{s:s}}]", "type", "raw",
        "wire", "anthropic", "block", "type", "tool_call", "id", "a", "name", "python", "arguments",
        "code", "print(1)", "type", "tool_call", "id", "b", "name", "python", "arguments", "code",
        "print(2)");
    own_json pictures = json_pack("[{s:s, s:s, s:s}]", "type", "image", "mime", "image/png",
                                  "base64", "AAAA");
    agent_history_init(&history);
    agent_history_say(&history, "Task");
    agent_extract(content, "", &action);
    agent_history_reply(&history, content, &action);
    CHECK(json_equal(json_object_get(message(&history, 1), "content"), content));
    agent_history_observe(&history, &action, "1", NULL, pictures);
    const json_t *first = part(&history, 2, 0), *second = part(&history, 2, 1);
    CHECK_TEXT(json_string_value(json_object_get(first, "id")), "a");
    CHECK(json_is_false(json_object_get(first, "is_error")));
    CHECK_INT(json_array_size(json_object_get(first, "content")), 2);
    CHECK_TEXT(json_string_value(json_object_get(second, "id")), "b");
    CHECK(json_is_true(json_object_get(second, "is_error")));
    CHECK(!part(&history, 2, 2));
    agent_action_done(&action);
    agent_history_done(&history);
}

TEST(history_never_has_an_empty_message)
{
    struct agent_history history;
    struct agent_action action = AGENT_ACTION_INIT;
    own_json nothing = json_array();
    agent_history_init(&history);
    agent_history_say(&history, "Task");
    agent_history_reply(&history, nothing, &action);
    CHECK(text(part(&history, 1, 0)));
    agent_history_done(&history);
}

TEST(history_shrinks_older_observations_only)
{
    struct agent_history history;
    char *large = buf_alloc(10001);
    memset(large, 'x', 10000);
    large[10000] = 0;
    agent_history_init(&history);
    agent_history_say(&history, "Task");
    for (int i = 0; i < 5; i++)
        turn(&history, "```python\nprint(1)\n```", large, "short");
    size_t before = agent_history_size(&history);
    CHECK(before > 50000);
    CHECK(agent_history_shrink(&history, 2));
    CHECK(agent_history_size(&history) < 21000);
    CHECK_TEXT(text(part(&history, 0, 0)), "Task");
    CHECK_TEXT(text(part(&history, 2, 0)), "short");
    CHECK_TEXT(text(part(&history, 6, 0)), "short");
    CHECK_TEXT(text(part(&history, 8, 0)), large);
    CHECK(!agent_history_shrink(&history, 2)); /* nothing is left to shrink */
    CHECK(agent_history_shrink(&history, 0));
    CHECK_TEXT(text(part(&history, 10, 0)), "short");
    free(large);
    agent_history_done(&history);
}

TEST(history_keeps_results_beside_their_calls_when_it_shrinks)
{
    struct agent_history history;
    struct agent_action action;
    own_json content = json_pack("[{s:s, s:s, s:s, s:{s:s}}]", "type", "tool_call", "id", "a",
                                 "name", "python", "arguments", "code", "print(1)");
    agent_history_init(&history);
    agent_extract(content, "", &action);
    agent_history_reply(&history, content, &action);
    agent_history_observe(&history, &action, "a long text", "short", NULL);
    CHECK(agent_history_shrink(&history, 0));
    const json_t *result = part(&history, 1, 0);
    CHECK_TEXT(json_string_value(json_object_get(result, "id")), "a");
    CHECK_TEXT(text(json_array_get(json_object_get(result, "content"), 0)), "short");
    agent_action_done(&action);
    agent_history_done(&history);
}

static void expect_plan(const char *text, size_t steps, const char *first)
{
    own_json plan = agent_plan_read(text);
    const json_t *list = json_object_get(plan, "steps");
    CHECK_INT(json_array_size(list), steps);
    CHECK_TEXT(json_string_value(json_array_get(list, 0)), first);
    CHECK_INT(json_object_size(plan), 1);
}

TEST(plan_is_a_few_lines_of_text)
{
    expect_plan("Read it.\nAdd it up.", 2, "Read it.");
    expect_plan("- Read it\n\n  2) Add it up\r\n* Look", 3, "Read it");
    expect_plan("{\"steps\": [\"a\"]}", 1,
                "{\"steps\": [\"a\"]}"); /* text, whatever it looks like */
    expect_plan("", 0, NULL);
    expect_plan(" \n - \n", 0, NULL);
    expect_plan(NULL, 0, NULL);
}

TEST(plan_has_a_bound)
{
    own_buf text = BUF_INIT(1u << 20);
    for (int i = 0; i < 400; i++)
        buf_printf(&text, "%.*s\n", 900, "");
    for (int i = 0; i < 40; i++) {
        for (int k = 0; k < 400; k++)
            buf_add_text(&text, "\xc3\xa4");
        buf_add_text(&text, "\n");
    }
    own_json plan = agent_plan_read(text.at);
    const json_t *steps = json_object_get(plan, "steps");
    CHECK_INT(json_array_size(steps), 12);
    CHECK_INT(json_string_length(json_array_get(steps, 11)), 300);
}

TEST(prompts_are_short_and_filled_in)
{
    const struct agent_prompt_word words[] = {
        { "python", "Python 3.11" }, { "seconds", "120" },
        { "memory", "2048 MiB of memory" }, { "tag", "0123456789ab" },
        { "cell", "a call of the tool `python`, or a fenced ```python block." },
        { "house", "" }, { "names", "mean=<number>" },
    };
    for (int prompt = 0; prompt < AGENT_PROMPTS; prompt++) {
        own_str filled = agent_prompt_fill((enum agent_prompt)prompt, words, array_len(words));
        CHECK(strlen(filled) < 3600);
        CHECK(!strstr(filled, "{{"));
        CHECK(strstr(filled, "an instruction")); /* data never is one */
        CHECK(prompt == AGENT_PROMPT_JUDGE || strstr(filled, "tag=0123456789ab"));
    }
}
