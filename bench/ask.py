#!/usr/bin/python3
"""The figures of the agent: what its loop costs beside model and code, how soon the model is asked, many tasks at
once, the length of the prompt and of the first request, the check before running, and the analysis of an answer. As
ratios to a peer in the same interleaved rounds: cells of a session by hand, /bin/true, a session's start."""
import concurrent.futures
import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import common

sys.path[:0] = [str(common.REPO / "tests" / name) for name in ("warm", ".")]
from engine import Client  # noqa: E402
from sessions import Session  # noqa: E402

ROUNDS = int(os.environ.get("BENCH_ASK_ROUNDS", 20))
AT_ONCE = int(os.environ.get("BENCH_ASK_TASKS", 200))
FEW, MANY = 2, 32            # cells of the tasks whose difference is the cost of a step
STEP_MOST = 3                # × a session's cell
START_MOST = 5               # × /bin/true plus a session's start
PROMPT_MOST = 3600
FIRST_MOST, TOKEN = 1300, 4  # tokens of the first request, by characters of its JSON
TRACE_MOST = 2               # × a session's cell
CHECK_MOST_MS = 2
GROWTH_MOST = 1.1            # memory of the engine after the last wave, over that when it was full
WAVES, FULL = 8, 5           # an engine remembers its last 1,000 sessions: it grows until then
READY_S = 60
QUESTION = "How many steps are there?"
CASE = common.REPO / "examples" / "sales"
# A task of twelve cells: it looks, cleans, computes, and answers.
TRACED = """import pandas as pd
sales = pd.read_csv("sales.csv", parse_dates=["date"])
print(sales.shape, sales.dtypes)
print(sales.head())
print(sales.isna().sum())
sales = sales.drop_duplicates("order")
sales["revenue"] = sales["quantity"] * sales["unit_price"]
by_customer = sales.groupby("customer")["revenue"].sum().sort_values(ascending=False)
top = by_customer.head(5)
share = top.sum() / by_customer.sum()
monthly = sales.groupby(sales["date"].dt.month)["revenue"].sum()
answer("{top} {share:.1%} {best}", top=top.index.tolist(), share=share, best=int(monthly.idxmax()))""".splitlines()
ANSWER, TRACE = "application/vnd.cupel.answer+json", "application/vnd.cupel.trace+json"
# A hundred lines of what models write.
CELL = "\n".join(["import math", "rows = [(n, n * n) for n in range(10)]"]
                 + [f"def f{n}(x):\n    y = x * {n} + len(rows)\n    return math.sqrt(abs(y))" for n in range(30)]
                 + [f"v{n} = f{n}({n})" for n in range(8)])


class Bench:
    """An engine that is warm, and `cupel ask` that uses it."""

    def __init__(self, scratch):
        self.env = scratch.cupel_env("home")
        self.folder = scratch.folder("ask")
        self.socket = str(scratch.folder("engine") / "own" / "socket")

    def __enter__(self):
        self.engine = subprocess.Popen([common.CUPEL, "serve", "--socket", self.socket], env=self.env, cwd="/",
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + READY_S
        while not self.is_warm():
            if time.monotonic() > until or self.engine.poll() is not None:
                raise SystemExit("the engine does not become warm")
            time.sleep(0.05)
        self.env = {**self.env, "CUPEL_SOCKET": self.socket}
        return self

    def __exit__(self, *_):
        self.engine.terminate()
        self.engine.wait(READY_S)

    def client(self):
        return Client(self.socket)

    def is_warm(self):
        if not os.path.exists(self.socket):
            return False
        with contextlib.suppress(OSError), self.client() as client:
            zygotes = client.info()["state"]["zygotes"]
            return bool(zygotes) and all(zygote["state"] == "ready" for zygote in zygotes)
        return False

    def replies(self, name, texts):
        path = self.folder / name
        path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        return f"replay:{path}"

    def command(self, model, *args):
        return [common.CUPEL, "ask", "-q", "--json", "--model", model, *args, QUESTION]

    def ask(self, model, *args):
        """Milliseconds of a whole task; its end state is the caller's matter."""
        return common.timed(self.command(model, *args), self.env, cwd=str(self.folder))[0]

    def memory_kib(self):
        """Private and shared memory of the engine and its broker."""
        pids = [self.engine.pid, *Path(f"/proc/{self.engine.pid}/task/{self.engine.pid}/children").read_text().split()]
        total = 0
        for pid in pids:
            with contextlib.suppress(OSError):
                lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
                total += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
        return total


def cell(number):
    return f"```python\nstep_{number} = {number}\n```"


def step_cost(bench, figures):
    """A task of many cells less one of few, over the cells between; beside it the same cells by hand."""
    few, many = (bench.replies(f"steps{count}", [*(cell(n) for n in range(count)), "There are some."])
                 for count in (FEW, MANY))
    ratios, own, peer = [], [], []
    for _ in range(ROUNDS):
        took = [bench.ask(model, "--max-steps", str(MANY + 8)) for model in (few, many)]
        own.append((took[1] - took[0]) / (MANY - FEW))
        peer.append(cells_by_hand(bench))
        ratios.append(own[-1] / peer[-1])
    median, low, high = common.spread(ratios)
    print(f"  {'':>10}  a step {common.spread(own)[0]:.3g} ms, a cell by hand {common.spread(peer)[0]:.3g} ms, "
          f"ratio {median:.3g} ({low:.3g} to {high:.3g})")
    figures.promise("the loop's own cost of a step over a session's cell, p50", median, STEP_MOST, " ×")


def cells_by_hand(bench):
    with bench.client() as client:
        session = Session(client)
        for number in range(FEW):
            session.run(f"step_{number} = {number}")
        began = time.perf_counter()
        for number in range(FEW, MANY):
            session.run(f"step_{number} = {number}")
        took = (time.perf_counter() - began) * 1000 / (MANY - FEW)
        session.end()
    return took


def first_request(bench):
    """Milliseconds from the start of `cupel ask` until its model runs: date tells when, and its words are the reply."""
    began = time.time_ns()
    done = subprocess.run(bench.command("exec:/bin/date +%s%N"), env=bench.env, cwd=bench.folder,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    report = json.loads(done.stdout)
    with open(Path(bench.env["CUPEL_STATE"]) / "tasks" / f"{report['task']}.jsonl") as lines:
        said = next(event["data"]["text"] for event in map(json.loads, lines) if event["kind"] == "text")
    return (int(said) - began) / 1e6


def session_start(bench):
    with bench.client() as client:
        began = time.perf_counter()
        session = Session(client, wait=False, request={"profile": "analysis"})
        took = (time.perf_counter() - began) * 1000
        session.end()
    return took


def start(bench, figures):
    rows = [(first_request(bench), common.timed(["/bin/true"], common.ENV)[0], session_start(bench))
            for _ in range(ROUNDS)]
    first, true, made = (common.spread(column)[0] for column in zip(*rows))
    print(f"  {'':>10}  first request {first:.3g} ms, /bin/true {true:.3g} ms, a session {made:.3g} ms")
    bare = common.spread([(row[0] - row[2]) / row[1] for row in rows])[0]
    figures.note("start to first model request, less a session's start, over /bin/true", value=bare)
    ratio = common.spread([row[0] / (row[1] + row[2]) for row in rows])[0]
    figures.promise("start to first model request over /bin/true plus a session's start", ratio, START_MOST, " ×")


def crowd(bench, figures):
    """Waves of tasks at once: every one ends well, and the engine does not grow."""
    code = "steps = 6 * 7\nanswer('There are {steps} steps.', steps=steps)"
    model = bench.replies("crowd", [f"```python\n{code}\n```", "PASS"])
    broken, held = 0, []
    for _ in range(WAVES):
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            codes = list(pool.map(lambda _: subprocess.run(bench.command(model), env=bench.env, cwd=bench.folder,
                                                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                                           stderr=subprocess.DEVNULL).returncode, range(AT_ONCE)))
        broken += sum(code != 0 for code in codes)
        time.sleep(1)
        held.append(bench.memory_kib())
    figures.promise(f"tasks of {WAVES} × {AT_ONCE} at once that did not end verified", broken, 0, always=True)
    figures.promise("memory of the engine after the last wave over that after 1,000 sessions", held[-1] / held[FULL],
                    GROWTH_MOST, " ×", always=True)


def prompt(bench, figures):
    """What a model is sent first, about a file: tee writes it down."""
    seen = bench.folder / "requests"
    subprocess.run([common.CUPEL, "ask", "-q", "--model", f"exec:/usr/bin/tee -a {seen}",
                    (CASE / "question.txt").read_text(), CASE / "sales.csv"], env=bench.env, cwd=bench.folder,
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    request = json.JSONDecoder().raw_decode(seen.read_text())[0]
    figures.promise("length of the system prompt", len(request["system"]), PROMPT_MOST, " characters", always=True)
    figures.promise("first request, with a file and its tools, four characters a token",
                    len(json.dumps(request, ensure_ascii=False)) / TOKEN, FIRST_MOST, " tokens", always=True)


def traced_task(session):
    """The request of the trace, after the cells have run; and the milliseconds of each cell."""
    cells, times, result = [], [], None
    for number, code in enumerate(TRACED, 1):
        began = time.perf_counter()
        result = session.run(code)
        times.append((time.perf_counter() - began) * 1000)
        assert result["status"] == "ok", result
        cells.append({"n": number, "code": code, "output": result["stdout"]})
    payload = next(shown[ANSWER] for shown in result["results"] if ANSWER in shown)
    return {"question": (CASE / "question.txt").read_text(), "inputs": ["sales.csv"], "cells": cells, "answer": payload,
            "made": [], "schema": None}, times


def analysis(bench, figures):
    """The run that traces the values of a task of twelve cells, beside those cells by hand. The rerun is not in it."""
    files = [{"path": "sales.csv", "text": (CASE / "sales.csv").read_text(), "readonly": True}]
    box = {"language": "python", "files": files, "env": {"CUPEL_AGENT": "1"}}   # as agent_box_look asks for it
    ratios, bare, own, peer = [], [], [], []
    for _ in range(ROUNDS):
        with bench.client() as client:
            session = Session(client, request={**box, "profile": "analysis"})
            request, times = traced_task(session)
            began = time.perf_counter()
            session.run("step = 1")
            empty = (time.perf_counter() - began) * 1000
            code = f"__import__('builtins').display.__globals__['this'].load('trace').main({json.dumps(request)!r})"
            began = time.perf_counter()
            answer = session.call({"op": "run", "request": {**box, "code": code}})[0]["result"]
            own.append((time.perf_counter() - began) * 1000)
            assert any(TRACE in shown for shown in answer["results"]), answer
            session.end()
        peer.append(sum(times) / len(times))
        ratios.append(own[-1] / peer[-1])
        bare.append(own[-1] / empty)
    print(f"  {'':>10}  the analysis {common.spread(own)[0]:.3g} ms, one of its cells {common.spread(peer)[0]:.3g} ms")
    figures.note("the analysis of a task of 12 cells over a cell that does nothing", value=common.spread(bare)[0])
    figures.promise("the analysis of a task of 12 cells over one of its cells by hand, p50", common.spread(ratios)[0],
                    TRACE_MOST, " ×")


def check(bench, figures):
    with bench.client() as client:
        session = Session(client)
        session.run("import math")
        times = []
        for _ in range(ROUNDS * 10):
            began = time.perf_counter()
            problems = session.ask("check", code=CELL)["problems"]
            times.append((time.perf_counter() - began) * 1000)
            assert problems == [], problems
        session.end()
    lines = CELL.count("\n") + 1
    figures.promise(f"check before running, {lines} lines, p50", common.spread(times)[0], CHECK_MOST_MS, " ms")


def main():
    figures = common.Figures("ask", f"{ROUNDS} rounds against a warm engine; the model is a file of replies or a "
                             "program")
    with common.Scratch() as scratch, Bench(scratch) as bench:
        for part in (step_cost, start, check, prompt, analysis, crowd):
            part(bench, figures)
    return figures.broken


if __name__ == "__main__":
    sys.exit(main())
