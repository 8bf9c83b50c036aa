#!/usr/bin/python3
"""Tests of the tests: builds cupel with one control disabled at a time (edits.py) and runs the probes
that should notice (table.py). Fails where a disabled control is noticed by none.

  tests/mutation/run.py [--quick] [--list] [NAME ...]

A mutant is built in a copy of the tree, build/mutation, where make compiles what the edits changed; the
tree itself is never touched. Names are those of table.py, or the beginning of one."""
import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPO = HERE.parent.parent
sys.path.insert(0, str(HERE))
import table  # noqa: E402
from edits import EDITS, applied  # noqa: E402

TREE = REPO / "build/mutation"
BUILD = TREE / "build"
INPUTS = "Makefile src include drivers policy prompts completions dev api".split()  # of the program
SEEDS = "host static shared gen stamp policyc broker init zygote.so cupel".split()  # of an ordinary build
PROBE_SECONDS = 150
POSTURE = "posture"  # in the words of a refusal


class Broken(Exception):
    """The harness itself failed: not a verdict on any control."""


def make():
    # The flags of a make that runs us are not for the make that we run.
    env = {name: value for name, value in os.environ.items() if "MAKE" not in name and name != "MFLAGS"}
    done = subprocess.run(["make", "-j2", "build/cupel"], cwd=TREE, env=env, capture_output=True, text=True)
    if done.returncode != 0:
        raise Broken(f"make: {done.stdout[-1500:]}{done.stderr[-3000:]}")


def seed():
    """The first copy brings the objects of the ordinary build along: make compiles what is older."""
    BUILD.mkdir(parents=True)
    for name in INPUTS:
        subprocess.run(["cp", "-a", REPO / name, TREE], check=True)
    for name in SEEDS:
        if (REPO / "build" / name).exists():
            subprocess.run(["cp", "-a", REPO / "build" / name, BUILD], check=True)


def inputs(root):
    for name in INPUTS:
        path = root / name
        yield from ([path] if path.is_file() else (each for each in path.rglob("*") if each.is_file()))


def reset():
    """The copy is the tree again. Times are not kept: make must see that a file went back."""
    if not TREE.exists():
        seed()
    wanted = {path.relative_to(REPO) for path in inputs(REPO) if "__pycache__" not in path.parts}
    for path in list(inputs(TREE)):
        if path.relative_to(TREE) not in wanted:
            path.unlink()
    for name in wanted:
        there = TREE / name
        if not there.exists() or there.read_bytes() != (REPO / name).read_bytes():
            there.parent.mkdir(parents=True, exist_ok=True)
            there.unlink(missing_ok=True)
            shutil.copy(REPO / name, there)


def change(mutant, root=TREE, write=Path.write_text):
    """Apply the edits of a mutant, or raise ValueError."""
    texts = {}
    for file, old, new in mutant.edits:
        texts[file] = applied(texts.get(file) or (root / file).read_text(), old, new)
    for file, pairs in mutant.policy.items():
        text = (root / "policy" / file).read_text()
        for pattern, new in pairs:
            text, count = re.subn(pattern, new, text, flags=re.M)
            if count == 0:
                raise ValueError(f"{file}: nothing is like '{pattern}'")
        texts[f"policy/{file}"] = text
    for file, text in texts.items():
        write(root / file, text)


def build(mutant):
    reset()
    try:
        change(mutant)
    except ValueError as fault:
        raise Broken(f"{mutant.name}: {fault}") from None
    make()


def starts(program):
    """("", ""), or how a plain run is refused."""
    done = subprocess.run([program, "run", "--cold", "-t", "10", "-c", "print('ran')"], capture_output=True,
                          text=True, stdin=subprocess.DEVNULL, timeout=60)
    return "" if done.stdout == "ran\n" else (done.stderr.strip() or f"exit {done.returncode}")


def probe(probes):
    """Short names of the tests that failed."""
    env = {**os.environ, "CUPEL": str(BUILD / "cupel"), "BUILD": str(BUILD)}
    command = ["/usr/bin/python3", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=no", "-rfE",
               *probes]
    child = subprocess.Popen(command, cwd=REPO, env=env, stdout=subprocess.PIPE, text=True,
                             stderr=subprocess.STDOUT, start_new_session=True)
    try:
        text, _ = child.communicate(timeout=PROBE_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        return ["(a probe hangs)"]
    if child.returncode not in (0, 1):
        raise Broken(text[-3000:])
    if " skipped" in text and " passed" not in text and " failed" not in text:
        raise Broken("every probe was skipped")
    return re.findall(r"^FAILED (.+?)(?: - .*)?$", text, re.M)


def short(test):
    if "::" not in test:
        return test  # a probe that hangs
    name = test.split("::", 1)[1]
    inner = re.search(r"\[(.*)\]", name)
    if name.startswith("test_the_box_holds"):
        return f"{inner[1].split('-', 1)[1]} ({inner[1].split('-')[0]})"
    return test.split("/")[-1].split(".py")[0].removeprefix("test_") + ": " + \
        name.removeprefix("test_").replace("_", " ")


def verdict(mutant):
    """(good, words)"""
    build(mutant)
    try:
        said = starts(BUILD / "cupel")
        refused_by = "posture" if POSTURE in said else "kernel"
        if mutant.refused:
            if said and refused_by == mutant.refused:
                return True, "refuses to start: " + said.splitlines()[0][:90]
            return False, f"must be refused by {mutant.refused}, but: {said or 'it starts'}"
        if said:
            return False, "does not start: " + said.splitlines()[0][:120]
        failed = probe(mutant.probes + mutant.table)
        said = "; ".join(map(short, failed))
        missed = [short(test) for test in mutant.table if test not in failed]
        if missed:
            return False, f"NOT NOTICED BY {'; '.join(missed)}; by {said or 'nothing'}"
        noticed = set(failed) - set(mutant.table)
        if mutant.covered and not noticed:
            said = "; ".join(filter(None, (said, "covered: " + mutant.covered)))
        return bool(noticed or mutant.covered), said if noticed or mutant.covered else "NOTICED BY NO PROBE"
    finally:
        for key in table.LEFT_SEGMENTS:  # a box without its own IPC namespace leaves them
            subprocess.run(["ipcrm", "-M", key], capture_output=True)


def check_probes(mutants):
    """All of them pass with every control in place: else a failure would prove nothing."""
    probes = sorted({test for mutant in mutants for test in mutant.probes + mutant.table})
    failed = probe(probes) if probes else []
    if failed:
        raise Broken(f"these fail without any mutation: {failed}")


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("names", nargs="*")
    words.add_argument("--quick", action="store_true", help="the few of `make test`")
    words.add_argument("--list", action="store_true", help="show the table, build nothing")
    given = words.parse_args()
    mutants = [m for m in table.MUTANTS
               if (not given.quick or m.name in table.QUICK)
               and (not given.names or any(m.name.startswith(n) for n in given.names))]
    if given.list:
        print("\n".join(f"{m.name:34} {'; '.join(map(short, m.probes))}" for m in mutants))
        return 0
    bad = 0
    try:
        reset()
        make()
        check_probes(mutants)
        for mutant in mutants:
            began = time.monotonic()
            good, said = verdict(mutant)
            bad += not good
            print(f"{'ok ' if good else 'BAD'} {mutant.name:34} {said}  "
                  f"[{time.monotonic() - began:.1f} s]", flush=True)
    except Broken as fault:
        print(f"the mutation test itself failed: {fault}", file=sys.stderr)
        return 2
    print(f"{len(mutants)} mutants, {bad} noticed by nothing")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
