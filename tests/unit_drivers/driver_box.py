"""A stand-in for the box: starts a driver as the engine would, with pipes for its streams and channel."""
import json
import os
import shutil
import signal as signals
import subprocess
import tempfile
import threading
import time
from pathlib import Path

DRIVERS = Path(__file__).resolve().parents[2] / "drivers"
NODE = os.environ.get("CUPEL_TEST_NODE", "/usr/bin/node")
COMMANDS = {
    "python": ["/usr/bin/python3", "-S", "{home}/driver.py"],
    "javascript": [NODE, "--expose-internals", "--experimental-vm-modules", "{home}/driver.cjs"],
    "bash": ["/bin/bash", "{home}/main.sh"],
}
# matplotlib's font list, made by the first test that draws.
FONTS = tempfile.TemporaryDirectory(prefix="cupel-fonts-")


class Outcome:
    """What came of a run: the frames, the streams and the exit status."""

    def __init__(self, frames, stdout, stderr, code, work):
        self.frames, self.code, self.work = frames, code, work
        self.raw_stdout, self.stdout = stdout, stdout.decode("utf-8", "replace")
        self.stderr = stderr.decode("utf-8", "replace")

    def all(self, op):
        return [frame for frame in self.frames if frame["op"] == op]

    @property
    def results(self):
        return [frame["data"] for frame in self.all("result")]

    @property
    def texts(self):
        return [data["text/plain"] for data in self.results]

    @property
    def error(self):
        errors = self.all("error")
        assert len(errors) <= 1
        return errors[0] if errors else None

    @property
    def done(self):
        assert self.frames and self.frames[-1]["op"] == "done"
        assert self.frames[-1]["exit_code"] == self.code
        return self.code


def read_all(channel, chunks):
    while True:
        chunk = os.read(channel, 1 << 20)
        if not chunk:
            return
        chunks.append(chunk)


def run(language, code, *, args=(), call=None, stdin=None, env=None, files=None, home_files=None,
        signal=None, signal_after=1, slow_reader_s=0, argv=None, seed=None, timeout=60):
    """Run code with the driver of a language in a fresh folder; give back an Outcome."""
    root = Path(tempfile.mkdtemp(prefix="cupel-driver-"))
    home, work = root / "lib", root / "workspace"
    shutil.copytree(DRIVERS, home, ignore=shutil.ignore_patterns("__pycache__"))
    work.mkdir()
    (root / "tmp").mkdir()
    for name, text in (files or {}).items():
        (work / name).write_text(text, encoding="utf-8")
    for name, text in (home_files or {}).items():
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text(text, encoding="utf-8")
    if seed is not None:
        (home / "seed").write_text(f"{seed}\n")
    (home / "main.sh").write_text(code if language == "bash" else "", encoding="utf-8")
    world = {"PATH": "/usr/bin:/bin", "HOME": str(work), "LANG": "C.UTF-8",
             "MATPLOTLIBRC": str(home / "matplotlibrc"), "PYTHONHASHSEED": "0",
             "MPLCONFIGDIR": FONTS.name, "TMPDIR": str(root / "tmp")}
    command = [part.format(home=home) for part in argv or COMMANDS[language]]
    if language == "bash":
        world["BASH_ENV"] = str(home / "driver.sh")
        command += args
    world.update(env or {})
    ours, words = os.pipe()
    requests, told = os.pipe()

    def place_control():   # between fork and exec; as in a box, no signal is ignored
        signals.signal(signals.SIGINT, signals.SIG_DFL)
        for fd, place in ((words, 63), (requests, 64), (63, 3), (64, 4)):
            os.dup2(fd, place, inheritable=place < 5)

    process = subprocess.Popen(
        command, cwd=work, env=world, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, pass_fds=(3, 4), preexec_fn=place_control)
    os.close(words), os.close(requests)
    chunks = []
    reader = threading.Thread(target=read_all, args=(ours, chunks), daemon=True)
    reader.start()
    if language != "bash":
        request = {"op": "run", "code": code, "args": list(args), "call": call,
                   "stdin": stdin is not None, **({} if seed is None else {"seed": seed})}
        raw = json.dumps(request).encode() + b"\n"
        while raw:
            raw = raw[os.write(told, raw):]
    if signal:
        threading.Timer(signal_after, process.send_signal, (signal,)).start()
    time.sleep(slow_reader_s)
    try:
        stdout, stderr = process.communicate((stdin or "").encode(), timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    reader.join(0.5 if language == "bash" else 5)
    os.close(ours), os.close(told)
    text = b"".join(chunks).decode("utf-8")
    assert text[-1:] in ("", "\n")
    lines = [line for line in text.replace("\x1e", "\n").split("\n") if line]   # each begins with one, too
    files = {str(path.relative_to(work)): path.read_bytes()
             for path in work.rglob("*") if path.is_file()}
    shutil.rmtree(root, ignore_errors=True)
    return Outcome([json.loads(line) for line in lines], stdout, stderr, process.returncode, files)
