"""Blobs over HTTP: stored once, owned by those who put them; ranges, sums, quotas, clients that go, disks that fail."""
import base64
import gzip
import hashlib
import os
import subprocess

import pytest

import engine
import host
from http_server import LISTEN, Server
from watched import Watched

MIB = 1 << 20


def sum_of(data):
    return hashlib.sha256(data).hexdigest()


def put(http, data, **options):
    answer = http.put("/v1/blobs", data, **options)
    assert answer.status == 201, answer
    return answer.json["blob"].removeprefix("sha256:")


def test_a_blob_goes_in_comes_out_and_is_an_input(http):
    data = os.urandom(2 * MIB + 11)
    answer = http.put("/v1/blobs", data)
    name = sum_of(data)
    assert answer.status == 201 and answer.json == {"blob": f"sha256:{name}", "size_bytes": len(data)}
    assert answer.headers["location"] == f"/v1/blobs/{name}"
    for path in (name, f"sha256:{name}"):
        got = http.get(f"/v1/blobs/{path}")
        assert got.status == 200 and got.body == data and got.mime == "application/octet-stream"
    files = [{"path": "d/x", "blob": f"sha256:{name}"}, {"path": "y", "text": "y"}]
    code = "import hashlib; print(hashlib.sha256(open('d/x', 'rb').read()).hexdigest())"
    result = http.run({"code": code, "files": files})
    assert result["stdout"].strip() == name and result["artifacts"] == []
    plain = http.run({"code": code, "files": [{"path": "d/x", "base64": base64.b64encode(data).decode()}, files[1]]})
    assert result["provenance"]["inputs_sha256"] == plain["provenance"]["inputs_sha256"]
    one = http.session(files=files)
    assert http.cell(one, code)["stdout"].strip() == name
    assert http.cell(one, code.replace("d/x", "z"), files=[{**files[0], "path": "z"}])["stdout"].strip() == name
    http.delete(f"/v1/sessions/{one}")
    assert http.delete(f"/v1/blobs/{name}").status == 204
    assert http.get(f"/v1/blobs/{name}").status == http.delete(f"/v1/blobs/{name}").status == 404


@pytest.mark.parametrize("size", [0, 1, MIB - 1, MIB, MIB + 1])
def test_a_blob_of_any_size_and_form_is_whole(http, size):
    data = os.urandom(size)
    name = put(http, data)
    assert name == sum_of(data) == put(http, iter([data[:3], data[3:]]) if size > 3 else data)
    assert put(http, gzip.compress(data), headers={"Content-Encoding": "gzip"}) == name
    assert http.get(f"/v1/blobs/{name}").body == data


def test_a_sum_that_is_said_must_be_the_sum(http):
    data = b"these bytes"
    digest = base64.b64encode(hashlib.sha256(data).digest()).decode()
    other = base64.b64encode(hashlib.sha256(b"others").digest()).decode()
    assert http.put(f"/v1/blobs?sha256={sum_of(data)}", data).status == 201
    assert http.put("/v1/blobs", data, headers={"Content-Digest": f"sha-256=:{digest}:"}).status == 201
    for path, headers in ((f"/v1/blobs?sha256={sum_of(b'others')}", {}), ("/v1/blobs?sha256=abc", {}),
                          ("/v1/blobs", {"Content-Digest": f"sha-256=:{other}:"}),
                          (f"/v1/blobs?sha256={sum_of(data)}", {"Content-Digest": f"sha-256=:{other}:"})):
        answer = http.put(path, data, headers=headers)
        assert answer.status == 400 and answer.error["field"] == "sha256", path
    assert http.get(f"/v1/blobs/{sum_of(b'others')}").status == 404


def test_a_known_blob_is_not_sent_again(http):
    name = put(http, b"0123456789")
    tag = http.get(f"/v1/blobs/{name}").headers["etag"]
    assert tag == f'"{name}"'
    assert http.get(f"/v1/blobs/{name}", headers={"If-None-Match": tag}).status == 304
    part = http.get(f"/v1/blobs/{name}", headers={"Range": "bytes=2-3", "If-Range": tag})
    assert part.status == 206 and part.body == b"23"
    assert http.get(f"/v1/blobs/{name}", headers={"Range": "bytes=2-3", "If-Range": '"x"'}).status == 200


@pytest.mark.both
def test_a_token_learns_nothing_of_the_blobs_of_others(http, server):
    data = os.urandom(1000)
    name = put(http, data)
    with server.client("other") as other:
        wanted, never = (other.get(f"/v1/blobs/{one}") for one in (name, "0" * 64))
        assert (wanted.status, wanted.body) == (never.status, never.body) and wanted.status == 404
        assert other.delete(f"/v1/blobs/{name}").status == 404
        refused = other.post("/v1/run", {"code": "1", "files": [{"path": "x", "blob": f"sha256:{name}"}]})
        assert refused.status == 400 and refused.error["field"] == "files[0].blob"
        first, second = other.put("/v1/blobs", data), http.put("/v1/blobs", os.urandom(1000))
        assert first.status == second.status == 201 and set(first.json) == set(second.json)
        assert other.get(f"/v1/blobs/{name}").body == data
        assert http.delete(f"/v1/blobs/{name}").status == 204  # gives up its own part alone
        assert http.get(f"/v1/blobs/{name}").status == 404
        assert other.get(f"/v1/blobs/{name}").body == data
    with server.client("boss", "--operator") as boss:
        assert boss.get(f"/v1/blobs/{name}").body == data


def test_a_blob_larger_than_the_inputs_of_a_run_is_refused(http):
    name = put(http, b"x" * 2000)
    answer = http.post("/v1/run", {"code": "1", "limits": {"input_bytes": 1000},
                                   "files": [{"path": "x", "blob": f"sha256:{name}"}]})
    assert answer.status == 400 and answer.error["bound"] == "limits.input_bytes"


@pytest.mark.parametrize("name", ["abc", "..", "%2E%2E%2Ftmp", "0" * 63, "A" * 64, "sha256:", "tmp", "k_a"])
def test_names_that_are_no_sums_reach_nothing(http, name):
    assert http.get(f"/v1/blobs/{name}").status == 404


def test_the_quota_of_stored_bytes_holds(server):
    with server.client("poor", "--stored", "3M") as poor:
        first = put(poor, b"a" * (2 * MIB))
        for body in (b"b" * (2 * MIB), (b"b" * MIB for _ in range(2))):
            refused = poor.put("/v1/blobs", body)
            assert refused.status == 429 and refused.error["kind"] == "quota"
        put(poor, b"c" * (MIB // 2))
        assert poor.delete(f"/v1/blobs/{first}").status == 204
        put(poor, b"b" * (2 * MIB))


# --- a server of its own, whose state folder is on a disk of its own ---

DISK = 12 * MIB


class Own:
    def __init__(self, cupel, contract, place, state):
        self.cupel, self.contract, self.state, self.env = cupel, contract, state, {"CUPEL_STATE": str(state)}
        self.engine = Watched(cupel, engine.socket_path(place, cupel), LISTEN, env=self.env)

    def __enter__(self):
        self.engine.__enter__()
        self.server = Server(self.engine, self.contract)
        return self

    def __exit__(self, *args):
        self.engine.__exit__(*args)

    def client(self, name):
        self.cupel.run(["token", "rm", name], env=self.env)
        done = self.cupel.run(["token", "new", name], env=self.env)
        assert done.returncode == 0, done.stderr
        one = self.server.nobody()
        one.token = done.stdout.strip()
        return one

    def coming(self):
        """Files of bytes on their way in."""
        return os.listdir(f"{self.state}/blobs/tmp")

    def stored(self):
        return sum(os.path.getsize(f"{where}/{name}") for where, _, names in os.walk(f"{self.state}/blobs")
                   for name in names)


@pytest.fixture
def disk(cupel, tmp_path):
    """A small disk as a state folder."""
    if os.geteuid() != 0 or cupel.switch:
        pytest.skip("only root can mount a small disk")
    state = tmp_path / "disk"
    state.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=777", "tmpfs", state], check=True)
    yield state
    subprocess.run(["umount", state], check=True)


def test_a_full_and_a_read_only_disk_are_told_and_leave_nothing(cupel, contract, place, disk):
    with Own(cupel, contract, place, disk) as own, own.client("one") as http:
        kept = put(http, b"a" * MIB)
        before = own.stored()
        full = http.put("/v1/blobs", (b"b" * MIB for _ in range(16)))
        assert full.status == 503 and full.error["kind"] == "busy" and "full" in full.error["hint"], full
        assert host.wait_until(lambda: own.coming() == [], 10) and own.stored() == before
        put(http, b"c" * MIB)  # there is room again
        secret = http.token
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    with Own(cupel, contract, place, disk) as own, own.server.nobody() as http:
        http.token = secret
        refused = http.put("/v1/blobs", b"d" * MIB)
        assert refused.status == 500 and refused.error["kind"] == "host" and "read-only" in refused.error["hint"]
        assert http.get(f"/v1/blobs/{kept}").body == b"a" * MIB
        unrecorded = http.post("/v1/run", {"code": "print(1)"})
        assert unrecorded.status == 500 and "writable" in unrecorded.error["hint"], unrecorded
        subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
        put(http, b"d" * MIB)
        assert host.wait_until(lambda: http.post("/v1/run", {"code": "print(1)"}).status == 200, 20)


@pytest.mark.full
def test_files_that_do_not_fit_the_disk_are_not_kept_and_the_session_ends(cupel, contract, place, disk):
    with Own(cupel, contract, place, disk) as own, own.client("one") as http:
        one = http.session(ttl_s=1)
        assert http.put(f"/v1/sessions/{one}/files/a", b"x" * (2 * DISK)).status == 201
        assert host.wait_until(lambda: http.get(f"/v1/sessions/{one}").json["status"] == "ended", 10)
        assert host.wait_until(lambda: "files lost" in own.engine.told(), 20)
        assert http.get(f"/v1/sessions/{one}/files").status == 404
        assert host.wait_until(lambda: os.listdir(f"{own.state}/shelf") == ["tmp"] and
                               os.listdir(f"{own.state}/shelf/tmp") == [], 10)


@pytest.mark.full
def test_clients_that_go_and_engines_that_are_killed_leave_nothing(cupel, contract, place):
    state = place.fresh("state", 0o777)
    with Own(cupel, contract, place, state) as own, own.client("one") as http:
        kept = put(http, b"a" * MIB)
        wire = http.open()
        wire.send("PUT", "/v1/blobs", {**http.headers(), "Content-Length": str(8 * MIB)})
        wire.sock.sendall(b"x" * 4 * MIB)
        assert host.wait_until(lambda: len(own.coming()) == 1, 10)
        wire.close()
        assert host.wait_until(lambda: own.coming() == [], 10)
        wire = http.open()
        wire.send("PUT", "/v1/blobs", {**http.headers(), "Content-Length": str(8 * MIB)})
        wire.sock.sendall(b"x" * 4 * MIB)
        assert host.wait_until(lambda: len(own.coming()) == 1, 10)
        own.engine.ends_with = None
        own.engine.process.kill()
        own.engine.process.wait()
        wire.close()
        secret = http.token
    with Own(cupel, contract, place, state) as again, again.server.nobody() as http:
        http.token = secret
        assert again.coming() == []
        assert http.get(f"/v1/blobs/{kept}").body == b"a" * MIB
