"""Two boxes at once, and one after another, never notice each other."""
import json
import subprocess

import pytest

import host

WATCHER = """
import ctypes, fcntl, os, select, sys, time
libc = ctypes.CDLL(None)
watch = libc.inotify_init1(os.O_NONBLOCK)
libc.inotify_add_watch(watch, b"/usr/lib/python3.11/colorsys.py", 0xfff)
lock = open("/usr/bin/env", "rb")
fcntl.flock(lock, fcntl.LOCK_EX)
import socket
door = socket.socket(socket.AF_UNIX)
door.bind("\\0cupel-between")
door.listen()
for path in ("/dev/shm/between", "/tmp/between"):
    open(path, "w").write("mine")
libc.shmget(0x6275, 4096, 0o1600)
print("ready", flush=True)
events, end = 0, time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    if select.select([watch], [], [], 0.05)[0]:
        events += len(os.read(watch, 65536))
print("events", events, flush=True)
for path in ("/dev/shm/between", "/tmp/between"):
    os.unlink(path)
"""
VISITOR = """
import ctypes, fcntl, json, os, socket
libc = ctypes.CDLL(None)
open("/usr/lib/python3.11/colorsys.py").read()
seen = {}
try:
    fcntl.flock(open("/usr/bin/env", "rb"), fcntl.LOCK_EX | fcntl.LOCK_NB)
    seen["lock"] = False
except OSError:
    seen["lock"] = True
link = socket.socket(socket.AF_UNIX)
seen["abstract"] = link.connect_ex("\\0cupel-between") == 0
seen["shm"] = os.path.exists("/dev/shm/between")
seen["tmp"] = os.path.exists("/tmp/between")
seen["sysv"] = libc.shmget(0x6275, 4096, 0o600) != -1
print(json.dumps(seen))
"""
PYTHON = ["/usr/bin/python3", "-c"]


def watch_while(start_watcher, visit):
    """What the visitor saw, and how many bytes of events the watcher got."""
    watcher = start_watcher()
    try:
        line = watcher.stdout.readline()
        assert line.strip() == "ready", line + watcher.stderr.read()
        seen = visit()
        events = int(watcher.stdout.read().split()[1])
    finally:
        watcher.kill()
        watcher.communicate()
    return seen, events


def test_a_watcher_outside_sees_and_holds_everything():
    """The positive control."""
    def visit():
        done = subprocess.run([*PYTHON, VISITOR], capture_output=True, text=True)
        return json.loads(done.stdout)
    try:
        seen, events = watch_while(lambda: subprocess.Popen(
            [*PYTHON, WATCHER, "0.5"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True), visit)
    finally:
        subprocess.run(["ipcrm", "-M", "0x6275"], capture_output=True)
    assert all(seen.values()) and events > 0, (seen, events)


@pytest.mark.every_box
def test_a_box_neither_sees_nor_holds_up_another(cupel_as):
    def visit():
        return json.loads(cupel_as.run_json(VISITOR)["stdout"])
    seen, events = watch_while(lambda: cupel_as.popen(
        ["run", "-t", "20", "-c", WATCHER, "1.5"], text=True), visit)
    assert not any(seen.values()), seen
    assert events == 0


def test_what_one_run_leaves_the_next_does_not_find(cupel_as):
    leave = "\n".join(f"open({p!r}, 'w').write('left')" for p in
                      ("/tmp/left", "/dev/shm/left", "/workspace/left")) + \
        "\nimport ctypes; ctypes.CDLL(None).shmget(0x6c65, 4096, 0o1600)"
    look = "import os, ctypes\nprint([p for p in ('/tmp/left', '/dev/shm/left', '/workspace/left') " \
           "if os.path.exists(p)], ctypes.CDLL(None).shmget(0x6c65, 4096, 0o600))"
    assert cupel_as.run_json(leave)["status"] == "ok"
    assert cupel_as.run_json(look)["stdout"] == "[] -1\n"


def test_processes_of_one_box_are_invisible_in_another(cupel_as):
    sleeper = cupel_as.popen(["run", "-t", "20", "-c", "print('ready', flush=True)\n"
                              "import time; time.sleep(15)"], text=True)
    try:
        assert sleeper.stdout.readline() == "ready\n"
        result = cupel_as.run_json("import os\nprint(sorted(int(p) for p in os.listdir('/proc') "
                                   "if p.isdigit()) == [os.getpid()])")
        assert result["stdout"] == "True\n"
    finally:
        sleeper.terminate()
        sleeper.communicate()
    assert host.wait_until(lambda: not host.ours(), 2)
