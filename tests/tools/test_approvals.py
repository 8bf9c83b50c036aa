"""Calls whose policy asks: the box stands still until the client has a person's decision (docs/tools.md)."""
import time

import pytest

import host
from bridge import ADD, FORGE, Bridge, Cells, Refused, tool
from engine import Engine, socket_path

ASKS = tool("mail.send", {"to": "string"}, policy="ask", effect="irreversible")
OTHER = tool("mail.drop", policy="ask")
SLOW = tool("slow", effect="read")
ALL = [ASKS, OTHER, ADD]
SEND = """import tools
try:
    print(tools.mail.send(to='ann'))
except tools.ToolError as e:
    print(type(e).__name__, e.reason)
"""
STILL_S = 0.5

# Each of these would write all the time if it were not frozen: a thread that sleeps, one that spins, and a child that
# has left its group.
BUSY = """import os, threading, time, tools
def tick():
    while True:
        os.write(2, b'.')
        time.sleep(0.005)
def spin():
    last = 0
    while True:
        if time.monotonic() - last > 0.005:
            os.write(2, b's')
            last = time.monotonic()
for work in tick, spin:
    threading.Thread(target=work, daemon=True).start()
if os.fork() == 0:
    os.setsid()
    tick()
time.sleep(0.1)
tools.mail.send(to='ann')
print('went on')
"""


class Asked(Bridge):
    """A client that can ask a person."""

    def begin(self, code, tools=ALL, **fields):
        self.start({"code": code, "tools": tools, "limits": {"timeout_s": 30}, **fields}, approve=True)

    def asked(self):
        return self.until("approval")

    def decide(self, call, allow, **more):
        self.client.send({"op": "approve", "id": self.id, "call": call, "allow": allow, **more})

    def refused(self):
        """The engine's error of the last frame."""
        count = len(self.errors)
        while len(self.errors) == count:
            frame = self.client.receive()
            if frame.get("id") == self.id:
                self.told.append(frame)
            else:
                self.errors.append(frame["error"])
        return self.errors[-1]

    def quiet(self, seconds):
        """Frames of the run that come within that time."""
        until, frames = time.monotonic() + seconds, []
        while (left := until - time.monotonic()) > 0:
            self.client.sock.settimeout(left)
            try:
                frames.append(self.client.receive())
            except TimeoutError:
                break
        self.client.sock.settimeout(60)
        return frames


class AskedCells(Cells, Asked):
    def begin(self, code, **fields):
        self.start({"session": self.session, "code": code, **fields}, approve=True)


def yes(call):
    return {"value": f"sent to {call['arguments'].get('to')}"}


@pytest.fixture(scope="module")
def client(engine):
    with engine.client() as one:
        one.wait_until_warm()
        yield one


@pytest.fixture
def bridge(engine, client):
    """A connection for each test: what a test leaves ends with it."""
    with engine.client() as one:
        yield Asked(one)


@pytest.fixture
def cells(engine, client):
    with engine.client() as one:
        made = AskedCells(one, ALL)
        yield made
        assert made.value("6 * 7") == "42", "the session is usable"
        made.end()


@pytest.fixture(scope="module", params=["root", "user"])
def everyone(request, engines):
    """An engine with control groups, and one without."""
    if request.param not in engines:
        pytest.skip(f"not run by {request.param}")
    with engines[request.param].client() as one:
        one.wait_until_warm()
        yield one


def test_an_approved_call_goes_on(bridge):
    bridge.begin(SEND)
    asked = bridge.asked()
    assert {key: asked[key] for key in ("call", "tool", "arguments", "line", "code", "effect")} == {
        "call": 1, "tool": "mail.send", "arguments": {"to": "ann"}, "line": 3, "effect": "irreversible",
        "code": "print(tools.mail.send(to='ann'))"}
    assert not bridge.calls(), "it reaches nobody before"
    bridge.decide(1, True)
    result = bridge.finish(yes)
    assert result["stdout"] == "sent to ann\n", result
    [call] = result["calls"]
    assert (call["verdict"], call["approved"], call["outcome"]) == ("ask", True, {"value": "sent to ann"}), call
    assert 0 < call["asked_ms"] <= call["ms"] and result["calls_refused"] == 0
    over = [frame for frame in bridge.told if frame.get("event") == "tool_result"]
    assert over[0]["approved"] is True and [one["event"] for one in bridge.told if "event" in one][:3] == [
        "start", "approval", "tool_call"]


def test_a_refused_call_reaches_nobody_and_the_code_hears_why(bridge):
    bridge.begin(SEND)
    bridge.decide(bridge.asked()["call"], False, reason="not to \u201eann\u201c")
    result = bridge.finish()
    assert result["stdout"] == "ToolDenied a person refused this call: not to \u201eann\u201c\n", result
    assert not bridge.calls() and result["calls_refused"] == 1
    [call] = result["calls"]
    assert (call["verdict"], call["approved"], call["reason"]) == ("ask", False, "not to \u201eann\u201c")
    bridge.begin(SEND)
    bridge.decide(bridge.asked()["call"], False)
    result = bridge.finish()
    assert result["stdout"] == "ToolDenied a person refused this call\n" and "reason" not in result["calls"][0], result


def test_without_a_client_that_can_ask_the_call_is_denied(bridge):
    bridge.start({"code": SEND, "tools": ALL})
    result = bridge.finish()
    assert "ToolDenied" in result["stdout"] and "nobody can be asked here" in result["stdout"], result
    assert result["calls"][0]["verdict"] == "ask" and "approved" not in result["calls"][0]


def test_nothing_of_the_box_moves_while_it_asks(everyone):
    bridge = Asked(everyone)
    bridge.begin(BUSY)
    bridge.asked()
    assert [frame for frame in bridge.told if frame.get("event") == "stderr"], "the control: it wrote before"
    bridge.quiet(STILL_S)   # a host without control groups stops one process after the other
    frames = bridge.quiet(STILL_S)
    assert not frames, frames
    bridge.decide(1, True)
    result = bridge.finish(yes)
    assert result["stdout"] == "went on\n", result


def test_the_time_limit_stands_still_and_processor_time_counts(everyone):
    bridge = Asked(everyone)
    bridge.begin("import tools\nsum(range(10 ** 6))\ntools.mail.send(to='ann')", limits={"timeout_s": 3})
    bridge.asked()
    time.sleep(3.5)
    bridge.decide(1, True)
    result = bridge.finish(yes)
    assert result["status"] == "ok", result
    usage = result["metrics"]
    assert result["calls"][0]["asked_ms"] > 3000 > usage["wall_ms"] and usage["cpu_ms"] > 0, result
    bridge.begin("import tools\ntools.mail.send(to='ann')\nwhile True: pass", limits={"timeout_s": 30, "cpu_s": 1})
    bridge.decide(bridge.asked()["call"], True)
    assert bridge.finish(yes)["status"] == "cpu_limit"


def test_two_calls_are_asked_at_once_and_each_has_its_decision(bridge):
    bridge.begin(FORGE + """
def call(number, tool, **args):
    return frame(op="call", number=number, tool=tool, args=args)
write("\\n".join([call(1, "mail.send", to="ann"), call(2, "mail.drop"), call(3, "mail.send", to="bob")]))
answers = {one["number"]: one for one in answers(3)}
print(answers[1]["value"], answers[2]["error"]["message"], answers[3]["value"], sep=", ")""")
    assert [bridge.asked()["tool"] for _ in range(3)] == ["mail.send", "mail.drop", "mail.send"]
    bridge.decide(3, True)
    bridge.decide(2, False, reason="no")
    assert bridge.until("tool_call", yes)["call"] == 3
    assert not [frame for frame in bridge.quiet(STILL_S) if frame.get("event") not in ("tool_result",)]
    bridge.decide(1, True)
    result = bridge.finish(yes)
    assert result["stdout"] == "sent to ann, a person refused this call: no, sent to bob\n", result
    assert sorted((one["number"], one["approved"]) for one in result["calls"]) == [(1, True), (2, False), (3, True)]


def test_calls_that_run_already_go_on_while_another_asks(bridge):
    code = """import asyncio, tools
async def go():
    return await asyncio.gather(tools.aio.math.add(1, 2), tools.aio.mail.send(to='ann'))
print(asyncio.run(go()))"""
    bridge.begin(code)
    assert bridge.until("tool_call", lambda call: None)["tool"] == "math.add"
    bridge.asked()
    bridge.say(1, value=3)
    assert bridge.until("tool_result")["outcome"] == {"value": 3}
    assert not bridge.quiet(0.2)
    bridge.decide(2, True)
    assert bridge.finish(yes)["stdout"] == "[3, 'sent to ann']\n"


@pytest.mark.parametrize("frame, kind, field", [
    ({"call": 7, "allow": True}, "absent", "call"),
    ({"call": 0, "allow": True}, "input", "call"),
    ({"call": 1, "allow": 1}, "input", "allow"),
    ({"call": 1}, "input", "allow"),
    ({"call": 1, "allow": True, "reason": "why"}, "input", "reason"),
    ({"call": 1, "allow": False, "reason": "x" * 1001}, "input", "reason"),
], ids=["forged", "zero", "number", "missing", "reason", "long"])
def test_a_wrong_decision_is_refused_and_the_call_still_waits(bridge, frame, kind, field):
    bridge.begin(SEND)
    bridge.asked()
    bridge.client.send({"op": "approve", "id": bridge.id, **frame})
    error = bridge.refused()
    assert (error["kind"], error["field"]) == (kind, field), error
    bridge.decide(1, True)
    assert bridge.finish(yes)["stdout"] == "sent to ann\n"


def test_a_second_decision_is_refused_and_changes_nothing(bridge):
    bridge.begin(SEND)
    bridge.asked()
    bridge.decide(1, False)
    bridge.decide(1, True)
    assert bridge.refused()["kind"] == "absent"
    assert bridge.finish()["stdout"].startswith("ToolDenied")
    assert not bridge.calls()


def test_a_call_that_asks_takes_no_answer(bridge):
    bridge.begin(SEND)
    bridge.asked()
    bridge.say(1, value="forged")
    assert bridge.refused()["kind"] == "absent"
    bridge.decide(1, False)
    assert "forged" not in bridge.finish()["stdout"]


def test_an_interrupt_while_it_asks_ends_the_call_and_nothing_stays_frozen(cells):
    cells.begin("import tools\nx = 1\ntools.mail.send(to='ann')")
    cells.asked()
    cells.client.send({"op": "interrupt", "id": cells.id})
    result = cells.finish()
    assert (result["status"], result["state"]) == ("interrupted", "kept"), result
    [call] = result["calls"]
    assert call["outcome"]["error"]["kind"] == "cancelled" and "approved" not in call and call["verdict"] == "ask", call
    assert cells.value("x") == "1"


def test_an_interrupt_of_the_session_ends_the_call_of_a_thread_too(cells):
    cells.begin("""import threading, tools
def call():
    try:
        tools.mail.send(to='ann')
    except tools.ToolError as e:
        print(type(e).__name__, e.reason)
thread = threading.Thread(target=call)
thread.start()
try:
    thread.join()
except KeyboardInterrupt:
    thread.join()
""")
    cells.asked()
    run, told = cells.id, cells.told
    cells.ask("interrupt")
    cells.id, cells.told = run, told
    assert cells.finish()["stdout"].startswith("ToolError ")


def test_a_cancel_while_it_asks_ends_the_run(bridge):
    bridge.begin(SEND)
    bridge.asked()
    bridge.client.send({"op": "cancel", "id": bridge.id})
    result = bridge.finish()
    assert result["status"] == "interrupted", result
    assert result["calls"][0]["outcome"]["error"]["kind"] == "cancelled"


def test_a_client_that_goes_while_it_is_asked_leaves_nothing_frozen(engine, client):
    kept = AskedCells(client, ALL)
    with engine.client() as other:
        gone = Asked(other)
        gone.start({"session": kept.session, "code": SEND, "tools": ALL}, approve=True)
        gone.asked()
    kept.wait_until_idle()
    assert kept.value("6 * 7") == "42"
    with engine.client() as other:
        gone = Asked(other)
        gone.begin(BUSY)
        gone.asked()
    assert host.wait_until(lambda: engine.state()["runs"] == 0, 30), engine.state()
    kept.end()


def test_the_session_goes_on_after_each_decision(cells):
    for allow in True, False:
        cells.begin(SEND)
        cells.decide(cells.asked()["call"], allow)
        assert cells.finish(yes)["state"] == "kept"


def test_code_that_asks_again_and_again_is_bounded_by_the_caps(bridge):
    few = tool("few", policy="ask", caps={"calls": 3})
    bridge.begin("import tools\nfor i in range(5):\n    try:\n        tools.few()\n    except tools.ToolError as e:\n"
                 "        print(e.reason)", tools=[few])
    for _ in range(3):
        bridge.decide(bridge.asked()["call"], False)
    assert bridge.finish()["stdout"].splitlines()[3:] == ["this run has made 3 calls of it, at most 3"] * 2


def test_a_decision_of_another_client_reaches_nothing(engine, bridge):
    bridge.begin(SEND)
    bridge.asked()
    with engine.client() as other:
        error = other.ask({"op": "approve", "id": bridge.id, "call": 1, "allow": True})["error"]
    assert error["kind"] == "absent" and error["field"] == "id"
    bridge.decide(1, False)
    assert bridge.finish()["stdout"].startswith("ToolDenied")


def test_an_engine_that_dies_while_it_asks_leaves_nothing(cupels, place, left_behind):
    cupel = list(cupels.values())[0]
    with Engine(cupel, socket_path(place, cupel)) as engine, engine.client() as client:
        bridge = Asked(client)
        bridge.begin(BUSY)
        bridge.asked()
        pids = [row["pid"] for row in host.descendants(engine.process.pid)]
        assert pids
        engine.process.kill()
        with pytest.raises((EOFError, ConnectionError)):
            bridge.finish()
        engine.ends_with = None


def test_javascript_is_asked_too(bridge):
    code = "try { console.log(await tools.mail.send({to: 'ann'})) } catch (e) { console.log(e.name, e.reason) }"
    for allow, said in (True, "sent to ann\n"), (False, "ToolDenied a person refused this call\n"):
        bridge.begin(code, language="javascript")
        asked = bridge.asked()
        assert (asked["line"], asked["code"]) == (1, code), asked
        bridge.decide(asked["call"], allow)
        assert bridge.finish(yes)["stdout"] == said


def test_a_wish_that_is_no_boolean_is_refused(bridge):
    bridge.start({"code": "1"}, approve="yes")
    with pytest.raises(Refused) as refused:
        bridge.finish()
    assert refused.value.error["field"] == "approve"
