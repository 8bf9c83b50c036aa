"""Hostile HTTP on raw sockets: each is refused or its connection ends, nothing behind it is answered as a request of
its own, the service does not grow, and the next honest request works."""
import contextlib
import gzip
import json
import re
import resource
import socket
import threading
import time

import pytest
import wild

import host
from engine import socket_path

WAIT_S = 30
BODY = '{"code":"print(1)"}'
CHUNKS = f"{len(BODY):x}\r\n{BODY}\r\n0\r\n\r\n"
NEXT = "GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n"  # answered with 200, were it taken for a request
LENGTH = f"Content-Length: {len(BODY)}\r\n"
CHUNKED = "Transfer-Encoding: chunked\r\n"
MIB_KIB = 1024


class Seen:
    """What a connection gave, until its end or until `enough`."""

    def __init__(self, address, pieces, enough=None, half=False):
        self.bytes, self.ended = b"", False
        with socket.create_connection(address, WAIT_S) as sock:
            with contextlib.suppress(OSError):
                for piece in pieces:
                    sock.sendall(piece)
                if half:
                    sock.shutdown(socket.SHUT_WR)
            until = time.monotonic() + WAIT_S * host.slowness()
            while not (enough and enough(self)):
                assert time.monotonic() < until, f"no end: {self.bytes[:500]}"
                try:
                    part = sock.recv(1 << 16)
                except ConnectionError:
                    part = b""
                if not part:
                    self.ended = True
                    break
                self.bytes += part

    @property
    def statuses(self):
        return [int(status) for status in re.findall(rb"HTTP/1\.[01] (\d\d\d) ", self.bytes)]

    def error(self):
        return json.loads(self.bytes.split(b"\r\n\r\n", 1)[1])["error"]


def answered(seen):
    """One whole response is there."""
    head, _, body = seen.bytes.partition(b"\r\n\r\n")
    found = re.search(rb"(?i)content-length: (\d+)", head)
    return bool(found) and len(body) >= int(found[1])


def lines(server, head, body="", line="POST /v1/run HTTP/1.1", token=True, name="localhost"):
    first = f"{line}\r\n" + (f"Host: {name}\r\n" if name is not None else "")
    if token:
        first += f"Authorization: Bearer {server.token()}\r\n"
    return (first + head + "\r\n" + body).encode("latin-1")


def post(server, body, head=""):
    body = body if isinstance(body, bytes) else body.encode()
    return lines(server, f"{head}Content-Length: {len(body)}\r\n") + body


@pytest.fixture(autouse=True)
def honest(server):
    """The service lives, and the next request is answered."""
    yield
    assert server.engine.process.poll() is None, server.engine.told()[-2000:]
    with server.wire() as wire:
        wire.send("GET", "/v1/health", {"Host": "localhost"})
        assert wire.receive().status == 200


def rss_kib(server):
    with open(f"/proc/{server.engine.process.pid}/status") as file:
        return int(re.search(r"VmRSS:\s*(\d+)", file.read())[1])


# ---- where a request ends ----
FRAMES = {
    "length and chunks": (LENGTH + CHUNKED, CHUNKS),
    "chunks and no length": (CHUNKED + "Content-Length: 0\r\n", CHUNKS),
    "two lengths": (LENGTH + "Content-Length: 5\r\n", BODY), "the same length twice": (LENGTH * 2, BODY),
    "a list of lengths": (f"Content-Length: {len(BODY)}, {len(BODY)}\r\n", BODY),
    "a length with a sign": (f"Content-Length: +{len(BODY)}\r\n", BODY),
    "a negative length": ("Content-Length: -1\r\n", BODY),
    "a hexadecimal length": ("Content-Length: 0x13\r\n", BODY), "an empty length": ("Content-Length:\r\n", BODY),
    "a length of words": ("Content-Length: ten\r\n", BODY), "a length in two parts": ("Content-Length: 1 9\r\n", BODY),
    "a length beyond 64 bits": ("Content-Length: 18446744073709551616\r\n", BODY),
    "a length of 64 bits": ("Content-Length: 9223372036854775807\r\n", BODY),
    "a length of a terabyte": ("Content-Length: 1099511627776\r\n", BODY),
    "gzip before chunks": ("Transfer-Encoding: gzip, chunked\r\n", CHUNKS),
    "identity": ("Transfer-Encoding: identity\r\n", BODY),
    "almost chunked": ("Transfer-Encoding: xchunked\r\n", CHUNKS),
    "chunked after a tab": ("Transfer-Encoding: \x0bchunked\r\n", CHUNKS), "chunked twice": (CHUNKED * 2, CHUNKS),
    "chunked and identity": (CHUNKED + "Transfer-Encoding: identity\r\n", CHUNKS),
    "a space before the colon": ("Transfer-Encoding : chunked\r\n", CHUNKS),
    "a space before the colon of the length": (f"Content-Length : {len(BODY)}\r\n", BODY),
    "a spaced encoding beside a length": ("Transfer-Encoding : chunked\r\n" + LENGTH, BODY),
    "a folded encoding": ("Transfer-Encoding:\r\n chunked\r\n", CHUNKS),
    "a folded length": ("Content-Length: 1\r\n 9\r\n", BODY),
    "an encoding in a fold": ("X: a\r\n Transfer-Encoding: chunked\r\n" + LENGTH, BODY),
    "an encoding after a lone CR": ("X: a\rTransfer-Encoding: chunked\r\n" + LENGTH, BODY),
    "a name with NUL": ("X\0Y: b\r\n" + LENGTH, BODY), "a line without a colon": ("Nonsense\r\n" + LENGTH, BODY),
    "a negative chunk": (CHUNKED, "-1\r\nabc\r\n0\r\n\r\n"),
    "a chunk of words": (CHUNKED, f"zz\r\n{BODY}\r\n0\r\n\r\n"),
    "a chunk beyond 64 bits": (CHUNKED, f"fffffffffffffffff\r\n{BODY}\r\n0\r\n\r\n"),
    "a chunk with 0x": (CHUNKED, f"0x13\r\n{BODY}\r\n0\r\n\r\n"),
    "a chunk after a space": (CHUNKED, f" 13\r\n{BODY}\r\n0\r\n\r\n"),
    "a chunk longer than it says": (CHUNKED, f"{len(BODY):x}\r\n{BODY}XX0\r\n\r\n"),
    "a flood of trailers": (CHUNKED, CHUNKS[:-2] + "".join(f"X-{i}: y\r\n" for i in range(5000)) + "\r\n"),
    "a flood of headers": ("".join(f"X-{i}: y\r\n" for i in range(20000)) + LENGTH, BODY),
    "a huge header": ("X: " + "y" * 200000 + "\r\n" + LENGTH, BODY),
}


@pytest.mark.parametrize("name", FRAMES)
def test_a_doubtful_frame_ends_its_connection_and_nothing_behind_it_is_served(server, name):
    head, body = FRAMES[name]
    seen = Seen(server.address, [lines(server, head, body + NEXT)])
    assert seen.ended and seen.statuses and all(400 <= status < 500 for status in seen.statuses), seen.bytes


def test_chunks_are_for_the_version_that_has_them(server):
    seen = Seen(server.address, [lines(server, CHUNKED, CHUNKS + NEXT, "POST /v1/run HTTP/1.0")])
    assert seen.ended and set(seen.statuses) == {400}, seen.bytes


@pytest.mark.parametrize("head, body", [
    (CHUNKED, f"{len(BODY):x};name=value\r\n{BODY}\r\n0\r\n\r\n"), ("transfer-encoding: Chunked\r\n", CHUNKS),
    (CHUNKED, CHUNKS[:-2] + "Content-Length: 5\r\nHost: evil\r\nAuthorization: x\r\n\r\n")])
def test_extensions_and_trailers_of_chunks_say_nothing(server, head, body):
    """A good request and the one behind it."""
    seen = Seen(server.address, [lines(server, head, body + NEXT)],
                lambda seen: seen.bytes.count(b'"status":"ok"') >= 2)
    assert seen.statuses == [200, 200], seen.bytes


# ---- no HTTP that we speak ----
FOREIGN = {
    "0.9": b"GET /v1/health\r\n", "0.9 with its number": b"GET /v1/health HTTP/0.9\r\n\r\n",
    "2.0": b"GET /v1/health HTTP/2.0\r\nHost: localhost\r\n\r\n",
    "1.10": b"GET /v1/health HTTP/1.10\r\nHost: x\r\n\r\n",
    "preface of 2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)),
    "zeros": bytes(20000), "noise": bytes(range(1, 256)) * 100 + b"\r\n\r\n",
    "a huge path": b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n",
    "no host": b"GET /v1/health HTTP/1.1\r\n\r\n",
    "a space in the path": b"GET /v1/he alth HTTP/1.1\r\nHost: localhost\r\n\r\n",
}


@pytest.mark.parametrize("name", FOREIGN)
def test_what_is_no_request_is_refused_or_closed(server, name):
    seen = Seen(server.address, [FOREIGN[name]], half=True)
    assert seen.ended and all(400 <= status < 600 for status in seen.statuses), seen.bytes


@pytest.mark.parametrize("line",
                         ["CONNECT 127.0.0.1:22 HTTP/1.1", "TRACE /v1/health HTTP/1.1", "PATCH /v1/run HTTP/1.1",
                                  "get /v1/health HTTP/1.1", "OPTIONS * HTTP/1.1", "A" * 5000 + " /v1/health HTTP/1.1"])
def test_methods_that_a_path_has_not_are_refused(server, line):
    seen = Seen(server.address, [lines(server, "", line=line)], answered)
    assert seen.statuses in ([404], [405]) and seen.error()["kind"] in ("absent", "method"), seen.bytes


@pytest.mark.parametrize("head", ["Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA\r\n",
                                  "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"])
def test_no_other_protocol_is_changed_to(server, head):
    seen = Seen(server.address, [lines(server, head, line="GET /v1/health HTTP/1.1")], answered)
    assert seen.statuses == [200], seen.bytes


# ---- who asks, and from where ----
@pytest.mark.parametrize("name", ["evil.example", "evil@localhost", "localhost.evil.example", "127.0.0.1.nip.io",
                                  "localhost, evil", "localhost:evil", "localhost:99999", "[::1", "[::1]evil", ""])
def test_another_host_is_refused_before_its_token(server, name):
    seen = Seen(server.address, [lines(server, "", line="GET /v1/languages HTTP/1.1", name=name)], answered)
    assert seen.statuses == [403] and seen.error()["kind"] == "forbidden", seen.bytes


def test_two_hosts_are_none(server):
    seen = Seen(server.address, [lines(server, "Host: evil\r\n", line="GET /v1/health HTTP/1.1")])
    assert seen.ended and set(seen.statuses) == {400}, seen.bytes


@pytest.mark.parametrize("origin",
                         ["http://evil.example", "null", "http://localhost:1", "https://localhost.evil.example"])
def test_pages_of_another_origin_are_refused(server, origin):
    seen = Seen(server.address, [lines(server, f"Origin: {origin}\r\n", line="GET /v1/languages HTTP/1.1")], answered)
    assert seen.statuses == [403] and b"Access-Control-Allow-Origin" not in seen.bytes, seen.bytes


@pytest.mark.parametrize("head", ["", "Authorization: Bearer cupel_x\r\n", "Authorization: Basic Zm9vOmJhcg==\r\n",
                                  "Authorization: Bearer " + "x" * 8000 + "\r\n", "X-API-Key: \r\n",
                                  "Authorization:\r\n"])
def test_without_a_token_no_route_is_told_from_another(server, head):
    """Not even a path that is not there, nor a body that is no JSON."""
    kinds = set()
    requests = [("GET /v1/languages HTTP/1.1", ""), ("GET /nowhere HTTP/1.1", ""), ("POST /v1/run HTTP/1.1", "{")]
    for line, body in requests:
        length = f"Content-Length: {len(body)}\r\n" if body else ""
        seen = Seen(server.address, [lines(server, head + length, body, line, token=False)], answered)
        kinds.add((*seen.statuses, json.dumps(seen.error())))
    assert len(kinds) == 1 and kinds.pop()[0] == 401


# ---- paths and queries ----
@pytest.mark.parametrize("path", [
    "/v1/../v1/health", "/v1/%2e%2e/v1/health", "//v1/health", "/v1//health", "http://localhost/v1/health",
    "http://evil/v1/health",
    "/v1/health%00", "/v1%2fhealth", "/v1/health%zz", "/v1/health%2", "/v1/runs/%ff%fe", "/v1/runs/\xff\xfe",
    "/v1/health#x",
    "/v1/health;x", "/v1\\health", "v1/health", "*", "/v1/health/", "/v1/health%0d%0aX:y", "/v1/runs/" + "r" * 4000,
    "/v1/sessions/s_1/files/../../x", "/v1/sessions/s_1/files/%2e%2e/%2e%2e/etc/passwd",
    "/v1/sessions/s_1/files/..%2f..%2fetc%2fpasswd", "/v1/sessions/s_1/files/a%00b", "/v1/runs/r_1/artifacts/..%2f..",
    "/v1/runs/r_1/artifacts/%2fetc%2fpasswd", "/v1/blobs/..%2f..%2ftokens.json", "/v1/blobs/sha256:" + "0" * 64,
    "/v1/health?a=%ff", "/v1/health?a=%00", "/v1/health?zzz=1", "/v1/languages?a=1&a=2",
    "/v1/health?" + "&".join(f"a{i}=b" for i in range(40)),
    "/v1/runs/r_x/events?from=-1", "/v1/runs/r_x/events?from=99999999999999999999"])
def test_no_trick_of_a_path_or_query_finds_anything(server, path):
    seen = Seen(server.address, [lines(server, "", line=f"GET {path} HTTP/1.1")], answered)
    assert seen.statuses in ([400], [404]), seen.bytes


def test_a_file_of_a_session_is_found_by_its_name_alone(server, http):
    """The positive control, and each way around it."""
    session = http.session()
    http.cell(session, "open('a.txt', 'w').write('A')")
    assert http.get(f"/v1/sessions/{session}/files/a.txt").body == b"A"
    for path in ("../a.txt", "%2e%2e/workspace/a.txt", "..%2f..%2fetc%2fpasswd", "./a.txt", "b/../a.txt",
                 "%2fetc%2fpasswd", "/etc/passwd"):
        seen = Seen(server.address, [lines(server, "", line=f"GET /v1/sessions/{session}/files/{path} HTTP/1.1")],
                    answered)
        assert seen.statuses in ([400], [404]), (path, seen.bytes)
    assert http.delete(f"/v1/sessions/{session}").status in (200, 204)


# ---- bodies ----
BODIES = {
    "a thousand deep": '{"code":' + "[" * 1000 + "]" * 1000 + "}", "objects deep": '{"a":' * 3000 + "1" + "}" * 3000,
    "open brackets": "[" * 100000, "the same key twice": '{"code":"1","code":"2"}',
    "a lone surrogate": '{"code":"\\ud800"}',
    "a NUL": '{"code":"a\\u0000b"}', "a raw NUL": '{"code":"a\0b"}', "an array": "[1]", "a number": "1", "half": "{",
    "something behind": '{"code":"1"} x', "NaN": '{"code":"1","limits":{"timeout_s":NaN}}', "nothing": " ",
    "infinity": '{"code":"1","limits":{"timeout_s":1e999}}',
    "a huge number": '{"code":"1","limits":{"timeout_s":' + "9" * 400 + "}}",
    "a mark of order": b"\xef\xbb\xbf" + BODY.encode(), "UTF-16": BODY.encode("utf-16"),
    "no UTF-8": b'{"code":"\xff\xfe"}',
    "many keys": "{" + ",".join(f'"k{i}":1' for i in range(100000)) + "}",
}


@pytest.mark.parametrize("name", BODIES)
def test_a_body_that_is_no_request_is_refused_and_the_connection_goes_on(server, name):
    seen = Seen(server.address, [post(server, BODIES[name]), NEXT.encode()],
                lambda seen: b'"status":"ok"' in seen.bytes)
    assert seen.statuses == [400, 200] and b'"kind":"input"' in seen.bytes, seen.bytes[:2000]


PACKED = gzip.compress(BODY.encode())
GZIPS = {"no gzip": b"0123456789", "two of them": PACKED * 2, "something behind": PACKED + b"junk", "cut": PACKED[:-4],
         "a wrong sum": PACKED[:-8] + bytes(8), "only a head": PACKED[:10],
         "no UTF-8": gzip.compress(b'{"code":"\xff"}')}


@pytest.mark.parametrize("name", GZIPS)
def test_a_broken_gzip_body_is_refused(server, name):
    seen = Seen(server.address, [post(server, GZIPS[name], "Content-Encoding: gzip\r\n")], answered)
    assert seen.statuses == [400] and seen.error()["kind"] == "input", seen.bytes


@pytest.mark.parametrize("coding", ["br", "gzip, gzip", "deflate", "x" * 3000])
def test_an_unknown_encoding_of_the_body_is_refused(server, coding):
    seen = Seen(server.address, [post(server, BODY, f"Content-Encoding: {coding}\r\n")], answered)
    assert seen.statuses == [400], seen.bytes


@pytest.mark.full
def test_a_gzip_bomb_is_refused_and_its_memory_comes_back(server):
    """400 MB in 400 KB, several at once; honest ones are answered meanwhile."""
    bomb = gzip.compress(b'{"code":"' + b"a" * 400_000_000 + b'"}')
    Seen(server.address, [post(server, bomb, "Content-Encoding: gzip\r\n")], answered)
    before, seen = rss_kib(server), []
    threads = [threading.Thread(target=lambda: seen.append(
        Seen(server.address, [post(server, bomb, "Content-Encoding: gzip\r\n")], answered).statuses)) for _ in range(6)]
    for thread in threads:
        thread.start()
    with server.client() as client:
        assert client.run("print(1)")["stdout"] == "1\n"
    for thread in threads:
        thread.join()
    assert len(seen) == 6 and all(statuses in ([413], [503]) for statuses in seen), seen
    assert host.wait_until(lambda: rss_kib(server) < before + 64 * MIB_KIB, 10), (before, rss_kib(server))


def test_a_body_where_none_is_taken_is_refused(server):
    seen = Seen(server.address, [lines(server, "Content-Length: 5\r\n", "hello" + NEXT, "GET /v1/health HTTP/1.1")])
    assert seen.ended and seen.statuses == [400], seen.bytes


@pytest.mark.parametrize("name, sent", [
    ("a head", "GET /v1/health HTT"), ("headers", "GET /v1/health HTTP/1.1\r\nHost: local"),
    ("a length", f"POST /v1/run HTTP/1.1\r\nHost: localhost\r\n{{token}}Content-Length: 100\r\n\r\n{BODY}"),
    ("a chunk", f"POST /v1/run HTTP/1.1\r\nHost: localhost\r\n{{token}}{CHUNKED}\r\n{len(BODY):x}\r\n{BODY[:5]}")])
def test_a_request_that_is_cut_short_ends_and_runs_nothing(server, name, sent):
    """At once: much earlier than its deadline, which is 30 s for a body."""
    runs = server.engine.state()["runs"]
    begun = time.monotonic()
    seen = Seen(server.address, [sent.replace("{token}", f"Authorization: Bearer {server.token()}\r\n").encode()],
                half=True)
    assert seen.ended and all(status >= 400 for status in seen.statuses), seen.bytes
    assert time.monotonic() - begun < 8 * host.slowness() and server.engine.state()["runs"] == runs


# ---- many requests, one after another and at once ----
def test_pipelined_requests_are_answered_in_order_up_to_the_bad_one(server):
    good = [post(server, json.dumps({"code": f"print({n})"})) for n in range(4)]
    bad = lines(server, LENGTH + CHUNKED, CHUNKS)
    seen = Seen(server.address, [b"".join(good) + bad + good[0]])
    assert seen.ended and seen.statuses == [200] * 4 + [400], seen.bytes
    assert re.findall(rb'"stdout":"(\d)\\n"', seen.bytes) == [b"0", b"1", b"2", b"3"]


def test_all_of_it_again_and_again_makes_the_service_no_larger(server):
    def everything():
        for head, body in FRAMES.values():
            Seen(server.address, [lines(server, head, body + NEXT)])
        for body in BODIES.values():
            Seen(server.address, [post(server, body)], answered)
        for body in GZIPS.values():
            Seen(server.address, [post(server, body, "Content-Encoding: gzip\r\n")], answered)
    everything()
    before = rss_kib(server)
    for _ in range(4):
        everything()
    assert rss_kib(server) < before + 8 * MIB_KIB, (before, rss_kib(server))


@pytest.mark.full
def test_a_thousand_connections_that_say_nothing_keep_nobody_out(server):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 1200:
        pytest.skip("this process may not open so many files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    before = rss_kib(server)
    try:
        with contextlib.ExitStack() as stack:
            for n in range(1000):
                sock = stack.enter_context(socket.create_connection(server.address, WAIT_S))
                sock.sendall(b"GET /v1/health HTTP/1.1\r\nHost: loc"[:n % 40])
            with server.client() as client:
                assert client.run("print(1)")["stdout"] == "1\n"
            assert rss_kib(server) - before < 1000 * 64, (before, rss_kib(server))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# ---- slow ones, with a server whose patience is short ----
@pytest.fixture
def hasty(cupel_as, place):
    folder = place.fresh("hasty", 0o755, cupel_as.uid if cupel_as.switch else None)
    (folder / "config.json").write_text(json.dumps({"http": {
        "head_s": 1, "body_s": 1, "idle_s": 1, "body_bytes_a_second": 100000, "connections": 60,
        "body_bytes": 1 << 20}}))
    with wild.Service(cupel_as, socket_path(place, cupel_as), ["--config", str(folder / "config.json")]) as made:
        yield made


def trickle(port, first, piece, pause_s=0.1):
    """Seconds until the server ends a connection that never ends its request."""
    begun = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), WAIT_S) as sock:
        sock.sendall(first)
        with contextlib.suppress(OSError):
            while time.monotonic() - begun < WAIT_S:
                sock.sendall(piece)
                sock.settimeout(pause_s)
                with contextlib.suppress(TimeoutError):
                    if not sock.recv(1 << 16):
                        break
    return time.monotonic() - begun


@pytest.mark.full
def test_slow_heads_and_bodies_end_and_keep_nobody_out(hasty):
    """The deadlines are a second: what goes on until WAIT_S would go on for ever."""
    head = f"POST /v1/run HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {hasty.token}\r\n"
    slow = [(b"GET /v1/health HTTP/1.1\r\n", b"X"), (b"", b"\r\n"),
            ((head + "Content-Length: 100000\r\n\r\n").encode(), b" "),
            ((head + CHUNKED + "\r\n").encode(), b"1\r\n \r\n"), ((head + CHUNKED + "\r\n5;").encode(), b"x"),
            ((head + CHUNKED + "\r\nffffffffffffffff\r\n").encode(), b" "),
            ((head + CHUNKED + "\r\n0\r\n").encode(), b"X"),
            (NEXT.encode(), b"")]
    took = []
    threads = [threading.Thread(target=lambda row=row: took.append(trickle(hasty.port, *row))) for row in slow * 5]
    for thread in threads:
        thread.start()
    with hasty.caller() as caller:
        for _ in range(10):
            assert caller.run("print(1)").json()["stdout"] == "1\n"
            time.sleep(0.2)
    for thread in threads:
        thread.join()
    assert len(took) == len(slow) * 5 and max(took) < WAIT_S, took


@pytest.mark.full
def test_a_refused_body_without_end_is_cut(hasty):
    head = f"POST /v1/run HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {hasty.token}\r\n{CHUNKED}\r\n"
    sent, chunk = 0, b"%x\r\n%s\r\n" % (1 << 20, b" " * (1 << 20))
    with socket.create_connection(("127.0.0.1", hasty.port), WAIT_S) as sock:
        sock.sendall(head.encode())
        with pytest.raises(ConnectionError):
            while sent < 400:
                sock.sendall(chunk)
                sent += 1
    assert sent < 400 and hasty.rss_kib() < 200 * MIB_KIB
