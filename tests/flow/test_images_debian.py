"""`cupel images build --debian`: mmdebstrap unpacks a system, behind the walls of a build and without scripts."""
import http.server
import json
import os
import signal
import socket
import subprocess
import threading

import pytest

import host
from test_images_add import Adder

pytestmark = pytest.mark.skipif(not os.path.exists("/usr/bin/mmdebstrap"), reason="no mmdebstrap here")


@pytest.fixture
def adder(cupel_as, place):
    return Adder(cupel_as, place)


def refused(adder, *args, code=2):
    return json.loads(adder("build", *args, "--json", code=code).stdout)["error"]


@pytest.mark.parametrize("args, text", [
    (["--debian", "a;b", "x"], "no release"), (["--debian", "-x", "x"], "no release"),
    (["--debian", "bookworm/x", "x"], "no release"), (["x"], "needs a release"),
    (["--debian", "bookworm"], "needs a name"),
    (["--debian", "bookworm", "--mirror", "file:///x", "x"], "no address"),
    (["--debian", "bookworm", "--mirror", "deb [trusted=yes] http://x/ y main", "x"], "no address"),
    (["--debian", "bookworm", "--mirror", "http://x/ y", "x"], "no address"),
    (["--debian", "bookworm", "--apt", "--hook", "x"], "names no package"),
    (["--debian", "bookworm", "--apt", "a,b", "x"], "names no package"),
    (["--debian", "bookworm", "--timeout", "0", "x"], "1 to"),
    (["--debian", "bookworm", "host"], "no name for an image"),
])
def test_what_makes_no_sense_is_refused(adder, args, text):
    assert text in refused(adder, *args)["message"] and adder.left() == []


class Hanging:
    """A mirror that accepts and never answers."""

    def __enter__(self):
        self.sock = socket.create_server(("127.0.0.1", 0))
        self.sock.settimeout(30)
        self.url = f"http://127.0.0.1:{self.sock.getsockname()[1]}/debian"
        return self

    def __exit__(self, *_):
        self.sock.close()


def begin(adder, hanging, *args):
    child = adder.cupel.popen(["images", "build", "--debian", "bookworm", "--mirror", hanging.url, "deb", *args],
                              env=adder.env)
    connection, _ = hanging.sock.accept()
    return child, connection, host.descendants(child.pid)


def status_of(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


@pytest.mark.both
def test_mmdebstrap_has_no_rights_and_a_killed_build_leaves_nothing(adder):
    with Hanging() as hanging:
        child, connection, below = begin(adder, hanging)
        assert any(row["comm"].startswith("mmdebstrap") for row in below), below
        uid = str(adder.cupel.uid or 0x70000000 + 4095 * 65536)
        for row in below:
            status = status_of(row["pid"])
            assert status["Uid"].split() == [uid] * 4 and int(status["CapEff"], 16) == 0, row
            assert row["parent"] == child.pid or status["NoNewPrivs"] == "1", row
        child.kill()
        child.wait()
        assert host.wait_until(lambda: not host.same_alive(below), 5)
        connection.close()
    adder("rm", "none", code=2)
    assert adder.left() == []


@pytest.mark.parametrize("end", [signal.SIGINT, "--timeout"])
def test_an_interrupted_or_late_build_leaves_nothing(adder, end):
    with Hanging() as hanging:
        late = end == "--timeout"
        child, connection, below = begin(adder, hanging, "--json", *(["--timeout", "3"] if late else []))
        if not late:
            child.send_signal(end)
        out, _ = child.communicate(timeout=60)
        assert child.returncode == (75 if late else 130), out
        assert (b"not ready in 3 s" if late else b"interrupted") in out and not host.same_alive(below)
        connection.close()
    assert adder.left() == []


def test_a_mirror_without_debians_signature_is_refused(adder):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"Origin: Debian\nSuite: bookworm\nCodename: bookworm\n"
                             b"Date: Sat, 10 Jun 2023 08:00:00 UTC\n")

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        mirror = f"http://127.0.0.1:{server.server_port}/debian"
        error = refused(adder, "--debian", "bookworm", "--mirror", mirror, "deb", code=125)
        server.shutdown()
    assert "mmdebstrap could not do it" in error["message"] and "sign" in error["message"], error
    assert adder.left() == []


@pytest.mark.full
@pytest.mark.both
def test_a_debian_stands_alone_is_the_same_again_and_runs_in_strict(adder):
    args = ["--debian", "bookworm", "--apt", "python3", "--json", "-q"]
    done = adder.cupel.run(["images", "build", "deb", *args], env=adder.env, timeout=600)
    if done.returncode:
        pytest.skip(f"no mirror can be reached: {done.stdout[:300]}")
    image = json.loads(done.stdout)["image"]
    shown = json.loads(adder("show", "deb", "--json").stdout)["image"]
    assert shown["base"] == "none" and shown["suite"] == "bookworm" and shown["facts"]["os"].startswith("Debian")
    names = {row["name"]: row["version"] for row in shown["packages"]["apt"]}
    assert {"bash", "coreutils", "python3"} <= set(names)
    tree = adder.tree(image)
    assert os.readlink(tree / "bin") == "usr/bin" and not (tree / "etc/resolv.conf").exists()
    assert not list(tree.rglob("*.deb")) and not (tree / "etc/apt/sources.list").exists()
    assert not (tree / "etc/hostname").exists()
    again = json.loads(adder.cupel.run(["images", "build", "again", *args], env=adder.env, timeout=600).stdout)["image"]
    assert again["digest"] == image["digest"]
    code = "import sys, os; print(sys.version_info[:2], os.path.exists('/usr/share/doc/bash'))"
    profile = "baseline" if adder.cupel.uid else "strict"  # which needs a uid of its own for each box
    done = adder.cupel.run(["run", "--profile", profile, "--image", "deb", code], env=adder.env, timeout=60)
    assert done.stdout.startswith("(3, 11)"), (done.stdout, done.stderr)


@pytest.mark.skipif(os.getuid() != 0, reason="mounts a small file system")
@pytest.mark.full
def test_a_full_disk_is_an_error_that_leaves_nothing(cupel, place):
    adder = Adder(cupel, place)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=60m,mode=755", "tests", adder.folder], check=True)
    try:
        error = refused(adder, "--debian", "bookworm", "deb", code=125)
        if "space" not in json.dumps(error) and "resolve" in json.dumps(error):
            pytest.skip(f"no mirror can be reached: {error}")
        assert "space" in json.dumps(error).lower(), error
        assert adder.left() == []
    finally:
        subprocess.run(["umount", adder.folder], check=True)
