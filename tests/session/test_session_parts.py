"""Parts of a session's files, and files that are removed (docs/protocol.md, "A file in parts")."""
import base64
import hashlib
import os

import pytest

from sessions import Refused, Session

PART = 64 << 10  # bytes that the porter reads at once


@pytest.fixture
def session(engines, who):
    with engines[who].client() as client:
        made = Session(client)
        yield made
        made.end()


def part(session, path, **fields):
    answer, events = session.call({"op": "session", "do": "get", "session": session.id, "path": path, **fields})
    data = b"".join(base64.b64decode(event["base64"]) for event in events)
    assert all(event["size_bytes"] == len(data) for event in events)
    assert all(event["sha256"] == hashlib.sha256(data).hexdigest() for event in events)
    assert answer["file"]["length"] == len(data) and answer["file"]["offset"] == fields.get("offset", 0)
    assert "sha256" not in answer["file"]
    return data, answer["file"]


def put_large(session, size):
    data = os.urandom(size)
    session.ask("put", files=[{"path": "large", "base64": base64.b64encode(data).decode()}])
    return data


@pytest.mark.both
def test_a_part_of_a_file_is_what_was_asked_for(session):
    size = 5 * PART + 17
    data = put_large(session, size)
    for offset in (0, 1, PART - 1, PART, PART + 1, size - 1, size, size + 1, 1 << 62):
        for length in (1, PART - 1, PART, PART + 1, 4 * PART, 4 * PART + 1, size, 1 << 30):
            got, told = part(session, "large", offset=offset, length=length)
            assert got == data[offset:offset + length], (offset, length)
            assert told["size_bytes"] == size and told["mime"] == "application/octet-stream"


def test_a_part_without_length_goes_to_the_end(session):
    data = put_large(session, 3 * PART)
    assert part(session, "large", offset=PART + 3)[0] == data[PART + 3:]
    assert part(session, "large", offset=0)[0] == data


def test_a_whole_read_has_its_sum_and_a_part_has_none(session):
    data = put_large(session, PART + 1)
    answer = session.ask("get", path="large")["file"]
    assert answer["sha256"] == hashlib.sha256(data).hexdigest() and "offset" not in answer


def test_parts_of_a_changed_file_have_another_version(session):
    session.put(a="one")
    first = part(session, "a", length=1)[1]["version"]
    assert part(session, "a", offset=1, length=1)[1]["version"] == first
    session.put(a="two")
    second = part(session, "a", length=1)[1]["version"]
    assert second != first
    session.run("import time; time.sleep(0.02); open('a', 'w').write('owt')")
    assert part(session, "a", length=1)[1]["version"] not in (first, second)


def test_a_part_of_a_large_file_leaves_no_memory_behind(engines, who):
    """The porter closes the file: a removed one that is held open would keep its room on the disk."""
    free = "import os; s = os.statvfs('/workspace'); s.f_bfree * s.f_bsize"
    with engines[who].client() as client:
        session = Session(client, undo_levels=0)
        before = int(session.value(free))
        session.run("with open('large', 'wb') as f: f.write(b'x' * (24 << 20))")
        assert part(session, "large", offset=1 << 20, length=5 * PART)[0] == b"x" * 5 * PART
        session.ask("remove", path="large")
        session.wait_until_idle()
        assert int(session.value(free)) > before - (8 << 20)
        session.end()


@pytest.mark.both
def test_a_file_a_link_and_an_empty_folder_are_removed(session):
    session.run("import os; os.makedirs('d/e'); open('d/f', 'w').write('x'); os.symlink('f', 'd/l')")
    with pytest.raises(Refused) as caught:
        session.ask("remove", path="d")
    assert caught.value.error["kind"] == "conflict"
    for path in ("d/f", "/workspace/d/l", "d/e", "d"):
        assert session.ask("remove", path=path)["session"]["status"] in ("idle", "busy")
    assert session.files() == {}


@pytest.mark.sample(short=4, full=1)
@pytest.mark.parametrize("path, kind", [
    ("none", "absent"), ("a/b", "absent"), ("none/b", "absent"), ("out/f", "absent"), ("../a", "input"),
    ("/etc/passwd", "input"), ("a/../a", "input"), (".cupel/x", "input"), (".", "input"), ("a/", "input"),
    ("x" * 256, "input"),
])
def test_removing_reaches_nothing_else(session, path, kind):
    session.run("import os; open('a', 'w').close(); open('/tmp/f', 'w').close(); os.symlink('/tmp', 'out')")
    with pytest.raises(Refused) as caught:
        session.ask("remove", path=path)
    assert caught.value.error["kind"] == kind
    assert session.value("import os; os.path.exists('a') and os.path.exists('/tmp/f')") == "True"


def test_a_removed_file_stays_removed_after_a_rollback(session):
    session.put(a="1", b="2")
    session.run("x = 1")
    session.ask("remove", path="a")
    session.run("open('c', 'w').close(); 1 / 0", on_error="rollback")
    assert sorted(session.files()) == ["b"]


def test_a_dropped_upload_frees_its_room_and_no_other(session):
    def begin(path):
        file = {"path": path, "base64": base64.b64encode(b"x" * (8 << 20)).decode()}
        return session.ask("put", files=[file], more=True)["upload"]
    free = "import os; s = os.statvfs('/workspace'); s.f_bfree * s.f_bsize"
    one, other = begin("one"), begin("other")
    before = int(session.value(free))
    session.ask("drop", upload=one)
    assert int(session.value(free)) >= before + (7 << 20)
    with pytest.raises(Refused) as caught:
        session.ask("put", files=[{"path": "one", "text": ""}], upload=one)
    assert caught.value.error["field"] == "upload"
    session.ask("put", files=[{"path": "other", "text": "y"}], upload=other)
    assert session.files()["other"]["size_bytes"] == (8 << 20) + 1
    session.ask("drop", upload=one)  # of an unknown number nothing is said
