"""The kinds of boxes that the wall tests run in: image `host`, an imported image that stands alone, that with profile
`strict`, which only root can have, and image `host` with a folder of the caller's. `Boxed` is a Cupel whose every
`cupel run` is of one kind; a test need not know which."""
import base64
import copy
import json
import os
import subprocess
import tarfile
from pathlib import Path

import host
import pytest

KINDS = ["host", "image", "strict", "dir"]
IMAGE = "walls"
VERSION = f"python3.{os.sys.version_info[1]}"
# The programs that the probes call.
PROGRAMS = [VERSION, "bash", "dash", "node", "stress-ng", *"""[ cat chmod cp cut dd df echo env false grep head id kill
    ln ls mkdir mkfifo mknod mount mv nice nproc printf ps readlink rm sed seq setsid sleep sort stat stdbuf sync tail
    tee timeout touch tr true umount uname unlink unshare wc yes""".split()]
UNUSED = {"test", "idlelib", "lib2to3", "tkinter", "turtledemo", "ensurepip", "pydoc_data", "distutils"}
LINKS = {"bin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib64", "sbin": "usr/sbin",
         "usr/bin/python3": VERSION, "usr/bin/sh": "dash"}
# What a request can say and `cupel run` cannot.
REQUEST_ONLY = {"on_output_limit"}


def libraries(programs):
    """The shared libraries that these need, with the loader."""
    said = subprocess.run(["ldd", *programs], capture_output=True, text=True).stdout
    return {word for word in said.split() if word.startswith("/") and not word.endswith(":")}


def pack(path, programs):
    """A root file system as a tar, of the host's own programs. Files keep their times: compiled Python stays valid."""
    top = Path("/usr/lib") / VERSION
    files = {str(Path("/usr/bin") / name) for name in programs if (Path("/usr/bin") / name).exists()}
    files |= libraries([*files, *map(str, (top / "lib-dynload").glob("*.so"))])
    with tarfile.open(path, "w") as tar:
        for name, target in LINKS.items():
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, target
            tar.addfile(link)
        for name in sorted(files):
            inside = os.path.normpath(name).lstrip("/")
            tar.add(os.path.realpath(name), inside if inside.startswith("usr/") else "usr/" + inside, recursive=False)
        if (Path("/usr/bin") / VERSION).exists() and VERSION in programs:
            tar.add(top, str(top)[1:], filter=lambda info: None if info.name.split("/")[3:4] and (
                info.name.split("/")[3] in UNUSED or info.name.split("/")[3].startswith("config-")) else info)
    return path


class Boxes:
    """Makes Boxed cupels; the image is imported once for each user."""

    def __init__(self, cupels, place):
        self.cupels, self.place, self.ready = cupels, place, set()

    def image_of(self, cupel):
        if cupel.who not in self.ready:
            tar = self.place.root / "walls.tar"
            if not tar.exists():
                pack(tar, PROGRAMS)
            done = cupel.run(["images", "import", "--name", IMAGE, tar])
            assert done.returncode == 0, done.stderr
            self.ready.add(cupel.who)
        return IMAGE

    def of(self, who, kind):
        cupel = self.cupels[who]
        if kind == "dir":
            return OnFolder(cupel, self.place)
        return cupel if kind == "host" else InImage(cupel, self.image_of(cupel), strict=kind == "strict")

    def all(self, kind):
        """{who: cupel}, each made when a test first asks for it."""
        return Lazy(self, kind)


class Lazy(dict):
    def __init__(self, boxes, kind):
        super().__init__(dict.fromkeys(boxes.cupels))
        self.boxes, self.kind = boxes, kind

    def __getitem__(self, who):
        if self.get(who) is None:
            self[who] = self.boxes.of(who, self.kind)
        return super().__getitem__(who)


class Boxed(host.Cupel):
    """A Cupel whose `cupel run` has further options."""

    def __init__(self, cupel):
        self.__dict__.update(copy.copy(cupel.__dict__))

    def options(self):
        return []

    def words(self, args):
        args = [str(word) for word in args]
        return [args[0], *self.options(), *args[1:]] if args[:1] == ["run"] and "--request" not in args else args

    def popen(self, args, *rest, **options):
        return super().popen(self.words(args), *rest, **options)

    def run(self, args, *rest, **options):
        return super().run(self.words(args), *rest, **options)


class InImage(Boxed):
    def __init__(self, cupel, image, strict):
        super().__init__(cupel)
        self.fields = {"image": image, **({"profile": "strict"} if strict else {})}

    def options(self):
        # An engine that runs elsewhere on this host has another store of images.
        return ["--cold", *[word for name, value in self.fields.items() for word in ("--" + name, value)]]

    def request(self, request, args=(), **options):
        if isinstance(request, dict):
            request = {**self.fields, **request}
        return super().request(request, ["--cold", *args], **options)


class OnFolder(Boxed):
    """Each run has a fresh folder; what is in it belongs to the caller."""

    def __init__(self, cupel, place):
        super().__init__(cupel)
        self.place = place

    def folder(self, files=()):
        owner = host.ORDINARY if os.getuid() == 0 else None
        folder = self.place.fresh("project", 0o755, owner)
        for file in [host.text_file(".env", host.CANARY), *files]:
            path = folder / file["path"]
            path.write_bytes(base64.b64decode(file["base64"]) if "base64" in file else file["text"].encode())
            path.chmod(0o444 if file.get("readonly") else 0o644)
        return folder

    def options(self):
        return ["--dir", str(self.folder())]

    def run_json(self, code, language="python", args=None, cli=(), options=None, **fields):
        """--dir has no --request: the same by options."""
        if REQUEST_ONLY & set(fields):
            pytest.skip("with --dir the request comes from options, and this field has none")
        words = ["run", "--json", "-q", "-l", language, "--dir", str(self.folder(fields.pop("files", []))), *cli]
        for name, value in fields.pop("limits", {}).items():
            words += ["--limit", f"{name}={value}"]
        for name, value in fields.pop("env", {}).items():
            words += ["-e", f"{name}={value}"]
        options = dict(options or {})
        if "stdin" in fields:
            words += ["--stdin", "-"]
            options["input"] = fields.pop("stdin")
        assert not fields, f"a field that boxes.py does not know: {list(fields)}"
        done = super(Boxed, self).run([*words, "-c", code, *(["--", *args] if args else [])], **options)
        try:
            answer = host.Result(json.loads(done.stdout))
        except ValueError:
            raise AssertionError(f"no JSON: exit {done.returncode}, {done.stdout[:500]!r}, {done.stderr[-2000:]!r}")
        answer.process = done
        assert "status" in answer, f"nothing ran: {dict(answer)} {done.stderr[-1000:]}"
        return answer
