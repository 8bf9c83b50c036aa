"""Records over HTTP: lists, searches, figures, one record, removal and pins; and runs that are not in memory any more,
which are those of the socket here, and those of an engine before."""
import hashlib
import secrets
import select
import time
from urllib.parse import urlencode

import pytest

import engine
import host
from http_server import LISTEN, Server
from watched import Watched

NAP = "print('ready', flush=True)\nimport time\nfor _ in range(1200): time.sleep(0.05)"
MISSING = "/v1/runs/r_" + "0" * 24


@pytest.fixture
def mark():
    """A word that no other run has."""
    return "mark" + secrets.token_hex(6)


@pytest.fixture
def tokens(server):
    """Two clients with tokens of their own, which have no run yet."""
    names = [f"rec{secrets.token_hex(4)}" for _ in range(2)]
    clients = [server.client(name) for name in names]
    yield clients
    for name, client in zip(names, clients):
        client.close()
        server.cupel.run(["token", "rm", name])


@pytest.fixture
def wire(server):
    """A client of the engine's socket."""
    with server.engine.client() as one:
        yield one


def listed(client, **filters):
    answer = client.get("/v1/runs?" + urlencode(filters))
    assert answer.status == 200, answer
    return answer.json


def ids(client, **filters):
    return [row["run"] for row in listed(client, **filters)["runs"]]


def sum_of(code):
    return hashlib.sha256(code.encode()).hexdigest()


def test_runs_are_listed_newest_first_with_what_they_did(tokens):
    mine, _ = tokens
    first = mine.run("print(1)\nopen('a', 'w').write('x')\n6 * 7")
    second = mine.run({"language": "bash", "code": "exit 3"})
    rows = listed(mine)["runs"]
    assert [row["run"] for row in rows] == [second["run"], first["run"]]
    assert rows[0]["status"] == "error" and rows[0]["exit_code"] == 3 and rows[0]["language"] == "bash"
    assert rows[1]["code"] == "print(1)" and rows[1]["text"] == "42" and rows[1]["artifacts"] == 1
    assert rows[1]["code_sha256"] == first["provenance"]["code_sha256"]
    assert abs(rows[1]["started_at"] - time.time()) < 3600 and rows[1]["stored_bytes"] > 0


def test_filters_choose_alone_and_together(tokens, mark):
    mine, _ = tokens
    good, bad = mine.run(f"'{mark}'")["run"], mine.run("1/0")["run"]
    bash = mine.run({"language": "bash", "code": "true"})["run"]
    cell = mine.post("/v1/sessions", {}).json["session"]
    inside = mine.post(f"/v1/sessions/{cell}/run", {"code": "x = 1"}).json["run"]
    mine.delete(f"/v1/sessions/{cell}")
    assert ids(mine, status="error") == [bad] and ids(mine, language="sh") == [bash]
    assert ids(mine, session=cell) == [inside] and ids(mine, code_sha256=sum_of("1/0")) == [bad]
    assert ids(mine, status="ok", language="python") == [inside, good]
    assert ids(mine, status="ok", session=cell, language="python", code_sha256=sum_of("x = 1")) == [inside]
    assert ids(mine, status="timeout") == ids(mine, task="t_none") == ids(mine, status="error", language="bash") == []
    assert ids(mine, since="1h") == [inside, bash, bad, good] and ids(mine, until="1h") == []
    assert ids(mine, since="2020-01-01", until=f"{time.time() + 60:.0f}", limit=1) == [inside]


def test_pages_follow_each_other_without_gap_or_repeat(tokens):
    mine, other = tokens
    runs = [mine.run(f"{n}")["run"] for n in range(5)][::-1]
    pages, next_page = [], None
    while next_page or not pages:
        page = listed(mine, limit=2, **({"page": next_page} if next_page else {}))
        pages.append([row["run"] for row in page["runs"]])
        next_page = page["next"]
        if len(pages) == 1:
            later = mine.run("'later'")["run"]  # a newer run moves nothing
    assert pages == [runs[:2], runs[2:4], runs[4:]] and later not in sum(pages, [])
    place = listed(mine, limit=2)["next"]
    for client, filters in ((other, {}), (mine, {"status": "ok"})):
        answer = client.get("/v1/runs?" + urlencode({"page": place, **filters}))
        assert answer.status == 400 and answer.error["field"] == "page"


@pytest.mark.parametrize("name,value", [
    ("limit", "0"), ("limit", "1001"), ("limit", "x"), ("since", "soon"), ("until", "2026-13-01"), ("status", "fine"),
    ("language", "cobol"), ("page", "1"), ("page", "p" + "0" * 32), ("text", ""), ("text", "a*"), ("text", "+-*"),
    ("text", "x" * 1001), ("code_sha256", "abc"), ("session", "a b"), ("task", "' OR 1"), ("colour", "red")])
def test_a_wrong_filter_is_refused_by_its_name(http, name, value):
    answer = http.get("/v1/runs?" + urlencode({name: value}))
    assert answer.status == 400 and answer.error["kind"] == "input" and answer.error["field"] == name


def test_runs_are_found_by_words_of_code_output_and_error(tokens, mark):
    mine, other = tokens
    code = mine.run(f"# {mark}a in code")["run"]
    output = mine.run(f"print('{mark}' + 'b in output')")["run"]
    failed = mine.run(f"raise ValueError('{mark}' + 'c')")["run"]
    theirs = other.run(f"'{mark}a'")["run"]
    assert ids(mine, text=f"{mark}a") == [code] and ids(mine, text=f"{mark}b") == [output]
    assert ids(mine, text=f"{mark}c") == [failed] and ids(mine, text=f"{mark}*") == [failed, output, code]
    assert ids(mine, text=f'"{mark}a in code"') == [code] and ids(mine, text=f'"code in {mark}a"') == []
    assert ids(mine, text=f"{mark}* valueerror", status="error") == [failed]
    assert ids(other, text=f"{mark}a") == [theirs]


@pytest.mark.parametrize("text", [
    'x" OR "y', "x AND", "NEAR(x y)", "code:x", "{tags}:uok", "tags:uok", "^x", "-x", "(x", '"x',
    "x''; DROP TABLE runs", "日本語", "\u0000x", "*x", "x" * 1000, " ".join("abcdefghijklmnop"), "%", "_"])
def test_a_hostile_search_is_words_or_a_refusal(tokens, text):
    mine, other = tokens
    other.run("'secret x of others'")
    answer = mine.get("/v1/runs?" + urlencode({"text": text}))
    assert answer.status in (200, 400), answer
    assert answer.json.get("runs", []) == [] and "fts5" not in answer.body.decode()


def test_a_token_sees_its_own_records_alone_and_an_operator_sees_all(tokens, operator, wire):
    mine, other = tokens
    run = mine.run("'mine'\nopen('a', 'w').write('x')")["run"]
    owner = listed(mine)["runs"][0]["owner"]
    _, last = wire.run("'by the socket'")
    assert ids(other) == [] and other.get(f"/v1/runs?token={owner}").status == 403
    assert other.get(f"/v1/runs/stats?token={owner}").status == 403
    assert ids(mine, token=owner) == ids(operator, token=owner) == [run]
    assert ids(operator, token="", limit=1) == [last["result"]["run"]]
    assert {run, last["result"]["run"]} <= set(ids(operator, limit=10))
    absent = other.get(MISSING).body.replace(b"0" * 24, run[2:].encode())
    for rest in ("", "/record", "/events", "/stdout", "/stderr", "/artifacts/a"):
        theirs = other.get(f"/v1/runs/{run}{rest}")
        assert theirs.status == 404 and theirs.body == absent, rest
    assert other.delete(f"/v1/runs/{run}/record").status == other.delete(f"/v1/runs/{run}").status == 404
    assert other.post(f"/v1/runs/{run}/pin", {"pinned": True}).status == 404
    assert mine.get(f"/v1/runs/{run}/record").json["pinned"] is False


def test_a_record_has_the_request_and_the_result(http):
    result = http.run({"code": "import sys\nprint(open('in').read())", "stdin": "abc", "env": {"A": "b"},
                       "files": [{"path": "in", "text": "from a file"}], "limits": {"timeout_s": 4}})
    record = http.get(f"/v1/runs/{result['run']}/record").json
    assert record["request"]["code"].startswith("import sys") and record["request"]["env"] == {"A": "b"}
    sent = record["request"]["files"][0]
    assert (sent["path"], sent["size_bytes"], sent["sha256"]) == ("in", 11, sum_of("from a file"))
    assert record["result"] == result and record["status"] == "ok" and record["door"] == "http"
    assert record["ended_at"] >= record["started_at"]
    for path in (MISSING, "/v1/runs/last", "/v1/runs/r_", f"/v1/runs/{result['run'][:-1]}", "/v1/runs/%2e%2e"):
        assert http.get(f"{path}/record").status == 404


def test_a_run_of_the_socket_is_answered_from_its_record(operator, wire):
    code = "import sys\nprint('out')\nprint('err', file=sys.stderr)\nopen('a.txt', 'w').write('kept')\n{'n': 1}"
    _, last = wire.run(code)
    result = last["result"]
    place = f"/v1/runs/{result['run']}"
    answer = operator.get(place)
    assert answer.json == result and answer.headers["x-run"] == result["run"]
    assert operator.get(place + "/stdout").body == b"out\n" and operator.get(place + "/stderr").body == b"err\n"
    kept = operator.get(place + "/artifacts/a.txt")
    assert kept.body == b"kept" and kept.headers["content-disposition"] == "attachment"
    assert kept.headers["content-security-policy"] == "sandbox"
    assert operator.get(place + "/artifacts/b.txt").status == 404
    assert operator.delete(place).json == {"run": result["run"], "status": "ok"}
    for form in ("text/event-stream", "application/x-ndjson"):
        with operator.follow(place + "/events", form=form) as stream:
            told = [*stream]
        assert [one["event"] for one in told] == ["start", "stdout", "stderr", "result", "end"]
        assert [one["seq"] for one in told] == [1, 2, 3, 4, 5]
        assert told[1]["text"] == "out\n" and told[-1]["result"] == result
    with operator.follow(place + "/events?from=4") as stream:
        assert [one["seq"] for one in stream] == [4, 5]


def test_a_run_that_another_door_runs_can_be_seen_but_not_followed(operator, server):
    with server.engine.client() as busy:
        busy.start("n", {"code": NAP, "limits": {"timeout_s": 90}}, events=True)
        while busy.receive().get("event") != "stdout":
            pass
        run, = ids(operator, status="started", token="", limit=1)
        assert operator.get(f"/v1/runs/{run}").json == {"run": run, "status": "running"}
        assert operator.get(f"/v1/runs/{run}/record").json["result"] is None
        assert operator.get(f"/v1/runs/{run}/events").status == operator.delete(f"/v1/runs/{run}").status == 409
        assert operator.delete(f"/v1/runs/{run}/record").status == 409
        assert operator.get(f"/v1/runs/{run}/stdout").status == 404
    assert host.wait_until(lambda: operator.get(f"/v1/runs/{run}/record").json["status"] != "started", 30)


def test_stderr_of_a_run_in_memory_is_fetched_as_bytes(http):
    run = http.run("import sys\nsys.stderr.buffer.write(b'\\xff\\n')")["run"]
    assert http.get(f"/v1/runs/{run}/stderr").body == b"\xff\n"
    going = http.begin({"code": NAP, "limits": {"timeout_s": 90}})
    assert http.get(f"/v1/runs/{going}/stderr").status == 409
    http.delete(f"/v1/runs/{going}")
    assert http.get(f"/v1/runs/{run}/stderr?x=1").status == 400


def test_a_removed_record_is_gone_everywhere(http, mark):
    run = http.run(f"'{mark}'")["run"]
    assert http.delete(f"/v1/runs/{run}/record?x=1").status == 400
    assert http.delete(f"/v1/runs/{run}/record").status == 204
    for rest in ("", "/record", "/events", "/stdout"):
        assert http.get(f"/v1/runs/{run}{rest}").status == 404
    assert ids(http, text=mark) == ids(http, code_sha256=sum_of(f"'{mark}'")) == []
    assert http.delete(f"/v1/runs/{run}/record").status == 404


def test_a_pin_is_set_and_taken_away(http):
    run = http.run("1")["run"]
    for pinned in (True, False):
        answer = http.post(f"/v1/runs/{run}/pin", {"pinned": pinned})
        assert answer.json == {"run": run, "pinned": pinned}
        assert http.get(f"/v1/runs/{run}/record").json["pinned"] is pinned
    for body, field in (({}, "pinned"), ({"pinned": 1}, "pinned"), ({"pinned": True, "x": 1}, "x")):
        answer = http.post(f"/v1/runs/{run}/pin", body)
        assert answer.status == 400 and answer.error["field"] == field
    assert http.post(f"{MISSING}/pin", {"pinned": True}).status == 404


def test_a_record_is_exported_as_a_notebook_a_script_and_json(http):
    session = http.post("/v1/sessions", {}).json["session"]
    runs = [http.post(f"/v1/sessions/{session}/run", {"code": code}).json["run"] for code in ("x = 20", "print(x + 1)")]
    http.delete(f"/v1/sessions/{session}")
    place = f"/v1/runs/{runs[1]}/export"
    for form in ("notebook", "ipynb"):
        answer = http.get(f"{place}?format={form}")
        cells = [cell for cell in answer.json["cells"] if cell["cell_type"] == "code"]
        assert answer.mime == "application/x-ipynb+json" and answer.json["nbformat"] == 4
        assert "x = 20" in "".join(cells[0]["source"]) and "21" in str(cells[-1]["outputs"])
    script = http.get(f"{place}?format=script")
    assert b"x = 20" in script.body and b"print(x + 1)" in script.body
    assert script.headers["content-disposition"].startswith("attachment")
    assert http.get(place).json == http.get(f"/v1/runs/{runs[1]}/record").json
    assert http.get(f"{place}?format=pdf").error["field"] == "format"
    assert http.get(f"{MISSING}/export").status == 404


def test_an_exported_cell_comes_with_the_cells_that_led_to_it(http):
    parent = http.post("/v1/sessions", {}).json["session"]
    http.post(f"/v1/sessions/{parent}/run", {"code": "x = 20"})
    http.post(f"/v1/sessions/{parent}/run", {"code": "x = 'undone'"})
    undone = http.post(f"/v1/sessions/{parent}/undo", {})
    if undone.status != 200:
        pytest.skip(f"sessions cannot go back here: {undone.error['message']}")
    forks = [parent, http.post(f"/v1/sessions/{parent}/fork").json["session"]]
    for session in forks:
        run = http.post(f"/v1/sessions/{session}/run", {"code": "print(x + 1)"}).json["run"]
        script = http.get(f"/v1/runs/{run}/export?format=script").body
        assert b"x = 20" in script and b"print(x + 1)" in script and b"undone" not in script, session
    for session in forks:
        http.delete(f"/v1/sessions/{session}")


def test_figures_say_what_fails_and_what_is_slow(tokens, operator):
    mine, _ = tokens
    mine.run("1")
    slow = mine.run("import time\ntime.sleep(0.3)")["run"]
    failed = [mine.run("{}['a']")["run"] for _ in range(2)][-1]
    mine.run({"language": "bash", "code": "exit 1"})
    stats = mine.get("/v1/runs/stats?since=1h").json
    assert stats["runs"] == 5 and stats["statuses"] == {"error": 3, "ok": 2}
    assert stats["languages"] == {"python": 4, "bash": 1}
    worst = stats["failures"][0]
    assert (worst["name"], worst["count"], worst["example"]) == ("KeyError", 2, failed)
    assert slow in [one["run"] for one in stats["slowest"]] and stats["wall_ms"]["max"] >= 300
    assert sum(stats["over_time"]["runs"]) == 5 and sum(stats["over_time"]["failed"]) == 3
    assert stats["by_language"]["bash"]["runs"] == 1 and stats["cost"]["cpu_s"] > 0 and "tokens" not in stats
    owner = listed(mine)["runs"][0]["owner"]
    everything = operator.get("/v1/runs/stats").json
    assert {"owner": owner, "runs": 5, "failed": 3}.items() <= next(
        one for one in everything["tokens"] if one["owner"] == owner).items()
    assert mine.get("/v1/runs/stats?since=2020-01-01&until=2020-02-01").json["wall_ms"] is None
    assert mine.get("/v1/runs/stats?since=1h&until=2h").error["field"] == "until"
    assert mine.get("/v1/runs/stats?limit=1").error["field"] == "limit"


def test_many_questions_at_once_are_answered_or_refused_and_runs_go_on(tokens, server):
    """More searches than may wait, of one token: another token's are answered, and code runs."""
    mine, other = tokens
    mine.run("'word'")
    wires = [mine.open() for _ in range(60)]
    for one in wires:
        one.send("GET", "/v1/runs?text=word", mine.headers())
    wires[0].close()  # a client that goes
    assert other.get("/v1/runs?text=word").status == 200
    assert other.run("1")["status"] == "ok"
    statuses = [one.receive().status for one in wires[1:]]
    for one in wires[1:]:
        one.close()
    assert set(statuses) <= {200, 429} and 200 in statuses
    assert ids(mine, text="word")


def test_a_list_does_not_wait_for_long_records(tokens):
    mine, _ = tokens
    run = mine.run({"code": "print('[]' * 1000000)", "limits": {"stdout_bytes": 8 << 20}})["run"]
    wires = [mine.open() for _ in range(24)]
    for one in wires:
        one.send("GET", f"/v1/runs/{run}/record", mine.headers())
    time.sleep(0.3)  # they wait for the store
    assert mine.get("/v1/runs?limit=1").status == 200
    answered, _, _ = select.select([one.sock for one in wires], [], [], 0)
    statuses = [one.receive().status for one in wires]
    for one in wires:
        one.close()
    assert set(statuses) == {200}
    assert len(answered) < len(wires), "the list waited"


def test_records_outlive_the_engine(cupel_as, place, left_behind, contract):
    """A restart: the run is listed, and its routes answer as before."""
    folder = place.fresh("records", 0o755, cupel_as.uid if cupel_as.switch else None)
    env, seen = {"CUPEL_STATE": str(folder / "state")}, []
    token = cupel_as.run(["token", "new", "outlives", "-q"], env=env).stdout.strip()
    code = "print('x' * 200000)\nopen('big', 'wb').write(bytes(range(256)) * 4096)\n1"
    for _ in range(2):
        with Watched(cupel_as, engine.socket_path(place, cupel_as), LISTEN, env=env) as one:
            client = Server(one, contract).nobody()
            client.token = token
            run = seen[0][0] if seen else client.run({"code": code})["run"]
            answers = [client.get(f"/v1/runs/{run}").json]
            answers += [client.get(f"/v1/runs/{run}/{rest}").body for rest in ("stdout", "stderr", "artifacts/big")]
            with client.follow(f"/v1/runs/{run}/events") as stream:
                answers.append([*stream][-1]["result"])
            seen.append((run, ids(client), answers))
            client.close()
    before, after = seen
    assert after[1] == [before[0]] and len(before[2][1]) == 200001 and len(before[2][3]) == 1 << 20
    assert after == before
