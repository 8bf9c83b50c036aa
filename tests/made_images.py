"""Images for tests of doors: made of folders by build/image-maker, in the state folder of the cupel that will use
them, and gone at the end."""
import contextlib
import os
import shutil
import subprocess
import time
from pathlib import Path

from host import BUILD
from sessions import Session

SITE = "usr/local/lib/python3.11/dist-packages"


def package(name, version="1.0", code=""):
    """The files of a Python package, as pip leaves them."""
    return {f"{SITE}/{name}/__init__.py": f"version = {version!r}\n{code}",
            f"{SITE}/{name}-{version}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"}


class Shop:
    def __init__(self, cupel, place):
        self.cupel, self.place, self.names = cupel, place, set()
        self.maker = place.fresh("maker", 0o755) / "image-maker"  # where an ordinary user can reach it
        shutil.copy(BUILD / "image-maker", self.maker)
        self.maker.chmod(0o755)

    def make(self, name, files, *options):
        """An image on the host, unless the options say otherwise; a file whose text begins with #! can be run. Its
        tree's digest."""
        return self.make_of(name, lambda top: self.fill(top, files), *(options or ["--host"]))

    def make_alone(self, name):
        """One that shares no file with the host: Python and Bash."""
        return self.make_of(name, python_tree)

    @staticmethod
    def fill(top, files):
        for path, text in files.items():
            at = top / path
            at.parent.mkdir(parents=True, exist_ok=True)
            at.write_text(text)
            at.chmod(0o755 if text.startswith("#!") else 0o644)

    def make_of(self, name, fill, *options):
        top = self.place.fresh("tree", 0o755)
        fill(top)
        done = subprocess.run([self.maker, *options, name, top], env=self.cupel.env, text=True, capture_output=True,
                              timeout=120, **self.cupel.identity())
        shutil.rmtree(top)
        assert done.returncode == 0, done.stderr
        self.names.add(name)
        return done.stdout.strip()

    def remove(self, *names):
        done = self.cupel.run(["images", "rm", *names])
        assert done.returncode == 0, done.stderr
        self.names -= set(names)

    def leave(self, client):
        """The engine is as it was: no session, no image, no pools of one. A set lives while a session is of it."""
        names = set(self.names)
        for row in client.ask({"op": "session", "id": "l", "do": "list"})["sessions"]:
            if row["status"] != "ended":
                Session(client, id=row["session"]).end()
        if names:
            self.remove(*names)

        def are_gone():
            return not any(row["name"].partition("@")[2] in names - {""} for row in client.info()["state"]["pools"])
        until = time.monotonic() + 30
        while not are_gone():
            assert time.monotonic() < until, client.info()["state"]["pools"]
            time.sleep(0.1)

    def close(self):
        if self.names:
            self.remove(*self.names)
        assert self.cupel.run(["images", "prune"]).returncode == 0


@contextlib.contextmanager
def open_shop(cupel, place):
    shop = Shop(cupel, place)
    try:
        yield shop
    finally:
        shop.close()


def python_tree(top):
    """Fills a folder with what Python and Bash of this host need: an image that stands alone."""
    programs = ["/usr/bin/python3.11", "/usr/bin/bash"]
    modules = [str(path) for path in Path("/usr/lib/python3.11/lib-dynload").glob("*.so")]
    said = subprocess.run(["ldd", *programs, *modules], capture_output=True, text=True).stdout
    wanted = {word for word in said.split() if word.startswith("/") and not word.endswith(":")}
    for path in [*programs, *sorted(wanted)]:
        at = top / ("usr" + path if not path.startswith("/usr/") else path[1:])
        at.parent.mkdir(parents=True, exist_ok=True)
        if not at.exists():
            shutil.copy(os.path.realpath(path), at)
    for name, target in (("bin", "usr/bin"), ("lib", "usr/lib"), ("lib64", "usr/lib64"), ("sbin", "usr/sbin"),
                         ("usr/bin/python3", "python3.11"), ("usr/bin/sh", "bash")):
        (top / name).symlink_to(target)
    (top / "usr/sbin").mkdir()
    shutil.copytree("/usr/lib/python3.11", top / "usr/lib/python3.11", symlinks=True, ignore=shutil.ignore_patterns(
        "__pycache__", "test", "idlelib", "lib2to3", "ensurepip", "pydoc_data", "tkinter", "dist-packages"))
    for path in top.rglob("*"):
        if not path.is_symlink() and path.is_file():
            path.chmod(0o755 if "/bin/" in str(path) or path.suffix == ".so" or ".so." in path.name else 0o644)
