#!/usr/bin/python3
"""The cost and the use of records: `make records`. Rows of build/load against two servers at a time, in turns:
1. `cupel serve` and `cupel serve --no-records`: the time of a warm run, runs a second, processor time.
2. One server: answers from the cache against warm runs, and identical runs that are sent at once.
3. A server with a million records and one with a thousand: pages of GET /v1/runs.
Results are in build/records.jsonl. RECORDS_ROWS names rows, LOAD_QUICK=1 is a first look with a hundredth of the
records. Ends with 1 where a promise of docs/spec.md was broken."""
import contextlib
import http.client
import json
import os
import shutil
import sys
import time
from pathlib import Path

os.environ.setdefault("BENCH_RESULTS", str(Path(__file__).resolve().parent.parent / "build/records.jsonl"))
import common  # noqa: E402
import fill  # noqa: E402
import load  # noqa: E402
import warm  # noqa: E402

ROWS = os.environ.get("RECORDS_ROWS", "").split()
COST = ["recorded", "recorded-gaps", "recorded-rate", "recorded-cpu"]
CACHE = ["hit", "once"]
PAGES = ["page", "page-status", "page-text"]
MANY, FEW = (10_000, 1_000) if load.QUICK else (1_000_000, 1_000)
CATALOG_S = 1800  # the catalog of a million records is there by then
SEEDS = [("print(sum(range(100)))", 30), ("1/0", 3), ("import math\nmath.pi", 5),
         ("x = [n * n for n in range(9)]\nx", 10)]


class Ask:
    """Requests with a server's token."""

    def __init__(self, server):
        self.server = server

    def __call__(self, method, path, body=None):
        link = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=CATALOG_S)
        with contextlib.closing(link):
            link.request(method, path, json.dumps(body) if body else None,
                         {"Authorization": f"Bearer {self.server.token}", "Content-Type": "application/json"})
            answer = link.getresponse()
            return answer.status, json.loads(answer.read())


def filled(scratch, folder, name, env, ids, count):
    """The home of a server that has so many records, and its token."""
    home = scratch.root / name
    with load.Server(folder, home, env, ids) as server:
        ask = Ask(server)
        for code, times in SEEDS:
            for _ in range(times):
                status, said = ask("POST", "/v1/run", {"code": code})
                assert status == 200, said
    began = time.monotonic()
    fill.fill(Path(env["CUPEL_STATE"]) / "store.db", count)
    size = (Path(env["CUPEL_STATE"]) / "store.db").stat().st_size
    print(f"  {count:,} records written in {time.monotonic() - began:.1f} s, {size >> 20} MiB")
    return home, server.token


def wait_for_catalog(server, count, figures):
    """A list is complete: the last page that `stats` or a walk would need is there."""
    ask, began = Ask(server), time.monotonic()
    while True:
        status, said = ask("GET", "/v1/runs?text=print&limit=1")
        if status == 200 and said["runs"]:
            break
        if time.monotonic() - began > CATALOG_S:
            raise SystemExit(f"no catalog after {CATALOG_S} s: {status} {said}")
        time.sleep(0.5)
    took = time.monotonic() - began
    print(f"  the catalog of {count:,} records was there after {took:.1f} s")
    figures.note(f"catalog of {count}", seconds=took)


def wanted(rows):
    return [row for row in rows if not ROWS or row in ROWS]


def measure_cost(figures, scratch, folder, who, uid, ids, judged):
    envs = [scratch.cupel_env(f"home-{who}-{name}", uid) for name in ("with", "without")]
    homes = [Path(env["HOME"]) for env in envs]
    with load.Server(folder, homes[0], envs[0], ids) as server:
        if wanted(COST):
            with load.Server(folder, homes[1], envs[1], ids, ["--no-records"]) as plain:
                for row in load.measure(folder, server, wanted(COST), plain):
                    warm.show(figures, who, row, judged)
        if wanted(CACHE):
            for row in load.measure(folder, server, wanted(CACHE)):
                warm.show(figures, who, row, judged)


def measure_pages(figures, scratch, folder, who, uid, ids, judged):
    envs = [scratch.cupel_env(f"home-{who}-{name}", uid) for name in ("many", "few")]
    made = [filled(scratch, folder, Path(env["HOME"]).name, env, ids, count)
            for env, count in zip(envs, (MANY, FEW))]
    many, few = [load.Server(folder, home, env, ids, token=token) for (home, token), env in zip(made, envs)]
    with many, few:
        wait_for_catalog(many, MANY, figures)
        wait_for_catalog(few, FEW, figures)
        for row in load.measure(folder, many, wanted(PAGES), few):
            warm.show(figures, who, row, judged)
    for home, _ in made:
        shutil.rmtree(home)


def main():
    common.RESULTS.unlink(missing_ok=True)
    common.record({"bench": "machine", "what": common.machine(), "at": time.strftime("%Y-%m-%dT%H:%M:%S%z")})
    figures = common.Figures("records", "build/load: real connections to two `cupel serve` in turns")
    warm.SIDES = {"bare": "baseline", "cupel": "ours"}
    with common.Scratch() as scratch:
        folder = scratch.reachable_copy()
        shutil.copy(load.LOAD, folder / "drive")
        for who, uid in (("root", None), ("user", common.ORDINARY)):
            if (who == "root" and os.getuid()) or who not in os.environ.get("LOAD_WHO", "root user").split():
                continue
            switch = uid is not None and not os.getuid()
            ids = {"user": uid, "group": uid, "extra_groups": []} if switch else {}
            judged = figures.judged and common.busy() <= common.BUSY_MOST
            if wanted(COST + CACHE):
                measure_cost(figures, scratch, folder, who, uid if switch else None, ids, judged)
            if wanted(PAGES) and (who == "root" or os.getuid()):  # the disk of one user is enough
                measure_pages(figures, scratch, folder, who, uid if switch else None, ids, judged)
    print(f"\nresults as JSON lines: {common.RESULTS}")
    return figures.broken


if __name__ == "__main__":
    sys.exit(main())
