#!/usr/bin/python3
"""Public programs through cupel, one row each: `make ecosystem` prints the table. A program that fails is named, and
the exit code is 1. A suite whose data is not on this machine is skipped, with the reason."""
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS), str(TESTS / "mint")]
import engine  # noqa: E402
import host  # noqa: E402
import recording  # noqa: E402
import replay  # noqa: E402
import shells  # noqa: E402
import test_mint  # noqa: E402
import test_reference_programs as reference  # noqa: E402

LIMITS = {"timeout_s": 60, "cpu_s": 60}
WORKERS = 3


def reference_programs(programs):
    """Each program with its own tests, in a warm box of its own."""
    def suite(serve):
        if not reference.DATA.is_dir():
            return f"'{reference.DATA}' is absent"

        def one(pair):
            with serve.client() as client:
                result = client.run({"code": pair[1], "limits": LIMITS})[1]["result"]
            return None if result["status"] == "ok" else f"{pair[0]}: {result['status']}"
        with ThreadPoolExecutor(WORKERS) as pool:
            return list(pool.map(one, programs()))
    return suite


def recorded_cells(serve):
    """Cells that models wrote, in sessions; an IPython kernel recorded the answers."""
    if not recording.find():
        return f"no recording in {recording.PLACES[0]}"
    rows = replay.replay_all(test_mint.short_form(), lambda: shells.EngineShell(serve, recording.TIME_LIMIT_S), WORKERS)
    return [f"{row}" if row["class"] == "unknown" else None for row in rows]


SUITES = {"HumanEval": reference_programs(reference.humaneval), "MBPP, sanitized": reference_programs(reference.mbpp),
          "MINT, recorded cells": recorded_cells}


def main():
    host.become_subreaper()
    failures = []
    with host.Place() as place:
        cupel = host.Cupel("root", place)
        with engine.Engine(cupel, engine.socket_path(place, cupel)) as serve:
            for name, suite in SUITES.items():
                found = suite(serve)
                if isinstance(found, str):
                    print(f"{name:24} skipped: {found}", flush=True)
                    continue
                wrong = [row for row in found if row]
                print(f"{name:24} {len(found) - len(wrong):5} of {len(found)}", flush=True)
                failures += [f"{name}: {row}" for row in wrong]
    print(*failures, sep="\n", end="\n" if failures else "")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
