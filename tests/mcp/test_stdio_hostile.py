"""Clients of cupel mcp that break rules, flood, do not read, or see the engine die: every request has an answer, and
the conversation goes on."""
import json
import os
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest

import host
from mcp_client import MODERN, Talk, text


@pytest.fixture
def talk(engine, cupel_as):
    with Talk(cupel_as, env=engine.use()) as one:
        yield one


def resident(pid):
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


DEEP = '{"jsonrpc":"2.0","id":1,"method":"ping","params":' + '{"a":' * 200 + "1" + "}" * 200 + "}"
BROKEN = [  # a line, the code of its error, the id that comes back
    ("{", -32700, None), ("nonsense", -32700, None), ('{"a":1,"a":2}', -32700, None), (DEEP, -32700, None),
    (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', -32700, None), ("3", -32600, None), ('"x"', -32600, None),
    ("[]", -32600, None), ("[1,2]", -32600, None), ('{"id":7,"method":"ping"}', -32600, 7),
    ('{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
    ('{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, None),
    ('{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600, None),
    ('{"jsonrpc":"2.0","id":"%s","method":"ping"}' % ("x" * 300), -32600, None),
    ('{"jsonrpc":"2.0","id":8}', -32600, 8), ('{"jsonrpc":"2.0","id":8,"method":3}', -32600, 8),
    ('{"jsonrpc":"2.0","id":8,"method":"a\\u0000b"}', -32600, 8),
    ('{"jsonrpc":"2.0","id":8,"method":"ping","params":[1]}', -32602, 8),
    ('{"jsonrpc":"2.0","id":8,"method":"tools/list","params":{"cursor":""}}', -32602, 8),
    ('{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"rm"}}', -32602, 8),
    ('{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"runs","arguments":[]}}', -32602, 8),
    ('{"jsonrpc":"2.0","id":8,"method":"tools/call"}', -32602, 8),
    ('{"jsonrpc":"2.0","id":8,"method":"no/such"}', -32601, 8),
    ('{"jsonrpc":"2.0","id":8,"method":"resources/read","params":{"uri":"file:///etc/passwd"}}', -32002, 8),
    ('{"jsonrpc":"2.0","id":8,"method":"resources/read","params":{"uri":"cupel://s_/../x"}}', -32002, 8),
    ('{"jsonrpc":"2.0","id":8,"method":"resources/read","params":{"uri":"cupel://%s/a%%00b"}}' % ("s_" + "0" * 24),
     -32002, 8),
    ('{"jsonrpc":"2.0","id":8,"method":"resources/read"}', -32002, 8),
]


def test_every_broken_message_has_its_error_and_the_conversation_goes_on(talk):
    for line, code, id in BROKEN:
        talk.raw((line if isinstance(line, bytes) else line.encode()) + b"\n")
        answer = talk.hear()
        assert answer["error"]["code"] == code and answer["id"] == id, (line[:100], answer)
    assert talk.ask("ping")["result"] == {}


def test_what_needs_no_answer_gets_none(talk):
    for message in ({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}},
                    {"jsonrpc": "2.0", "method": "notifications/cancelled"}, {"jsonrpc": "2.0", "method": "no/such"},
                    {"jsonrpc": "2.0", "id": 4, "result": {}}, {"jsonrpc": "2.0", "id": 5, "error": {"code": 1}}):
        talk.say(message)
    talk.raw("\n \r\n")
    assert talk.ask("ping")["result"] == {}


def test_nothing_runs_before_the_handshake(engine, cupel_as):
    with Talk(cupel_as, env=engine.use(), version=None) as talk:
        assert talk.ask("ping")["result"] == {}
        assert talk.ask("tools/call", {"name": "run_code", "arguments": {"code": "1"}})["error"]["code"] == -32600
        for meta in ({"io.modelcontextprotocol/protocolVersion": "2026-07-28"},
                     {"io.modelcontextprotocol/clientCapabilities": {}}):
            assert talk.ask("tools/list", meta=meta)["error"]["code"] == -32602


def test_an_id_that_is_under_way_is_refused(talk):
    code = {"name": "run_code", "arguments": {"code": "import time; time.sleep(1); 'first'"}}
    talk.send("tools/call", code, id="same")
    talk.send("ping", id="same")
    assert talk.hear()["error"]["code"] == -32600
    assert talk.hear()["result"]["structuredContent"]["value"] == "'first'"
    assert talk.answer(talk.send("ping", id="same"))["result"] == {}


def test_a_line_without_an_end_is_refused_and_forgotten(talk):
    part = b"x" * (1 << 20)
    for _ in range(97):
        talk.raw(part)
    assert talk.hear()["error"]["code"] == -32600
    talk.raw(b"yyy\n")
    assert talk.ask("ping")["result"] == {}


def test_a_flood_of_calls_is_refused_past_a_bound_and_answered_below_it(talk):
    talk.run("1")
    ids = {talk.send("tools/call", {"name": "run_code", "arguments": {"code": "1", "session": "none"}})
           for _ in range(200)}
    answers = {}
    while len(answers) < 200:
        message = talk.hear()
        answers[message["id"]] = message
    assert set(answers) == ids
    assert sum("result" in one for one in answers.values()) >= 64
    assert all("too many" in one["error"]["message"] for one in answers.values() if "error" in one)
    assert talk.run("1+1")["structuredContent"]["value"] == "2"


def test_a_client_that_does_not_read_is_not_read_from(engine, cupel_as):
    process = cupel_as.popen(["mcp"], env=engine.use(), stdin=subprocess.PIPE)
    hello = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}})
    process.stdin.write(hello.encode() + b"\n")
    process.stdin.flush()
    ping, sent = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n' * 100, 0
    os.set_blocking(process.stdin.fileno(), False)
    while select.select([], [process.stdin], [], 3)[1] and sent < (64 << 20):
        sent += os.write(process.stdin.fileno(), ping)
    assert sent < (64 << 20)
    assert resident(process.pid) < (128 << 20)
    process.stdout.close()
    assert process.wait(timeout=30) == 0


def test_it_ends_when_its_output_is_closed_in_the_middle_of_a_call(engine, cupel_as):
    with engine.client() as client:
        with Talk(cupel_as, env=engine.use()) as talk:
            talk.send("tools/call", {"name": "run_code", "arguments": {"code": "import time; time.sleep(60)"}})
            talk.send("ping")
            talk.answer(talk.last)
            os.kill(talk.process.pid, signal.SIGTERM)
            assert talk.process.wait(timeout=20) == 0
        assert host.wait_until(lambda: client.ask({"op": "info"})["state"]["runs"] == 0, 20)


@pytest.mark.both
def test_an_engine_that_dies_in_a_call_is_an_error_and_an_own_one_is_started_again(cupel_as):
    with Talk(cupel_as) as talk:
        talk.run("x = 1")
        id = talk.send("tools/call", {"name": "run_code", "arguments": {"code": "import time; time.sleep(60)"}})
        time.sleep(0.5)
        os.kill(talk.engines()[0], signal.SIGKILL)
        died = talk.answer(id)["result"]
        assert died["isError"] and "engine" in text(died)
        again = talk.run("'x' in dir()")
        assert again["structuredContent"]["value"] == "False" and "new" in text(again)


def test_a_helper_that_dies_costs_the_restart_alone_and_says_what_helps(cupel_as):
    with Talk(cupel_as) as talk:
        talk.run("x = 1")
        engine = talk.engines()[0]
        helper = next(row["parent"] for row in host.descendants(talk.process.pid) if row["pid"] == engine)
        os.kill(helper, signal.SIGKILL)
        assert talk.run("x")["structuredContent"]["value"] == "1"
        os.kill(engine, signal.SIGKILL)
        assert host.wait_until(lambda: "start 'cupel mcp' again" in text(talk.run("x")), 20)
        assert talk.ask("ping")["result"] == {}


def test_a_modern_request_names_no_session_that_it_does_not_have(engine, cupel_as):
    with Talk(cupel_as, env=engine.use(), version=None) as talk:
        for name in ("read_file", "list_files"):
            refused = talk.call(name, MODERN, **({"path": "x"} if name == "read_file" else {}))
            assert refused["isError"] and "session" in text(refused)
