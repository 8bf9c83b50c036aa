"""POST and DELETE /mcp: both eras on one route, and the token's rights, quotas and records hold."""
import json
import threading

import pytest

import host
from mcp_web import MODERN, Web, text


def test_a_legacy_conversation_keeps_its_state_until_it_is_deleted(server):
    web = Web(server).begin()
    web.call("run_code", code="x = 41")
    done = web.call("run_code", code="x + 1")["structuredContent"]
    assert done["value"] == "42" and done["cell"] == 2
    other = Web(server).begin()
    assert other.call("run_code", code="'x' in dir()")["structuredContent"]["value"] == "False"
    for one in (web, other):
        assert one.send(None, "DELETE")[0] == 204
        assert one.ask("ping")[0] == 404 and one.send(None, "DELETE")[0] == 404
    with server.client("mcp") as rest:
        assert host.wait_until(lambda: done["session"] not in {
            row["session"] for row in rest.get("/v1/sessions").json["sessions"] if row["status"] != "ended"}, 20)


def test_a_modern_request_stands_alone(server):
    web = Web(server)
    status, found = web.modern("server/discover")
    assert status == 200 and found["result"]["supportedVersions"] == ["2026-07-28"]
    run = {"name": "run_code", "arguments": {"code": "open('a.txt', 'w').write('hi'); 6 * 7"}}
    status, done = web.modern("tools/call", run, name="run_code")
    assert status == 200 and done["result"]["resultType"] == "complete"
    facts = done["result"]["structuredContent"]
    assert facts["value"] == "42" and facts["session"] is None
    uri = facts["files"][0]["uri"]
    assert web.modern("resources/read", {"uri": uri}, name=uri)[1]["result"]["contents"][0]["text"] == "hi"
    assert web.modern("tools/call", run, name="=?base64?cnVuX2NvZGU=?=")[0] == 200


def test_without_a_model_there_is_no_tool_ask(server):
    web = Web(server)
    tools = web.modern("tools/list")[1]["result"]["tools"]
    assert "ask" not in [tool["name"] for tool in tools] and "anyOf" not in tools[-1]["outputSchema"]
    call = {"name": "ask", "arguments": {"question": "x"}}
    assert web.modern("tools/call", call, name="ask")[1]["error"]["code"] == -32602


@pytest.mark.parametrize("change, status, code", [
    ({"name": None}, 400, -32020), ({"name": "session"}, 400, -32020), ({"Mcp_Method": "tools/list"}, 400, -32020),
    ({"Mcp_Method": None}, 400, -32020), ({"version": "2026-07-29"}, 400, -32020), ({"version": None}, 400, -32020),
    ({"name": "=?base64?!!?="}, 400, -32020), ({"Mcp_Method": "Tools/Call"}, 400, -32020),
])
def test_headers_that_differ_from_the_message_are_refused(server, change, status, code):
    run = {"name": "run_code", "arguments": {"code": "1"}}
    got, said = Web(server).modern("tools/call", run, **{"name": "run_code", **change})
    assert (got, said["error"]["code"]) == (status, code), said


def test_errors_have_the_status_and_shape_that_clients_expect(server):
    web = Web(server)
    assert web.modern("no/such")[0] == 404 and web.modern("initialize")[0] == 404
    for body, status, code in (("{", 400, -32700), ("[]", 400, -32600), ("", 400, -32700),
                               ({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, 400, -32600),
                               ({"jsonrpc": "2.0", "id": 1, "method": "initialize"}, 400, -32602)):
        got, _, said = web.send(body)
        assert (got, json.loads(said)["error"]["code"]) == (status, code), said
    web.session = "0" * 32
    assert web.ask("ping")[0] == 404
    web.begin()
    assert web.ask("ping", MCP_Protocol_Version="1999-01-01")[0] == 400
    assert web.send(None, "GET")[0] == 405 and web.send("{}", Content_Type="text/plain")[0] == 400
    web.send(None, "DELETE")


def test_nobody_gets_in_without_a_token_a_known_host_or_with_a_foreign_origin(server):
    web = Web(server, secret="cupel_wrong")
    status, headers, _ = web.send("{}")
    assert status == 401 and headers["www-authenticate"].startswith("Bearer")
    good = Web(server)
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    assert good.send(ping, Origin="https://evil.example")[0] == 403
    assert good.send(ping, Host="evil.example")[0] == 403


def test_a_stream_comes_only_with_progress(server):
    web = Web(server).begin()
    run = {"name": "run_code", "arguments": {"code": "import time; time.sleep(1.7); 'end'"}}
    status, headers, said = web.send({"jsonrpc": "2.0", "id": 5, "method": "tools/call",
                                      "params": {**run, "_meta": {"progressToken": 9}}})
    assert headers["content-type"] == "text/event-stream"
    frames = [json.loads(line[6:]) for line in said.splitlines() if line.startswith("data: ")]
    assert frames[0]["method"] == "notifications/progress" and frames[0]["params"]["progressToken"] == 9
    assert frames[-1]["id"] == 5 and frames[-1]["result"]["structuredContent"]["value"] == "'end'"
    plain = web.send({"jsonrpc": "2.0", "id": 6, "method": "tools/call", "params": run})
    assert plain[1]["content-type"] == "application/json"
    web.send(None, "DELETE")


def test_another_token_sees_neither_sessions_nor_runs_nor_conversations(server):
    mine, other = Web(server).begin(), Web(server, "mcp-other").begin()
    made = mine.call("session", do="new")["structuredContent"]["sessions"][0]["session"]
    mine.call("run_code", code="s = 1; open('f', 'w').write('x')", session=made)
    alone = mine.call("run_code", code="open('f', 'w').write('x')", session="none")["structuredContent"]
    assert made not in json.dumps(other.call("session", do="list"))
    for refused in (other.call("run_code", code="s", session=made), other.call("read_file", path="f", session=made),
                    other.call("session", do="close", session=made), other.call("session", do="fork", session=made),
                    other.call("runs", do="show", id=alone["id"])):
        assert refused["isError"] and "there is no" in text(refused), refused
    for uri in (f"cupel://{made}/f", alone["files"][0]["uri"]):
        assert other.ask("resources/read", {"uri": uri})[1]["error"]["code"] == -32002
    other.session, kept = mine.session, other.session
    assert other.ask("ping")[0] == 404
    other.session = kept
    mine.call("session", do="close", session=made)
    for one in (mine, other):
        one.send(None, "DELETE")


def test_quotas_count_sessions_and_runs_of_mcp(server):
    web = Web(server, "mcp-small", "--sessions", "1").begin()
    made = web.call("session", do="new")["structuredContent"]["sessions"][0]["session"]
    for refused in (web.call("session", do="new"), web.call("session", do="fork", session=made),
                    web.call("run_code", code="1"), web.call("run_code", code="1", session="new")):
        assert refused["isError"] and "quota" in text(refused), refused
    assert not web.call("run_code", code="1", session=made)["isError"]
    web.call("session", do="close", session=made)
    assert not web.call("run_code", code="1")["isError"]
    web.send(None, "DELETE")


def test_runs_are_the_tokens_in_the_records(server):
    web = Web(server).begin()
    done = web.call("run_code", code="'recorded by mcp'", session="none")["structuredContent"]
    with server.client("mcp") as rest:
        assert host.wait_until(lambda: rest.get(f"/v1/runs/{done['id']}/record").status == 200, 20)
    with server.client("mcp-other") as rest:
        assert rest.get(f"/v1/runs/{done['id']}/record").status == 404
    web.send(None, "DELETE")


def test_a_modern_client_that_goes_cancels_its_run(server):
    web = Web(server)
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "run_code", "arguments": {"code": "import time; time.sleep(25)"}, "_meta": MODERN}}
    link = server.wire()
    link.send("POST", "/mcp", web.client.headers({
        "Content-Type": "application/json", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call",
        "Mcp-Name": "run_code"}), json.dumps(body).encode())
    assert host.wait_until(lambda: server.state()["runs"] == 1, 20)
    link.close()
    server.wait_for(runs=0)


def test_a_cancelled_request_ends_and_its_session_goes_on(server):
    web, waits = Web(server).begin(), Web(server)
    waits.session = web.session
    web.call("run_code", code="x = 3")
    got = []
    slow = threading.Thread(target=lambda: got.append(waits.send({
        "jsonrpc": "2.0", "id": "slow", "method": "tools/call",
        "params": {"name": "run_code", "arguments": {"code": "import time; time.sleep(25)"}}})))
    slow.start()
    assert host.wait_until(lambda: server.state()["runs"] == 1, 20)
    assert web.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "slow"}})[0] == 202
    slow.join(30)
    assert got and got[0][::2] == (202, "")
    assert web.call("run_code", code="x")["structuredContent"]["value"] == "3"
    web.send(None, "DELETE")


def test_a_stored_run_is_shown_to_its_own_token_alone(server):
    web = Web(server, "mcp-stored").begin()
    with server.client("mcp-stored") as rest:
        run = rest.post("/v1/run", {"code": "open('a.txt', 'w').write('mine'); 6 * 7"}).json["run"]
        assert host.wait_until(lambda: rest.get(f"/v1/runs/{run}/record").status == 200, 20)
    shown = web.call("runs", do="show", id=run)
    assert not shown["isError"] and shown["structuredContent"]["value"] == "42", shown
    uri = next(part["uri"] for part in shown["content"] if part["type"] == "resource_link")
    assert web.ask("resources/read", {"uri": uri})[1]["result"]["contents"][0]["text"] == "mine"
    for name, options in (("mcp-other", ()), ("mcp-boss", ("--operator",))):
        other = Web(server, name, *options).begin()
        assert "absent" in text(other.call("runs", do="show", id=run))
        assert "error" in other.ask("resources/read", {"uri": uri})[1]
