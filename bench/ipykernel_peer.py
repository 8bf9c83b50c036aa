"""The peer of the session rows of build/bench, which has this text in itself: an ipykernel
as jupyter_client drives it, at its best (no history, the faster transport).

Stdin gives orders of one byte, stdout answers each with a line: nanoseconds, or a word.
    x  execute `1+1` in the kernel that runs: sent, until reply and idle are here
    n  start a kernel and have `import pandas` answered; then that one ends
    q  or the end of stdin: everything ends
The first line is `ready`, or `absent` where a package is not installed.
"""
import os
import shutil
import sys
import tempfile
import time

ANSWER_S = 60


class Kernel:
    def __init__(self, folder):
        self.folder = tempfile.mkdtemp(dir=folder)
        self.manager = KernelManager(kernel_name="python3", transport="ipc", ip=os.path.join(self.folder, "k"),
                                     connection_file=os.path.join(self.folder, "kernel.json"))
        self.manager.start_kernel(stdout=null, stderr=null)
        self.client = self.manager.blocking_client()
        self.client.start_channels(stdin=False, hb=False)

    def send(self, code):
        self.client.execute(code, store_history=False, allow_stdin=False)

    def await_reply(self):
        if self.client.get_shell_msg(timeout=ANSWER_S)["content"]["status"] != "ok":
            raise SystemExit("the kernel failed")

    def await_idle(self):
        while True:
            message = self.client.get_iopub_msg(timeout=ANSWER_S)
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                return

    def end(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


def execute(kernel):
    begin = time.perf_counter_ns()
    kernel.send("1+1")
    kernel.await_idle()
    kernel.await_reply()
    return time.perf_counter_ns() - begin


def start(folder):
    """Nothing is awaited before the import is sent: the socket keeps it until the kernel listens."""
    begin = time.perf_counter_ns()
    kernel = Kernel(folder)
    try:
        kernel.send("import pandas")
        kernel.await_reply()
        return time.perf_counter_ns() - begin
    finally:
        kernel.end()


def warm_kernel(folder):
    kernel = Kernel(folder)
    kernel.client.wait_for_ready(timeout=ANSWER_S)
    for _ in range(20):
        execute(kernel)
    return kernel


def serve(folder):
    kernel = None
    try:
        while (order := os.read(0, 1)) not in (b"", b"q"):
            if order == b"x":
                kernel = kernel or warm_kernel(folder)
            say(execute(kernel) if order == b"x" else start(folder))
    finally:
        if kernel:
            kernel.end()


def say(what):
    os.write(1, f"{what}\n".encode())


try:
    import ipykernel  # noqa: F401
    from jupyter_client.manager import KernelManager
except ImportError:
    say("absent")
    raise SystemExit(0) from None

null = open(os.devnull, "r+b")
home = tempfile.mkdtemp(prefix="cupel-bench-ipykernel-")
try:
    os.environ.update(HOME=home, IPYTHONDIR=home, JUPYTER_RUNTIME_DIR=home, JUPYTER_CONFIG_DIR=home)
    say("ready")
    serve(home)
finally:
    shutil.rmtree(home, ignore_errors=True)
