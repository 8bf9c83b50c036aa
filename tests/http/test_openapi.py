"""api/openapi.json is the contract: its schemas are those of the other doors, its routes those of the server, and the
tests of this folder together exercise every route, status and member that it has."""
import json
import re

import pytest

import host
from http_seen import SEEN
from http_contract import DOCUMENT, documented, resolve

OPERATIONS = [(method.upper(), path) for path, item in DOCUMENT["paths"].items() for method in item
              if method != "parameters"]
METHODS = {"get", "put", "post", "delete"}
NOBODY = {"run": "r_nobody", "call": "1", "session": "s_" + "0" * 24, "task": "t_nobody", "replay": "p_nobody",
          "sha256": "sha256:" + "0" * 64,
          "path": "a/b"}

# Only one of two uploads that meet may get it: tests/http/test_files.py has them.
RACES = {"PUT /v1/sessions/{session}/files/{path} 409 application/json"}
# Members that no test can see, with the reason.
UNSEEN = {
    r"#/components/schemas/Result/network\[\]/.*": "no profile has a network yet",
    r".*/(skipped|artifacts)\[\]/path_base64": "a path that is no UTF-8: tests/flow/test_collect.py has it",
}


def inlined(schema):
    """A schema of the document without references to others."""
    schema, _ = resolve(schema)
    if isinstance(schema, dict):
        return {"default" if key == "x-default" else key: inlined(value) for key, value in schema.items()
                if key != "title"}
    return [inlined(one) for one in schema] if isinstance(schema, list) else schema


def schema_file(name):
    text = json.loads((host.REPO / f"api/{name}.schema.json").read_text())
    defs = {f"#/$defs/{key}": value for key, value in text.pop("$defs", {}).items()}

    def put_in(node):
        if isinstance(node, dict):
            return put_in(defs[node["$ref"]]) if "$ref" in node else {key: put_in(value) for key, value in node.items()}
        return [put_in(one) for one in node] if isinstance(node, list) else node
    return {key: put_in(value) for key, value in text.items() if key not in ("$schema", "title", "description")}


@pytest.mark.parametrize("name,component,own", [
    ("request", "RunRequest", ["wait", "approve"]), ("result", "Result", []), ("refusal", "Error", [])])
def test_a_schema_is_that_of_every_door(name, component, own):
    mine = inlined(DOCUMENT["components"]["schemas"][component])
    mine.pop("description", None)
    for field in own:
        del mine["properties"][field]
    assert mine == schema_file(name)


def test_a_cell_and_a_session_take_the_fields_of_a_request():
    request = schema_file("request")["properties"]
    for component, own, without in (("CellRequest", {"wait", "approve"}, {"session", "cache"}),
                                    ("SessionRequest", {"ttl_s", "life_s", "undo_levels"}, None)):
        fields = inlined(DOCUMENT["components"]["schemas"][component])["properties"]
        shared = {name: schema for name, schema in fields.items() if name not in own}
        assert shared == {name: request[name] for name in shared}
        if without:
            assert set(request) - set(shared) == without


def test_the_routes_are_those_of_the_server():
    text = (host.REPO / "src/serve/api/api.c").read_text()
    rows = re.findall(r'^    \{ (GET|POST|PUT|DELETE), "([^"]+)"', text, re.M)
    served = {(method, re.sub(r"\{\*?\}", "{}", path)) for method, path in rows}
    assert len(served) > 20
    assert served == {(method, re.sub(r"\{\w+\}", "{}", path)) for method, path in OPERATIONS}


def test_no_default_makes_a_client_send_what_nobody_asked_for():
    """A generated client sends every default, and a limit that is sent overrides the profile's."""
    assert '"default": {' in json.dumps(DOCUMENT)  # of responses
    assert not re.search(r'"default": (?!\{)', json.dumps(DOCUMENT))


def test_the_document_is_well_formed():
    ids = [operation["operationId"] for item in DOCUMENT["paths"].values() for method, operation in item.items()
           if method in METHODS]
    assert len(ids) == len(set(ids))
    for method, path in OPERATIONS:
        item = DOCUMENT["paths"][path]
        operation = item[method.lower()]
        named = [resolve(one)[0] for one in item.get("parameters", []) + operation.get("parameters", [])]
        assert {one["name"] for one in named if one["in"] == "path"} == set(re.findall(r"\{(\w+)\}", path)), path
        assert operation["summary"] and operation["tags"][0] in [tag["name"] for tag in DOCUMENT["tags"]]
    used = set(re.findall(r'"#/components/(\w+/[\w-]+)"', json.dumps(DOCUMENT)))
    there = {f"{kind}/{name}" for kind, rows in DOCUMENT["components"].items() for name in rows
             if kind != "securitySchemes"}
    assert there == used


def filled(path, names=NOBODY):
    """A route with its places filled in."""
    return re.sub(r"\{(\w+)\}", lambda place: names[place[1]], path)


def body_of(method, path):
    """A body of the right kind, or none."""
    body = DOCUMENT["paths"][path][method.lower()].get("requestBody")
    if not body:
        return {}
    if "application/json" not in body["content"]:
        return {"body": b"x"}
    schema, _ = resolve(body["content"]["application/json"]["schema"])
    return {"json_body": {name: "1" for name in schema.get("required", [])}}


def test_every_route_but_health_needs_a_token(server):
    with server.nobody() as client:
        for method, path in OPERATIONS:
            if path == "/v1/health":
                continue
            for headers in ({}, {"Authorization": "Bearer cupel_" + "x" * 43}, {"X-API-Key": "no"}):
                answer = client.ask(method, filled(path), **body_of(method, path), headers=headers)
                assert answer.status == 401 and answer.error["kind"] == "token", (method, path)
        assert client.get("/v1/health").status == 200


def test_nobody_is_told_which_routes_there_are(server):
    with server.nobody() as client:
        for path in ("/v1/nothing", "/", "/v1/run/x"):
            assert client.get(path).status == 401


def test_an_id_that_does_not_exist_is_absent(http):
    for method, path in OPERATIONS:
        if "{" in path:
            answer = http.ask(method, filled(path), **body_of(method, path))
            assert answer.status == 404 and answer.error["kind"] == "absent", (method, path, answer)


def test_a_parameter_that_a_route_does_not_know_is_refused(http, ids):
    for method, path in OPERATIONS:
        answer = http.ask(method, filled(path, {**NOBODY, **ids}) + "?nosuch=1", **body_of(method, path))
        assert answer.status == 400 and answer.error["field"] == "nosuch", (method, path, answer)


@pytest.fixture
def ids(http):
    """Things that exist."""
    run = http.run("open('f', 'w').write('x')")["run"]
    session = http.session()
    there = {"run": run, "session": session, "path": "f"}
    if ("PUT", "/v1/blobs") in OPERATIONS:
        http.put(f"/v1/sessions/{session}/files/f", b"x")
        there["sha256"] = http.put("/v1/blobs", b"some bytes").json["blob"]
    yield there
    http.delete(f"/v1/sessions/{session}")


def test_a_body_that_is_too_long_is_refused_before_it_comes(http, server):
    with server.wire() as wire:
        wire.send("POST", "/v1/run", {**http.headers(), "Content-Length": 1 << 40})
        answer = wire.receive()
    assert answer.status == 413 and answer.error["kind"] == "limit"
    http.contract.check("POST", "/v1/run", answer)


def test_a_run_in_a_session_that_is_not_there_is_absent(http):
    assert http.post("/v1/run", {"code": "1", "session": NOBODY["session"]}).status == 404


@pytest.mark.alone
def test_every_route_status_and_member_is_exercised(contract, request):
    """After all other tests of this folder, in whichever processes they ran."""
    if not SEEN and not all_files_ran(request.session):
        pytest.skip("it needs the whole folder: pytest tests/http")
    responses, fields = contract.all_seen(SEEN)
    wanted_responses, wanted_fields = documented()
    missing = sorted(wanted_responses - responses - RACES)
    unseen = sorted(name for name in wanted_fields - fields
                    if not any(re.fullmatch(pattern, name) for pattern in UNSEEN))
    assert not missing and not unseen, f"not exercised: {missing} {unseen}"


def all_files_ran(session):
    there = {file.name for file in (host.REPO / "tests/http").glob("test_*.py")}
    return there <= {item.path.name for item in session.items}


def test_a_member_that_is_never_seen_is_noticed():
    """The count itself can fail."""
    from http_contract import FIELDS
    schema = {"type": "object", "properties": {"a": {}, "b": {"type": "object", "properties": {"c": {}}}}}
    found, seen = set(), set()
    FIELDS.documented(schema, "x", found, set())
    FIELDS.seen(schema, "x", {"b": {}}, seen)
    assert found - seen == {"x/a", "x/b/c"}
