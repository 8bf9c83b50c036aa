"""Many clients at once: mixed work of which every answer is checked, and readers that never read. The service's memory
stays bounded, and others are served meanwhile."""
import json
import socket
import time

import pytest
import wild

import host
from engine import socket_path
from selection import LONG


MIB = 1 << 20
SLOW = 200
ALLOWED_KIB = 64 << 10  # for all of them: a reader that never reads costs its connection, the log is shared
FLOOD = "import sys\nfor _ in range(200):\n    sys.stdout.write('x' * 999 + '\\n')\n    sys.stdout.flush()\n" * 8


@pytest.fixture
def service(cupel_as, place):
    with wild.Service(cupel_as, socket_path(place, cupel_as)) as made:
        yield made


@pytest.mark.full
@pytest.mark.alone
def test_a_hundred_clients_at_once_each_get_the_right_answer(service):
    """No kill, no want: nothing but success is right, unless the service says that it is busy."""
    clients = wild.start_clients(service, 100)
    time.sleep(30 if LONG else 6)
    ends = wild.stop_clients(clients, "a hundred at once")
    wrong = {what for what in ends if what != "ok" and not what.startswith(("429", "503"))}
    assert not wrong and ends.get("ok", 0) >= 100, ends
    assert service.process.poll() is None
    with service.caller() as caller:
        left = caller.ask("GET", "/v1/sessions").json()["sessions"]
        assert not [one for one in left if one["status"] != "ended"], left
    assert host.wait_until(lambda: service.spare_boxes() == 0, 30), service.state()


def never_reads(service, path, accept="text/event-stream"):
    """A connection with a small window whose answer stays where it is."""
    link = socket.socket()
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    link.connect(("127.0.0.1", service.port))
    link.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {service.token}\r\n"
                 f"Accept: {accept}\r\n\r\n".encode())
    return link


def serves(service, count=10):
    with service.caller() as caller:
        for n in range(count):
            assert caller.run(f"print({n})").json()["stdout"] == f"{n}\n"


@pytest.mark.full
def test_readers_that_never_read_cost_bounded_memory(service):
    """Each stream has 1.6 MB to tell; all read one log. A run's log has its own cap, whatever its code writes."""
    limits = {"stdout_bytes": 4 * MIB, "timeout_s": 60}
    with service.caller() as caller:
        serves(service)
        run = caller.begin("input_ = None\n" + FLOOD, limits=limits)
        before = service.rss_kib()
        slow = [never_reads(service, f"/v1/runs/{run}/events") for _ in range(SLOW)]
        try:
            *_, end = caller.follow(run)
            assert end["result"]["status"] == "ok" and end["result"]["stdout_bytes"] == 1600 * 1000, end
            serves(service)
            grown = service.rss_kib() - before
            assert grown < ALLOWED_KIB, f"{grown} KiB for {SLOW} readers"
        finally:
            for link in slow:
                link.close()
        serves(service)


@pytest.mark.full
def test_readers_of_a_large_output_that_never_read_do_not_hold_a_copy_each(service):
    limits = {"stdout_bytes": 4 * MIB, "timeout_s": 60}
    with service.caller() as caller:
        run = caller.begin(f"print('y' * {3 * MIB})", limits=limits)
        assert host.wait_until(lambda: caller.ask("GET", f"/v1/runs/{run}").json().get("status") != "running", 20)
        whole = caller.ask("GET", f"/v1/runs/{run}/stdout")
        assert len(whole.body) == 3 * MIB + 1
        before = service.rss_kib()
        slow = [never_reads(service, f"/v1/runs/{run}/stdout", "*/*") for _ in range(SLOW)]
        try:
            serves(service)
            grown = service.rss_kib() - before
            assert grown < ALLOWED_KIB, f"{grown} KiB for {SLOW} readers of 3 MiB"
        finally:
            for link in slow:
                link.close()


@pytest.mark.full
def test_the_inputs_of_runs_that_have_ended_are_not_kept(service):
    """A run is kept with what came of it; its files of 8 MiB are not."""
    files = [{"path": "big.txt", "text": "z" * (8 * MIB)}]
    with service.caller() as caller:
        for n in range(2):
            caller.run("print(len(open('big.txt').read()))", files=files)
        before = service.rss_kib()
        for n in range(12):
            result = caller.run("print(len(open('big.txt').read()))", files=files).json()
            assert result["stdout"] == f"{8 * MIB}\n", result
        grown = service.rss_kib() - before
        assert grown < 40 << 10, f"{grown} KiB after 12 runs with 8 MiB each"


def test_bodies_that_never_end_cost_bounded_memory(service):
    """A hundred clients that promise 100 MiB, send some KiB, and wait."""
    before = service.rss_kib()
    slow = []
    try:
        for _ in range(100):
            link = socket.create_connection(("127.0.0.1", service.port))
            slow.append(link)
            link.sendall(f"POST /v1/run HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {service.token}\r\n"
                         f"Content-Length: {100 * MIB}\r\n\r\n".encode() + b'{"code":"' + b"x" * 8192)
        serves(service)
        grown = service.rss_kib() - before
        assert grown < 32 << 10, f"{grown} KiB for {len(slow)} bodies of 8 KiB"
    finally:
        for link in slow:
            link.close()


@pytest.mark.full
def test_a_stream_that_nobody_reads_ends_with_its_connection(service):
    """A run goes on without its reader, and another one finds all of its events."""
    with service.caller() as caller:
        run = caller.begin("import time\nfor i in range(5):\n    print(i, flush=True)\n    time.sleep(0.1)")
        never_reads(service, f"/v1/runs/{run}/events").close()
        events = list(caller.follow(run))
        assert "".join(one.get("text", "") for one in events if one["event"] == "stdout") == "0\n1\n2\n3\n4\n"
        assert json.loads(json.dumps(events[-1]))["result"]["status"] == "ok"
        assert [one["seq"] for one in events if one["event"] != "ping"] == list(range(1, len(events) + 1 - sum(
            one["event"] == "ping" for one in events)))
