"""Python that calls tools of the client (docs/tools.md)."""
import json
import threading

import pytest

import bridge as helper
from bridge import ADD, ECHO, SLEEP, Refused, Silent, tool

FAIL = "try:\n    {}\nexcept Exception as e:\n    print(type(e).__module__, type(e).__name__, e)"


def test_a_call_is_an_event_and_its_answer_the_value(bridge):
    result = bridge.run("import tools\nx = 1\ntools.echo(value={'a': [1, 2.5, None, True, 'é\\u0000']})")
    assert result["status"] == "ok" and result["error"] is None, result
    [call] = bridge.calls()
    assert {key: call[key] for key in ("call", "tool", "arguments", "line", "effect", "timeout_s")} == {
        "call": 1, "tool": "echo", "arguments": {"value": {"a": [1, 2.5, None, True, "é\0"]}}, "line": 3,
        "effect": "write", "timeout_s": 30}
    assert result["results"][-1]["text/plain"] == repr({"a": [1, 2.5, None, True, "é\0"]})
    [done] = [frame for frame in bridge.told if frame.get("event") == "tool_result"]
    [listed] = result["calls"]
    assert done["outcome"] == listed["outcome"] == {"value": {"a": [1, 2.5, None, True, "é\0"]}}
    assert (listed["number"], listed["tool"], listed["line"], listed["verdict"]) == (1, "echo", 3, "allow")
    assert listed["ms"] >= 0 and (result["calls_more"], result["calls_refused"]) == (0, 0)


@pytest.mark.both
@pytest.mark.parametrize("who_runs", ["root", "user"])
def test_root_and_user_call(cupels, engines, who_runs):
    if who_runs not in cupels:
        pytest.skip("not root")
    with engines[who_runs].client() as client:
        client.wait_until_warm()
        assert helper.Bridge(client).run("from tools import echo\necho(5)")["text"] == "5"


@pytest.mark.parametrize("code,arguments", [
    ("tools.math.add(a=1, b=2)", {"a": 1, "b": 2}), ("tools.math.add(1, 2)", {"a": 1, "b": 2}),
    ("tools.math.add(1, b=2)", {"a": 1, "b": 2}), ("tools.math.add({'a': 1, 'b': 2})", {"a": 1, "b": 2}),
    ("__import__('tools.math').math.add(1, 2)", {"a": 1, "b": 2}),
    ("tools.get_('math.add')(1, 2)", {"a": 1, "b": 2}), ("import tools.math as m; m.add(1, 2)", {"a": 1, "b": 2}),
    ("from tools.math import add; add(1, 2)", {"a": 1, "b": 2}),
    ("from tools import math; math.add(1, 2)", {"a": 1, "b": 2}),
    ("import numpy; tools.math.add(numpy.int64(1), numpy.int64(2)) if 0 else tools.math.add(1, 2)", {"a": 1, "b": 2})])
def test_forms_of_a_call(bridge, code, arguments):
    result = bridge.run("import tools\n" + code)
    assert result["error"] is None and result["calls"][0]["arguments"] == arguments, result


def test_optional_arguments_are_left_out_unless_given(bridge):
    find = tool("find", {"q": "string", "limit": {"type": "integer", "default": 10}, "page": "integer",
                         "from": "string", "a-b": "string"}, required=["q"])
    result = bridge.run("""import tools, inspect
tools.find("x"); tools.find("x", 3); tools.find("x", page=None); tools.find("x", from_="y", a_b="z")
tools.find("x", **{"from": "y", "a-b": "z"})
print(inspect.signature(tools.find))""", [find], lambda call: {"value": None})
    assert [one["arguments"] for one in result["calls"]] == [
        {"q": "x"}, {"q": "x", "limit": 3}, {"q": "x"}, {"q": "x", "from": "y", "a-b": "z"},
        {"q": "x", "from": "y", "a-b": "z"}], result
    assert result["stdout"] == ("(q: str, limit: int = 10, page: int = None, from_: str = None, a_b: str = None)\n")


def test_help_and_lists_explain_the_tools(bridge):
    query = tool("db.query", {"sql": {"type": "string", "description": "one statement"}},
                 output_schema={"type": "array", "items": {"type": "object"}}, effect="read")
    result = bridge.run("""import tools
print(tools.list()); print(tools.search("statement")); print(tools.search("zebra"))
help(tools.db.query)
print(tools.db.query.__doc__.splitlines()[0], [*tools.db.query.__annotations__])
print(dir(tools.db)[-1], "db" in dir(tools))""", [ECHO, query])
    lines = result["stdout"].splitlines()
    assert lines[:4] == ["echo(value): does echo", "db.query(sql): does db.query", "db.query(sql): does db.query",
                         "no tools"], result
    assert "query(sql: str) -> list[dict]" in lines and "    sql (string): one statement" in lines
    assert lines[-2:] == ["does db.query ['sql', 'return']", "query True"]


def test_a_tool_may_have_the_name_of_a_helper_a_space_or_a_keyword(bridge):
    result = bridge.run("""import tools
print(tools.search("x"), tools.list("y"), [*tools.search_("helps")], len(tools.list_()))
print(tools.db("a"), tools.db.query("b"), tools.import_("c"), tools.get_item("d"), tools.aio_.__name__)
import inspect; print(inspect.signature(tools.db), tools.db.__doc__.splitlines()[0])""",
                        [tool(name, {"q": "string"}, description=f"{name} helps") for name in
                         ("search", "list", "db", "db.query", "import", "get-item", "aio")],
                        lambda call: {"value": call["tool"] + call["arguments"]["q"]})
    assert result["stdout"].splitlines() == [
        "searchx listy ['search', 'list', 'db', 'db.query', 'import', 'get-item', 'aio'] 7",
        "dba db.queryb importc get-itemd tools.aio", "(q: str) db helps"], result


@pytest.mark.parametrize("call,reason", [
    ("tools.math.add('1', 2)", "tools ToolError math.add: 'a' is \"1\", must be an integer"),
    ("tools.math.add(1)", "builtins TypeError add() missing 1 required positional argument: 'b'"),
    ("tools.math.add(1, 2, 3)", "builtins TypeError add() takes 2 positional arguments but 3 were given"),
    ("tools.math.add(1, 2, c=3)", "builtins TypeError add() got an unexpected keyword argument 'c'"),
    ("tools.echo(object())", "tools ToolError echo: the arguments are not JSON: value of type object is not JSON "
     "serializable"),
    ("tools.echo('x' * 2000000)", "tools ToolError echo: the arguments have 2000012 bytes, at most 1048576"),
    ("tools.nothing()", "builtins AttributeError there is no tool 'nothing': tools.list_() names all tools"),
])
def test_a_wrong_call_reaches_nobody(bridge, call, reason):
    result = bridge.run("import tools\n" + FAIL.format(call))
    assert result["stdout"] == reason + "\n" and bridge.calls() == []


def test_failures_are_exceptions_with_tool_and_reason(bridge):
    outcomes = {"a": {"error": {"message": "no luck"}}, "b": {"error": {"kind": "denied", "message": "not you"}},
                "c": {"error": {"kind": "timeout", "message": "slow"}}}
    result = bridge.run("""import tools, pickle
for name in "abc":
    try:
        tools.get(name)()
    except tools.ToolError as e:
        print(type(e).__name__, e.tool, e.reason, isinstance(e, TimeoutError), pickle.loads(pickle.dumps(e)).reason)
tools.a()""", [tool(name) for name in "abc"], lambda call: outcomes[call["tool"]])
    assert result["stdout"].splitlines() == [
        "ToolError a no luck False no luck", "ToolDenied b not you False not you", "ToolTimeout c slow True slow"]
    assert (result["error"]["name"], result["error"]["message"], result["error"]["line"]) == (
        "ToolError", "a: no luck", 7)
    assert "tools.py" not in result["error"]["traceback"] and "functions.py" not in result["error"]["traceback"]


def test_the_gate_holds_policy_caps_and_output_schema(bridge):
    tools = [tool("slow", caps={"timeout_s": 0.2}), tool("large", caps={"result_bytes": 1000}),
             tool("no", {"table": "string"}, policy=[{"when": {"table": "pay*"}, "then": "deny"}, "allow"]),
             tool("ask", policy="ask"), tool("twice", caps={"calls": 2}),
             tool("whole", output_schema={"type": "integer"})]

    def outcome(call):
        if call["tool"] == "slow":
            raise Silent
        return {"value": "x" * 2000 if call["tool"] == "large" else "x"}
    result = bridge.run("""import tools
for call in (tools.slow, tools.large, lambda: tools.no("payments"), lambda: tools.no("cats"), tools.ask, tools.twice,
             tools.twice, tools.twice, tools.whole):
    try:
        print(call())
    except tools.ToolError as e:
        print(type(e).__name__, e)""", tools, outcome)
    assert result["stdout"].splitlines() == [
        "ToolTimeout slow: no answer within 0.2 s",
        "ToolError large: the result of 'large' has 2012 bytes, at most 1000 bytes",
        "ToolDenied no: the policy of the tool denies this call", "x",
        "ToolDenied ask: the policy of the tool wants a person to approve this call, and nobody can be asked here",
        "x", "x", "ToolDenied twice: this run has made 2 calls of it, at most 2",
        "ToolError whole: the result of 'whole' does not fit its output_schema: the value is \"x\", must be an integer"]
    assert [call["tool"] for call in bridge.calls()] == ["slow", "large", "no", "twice", "twice", "whole"]
    assert [one["verdict"] for one in result["calls"]] == ["allow", "allow", "deny", "allow", "ask", "allow", "allow",
                                                           "deny", "allow"]
    assert result["calls_refused"] == 3 and [error["field"] for error in bridge.errors] == ["value", "value"] or \
        bridge.errors[0]["kind"] == "input"


def test_tasks_wait_in_parallel_and_a_tool_runs_as_often_at_once_as_it_may(bridge):
    waiting, most = [], []

    def release():
        while waiting:
            one = waiting.pop()
            bridge.say(one["call"], value=one["arguments"]["i"])

    def late(call):
        """When all that may run at once are there, there is time for one too many; then the last is answered first."""
        waiting.append(call)
        most.append(len(waiting))
        if len(waiting) == 3 or call["arguments"]["i"] == 9:
            threading.Timer(0.3, release).start()
        raise Silent
    result = bridge.run("""import asyncio
from tools.aio import three
async def main():
    return await asyncio.gather(*[three(i) for i in range(10)])
print(asyncio.run(main()))""", [tool("three", {"i": "integer"}, caps={"at_once": 3})], late)
    assert result["stdout"] == f"{[*range(10)]}\n" and max(most) == 3, result


@pytest.mark.parametrize("count", [100, 300])
def test_threads_and_tasks_at_once_get_their_own_answers(bridge, count):
    many = tool("many", {"i": "integer"}, caps={"at_once": 64})
    result = bridge.run(f"""import asyncio, threading, tools
out = {{}}
def one(i):
    out[i] = tools.many(i)
async def tasks():
    return await asyncio.gather(*[tools.aio.many(i) for i in range({count})])
threads = [threading.Thread(target=one, args=(i,)) for i in range(50)]
[thread.start() for thread in threads]
tasked = asyncio.run(tasks())
[thread.join() for thread in threads]
print(tasked == [i * 2 for i in range({count})], out == {{i: i * 2 for i in range(50)}}, tools.many(7))""", [many],
                        lambda call: {"value": call["arguments"]["i"] * 2}, limits={"timeout_s": 30, "pids": 256})
    assert result["stdout"] == "True True 14\n", result
    assert len(result["calls"]) == count + 51


def test_a_thousand_calls_in_one_run_keep_their_order(bridge):
    result = bridge.run("import tools\nprint(sum(tools.math.add(i, 1) for i in range(1000)))\n"
                        "try: tools.math.add(1, 1)\nexcept tools.ToolDenied as e: print(e)")
    assert result["stdout"] == ("500500\nmath.add: this run has made 1000 calls of it, at most 1000\n"), result
    assert len(result["calls"]) == 1000 and result["calls_more"] == 1
    assert [one["number"] for one in result["calls"]] == [*range(1, 1001)]


def test_long_parts_are_in_the_answer_but_not_in_the_list(bridge):
    result = bridge.run("import tools\nprint(len(tools.echo('x' * 50000)))")
    [listed] = result["calls"]
    assert result["stdout"] == "50000\n" and listed["arguments"] is None and listed["outcome"] is None
    assert (listed["arguments_bytes"], listed["outcome_bytes"]) == (50012, 50012)


def test_files_of_an_answer(bridge):
    files = [{"name": "a.png", "mime": "image/png", "base64": "iVBORw0KGgo="}]
    result = bridge.run("""import tools
shot = tools.shot()
print(shot, shot.value, shot.files[0].data[:4], open(shot.files[0].save(), "rb").read() == shot.files[0].data)
shot.files[0]""", [tool("shot")], lambda call: {"value": "seen", "files": files})
    assert result["stdout"] == ("ToolResult('seen', [ToolFile('a.png', 'image/png', 8 bytes)]) seen b'\\x89PNG' True\n")
    assert result["results"][-1]["image/png"].strip() == "iVBORw0KGgo=" and result["artifacts"][0]["path"] == "a.png"


def test_a_child_process_cannot_call(bridge):
    result = bridge.run("""import os, tools
pid = os.fork()
if not pid:
    try:
        tools.echo(1)
    except tools.ToolError as e:
        print(e, flush=True)
    os._exit(0)
os.waitpid(pid, 0)
print(tools.echo(2))""")
    assert result["stdout"] == ("echo: a child process cannot call tools: call them in the program itself\n2\n")


def test_a_module_of_the_user_is_theirs_without_tools(bridge):
    files = [{"path": "tools.py", "text": "mine = 1"}]
    assert bridge.run("import tools\ntools.mine", None, files=files)["text"] == "1"
    assert bridge.run("import tools\ntools.echo(2)", files=files)["text"] == "2"
    assert bridge.run("import tools", None)["error"]["name"] == "ModuleNotFoundError"


@pytest.mark.parametrize("tools,field", [
    ("echo", "tools"), ([5], "tools[0]"), ([""], "tools[0]"), (["x" * 65], "tools[0]"), ([ECHO] * 129, "tools"),
    (["search"], "tools[0]"), (["github.*"], "tools[0]"), ([ECHO, ECHO], "tools[1].name"),
    ([{"name": "a b", "description": "", "input_schema": {}}], "tools[0].name"),
    ([tool("a", caps={"calls": 0})], "tools[0].caps.calls"),
    ([tool("a", {"x": {"format": "date", "colour": 1}})], "tools[0].input_schema/properties/x/colour"),
    ([tool("a", description="x" * (2 << 20))], "tools")])
def test_bad_tools_are_refused_by_name(bridge, tools, field):
    with pytest.raises(Refused) as refused:
        bridge.start({"code": "1", "tools": tools})
        bridge.finish()
    assert refused.value.error["kind"] == "input" and refused.value.error["field"] == field, refused.value.error


def test_a_name_that_nobody_configured_is_refused_with_what_exists(bridge):
    with pytest.raises(Refused) as refused:
        bridge.run("1", ["search"])
    assert refused.value.error["message"] == 'there is no tool "search": this engine has no tools of its own'


def test_a_client_that_hears_no_events_is_refused(client):
    _, frame = client.run({"code": "1", "tools": [ECHO]})
    assert frame["error"]["field"] == "tools" and "events" in frame["error"]["hint"]


def test_r_and_java_have_no_tools_and_no_request_with_tools_is_cached(bridge):
    for language in ("r", "java"):
        with pytest.raises(Refused) as refused:
            bridge.run("1", [ECHO], language=language)
        assert refused.value.error["field"] == "tools"
    with pytest.raises(Refused) as refused:
        bridge.run("1", [ECHO], cache={"ttl_s": 60})
    assert refused.value.error["field"] == "cache"
    assert bridge.run("1", [ECHO], cache={"ttl_s": 0})["cached"] is False


def test_the_record_has_the_calls_without_secrets(bridge, engine, cupels):
    secret = "ghp_" + "a1B2" * 9
    result = bridge.run(f"import tools\ntools.echo({secret!r})")
    assert result["calls"][0]["arguments"] == {"value": secret}
    shown = engine.cupel.run(["runs", "show", "--json", result["run"]], env=engine.env)
    if shown.returncode:   # no state folder
        pytest.skip(shown.stderr)
    record = json.loads(shown.stdout)
    assert secret not in shown.stdout and record["result"]["calls"][0]["tool"] == "echo"
    assert "[redacted:" in json.dumps(record["result"]["calls"])


def test_the_inputs_of_a_run_include_its_tools(bridge):
    sums = [bridge.run("1", tools)["provenance"]["inputs_sha256"] for tools in (None, [ECHO], [ECHO, ADD], [], [ECHO])]
    assert sums[1] == sums[4] and sums[0] == sums[3] and len({*sums}) == 3


def test_answers_that_nobody_waits_for_are_refused(bridge):
    bridge.start({"code": "import tools\nprint(tools.echo(1), tools.never() if 0 else 2)", "tools": [ECHO, SLEEP]})
    first = bridge.until("tool_call", lambda call: None)
    bridge.say(first["call"] + 1, value=1)
    bridge.say(first["call"], valu=1)
    bridge.say(first["call"])
    bridge.say(first["call"], value=1, error={"message": "both"})
    bridge.say(first["call"], error={"message": 5})
    bridge.say(first["call"], value=1)
    bridge.say(first["call"], value=2)
    assert bridge.finish()["stdout"] == "1 2\n"
    bridge.say(first["call"], value=3)
    bridge.client.send({"op": "ping"})
    while (frame := bridge.client.receive()).get("op") != "pong":
        bridge.errors.append(frame["error"])
    assert [error["field"] for error in bridge.errors] == ["call", "valu", "value", "value", "value", "call", "id"]
