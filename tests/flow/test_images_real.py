"""Images as they are found outside: Debian releases with other Pythons, made by mmdebstrap, and a root of musl and
busybox. Made once for a build folder. What works is tried in runs and sessions; what an image lacks is said clearly."""
import fcntl
import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import archives
import engine
import host
import pytest
from sessions import Session

FOLDER = host.BUILD / "distros"
# A package that its release has, the version of Python that the image shows.
RELEASES = {"trixie": ("python3", "3.13"), "bullseye": ("python3", "3.9"), "sid": ("python3.14", "3.14")}
MUSL = Path("/lib/ld-musl-x86_64.so.1"), Path("/lib/x86_64-linux-musl/libc.so")


def needs(*programs):
    missing = [name for name in programs if not shutil.which(name)]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {' '.join(missing)}")


def made(suite):
    """The tar of a release: unpacked packages, no script of theirs has run. Made once for a build folder."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    tar = FOLDER / f"{suite}-unpacked.tar"
    with open(FOLDER / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not tar.exists():
            done = subprocess.run(
                ["mmdebstrap", "--format=tar", "--variant=extract", '--aptopt=Acquire::Check-Valid-Until "false"',
                 "--include=" + ",".join([RELEASES[suite][0], "bash", "dash", "coreutils"]), suite, f"{tar}.part"],
                capture_output=True, text=True, timeout=240)
            if done.returncode != 0:
                pytest.skip(f"mmdebstrap cannot make {suite} here: {done.stderr[-300:]}")
            Path(f"{tar}.part").rename(tar)
    return tar


@pytest.fixture
def images(cupel_as, place):
    return archives.Images(cupel_as, place)


def run(images, name, code, language="python", **fields):
    text = json.dumps({"code": code, "language": language, "image": name, **fields})
    done = images.cupel.run(["run", "--cold", "--json", "--request", "-"], input=text, env=images.env)
    return json.loads(done.stdout)


FAILING = "def f(x):\n    return x / 0\nprint('before')\nf(1)\n"


@pytest.mark.full
@needs("mmdebstrap")
@pytest.mark.parametrize("suite", RELEASES)
def test_a_release_of_debian_runs_its_own_python(images, who, suite):
    version = RELEASES[suite][1]
    manifest = images.add(made(suite), "--name", suite)
    assert manifest["base"] == "none"
    shown = json.loads(images.ok("show", suite, "--json").stdout)["image"]
    assert shown["facts"]["python_version"] == version and shown["facts"]["libc"] == "glibc", shown
    assert {"python", "bash"} <= {row["name"] for row in shown["languages"]}, shown
    strict = {"profile": "strict"} if who == "root" else {}
    result = run(images, suite, "import sys, json\nprint(sys.version_info[:2])\n{'a': [1, None]}", **strict)
    assert result["status"] == "ok" and result["stdout"] == f"({version.replace('.', ', ')})\n", result
    assert result["results"][-1]["text/plain"] == "{'a': [1, None]}"
    failed = run(images, suite, FAILING)
    assert failed["stdout"] == "before\n" and failed["error"]["name"] == "ZeroDivisionError", failed
    assert failed["error"]["line"] in (2, 4) and "line 4, in <module>" in failed["error"]["traceback"], failed["error"]
    assert run(images, suite, "x = (1 +")["error"]["kind"] == "syntax"
    called = run(images, suite, "def solve(a):\n    return {'twice': 2 * a}", call={"function": "solve", "args": [21]})
    assert called["results"][-1]["application/json"] == {"twice": 42}, called
    absent = run(images, suite, "import pandas")
    assert absent["error"]["kind"] == "import" and f"'pandas' is not in image {suite}" in absent["error"]["hint"]
    assert run(images, suite, "echo $((6 * 7)); cat /etc/hostname", "bash")["stdout"] == "42\nbox\n"
    error = run(images, suite, "1", "javascript")["error"]
    assert error["kind"] == "input" and error["message"] == f"image '{suite}' lacks node", error


@pytest.mark.full
@needs("mmdebstrap")
@pytest.mark.parametrize("suite", ["trixie", "bullseye"])
def test_sessions_and_pools_of_another_python(images, place, suite):
    images.add(made(suite), "--name", suite)
    path = engine.socket_path(place, images.cupel)
    with engine.Engine(images.cupel, path, env=images.env) as running, running.client() as client:
        session = Session(client, request={"image": suite})
        assert session.run("x = 41")["status"] == "ok"
        assert session.value("x += 1; x") == "42"
        assert session.run("1 / 0")["error"]["name"] == "ZeroDivisionError" and session.value("x") == "42"
        session.end()
        shell = Session(client, language="bash", request={"image": suite})
        assert shell.run("y=6; false; echo $((y * 7))")["stdout"] == "42\n" and shell.run("echo $y")["stdout"] == "6\n"
        shell.end()

        def warm():
            return client.run({"code": "print(1)", "image": suite})[1]["result"]["metrics"]["warm"]
        assert host.wait_until(warm, 20, 0.3), client.info()

        def warm_bash():
            request = {"language": "bash", "code": "echo $1\necho two", "args": ["one"], "image": suite}
            result = client.run(request)[1]["result"]
            assert (result["status"], result["stdout"]) == ("ok", "one\ntwo\n"), result
            return result["metrics"]["warm"]
        assert host.wait_until(warm_bash, 20, 0.3), client.info()
        assert sum([warm_bash() for _ in range(6)]) > 0


def musl_root(path, with_bash):
    """musl's loader, busybox for every program, and a program that needs the loader."""
    busybox, real = Path("/bin/busybox"), Path(os.path.realpath(MUSL[0]))
    hello = path.parent / "hello"
    subprocess.run(["musl-gcc", "-O1", "-o", hello, "-xc", "-"], text=True, check=True, timeout=60,
                   input='#include <stdio.h>\nint main(void) { puts("hello from musl"); return 0; }\n')
    applets = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split()
    with tarfile.open(path, "w") as tar:
        tar.add(busybox, "bin/busybox", recursive=False)
        tar.add(real, "lib/ld-musl-x86_64.so.1", recursive=False)
        tar.add(hello, "usr/bin/hello", recursive=False)
        names = [name for name in applets if name != "busybox"] + (["bash"] if with_bash else [])
        for name in names:
            info = tarfile.TarInfo(f"bin/{name}")
            info.type, info.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(info)
    return path


@needs("busybox", "musl-gcc")
def test_a_root_of_musl_and_busybox_says_what_it_lacks(images, place):
    images.add(musl_root(place.fresh() / "musl.tar", with_bash=False), "--name", "tiny")
    shown = json.loads(images.ok("show", "tiny", "--json").stdout)["image"]
    assert shown["facts"]["python"] is None and shown["facts"]["sh"] == "/bin/busybox", shown["facts"]
    text = images.ok("show", "tiny").stdout
    assert "lacks     Python: it has no Python" in text, text
    for language, lacks in (("python", "Python"), ("bash", "bash"), ("javascript", "node")):
        error = run(images, "tiny", "1", language)["error"]
        assert (error["kind"], error["field"]) == ("input", "language") and f"'tiny' lacks {lacks}" in error["message"]
        assert "cupel languages --image tiny" in error["hint"]
    # Commands need no language.
    done = images.cupel.run(["exec", "--image", "tiny", "--", "/bin/sh", "-c", "/usr/bin/hello; id -u; touch /x"],
                            env=images.env)
    assert "hello from musl" in done.stdout and "Read-only" in done.stdout + done.stderr, done
