"""Code that attacks the bridge: whatever it writes, only its own run suffers."""
import json
import time

import pytest

import bridge as helper
import engine as engines
from bridge import ECHO, FORGE, Bridge, Cells, tool


def lives(bridge):
    """The engine still serves, and quickly."""
    began = time.monotonic()
    assert Bridge(bridge.client).run("import tools; tools.echo(1)")["text"] == "1"
    return time.monotonic() - began


@pytest.mark.both
@pytest.mark.parametrize("form", ["run", "cell"])
def test_a_box_without_tools_cannot_call(bridge, client, form):
    code = FORGE + """
for fd in range(256):
    try:
        write(frame(op="call", number=1, tool="echo", args={"value": 1}), fd) if fd not in (1, 2) else None
    except OSError:
        pass
print("written")"""
    if form == "run":
        result = bridge.run(code, None)
    else:
        cells = Cells(client, [ECHO])
        result = cells.cell(code, tools=[])
        cells.end()
        assert cells.calls() == []
    assert result["stdout"].endswith("written\n") and "calls" not in result, result
    assert form == "cell" or bridge.calls() == []


def test_a_forged_call_is_the_box_own_and_passes_the_same_gate(bridge):
    result = bridge.run(FORGE + """
write(frame(op="call", number=5, tool="echo", args={"value": 1}))
write(frame(op="call", number=5, tool="echo", args={"value": "twice"}))
write(frame(op="call", number=4, tool="echo", args={"value": "smaller"}))
write(frame(op="call", number=6, tool="other", args={}))
write(frame(op="call", number=7, tool="math.add", args={"a": "x", "b": 1}))
print(answers(3))""")
    answers = {one["number"]: one for one in eval(result["stdout"])}
    assert answers[5]["value"] == 1 and "no tool 'other' here" in answers[6]["error"]["message"]
    assert answers[7]["error"]["message"] == "'a' is \"x\", must be an integer"
    assert [call["arguments"] for call in bridge.calls()] == [{"value": 1}] and result["calls_refused"] == 4, result


GARBAGE = ['{"op":"call"}', '{"op":"call","number":1}', '{"op":"call","number":-1,"tool":"echo","args":{}}',
           '{"op":"call","number":1.5,"tool":"echo","args":{}}', '{"op":"call","number":"1","tool":"echo","args":{}}',
           '{"op":"call","number":99999999999,"tool":"echo","args":{}}', '{"op":"call","number":1,"tool":5,"args":{}}',
           '{"op":"call","number":1,"tool":"","args":{}}',
           '{"op":"call","number":1,"tool":"%s","args":{}}' % ("x" * 65),
           '{"op":"cancel"}', '{"op":"cancel","number":99}', '{"op":"return","number":1,"value":1}',
           '{"op":"call","number":1,"number":2,"tool":"echo","args":{}}', '{"op":"call","number":1', "[" * 100]


def test_garbage_is_counted_and_dropped(bridge):
    result = bridge.run(FORGE + f"\nfor line in {GARBAGE!r}:\n    write(line)\nimport tools\nprint(tools.echo(3))")
    assert result["stdout"] == "3\n" and result["calls_refused"] >= len(GARBAGE) and len(bridge.calls()) == 1, result


@pytest.mark.parametrize("args,reason", [
    ("5", "the arguments are not a JSON object"), ("null", "the arguments are not a JSON object"),
    ('{"value": "%s"}' % ("x" * 1100000), "the arguments have 110")])
def test_arguments_that_are_none_or_giant_are_answered_with_an_error(bridge, args, reason):
    result = bridge.run(FORGE + f"""
write('{{"op":"call","number":1,"tool":"echo","args":{args}}}')
print(answers(1)[0]["error"]["message"])""")
    assert result["stdout"].startswith(reason) and bridge.calls() == [] and result["calls_refused"] == 1, result


def test_a_line_beyond_the_maximum_harms_only_its_run(bridge):
    result = bridge.run(FORGE + """
write('{"op":"call","number":1,"tool":"echo","args":{"value":"' + "x" * (20 << 20) + '"}}')
print("written")""", limits={"timeout_s": 20})
    assert result["stdout"] == "written\n" and bridge.calls() == [], result
    lives(bridge)


def test_calls_beyond_those_at_once_are_refused(bridge):
    result = bridge.run(FORGE + """
for number in range(1, 301):
    write(frame(op="call", number=number, tool="never", args={}))
got = answers(172)
print(len(got), {one["error"]["message"] for one in got}, min(one["number"] for one in got))""",
                        limits={"timeout_s": 20})
    assert result["stdout"] == "172 {'128 calls wait already, at most 128 at once'} 129\n", result
    assert len(bridge.calls()) == 8 and result["calls_refused"] == 172


@pytest.mark.alone
def test_a_flood_of_calls_is_bounded_and_leaves_others_alone(bridge, engine):
    """Half a million calls of a tool that does not exist, whose answers nobody reads."""
    with engine.client() as other:
        flood = Bridge(other)
        flood.start({"code": FORGE + """
line = "".join("\\n" + frame(op="call", number=n, tool="no", args={}) + "\\n" for n in range(1, 200001)).encode()
while line:
    line = line[os.write(words, line[:65536]):]
print("all written")""", "tools": [ECHO], "limits": {"timeout_s": 20, "memory_bytes": 500 << 20}})
        before = rss(engine)
        slowest = max(lives(bridge) for _ in range(5))
        result = flood.finish()
        assert rss(engine) - before < 200 << 20 and slowest < 15
    assert result["status"] in ("ok", "internal", "timeout", "cpu_limit") and len(result["calls"]) <= 1000, result
    assert len(flood.told) < 2500
    lives(bridge)


def rss(engine):
    text = open(f"/proc/{engine.process.pid}/status").read()
    return int(text.split("VmRSS:")[1].split()[0]) << 10


def test_a_call_after_the_end_of_its_cell_is_dropped(client):
    """A child that the cell left behind writes with the nonce of its cell."""
    cells = Cells(client)
    cells.cell(FORGE + """
pid = os.fork()
if not pid:
    import time
    time.sleep(0.5)
    write(frame(op="call", number=1000, tool="echo", args={"value": "late"}))
    os._exit(0)""")
    time.sleep(0.8)
    result = cells.cell("import time, tools; time.sleep(0.2); tools.echo(2)")
    assert result["text"] == "2" and [one["arguments"] for one in result["calls"]] == [{"value": 2}], result
    cells.end()


def test_the_tools_of_another_session_are_out_of_reach(client):
    one, other = Cells(client, [ECHO, tool("secret")]), Cells(client, [ECHO])
    one.value("import tools; tools.secret()", lambda call: {"value": 5})
    result = other.cell(FORGE + """
write(frame(op="call", number=1, tool="secret", args={}))
print(answers(1)[0]["error"]["message"])""")
    assert result["stdout"] == "there is no tool 'secret' here: this run has echo\n"
    one.end()
    other.end()


def test_the_answer_of_one_client_is_no_answer_for_another(bridge, engine):
    bridge.start({"code": "import tools; tools.echo(1)", "tools": [ECHO]})
    call = bridge.until("tool_call", lambda call: None)
    with engine.client() as stranger:
        stranger.send({"op": "tool_result", "id": bridge.id, "call": call["call"], "value": "forged"})
        assert stranger.receive()["error"]["field"] == "id"
    bridge.say(call["call"], value="true")
    assert bridge.finish()["text"] == "'true'"


def test_a_channel_that_the_code_closed_ends_the_session_and_no_other(client, bridge):
    cells = Cells(client)
    code = "import os, tools\nos.close(250); os.close(251)\ntry: tools.echo(1)\nexcept BaseException: pass"
    result = cells.cell(code, limits={"timeout_s": 3})
    assert result["status"] in ("ok", "error", "signal", "timeout", "killed"), result
    lives(bridge)
    cells.end()


def test_answers_that_nobody_reads_are_bounded(bridge, engine):
    """Each answer has 8 MiB: the engine keeps at most 32 MiB of them."""
    large = tool("large", caps={"result_bytes": 16 << 20, "at_once": 64})
    before = rss(engine)
    bridge.start({"code": FORGE + """
import time
for number in range(1, 21):
    write(frame(op="call", number=number, tool="large", args={}))
time.sleep(6)
import select
fd, data, ends = [fd for fd in (251, 4) if os.path.exists(f"/proc/self/fd/{fd}")][0], [], 0
poll = select.poll(); poll.register(fd, 1)
while ends < 20 and poll.poll(5000):
    data.append(os.read(fd, 1 << 20))
    ends += data[-1].count(b'"op":"return"')
lines = b"".join(data).splitlines()
got = [json.loads(line) for line in lines if line[:1] == b"{"]
whole = sum(len(line.partition(b" ")[2]) for line in lines if line[:1] == b"+")
large = [one.get("large", 0) for one in got]
print(max(large), whole == sum(large), sum("error" in one for one in got))""",
                  "tools": [large], "limits": {"timeout_s": 30, "memory_bytes": 500 << 20}})
    value = "x" * (8 << 20)
    result = bridge.finish(lambda call: {"value": value})
    assert rss(engine) - before < 150 << 20
    assert result["status"] == "ok", result["error"]
    longest, whole, errors = result["stdout"].split()
    assert int(longest) == (8 << 20) + 2 and whole == "True" and int(errors) >= 8, result["stdout"]


def test_a_result_that_is_deep_or_broken_is_refused(bridge):
    bridge.start({"code": "import tools\nprint(tools.echo(1))", "tools": [ECHO]})
    call = bridge.until("tool_call", lambda call: None)["call"]
    head = f'{{"op":"tool_result","id":"{bridge.id}","call":{call},"value":'
    for value in ("[" * 1000 + "]" * 1000, '{"a":1,"a":2}', "NaN", '"\\ud800"', ""):
        bridge.client.send_bytes((head + value + "}").encode())
    bridge.say(call, value="good")
    assert bridge.finish()["stdout"] == "good\n" and len(bridge.errors) == 5
    assert json.dumps(bridge.errors)


def test_an_engine_that_ends_during_a_call_ends_in_order(cold_cupels, place):
    cupel = next(iter(cold_cupels.values()))
    with engines.Engine(cupel, engines.socket_path(place, cupel)) as own, own.client() as client:
        bridge = Bridge(client)
        bridge.start({"code": "import tools\ntools.never()", "tools": [helper.SLEEP], "limits": {"timeout_s": 60}})
        bridge.until("tool_call")
        own.process.terminate()
        result = bridge.finish()
        assert result["status"] == "interrupted", result
        assert result["calls"][0]["outcome"]["error"]["kind"] == "cancelled"
