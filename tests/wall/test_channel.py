"""Between a box and the engine there are pipes: nothing that code holds carries descriptors to us, and no
line that code writes there is taken for the end of another cell."""
import array
import json
import os
import socket
import statistics
import struct
import time

import host
import pytest
from sessions import Session

SO_PASSRIGHTS = 83

# A TCP socket with unsent data, whose close would wait, is sent over every descriptor that there is.
SEND = """
import array, os, socket, struct, sys, time
server = socket.create_server(('127.0.0.1', 0))
full = socket.create_connection(server.getsockname())
peer = server.accept()[0]
full.setblocking(False)
try:
    while True: full.send(b'x' * 65536)
except BlockingIOError: pass
try: full.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 60))
except OSError as error: print('linger', error.errno)
mine, taken = {server.fileno(), full.fileno(), peer.fileno()}, []
for fd in range(1024):
    if fd in mine: continue
    try: channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fileno=os.dup(fd))
    except OSError: continue
    for count in (1, 100):
        try:
            gifts = array.array('i', [full.fileno()] * count)
            channel.sendmsg([b'\\n'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, gifts)])
            taken.append(fd)
        except OSError: pass
print('taken', taken, flush=True)
full.close()
"""
BASH = "python3 - <<'END'\n" + SEND + "END\n"


def occupants(engine):
    return [row for row in host.descendants(engine.process.pid)
            if row["comm"].startswith(("python", "node", "bash")) and in_box(row["pid"])]


def in_box(pid):
    """Host, broker, box: it has a number in three pid namespaces."""
    for line in open(f"/proc/{pid}/status"):
        if line.startswith("NSpid:"):
            return len(line.split()) == 4
    return False


def links(pid):
    return {fd: os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}


@pytest.mark.skipif(os.getuid() != 0, reason="only root can look into other users' processes")
def test_no_socket_is_among_the_descriptors_of_an_occupant(engine):
    with engine.client() as client:
        held = [Session(client, language=language) for language in ("python", "javascript", "bash")]
        for session in held:
            assert session.run("1" if session is not held[2] else "true")["status"] == "ok"
        client.start("long", "import time\ntime.sleep(1)")
        time.sleep(0.5)
        seen = {}
        for row in occupants(engine):
            try:
                seen[row["comm"], row["pid"]] = links(row["pid"])
            except OSError:
                continue   # a box of the pool that was replaced
        assert {comm[:4] for comm, _ in seen} >= {"pyth", "node", "bash"}, seen
        for who, found in seen.items():
            assert not [link for link in found.values() if link.startswith("socket:")], (who, found)
        client.finish("long")
        for session in held:
            session.end()


@pytest.mark.parametrize("language", ["python", "bash"])
@pytest.mark.parametrize("how", ["cold", "warm", "session"])
def test_no_descriptor_can_be_sent_out_of_a_box(engine, cupel_as, how, language):
    code = SEND if language == "python" else BASH
    if how == "cold":
        result = cupel_as.run_json(code, language=language)
    else:
        with engine.client() as client:
            if how == "warm":
                result = client.run({"code": code, "language": language})[1]["result"]
            else:
                session = Session(client, language=language)
                result = session.run(code)
                session.end()
    assert result["status"] == "ok" and result["stdout"] == "linger 1\ntaken []\n", result


def honest(client, rounds):
    """The longest of some small runs, and the usual one."""
    times = []
    for _ in range(rounds):
        begun = time.perf_counter()
        assert client.run("print(1)")[1]["result"]["stdout"] == "1\n"
        times.append(time.perf_counter() - begun)
        time.sleep(0.02)
    return max(times), statistics.median(times)


@pytest.mark.parametrize("how", ["run", "session"])
def test_an_honest_client_beside_it_is_answered_as_ever(engine, how):
    """A ratio: an engine that waited for the box would not answer before the box's time is over."""
    with engine.client() as mine, engine.client() as theirs:
        honest(mine, 3)
        worst, _ = honest(mine, 10)
        code = SEND + "time.sleep(60)"
        if how == "run":
            theirs.start("h", {"code": code, "limits": {"timeout_s": 2}})
        else:
            session = Session(theirs)
            theirs.send({"op": "run", "id": "h", "request": {"session": session.id, "code": code,
                                                             "limits": {"timeout_s": 2}}})
        time.sleep(0.5)
        beside, _ = honest(mine, 10)
        assert beside < max(20 * worst, 1), (beside, worst)
        frame = theirs.finish("h")[1]
        assert frame["result"]["status"] == "timeout"
        assert frame["result"]["metrics"]["wall_ms"] < 10000 * host.slowness()


def test_a_client_cannot_send_the_engine_descriptors(engine):
    probe = socket.socket(socket.AF_UNIX)
    try:
        probe.setsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS, 0)
    except OSError:
        pytest.skip("this kernel has no SO_PASSRIGHTS")
    finally:
        probe.close()
    with engine.client() as client, socket.create_server(("127.0.0.1", 0)) as server:
        with pytest.raises(PermissionError):
            client.sock.sendmsg([struct.pack("<I", 13)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                                                           array.array("i", [server.fileno()]))])
        client.send({"op": "info"})
        assert "error" not in client.receive()


# ---- forged lines ----
DONE = '{"op":"done","exit_code":0}'
ERROR = '{"op":"error","kind":"exception","name":"Forged","message":"forged"}'
FIND = """
import os, sys, time
frame = sys._getframe()
while 'words_id' not in frame.f_globals: frame = frame.f_back
own = '{' + frame.f_globals['mark'] + %r[1:]
"""
FORGERS = {
    ("python", "no nonce"): f"import os, time\nos.write(250, b'{DONE}\\n{ERROR}\\n')\ntime.sleep(0.3)",
    ("python", "its own nonce"): FIND % DONE + "os.write(250, (own + '\\n').encode())\ntime.sleep(0.3)",
    ("python", "half a line"): f"import os\nos.write(250, b'{DONE[:-1]}')",
    ("python", "left behind"): FIND % DONE + "if os.fork() == 0:\n    for _ in range(100):\n"
                               f"        os.write(250, (own + '\\n' + {ERROR!r} + '\\n{{\"op\":').encode())\n"
                               "        time.sleep(0.01)\n    os._exit(0)",
    ("javascript", "no nonce"): f"require('fs').writeSync(3, '{DONE}\\n{ERROR}\\n'); "
                                "{ const t = Date.now(); while (Date.now() - t < 300); }",
    ("javascript", "half a line"): f"require('fs').writeSync(3, '{DONE[:-1]}'); void 0",
    ("javascript", "left behind"): "setTimeout(() => require('fs').writeSync(3, "
                                   f"'{DONE}\\n{ERROR}\\n{DONE[:9]}'), 50); void 0",
    ("bash", "no nonce"): f"printf '%s\\n' '{DONE}' '{ERROR}' >&250; sleep 0.3",
    ("bash", "its own nonce"): "printf '{\"nonce\":\"%s\",%s\\n' \"$__cupel_nonce\" " f"'{DONE[1:]}' >&250; sleep 0.3",
    ("bash", "half a line"): f"printf '%s' '{DONE[:-1]}' >&250",
    ("bash", "left behind"): "for ((i = 0; i < 100; i++)); do printf '{\"nonce\":\"%s\",%s\\n{' \"$__cupel_nonce\" "
                             f"'{DONE[1:]}' >&250; sleep 0.01; done &",
}
# What the cells after it do, and what each must be told to have done.
AFTER = {"python": ("raise ValueError('B')", "print('C')", "print('D')"),
         "javascript": ("throw new Error('B')", "console.log('C')", "console.log('D')"),
         "bash": ("echo B; (exit 7)", "echo C", "echo D")}


@pytest.mark.parametrize("language, kind", FORGERS)
def test_a_forged_line_shifts_no_result(engine, language, kind):
    with engine.client() as client:
        session = Session(client, language=language)
        first = session.run(FORGERS[language, kind], limits={"timeout_s": 8})
        assert first["status"] == "ok", first
        failing, *printing = [session.run(code, limits={"timeout_s": 8}) for code in AFTER[language]]
        assert failing["status"] == "error" and failing["exit_code"] == (7 if language == "bash" else 1), failing
        assert "orged" not in json.dumps(failing["error"]), failing
        for result, text in zip(printing, "CD"):
            assert (result["status"], result["exit_code"], result["stdout"]) == ("ok", 0, text + "\n"), result
            assert not result["error"]
        session.end()


# A process that does nothing but leave lines unended, and the cells beside it.
UNENDED = {"python": ("import os\nif os.fork() == 0:\n    while True: os.write(250, b'{')", "print(%d)"),
           "bash": ("while :; do printf '{' >&250; done &", "echo %d")}


@pytest.mark.parametrize("language", UNENDED)
def test_no_half_line_swallows_the_end_of_a_cell(engine, language):
    with engine.client() as client:
        session = Session(client, language=language)
        begin, cell = UNENDED[language]
        assert session.run(begin, limits={"timeout_s": 8})["status"] == "ok"
        for number in range(25):
            result = session.run(cell % number, limits={"timeout_s": 8})
            assert (result["status"], result["stdout"]) == ("ok", f"{number}\n"), (number, result)
        session.end()
