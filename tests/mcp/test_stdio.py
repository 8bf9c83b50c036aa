"""cupel mcp on standard input and output: a conversation keeps its state, results are what a model can act on, and
files come back by their links."""
import base64
import json
import struct

import pytest

from mcp_client import MODERN, Talk, text


@pytest.fixture
def talk(engine, cupel_as):
    with Talk(cupel_as, env=engine.use()) as one:
        yield one


def test_a_conversation_keeps_variables_and_files(talk):
    assert talk.begun["protocolVersion"] == "2025-11-25" and talk.begun["serverInfo"]["name"] == "cupel"
    first = talk.run("x = 41\nprint('hi')\nopen('a.txt', 'w').write('hello')\nx + 1")
    facts = first["structuredContent"]
    assert not first["isError"] and facts["value"] == "42" and facts["stdout"] == "hi\n"
    link = next(part for part in first["content"] if part["type"] == "resource_link")
    assert link["name"] == "a.txt" and link["size"] == 5
    assert talk.ask("resources/read", {"uri": link["uri"]})["result"]["contents"] == [
        {"uri": link["uri"], "mimeType": "text/plain", "text": "hello"}]
    assert talk.run("x + 1 + len(open('a.txt').read())")["structuredContent"]["value"] == "47"
    assert [row["uri"] for row in talk.ask("resources/list")["result"]["resources"]] == [link["uri"]]


def test_a_failure_is_a_result_with_a_hint(talk):
    failed = talk.run("import nonesuch_package")
    assert failed["isError"] and "nonesuch_package" in text(failed)
    assert failed["structuredContent"]["error"]["kind"] == "import" and failed["structuredContent"]["error"]["hint"]
    late = talk.run("while True: pass", timeout_s=1)
    assert late["isError"] and late["structuredContent"]["status"] in ("timeout", "cpu_limit")
    assert talk.run("1+1")["structuredContent"]["value"] == "2"


@pytest.mark.parametrize("arguments, named", [
    ({}, "code"), ({"code": 3}, "code"), ({"code": "1", "speed": 9}, "speed"),
    ({"code": "1", "language": "cobol"}, "language"),
    ({"code": "1", "timeout_s": 99999}, "timeout_s"), ({"code": "1", "files": [{"text": "x"}]}, "path"),
    ({"code": "1", "files": [{"path": "../x", "text": "x"}]}, "path"), ({"code": "1", "session": "s_nope"}, "s_nope"),
])
def test_a_wrong_argument_is_named_in_a_result(talk, arguments, named):
    result = talk.call("run_code", **arguments)
    assert result["isError"] and named in text(result), result


def test_sessions_are_made_undone_forked_and_closed(talk):
    made = talk.call("session", do="new")["structuredContent"]["sessions"][0]["session"]
    talk.run("y = 1", session=made)
    talk.call("session", do="checkpoint", session=made, name="one")
    talk.run("y = 2", session=made)
    fork = talk.call("session", do="fork", session=made)["structuredContent"]["sessions"][0]["session"]
    back = talk.call("session", do="undo", session=made, name="one")
    assert not back["isError"], back
    assert talk.run("y", session=made)["structuredContent"]["value"] == "1"
    assert talk.run("y", session=fork)["structuredContent"]["value"] == "2"
    listed = talk.call("session", do="list")["structuredContent"]["sessions"]
    assert {made, fork} <= {row["session"] for row in listed}
    for one in (made, fork):
        assert not talk.call("session", do="close", session=one)["isError"]
    assert talk.run("y", session=made)["isError"]


def test_the_own_session_comes_again_when_it_was_closed(talk):
    own = talk.run("z = 1")["structuredContent"]["session"]
    talk.call("session", do="close", session=own)
    assert talk.run("'z' in dir()")["structuredContent"]["value"] == "False"


def test_files_are_written_listed_and_read(talk):
    talk.call("write_file", path="data/a.csv", text="a,b\n1,2\n")
    assert [row for row in talk.call("list_files")["structuredContent"]["files"] if row["type"] == "file"] == [
        {"path": "data/a.csv", "type": "file", "size_bytes": 8}]
    assert text(talk.call("read_file", path="data/a.csv")) == "a,b\n1,2\n"
    assert text(talk.call("read_file", path="data/a.csv", offset=4, length=2)).startswith("1,")
    talk.call("write_file", path="b.bin", base64=base64.b64encode(bytes(range(256))).decode())
    other = talk.call("read_file", path="b.bin")
    link = next(part for part in other["content"] if part["type"] == "resource_link")
    read = talk.ask("resources/read", {"uri": link["uri"]})["result"]["contents"][0]
    assert base64.b64decode(read["blob"]) == bytes(range(256))
    missing = talk.call("read_file", path="nothing.txt")
    assert missing["isError"] and "no such file" in text(missing)


def test_a_plot_comes_as_a_picture_of_a_sane_size(talk):
    drawn = talk.run("import matplotlib.pyplot as plt\nplt.figure(figsize=(60, 30))\nplt.plot([1, 3, 2])\nplt.show()",
                     timeout_s=60)
    picture = next(part for part in drawn["content"] if part["type"] == "image")
    assert picture["mimeType"] == "image/png" and drawn["structuredContent"]["pictures"] == 1
    assert "data" not in json.dumps(drawn["structuredContent"])
    width, height = struct.unpack(">II", base64.b64decode(picture["data"])[16:24])
    assert 700 < max(width, height) <= 1568


def test_a_picture_over_the_cap_is_a_link(talk):
    code = ("import os, struct\nclass Big:\n def _repr_png_(self):\n"
            "  head = b'\\x89PNG\\r\\n\\x1a\\n' + struct.pack('>I4sII', 13, b'IHDR', 9000, 9000)\n"
            "  return head + os.urandom(5000)\nBig()")
    shown = talk.run(code)
    assert shown["structuredContent"]["pictures"] == 0 and "too large" in text(shown)
    link = next(part for part in shown["content"] if part["type"] == "resource_link")
    read = talk.ask("resources/read", {"uri": link["uri"]})["result"]["contents"][0]
    assert read["mimeType"] == "image/png" and base64.b64decode(read["blob"])[1:4] == b"PNG"


def test_other_languages_have_sessions_of_their_own(talk):
    assert talk.run("const a = 20; a + 1", language="javascript")["structuredContent"]["value"] == "21"
    assert talk.run("a + 2", language="javascript")["structuredContent"]["value"] == "22"
    assert talk.run("b=7; echo $((b*6))", language="bash")["structuredContent"]["stdout"] == "42\n"
    assert talk.run("'a' in dir()")["structuredContent"]["value"] == "False"


def test_progress_comes_where_it_was_asked_for(talk):
    done = talk.run("import time; time.sleep(2.6); print('end')", {"progressToken": "p1"})
    told = [note["params"] for note in talk.notes if note["method"] == "notifications/progress"]
    assert not done["isError"] and len(told) >= 2
    assert all(one["progressToken"] == "p1" for one in told)
    assert [one["progress"] for one in told] == sorted({one["progress"] for one in told})


def test_a_cancelled_call_is_not_answered_and_its_session_goes_on(talk):
    talk.run("x = 5")
    id = talk.send("tools/call", {"name": "run_code", "arguments": {"code": "import time; time.sleep(30)"}})
    talk.send("ping")
    talk.answer(talk.last)
    talk.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id, "reason": "enough"}})
    assert talk.run("x")["structuredContent"]["value"] == "5"  # and no answer to the other id came before


def test_a_modern_client_needs_no_handshake(engine, cupel_as):
    with Talk(cupel_as, env=engine.use(), version=None) as talk:
        found = talk.ask("server/discover", meta=MODERN)["result"]
        assert found["supportedVersions"] == ["2026-07-28"] and found["resultType"] == "complete"
        tools = talk.ask("tools/list", meta=MODERN)["result"]
        assert tools["ttlMs"] > 0 and tools["cacheScope"] == "public" and len(tools["tools"]) == 6
        assert talk.run("x = 1", MODERN)["structuredContent"]["session"] is None
        assert talk.run("x", MODERN)["isError"]  # each call is a fresh box
        made = talk.run("x = 1", MODERN, session="new")["structuredContent"]["session"]
        assert talk.run("x", MODERN, session=made)["structuredContent"]["value"] == "1"
        written = talk.run("open('o.txt', 'w').write('out')", MODERN)
        link = next(part for part in written["content"] if part["type"] == "resource_link")
        read = talk.ask("resources/read", {"uri": link["uri"]}, meta=MODERN)["result"]
        assert read["contents"][0]["text"] == "out" and read["resultType"] == "complete"
        assert talk.ask("resources/read", {"uri": "cupel://r_0/x"}, meta=MODERN)["error"]["code"] == -32602
        assert talk.ask("ping", meta=MODERN)["error"]["code"] == -32601
        wrong = {**MODERN, "io.modelcontextprotocol/protocolVersion": "2031-01-01"}
        assert talk.ask("tools/list", meta=wrong)["error"]["data"]["supported"] == ["2026-07-28"]
        talk.call("session", MODERN, do="close", session=made)


def test_the_oldest_version_gets_batches_and_no_later_members(engine, cupel_as):
    with Talk(cupel_as, env=engine.use(), version="2025-03-26") as talk:
        talk.say([{"jsonrpc": "2.0", "id": "a", "method": "ping"},
                  {"jsonrpc": "2.0", "method": "notifications/x"},
                  {"jsonrpc": "2.0", "id": "b", "method": "tools/call",
                   "params": {"name": "run_code", "arguments": {"code": "open('f','w').write('x')"}}}])
        answers = {one["id"]: one["result"] for one in talk.hear()}
        assert answers["a"] == {} and "structuredContent" not in answers["b"]
        assert {part["type"] for part in answers["b"]["content"]} == {"text"}
        assert not any("outputSchema" in tool for tool in talk.ask("tools/list")["result"]["tools"])


def test_an_engine_of_its_own_ends_with_it(cupel_as):
    with Talk(cupel_as) as talk:
        assert talk.run("6*7")["structuredContent"]["value"] == "42"


@pytest.mark.full  # its patience is 45 seconds
def test_a_long_call_without_a_token_gets_an_id_that_a_further_call_follows(talk):
    code = "import time\nfor i in range(49): print(i, flush=True); time.sleep(1)\n'end'"
    first = talk.run(code, timeout_s=200)
    facts = first["structuredContent"]
    assert not first["isError"] and facts["status"] == "running" and "20\n" in facts["stdout"]
    whole = talk.call("runs", do="show", id=facts["id"])["structuredContent"]
    assert whole["status"] == "ok" and whole["value"] == "'end'" and whole["id"] == facts["id"]
    assert talk.call("runs", do="show", id=facts["id"])["structuredContent"] == whole
    assert talk.call("runs", do="show", id="c_nope")["isError"]
