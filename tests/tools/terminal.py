"""A command of cupel at a terminal of its own."""
import fcntl
import os
import select
import signal
import subprocess
import termios
import time

import host

WAIT_S = 30


class Terminal:
    def __init__(self, cupel, *args, env=None, **options):
        self.fd, theirs = os.openpty()
        streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs, **options}
        self.child = cupel.popen(args, **streams, start_new_session=True,
                                 preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
                                 env={**(env or {}), "TERM": "xterm", "NO_COLOR": "1"})
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
            os.close(self.fd)

    def _read(self, until):
        ready, _, _ = select.select([self.fd], [], [], max(0, until - time.monotonic()))
        try:
            part = os.read(self.fd, 65536) if ready else None
        except OSError:  # it has ended
            part = b""
        assert part is not None, f"it hangs: {self.seen!r}"
        self.seen += part.decode(errors="replace")
        return part

    def until(self, text):
        """What was shown before that text; it and all before it are taken."""
        end = time.monotonic() + WAIT_S * host.slowness()
        while text not in self.seen:
            assert self._read(end), f"no {text!r} in {self.seen!r}"
        before, _, self.seen = self.seen.partition(text)
        return before

    def type(self, keys):
        os.write(self.fd, keys.encode())

    def rest(self):
        """(exit code, what else was shown)."""
        end = time.monotonic() + WAIT_S * host.slowness()
        while self._read(end):
            pass
        return self.child.wait(timeout=WAIT_S), self.seen
