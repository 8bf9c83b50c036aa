#!/usr/bin/python3
"""The figures of calls of tools: a call from a warm session against a cell of `1+1`, and a cell with a thousand calls
against a thousand cells with one call each. The client answers each call at once. Ratios of the same interleaved
rounds."""
import os
import statistics
import sys
import time

import ask
import common

sys.path[:0] = [str(common.REPO / "tests" / "tools")]
from bridge import Cells, tool  # noqa: E402

ROUNDS = int(os.environ.get("BENCH_TOOLS_ROUNDS", 200))
CALLS = int(os.environ.get("BENCH_TOOLS_CALLS", 1000))
CALL_MOST = 3        # × a cell of 1+1, p50
MANY_MOST = 0.25     # × as many cells with one call each
ECHO = tool("echo", {"n": "integer"}, effect="read")


def answer(call):
    return {"value": call["arguments"]["n"]}


def timed(cells, code):
    began = time.perf_counter()
    result = cells.cell(code, answer)
    took = time.perf_counter() - began
    if result["status"] != "ok":
        raise SystemExit(result["error"]["message"])
    return took


def measure_call(figures, cells):
    plain, called = [], []
    for n in range(ROUNDS):
        plain.append(timed(cells, "1+1"))
        called.append(timed(cells, f"echo({n})"))
    ratio = statistics.median(called) / statistics.median(plain)
    print(f"  p50: a cell of 1+1 {statistics.median(plain) * 1e3:.2f} ms, of one call "
          f"{statistics.median(called) * 1e3:.2f} ms")
    figures.promise("a cell with one call, of a cell of 1+1, p50", ratio, CALL_MOST, " ×")


def measure_many(figures, cells):
    """In turns of a tenth, so that others of the host disturb both alike."""
    many = one_each = 0
    for _ in range(10):
        many += timed(cells, f"for n in range({CALLS // 10}): echo(n)")
        one_each += sum(timed(cells, f"echo({n})") for n in range(CALLS // 10))
    whole = timed(cells, f"for n in range({CALLS}): echo(n)")
    print(f"  {CALLS} calls: in one cell {whole:.2f} s, in ten {many:.2f} s, each in its own {one_each:.2f} s")
    figures.note("calls", one_cell_s=whole, ten_cells_s=many, each_s=one_each, calls=CALLS)
    figures.promise(f"a cell with {CALLS} calls, of {CALLS} cells with one each", whole / one_each, MANY_MOST, " ×")


def main():
    figures = common.Figures("tools", "calls of tools from a warm Python session, answered at once over the socket")
    with common.Scratch() as scratch, ask.Bench(scratch) as bench, bench.client() as client:
        cells = Cells(client, [{**ECHO, "caps": {"calls": 1000000}}])
        timed(cells, "from tools import echo; echo(1)")
        measure_call(figures, cells)
        measure_many(figures, cells)
        cells.end()
    return figures.broken


if __name__ == "__main__":
    sys.exit(main())
