#!/usr/bin/python3
"""A cold one-shot run of `pass`, from the start of the program to its end, against peers in
the same rounds: bwrap (the promise), bare python3, runc and runsc (for comparison)."""
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import common

MOST = 1.25  # times bwrap
ROUNDS = int(os.environ.get("BENCH_ROUNDS", 60))
PYTHON = ["/usr/bin/python3", "-c", "pass"]
# What image host shows of the host, as src/box/inside/mount.c has it.
BINDS = ["/usr", "/etc/alternatives", "/etc/fonts", "/etc/ld.so.cache", "/etc/nsswitch.conf",
         "/etc/protocols", "/etc/services", "/etc/mime.types", "/etc/debian_version"]
LINKS = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}


def bwrap(_, python=PYTHON):
    argv = [shutil.which("bwrap"), "--unshare-all", "--die-with-parent"]
    for path in filter(os.path.exists, BINDS):
        argv += ["--ro-bind", path, path]
    for name, target in LINKS.items():
        argv += ["--symlink", target, f"/{name}"]
    return argv + ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/workspace",
                   "--chdir", "/workspace", *python]


def bwrap_bare_python(_):
    """What the walls alone cost: Python started as cupel starts it."""
    return bwrap(_, [PYTHON[0], "-S", *PYTHON[1:]])


def bundle(folder):
    """An OCI bundle with the same binds, for runc and runsc."""
    rootless = ["--rootless"] if os.getuid() else []
    folder.mkdir()
    subprocess.run([shutil.which("runc"), "spec", *rootless], cwd=folder, check=True)
    config = json.loads((folder / "config.json").read_text())
    config["process"].update(terminal=False, args=PYTHON, cwd="/workspace")
    # cgroup mounts of a hybrid host are what most often stops runc, and nobody needs them here.
    config["mounts"] = [m for m in config["mounts"] if m["type"] != "cgroup"]
    root = folder / "rootfs"
    root.mkdir()
    for name in ("etc", "proc", "dev", "sys", "tmp", "workspace"):
        (root / name).mkdir()
    for name, target in LINKS.items():
        (root / name).symlink_to(target)
    for path in filter(os.path.exists, BINDS):
        inside = root / path[1:]
        inside.mkdir(parents=True) if os.path.isdir(path) else inside.touch()
        config["mounts"].append({"destination": path, "type": "bind", "source": path,
                                 "options": ["rbind", "ro"]})
    (folder / "config.json").write_text(json.dumps(config))
    return str(folder)


def runc(folder):
    return [shutil.which("runc"), "--root", str(folder / "runc-state"), "run", "--bundle",
            bundle(folder / "runc"), "cupel-bench"]


def runsc(folder):
    common_flags = [shutil.which("runsc"), "--root", str(folder / "runsc-state"),
                    "--platform=ptrace", "--network=none", "--ignore-cgroups"]
    if os.getuid():  # `run` does not work without root; `do` makes its own namespaces
        return [*common_flags, "--rootless", "do", *PYTHON]
    return [*common_flags, "run", "--bundle", bundle(folder / "runsc"), "cupel-bench"]


PEERS = [("cupel", lambda _: [common.CUPEL, "run", "-c", "pass"]),
         ("bwrap", bwrap),
         ("bwrap, python3 -S", bwrap_bare_python),
         ("python3 -c pass", lambda _: PYTHON),
         ("python3 -S -c pass", lambda _: [PYTHON[0], "-S", *PYTHON[1:]]),
         ("runc", runc),
         ("runsc", runsc)]


def try_peer(make, folder, env):
    """(argv, None), or (None, why it cannot run here)."""
    try:
        argv = make(folder)
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=30)
    except (OSError, TypeError, subprocess.SubprocessError) as failure:
        return None, str(failure)
    if done.returncode:
        return None, (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    return argv, None


def measure(home):
    """As whoever we are: {peer: [ms, ...]} and {peer: why not}."""
    env = {**common.ENV, "HOME": home, "CUPEL_STATE": f"{home}/state", "XDG_RUNTIME_DIR": f"{home}/run"}
    commands, times, absent = {}, {}, {}
    for name, make in PEERS:
        argv, why = try_peer(make, Path(home), env)
        if argv:
            commands[name], times[name] = argv, []
        else:
            absent[name] = why
    # Shuffled anew each round: what one peer leaves for the kernel to tidy up is paid by the next.
    names, order = list(commands), random.Random(1)
    for _ in range(ROUNDS):
        order.shuffle(names)
        for name in names:
            took, code = common.timed(commands[name], env)
            if code:
                raise SystemExit(f"{name} ended with {code}")
            times[name].append(took)
    return times, absent


def show(figures, who, times, absent):
    ours = times["cupel"]
    print(f"  as {who:18} {'median':>8} {'p10':>8} {'p90':>8}   cupel takes this many times as long (p10..p90)")
    for name, _ in PEERS:
        if name in absent:
            print(f"  {name:21} not available: {absent[name]}")
            figures.note(name, who=who, absent=absent[name])
            continue
        middle, low, high = common.spread(times[name])
        ratio, ratio_low, ratio_high = common.spread([a / b for a, b in zip(ours, times[name])])
        print(f"  {name:21} {middle:8.1f} {low:8.1f} {high:8.1f}   {ratio:.2f} ({ratio_low:.2f}..{ratio_high:.2f})")
        figures.note(name, who=who, ms=round(middle, 2), p10=round(low, 2), p90=round(high, 2),
                     ratio=round(ratio, 3), rounds=len(ours))
        if name == "bwrap":
            promised = ratio
    if "bwrap" in times:
        figures.promise(f"cold start against bwrap, as {who}", promised, MOST, " ×")


def main():
    figures = common.Figures("cold", f"milliseconds from spawn to reaped, {ROUNDS} rounds, each peer once a "
                             "round in random order; the ratio is the median of the rounds' own ratios")
    with common.Scratch() as scratch:
        for who, uid in (("root", None), ("an ordinary user", common.ORDINARY)):
            if who == "root" and os.getuid():
                continue
            switch = uid is not None and not os.getuid()
            home = scratch.cupel_env(f"home-{uid}", uid if switch else None)["HOME"]
            ids = {"user": uid, "group": uid, "extra_groups": []} if switch else {}
            program = scratch.reachable_copy()
            done = subprocess.run(["/usr/bin/python3", program / "cold.py", "--one", home],
                                  stdout=subprocess.PIPE, text=True, check=True, cwd=home,
                                  env={**os.environ, "CUPEL": str(program / "cupel")}, **ids)
            show(figures, who, *json.loads(done.stdout))
    print("  cupel starts Python with -S and sets the package paths itself; the row 'bwrap, python3 -S' leaves")
    print("  that advantage out. It also filters system calls, limits resources and collects files; bwrap does not.")
    return figures.broken


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        json.dump(measure(sys.argv[2]), sys.stdout)
    else:
        sys.exit(main())
