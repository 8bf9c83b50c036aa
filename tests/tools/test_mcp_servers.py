"""MCP servers as sources of tools: both transports, both eras, and servers that misbehave."""
import json
import os
import time

import pytest

from host import wait_until
from mcp_servers import ALLOWED, Http, command, said
from tool_files import SECRET, Tools


@pytest.fixture
def tools(cupel_as, place):
    return Tools(cupel_as, place)


def serve(tools, **servers):
    tools.write("mcp.json", {"mcpServers": servers, "otherProgramsKey": 1})


def listed(tools):
    return {tool["name"]: tool for tool in json.loads(tools.run("ls", "--json").stdout)["tools"]}


@pytest.fixture(params=["legacy", "modern"])
def era(request):
    return request.param


@pytest.fixture(params=["stdio", "http"])
def served(request, tools, era, place):
    """The server as "peer", by either transport; a function gives the messages that it got."""
    log = place.fresh("log") / "log"
    log.touch()
    log.chmod(0o666)
    if request.param == "stdio":
        serve(tools, peer=command("--era", era, "--log", log))
        yield lambda: said(log)
        return
    with Http("--era", era, "--log", log) as server:
        serve(tools, peer=server.entry())
        yield lambda: said(log)


def test_values_texts_pictures_links_and_errors(tools, served):
    assert tools.value("peer.add", {"a": 2, "b": 3}) == {"sum": 5}
    assert tools.value("peer.echo", {"text": "hi"}) == "hi"
    assert tools.value("peer.link") == "a: test://a\ninside"
    code, outcome = tools.call("peer.picture")
    [file] = outcome["files"]
    assert code == 0 and (file["name"], file["mime"]) == ("image_1.png", "image/png")
    assert tools.error("peer.fail") == "no such city; try 'Berlin'"


def test_the_handshake_is_that_of_the_era(tools, served, era):
    tools.value("peer.echo", {"text": "ä b"})
    messages = served()
    methods = [message.get("method") for message in messages if "method" in message]
    if era == "legacy":
        assert methods[:4] == ["server/discover", "initialize", "notifications/initialized", "tools/list"]
        assert all("_meta" not in message.get("params", {}) for message in messages[1:] if message.get("method"))
    else:
        assert methods[:2] == ["server/discover", "tools/list"] and "initialize" not in methods
        assert all("_meta" in message["params"] for message in messages if "id" in message)
    [call] = [message for message in messages if message.get("method") == "tools/call"]
    headers = call.get("headers")
    if headers and era == "modern":
        assert (headers["mcp-protocol-version"], headers["mcp-method"], headers["mcp-name"]) == \
            ("2026-07-28", "tools/call", "echo")
        assert headers["mcp-param-text"] == "=?base64?w6QgYg==?=" and "mcp-session-id" not in headers
    elif headers:
        assert (headers["mcp-session-id"], headers["mcp-protocol-version"]) == ("1", "2025-11-25")


def test_resources_are_two_tools(tools, served):
    assert tools.value("peer.list_resources") == [{"uri": "test://a", "name": "a", "mimeType": "text/plain"}]
    assert tools.value("peer.read_resource", {"uri": "test://a"}) == "the text of a"
    assert "no method" in tools.error("peer.read_resource", {"uri": "test://none"})
    code, outcome = tools.call("peer.read_resource", {"uri": "test://png"})
    assert code == 0 and outcome["files"][0]["name"] == "resource_1.png"


def test_a_list_of_resources_without_end_is_bounded(tools):
    serve(tools, peer=command("--endless"))
    assert tools.error("peer.list_resources") == "server 'peer': its list of resources exceeds 8388608 bytes"


def test_definitions_are_made_good(tools):
    serve(tools, peer=command("--pages", 5, "--no-resources"))
    found = listed(tools)
    assert len(found) == 20 and not tools.faults()
    assert found["peer.add"]["effect"] == "read" and found["peer.echo"]["effect"] == "write"
    assert "peer._2_bad_name_" in found and tools.value("peer._2_bad_name_") == "2 bad/name!"
    [long] = [name for name in found if name.startswith("peer.xxx")]
    assert len(long) == 64 and tools.value(long) == "x" * 100
    assert found["peer.die"]["description"] == "Does die.[31m"  # without escape, override and zero width
    assert "not supported" not in str(found["peer.echo"]["input_schema"])


def test_the_configuration_has_the_last_word_on_effect_policy_and_caps(tools):
    wishes = {"add": {"effect": "irreversible", "policy": "deny"}, "e*": {"policy": "allow", "caps": {"calls": 3}}}
    serve(tools, **{"my peer": command(tools=wishes)})
    found = listed(tools)
    assert found["my_peer.add"]["effect"] == "irreversible"
    assert tools.value("my_peer.echo", {"text": "x"}) == "x"
    assert "denies this call" in tools.refusal("my_peer.add", {"a": 1, "b": 1}, "--yes")["message"]


def test_hostile_schemas_lose_their_own_tool_alone(tools):
    serve(tools, peer=command("--bomb"))
    assert "peer.add" in listed(tools)
    faults = [fault["message"] for fault in tools.faults()]
    assert len(faults) == 4 and tools.value("peer.add", {"a": 1, "b": 1}) == {"sum": 2}


def test_an_entry_with_a_fault_leaves_the_others_alone(tools):
    serve(tools, peer=command(), both={"command": "x", "url": "http://y"}, none={}, off={"disabled": True},
          old={"url": "http://x/", "type": "sse"}, secret=command(env={"A": "${secret:NO}"}),
          unset=command(env={"A": "${CUPEL_NO_SUCH}"}), gone={"command": "/no/such/program"})
    faults = "\n".join(fault["message"] for fault in tools.faults())
    for alias in ("both", "none", "old", "secret", "unset", "gone"):
        assert f"server '{alias}'" in faults
    assert "'off'" not in faults and tools.value("peer.add", {"a": 1, "b": 1}) == {"sum": 2}


def test_environment_and_folder_are_what_the_entry_says(tools):
    tools.secret(TOKEN=SECRET)
    serve(tools, peer=command(env={"TOKEN": "${secret:TOKEN}", "B": "${HOME}", "C": "${NO_SUCH:-c}"}, cwd="/usr"))
    names, token, folder = json.loads(tools.value("peer.env"))
    assert {"B", "C", "HOME", "PATH", "TOKEN"} <= set(names) and "CUPEL_WALL_CANARY" not in names
    assert (token, folder) == ("[secret TOKEN]", "/usr")


@pytest.mark.parametrize("flag", ["--die-first", "--silent-first"])
def test_a_server_that_cannot_bear_the_probe_is_served_all_the_same(tools, flag):
    serve(tools, peer=command(flag))
    assert tools.value("peer.add", {"a": 1, "b": 2}) == {"sum": 3}


@pytest.mark.parametrize("name, reason", [
    ("die", "it ended with exit code 3: out of cheese"), ("half", "it ended with exit code 0"),
    ("flood", "64 MiB that nobody asked for"), ("giant", "a message of more than 8 MiB"),
])
def test_a_server_that_breaks_mid_call_says_how(tools, name, reason):
    serve(tools, peer=command())
    assert reason in tools.error(f"peer.{name}")


def test_noise_forged_ids_and_requests_of_the_server(tools):
    serve(tools, peer=command())
    assert tools.value("peer.noise") == "noise"
    assert json.loads(tools.value("peer.asks")) == [["s1", {}, None], [7, None, -32601]]
    code, outcome = tools.call("peer.wrong_id", {}, "-t", "1")
    assert code == 124 and outcome["error"]["kind"] == "timeout"
    assert tools.value("peer.lies") == ""


def test_a_late_call_is_cancelled_at_the_server(tools, place):
    log = place.fresh("log") / "log"
    log.touch()
    log.chmod(0o666)
    serve(tools, peer=command("--log", log))
    code, outcome = tools.call("peer.sleep", {"s": 60}, "-t", "1")
    assert code == 124 and "within 1 s" in outcome["error"]["message"]
    [call] = [message for message in said(log) if message.get("method") == "tools/call"]
    wait_until(lambda: any(message.get("method") == "notifications/cancelled" and
                           message["params"]["requestId"] == call["id"] for message in said(log)), 10)


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def test_a_server_ends_with_the_host_and_all_that_it_started(tools):
    serve(tools, peer=command())
    child = int(tools.value("peer.leave_child"))
    wait_until(lambda: not is_alive(child), 10)


def test_a_result_larger_than_its_cap_is_an_error(tools):
    serve(tools, peer=command())
    assert "bytes" in tools.error("peer.big")


def test_a_session_that_the_server_forgot_begins_anew(tools):
    with Http() as server:
        serve(tools, peer=server.entry())
        assert tools.value("peer.die") == "forgot"
        assert tools.value("peer.add", {"a": 1, "b": 1}) == {"sum": 2}


def test_a_stream_without_end_is_cut_off(tools):
    with Http() as server:
        serve(tools, peer=server.entry())
        started = time.monotonic()
        assert "exceeds" in tools.error("peer.flood")
        assert time.monotonic() - started < 30  # against a hang


def test_a_name_that_leads_inside_needs_private(tools, place):
    with Http() as server:
        serve(tools, peer={"url": server.url.replace("127.0.0.1", "127.1"), "tools": ALLOWED})
        assert "may be asked" in tools.faults()[0]["message"]
        serve(tools, peer={"url": server.url.replace("127.0.0.1", "127.1"), "tools": ALLOWED, "private": True})
        assert tools.value("peer.add", {"a": 1, "b": 1}) == {"sum": 2}
        serve(tools, peer=server.entry(private=False))
        assert "may be asked" in tools.faults()[0]["message"]
