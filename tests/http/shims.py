"""What a host may do to a service: a small disk, a disk that fails, a wall clock that jumps."""
import contextlib
import struct
import subprocess
from pathlib import Path


def built(place, name):
    """The path of a library to preload, from the source beside this file."""
    path = place.fresh("shim", 0o755) / f"{name}.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", path, Path(__file__).with_name(f"{name}.c"), "-ldl"],
                   check=True)
    return str(path)


@contextlib.contextmanager
def small_state(cupel, place, size="6m"):
    """A state folder on a file system of its own."""
    folder = place.fresh("state", 0o700)
    owner = cupel.uid if cupel.switch else 2 ** 31 - 2 ** 16  # as root: the doors' private uid
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},uid={owner},gid={owner},mode=700", "none", folder],
                   check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


class Clock:
    """The wall clock of a service that was started with it, off by `shift` seconds."""

    def __init__(self, place):
        self.file = place.fresh("clock", 0o755) / "shift"
        self.file.write_bytes(bytes(4096))
        self.env = {"LD_PRELOAD": built(place, "shift_clock"), "SHIFT_CLOCK": str(self.file)}

    def set(self, seconds):
        with self.file.open("r+b") as file:
            file.write(struct.pack("=q", seconds))


class Disk:
    """The file system of a state folder; writes and syncs of a service that was started with it can fail."""

    def __init__(self, place, state):
        self.file = state / "fail"
        self.file.write_bytes(bytes(4096))
        self.file.chmod(0o666)  # the service may be another user
        self.env = {"LD_PRELOAD": built(place, "fail_disk"), "FAIL_DISK": str(self.file)}

    def fail(self, writes=0, syncs=0, each=1):
        """These errors (0: none) from now on, in one call of so many."""
        with self.file.open("r+b") as file:
            file.write(struct.pack("=3i", writes, syncs, each))

    def failed(self):
        """How many calls failed."""
        return struct.unpack_from("=i", self.file.read_bytes(), 12)[0]
