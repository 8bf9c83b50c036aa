"""Files of a session and blobs, as the contract has them: each status once. Their own tests go deeper."""
import hashlib

import pytest

TEXT = b"0123456789"


@pytest.fixture
def session(http):
    one = http.session()
    yield one
    http.delete(f"/v1/sessions/{one}")


def announce(http, server, path, length):
    """The answer to a body of which only the length comes."""
    with server.wire() as wire:
        wire.send("PUT", path, {**http.headers(), "Content-Length": length})
        answer = wire.receive()
    http.contract.check("PUT", path, answer)
    return answer


def check_reads(http, path):
    whole = http.get(path)
    assert whole.status == 200 and whole.body == TEXT
    part = http.get(path, headers={"Range": "bytes=2-4"})
    assert part.status == 206 and part.body == b"234" and part.headers["content-range"] == "bytes 2-4/10"
    beyond = http.get(path, headers={"Range": "bytes=20-"})
    assert beyond.status == 416 and beyond.error["kind"] == "range"
    assert http.ask("HEAD", path).status == 200


def test_a_file_goes_in_and_comes_out_in_parts(http, session):
    path = f"/v1/sessions/{session}/files/a/b.txt"
    new = http.put(path, b"old")
    assert new.status == 201 and new.json == {"path": "a/b.txt", "size_bytes": 3, "mime": "text/plain"}
    assert http.put(path, [TEXT[:3], TEXT[3:]]).status == 200
    check_reads(http, path)
    listed = http.get(f"/v1/sessions/{session}/files").json
    assert {"path": "a/b.txt", "type": "file", "size_bytes": 10} in listed["files"] and not listed["cut"]
    assert http.cell(session, "print(open('a/b.txt').read())")["stdout"] == "0123456789\n"
    assert http.delete(path).status == 204
    assert http.get(path).status == 404


def test_a_file_that_cannot_fit_is_refused_before_it_comes(http, server, session):
    answer = announce(http, server, f"/v1/sessions/{session}/files/big", 1 << 40)
    assert answer.status == 413 and answer.error["kind"] == "limit"


def test_a_blob_is_stored_once_and_named_in_requests(http):
    stored = http.put("/v1/blobs", TEXT)
    name = f"sha256:{hashlib.sha256(TEXT).hexdigest()}"
    assert stored.status == 201 and stored.json == {"blob": name, "size_bytes": 10}
    assert http.put("/v1/blobs", TEXT).json == stored.json
    check_reads(http, f"/v1/blobs/{name}")
    etag = http.get(f"/v1/blobs/{name}").headers["etag"]
    assert http.get(f"/v1/blobs/{name}", headers={"If-None-Match": etag}).status == 304
    result = http.run({"code": "print(open('in').read())", "files": [{"path": "in", "blob": name}]})
    assert result["stdout"] == "0123456789\n"
    assert http.delete(f"/v1/blobs/{name}").status == 204
    assert http.get(f"/v1/blobs/{name}").status == 404


def test_a_blob_with_another_sum_is_refused(http):
    answer = http.put(f"/v1/blobs?sha256={'0' * 64}", TEXT)
    assert answer.status == 400 and answer.error["kind"] == "input"


def test_a_blob_that_is_too_long_is_refused_before_it_comes(http, server):
    assert announce(http, server, "/v1/blobs", 1 << 50).status == 413


def test_a_token_stores_no_more_than_it_may(server):
    with server.client("poor", "--stored", "5") as client:
        answer = client.put("/v1/blobs", TEXT)
        assert answer.status == 429 and answer.error["kind"] == "quota"
