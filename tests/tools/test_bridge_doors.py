"""The other doors of the bridge: HTTP, and libcupel."""
import ctypes
import importlib.util
import json
import os
import threading

import pytest

import host
from bridge import ADD, ECHO, SLEEP, answer

os.environ.setdefault("LIBCUPEL", str(host.BUILD / "libcupel.so"))
SPEC = importlib.util.spec_from_file_location("example_run", host.REPO / "examples/python/run.py")
example = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(example)

CODE = "import tools\ntools.math.add(tools.echo(4), 5)"


# ---- libcupel ----
class Opened(example.Engine):
    def answer(self, run, **outcome):
        function = self.lib.cupel_answer
        function.argtypes, function.restype = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p], ctypes.c_int
        return function(self.handle, run.encode(), json.dumps(outcome).encode())


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


def test_without_a_callback_the_library_is_refused(opened):
    assert opened.run({"code": "1", "tools": [ECHO]})["error"]["field"] == "tools"
