/* Replies as models write them: which code runs, what is the answer, what is dropped. */
#include <stdlib.h>
#include <string.h>

#include "agent/read/extract.h"
#include "base/buf.h"
#include "check.h"

static void expect_code(const char *reply, const char *code)
{
    struct agent_action action;
    agent_extract(NULL, reply, &action);
    CHECK_INT(action.act, AGENT_ACT_CODE);
    CHECK_TEXT(action.code, code);
    agent_action_done(&action);
}

static void expect_answer(const char *reply, const char *answer)
{
    struct agent_action action;
    agent_extract(NULL, reply, &action);
    CHECK_INT(action.act, AGENT_ACT_ANSWER);
    CHECK_TEXT(action.text, answer);
    CHECK(!action.code);
    agent_action_done(&action);
}

static void expect_empty(const char *reply)
{
    struct agent_action action;
    agent_extract(NULL, reply, &action);
    CHECK_INT(action.act, AGENT_ACT_EMPTY);
    agent_action_done(&action);
}

TEST(extract_reads_fences)
{
    expect_code("```python\nx = 1\n```", "x = 1");
    expect_code("Let me look.\n\n```py\nx = 1\nprint(x)\n```\nDone.", "x = 1\nprint(x)");
    expect_code("```Python\nx = 1\n```", "x = 1");
    expect_code("~~~python\nx = 1\n~~~", "x = 1");
    expect_code("````python\nx = '''\n```\n'''\n````", "x = '''\n```\n'''");
    expect_code("1. First:\n   ```python\n   x = 1\n   if x:\n       print(x)\n   ```",
                "x = 1\nif x:\n    print(x)");
    expect_code("```tool_code\nprint(1)\n```", "print(1)");
    expect_code("```\nimport math\nprint(math.pi)\n```", "import math\nprint(math.pi)");
    expect_code("```python\r\nx = 1\r\nprint(x)\r\n```\r\n", "x = 1\nprint(x)");
    expect_code("```{python}\nx = 1\n```", "x = 1");
}

TEST(extract_reads_tags)
{
    expect_code("<code>\nx = 1\n</code>", "x = 1");
    expect_code("<execute> print((9.2 * 10**2)) </execute>", "print((9.2 * 10**2))");
    expect_code("<thought> I compute. </thought>\n<execute>\nprint(1)\n</execute>\n", "print(1)");
    expect_code("<execute> # no code to run </execute>", "# no code to run");
    expect_code("<execute> print(1) </execute> Let me see what comes.", "print(1)");
    expect_code("<code>\n```python\nx = 1\n```\n</code>", "x = 1");
    expect_code("<|python_tag|>print(1)<|eom_id|>", "print(1)");
    expect_code("<|python_tag|>print(1)\n<|eom_id|>", "print(1)");
    expect_code("<code lang=\"python\">\nx = 1\n</code>", "x = 1");
    expect_code("<code>python\nx = 1\n</code>", "x = 1");
    expect_code("<function_calls>\n<invoke name=\"python\">\n<parameter name=\"code\">\nx = 1\n"
                "</parameter>\n</invoke>\n</function_calls>",
                "x = 1");
    expect_code("<function=python>\n<parameter=code>\nx = 1\n</parameter>\n</function>", "x = 1");
    expect_code("Thought: easy\n<code>\nprint(2)\n</code><end_code>", "print(2)");
}

TEST(extract_finds_the_close_mark_that_is_meant)
{
    expect_code("<code>\nhtml = '<code>x</code>'\nprint(html)\n</code>",
                "html = '<code>x</code>'\nprint(html)");
    expect_code("<code>\nhtml = \"\"\"\n</code>\n\"\"\"\nprint(html)\n</code>\nrest",
                "html = \"\"\"\n</code>\n\"\"\"\nprint(html)");
    expect_code("```python\nmd = \"\"\"\n```\ncode\n```\n\"\"\"\nprint(md)\n```\n",
                "md = \"\"\"\n```\ncode\n```\n\"\"\"\nprint(md)");
    expect_code("```python\nprint('```')\n```", "print('```')");
    expect_code("<code>\n# see the </code> tag of HTML\nx = 1\n</code>",
                "# see the </code> tag of HTML\nx = 1");
    expect_code("```python\n# it's fine\nx = 1\n```\ntail", "# it's fine\nx = 1");
    /* a string that never ends: lines decide */
    expect_code("```python\nx = '''never closed\n```\nbye", "x = '''never closed");
}

TEST(extract_takes_code_without_a_close_mark)
{
    expect_code("```python\nx = 1\nprint(x)", "x = 1\nprint(x)");
    expect_code("<execute>\nprint(1)\nObservation:\n1\n", "print(1)");
    expect_code("<code>\nprint(1)\n<observation>1</observation>", "print(1)");
}

TEST(extract_drops_what_was_written_after_the_code)
{
    struct agent_action action;
    const char *reply = "Look:\n```python\nprint(1)\n```\nOutput:\n1\nThe answer is 1.";
    agent_extract(NULL, reply, &action);
    CHECK_TEXT(action.code, "print(1)");
    CHECK_TEXT(action.text, "Look:");
    CHECK_INT(action.kept, strlen("Look:\n```python\nprint(1)\n```"));
    agent_action_done(&action);
}

TEST(extract_runs_the_first_of_several_blocks)
{
    struct agent_action action;
    agent_extract(NULL,
                  "<execute> a = 40 * 1.8; print(a) </execute>\n\nObservation:\n72.0\n\n"
                  "<execute> print(a * 0.5) </execute>\n\nThe answer is <solution> 36 </solution>.",
                  &action);
    CHECK_TEXT(action.code, "a = 40 * 1.8; print(a)");
    CHECK(strstr(action.note, "only the first block"));
    agent_action_done(&action);
    expect_code("```python\nprint(1)\n```\nIt prints 1, so now:\n```python\nprint(2)\n```",
                "print(1)");
    expect_code("<execute>\nprint(1)\n</execute>\n<thought>\nthat gives one:\n</thought>\n"
                "<execute>\nprint(2)\n</execute>",
                "print(1)");
}

TEST(extract_joins_blocks_that_are_merely_announced)
{
    expect_code("<execute> print(1) </execute>\n<execute> print(2) </execute>\n",
                "print(1)\n\nprint(2)");
    expect_code("First load it:\n```python\nx = 1\n```\nThen add:\n```python\nx += 1\n```\n",
                "x = 1\n\nx += 1");
}

TEST(extract_passes_over_other_languages)
{
    expect_code("```bash\nls -l\n```\nthen\n```python\nx = 1\n```", "x = 1");
    expect_answer("Result:\n```json\n{\"a\": 1}\n```", "Result:\n```json\n{\"a\": 1}\n```");
    expect_answer("```\nAnn   12\nBob   13\n```", "```\nAnn   12\nBob   13\n```");
    expect_answer("| a | b |\n|---|---|\n| 1 | 2 |", "| a | b |\n|---|---|\n| 1 | 2 |");
    expect_answer("Use `<code>` to mark it.", "Use `<code>` to mark it.");
}

TEST(extract_never_runs_thoughts)
{
    expect_code("<think>\n```python\nbad = 1\n```\n</think>\n```python\ngood = 1\n```", "good = 1");
    expect_answer("<think>```python\nx\n```</think>\nIt is 5.", "It is 5.");
    expect_answer("I wonder\n```python\nx = 1\n```\n</think>\nIt is 5.", "It is 5.");
    expect_code("<thought> I sum.\n<execute>\nprint(1)\n</execute>", "print(1)");
    expect_empty("<think>\nI do not know yet");
    expect_empty("<thought> hm </thought>");
    expect_empty("");
    expect_empty(" \n\t\n");
}

TEST(extract_reads_answers)
{
    expect_answer("The answer is <solution> 36 </solution>.", "36");
    expect_answer("Assistant:\nThe answer is 36.", "The answer is 36.");
    expect_answer("<answer>\n```python\ndef f():\n    return 1\n```\n</answer>",
                  "```python\ndef f():\n    return 1\n```");
    expect_answer("{\"thought\": \"done\", \"final_answer\": \"it is 4\"}", "it is 4");
    expect_answer("total = 42", "total = 42");
    expect_answer("Ann (the first) has 12 = 3 * 4 items.", "Ann (the first) has 12 = 3 * 4 items.");
    expect_answer("For each of them: none.", "For each of them: none.");
}

TEST(extract_reads_bare_code)
{
    expect_code("import math\nprint(math.sqrt(2))", "import math\nprint(math.sqrt(2))");
    expect_code("print(df.head())", "print(df.head())");
    expect_code("df = load(\n    'x',\n    y=2,\n)\nfor row in df:\n    print(row)",
                "df = load(\n    'x',\n    y=2,\n)\nfor row in df:\n    print(row)");
    expect_code("# sum it\ntotal = sum(x)\nprint(total)", "# sum it\ntotal = sum(x)\nprint(total)");
    expect_answer("import this idea into your mind\nand be happy",
                  "import this idea into your mind\nand be happy");
}

TEST(extract_reads_json_in_the_text)
{
    expect_code("{\"thought\": \"sum\", \"code\": \"print(1)\"}", "print(1)");
    expect_code("```json\n{\"thought\": \"sum\", \"code\": \"print(1)\"}\n```", "print(1)");
    expect_code("<tool_call>\n{\"name\": \"python\", \"arguments\": {\"code\": \"print(1)\"}}\n"
                "</tool_call>",
                "print(1)");
    expect_code("{\"name\": \"python\", \"arguments\": {\"code\": \"print(1)\"}}", "print(1)");
    expect_code("{\"tool\": \"python\", \"args\": \"print(1)\"}", "print(1)");
    expect_code("{\"thought\": \"sum\", \"code\": \"x = 1\nprint(x)\"}", "x = 1\nprint(x)");
    expect_code("{\"code\": \"print('a\\\\n')\"}", "print('a\\n')");
    expect_answer("{\"name\": \"answer\", \"arguments\": {\"text\": \"5\"}}", "5");
    expect_answer("{\"total\": 5}", "{\"total\": 5}");
    expect_answer("{\"broken\": ", "{\"broken\":");
}

TEST(extract_reads_reason_and_act)
{
    expect_code("Thought: I sum.\nAction: python\nAction Input: print(1)\nObservation: 1\n"
                "Final Answer: 1",
                "print(1)");
    expect_code("Action: python\nAction Input:\n{\"code\": \"print(1)\"}\nObservation: 1",
                "print(1)");
    expect_answer("Thought: I know.\nFinal Answer: it is 5", "it is 5");
}

TEST(extract_says_that_only_python_runs)
{
    struct agent_action action;
    const char *const shells[] = { "```bash\npip install polars\n```",
                                   "First install it:\n\n```sh\npip install polars\n```\n" };
    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++) {
        agent_extract(NULL, shells[i], &action);
        CHECK_INT(action.act, AGENT_ACT_GARBLED);
        CHECK(strstr(action.note, "only Python"));
        agent_action_done(&action);
    }
    const char *shown = "Run this.\n```bash\nls\n```\nThen look.";
    expect_answer(shown, shown);
}

TEST(extract_cleans_what_leaks_into_code)
{
    expect_code("```python\n>>> x = 1\n>>> for i in range(2):\n...     print(i)\n0\n1\n```",
                "x = 1\nfor i in range(2):\n    print(i)");
    expect_code("```python\nIn [1]: x = 1\n```", "x = 1");
    expect_code("<code>\n$$\nx = 1\n$$\n</code>", "x = 1");
    expect_code("```python\n    x = 1\n    y = 2\n```", "x = 1\ny = 2");
    expect_code("```python\nif x:\n\xc2\xa0\xc2\xa0y = 1\n```", "if x:\n  y = 1");
    expect_code("```python\n\xef\xbb\xbfx = 1\n```", "x = 1");
    expect_code("```python\n\n```\n```python\nx = 1\n```", "x = 1");
}

TEST(extract_reads_plans)
{
    struct agent_action action;
    agent_extract(NULL, "<plan>\n1. Read\n2. Sum\n</plan>\n```python\nx = 1\n```", &action);
    CHECK_INT(action.act, AGENT_ACT_CODE);
    CHECK_TEXT(action.plan, "1. Read\n2. Sum");
    CHECK(!action.text);
    agent_action_done(&action);
    agent_extract(NULL, "```plan\nI know it\n```\nParis.", &action);
    CHECK_INT(action.act, AGENT_ACT_ANSWER);
    CHECK_TEXT(action.text, "Paris.");
    CHECK_TEXT(action.plan, "I know it");
    agent_action_done(&action);
    agent_extract(NULL, "<plan>first I look, then I sum</plan>\nprint(1)", &action);
    CHECK_TEXT(action.plan, "first I look, then I sum");
    CHECK_TEXT(action.code, "print(1)");
    agent_action_done(&action);
    agent_extract(NULL, "<plan> </plan>It is 5.", &action);
    CHECK(!action.plan);
    CHECK_TEXT(action.text, "It is 5.");
    agent_action_done(&action);
}

static void extract_call(const char *name, const char *arguments, struct agent_action *out)
{
    json_t *content = json_pack("[{s:s, s:s}, {s:s, s:s, s:s, s:o}, {s:s, s:s, s:s, s:{}}]", "type",
                                "text", "text", "I look.", "type", "tool_call", "id", "c1", "name",
                                name, "arguments", json_loads(arguments, JSON_DECODE_ANY, NULL),
                                "type", "tool_call", "id", "c2", "name", "python", "arguments");
    agent_extract(content, "I look.", out);
    json_decref(content);
}

TEST(extract_reads_native_calls)
{
    struct agent_action action;
    extract_call("python", "{\"code\": \"print(1)\", \"purpose\": \"see\"}", &action);
    CHECK_INT(action.act, AGENT_ACT_CODE);
    CHECK_TEXT(action.code, "print(1)");
    CHECK_TEXT(action.purpose, "see");
    CHECK_TEXT(action.tool_id, "c1");
    CHECK_TEXT(action.text, "I look.");
    agent_action_done(&action);
    extract_call("python", "{\"code\": \"```python\\nx = 1\\n```\"}", &action);
    CHECK_TEXT(action.code, "x = 1");
    agent_action_done(&action);
    extract_call("answer", "{\"text\": \"it is 5\"}", &action);
    CHECK_INT(action.act, AGENT_ACT_ANSWER);
    CHECK_TEXT(action.text, "it is 5");
    agent_action_done(&action);
}

TEST(extract_makes_a_cell_of_an_answer_call)
{
    struct agent_action action;
    extract_call("answer",
                 "{\"template\": \"{a} of \\\"{b}\\\"\", \"values\": {\"a\": \"len(x)\", "
                 "\"b\": 5, \"c\": [1, null]}, \"files\": [\"c.png\"]}",
                 &action);
    CHECK_INT(action.act, AGENT_ACT_CODE);
    CHECK_TEXT(action.code, "answer(\"{a} of \\\"{b}\\\"\",\n       a=(len(x)),\n"
                            "       b=__import__('json').loads(\"5\"),\n"
                            "       c=__import__('json').loads(\"[1, null]\"),\n"
                            "       files=[\"c.png\"])");
    agent_action_done(&action);
    expect_code("{\"name\": \"answer\", \"arguments\": {\"template\": \"x\", \"values\": {}}}",
                "answer(\"x\")");
    extract_call("answer", "{\"template\": \"{a}\", \"values\": {\"a) + exit(\": \"1\"}}", &action);
    CHECK_INT(action.act, AGENT_ACT_GARBLED);
    CHECK(strstr(action.note, "no name for a value") && !action.code);
    agent_action_done(&action);
}

TEST(extract_says_what_is_wrong_with_a_call)
{
    struct agent_action action;
    extract_call("python", "{}", &action);
    CHECK_INT(action.act, AGENT_ACT_GARBLED);
    CHECK(strstr(action.note, "no code"));
    agent_action_done(&action);
    extract_call("browse", "{\"url\": \"x\"}", &action);
    CHECK_INT(action.act, AGENT_ACT_GARBLED);
    CHECK(strstr(action.note, "no tool 'browse'"));
    agent_action_done(&action);
    extract_call("answer", "{\"text\": \"\"}", &action);
    CHECK_INT(action.act, AGENT_ACT_GARBLED);
    agent_action_done(&action);
    extract_call("read_file", "{\"path\": 5}", &action);
    CHECK_INT(action.act, AGENT_ACT_GARBLED);
    agent_action_done(&action);
}

TEST(extract_makes_cells_of_file_calls)
{
    struct agent_action action;
    extract_call("read_file", "{\"path\": \"a'\\\"\\\\b.csv\", \"start_line\": 3, \"lines\": 2}",
                 &action);
    CHECK_INT(action.act, AGENT_ACT_CODE);
    CHECK(strstr(action.code, "open(\"a'\\\"\\\\b.csv\""));
    CHECK(strstr(action.code, ", 2, 4)"));
    agent_action_done(&action);
    extract_call("list_files", "{}", &action);
    CHECK_INT(action.act, AGENT_ACT_CODE);
    agent_action_done(&action);
}

TEST(extract_takes_long_replies_in_little_time)
{
    const size_t len = 1u << 20;
    char *text = buf_alloc(len + 1);
    const char *const parts[] = { "~~~a\n```\n", "<code", "<think>", "```python\n'''\n",
                                  "\"\"\"\n" };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        struct agent_action action;
        for (size_t at = 0; at < len; at++)
            text[at] = parts[i][at % strlen(parts[i])];
        text[len] = 0;
        agent_extract(NULL, text, &action);
        agent_action_done(&action);
    }
    free(text);
}
