"""Tools of the engine's owner: code in a box calls them by name, and the tool host runs them (docs/tools.md)."""
import contextlib
import os
import signal
from pathlib import Path

import pytest
import wild

import host
from bridge import ADD, Bridge, Cells, Refused
from engine import Engine, socket_path
from tool_files import SECRET, Tools

NUMBERS = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
CODE = "import tools\n"


@pytest.fixture(scope="module")
def owned(cupels, place, left_behind):
    """An engine whose owner has tools."""
    cupel = list(cupels.values())[0]
    tools = Tools(cupel, place)
    tools.secret(KEY=SECRET)
    tools.tool("up", "read x; echo \"$x\" | tr a-z A-Z")
    double = 'python3 -c "import json,sys; print(2 * json.load(sys.stdin)[\'a\'])"'
    tools.tool("math.double", double, input_schema=NUMBERS)
    tools.tool("math.lies", "echo '\"text\"'", output_schema={"type": "integer"})
    tools.tool("long", "sleep 600 & wait", caps={"timeout_s": 0.5})
    tools.tool("ever", "sleep 600")
    tools.tool("write", "cat; echo run >>\"$LOG\"", effect="write", env={"LOG": str(tools.root / "log")})
    tools.tool("mail.send", "echo true", effect="write", policy="allow", env={"KEY": "${secret:KEY}"},
               input_schema={"type": "object", "properties": {"key": {"type": "string"}}})
    tools.tool("leak", "echo \"the key is $KEY\" >&2; exit 3", env={"KEY": "${secret:KEY}"})
    with Engine(cupel, socket_path(place, cupel), args=tools.options()) as engine:
        engine.tools = tools
        yield engine


@pytest.fixture
def client(owned):
    with owned.client() as one:
        yield one


@pytest.fixture
def bridge(client):
    return Bridge(client)


def failure(code):
    return f"{CODE}try:\n    {code}\nexcept tools.ToolError as e:\n    print(type(e).__name__, e.reason)"


def test_code_calls_a_tool_by_its_name(bridge):
    result = bridge.run(CODE + "tools.math.double(a=21)", ["math.double"])
    assert result["text"] == "42" and result["calls"][0]["outcome"] == {"value": 42}, result
    assert bridge.calls()[0]["answered_by"] == "engine"
    with pytest.raises(Refused) as refused:
        bridge.say(1, value=7)
        bridge.run("1", ["nothing"])
    assert refused.value.error["field"] == "tools[0]" and "nothing" in refused.value.error["message"]


def test_a_pattern_gives_all_that_fit_and_a_client_has_tools_beside(bridge):
    code = CODE + "print(tools.list())\ntools.math.double(tools.math.add(1, 2))"
    result = bridge.run(code, ["math.*", ADD])
    assert result["text"] == "6" and "math.lies" in result["stdout"] and "up" not in result["stdout"], result
    assert [call["answered_by"] for call in bridge.calls()] == ["client", "engine"]


def test_a_client_without_events_has_the_owners_tools_alone(client):
    request = {"code": CODE + "tools.math.double(4)", "tools": ["math.double"]}
    assert client.run(request)[1]["result"]["text"] == "8"
    refused = client.run({**request, "tools": [ADD]})[1]["error"]
    assert refused["field"] == "tools" and "events" in refused["hint"]


def tools_of(client, **fields):
    client.send({"op": "tools", **fields})
    return client.receive()


def test_a_client_is_told_the_tools_and_no_command_or_secret_of_them(client):
    whole = tools_of(client)
    told = {tool["name"]: tool for tool in whole["tools"]}
    assert whole["op"] == "tools" and whole["more"] == 0 and "id" not in whole
    assert set(told) == {"up", "math.double", "math.lies", "long", "ever", "write", "mail.send", "leak"}
    assert told["math.double"] == {
        "name": "math.double", "description": "A tool.", "input_schema": NUMBERS, "effect": "read", "policy": "allow",
        "caps": {"calls": 1000, "timeout_s": 30, "result_bytes": 1 << 20, "at_once": 8}}
    assert told["math.lies"]["output_schema"] == {"type": "integer"} and told["long"]["caps"]["timeout_s"] == 0.5
    assert (told["write"]["policy"], told["mail.send"]["policy"]) == ("ask", "allow")
    assert not any(word in str(whole) for word in (SECRET, "command", "KEY", "LOG", "sleep"))


def test_the_list_of_tools_can_be_asked_for_by_names_and_under_an_id(client):
    answer = tools_of(client, id="t", names=["math.*", "up", "nothing"])
    assert answer["id"] == "t" and "op" not in answer
    assert [tool["name"] for tool in answer["tools"]] == ["math.double", "math.lies", "up"]
    assert tools_of(client, id="t", names=[])["tools"] == []
    refused = tools_of(client, id="t", names=["a" * 65])
    assert refused["id"] == "t" and refused["error"]["field"] == "names"


def test_the_client_cannot_answer_for_the_tool_host(bridge):
    bridge.start({"code": failure("tools.long()"), "tools": ["long"], "limits": {"timeout_s": 30}})
    call = bridge.until("tool_call")
    bridge.say(call["call"], value="forged")
    result = bridge.finish()
    assert result["stdout"].startswith("ToolTimeout ") and bridge.errors[0]["kind"] == "absent", (result, bridge.errors)


def test_arguments_results_policies_and_secrets_are_guarded(bridge, owned):
    result = bridge.run(failure("tools.math.double(a='x')") + "\n" + failure("tools.math.lies()") + "\n" +
                        failure("tools.write(a=1)") + "\n" + failure("tools.leak()"), ["*"])
    first, second, third, fourth = result["stdout"].splitlines()
    assert first.startswith("ToolError ") and "'a'" in first, result
    assert "output schema" in second
    assert third.startswith("ToolDenied ") and not (owned.tools.root / "log").exists()
    assert fourth.startswith("ToolError ") and SECRET not in str(result) and "the key is" in fourth
    assert bridge.run(CODE + "tools.mail.send(key='k')", ["mail.send"])["text"] == "True"


def test_a_file_that_changes_denies_the_next_call_of_a_running_engine(bridge, owned):
    owned.tools.tool("changes", "echo 1")
    with Engine(owned.tools.cupel, owned.path + "2", args=owned.tools.options()) as engine, engine.client() as one:
        bridge = Bridge(one)
        assert bridge.run(CODE + "tools.changes()", ["changes"])["text"] == "1"
        owned.tools.tool("changes", "echo 2")
        assert bridge.run(CODE + "tools.changes()", ["changes"])["text"] == "2"
        owned.tools.tool("changes", "echo 3", policy="deny")
        assert bridge.run(failure("tools.changes()"), ["changes"])["stdout"].startswith("ToolDenied ")
        (owned.tools.folder / "changes.json").unlink()
        assert "there is no tool" in bridge.run(failure("tools.changes()"), ["changes"])["stdout"]


def test_a_session_has_them_and_its_undo_keeps_the_list(client):
    cells = Cells(client, ["up"])
    assert cells.value(CODE + "s = tools.up(q='a')\ns") == repr({"Q": "A"})
    result = cells.cell("import os; s = None; tools.up(q='b'); os._exit(1)", on_error="rollback")
    assert result["state"] == "rolled_back" and [one["tool"] for one in result["calls"]] == ["up"], result
    cells.wait_until_idle()
    assert cells.value("s") == repr({"Q": "A"})
    cells.end()


def test_the_end_of_a_run_ends_its_tool(bridge, owned):
    bridge.start({"code": CODE + "tools.ever()", "tools": ["ever"], "limits": {"timeout_s": 1}})
    bridge.until("tool_call")
    assert host.wait_until(lambda: sleepers(owned), 20), "the control: it runs"
    result = bridge.finish()
    assert result["status"] == "timeout" and result["calls"][0]["outcome"]["error"]["kind"] == "cancelled", result
    assert host.wait_until(lambda: not sleepers(owned), 20)


def sleepers(engine):
    found = []
    for row in host.descendants(engine.process.pid):
        with contextlib.suppress(OSError):
            if b"sleep\x00600" in Path(f"/proc/{row['pid']}/cmdline").read_bytes():
                found.append(row["pid"])
    return found


def test_a_tool_host_that_dies_takes_its_calls_along_and_comes_back(bridge, owned):
    bridge.start({"code": failure("tools.ever()") + "\nprint(tools.math.double(2))", "tools": ["ever", "math.double"],
                  "limits": {"timeout_s": 30}})
    bridge.until("tool_call")
    assert host.wait_until(lambda: sleepers(owned), 20)
    victims = {row["parent"] for row in host.descendants(owned.process.pid) if row["pid"] in sleepers(owned)}
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    result = bridge.finish()
    assert result["stdout"].splitlines()[0].startswith("ToolError ") and result["stdout"].endswith("4\n"), result
    assert host.wait_until(lambda: not sleepers(owned), 20)


def test_calls_that_waited_for_a_host_that_was_killed_are_made_by_the_next(bridge, owned):
    """Two calls wait for the eight that run: the next host gets them at the moment of the end."""
    flag = owned.tools.root / "flag"
    owned.tools.tool("gate", f"test -e {flag} && echo 1 || sleep 600")
    code = CODE + """import asyncio
async def one():
    try:
        return await tools.aio.gate()
    except tools.ToolError as error:
        return error.reason
async def all():
    return await asyncio.gather(*[one() for _ in range(10)])
print(*sorted(map(str, asyncio.run(all()))), sep="\\n")"""
    with Engine(owned.tools.cupel, owned.path + "3", args=owned.tools.options()) as engine, engine.client() as one:
        bridge = Bridge(one)
        bridge.start({"code": code, "tools": ["gate"], "limits": {"timeout_s": 25}})
        assert host.wait_until(lambda: len(sleepers(engine)) == 8, 20)
        flag.touch()
        os.kill(tool_host(engine), signal.SIGKILL)
        result = bridge.finish()
        said = result["stdout"].splitlines()
        assert said[:2] == ["1", "1"] and len(said) == 10, result
        assert all("died during the call" in line for line in said[2:]), result
        assert host.wait_until(lambda: not sleepers(engine), 20)


def tool_host(engine):
    """The process that has threads, one for each call."""
    def threads(row):
        return len(os.listdir(f"/proc/{row['pid']}/task"))
    return max(host.descendants(engine.process.pid), key=threads)["pid"]


def test_many_calls_at_once_are_all_answered(bridge):
    code = CODE + "import asyncio\nasync def go():\n    return await asyncio.gather(" \
                  "*[tools.aio.up(n=i) for i in range(40)])\nprint(sorted(one['N'] for one in asyncio.run(go())))"
    result = bridge.run(code, ["up"], limits={"timeout_s": 60})
    assert result["stdout"] == f"{list(range(40))}\n", result


def test_a_token_has_the_tools_that_it_names(cupel, place):
    tools = Tools(cupel, place)
    tools.tool("one", "echo 1")
    tools.tool("two", "echo 2")
    with wild.Service(cupel, socket_path(place, cupel), args=tools.options()) as service:
        with service.caller(token=service.new_token("narrow", "--tool", "one")) as caller:
            def ask(*names):
                return caller.ask("POST", "/v1/run", {"code": CODE + "print(tools.list())", "tools": list(names)})
            assert ask("one").json()["stdout"].startswith("one(") and ask("*").json()["stdout"].count("(") == 1
            refused = ask("two")
            assert refused.status == 403 and refused.error()["field"] == "tools", refused
