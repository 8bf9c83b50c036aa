"""The other doors of the bridge: HTTP, and libcupel."""
import ctypes
import importlib.util
import json
import os
import threading

import pytest

import host
from bridge import ADD, ECHO, SLEEP, answer, tool

os.environ.setdefault("LIBCUPEL", str(host.BUILD / "libcupel.so"))
SPEC = importlib.util.spec_from_file_location("example_run", host.REPO / "examples/python/run.py")
example = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(example)

CODE = "import tools\ntools.math.add(tools.echo(4), 5)"


# ---- libcupel ----
CUPEL_APPROVE = 8
ASKS = tool("mail.send", {"to": "string"}, policy="ask")


class Opened(example.Engine):
    def say(self, function, run, what):
        function.argtypes, function.restype = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p], ctypes.c_int
        return function(self.handle, run.encode(), json.dumps(what).encode())

    def answer(self, run, **outcome):
        return self.say(self.lib.cupel_answer, run, outcome)

    def approve(self, run, **decision):
        return self.say(self.lib.cupel_approve, run, decision)


@pytest.fixture
def opened(engine):
    with Opened(engine.path) as one:
        yield one


@pytest.mark.parametrize("later", [False, True], ids=["in the callback", "in another thread"])
def test_the_library_answers_calls(opened, later):
    told, threads = [], []

    def on_event(event):
        told.append(event["event"])
        if event["event"] != "tool_call":
            return
        outcome = {"call": event["call"], **answer(event)}
        if not later:
            assert opened.answer(event["id"], **outcome) == 0
            return
        threads.append(threading.Timer(0.05, lambda: opened.answer(event["id"], **outcome)))
        threads[-1].start()
    result = opened.run({"code": CODE, "tools": [ECHO, ADD]}, on_event)
    assert result["text"] == "9" and [one["tool"] for one in result["calls"]] == ["echo", "math.add"], result
    assert told == ["sent", "start", *["tool_call", "tool_result"] * 2, "result"]


def test_the_library_refuses_what_is_no_answer(opened):
    said = []

    def on_event(event):
        if event["event"] == "tool_call":
            said.extend([opened.answer("77", call=1, value=1), opened.answer(event["id"], op="cancel", call=1),
                         opened.answer(event["id"], id="1", call=1), opened.answer(event["id"], call=1, value=3)])
    assert opened.run({"code": "import tools\ntools.echo(0)", "tools": [ECHO]}, on_event)["text"] == "3"
    assert said == [-1, -1, -1, 0]


@pytest.mark.parametrize("allow", [True, False])
def test_the_library_decides_on_calls_that_ask(engine, allow):
    said = []
    with Opened(engine.path, flags=CUPEL_APPROVE) as opened:
        def on_event(event):
            run = event.get("id", "")
            if event["event"] == "approval":
                assert event["arguments"] == {"to": "ann"} and event["code"] == "print(tools.mail.send('ann'))", event
                call = event["call"]
                for wrong in ({"call": call}, {"call": 0, "allow": True}, {"call": 2 ** 31, "allow": True},
                              {"call": call, "allow": 1}, {"call": call, "allow": True, "reason": "x"},
                              {"call": call, "allow": False, "op": "x"}, {"call": call, "allow": False, "reason": 1}):
                    assert opened.approve(run, **wrong) == -1, wrong
                assert opened.approve("77", call=call, allow=True) == -1
                assert opened.approve(run, call=call + 1, allow=True) == 0, "the engine knows that nothing waits"
                said.append(opened.approve(run, call=call, allow=allow, **({} if allow else {"reason": "no " * 900})))
            elif event["event"] == "tool_call":
                opened.answer(run, call=event["call"], value="sent")
        code = "try:\n    print(tools.mail.send('ann'))\nexcept tools.ToolDenied as e:\n    print(e.reason)"
        result = opened.run({"code": f"import tools\n{code}", "tools": [ASKS], "limits": {"timeout_s": 30}}, on_event)
        assert said == [0] and result["calls"][0]["approved"] is allow, result
        assert result["stdout"].startswith("sent" if allow else "a person refused this call: no no"), result
        assert opened.run({"code": "1 + 1"})["text"] == "2"


def test_without_a_callback_the_library_is_refused(opened):
    assert opened.run({"code": "1", "tools": [ECHO]})["error"]["field"] == "tools"
