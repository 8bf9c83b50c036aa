#!/usr/bin/python3
"""Smoke tests on other releases: root file systems that mmdebstrap makes, with this cupel in them.
`make test-distros`; SUITES="trixie sid" chooses. Downloads a few hundred MB once, into build/distros."""
import json
import os
import subprocess
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent / "flow")]
import host  # noqa: E402
from test_distributions import in_root  # noqa: E402

PACKAGES = "python3 python3-numpy python3-pandas python3-matplotlib nodejs bash ca-certificates " \
           "libjansson4 libedit2 util-linux procps"
CHECKS = """
cupel run --cold "import numpy, sys; print(sys.version_info[1], numpy.arange(7).sum())"
cupel run --cold -l javascript "console.log(6 * 7)"
cupel run --cold -l bash "echo $((6 * 7))"
cupel run --cold -m 64M "x = bytearray(1 << 30)" >/dev/null 2>&1 && exit 1
cupel run --cold "import matplotlib.pyplot as p; p.plot([1, 2]); p.savefig(\\"a.png\\")" -o /tmp/out
test -s /tmp/out/a.png
mkdir -m 700 /tmp/sock; export CUPEL_SOCKET=/tmp/sock/s
cupel serve -q & engine=$!
while [ ! -S /tmp/sock/s ]; do kill -0 $engine; sleep 0.1; done
id=$(cupel session new -q)
cupel session run $id "import pandas; x = 41"
cupel session run $id "x = 0"
cupel session undo $id
cupel session run $id "x + 1"
cupel session fork $id >/dev/null
kill $engine; wait $engine
cupel doctor --json >/tmp/doctor || true
cat /tmp/doctor
"""


def make(suite, folder):
    """A tar of the release, kept; unpacked."""
    tar, root = folder / f"{suite}.tar", folder / suite
    if not tar.exists():
        print(f"{suite}: making it with mmdebstrap", flush=True)
        subprocess.run(["mmdebstrap", "--format=tar", "--variant=minbase",
                        "--aptopt=Acquire::Check-Valid-Until \"false\"",  # an old mirror will do
                        f"--include={','.join(PACKAGES.split())}",
                        suite, f"{tar}.part"], check=True, stderr=subprocess.DEVNULL)
        Path(f"{tar}.part").rename(tar)
    if not root.exists():
        root.mkdir()
        subprocess.run(["tar", "-C", root, "--exclude=./dev/*", "-xf", tar], check=True)
    return root


def smoke(place, root, user):
    done = in_root(place, ":", CHECKS, user=user, lower=root)
    lines = done.stdout.splitlines()
    problem = None
    if done.returncode != 0 or lines[1:3] != ["42", "42"] or "42" not in lines[3:]:
        problem = f"exit {done.returncode}\n{done.stdout[-1500:]}\n{done.stderr[-3000:]}"
    else:
        report = json.loads(lines[-1])
        missing = [row["name"] for row in report["checks"]
                   if row["verdict"] == "missing" and row["required"]]
        problem = f"the doctor misses {missing}" if missing else None
    return lines[0] if lines else "", problem


def main():
    if os.getuid() != 0:
        sys.exit("make test-distros needs root")
    folder = host.BUILD / "distros"
    folder.mkdir(exist_ok=True)
    failed = False
    with host.Place() as place:
        for suite in os.environ.get("SUITES", "trixie").split():
            root = make(suite, folder)
            for user in (None, host.ORDINARY):
                said, problem = smoke(place, root, user)
                failed |= bool(problem)
                print(f"{suite}, {'user' if user else 'root'}: {problem or 'ok, python 3.' + said}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
