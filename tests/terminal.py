"""A command of cupel at a terminal of its own, to which keys are typed."""
import fcntl
import os
import select
import signal
import struct
import subprocess
import termios
import time

import host

WAIT_S = 30  # tells a hang from a wait


class Terminal:
    def __init__(self, cupel, *args, env=None, size=(80, 24), **options):
        self.fd, theirs = os.openpty()
        self.resize(*size)
        self.modes_before = self.modes()
        streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs, **options}
        self.child = cupel.popen(args, **streams, start_new_session=True,
                                 preexec_fn=lambda: fcntl.ioctl(theirs, termios.TIOCSCTTY, 0),
                                 env={"TERM": "xterm", "NO_COLOR": "1", **(env or {})})
        os.close(theirs)
        self.seen = ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
        try:
            self.child.wait(timeout=WAIT_S)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
            raise
        finally:
            self.close()

    def close(self):
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1

    def resize(self, columns, rows):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def modes(self):
        return termios.tcgetattr(self.fd)

    def is_restored(self):
        return self.modes() == self.modes_before

    def _read(self, until):
        ready, _, _ = select.select([self.fd], [], [], max(0, until - time.monotonic()))
        try:
            part = os.read(self.fd, 65536) if ready else None
        except OSError:  # it has ended
            part = b""
        assert part is not None, f"it hangs: {self.seen!r}"
        self.seen += part.decode(errors="replace")
        return part

    def until(self, text, seconds=WAIT_S):
        """What was shown before that text; it and all before it are taken."""
        end = time.monotonic() + seconds * host.slowness()
        while text not in self.seen:
            assert self._read(end), f"no {text!r} in {self.seen!r}"
        at = self.seen.index(text)
        before, self.seen = self.seen[:at], self.seen[at + len(text):]
        return before

    def expect(self, text, seconds=WAIT_S):
        """What was shown up to the end of that text, which must come; it is taken."""
        return self.until(text, seconds) + text

    def type(self, keys):
        os.write(self.fd, keys.encode())

    def paste(self, text):
        """As a terminal does it, once it was told to mark pastes."""
        self.type("\x1b[200~" + text.replace("\n", "\r") + "\x1b[201~")

    def rest(self):
        """(exit code, what else was shown)."""
        end = time.monotonic() + WAIT_S * host.slowness()
        while self._read(end):
            pass
        return self.child.wait(timeout=WAIT_S), self.seen
