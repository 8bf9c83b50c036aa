"""Clients that do not read what they asked for, or do not finish what they send: what the engine
holds for them is bounded, comes back, and costs others nothing (docs/protocol.md, "Slow clients")."""
import base64
import os
import struct

import pytest

import host
from engine import Engine, socket_path

MIB = 1 << 20
GOING = max(8, 4 * os.cpu_count())  # runs at once
LARGE = 10 * MIB
LEAVES = {"code": f"open('a', 'w').truncate({LARGE})", "limits": {"artifact_bytes": LARGE, "timeout_s": 60}}
# Lines as a driver sends them: from what the code holds of its own channel.
FORGES = {"code": """
import os
line = b'{"op":"result","data":{"text/html":"' + b"A" * (1 << 20) + b'"}}\\n'
fds = [fd for fd in range(3, 300) if os.path.exists(f"/proc/self/fd/{fd}")
       and os.readlink(f"/proc/self/fd/{fd}").startswith(("socket:", "pipe:"))]
for fd in fds:
    try:
        for _ in range(30):
            left = memoryview(line)
            while left: left = left[os.write(fd, left):]
    except OSError:
        pass
""", "limits": {"timeout_s": 20}}


@pytest.fixture
def engine(cupel, place):
    with Engine(cupel, socket_path(place, cupel)) as one:
        yield one


def rss_mib(engine):
    with open(f"/proc/{engine.process.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


def most_mib(engine, other, seconds):
    """The most that the engine grows to, while another client is answered."""
    most = 0
    for _ in range(int(seconds / 0.1)):
        most = max(most, rss_mib(engine))
        assert other.run("print(7)")[1]["result"]["stdout"] == "7\n"
        state = other.info()["state"]
        if state["runs"] == 0 and host.wait_until(lambda: other.info()["state"]["runs"] > 0, 0.5) is False:
            break
    return most


def ask_for(client, count, request):
    for i in range(count):
        client.start(f"r{i}", request, content=True)


def test_a_client_that_reads_nothing_is_not_run_for(engine):
    """30 answers of 10 MiB: 64 MiB are kept, and what had begun by then. All of it comes when it is read."""
    with engine.client() as other, engine.client() as slow:
        other.run("1")
        before = rss_mib(engine)
        ask_for(slow, 30, LEAVES)
        grown = most_mib(engine, other, 20) - before
        state = other.info()["state"]
        assert grown < 64 + GOING * 10 * 1.4 + 32, grown
        assert state["queued"] > 0, "runs for nobody do not begin"
        got, ended = {}, {}
        while len(ended) < 30:
            frame = slow.receive()
            if "result" in frame:
                assert frame["result"]["status"] == "ok" and frame["id"] not in ended, frame
                ended[frame["id"]] = frame["result"]["skipped"]
            else:
                got[frame["id"]] = got.get(frame["id"], 0) + len(base64.b64decode(frame["base64"]))
        assert set(got.values()) == {LARGE} and all(id in got or ended[id] for id in ended), (got, ended)


@pytest.mark.full
@pytest.mark.skipif(host.SANITIZED, reason="the sanitizer keeps freed memory for a while")
def test_what_was_held_comes_back_when_the_client_goes(engine):
    with engine.client() as other:
        other.run("1")
        before = rss_mib(engine)
        with engine.client() as slow:
            ask_for(slow, 30, LEAVES)
            assert host.wait_until(lambda: rss_mib(engine) - before > 40, 30), "the control: something is held"
            grown = most_mib(engine, other, 2) - before
        assert host.wait_until(lambda: rss_mib(engine) - before < grown / 3, 15), (before, grown, rss_mib(engine))
        assert host.wait_until(lambda: other.info()["state"]["queued"] == 0, 15)


@pytest.mark.long
def test_many_that_read_nothing_are_bounded_together(cupel, place):
    path = place.fresh("slow", 0o755, cupel.uid if cupel.switch else None) / "engine" / "socket"
    with Engine(cupel, path) as engine:
        with engine.client() as other:
            other.run("1")
            before = rss_mib(engine)
            slow = [engine.client().__enter__() for _ in range(20)]
            for client in slow:
                ask_for(client, 8, LEAVES)
            grown = most_mib(engine, other, 30) - before
            assert grown < 512 + GOING * 10 * 3, grown
            for client in slow:
                client.sock.close()
    assert "closed a connection that does not read" in engine.said and "maximum 512 MiB" in engine.said


@pytest.mark.long
def test_forged_results_that_nobody_reads_are_bounded(engine):
    with engine.client() as other, engine.client() as slow:
        other.run("1")
        before = rss_mib(engine)
        ask_for(slow, 40, FORGES)
        assert most_mib(engine, other, 20) - before < 64 + GOING * (16 + 5) * 1.4 + 64


@pytest.mark.full
def test_results_over_their_cap_are_left_out_and_it_is_said(engine):
    with engine.client() as client:
        result = client.run(FORGES)[1]["result"]
    assert 1 <= len(result["results"]) <= 21
    assert any(row["reason"].startswith("results: ") for row in result["skipped"]), result["skipped"]


# Those who do not finish what they send.

def test_a_length_that_is_only_promised_costs_nothing(engine):
    """100 connections promise 60 MiB each; another one's large request is taken at once."""
    held = [engine.client().__enter__() for _ in range(100)]
    before = rss_mib(engine)
    for client in held:
        client.sock.sendall(struct.pack("<I", 60 * MIB) + b"{")
    with engine.client() as other:
        files = [{"path": "a", "text": "x" * (30 * MIB)}]
        result = other.run({"code": "print(len(open('a').read()))", "files": files})[1]["result"]
        assert result["stdout"] == f"{30 * MIB}\n"
        assert other.ask({"op": "ping"}) == {"op": "pong"}
    assert rss_mib(engine) - before < 100 + 200
    for client in held:
        client.sock.close()


@pytest.mark.long
def test_a_frame_that_does_not_come_whole_is_refused_by_its_time(engine):
    with engine.client() as late, engine.client() as other:
        late.sock.sendall(struct.pack("<I", 2 * MIB) + b"{")
        error = late.receive()["error"]
        assert error["kind"] == "busy" and "within 12 s" in error["message"], error
        with pytest.raises(EOFError):
            late.receive()
        assert other.run("print(1)")[1]["result"]["stdout"] == "1\n"
