"""`cupel images import` and `export`: every form of archive gives the same image, hostile ones give none, and an export
comes back as it was."""
import bz2
import gzip
import json
import lzma
import os
import signal
import subprocess
import time

import pytest

import archives
import host
from archives import ABOVE, BASE, MERGED, docker_save, layout, tar

LAYERS = [tar(BASE), tar(ABOVE)]
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="root's half")


@pytest.fixture
def images(cupel_as, place):
    return archives.Images(cupel_as, place)


@pytest.fixture
def own(cupel, place):
    """As whoever runs the tests."""
    return archives.Images(cupel, place)


def zstd(data):
    return subprocess.run(["zstd", "-qc"], input=data, capture_output=True, check=True).stdout


def saved(folder, data, name="image.tar"):
    (folder / name).write_bytes(data)
    return folder / name


def test_an_archive_of_docker_becomes_an_image(images, folder):
    done = images.ok("import", saved(folder, docker_save(LAYERS)))
    name, digest = done.stdout.split()
    assert name == "small-1" and digest.startswith("sha256:") and len(digest) == 71
    assert "1 devices, pipes and sockets of the archive are not in the image" in done.stderr
    manifest = images.add(folder / "image.tar", "--name", "again")
    assert manifest["digest"] == digest and manifest["base"] == "none"
    assert manifest["env"] == {"PATH": "/bin", "LANG": "C"} and manifest["layers"] == 2 and manifest["skipped"] == 1
    assert images.tree(manifest) == MERGED
    assert images.ok("verify", "small-1")


def test_every_form_gives_the_same_image(own, folder):
    """Archives of docker and OCI, in a file, through a pipe and as a folder, however they are compressed."""
    docker = docker_save(LAYERS)
    digests = {own.add(saved(folder, docker), "--name", "a")["digest"]}
    digests.add(own.add("-", "--name", "b", input=docker, text=False)["digest"])
    digests.add(own.add("-", "--name", "c", input=gzip.compress(docker), text=False)["digest"])
    for pack, suffix in ((gzip.compress, "+gzip"), (zstd, "+zstd"), (bytes, "")):
        files = layout(LAYERS, packed=pack, suffix=suffix, nested=pack is zstd)
        one = own.add(saved(folder, tar(files.items())), "--name", "d")
        digests.add(one["digest"])
        assert one["manifest"].startswith("sha256:") and one["source"] == "import of an OCI layout: small"
    digests.add(own.add(archives.write_folder(folder / "layout", files), "--name", "e")["digest"])
    assert len(digests) == 1


def test_a_root_file_system_becomes_an_image_however_it_comes(own, folder):
    root = tar(BASE[:-1])
    digests = set()
    for pack in (bytes, gzip.compress, bz2.compress, lzma.compress, zstd):
        digests.add(own.add(saved(folder, pack(root), "root.tar.x"), "--name", "root")["digest"])
    digests.add(own.add("-", "--name", "root", input=zstd(root), text=False)["digest"])
    assert len(digests) == 1


def test_the_name_comes_from_the_archive_or_the_file(own, folder):
    assert own.ok("import", saved(folder, docker_save(LAYERS, "docker.io/library/Big_One:latest"))).stdout.split()[0] \
        == "big_one"
    assert own.ok("import", saved(folder, tar(BASE), "My Root.tar.gz")).stdout.split()[0] == "my-root"
    assert "--name" in own.refused("-", input=tar(BASE), text=False)["hint"]
    error = own.refused(folder / "image.tar", "--name", "host")
    assert (error["field"], error["value"]) == ("name", "host") or error["field"] == "name"


def test_one_of_several_images_is_named(own, folder):
    files, other = layout([tar(BASE)], ["one"]), layout([tar(ABOVE[1:2] + BASE)], ["two"])
    index = [json.loads(part["index.json"]) for part in (files, other)]
    index[0]["manifests"] += index[1]["manifests"]
    path = saved(folder, tar({**other, **files, "index.json": json.dumps(index[0]).encode()}.items()))
    error = own.refused(path)
    assert error["field"] == "ref" and "'one', 'two'" in error["hint"]
    assert "it has one, two" in own.refused(path, "--ref", "three")["hint"]
    assert "opt/new" in own.tree(own.add(path, "--ref", "two"))


def test_a_folder_becomes_an_image_with_the_callers_rights_alone(images, folder):
    root = folder / "root"
    archives.write_folder(root, {"bin/sh": b"sh", "etc/\u00e9e\u0301": b"1", "usr/share/x": b"2"})
    os.symlink("/etc/passwd", root / "etc/link")
    os.mkfifo(root / "etc/fifo")
    found = images.tree(images.add(root))
    assert found["etc/link"] == "/etc/passwd" and "etc/fifo" not in found and found["etc/\u00e9e\u0301"] == b"1"


def test_what_the_caller_may_not_read_is_refused_by_name(cupels, place):
    who = "user" if os.getuid() == 0 else "root"
    if who not in cupels or os.getuid() != 0:
        pytest.skip("needs both users")
    images = archives.Images(cupels["user"], place)
    root = archives.write_folder(place.fresh(), {"bin/sh": b"sh", "etc/secret": b"1"})
    (root / "etc/secret").chmod(0)
    done = images.run("import", root)
    assert done.returncode == 125 and "'etc/secret'" in done.stderr and "tar -C FOLDER" in done.stderr
    assert images.left() == set()
    (root / "etc/secret").unlink()
    assert images.run("import", saved(place.fresh(), b"", "none.tar")).returncode == 2


HOSTILE = {
    "a path upward": ([("../x", b"1")], "'..'"),
    "an absolute path": ([("/etc/x", b"1")], "absolute"),
    "a write through a link": ([("l", "l", "/tmp"), ("l/x", b"1")], "leads through a link"),
    "a folder, then a link, then a file below": ([("l", None), ("l", "l", "/"), ("l/x", b"1")], "twice"),
    "a hard link to outside": ([("h", "h", "/etc/passwd")], "absolute target"),
    "a hard link to nothing": ([("h", "h", "etc/passwd")], "not there"),
    "a whiteout of the parent": ([("a/.wh...", b"")], "no name"),
    "a folder that is a whiteout": ([(".wh.a/b", b"1")], "below a whiteout"),
    "a name of 4,096 bytes": ([("d/" * 2047 + "ab", b"1")], "4095 bytes"),
    "a name of 256 bytes": ([("n" * 256, b"1")], "255 bytes"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_layer_is_refused_by_the_entrys_name(own, folder, what):
    entries, words = HOSTILE[what]
    error = own.refused(saved(folder, docker_save([tar(BASE + entries)])))
    assert words in error["message"] and error["field"] == "image" and error["value"]
    assert error["value"].strip('"')[:40] == (entries[1:] or entries)[0][0][:40] and len(error["value"]) < 160


def bomb(size):
    """A gzip file of members, which is a file of so many zeros."""
    import tarfile
    info = tarfile.TarInfo("bin/zeros")
    info.size = size
    part = gzip.compress(bytes(16 << 20), 9)
    return gzip.compress(info.tobuf()) + part * (size >> 24)


def test_ten_gigabytes_of_zeros_are_refused_at_once(own, folder):
    """As a root file system, as a layer, and as the compression of a whole archive."""
    zeros = bomb(10 << 30)
    assert "bomb" in own.refused(saved(folder, zeros))["message"]
    files = layout([b""], packed=lambda _: zeros)
    assert "bomb" in own.refused(saved(folder, tar(files.items())))["message"]
    inner = gzip.compress(tar([("manifest.json", b"[]")])[:1024]) + zeros
    assert own.refused("-", input=inner, text=False)["message"]


def test_sizes_and_digests_that_lie_are_refused(own, folder):
    files = layout(LAYERS)
    for path in [path for path in files if path.startswith("blobs/")]:
        changed = dict(files)
        changed[path] = files[path][:-1] + bytes([files[path][-1] ^ 1])
        error = own.refused(saved(folder, tar(changed.items())))
        assert any(word in error["message"] for word in ("digest", "decompressed")), error
        del changed[path]
        assert "missing" in own.refused(saved(folder, tar(changed.items())))["message"]
    assert "digest" in own.refused(saved(folder, docker_save(LAYERS, rootfs={
        "type": "layers", "diff_ids": ["sha256:" + "0" * 64] * 2})))["message"]
    assert "this machine is" in own.refused(saved(folder, docker_save(LAYERS, architecture="s390x")))["message"]
    assert "larger than 1000 bytes" in own.refused(saved(folder, docker_save(LAYERS)), "--max-size", "1000")["message"]


@pytest.mark.full
def test_a_million_repeated_entries_end(own, folder):
    """Folders may stand there again and again, up to the number of entries that an image may have."""
    block = tar([("usr/bin", None)])[:512]
    path = folder / "many.tar"
    path.write_bytes(block * 1_000_000 + tar([("usr/bin/x", b"")]))
    assert own.add(path)["files"] == 1
    path.write_bytes(block * 2_000_001)
    assert "at most 2000000" in own.refused(path, timeout=300)["message"]


def test_what_is_no_archive_is_refused(own, folder):
    assert own.refused(saved(folder, b"text\n" * 400))["field"] == "image"
    assert own.refused(saved(folder, b""))["field"] == "image"
    assert "root file system" in own.refused(saved(folder, tar([("a.c", b"int a;")])))["message"]
    assert own.run("import", folder / "nothing").returncode == 125
    assert own.run("import", "/dev/null").returncode == 2
    assert own.run("import").returncode == 2


def test_an_import_that_is_killed_leaves_nothing(own):
    """The archive stops in the middle of a file, in a pipe and in the staging of it."""
    data = docker_save([tar([("bin/x", os.urandom(3 << 20))])])
    own.ok("prune")
    child = own.cupel.popen(["images", "import", "-", "--name", "x"], env=own.env, stdin=subprocess.PIPE)
    child.stdin.write(data[:2 << 20])
    child.stdin.flush()
    assert host.wait_until(lambda: any((own.state / "images/work").iterdir()), 10)
    time.sleep(0.1)
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdin.close()
    child.stdout.close()
    child.stderr.close()
    own.ok("prune")
    assert own.left() == set()


def test_an_export_comes_back_as_the_same_image(images, folder):
    digest = images.add(saved(folder, docker_save(LAYERS)))["digest"]
    out = folder / "out.tar"
    answer = json.loads(images.ok("export", "--json", "small-1", "-o", out).stdout)
    assert answer == {"image": "small-1", "digest": digest, "output": str(out), "bytes": out.stat().st_size}
    assert images.add(out, "--name", "back")["digest"] == digest
    piped = images.ok("export", "small-1", text=False).stdout
    assert piped == out.read_bytes()
    assert images.run("export", "none", "-o", out).returncode == 2 and out.read_bytes() == piped
    assert images.run("export", "host", "-o", out).returncode == 2


def test_an_output_that_is_full_is_an_error(own, folder):
    own.ok("import", saved(folder, docker_save(LAYERS)))
    done = own.run("export", "small-1", "-o", "/dev/full")
    assert done.returncode == 125 and "No space left" in done.stderr
