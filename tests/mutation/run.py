#!/usr/bin/python3
"""Tests of the tests: builds cupel with one control disabled at a time (src/box/wall/mutate.h) and
runs the probes that should notice. Fails where a disabled control is noticed by none.

  tests/mutation/run.py [--quick] [--list] [--keep] [NAME ...]

A mutant is the ordinary build with only those objects compiled anew that know its control;
the release build is never touched. Names are those of table.py, or the beginning of one."""
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

HOME = REPO / "build/mutation"
BASE = HOME / "base"
FILTER_USERS = ["src/box/inside/enter", "src/box/inside/init", "src/box/files/porter", "src/box/host/box",
                "src/box/zygote/zygote"]
PROBE_SECONDS = 150
POSTURE = "posture"  # in the words of a refusal


class Broken(Exception):
    """The harness itself failed: not a verdict on any control."""


def call(command):
    # The flags of a make that runs us are not for the makes that we run.
    env = {name: value for name, value in os.environ.items() if "MAKE" not in name and name != "MFLAGS"}
    done = subprocess.run(command, cwd=REPO, env=env, capture_output=True, text=True)
    if done.returncode != 0:
        raise Broken(f"{' '.join(map(str, command))}\n{done.stdout[-1500:]}{done.stderr[-3000:]}")
    return done.stdout


def make_base():
    call(["make", "-j2", f"B={BASE.relative_to(REPO)}", str(BASE.relative_to(REPO) / "cupel")])


def knowing(names):
    """Sources, without their ending, that mention one of these controls."""
    found = set()
    for path in REPO.glob("src/**/*.c"):
        text = path.read_text()
        for name in names:
            limit = name.removeprefix("LIMIT_")
            if f"mutate({name})" in text or limit != name and f"bounded({limit})" in text:
                found.add(str(path.relative_to(REPO).with_suffix("")))
    return found


def changed(path, pairs):
    text = path.read_text()
    for old, new in pairs:
        if text.count(old) != 1:
            raise Broken(f"{path.name}: '{old}' stands there {text.count(old)} times")
        text = text.replace(old, new)
    return text


def write_filter(mutant, folder):
    """Another system call filter: from a changed policy, or by a changed compiler."""
    policy, compiler = folder / "policy", BASE / "policyc"
    shutil.copytree(REPO / "policy", policy)
    for name, pairs in mutant.policy.items():
        text = (policy / name).read_text()
        for pattern, new in pairs:
            text, count = re.subn(pattern, new, text, flags=re.M)
            if count == 0:
                raise Broken(f"{name}: nothing is like '{pattern}'")
        (policy / name).write_text(text)
    if mutant.compiler:
        shutil.copy(REPO / "dev/policyc.h", folder)
        (folder / "policyc.c").write_text(changed(REPO / "dev/policyc.c", mutant.compiler))
        compiler = folder / "policyc-changed"
        call(["gcc", "-O1", "-D_GNU_SOURCE", "-o", compiler, folder / "policyc.c", "-lseccomp"])
    target = folder / "gen/box/wall/filter.h"
    target.unlink()
    call([compiler, policy, target])


def build(mutant):
    folder = HOME / re.sub(r"\W+", "_", mutant.name)
    shutil.rmtree(folder, ignore_errors=True)
    call(["cp", "-al", BASE, folder])
    for note in folder.rglob("*.d"):
        note.unlink()  # they speak of the other folder
    sources = knowing(mutant.off)
    lost = [name for name in mutant.off if not knowing([name])]
    if lost:
        raise Broken(f"no source knows {lost}")
    if mutant.policy or mutant.compiler:
        write_filter(mutant, folder)
        sources |= set(FILTER_USERS)
    stale = ["broker", "init", "zygote.so", "cupel", "host/src/box/host/programs.o", "host/src/engine/talk/drivers.o"]
    stale += [f"{side}/{source}.o" for source in sources for side in ("host", "static", "shared")]
    for name in stale:
        (folder / name).unlink(missing_ok=True)
    flag = "-DCUPEL_MUTATION=" + ",".join("MUTATE_" + name for name in mutant.off) \
        if mutant.off else "-UCUPEL_MUTATION"
    where = folder.relative_to(REPO)
    call(["make", "-o", f"{where}/stamp/flags", f"B={where}", f"CC=gcc {flag}", f"STATIC_CC=musl-gcc {flag}",
          f"{where}/cupel"])
    return folder


def starts(program):
    """("", ""), or how a plain run is refused."""
    done = subprocess.run([program, "run", "-t", "10", "-c", "print('ran')"], capture_output=True,
                          text=True, stdin=subprocess.DEVNULL, timeout=60)
    return "" if done.stdout == "ran\n" else (done.stderr.strip() or f"exit {done.returncode}")


def probe(folder, probes):
    """Short names of the tests that failed."""
    env = {**os.environ, "CUPEL": str(folder / "cupel"), "BUILD": str(folder)}
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
    name = test.split("::", 1)[1]
    inner = re.search(r"\[(.*)\]", name)
    if name.startswith("test_the_box_holds"):
        return f"{inner[1].split('-', 1)[1]} ({inner[1].split('-')[0]})"
    return test.split("/")[-1].split(".py")[0].removeprefix("test_") + ": " + \
        name.removeprefix("test_").replace("_", " ")


def verdict(mutant, keep):
    """(good, words)"""
    folder = build(mutant)
    try:
        said = starts(folder / "cupel")
        refused_by = "posture" if POSTURE in said else "kernel"
        if mutant.refused:
            if said and refused_by == mutant.refused:
                return True, "refuses to start: " + said.splitlines()[0][:90]
            return False, f"must be refused by {mutant.refused}, but: {said or 'it starts'}"
        if said:
            return False, "does not start: " + said.splitlines()[0][:120]
        failed = probe(folder, mutant.probes + mutant.table)
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
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def check_table():
    """Every mutation of the header is in the table, and the other way round."""
    header = set(table.named_in_header((REPO / "src/box/wall/mutate.h").read_text()))
    used = {name for mutant in table.MUTANTS for name in mutant.off}
    if header != used:
        raise Broken(f"not in the table: {sorted(header - used)}; not in mutate.h: "
                     f"{sorted(used - header)}")


def check_probes(mutants):
    """All of them pass with every control in place: else a failure would prove nothing."""
    probes = sorted({test for mutant in mutants for test in mutant.probes + mutant.table})
    failed = probe(BASE, probes) if probes else []
    if failed:
        raise Broken(f"these fail without any mutation: {failed}")


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("names", nargs="*")
    words.add_argument("--quick", action="store_true", help="the few of `make test`")
    words.add_argument("--list", action="store_true", help="show the table, build nothing")
    words.add_argument("--keep", action="store_true", help="keep the mutants' builds")
    given = words.parse_args()
    mutants = [m for m in table.MUTANTS
               if (not given.quick or m.name in table.QUICK)
               and (not given.names or any(m.name.startswith(n) for n in given.names))]
    if given.list:
        print("\n".join(f"{m.name:34} {'; '.join(map(short, m.probes))}" for m in mutants))
        return 0
    bad = 0
    try:
        check_table()
        make_base()
        check_probes(mutants)
        for mutant in mutants:
            began = time.monotonic()
            good, said = verdict(mutant, given.keep)
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
