"""Images for tests of doors: made of folders by build/image-maker, in the state folder of the cupel that will use
them, and gone at the end."""
import contextlib
import shutil
import subprocess

from host import BUILD

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
        top = self.place.fresh("tree", 0o755)
        for path, text in files.items():
            at = top / path
            at.parent.mkdir(parents=True, exist_ok=True)
            at.write_text(text)
            at.chmod(0o755 if text.startswith("#!") else 0o644)
        done = subprocess.run([self.maker, *(options or ["--host"]), name, top], env=self.cupel.env, text=True,
                              capture_output=True, timeout=120, **self.cupel.identity())
        shutil.rmtree(top)
        assert done.returncode == 0, done.stderr
        self.names.add(name)
        return done.stdout.strip()

    def remove(self, *names):
        done = self.cupel.run(["images", "rm", *names])
        assert done.returncode == 0, done.stderr
        self.names -= set(names)

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
