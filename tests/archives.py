"""Archives of images for tests: tar from a list of entries, `docker save`, OCI layouts, and the store's trees as a
dictionary that can be compared."""
import gzip
import hashlib
import io
import json
import os
import platform
import subprocess
import tarfile
from pathlib import Path

MACHINE = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
TYPES = {"l": tarfile.SYMTYPE, "h": tarfile.LNKTYPE, "c": tarfile.CHRTYPE, "p": tarfile.FIFOTYPE, "d": tarfile.DIRTYPE}
LAYER, CONFIG = "application/vnd.oci.image.layer.v1.tar", "application/vnd.oci.image.config.v1+json"
MANIFEST, INDEX = "application/vnd.oci.image.manifest.v1+json", "application/vnd.oci.image.index.v1+json"


def sha(data):
    return hashlib.sha256(data).hexdigest()


def digest(data):
    return "sha256:" + sha(data)


def tar(entries, form=tarfile.PAX_FORMAT):
    """Entries are (path, bytes) for files, (path, None) for folders, (path, kind, target) for the rest of TYPES."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for path, *rest in entries:
            info = tarfile.TarInfo(path)
            info.mtime, info.mode, info.uid = 1000, 0o4755, 1000
            if len(rest) == 2:
                info.type, info.linkname = TYPES[rest[0]], rest[1]
            elif rest[0] is None:
                info.type = tarfile.DIRTYPE
            else:
                info.size = len(rest[0])
            archive.addfile(info, io.BytesIO(rest[0]) if info.size else None)
    return out.getvalue()


BASE = [("bin", None), ("bin/sh", b"#!sh"), ("bin/ash", "h", "bin/sh"), ("etc/a", b"a"), ("etc/b", b"b"),
        ("lib", "l", "usr/lib"), ("usr/lib/x.so", b"x" * 5000), ("dev/null", "c", "")]
ABOVE = [("etc/.wh.a", b""), ("opt/new", b"new"), ("usr/lib/.wh..wh..opq", b""), ("usr/lib/y.so", b"y")]
MERGED = {"bin": None, "bin/sh": b"#!sh", "bin/ash": b"#!sh", "etc": None, "etc/b": b"b", "lib": "usr/lib", "opt": None,
          "opt/new": b"new", "usr": None, "usr/lib": None, "usr/lib/y.so": b"y"}


def config(layers, **more):
    return json.dumps({"architecture": MACHINE, "os": "linux", "config": {"Env": ["PATH=/bin", "LANG=C"]},
                       "rootfs": {"type": "layers", "diff_ids": [digest(layer) for layer in layers]}, **more}).encode()


def docker_save(layers, tag="small:1", **more):
    """As docker wrote it before it had OCI layouts."""
    text = config(layers, **more)
    names = [f"{number:064x}/layer.tar" for number in range(len(layers))]
    saved = [{"Config": sha(text) + ".json", "RepoTags": [tag], "Layers": names}]
    return tar([*zip(names, layers), (sha(text) + ".json", text), ("manifest.json", json.dumps(saved).encode())])


def descriptor(data, kind, **more):
    return {"mediaType": kind, "digest": digest(data), "size": len(data), **more}


def layout(layers, names=("small",), packed=gzip.compress, suffix="+gzip", nested=False):
    """{path: bytes} of an OCI layout. `nested`: the index leads to another one, for three machines."""
    blobs = [packed(layer) for layer in layers]
    text = config(layers)
    manifest = json.dumps({"schemaVersion": 2, "mediaType": MANIFEST, "config": descriptor(text, CONFIG),
                           "layers": [descriptor(blob, LAYER + suffix) for blob in blobs]}).encode()
    top = manifest, MANIFEST
    if nested:
        blobs.append(manifest)
        others = [{"mediaType": MANIFEST, "digest": "sha256:" + c * 64, "size": 9,
                   "platform": {"os": os_name, "architecture": machine}}
                  for c, os_name, machine in (("1", "linux", "s390x"), ("2", "unknown", "unknown"))]
        top = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": [*others, descriptor(
            manifest, MANIFEST, platform={"os": "linux", "architecture": MACHINE})]}).encode(), INDEX
    members = [descriptor(*top, annotations={"org.opencontainers.image.ref.name": name}) for name in names]
    index = json.dumps({"schemaVersion": 2, "manifests": members}).encode()
    return {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}', "index.json": index,
            **{"blobs/sha256/" + sha(blob): blob for blob in (*blobs, text, top[0])}}


def write_folder(folder, files):
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return folder


def tree(folder):
    """{path: bytes of a file, target of a link, None for a folder}; names that are not UTF-8 are escaped."""
    found = {}
    for here, folders, files in os.walk(folder):
        for name in folders + files:
            path = Path(here) / name
            found[str(path.relative_to(folder))] = (os.readlink(path) if path.is_symlink() else
                                                    None if path.is_dir() else path.read_bytes())
    return found


class Images:
    """`cupel images` with a state folder of its own."""

    def __init__(self, cupel, place):
        owner = cupel.uid if cupel.switch else None
        self.cupel = cupel
        self.state = place.fresh("state", 0o755, owner) / "state"  # cupel makes it
        self.env = {"CUPEL_STATE": str(self.state)}

    def run(self, *args, **options):
        return self.cupel.run(["images", *args], env=self.env, **options)

    def ok(self, *args, **options):
        done = self.run(*args, **options)
        assert done.returncode == 0, done.stderr
        return done

    def add(self, path, *args, **options):
        """The manifest of the imported image."""
        return json.loads(self.ok("import", "--json", *args, path, **options).stdout)["manifest"]

    def refused(self, path, *args, **options):
        """The refusal; and nothing of it is left."""
        before = self.left()
        done = self.run("import", "--json", *args, path, **options)
        assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
        assert self.left() == before
        return json.loads(done.stdout)["error"]

    def tree(self, manifest):
        return tree(self.state / "images/trees" / manifest["digest"].removeprefix("sha256:"))

    def left(self):
        """All that the store holds but its empty folders."""
        found = tree(self.state / "images") if (self.state / "images").exists() else {}
        return {path for path, what in found.items() if what is not None and path != "lock"}


def command(*argv, **options):
    """A tool of others, which must succeed."""
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True, timeout=120, **options)
    assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
    return done.stdout
