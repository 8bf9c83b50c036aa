"""build/bench, which measures a warm engine: its JSON, its refusals, and that its engine ends with it;
and bench/warm.py, which judges and shows the rows. No figure is asserted: the machine of a test is not
quiet."""
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import host
from engine import Engine

QUICK = ["--quick", "--rounds", "5"]
CHEAP = ["pool", "fork"]
LONG_S = 120
PEER = host.REPO / "bench/ipykernel_peer.py"
PYTHON = "/usr/bin/python3"
HAS_KERNEL = subprocess.run([PYTHON, "-c", "import ipykernel, jupyter_client"], capture_output=True).returncode == 0
needs_kernel = pytest.mark.skipif(not HAS_KERNEL, reason="python3-ipykernel is not installed")


sys.path.insert(0, str(host.REPO / "bench"))
import warm  # noqa: E402


class Bench(host.Cupel):
    """build/bench, for the same users as cupel, which it starts."""

    def __init__(self, who, place):
        super().__init__(who, place)
        self.env["CUPEL"] = self.program
        self.program = str(place.fresh("bench", 0o755) / "bench")
        shutil.copy(host.BUILD / "bench", self.program)


@pytest.fixture
def bench_as(who, place):
    return Bench(who, place)


@pytest.fixture
def bench(place):
    return Bench("root" if os.getuid() == 0 else "user", place)


def measured(bench, *rows, timeout=LONG_S):
    done = bench.run([*QUICK, *rows], timeout=timeout)
    assert done.returncode == 0, done.stdout + done.stderr
    answer = json.loads(done.stdout)
    assert set(answer) == {"cupel", "rounds", "rows"} and answer["rounds"] == 5
    return {row["name"]: row for row in answer["rows"]}


def folders(bench):
    """Of the engines that it measures."""
    return list(Path(bench.env["TMPDIR"]).glob("cupel-bench-*"))


def test_two_rows_as_json(bench_as):
    rows = measured(bench_as, *CHEAP)
    assert list(rows) == ["pool", "pool-tail", "fork", "fork-tail"]
    for row in rows.values():
        assert {"what", "baseline", "unit", "bare", "cupel", "figure", "at_most", "gate", "stretch"} <= set(row)
        assert row["figure"] > 0 and row["gate"] > 0 and row["stretch"] > 0 and "skipped" not in row
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


@pytest.mark.full
def test_the_table_says_how_and_what(place):
    env = {**os.environ, "CUPEL": str(host.PROGRAM), "BUILD": str(host.BUILD), "BENCH_WARM_ROUNDS": "5",
           "BENCH_WARM_ROWS": "pool", "BENCH_RESULTS": str(place.fresh() / "results")}
    done = subprocess.run([sys.executable, "-B", host.REPO / "bench/warm.py"], env=env, capture_output=True, text=True,
                          timeout=LONG_S)
    assert done.returncode in (0, 1), done.stderr
    assert "5 rounds" in done.stdout and "interleaved" in done.stdout and f" on {os.cpu_count()} cores" in done.stdout
    lines = done.stdout.splitlines()
    row = next(i for i, line in enumerate(lines) if " pool as " in line)
    assert "promised at least 60" in lines[row] and lines[row].split()[0] in ("held", "stretch", "BROKEN", "not")
    assert all(word in lines[row + 1] for word in ("bare p50", "p99", "(5)", "cupel p50", "(20)", "noise"))


@pytest.mark.parametrize("figure,at_most,want", [
    (59, False, "missed"), (60, False, "held"), (130, False, "stretch"), (61, True, "missed"), (60, True, "held")])
def test_a_row_is_judged_by_its_gate_and_its_stretch(figure, at_most, want):
    row = {"figure": figure, "gate": 60, "stretch": None if at_most else 130, "at_most": at_most}
    assert warm.verdict(row) == want
    assert warm.verdict({**row, "gate": None}) == "none" and warm.verdict({**row, "skipped": "why"}) == "skipped"


@pytest.mark.parametrize("judged", [True, False])
def test_a_gate_that_is_missed_breaks_a_promise_only_on_a_quiet_machine(capsys, judged):
    class Kept:
        broken = False

        def note(self, what, **facts):
            self.what, self.facts = what, facts
    kept, side = Kept(), {"p50": 1.0, "p99": 2.0, "count": 5, "noise": 0.1}
    warm.show(kept, "root", {"name": "pool", "what": "w", "unit": "ms", "baseline": "b", "bare": side, "cupel": side,
                             "figure": 1.0, "at_most": False, "gate": 60, "stretch": 130}, judged)
    assert kept.broken == judged and kept.what == "pool as root" and kept.facts["verdict"] == "missed"
    assert ("BROKEN" if judged else "not judged") in capsys.readouterr().out


@pytest.mark.full
def test_the_cost_of_an_idle_engine_is_counted(bench):
    row, = measured(bench, "idle").values()
    assert row["name"] == "idle" and row["at_most"] and row["bare"] is None and 0 <= row["figure"] < 100


# ---- sessions ----
def is_measured(row, ours, bare):
    assert row["cupel"]["count"] == ours and row["bare"]["count"] == bare and row["baseline"]
    assert row["figure"] == pytest.approx(row["bare"]["p50"] / row["cupel"]["p50"], rel=0.01)
    return True


@pytest.mark.full
def test_rows_in_sessions_are_measured_or_say_that_nothing_is_protected(bench_as):
    rows = measured(bench_as, "session-safe-100m", "session-death", "session-undo")
    judged = {"session-safe-100m", "session-death", "session-undo"}
    if "skipped" in rows["session-death"]:
        assert bench_as.uid != 0 and set(rows) == judged
        assert all("the session is not protected: " in row["skipped"] for row in rows.values())
        return
    assert set(rows) == judged | {"session-dying", "session-undone"}
    assert all(is_measured(row, 10, 5) for row in rows.values())
    assert {name for name, row in rows.items() if row["gate"]} == judged


@pytest.mark.full
@pytest.mark.parametrize("row", ["session-cell", "session-new"])
def test_rows_against_ipykernel_are_measured_or_say_how_to_get_it(bench, row):
    rows = measured(bench, row)
    if HAS_KERNEL:
        assert is_measured(rows[row], 20, 5) and "skipped" not in rows[row]
    else:
        assert list(rows) == [row]
        assert "python3-ipykernel is not installed: apt-get install python3-ipykernel" in rows[row]["skipped"]


@pytest.mark.long
def test_the_memory_and_the_rest_of_many_sessions_are_counted(bench):
    rows = measured(bench, "session-memory", "session-idle")
    assert set(rows) == {"session-memory", "session-available", "session-idle"}
    memory, idle = rows["session-memory"], rows["session-idle"]
    assert "skipped" in memory or is_measured(memory, 1, 1)
    assert idle["at_most"] and 0 <= idle["figure"] < 100


@pytest.mark.long
def test_one_word_means_all_rows_in_sessions(bench):
    rows = measured(bench, "session", timeout=5 * LONG_S)
    assert len(rows) >= 9 and all(name.startswith("session-") for name in rows)


def ask_peer(orders, *flags):
    done = subprocess.run([PYTHON, *flags, PEER], input=orders, capture_output=True, timeout=LONG_S)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().split()


def test_the_peer_says_when_there_is_no_ipykernel():
    assert ask_peer(b"x", "-S") == ["absent"]  # without the packages of the host


@needs_kernel
@pytest.mark.parametrize("end", [b"q", pytest.param(b"", marks=pytest.mark.full)])
def test_the_peer_times_what_it_is_asked(place, monkeypatch, end):
    folder = place.fresh()
    monkeypatch.setenv("TMPDIR", str(folder))
    ready, *times = ask_peer(b"xxn" + end)
    assert ready == "ready" and len(times) == 3 and all(int(ns) > 0 for ns in times)
    assert not list(folder.iterdir())


@needs_kernel
@pytest.mark.full
def test_the_peer_and_its_kernel_end_with_whoever_measures(bench):
    process = bench.popen(["--rounds", "100000", "session-gaps"], stdout=subprocess.DEVNULL)
    try:
        assert host.wait_until(lambda: kernels(process.pid), 60)
        rows = host.descendants(process.pid)
    finally:
        process.kill()
        process.communicate(timeout=30)
    assert host.wait_until(lambda: not host.same_alive(rows), 30), host.same_alive(rows)
    assert host.wait_until(lambda: not folders(bench), 10)


def kernels(root):
    def line(pid):
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return b""
    return [row for row in host.descendants(root) if b"ipykernel_launcher" in line(row["pid"])]


@pytest.mark.parametrize("args,words", [
    (["poool"], ["unknown row 'poool'", "did you mean 'pool'?"]),
    (["--rounds", "4"], ["'--rounds' takes a whole number from 5 to 100000, not 4"]),
    (["--rounds", "7.5"], ["not 7.5"]),
    (["--nosuch"], ["--nosuch"]),
])
def test_what_it_refuses(bench, args, words):
    done = bench.run(args)
    assert done.returncode == 2 and not done.stdout
    for word in words:
        assert word in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_its_engine_ends_with_it_however_it_ends(bench_as, number):
    process = bench_as.popen(["--rounds", "100000", "fork"], stdout=subprocess.DEVNULL)
    try:
        assert host.wait_until(lambda: [row for row in host.descendants(process.pid)
                                        if row["comm"].startswith("cupel-broker")], 30)
        rows = host.descendants(process.pid)
        assert folders(bench_as)
    finally:
        process.send_signal(number)
        process.communicate(timeout=30)
    assert host.wait_until(lambda: not host.same_alive(rows), 30), host.same_alive(rows)
    assert host.wait_until(lambda: not folders(bench_as), 10)


@pytest.mark.parametrize("size", ["25", "1.5"])
def test_the_size_of_the_pools_has_bounds(cupel, size):
    done = cupel.run(["serve", f"--pool={size}"])
    assert done.returncode == 2 and "option '--pool' takes a whole number from 0 to 24" in done.stderr


@pytest.mark.full
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
