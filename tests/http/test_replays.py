"""Replays over HTTP: a token's recorded run once more, as that token, and what differs."""
import json
import time

import pytest

import host
from test_calls import ECHO, answer_all

AHEAD_S = (2, 10, 40)  # for a run to end before its code behaves differently
NOBODY = "r_" + "0" * 24
KEY = "AKIA" + "IOSFODNN7" + "QRSTUVW"


def replay(http, run, **body):
    answer = http.post(f"/v1/runs/{run}/replay", body)
    assert answer.status == 200, answer
    return answer.json


def fields_of(report):
    return [f"{row['field']} {row['kind']}" for row in report["differences"]]


def test_a_run_is_replayed_and_the_new_one_is_the_token_s_own(http):
    first = http.run({"code": "print(open('in').read())", "files": [{"path": "in", "text": "x"}]})
    report = replay(http, first["run"])
    assert report["same"] and report["status"] == "done" and report["run"] == first["run"], report
    again = http.get(f"/v1/runs/{report['replayed_as']}/record").json
    assert (again["replay_of"], again["door"]) == (first["run"], "http")
    assert replay(http, report["replayed_as"])["same"]


def test_a_blob_comes_again_as_bytes(http):
    blob = http.put("/v1/blobs", b"from a blob").json["blob"]
    first = http.run({"code": "print(open('in').read())", "files": [{"path": "in", "blob": blob}]})
    assert first["stdout"] == "from a blob\n"
    assert replay(http, first["run"])["same"]


def test_each_member_of_a_difference_is_told(http):
    for ahead_s in AHEAD_S:
        late_s = time.time() + ahead_s
        first = http.run(f"import time, ctypes\nlate = time.time() > {late_s}\nprint('ahead')\n"
                         "for i in range(9): print(late)\nopen('f', 'w').write(str(late))\n"
                         "if late: ctypes.CDLL(None).unshare(0x10000000)")
        if time.time() < late_s:
            break
    time.sleep(max(0, late_s - time.time()))
    report = replay(http, first["run"])
    assert fields_of(report) == ["stdout text", "denied added", "artifacts bytes"]
    text, denied, file = report["differences"]
    assert (text["line"], text["before"], text["was_more"], text["is_more"]) == (2, "ahead\n", 4, 4)
    assert denied["call"] == "unshare" and file["path"] == "f"


def test_calls_of_tools_are_answered_from_the_record(http):
    code = "import tools\nprint(tools.echo(6))\ntools.echo(7)"
    with http.follow("/v1/run", {"code": code, "tools": [ECHO]}) as stream:
        first = answer_all(http, stream)["result"]
    report = replay(http, first["run"])
    assert report["same"], report
    again = http.get(f"/v1/runs/{report['replayed_as']}").json
    assert again["stdout"] == "6\n" and len(again["calls"]) == 2
    one = http.session(tools=[ECHO])
    for _ in range(2):
        with http.follow(f"/v1/sessions/{one}/run", {"code": code}) as stream:
            last = answer_all(http, stream)["result"]
    http.delete(f"/v1/sessions/{one}")
    report = replay(http, last["run"])
    assert report["same"] and [row["same"] for row in report["cells"]] == [True], report


def test_a_replay_can_be_looked_at_later(http):
    first = http.run("import time; time.sleep(0.3); print(1)")
    begun = http.post(f"/v1/runs/{first['run']}/replay", {"wait": False})
    assert begun.status == 202 and begun.json["status"] == "running", begun
    place = begun.headers["location"]
    assert place == f"/v1/replays/{begun.json['replay']}"
    assert host.wait_until(lambda: http.get(place).json["status"] != "running", 20)
    report = http.get(place).json
    assert report["status"] == "done" and report["same"] and report["run"] == first["run"], report


def test_a_refused_replay_tells_why_later_too(http):
    begun = http.post(f"/v1/runs/{NOBODY}/replay", {"wait": False})
    assert begun.status == 202
    place = begun.headers["location"]
    assert host.wait_until(lambda: http.get(place).json["status"] != "running", 20)
    report = http.get(place).json
    assert report["status"] == "refused" and report["error"]["kind"] == "absent", report


def test_a_cell_is_replayed_with_its_files_and_the_cells_before_it(http):
    session = http.session()
    http.cell(session, "x = 1")
    http.put(f"/v1/sessions/{session}/files/in.txt", b"a" * 3_000_000)
    http.put(f"/v1/sessions/{session}/files/gone.txt", b"b")
    http.delete(f"/v1/sessions/{session}/files/gone.txt")
    http.cell(session, "x = 2")
    undone = http.post(f"/v1/sessions/{session}/undo", {})
    last = http.cell(session, "import os; x, os.path.getsize('in.txt'), os.listdir()")
    http.delete(f"/v1/sessions/{session}")
    report = replay(http, last["run"])
    assert report["same"] and report["session"] == session, report
    assert [row["cell"] for row in report["cells"]] == ([1] if undone.status == 200 else [1, 2])


def test_a_secret_is_supplied_by_the_hash_of_its_marker(http):
    first = http.run(f"k = '{KEY}'; print(len(k))")
    refused = http.post(f"/v1/runs/{first['run']}/replay", {})
    assert refused.status == 409 and refused.error["field"] == "code", refused
    marker = refused.error["message"].rpartition(":")[2].rstrip("]")
    assert replay(http, first["run"], secrets={marker: KEY})["same"]


@pytest.mark.parametrize("body,field", [({"x": 1}, "x"), ({"wait": 1}, "wait"), ({"any_image": "no"}, "any_image"),
                                        ({"secrets": []}, "secrets"), ({"secrets": {"a": "b"}}, "secrets"),
                                        ({"secrets": {"0123abcd": 7}}, "secrets")])
def test_a_wrong_wish_is_refused_by_the_name_of_its_field(http, body, field):
    answer = http.post(f"/v1/runs/{NOBODY}/replay", body)
    assert answer.status == 400 and answer.error["field"] == field
    assert '"b"' not in json.dumps(answer.error)  # what might be a secret is not repeated


def test_any_image_will_do_if_the_client_says_so(http):
    first = http.run("print(1)")
    assert replay(http, first["run"], any_image=True)["same"]


def test_a_run_of_another_token_does_not_exist(http, server):
    first = http.run("print('mine')")
    with server.client("somebody") as other:
        answer = other.post(f"/v1/runs/{first['run']}/replay", {})
        absent = other.post(f"/v1/runs/{NOBODY}/replay", {})
        assert answer.status == absent.status == 404
        assert answer.error["message"].replace(first["run"], NOBODY) == absent.error["message"]
        begun = http.post(f"/v1/runs/{first['run']}/replay", {"wait": False}).json["replay"]
        assert other.get(f"/v1/replays/{begun}").status == 404
    assert host.wait_until(lambda: http.get(f"/v1/replays/{begun}").json["status"] == "done", 20)


def test_a_replay_needs_the_rights_that_its_run_needs(http, server):
    first = http.run({"code": "1", "limits": {"timeout_s": 9}})
    with server.client("narrow", "--operator", "--limit", "timeout_s=2") as narrow:
        answer = narrow.post(f"/v1/runs/{first['run']}/replay", {})
        assert answer.status == 403 and answer.error["field"] == "limits.timeout_s", answer


def test_a_token_has_two_replays_at_once_and_leaves_room_for_others(http, server):
    first = http.run({"code": "import time; time.sleep(4)", "limits": {"timeout_s": 30}})
    path = f"/v1/runs/{first['run']}/replay"
    begun = [http.post(path, {"wait": False}) for _ in range(3)]
    assert [one.status for one in begun] == [202, 202, 429], begun
    assert begun[2].error["kind"] == "quota", begun[2]
    with server.client("somebody") as other:
        mine = other.run("print(1)")
        assert replay(other, mine["run"])["same"]
    for one in begun[:2]:
        path = f"/v1/replays/{one.json['replay']}"
        assert host.wait_until(lambda path=path: http.get(path).json["status"] == "done", 30)
    assert replay(http, http.run("print(2)")["run"])["same"]


def test_a_client_that_goes_cancels_its_replay(http, server):
    first = http.run({"code": "import time; time.sleep(3)", "limits": {"timeout_s": 20}})
    with server.wire() as wire:
        wire.send("POST", f"/v1/runs/{first['run']}/replay", http.headers({"Content-Type": "application/json"}), b"{}")
        assert host.wait_until(lambda: server.state()["runs"] == 1, 10)
    server.wait_for(runs=0)
