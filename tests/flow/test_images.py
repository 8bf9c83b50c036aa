"""`cupel images`: stored images as a person and a script see them, as root and as an ordinary user. The images are
made by build/image-maker, of folders."""
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time

import pytest

from host import BUILD, ORDINARY, SEED

MAKER = BUILD / "image-maker"


class Images:
    """cupel images, with a state folder of its own."""

    def __init__(self, cupel, folder):
        self.cupel, self.folder = cupel, folder
        self.state = folder / "state"
        self.env = {**cupel.env, "CUPEL_STATE": str(self.state)}
        self.maker = folder / "image-maker"
        shutil.copy(MAKER, self.maker)  # where an ordinary user can reach it
        self.maker.chmod(0o755)

    def __call__(self, *args, code=0):
        done = self.cupel.run(["images", *args], env=self.env)
        assert done.returncode == code, (args, done.returncode, done.stdout, done.stderr)
        return done

    def json(self, *args, code=0):
        return json.loads(self(*args, "--json", code=code).stdout)

    def tree(self, files, name="tree"):
        """A folder with these {path: text}; executable where the text begins with #!."""
        top = self.folder / name
        top.mkdir()
        for path, text in files.items():
            at = top / path
            at.parent.mkdir(parents=True, exist_ok=True)
            at.write_text(text)
            at.chmod(0o755 if text.startswith("#!") else 0o644)
        return top

    def start(self, *args, **options):
        return subprocess.Popen([self.maker, *map(str, args)], env=self.env, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, **self.cupel.identity(), **options)

    def make(self, name, files, *options):
        child = self.start(*options, name, self.tree(files, f"tree-{name}"))
        out, told = child.communicate(timeout=60)
        assert child.returncode == 0, told
        shutil.rmtree(self.folder / f"tree-{name}")
        return out.strip()

    def rows(self):
        return {row["name"]: row for row in self.json("ls")["images"]}

    def stored(self):
        """Every file of the store, but for its lock."""
        top = self.state / "images"
        return sorted(str(path.relative_to(top)) for path in top.rglob("*")
                      if (path.is_symlink() or not path.is_dir()) and path != top / "lock")


@pytest.fixture
def images(cupel_as, folder):
    return Images(cupel_as, folder)


def test_without_a_store_there_is_the_host(images):
    host, = images.json("ls")["images"]
    assert host["name"] == "host" and re.fullmatch("sha256:[0-9a-f]{64}", host["digest"])
    assert images.json("du") == {"images": [], "unused_bytes": 0, "total_bytes": 0}
    assert "unknown image 'data'" in images("show", "data", code=2).stderr
    assert images("verify").stdout == ""


def test_the_stored_images_are_listed_after_the_host(images):
    hex_ = images.make("data", {"usr/bin/tool": "#!/bin/sh\n", "etc/motd": "hello\n"})
    images.make("added", {"usr/local/x": "1"}, "--host")
    rows = images.rows()
    assert list(rows) == ["host", "added", "data"]
    assert rows["data"]["digest"] == rows["data"]["tree"] == f"sha256:{hex_}"
    assert rows["data"]["base"] == "none" and rows["added"]["base"] == "host"
    assert rows["added"]["digest"] != rows["added"]["tree"], "it covers the host's digest"
    assert rows["data"]["files"] == 2 and rows["data"]["bytes"] == 16 and rows["data"]["changed"] is None
    text = images("ls").stdout
    assert f"sha256:{hex_[:12]}" in text and "16 B" in text and rows["data"]["created"][:10] in text


@pytest.mark.full
def test_alone_the_host_is_probed_and_the_stored_ones_follow(images):
    images.make("data", {"etc/motd": "hello\n"})
    host, data = images.json()["images"]
    assert host["name"] == "host" and any(row["name"] == "bash" for row in host["languages"]) and host["fonts"]
    assert data["name"] == "data"
    assert images.json("show", "host")["image"]["digest"] == host["digest"]
    text = images().stdout
    assert text.startswith("host\n  digest ") and re.search(r"^data +sha256:", text, re.M)


def test_show_tells_what_the_tree_shows(images):
    hex_ = images.make("py", {"usr/bin/python3": "#!/bin/sh\n", "usr/lib/python3.9/os.py": "",
                              "usr/bin/sh": "#!/bin/busybox\n", "etc/os-release": 'PRETTY_NAME="Mini 1"\n'})
    image = images.json("show", "py")["image"]
    assert image["facts"]["python"] == "/usr/bin/python3" and image["facts"]["python_version"] == "3.9"
    assert image["facts"]["python_packages"] == "/usr/lib/python3.9/site-packages"
    assert image["facts"]["os"] == "Mini 1" and image["facts"]["node"] is None
    assert image["env"] == {"GREETING": "hello"} and image["refused"] is None
    text = images("show", f"py@sha256:{hex_}").stdout
    for word in ("/usr/bin/python3, 3.9", "Mini 1", "GREETING=hello", f"sha256:{hex_}", "none"):
        assert word in text, word
    assert "is now" in images("show", "py@sha256:" + "0" * 64, code=2).stderr
    assert images.json("show", f"sha256:{hex_}")["image"]["name"] == "py"


def test_a_name_for_a_terminal_has_no_control_characters(images):
    images.make("x", {"usr/bin/python3": "#!", "etc/os-release": "NAME='\x1b]0;evil\x07'\n"})
    assert "\x1b" not in images("show", "x").stdout


def test_rm_takes_all_or_none_and_prune_frees(images):
    for name in ("a", "b"):
        images.make(name, {"same": "x" * 10000, name: name * 10000})
    assert "'nix'" in images("rm", "a", "nix", code=2).stderr
    assert set(images.rows()) == {"host", "a", "b"}
    assert [row["name"] for row in images.json("rm", "a")["removed"]] == ["a"]
    freed = images.json("prune")
    assert freed["images"] == 1 and 10000 <= freed["freed_bytes"] < 20000
    assert images("verify").stdout == "b: ok\n"
    images("rm", "b")
    assert "1 image removed" in images("prune").stdout
    assert images.stored() == []
    for word in ("host", "host@sha256:" + "0" * 64):
        assert "'host'" in images("rm", word, code=2).stderr


def test_du_tells_own_and_shared_space(images):
    images.make("a", {"same": "x" * 100000})
    images.make("b", {"same": "x" * 100000, "own": "y" * 200000})
    usage = images.json("du")
    a, b = sorted(usage["images"], key=lambda row: row["name"])
    assert a["shared_bytes"] == b["shared_bytes"] >= 100000
    assert a["own_bytes"] < 50000 and b["own_bytes"] >= 200000
    assert 300000 <= usage["total_bytes"] < 350000 and usage["unused_bytes"] == 0
    assert re.search(r"^total ", images("du").stdout, re.M)


def spoil(images, hex_, path):
    """As an intruder with the store's uid would."""
    at = images.state / "images/trees" / hex_ / path
    at.chmod(0o644)
    text = at.read_text()
    at.write_text("!" + text[1:])
    at.chmod(0o444)


def test_a_changed_file_is_found_and_its_image_refused(images):
    files = {"etc/motd": "hello\n", "usr/x": "1"}
    hex_ = images.make("data", files)
    images.make("other", {"usr/y": "2"})
    spoil(images, hex_, "etc/motd")
    done = images("verify", code=1)
    assert "'etc/motd' was changed" in done.stderr and done.stdout == "other: ok\n"
    told = images.json("verify", "data", code=1)["images"]
    assert told[0]["name"] == "data" and not told[0]["ok"] and "etc/motd" in told[0]["reason"]
    assert "'etc/motd'" in images.rows()["data"]["changed"] and "refused" in images("ls").stdout
    assert "etc/motd" in images.json("show", "data")["image"]["refused"]
    child = images.start("--from", "data", "next", images.tree({}, "nothing"))
    assert "is refused" in child.communicate()[1] and child.returncode == 2
    assert images.make("data", files) == hex_
    assert images("verify").stdout == "data: ok\nother: ok\n"


def test_an_image_on_another_shares_its_files(images):
    base = images.make("base", {"etc/a": "1" * 5000, "etc/b": "2"})
    top = images.make("top", {"etc/b": "3"}, "--from", "base")
    trees = images.state / "images/trees"
    assert (trees / base / "etc/a").stat().st_ino == (trees / top / "etc/a").stat().st_ino
    assert (trees / top / "etc/b").read_text() == "3" and (trees / base / "etc/b").read_text() == "2"
    images("verify")


def test_boxes_can_read_trees_and_others_nothing_else(images, who):
    hex_ = images.make("data", {"usr/bin/tool": "#!/bin/sh\n"})
    store = images.state / "images"
    assert images.state.stat().st_mode & 0o077 == 0 and store.stat().st_mode & 0o077 == 0
    for path in [store / "trees", *(store / "trees").rglob("*")]:
        assert path.lstat().st_mode & 0o777 == (0o555 if path.name == "tool" else 0o755), path
    owner = store.stat().st_uid
    assert {path.lstat().st_uid for path in store.rglob("*")} == {owner}
    assert (owner != 0) if who == "root" else (owner in (ORDINARY, os.getuid()))
    assert (store / "trees" / hex_ / "usr/bin/tool").stat().st_mtime == 1000000000


def test_a_killed_build_leaves_nothing_that_can_be_used(images):
    """At six moments from the start to after the end; the next command removes what is there."""
    dice = random.Random(SEED)
    files = {f"lib/{n // 50}/{n}": f"{n}" * 50 for n in range(400)}
    top = images.tree(files, "many")
    began = time.monotonic()
    hex_ = images.start("whole", top).communicate()[0].strip()
    took = time.monotonic() - began
    images("rm", "whole", "-q")
    images("prune")
    assert hex_ and images.stored() == []
    for _ in range(6):
        child = images.start("half", top)
        time.sleep(dice.uniform(0, 1.1) * took)
        child.send_signal(signal.SIGKILL)
        child.communicate()
        if "half" in images.rows():
            assert images("verify", "half").stdout == "half: ok\n"
            images("rm", "half", "-q")
            images("prune")
        else:
            images("rm", "none", code=2)  # any command that opens the store for a change
        assert images.stored() == []


def test_two_builds_at_once_make_two_images(images):
    top = images.tree({f"lib/{n}": f"{n}" * 50 for n in range(200)}, "many")
    children = [images.start(name, top) for name in ("a", "b", "c")]
    told = {child.communicate()[0] for child in children}
    assert len(told) == 1 and {child.returncode for child in children} == {0}
    assert images("verify").stdout == "a: ok\nb: ok\nc: ok\n"
    assert len([path for path in images.stored() if path.startswith("files/")]) == 200


def test_a_full_disk_is_told_and_nothing_stays(cupels, folder):
    if "root" not in cupels:
        pytest.skip("only root can mount a small disk")
    images = Images(cupels["root"], folder)
    images.state.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=700", "none", images.state], check=True)
    try:
        shutil.chown(images.state, 2147418112, 2147418112)
        images.make("small", {"a": "1"})
        kept = images.stored()
        child = images.start("large", images.tree({f"x{n}": f"{n}" * 100000 for n in range(30)}, "large"))
        told = child.communicate()[1]
        assert child.returncode == 125 and "No space left" in told and "images prune" in told
        assert images.stored() == kept and list(images.rows()) == ["host", "small"]
        assert images("verify").stdout == "small: ok\n"
    finally:
        subprocess.run(["umount", images.state], check=True)


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.mknod(path, 0o600 | 0o020000, os.makedev(1, 3))],
                         ids=["pipe", "device"])
def test_a_special_file_is_refused(cupels, folder, make):
    if "root" not in cupels:
        pytest.skip("only root can make a device")
    images = Images(cupels["root"], folder)
    top = images.tree({"etc/a": "1"})
    make(top / "etc/special")
    child = images.start("data", top)
    told = child.communicate()[1]
    assert child.returncode == 2 and "'etc/special' is a device, pipe or socket" in told
    assert images.stored() == []


def test_a_word_that_is_no_verb_is_refused(images):
    assert "did you mean cupel images verify?" in images("verfy", code=2).stderr
    assert "needs the name of an image" in images("show", code=2).stderr
    assert "takes no operand" in images("prune", "x", code=2).stderr
    assert images.json("rm", "nix", code=2)["error"]["field"] == "image"
