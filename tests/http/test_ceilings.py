"""The operator's ceilings bind every way into the engine over HTTP: a replay, a task's own cells, and MCP, too."""
import json

import pytest

import host
from http_contract import CONTRACT
from tasks_server import Client, Server
from test_mcp import Web


class Bounded(Server):
    """A server with a configuration that can change."""

    contract = CONTRACT

    def __init__(self, cupel, place):
        self.config = place.fresh("config", 0o755, cupel.uid if cupel.switch else None) / "config.json"
        self.config.write_text("{}")
        super().__init__(cupel, place, ("--config", self.config))

    def token(self, name, *args):
        return self.secret(name, *args)

    def bound(self, **ceilings):
        """Reloads the configuration; it holds when this returns."""
        self.config.write_text(json.dumps({"ceilings": ceilings}))
        said = self.told().count('"event":"reload"')
        self.process.send_signal(1)
        assert host.wait_until(lambda: self.told().count('"event":"reload"') > said, 20), self.told()


@pytest.fixture
def bounded(cupel_as, place, left_behind):
    with Bounded(cupel_as, place) as one:
        yield one


def client(server, name="tasks", *args):
    return Client(server.address, server.secret(name, *args), CONTRACT)


def limits_of(http, query):
    """The limits of each recorded run."""
    runs = http.get(f"/v1/runs?{query}").json["runs"]
    assert runs
    return [http.get(f"/v1/runs/{row['run']}/record").json["result"]["provenance"]["limits"] for row in runs]


def test_a_replay_is_below_the_ceilings_of_today(bounded):
    with client(bounded) as http:
        run = http.run({"code": "print(1)", "limits": {"timeout_s": 5}})["run"]
        assert http.post(f"/v1/runs/{run}/replay", {}).json["same"]
        bounded.bound(timeout_s=2)
        refused = http.post(f"/v1/runs/{run}/replay", {})
        assert refused.status == 400 and refused.json["error"]["field"] == "limits.timeout_s", refused
        assert "to 2" in refused.json["error"]["bound"]
        bounded.bound(timeout_s=5)
        assert http.post(f"/v1/runs/{run}/replay", {}).json["same"]


def test_a_task_s_session_and_cells_are_below_the_ceilings(bounded):
    bounded.bound(timeout_s=7, memory_bytes=512 << 20, artifact_bytes=1 << 20, input_bytes=2 << 20)
    with client(bounded) as http:
        report = http.report(http.begin("file"))
        assert report["status"] == "computed" and report["values"] == {"total": 6.5}, report
        found = limits_of(http, f"task={report['task']}")
    for limits in found:
        assert limits["timeout_s"] <= 7 and limits["memory_bytes"] <= 512 << 20, limits
        assert limits["artifact_bytes"] <= 1 << 20 and limits["input_bytes"] <= 2 << 20, limits


def test_a_call_over_mcp_is_below_the_ceilings(bounded):
    bounded.bound(timeout_s=2)
    web = Web(bounded, "over-mcp")
    run = {"name": "run_code", "arguments": {"code": "1", "timeout_s": 3}}
    status, said = web.modern("tools/call", run, name="run_code")
    text = json.dumps(said)
    assert status in (200, 400) and "timeout_s" in text and "2" in text and '"value": "1"' not in text, said
    run["arguments"] = {"code": "1"}
    assert web.modern("tools/call", run, name="run_code")[1]["result"]["structuredContent"]["value"] == "1"
    with client(bounded, "over-mcp") as http:
        assert [limits["timeout_s"] <= 2 for limits in limits_of(http, "status=ok")] == [True]
