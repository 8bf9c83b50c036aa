"""Tool files with "http": the request that goes out, the answer that comes back, and where it may not go."""
import json
import subprocess
import time
from pathlib import Path

import pytest

from tool_files import SECRET, Tools
from web import PNG, Web

TEXT, WHOLE = {"type": "string"}, {"type": "integer"}


@pytest.fixture
def tools(cupel_as, place):
    return Tools(cupel_as, place)


@pytest.fixture
def web():
    with Web() as server:
        yield server


def http_tool(tools, name, url, properties=None, http=None, **more):
    schema = {"type": "object", "properties": properties or {}}
    return tools.write(f"{name}.json", {"name": name, "description": "A tool.", "input_schema": schema,
                                        "effect": "read", **more,
                                        "http": {"url": url, "private": True, **(http or {})}})


def test_arguments_fill_path_query_and_headers(tools, web):
    tools.secret(TOKEN=SECRET)
    properties = {"id": TEXT, "limit": WHOLE, "tags": {"type": "array"}, "trace": TEXT, "rest": {}, "absent": TEXT}
    http_tool(tools, "item", web.url + "/v1/items/{id}?fixed=1", properties, {
        "query": {"limit": "{limit}", "tag": "{tags}", "format": "json", "gone": "{absent}", "mix": "<{limit}>"},
        "headers": {"Authorization": "Bearer ${secret:TOKEN}", "X-Trace": "{trace}", "X-Gone": "{absent}"}})
    tools.value("item", {"id": "a/b c?#&ü", "limit": 5, "tags": ["x", 1, True], "trace": "t 1", "rest": {"k": [1]}})
    seen = web.last()
    assert seen["method"] == "GET" and seen["body"] == ""
    assert seen["path"] == "/v1/items/a%2Fb%20c%3F%23%26%C3%BC?fixed=1&limit=5&tag=x&tag=1&tag=true&format=json" \
                           "&mix=%3C5%3E&rest=%7B%22k%22%3A%5B1%5D%7D"
    assert seen["headers"]["authorization"] == f"Bearer {SECRET}" and seen["headers"]["x-trace"] == "t 1"
    assert "x-gone" not in seen["headers"]


def test_the_rest_of_the_arguments_is_the_body(tools, web):
    properties = {"id": WHOLE, "name": TEXT, "tags": {"type": "array"}}
    given = {"id": 7, "name": "ä", "tags": [1, 2]}
    for form, method in (("json", "POST"), ("form", "PUT")):
        http_tool(tools, form, web.url + "/things/{id}", properties, {"method": method, "body": form})
        tools.value(form, given)
        assert (web.last()["method"], web.last()["path"]) == (method, "/things/7")
    bodies = [(seen["headers"]["content-type"], seen["body"]) for seen in web.seen]
    assert bodies == [("application/json", '{"name":"ä","tags":[1,2]}'),
                      ("application/x-www-form-urlencoded", "name=%C3%A4&tags=1&tags=2")]
    http_tool(tools, "whole", web.url + "/whole", {"item": {}},
              {"method": "PATCH", "body": "json", "body_argument": "item"})
    tools.value("whole", {"item": [1]})
    assert web.last()["body"] == "[1]"
    http_tool(tools, "empty", web.url + "/empty", {}, {"method": "POST"})
    tools.value("empty")
    assert web.last()["headers"]["content-length"] == "0"


@pytest.mark.sample(short=3)
@pytest.mark.parametrize("value, said", [
    ("..", "would climb"), ("a/../b", "would climb"), ("..\\x", "would climb"), (".", "would climb"), ("", "is empty"),
    (None, "is missing"), ({"a": 1}, "no short text"), ([["x"]], "no short text"), ("x" * 9000, "no short text"),
    ("a\0b", "would climb"),
])
def test_no_argument_leaves_its_place_in_the_path(tools, web, value, said):
    http_tool(tools, "item", web.url + "/safe/{id}/end", {"id": {}})
    assert said in tools.error("item", {"id": value})
    assert not web.seen


def test_two_arguments_make_no_dots_together(tools, web):
    http_tool(tools, "item", web.url + "/safe/{a}{b}/x", {"a": {}, "b": {}})
    assert "would climb" in tools.error("item", {"a": ".", "b": "."}) and not web.seen
    tools.value("item", {"a": "@evil.test:80", "b": "%2e%2e%2f"})
    assert web.last()["path"] == "/safe/%40evil.test%3A80%252e%252e%252f/x"


def test_a_header_takes_no_second_line(tools, web):
    http_tool(tools, "item", web.url + "/x", {"t": TEXT}, {"headers": {"X-T": "{t}"}})
    assert "control character" in tools.error("item", {"t": "a\r\nX-Evil: 1"}) and not web.seen


@pytest.mark.sample(short=4)
@pytest.mark.parametrize("http, field", [
    ({"url": "ftp://x/y"}, "http.url"), ({"url": "http://{host}/y"}, "http.url"),
    ({"url": "http://u@x/y"}, "http.url"), ({"url": "http://x/../y"}, "http.url"),
    ({"url": "http://x/y#z"}, "http.url"), ({"url": "http://x/?a={a}"}, "http.url"),
    ({"url": "http://x/${secret:A}"}, "http.url"), ({"url": "http://x/{"}, "http.url"),
    ({"url": "http://x/{a b}"}, "http.url"), ({"method": "TRACE"}, "http.method"), ({"body": "xml"}, "http.body"),
    ({"method": "GET", "body": "json"}, "http.body"), ({"headers": {"Host": "y"}}, "http.headers.Host"),
    ({"headers": {"a b": "y"}}, "http.headers.a b"), ({"headers": {"X": "a\nb"}}, "http.headers.X"),
    ({"query": []}, "http.query"), ({"private": 1}, "http.private"), ({"redirects": True}, "http.redirects"),
    ({"query": {"a": "{nobody}"}}, "http"), ({"headers": {"X": "${secret:NO}"}}, ""),
])
def test_a_wrong_file_is_named_with_its_field(tools, http, field):
    schema = {"type": "object", "properties": {"a": {}}}
    tools.write("bad.json", {"name": "bad", "description": "", "input_schema": schema,
                             "http": {"url": "http://x/y", **http}})
    fault = tools.fault()
    assert fault.get("field", "") == field, fault


def test_answers_are_json_text_or_files(tools, web):
    for kind in ("text", "png", "none", "broken", "deep", "packed"):
        http_tool(tools, kind, f"{web.url}/{kind}")
    assert tools.value("text") == "grün" and tools.value("none") is None and tools.value("packed") == {"packed": True}
    code, outcome = tools.call("png")
    assert code == 0 and outcome["value"] == {"file": "response.png", "mime": "Image/PNG", "bytes": len(PNG)}
    assert [(file["name"], file["mime"]) for file in outcome["files"]] == [("response.png", "Image/PNG")]
    assert "announced JSON" in tools.error("broken") and "nested" in tools.error("deep")


def test_an_error_shows_a_little_of_the_body_and_no_secret(tools, web):
    tools.secret(TOKEN=SECRET)
    http_tool(tools, "item", web.url + "/refused", {}, {"headers": {"Authorization": "Bearer ${secret:TOKEN}"}})
    said = tools.error("item")
    assert said.startswith(f"HTTP 404 from {web.url}: ") and "no such item" in said and "\x1b" not in said
    assert SECRET not in json.dumps(tools.call("item")) and len(said) < 450
    assert web.last()["headers"]["authorization"] == f"Bearer {SECRET}"
    http_tool(tools, "echo", web.url + "/echo", {}, {"headers": {"Authorization": "Bearer ${secret:TOKEN}"}})
    assert SECRET not in json.dumps(tools.value("echo"))


def test_redirects_are_not_followed(tools, web):
    http_tool(tools, "item", web.url + "/redirect")
    assert "redirects are not followed" in tools.error("item") and len(web.seen) == 1


def test_a_large_an_endless_and_a_packed_answer_are_cut_off(tools, web):
    for kind in ("endless", "bomb"):
        http_tool(tools, kind, f"{web.url}/{kind}", caps={"result_bytes": 65536})
        started = time.monotonic()
        assert "exceeds 65536 bytes" in tools.error(kind)
        assert time.monotonic() - started < 20  # against a hang


def test_a_slow_answer_is_a_timeout(tools, web):
    http_tool(tools, "slow", web.url + "/slow")
    code, outcome = tools.call("slow", {}, "-t", "1")
    assert code == 124 and outcome["error"]["kind"] == "timeout"


@pytest.mark.sample(short=3)
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0", "127.1", "2130706433", "0x7f.1", "[::1]",
                                  "[::ffff:127.0.0.1]", "169.254.169.254", "10.0.0.1", "[64:ff9b::a9fe:a9fe]"])
def test_private_addresses_are_refused_unless_the_file_says_so(tools, web, host):
    http_tool(tools, "inside", f"http://{host}:{web.port}/x", {}, {"private": False})
    code, outcome = tools.call("inside")
    assert code != 0 and not web.seen, outcome
    assert "may be asked" in outcome["error"]["message"] and outcome["error"]["kind"] == "denied"


@pytest.mark.sample(short=2)
@pytest.mark.parametrize("host", ["169.254.169.254", "0.0.0.0", "[::ffff:169.254.169.254]", "224.0.0.1"])
def test_metadata_and_the_like_are_refused_always(tools, host):
    http_tool(tools, "inside", f"http://{host}/x", {}, {"private": True})
    code, outcome = tools.call("inside")
    assert code != 0 and "may be asked" in outcome["error"]["message"]


@pytest.fixture(scope="module")
def shim(place):
    path = place.fresh("shim", 0o755) / "resolve.so"
    source = Path(__file__).with_name("resolve.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", path, source, "-ldl"], check=True)
    return str(path)


def resolved(tools, shim, place, table):
    """A call of "named", with that table of names; the outcome, and the addresses that were connected to."""
    log = place.fresh("log") / "log"
    env = {"LD_PRELOAD": shim, "RESOLVE": table, "RESOLVE_LOG": str(log), "ASAN_OPTIONS": "verify_asan_link_order=0"}
    done = tools.run("call", "--json", "named", "{}", env=env)
    return json.loads(done.stdout), log.read_text().split() if log.exists() else []


def test_a_name_is_judged_by_the_address_that_is_connected_to(tools, web, shim, place):
    http_tool(tools, "named", f"http://rebind.test:{web.port}/x", {}, {"private": False})
    outcome, asked = resolved(tools, shim, place, "rebind.test=93.184.216.34")
    assert "value" in outcome and set(asked) == {"93.184.216.34"} and len(web.seen) == 1  # it does get out
    for private in ("127.0.0.1", "169.254.169.254", "10.1.2.3", "100.64.0.1"):
        outcome, asked = resolved(tools, shim, place, f"rebind.test={private}")
        assert outcome["error"]["kind"] == "denied" and not asked
    outcome, asked = resolved(tools, shim, place, "rebind.test=127.0.0.1,93.184.216.34")
    assert "value" in outcome and set(asked) == {"93.184.216.34"}


def test_no_proxy_of_the_environment_is_used(tools, web):
    http_tool(tools, "item", web.url + "/direct")
    proxies = {name: "http://127.0.0.1:9" for name in ("http_proxy", "all_proxy", "ALL_PROXY")}
    done = tools.run("call", "--json", "item", "{}", env=proxies)
    assert json.loads(done.stdout)["value"]["path"] == "/direct"
