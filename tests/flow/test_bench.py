"""`cupel bench`: the table, its JSON, its refusals, and that its engine ends with it. No
figure is asserted: the machine of a test is not quiet."""
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

import host
from engine import Engine

QUICK = ["bench", "--quick", "--rounds", "5"]
CHEAP = ["pool", "fork"]
LONG_S = 120
PEER = host.REPO / "bench/ipykernel_peer.py"
PYTHON = "/usr/bin/python3"
HAS_KERNEL = subprocess.run([PYTHON, "-c", "import ipykernel, jupyter_client"], capture_output=True).returncode == 0
needs_kernel = pytest.mark.skipif(not HAS_KERNEL, reason="python3-ipykernel is not installed")


def bench(cupel, *args):
    return cupel.run([*QUICK, *args], timeout=LONG_S)


def folders(cupel):
    """Of the engines that it measures."""
    return list(Path(cupel.env["TMPDIR"]).glob("cupel-bench-*"))


def test_two_rows_as_json(cupel_as):
    done = bench(cupel_as, "--json", "--quiet", *CHEAP)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert set(answer) == {"cupel", "machine", "method", "rounds", "rows"}
    assert set(answer["machine"]) == {"cores", "model", "kernel", "load", "busy", "quiet"}
    assert answer["machine"]["cores"] == os.cpu_count() and answer["rounds"] == 5 and answer["method"]
    rows = {row["name"]: row for row in answer["rows"]}
    assert list(rows) == ["pool", "pool-tail", "fork", "fork-tail"]
    for row in rows.values():
        assert {"what", "baseline", "unit", "bare", "cupel", "figure", "at_most", "gate", "stretch", "verdict"} \
            <= set(row)
        assert row["figure"] > 0 and row["gate"] > 0 and row["stretch"] > 0
        reached = row["figure"] <= row["gate"] if row["at_most"] else row["figure"] >= row["gate"]
        assert (row["verdict"] in ("held", "stretch")) == reached and row["verdict"] != "skipped"
    for name in CHEAP:
        row = rows[name]
        for side, count in (("bare", 5), ("cupel", 20)):
            figures = row[side]
            assert figures["count"] == count and figures["noise"] >= 0
            assert 0 < figures["p10"] <= figures["p50"] <= figures["p90"] <= figures["p99"]
        assert row["figure"] == pytest.approx(row["bare"]["p50"] / row["cupel"]["p50"], rel=0.01)
        assert row["warm"] == 20 and row["baseline"]
        tail = rows[f"{name}-tail"]
        assert tail["at_most"] and not row["at_most"] and tail["bare"] is None
        assert tail["figure"] == pytest.approx(row["cupel"]["p99"] / row["cupel"]["p50"], rel=0.01)


def test_the_table_says_how_and_what(cupel):
    done = bench(cupel, "pool")
    assert done.returncode == 0, done.stderr
    first, method, *rest = done.stdout.splitlines()
    assert first.startswith("cupel ") and f" on {os.cpu_count()} x " in first and ", load " in first
    assert method.startswith("5 rounds: ") and "interleaved" in method
    row = next(line for line in rest if line.startswith("pool "))
    assert ">= 60" in row and ">= 130" in row and row.split()[-1] in ("held", "stretch", "missed")
    details = rest[rest.index(row) + 1:rest.index(row) + 3]
    assert all(word in details[0] for word in ("cupel p10", "p50", "p90", "p99", "(20), 20 warm"))
    assert "bare  p10" in details[1] and "noise" in details[1] and "(5)" in details[1]


def test_a_gate_that_is_missed_changes_the_exit_code_only_where_it_is_asked(cupel):
    """With --check the code follows the verdicts, whatever they are here."""
    done = bench(cupel, "--json", "--quiet", "--check", "fork")
    verdicts = [row["verdict"] for row in json.loads(done.stdout)["rows"]]
    assert done.returncode == ("missed" in verdicts), verdicts


def test_the_cost_of_an_idle_engine_is_counted(cupel):
    done = cupel.run(["bench", "--quick", "--json", "--quiet", "idle"], timeout=LONG_S)
    row, = json.loads(done.stdout)["rows"]
    assert row["name"] == "idle" and row["at_most"] and row["bare"] is None and 0 <= row["figure"] < 100


# ---- sessions ----
def rows_of(done):
    assert done.returncode == 0, done.stdout + done.stderr
    return {row["name"]: row for row in json.loads(done.stdout)["rows"]}


def is_measured(row, ours, bare):
    assert row["cupel"]["count"] == ours and row["bare"]["count"] == bare and row["baseline"]
    assert row["figure"] == pytest.approx(row["bare"]["p50"] / row["cupel"]["p50"], rel=0.01)
    return True


def test_rows_in_sessions_are_measured_or_say_that_nothing_is_protected(cupel_as):
    rows = rows_of(bench(cupel_as, "--json", "--quiet", "session-safe-100m", "session-death", "session-undo"))
    judged = {"session-safe-100m", "session-death", "session-undo"}
    if rows["session-death"]["verdict"] == "skipped":
        assert cupel_as.uid != 0 and set(rows) == judged
        assert all("the session is not protected: " in row["why"] for row in rows.values())
        return
    assert set(rows) == judged | {"session-dying", "session-undone"}
    assert all(is_measured(row, 10, 5) for row in rows.values())
    assert {name for name, row in rows.items() if row["gate"]} == judged


@pytest.mark.parametrize("row", ["session-cell", "session-new"])
def test_rows_against_ipykernel_are_measured_or_say_how_to_get_it(cupel, row):
    rows = rows_of(bench(cupel, "--json", "--quiet", row))
    if HAS_KERNEL:
        assert is_measured(rows[row], 20, 5) and rows[row]["verdict"] != "skipped"
    else:
        assert rows[row]["verdict"] == "skipped" and list(rows) == [row]
        assert "python3-ipykernel is not installed: apt-get install python3-ipykernel" in rows[row]["why"]


@pytest.mark.slow
def test_the_memory_and_the_rest_of_many_sessions_are_counted(cupel):
    rows = rows_of(bench(cupel, "--json", "--quiet", "session-memory", "session-idle"))
    assert set(rows) == {"session-memory", "session-available", "session-idle"}
    memory, idle = rows["session-memory"], rows["session-idle"]
    assert memory["verdict"] == "skipped" or is_measured(memory, 1, 1)
    assert idle["at_most"] and 0 <= idle["figure"] < 100


@pytest.mark.slow
def test_one_word_means_all_rows_in_sessions(cupel):
    rows = rows_of(cupel.run([*QUICK, "--json", "--quiet", "session"], timeout=5 * LONG_S))
    assert len(rows) >= 9 and all(name.startswith("session-") for name in rows)


def ask_peer(orders, *flags):
    done = subprocess.run([PYTHON, *flags, PEER], input=orders, capture_output=True, timeout=LONG_S)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().split()


def test_the_peer_says_when_there_is_no_ipykernel():
    assert ask_peer(b"x", "-S") == ["absent"]  # without the packages of the host


@needs_kernel
@pytest.mark.parametrize("end", [b"q", b""])
def test_the_peer_times_what_it_is_asked(place, monkeypatch, end):
    folder = place.fresh()
    monkeypatch.setenv("TMPDIR", str(folder))
    ready, *times = ask_peer(b"xxn" + end)
    assert ready == "ready" and len(times) == 3 and all(int(ns) > 0 for ns in times)
    assert not list(folder.iterdir())


@needs_kernel
def test_the_peer_and_its_kernel_end_with_whoever_measures(cupel):
    process = cupel.popen(["bench", "--rounds", "100000", "session-gaps"], stdout=subprocess.DEVNULL)
    try:
        assert host.wait_until(lambda: kernels(process.pid), 60)
        rows = host.descendants(process.pid)
    finally:
        process.kill()
        process.communicate(timeout=30)
    assert host.wait_until(lambda: not host.same_alive(rows), 30), host.same_alive(rows)
    assert host.wait_until(lambda: not folders(cupel), 10)


def kernels(root):
    def line(pid):
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return b""
    return [row for row in host.descendants(root) if b"ipykernel_launcher" in line(row["pid"])]


@pytest.mark.parametrize("args,words", [
    (["poool"], ["unknown row 'poool'", "did you mean cupel bench pool?"]),
    (["--rounds", "4"], ["'--rounds' takes a whole number from 5 to 100000, not 4"]),
    (["--rounds", "7.5"], ["not 7.5"]),
    (["--nosuch"], ["--nosuch"]),
])
def test_what_it_refuses(cupel, args, words):
    done = cupel.run(["bench", *args])
    assert done.returncode == 2 and not done.stdout
    for word in words:
        assert word in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_its_engine_ends_with_it_however_it_ends(cupel_as, number):
    process = cupel_as.popen(["bench", "--rounds", "100000", "fork"], stdout=subprocess.DEVNULL)
    try:
        assert host.wait_until(lambda: [row for row in host.descendants(process.pid)
                                        if row["comm"].startswith("cupel-broker")], 30)
        rows = host.descendants(process.pid)
        assert folders(cupel_as)
    finally:
        process.send_signal(number)
        process.communicate(timeout=30)
    assert host.wait_until(lambda: not host.same_alive(rows), 30), host.same_alive(rows)
    assert host.wait_until(lambda: not folders(cupel_as), 10)


@pytest.mark.parametrize("size", ["25", "1.5"])
def test_the_size_of_the_pools_has_bounds(cupel, size):
    done = cupel.run(["serve", f"--pool={size}"])
    assert done.returncode == 2 and "option '--pool' takes a whole number from 0 to 24" in done.stderr


@pytest.mark.parametrize("size", [0, 3])
def test_as_many_wait_as_were_asked_for(cupel, place, size):
    path = place.fresh("bench", 0o755, cupel.uid if cupel.switch else None) / "own" / "socket"
    with Engine(cupel, path, args=["--pool", str(size)]) as engine, engine.client() as client:
        def waiting():
            return {pool["name"]: pool["ready"] for pool in client.info()["state"]["pools"]}
        kinds = set(waiting()) - {"box"}
        want = {name: size for name in kinds}
        assert kinds and host.wait_until(lambda: {n: waiting()[n] for n in kinds} == want, 60), waiting()
        for number in range(5):
            _, last = client.run({"code": f"print({number})"})
            assert last["result"]["stdout"] == f"{number}\n"
        time.sleep(0.1)
        assert host.wait_until(lambda: {n: waiting()[n] for n in kinds} == want, 60), waiting()
