"""The files of sessions over HTTP: both ways in parts, ranges, clients that go, and what stays after a session ends."""
import gzip
import os
import re
from pathlib import Path

import pytest

import host

PART = 1 << 20


@pytest.fixture
def session(http):
    one = http.session()
    yield one
    http.delete(f"/v1/sessions/{one}")


def at(session, path=""):
    return f"/v1/sessions/{session}/files" + (f"/{path}" if path else "")


def names(http, session):
    answer = http.get(at(session))
    assert answer.status == 200 and answer.json["cut"] is False
    return {row["path"]: row for row in answer.json["files"]}


@pytest.mark.both
def test_a_file_goes_in_and_comes_out(http, session):
    data = os.urandom(3 * PART + 17)
    answer = http.put(at(session, "d/a%20b.csv"), data)
    assert answer.status == 201
    assert answer.json == {"path": "d/a b.csv", "size_bytes": len(data), "mime": "text/csv"}
    assert names(http, session)["d/a b.csv"] == {"path": "d/a b.csv", "type": "file", "size_bytes": len(data)}
    got = http.get(at(session, "d/a%20b.csv"))
    assert got.status == 200 and got.body == data and got.mime == "text/csv"
    assert http.cell(session, "import os; os.path.getsize('d/a b.csv')")["text"] == str(len(data))
    assert http.put(at(session, "d/a%20b.csv"), b"new").status == 200  # it replaces a file
    assert http.get(at(session, "d/a%20b.csv")).body == b"new"
    assert http.delete(at(session, "d/a%20b.csv")).status == 204
    gone = http.get(at(session, "d/a%20b.csv"))
    assert gone.status == 404 and gone.error["kind"] == "absent"


@pytest.mark.parametrize("size", [0, 1, PART - 1, PART, PART + 1, 2 * PART])
def test_a_file_of_any_size_is_whole(http, session, size):
    data = os.urandom(size)
    assert http.put(at(session, "a"), iter([data[:7], data[7:]]) if size > 8 else data).status == 201
    assert http.get(at(session, "a")).body == data


def test_a_gzip_upload_is_stored_unpacked(http, session):

    data = b"the same line\n" * 200_000
    answer = http.put(at(session, "a.txt"), gzip.compress(data), headers={"Content-Encoding": "gzip"})
    assert answer.status == 201 and answer.json["size_bytes"] == len(data)
    assert http.get(at(session, "a.txt")).body == data


def test_hostile_content_is_an_attachment(http, session):
    http.put(at(session, "d/x%22%0d%0ay%C3%A9.html"), b"<script>alert(1)</script>")
    headers = http.get(at(session, "d/x%22%0d%0ay%C3%A9.html")).headers
    assert headers["content-disposition"] == "attachment; filename*=UTF-8''x%22%0D%0Ay%C3%A9.html"
    assert headers["x-content-type-options"] == "nosniff"


RANGES = [  # header, status, bytes of 0..9, Content-Range
    ("bytes=0-3", 206, b"0123", "bytes 0-3/10"), ("bytes=7-", 206, b"789", "bytes 7-9/10"),
    ("bytes=-2", 206, b"89", "bytes 8-9/10"), ("bytes=-99", 206, b"0123456789", "bytes 0-9/10"),
    ("bytes=8-99", 206, b"89", "bytes 8-9/10"), ("bytes=9-9", 206, b"9", "bytes 9-9/10"),
    ("bytes=10-", 416, None, "bytes */10"), ("bytes=99-100", 416, None, "bytes */10"),
    ("bytes=-0", 416, None, "bytes */10"), ("bytes=9223372036854775807-", 416, None, "bytes */10"),
    ("bytes=0-1,3-4", 200, b"0123456789", None), ("bytes=3-1", 200, b"0123456789", None),
    ("lines=0-1", 200, b"0123456789", None), ("bytes=a-b", 200, b"0123456789", None),
    ("bytes=", 200, b"0123456789", None), ("bytes=-", 200, b"0123456789", None),
    ("bytes=99999999999999999999-", 200, b"0123456789", None), ("bytes=0x1-2", 200, b"0123456789", None),
]


@pytest.mark.parametrize("form", ["file", "blob"])
def test_ranges_are_those_of_the_rfc(http, session, form):
    if form == "blob":
        path = http.put("/v1/blobs", b"0123456789").headers["location"]
    else:
        path = at(session, "a")
        http.put(path, b"0123456789")
    for header, status, body, said in RANGES:
        answer = http.get(path, headers={"Range": header})
        assert (answer.status, answer.headers.get("content-range")) == (status, said), (header, answer)
        if status == 416:
            assert answer.error["kind"] == "range"
        else:
            assert answer.body == body and answer.headers["accept-ranges"] == "bytes", header


def test_a_range_across_parts_of_a_large_file(http, session):
    data = os.urandom(3 * PART)
    http.put(at(session, "a"), data)
    for first, last in ((PART - 1, PART), (5, 3 * PART - 2), (2 * PART, 3 * PART - 1)):
        answer = http.get(at(session, "a"), headers={"Range": f"bytes={first}-{last}"})
        assert answer.status == 206 and answer.body == data[first:last + 1]
    assert http.get(at(session, "a"), headers={"Range": f"bytes=-{PART + 3}"}).body == data[-PART - 3:]


def test_a_range_that_depends_on_a_validator_is_the_whole(http, session):
    http.put(at(session, "a"), b"0123456789")
    answer = http.get(at(session, "a"), headers={"Range": "bytes=0-1", "If-Range": '"x"'})
    assert answer.status == 200 and len(answer.body) == 10


def test_head_says_the_size(http, session):
    http.put(at(session, "a.csv"), b"x" * (PART + 5))
    answer = http.ask("HEAD", at(session, "a.csv"))
    assert answer.status == 200 and answer.headers["content-length"] == str(PART + 5) and answer.body == b""


def test_paths_reach_nothing_else(http, session):
    for path in ("..%2Fa", "%2Fetc%2Fpasswd", "a%2F..%2Fb", ".cupel/x", "a%00b", "x" * 256, "a//b", "a/./b", "a/"):
        for method in ("GET", "PUT", "DELETE"):
            answer = http.ask(method, at(session, path), body=b"x" if method == "PUT" else None)
            assert (answer.status, answer.error["kind"]) in ((400, "input"), (404, "absent")), (method, answer)
    assert names(http, session) == {}


def test_links_are_not_followed_and_folders_are_no_files(http, session):
    http.cell(session, "import os; os.symlink('/etc/passwd', 'l'); os.symlink('/etc', 'd'); os.mkdir('e')")
    assert [http.get(at(session, path)).status for path in ("l", "d/passwd", "e")] == [400, 400, 400]
    assert http.put(at(session, "d/x"), b"x").status == 400
    assert http.delete(at(session, "d/hostname")).status == 404
    http.put(at(session, "e/x"), b"x")
    full = http.delete(at(session, "e"))
    assert full.status == 409 and full.error["kind"] == "conflict"
    assert [http.delete(at(session, path)).status for path in ("e/x", "e", "l")] == [204, 204, 204]


def test_a_file_that_does_not_fit_is_refused_and_leaves_nothing(http):
    one = http.session(limits={"disk_bytes": 8 << 20})
    with upload_begins(http, one, "a", 9 << 20, 0) as wire:
        announced = wire.receive()  # before a byte of it has come
        assert announced.status == 413 and announced.error["kind"] == "limit"
    unknown = http.put(at(one, "a"), (b"x" * PART for _ in range(9)))
    assert unknown.status == 413
    http.put(at(one, "b"), b"y" * (6 << 20))
    full = http.put(at(one, "a"), b"x" * (7 << 20))
    assert full.status == 413 and full.error["field"] == "path", full
    assert list(names(http, one)) == ["b"]
    http.delete(at(one, "b"))
    assert http.put(at(one, "a"), b"x" * (7 << 20)).status == 201
    http.delete(f"/v1/sessions/{one}")


def upload_begins(http, session, path, size, sent):
    """A connection on which a part of a body has gone."""
    wire = http.open()
    head = {**http.headers(), "Content-Length": str(size)}
    wire.send("PUT", at(session, path), head)
    wire.sock.sendall(b"x" * sent)
    return wire


def free_bytes(http, session):
    return int(http.cell(session, "import os; s = os.statvfs('/workspace'); s.f_bfree * s.f_bsize")["text"])


def test_a_client_that_goes_leaves_nothing_behind(http, session):
    before = free_bytes(http, session)
    wire = upload_begins(http, session, "a", 32 << 20, 12 << 20)
    assert host.wait_until(lambda: free_bytes(http, session) < before - (4 << 20), 20)
    wire.close()
    assert host.wait_until(lambda: free_bytes(http, session) > before - (1 << 20), 20)
    assert names(http, session) == {}


def test_a_reader_that_goes_or_is_slow_disturbs_nobody(http, session):
    http.put(at(session, "a"), b"x" * (48 << 20))
    wires = []
    for _ in range(4):
        wire = http.open()
        wire.send("GET", at(session, "a"), http.headers())
        assert wire.head()[0] == 200
        wires.append(wire)
    assert http.cell(session, "6 * 7")["text"] == "42"
    for wire in wires[:2]:
        wire.close()
    assert http.cell(session, "6 * 7")["text"] == "42"
    assert b"".join(wires[2].pieces(200, {"content-length": str(48 << 20)})) == b"x" * (48 << 20)
    for wire in wires[2:]:
        wire.close()


def test_a_file_that_changes_while_it_is_sent_is_cut_not_mixed(http, session):
    http.put(at(session, "a"), b"1" * (32 << 20))
    with http.open() as wire:
        wire.send("GET", at(session, "a"), http.headers())
        status, headers = wire.head()
        http.put(at(session, "a"), b"2" * (32 << 20))
        got = b""
        with pytest.raises(EOFError):
            for piece in wire.pieces(status, headers):
                got += piece
        assert status == 200 and set(got) == {ord("1")}


def test_a_cell_runs_between_the_parts_of_an_upload(http, session):
    with upload_begins(http, session, "a", 4 << 20, 3 << 20) as wire:
        assert http.cell(session, "import os; os.path.exists('a')")["text"] == "False"
        wire.sock.sendall(b"x" * (1 << 20))
        assert wire.receive().status == 201
    assert http.cell(session, "os.path.getsize('a')")["text"] == str(4 << 20)


def test_two_uploads_to_one_path_leave_one_whole_file(http, session):
    first = upload_begins(http, session, "a", 4 << 20, 3 << 20)
    host.wait_until(lambda: names(http, session) == {}, 1)
    assert http.put(at(session, "a"), b"y" * (3 << 20)).status == 201
    first.sock.sendall(b"x" * (1 << 20))
    answer = first.receive()
    http.contract.check("PUT", at(session, "a"), answer)
    assert answer.status == 409 and answer.error["kind"] == "conflict" if answer.status != 200 else True
    first.close()
    assert len(set(http.get(at(session, "a")).body)) == 1


def test_files_of_another_token_do_not_exist(http, server, session):
    http.put(at(session, "a"), b"secret")
    nobody = "s_" + "0" * 24
    with server.client("other") as other:
        for method, path in (("GET", ""), ("GET", "a"), ("PUT", "a"), ("DELETE", "a")):
            body = b"x" if method == "PUT" else None
            mine, none = (other.ask(method, at(one, path), body=body) for one in (session, nobody))
            assert mine.status == none.status == 404
            assert mine.body.replace(session.encode(), b"") == none.body.replace(nobody.encode(), b"")
    assert http.get(at(session, "a")).body == b"secret"


def rss_kb(server):
    text = Path(f"/proc/{server.engine.process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", text)[1])


def upload_large(http, session, size):
    """Chunks of one buffer: the client's own memory does not matter."""
    chunk = os.urandom(PART)
    answer = http.put(at(session, "large"), (chunk for _ in range(size // PART)))
    assert answer.status == 201 and answer.json["size_bytes"] == size, answer
    return chunk


def grows_by(http, server, size, limits):
    one = http.session(limits=limits, undo_levels=0)
    upload_large(http, one, 8 * PART)  # buffers of connections and parts are there by now
    http.delete(at(one, "large"))
    before, most = rss_kb(server), 0
    upload_large(http, one, size)
    most = rss_kb(server)
    with http.open() as wire:
        wire.send("GET", at(one, "large"), http.headers())
        status, headers = wire.head()
        assert sum(len(piece) for piece in wire.pieces(status, headers)) == size
    most = max(most, rss_kb(server))
    http.delete(f"/v1/sessions/{one}")
    return most - before


def test_the_server_does_not_grow_with_a_file(http, server):
    assert grows_by(http, server, 64 * PART, {"disk_bytes": 160 << 20, "memory_bytes": 512 << 20}) <= 8 << 10


@pytest.mark.full
@pytest.mark.alone
def test_the_server_does_not_grow_with_a_file_of_a_gigabyte(http, server):
    size = 1 << 30
    assert grows_by(http, server, size, {"disk_bytes": size + (64 << 20), "memory_bytes": 3 << 30}) <= 8 << 10


# --- after a session's time ---

def wait_until_kept(http, session):
    """To look at its files would be a use of the session, and it would live on."""
    assert host.wait_until(lambda: http.get(f"/v1/sessions/{session}").json["status"] == "ended", 10)
    assert host.wait_until(lambda: "kept_until" in http.get(at(session)).json, 10)


def expired(http, files, **fields):
    """A session whose time is over, with these files."""
    one = http.session(ttl_s=1, **fields)
    for path, data in files.items():
        assert http.put(at(one, path), data).status == 201
    wait_until_kept(http, one)
    return one


@pytest.mark.both
def test_the_files_of_an_expired_session_stay(http):
    data = os.urandom(PART + 3)
    one = expired(http, {"d/a.bin": data, "empty": b"", "é.txt".encode().hex(): b"text"})
    assert http.get(f"/v1/sessions/{one}").json["status"] == "ended"
    assert http.get(at(one, "d/a.bin")).body == data
    part = http.get(at(one, "d/a.bin"), headers={"Range": "bytes=5-9"})
    assert part.status == 206 and part.body == data[5:10]
    assert http.get(at(one, "empty")).body == b""
    for path in ("d", "none", "d/a.bin/x"):
        assert http.get(at(one, path)).status == 404
    assert http.post(f"/v1/sessions/{one}/run", {"code": "1"}).status == 404
    assert http.put(at(one, "new"), b"x").status == 404 and http.delete(at(one, "empty")).status == 404


def test_kept_files_go_with_their_session(http):
    one = expired(http, {"a": b"x"})
    assert http.delete(f"/v1/sessions/{one}").status == 204
    assert http.get(at(one)).status == 404 and http.get(at(one, "a")).status == 404


def test_kept_files_belong_to_their_token(http, server):
    one = expired(http, {"a": b"secret"})
    with server.client("other") as other:
        assert other.get(at(one)).status == other.get(at(one, "a")).status == 404
    with server.client("boss", "--operator") as boss:
        assert boss.get(at(one, "a")).body == b"secret"


def test_a_session_that_is_ended_on_request_keeps_nothing(http):
    one = http.session()
    http.put(at(one, "a"), b"x")
    http.delete(f"/v1/sessions/{one}")
    assert http.get(at(one, "a")).status == 404 and http.get(at(one)).status == 404


def test_a_life_that_ends_during_a_cell_keeps_the_files(http):
    one = http.session(life_s=2)
    http.put(at(one, "a"), b"x")
    run = http.begin({"code": "open('b', 'w').write('y'); import time; time.sleep(60)", "limits": {"timeout_s": 100}},
                     f"/v1/sessions/{one}/run")
    end = http.events(run)[-1]
    assert end["event"] == "end"
    wait_until_kept(http, one)
    assert http.get(at(one, "a")).body == b"x"


def test_names_that_code_chose_are_no_names_on_our_disk(http):
    one = http.session(ttl_s=1)
    http.cell(one, "import os\nos.makedirs('x/y')\nfor n in ('about', '0', '..x', 'a\\nb', '-rf', 'x/y/z'):\n"
                   "    open(n, 'w').write(n)\nopen(b'\\xff', 'w').write('no text')\nos.symlink('/etc/passwd', 'l')")
    wait_until_kept(http, one)
    for name in ("about", "0", "..x", "a%0ab", "-rf", "x/y/z"):
        answer = http.get(at(one, name))
        assert answer.status == 200 and answer.body.decode() == name.replace("%0a", "\n"), name
    assert http.get(at(one, "l")).status == 404
