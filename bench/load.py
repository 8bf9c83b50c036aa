#!/usr/bin/python3
"""The HTTP service under load: `make load`. Starts `cupel serve --listen 127.0.0.1:0` and drives it with real
connections: build/load, a client that checks every answer (`build/load --help` lists its rows), by HTTP and by the
engine's socket in turn; and wrk, which knows HTTP better than we do and counts every answer that is no 200. Figures
are ratios to the socket in the same rounds; results are in build/load.jsonl. LOAD_ROWS names rows, LOAD_QUICK=1 is a
first look. Ends with 1 where a promise of docs/spec.md was broken."""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

os.environ.setdefault("BENCH_RESULTS", str(Path(__file__).resolve().parent.parent / "build/load.jsonl"))
import common  # noqa: E402
import warm  # noqa: E402

LOAD = Path(os.environ.get("BUILD", common.REPO / "build")) / "load"
QUICK = bool(os.environ.get("LOAD_QUICK"))
ROWS = os.environ.get("LOAD_ROWS", "").split()
ROUNDS = os.environ.get("LOAD_ROUNDS", "")
START_S = 60
POOL = "8"
WRK_ROUNDS, WRK_S, WRK_CLIENTS = (1, 2, 16) if QUICK else (4, 4, 16)
WRK_GATE = 0.85
warm.SIDES = {"bare": "socket", "cupel": "HTTP"}
WRK_SCRIPT = Path(__file__).resolve().parent / "load" / "run.lua"


class Server:
    """`cupel serve` with a socket and an address of its own, and a token for it."""

    def __init__(self, folder, home, env, ids, args=(), token=None):
        self.cupel, self.home, self.env, self.ids, self.args = str(folder / "cupel"), home, env, ids, args
        self.token = token  # one that it has from an earlier start

    def __enter__(self):
        self.token = self.token or self.made("new")
        self.log = self.home / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen([self.cupel, "serve", "--listen", "127.0.0.1:0", "--pool", POOL,
                                             "--socket", self.home / "engine/socket", *self.args],
                                            env=self.env, cwd="/", stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, **self.ids)
        try:
            self.port = self.listens()
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=START_S)
        self.process.kill()
        self.process.wait()

    def made(self, *args):
        done = subprocess.run([self.cupel, "token", *args, "load"], env=self.env, cwd="/", stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, **self.ids)
        if done.returncode:
            raise SystemExit(f"cupel token {args[0]} ended with {done.returncode}: {done.stderr}")
        return done.stdout.strip()

    def listens(self):
        """The port, from what it says at its start."""
        until = time.monotonic() + START_S
        while time.monotonic() < until and self.process.poll() is None:
            said = self.log.read_text(errors="replace")
            found = re.search(r"127\.0\.0\.1:(\d+)", said)
            if found and "ready" in said:
                return int(found[1])
            time.sleep(0.05)
        raise SystemExit(f"the server does not start: {self.log.read_text(errors='replace')}")


def measure(folder, server, rows, beside=None):
    """The rows of build/load; `beside` is the server that some of them compare this one with."""
    options = (["--quick"] if QUICK else []) + (["--rounds", ROUNDS] if ROUNDS else [])
    other = {"LOAD_BESIDE": f"{beside.home},{beside.port},{beside.token}"} if beside else {}
    done = subprocess.run([folder / "drive", *options, server.home, str(server.port), str(server.process.pid), *rows],
                          env={**server.env, "LOAD_TOKEN": server.token, **other}, cwd="/", stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, text=True, **server.ids)
    if done.returncode:
        raise SystemExit(f"build/load ended with {done.returncode}: {done.stdout[-500:]}")
    return json.loads(done.stdout)["rows"]


def wrk(server):
    """Runs a second, and the answers that are no 200."""
    done = subprocess.run(["wrk", "-t", "1", "-c", str(WRK_CLIENTS), "-d", f"{WRK_S}s", "--latency", "-s", WRK_SCRIPT,
                           f"http://127.0.0.1:{server.port}/v1/run"], env={**common.ENV, "LOAD_TOKEN": server.token},
                          capture_output=True, text=True)
    rate = re.search(r"Requests/sec:\s*([0-9.]+)", done.stdout)
    wrong = re.search(r"wrong answers: (\d+)", done.stdout)
    sockets = re.search(r"Socket errors: (.*)", done.stdout)
    if done.returncode or not rate or not wrong or wrong[1] != "0" or sockets:
        raise SystemExit(f"wrk: {done.stdout[-1000:]} {done.stderr[-1000:]}")
    return float(rate[1])


def by_wrk(figures, folder, server, who):
    """wrk's rate over that of build/load on the socket, in turn. wrk looks at the status and one word of the body."""
    socket, http = [], []
    for _ in range(WRK_ROUNDS):
        socket += [row["bare"]["p50"] for row in measure(folder, server, ["rate"])]
        http.append(wrk(server))
    ratio = common.spread([a / b for a, b in zip(http, socket)])[0]
    held = ratio >= WRK_GATE
    figures.broken = figures.broken or (not held and figures.judged)
    word = "held" if held else "BROKEN" if figures.judged else "not judged"
    print(f"  {word:>10}  wrk as {who}, runs a second by HTTP, {WRK_CLIENTS} connections: {ratio:.4g}, promised at "
          f"least {WRK_GATE}\n{'':14}wrk {common.spread(http)[0]:.4g}/s, socket {common.spread(socket)[0]:.4g}/s")
    figures.note(f"wrk as {who}", figure=ratio, gate=WRK_GATE, verdict="held" if held else "missed", http=http,
                 socket=socket)


def main():
    common.RESULTS.unlink(missing_ok=True)
    common.record({"bench": "machine", "what": common.machine(), "at": time.strftime("%Y-%m-%dT%H:%M:%S%z")})
    figures = common.Figures("load", "build/load and wrk: real connections to one `cupel serve`, every answer checked, "
                             "HTTP as a ratio to the engine's socket in the same rounds")
    with common.Scratch() as scratch:
        folder = scratch.reachable_copy()
        shutil.copy(LOAD, folder / "drive")  # a folder is named load
        for who, uid in (("root", None), ("user", common.ORDINARY)):
            if (who == "root" and os.getuid()) or who not in os.environ.get("LOAD_WHO", "root user").split():
                continue
            switch = uid is not None and not os.getuid()
            ids = {"user": uid, "group": uid, "extra_groups": []} if switch else {}
            env = scratch.cupel_env(f"home-{who}", uid if switch else None)
            busy = common.busy()
            judged = figures.judged and busy <= common.BUSY_MOST
            print(f"  as {who}: {busy:.0%} of the processors in use" + ("" if judged else ": shown, not judged"))
            figures.note(f"machine as {who}", in_use=busy)
            with Server(folder, scratch.root / f"home-{who}", env, ids) as server:
                for row in measure(folder, server, [row for row in ROWS if row != "wrk"]) if ROWS != ["wrk"] else []:
                    warm.show(figures, who, row, judged)
                if not ROWS or "wrk" in ROWS:
                    by_wrk(figures, folder, server, who)
    print(f"\nresults as JSON lines: {common.RESULTS}")
    return figures.broken


if __name__ == "__main__":
    sys.exit(main())
