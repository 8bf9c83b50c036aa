"""Images whose trees attack what mounts them: links, files and folders where cupel's own places are, odd and long
names, thousands of entries; and images whose interpreters are broken or hostile. Each gives a box that holds, or a
clear refusal: never a hang, never `internal`, never a write outside."""
import io
import os
import tarfile
import time

import boxes
import engine
import pytest
from test_wall import HERE, PRELUDE, verdicts

import host

PYTHON = "usr/bin/" + boxes.VERSION
TOP = "dev proc tmp workspace home mnt var run srv sys etc root .landlock .proc".split()
FILES_OF_ETC = "passwd group hosts hostname resolv.conf ld.so.preload ld.so.cache mtab".split()
NODES = "null zero full random tty ptmx pts shm fd stdin".split()
OWN = "driver.py main.sh zygote.py seed.so values.py".split()  # below /usr/lib/cupel


def link(target):
    return tarfile.SYMTYPE, target


FOLDER = tarfile.DIRTYPE, None


def script(text):
    return tarfile.REGTYPE, ("#!/bin/bash\n" + text).encode()


FILE = script("")
# {name: {path: what the tree has there; None: nothing}}. The first hold as boxes; code runs in them.
HOLD = {
    **{f"links to {to}": {name: link(to or name) for name in TOP} for to in ("/etc", "..", "/proc/1/root", "")},
    "files for folders": {name: FILE for name in TOP},
    "folders for files": {name: FOLDER for name in [
        "etc", "dev", ".landlock", "usr/lib/cupel", *(f"etc/{name}" for name in FILES_OF_ETC),
        "dev/more", *(f"dev/{name}" for name in NODES), *(f"usr/lib/cupel/{name}" for name in OWN)]},
    "links for files": {"etc": FOLDER, "usr/lib/cupel": link("/etc"), "usr/local": link("/etc"),
                        **{f"etc/{name}": link("/proc/1/environ") for name in FILES_OF_ETC}},
    "a file for our folder": {"usr/lib/cupel": FILE, "usr/local": FILE},
    "our own files": {f"usr/lib/cupel/{name}": script("echo HIJACKED") for name in OWN},
    "names": {"n" * 255: FILE, "d" * 255: FOLDER, "d" * 255 + "/" + "f" * 255: FILE, "a\nb": FILE, "c:d,e\\": FOLDER,
              "\x1b[31m": FILE, "lowerdir=x:y": FOLDER, "-rf": FILE, " ": FOLDER},
    "5,000 names": {f"t{number}": FILE for number in range(5000)},
}
# Python does not work: how it ends ("" for a refusal), with a word of the message.
BROKEN = {
    "junk": ({PYTHON: (tarfile.REGTYPE, b"\x7fELF\2\1\1junk")}, "", "does not start"),
    "its own interpreter": ({PYTHON: (tarfile.REGTYPE, f"#!/{PYTHON}\n".encode())}, "", "does not start"),
    "a link to itself": ({"usr/bin/python3": link("python3"), PYTHON: link(boxes.VERSION)}, "", "lacks Python"),
    "a folder": ({"usr/bin/python3": FOLDER, PYTHON: FOLDER}, "", "lacks Python"),
    "no loader": ({"lib64": None}, "", "does not start"),
    "no /usr": ({"usr": None, "etc": FOLDER}, "", "lacks Python"),
    "silent": ({PYTHON: script("while :; do :; done")}, "timeout", "longer"),
    "loud": ({PYTHON: script("while :; do echo x; echo '{' >&250; done 2>&1")}, "timeout", "longer"),
    "gone": ({PYTHON: script("kill -9 $$")}, "killed", "SIGKILL"),
    "without a library": ({"usr/lib/" + boxes.VERSION: None}, "error", "exit code 1"),
}
CODE = """
assert open("/etc/passwd").read().startswith("root:x:0:0:root:/:/usr/sbin/nologin\\nuser:x:1000")
assert sorted(os.listdir("/workspace")) == [] and sorted(os.listdir("/tmp")) == [".matplotlib"], os.listdir("/tmp")
assert os.listdir("/dev/pts") == ["ptmx"] and os.path.isdir("/proc/self/fd")
assert os.readlink("/proc/self") == str(os.getpid())
assert any(name.startswith("driver.py") for name in os.listdir("/usr/lib/cupel")) and os.getuid() > 0
for path in ("/usr/lib/cupel/driver.py", "/etc/passwd", "/", "/home", "/usr"):
    assert not os.access(path, os.W_OK), path
open("/workspace/out", "w").write("out")
print("HELD")
"""
OUTSIDE = ["/", "/etc", "/home", "/srv", "/mnt", "/usr", "/usr/lib"]


@pytest.fixture(scope="module")
def base(place):
    return boxes.pack(place.root / "small.tar", [boxes.VERSION, "bash", "dash", "cat"])


def is_gone(path, edits):
    return any(path == edited or path.startswith(edited + "/") for edited in edits)


def edited(base, edits, out):
    """The tar with other entries at these paths; folders first, as every archive has them."""
    with tarfile.open(base) as old, tarfile.open(out, "w") as new:
        for info in old:
            if not is_gone(info.name, edits):
                new.addfile(info, old.extractfile(info) if info.isreg() else None)
        for path, what in edits.items():
            if what:
                info = tarfile.TarInfo(path)
                info.type, info.mode = what[0], 0o755
                data = what[1] if info.isreg() else b""
                info.size, info.linkname = len(data), what[1] if info.issym() else ""
                new.addfile(info, io.BytesIO(data))
    return out


def stored(cupel, base, edits, place):
    """The image, under a name of its own: the store has equal files once."""
    done = cupel.run(["images", "import", "-q", "--name", "hostile", edited(base, edits, place.fresh() / "h.tar")])
    assert done.returncode == 0, done.stderr


def run(cupel, code, **fields):
    limits = {"timeout_s": 20, "cpu_s": 20}
    return cupel.request({"code": code, "image": "hostile", "limits": limits, **fields}, ["--cold"])


@pytest.mark.boxes("host", why="it names the image itself")
@pytest.mark.sample(short=4)
@pytest.mark.parametrize("name", HOLD)
def test_a_hostile_tree_gives_a_box_that_holds(cupel_as, who, place, base, name):
    stored(cupel_as, base, HOLD[name], place)
    before = [os.stat(path).st_mtime_ns for path in OUTSIDE]
    result = run(cupel_as, PRELUDE + CODE, **({"profile": "strict"} if who == "root" else {}))
    assert result.get("status") == "ok" and result["stdout"] == "HELD\n", (result.get("error"), result.get("stderr"))
    assert [row["path"] for row in result["artifacts"]] == ["out"] and "HIJACKED" not in result["stderr"]
    shell = run(cupel_as, "cat /etc/hostname; echo x > /workspace/y; : > /etc/x", language="bash")
    assert shell["stdout"] == "box\n" and shell["exit_code"] == 1, shell
    for program in ("mounts.py", "devices.py", "proc_sys.py"):
        held = run(cupel_as, PRELUDE + (HERE / "programs" / program).read_text())
        said = {**verdicts(held["stdout"], "PROBE"), **verdicts(held["stdout"], "CHECK")}
        assert held["status"] == "ok" and len(said) > 3, held
        assert {word for word, _ in said.values()} <= {"blocked", "ok"}, (program, said)
    assert [os.stat(path).st_mtime_ns for path in OUTSIDE] == before


@pytest.mark.boxes("host", why="it names the image itself")
@pytest.mark.sample(short=4)
@pytest.mark.parametrize("name", BROKEN)
def test_an_image_with_a_broken_python_says_so(cupel_as, place, base, name):
    edits, status, words = BROKEN[name]
    stored(cupel_as, base, edits, place)
    answer = run(cupel_as, "print(1)", limits={"timeout_s": 1, "cpu_s": 2})
    if status:
        assert answer["status"] == status and words in answer["error"]["message"], answer
    else:
        error = answer["error"]
        assert error["kind"] == "input" and words in error["message"] and "'hostile'" in error["message"], answer
        assert "images" in error["hint"] and answer.exit_status == 2, answer
    if "usr" not in edits and "lib64" not in edits:
        assert run(cupel_as, "echo fine", language="bash")["stdout"] == "fine\n"
    if name in ("silent", "loud"):
        return  # the probe of `images show` gives up after 20 s
    show = cupel_as.run(["images", "show", "hostile"])
    assert show.returncode == 0 and "python    /usr" not in show.stdout.replace(f"python    /{PYTHON}", ""), show


@pytest.mark.boxes("host", why="it names the image itself")
@pytest.mark.parametrize("path, words", [("deep/" * 200 + "x", "nested too deep"), ("n" * 256, "name"),
                                         ("../x", "'..'"), ("/proc/self/../../etc/x", "absolute path")])
@pytest.mark.full
def test_a_name_that_no_tree_can_have_is_refused_at_import(cupel_as, place, base, path, words):
    tar = edited(base, {path: FILE}, place.fresh() / "h.tar")
    done = cupel_as.run(["images", "import", "-q", "--name", "refused", tar])
    assert done.returncode == 2 and words in done.stderr, done


@pytest.mark.boxes("host", why="it names the image itself")
def test_an_engine_with_hostile_images_serves_others_all_the_same(cupel_as, place, base):
    """Their interpreters are asked again and again, as pools do."""
    stored(cupel_as, base, BROKEN["loud"][0], place)
    with engine.Engine(cupel_as, engine.socket_path(place, cupel_as)) as running, running.client() as client:
        began = time.monotonic()
        for number in range(6):
            client.start(f"h{number}", {"code": "1", "image": "hostile", "limits": {"timeout_s": 1}})
        results = {}
        while len(results) < 6:
            frame = client.receive()
            if "result" in frame or "error" in frame:
                results[frame["id"]] = frame
        assert {frame["result"]["status"] for frame in results.values()} == {"timeout"}, results
        assert client.run("print(1)")[1]["result"]["stdout"] == "1\n"
        assert time.monotonic() - began < 30 * host.slowness()
