"""Images that other tools make, and what they read of ours: umoci, buildah and skopeo of Debian."""
import json
import os
import shutil

import pytest

import archives
from archives import command

POLICY = {"default": [{"type": "insecureAcceptAnything"}]}


def needs(*programs):
    missing = [name for name in programs if not shutil.which(name)]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {' '.join(missing)}")


@pytest.fixture
def images(cupel, place):
    return archives.Images(cupel, place)


@pytest.fixture
def skopeo(place):
    policy = place.fresh() / "policy.json"
    policy.write_text(json.dumps(POLICY))
    home = place.fresh()

    def run(*words):
        return command("skopeo", "--policy", policy, *words, env={**os.environ, "HOME": str(home)})
    return run


def umoci(*words, cwd):
    return command("umoci", *words, cwd=cwd)


ROOTLESS = [] if os.getuid() == 0 else ["--rootless"]


@pytest.fixture
def layout(folder):
    """Two layers by umoci: the second one removes, replaces and adds."""
    umoci("init", "--layout", "u", cwd=folder)
    umoci("new", "--image", "u:one", cwd=folder)
    umoci("unpack", *ROOTLESS, "--image", "u:one", "b1", cwd=folder)
    root = folder / "b1/rootfs"
    archives.write_folder(root, {"bin/sh": b"sh", "etc/a": b"1", "etc/b": b"1", "gone/x": b"1", "turned": b"1"})
    os.symlink("/etc/a", root / "etc/link")
    os.link(root / "bin/sh", root / "bin/ash")
    umoci("repack", "--image", "u:one", "b1", cwd=folder)
    umoci("unpack", *ROOTLESS, "--image", "u:one", "b2", cwd=folder)
    root = folder / "b2/rootfs"
    (root / "etc/a").unlink()
    (root / "etc/b").write_bytes(b"2")
    (root / "turned").unlink()
    shutil.rmtree(root / "gone")
    archives.write_folder(root, {"turned/into": b"a folder", "opt/new": b"2"})
    umoci("repack", "--image", "u:two", "b2", cwd=folder)
    umoci("config", "--image", "u:two", "--config.env", "PATH=/opt", "--config.workingdir", "/srv", cwd=folder)
    return folder / "u"


@needs("umoci")
def test_an_image_of_umoci_is_what_umoci_unpacks(images, layout, folder):
    error = images.refused(layout)
    assert error["field"] == "ref" and "--ref" in error["hint"]
    manifest = images.add(layout, "--ref", "two")
    assert images.tree(manifest) == archives.tree(folder / "b2/rootfs")
    assert manifest["env"]["PATH"] == "/opt" and manifest["workdir"] == "/srv" and manifest["layers"] == 2


@needs("umoci", "skopeo")
def test_every_form_of_skopeo_gives_the_same_image(images, layout, folder, skopeo):
    digests = {images.add(layout, "--ref", "two")["digest"]}
    for form in ("docker-archive:d.tar:name:tag", "oci-archive:o.tar:two", "oci:layout:two"):
        kind, path, *_ = form.split(":")
        skopeo("copy", "-q", f"oci:{layout}:two", form.replace(path, str(folder / path), 1))
        digests.add(images.add(folder / path, "--name", "x")["digest"])
    assert len(digests) == 1


@needs("umoci", "skopeo")
def test_an_export_is_loaded_by_others_as_it_is(images, layout, folder, skopeo):
    manifest = images.add(layout, "--ref", "two")
    images.ok("export", "two", "-o", folder / "out.tar")
    for source in (f"oci-archive:{folder}/out.tar", f"docker-archive:{folder}/out.tar"):
        told = json.loads(skopeo("inspect", "--config", source))
        assert told["config"]["WorkingDir"] == "/srv" and "PATH=/opt" in told["config"]["Env"]
    skopeo("copy", "-q", f"oci-archive:{folder}/out.tar:two", f"oci:{folder}/back:two")
    umoci("unpack", *ROOTLESS, "--image", "back:two", "b3", cwd=folder)
    assert archives.tree(folder / "b3/rootfs") == images.tree(manifest)
    assert oct((folder / "b3/rootfs/bin/sh").stat().st_mode & 0o7777) == oct(0o644)


@pytest.mark.full
@needs("buildah")
def test_an_image_of_buildah_is_imported(images, folder):
    if os.getuid() != 0:
        pytest.skip("buildah needs rights of its own")
    archives.write_folder(folder / "root", {"bin/sh": b"sh", "etc/a": b"1"})
    buildah = ["buildah", "--storage-driver", "vfs", "--root", folder / "s", "--runroot", folder / "r"]
    try:
        name = command(*buildah, "from", "scratch").strip()
        command(*buildah, "copy", name, folder / "root", "/")
        command(*buildah, "config", "--env", "A=b", "--entrypoint", '["/bin/sh"]', name)
        command(*buildah, "commit", name, f"oci-archive:{folder}/b.tar:made")
    except AssertionError as why:
        if "permitted" in str(why) or "namespace" in str(why):
            pytest.skip(f"buildah does not work here: {str(why)[-200:]}")
        raise
    manifest = images.add(folder / "b.tar")
    assert images.tree(manifest) == archives.tree(folder / "root")
    assert manifest["env"]["A"] == "b" and manifest["entrypoint"] == ["/bin/sh"]
