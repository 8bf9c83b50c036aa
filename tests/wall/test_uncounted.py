"""Where no control group can be had: limits are rlimits and a watchdog, their statuses are told
all the same, and honest programs are not taken for hostile ones."""
import contextlib
import json
import os
import signal
import subprocess
import time

import pytest

import host

pytestmark = pytest.mark.both  # the promise is about hosts without control groups

MAPPINGS = """
import ctypes, os, time
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
area = libc.mmap(None, ctypes.c_size_t(30000 * 8192), 0, 0x22, -1, ctypes.c_long(0))
for at in range(30000):
    libc.mprotect(ctypes.c_void_p(area + at * 8192), ctypes.c_size_t(4096), 1)
for _ in range(30):
    if os.fork() == 0:
        time.sleep(20)
        os._exit(0)
time.sleep(10)
"""
UNREADABLE = """
import os, shutil
shutil.copy('/usr/bin/python3.11', '/tmp/python')
os.chmod('/tmp/python', 0o111)
code = 'import os, time\\nfor _ in range(8):\\n  if not os.fork(): x = bytearray(30 << 20); time.sleep(9)\\n'
code += 'time.sleep(9)'
os.execv('/tmp/python', ['python', '-S', '-c', code])
"""
WATCHED = """
import os, select, time
for _ in range(9):
    if not os.fork():
        break
pollers = [select.epoll() for _ in range(200)]
for _ in range(300):
    reader, writer = os.pipe()
    for poller in pollers:
        poller.register(reader)
time.sleep(9)
"""
# What the code does, and what its end is called.
LIMITED = {
    "one large block": ("python", "bytearray(1 << 40)", "memory_limit"),
    "many small ones": ("python", "x = []\nwhile True: x.append(bytearray(1 << 20))", "memory_limit"),
    "an array": ("python", "import numpy\nnumpy.ones(1 << 36)", "memory_limit"),
    "buffers of node": ("javascript", "const a = []; for (;;) a.push(Buffer.alloc(1 << 26, 1))",
                        "memory_limit"),
    "forks": ("python", "import os, time\nwhile os.fork(): pass\ntime.sleep(9)", "pids_limit"),
    "children": ("python", "import subprocess\nwhile True: subprocess.Popen(['sleep', '9'])", "pids_limit"),
    "children of node": ("javascript", "const { spawn } = require('child_process')\n"
                         "for (let i = 0; i < 100; i++) spawn('sleep', ['9'])", "pids_limit"),
    "threads": ("python", "import threading, time\nthreading.stack_size(65536)\n"
                "for _ in range(100): threading.Thread(target=time.sleep, args=(2,)).start()",
                "pids_limit"),
    # The same words with nothing behind them.
    "nothing to read yet": ("python", "import socket\na, b = socket.socketpair()\na.setblocking(False)\n"
                            "a.recv(1)", "error"),
    "a spawn of nothing": ("javascript", "require('child_process').spawn('/nowhere')", "error"),
}
# Sockets, descriptors, forks and packages as they are used.
HONEST = {
    "half-closed sockets": "import socket\npairs = [socket.socketpair() for _ in range(200)]\n"
                           "for a, b in pairs: a.close()\n",
    "two hundred connections": "import socket\nserver = socket.create_server(('127.0.0.1', 0))\nkeep = []\n"
                               "for _ in range(200):\n"
                               "    keep += [socket.create_connection(server.getsockname()), server.accept()[0]]\n",
    "many open files": "keep = [open(f'f{i}', 'w') for i in range(900)]\n",
    "forks that share": "import os\nbig = bytearray(60 << 20)\n"
                        "for _ in range(10):\n    if not os.fork(): import time; time.sleep(5); os._exit(0)\n",
    "a pool": "import multiprocessing\nwith multiprocessing.Pool(4) as pool: pool.map(abs, range(1000))\n",
    "packages": "import numpy, pandas\nnumpy.ones(1000).sum()\n",
}


@pytest.fixture()
def uncounted(cupel_as):
    if not cupel_as.run_json("pass").without_cgroups():
        pytest.skip("there are control groups")
    return cupel_as


def skip_without_packages(code, boxed):
    if boxed in ("image", "strict") and "numpy" in code:
        pytest.skip("the image has no numpy")


@pytest.mark.parametrize("name", LIMITED)
def test_a_limit_that_was_met_is_named(uncounted, name, boxed):
    language, code, status = LIMITED[name]
    skip_without_packages(code, boxed)
    result = uncounted.run_json(code, language, limits={"timeout_s": 10})
    assert result["status"] == status, (result["error"], result["limits_hit"])
    field = {"memory_limit": ["memory_bytes"], "pids_limit": ["pids"], "error": []}[status]
    assert result["limits_hit"] == field
    assert status == "error" or result["error"]["kind"] == status.removesuffix("_limit")


@pytest.mark.alone
@pytest.mark.parametrize("name", HONEST)
def test_nobody_is_charged_for_what_is_not_held(uncounted, name, boxed):
    skip_without_packages(HONEST[name], boxed)
    code = HONEST[name] + "import time; time.sleep(0.6)\nprint('done')"  # longer than two tallies
    result = uncounted.run_json(code, limits={"timeout_s": 20, "memory_bytes": 160 << 20})
    assert result["status"] == "ok" and result["stdout"] == "done\n", (result["status"], result["error"])


def test_mappings_are_counted(cupel_as):
    """Records of the kernel, 60,000 in each of 30 processes: some 400 MiB."""
    result = cupel_as.run_json(MAPPINGS, limits={"memory_bytes": 128 << 20, "timeout_s": 30, "cpu_s": 30})
    assert result["status"] == "memory_limit", result["error"]
    assert host.wait_until(lambda: not host.ours(), 5)


def test_a_count_that_was_killed_is_made_again(uncounted):
    """As where the host is out of memory: every child that counts is killed until the box rests."""
    request = {"code": MAPPINGS, "limits": {"memory_bytes": 128 << 20, "timeout_s": 30, "cpu_s": 30}}
    process = uncounted.popen(["run", "--cold", "--json", "--request", "-"], stdin=subprocess.PIPE, text=True)
    process.stdin.write(json.dumps(request))
    process.stdin.close()
    def code_runs():  # until then other children of the broker make the box
        return any(row["comm"].startswith("python3") for row in host.descendants(process.pid))
    assert host.wait_until(code_runs, 20)
    killed, until = 0, time.monotonic() + 5
    while time.monotonic() < until:
        rows = host.descendants(process.pid)
        brokers = {row["pid"] for row in rows if row["comm"] == "cupel-broker"}
        for row in rows:
            if row["pid"] in brokers and row["parent"] in brokers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(row["pid"], signal.SIGKILL)
                    killed += 1
        time.sleep(0.005)
    result = json.loads(process.stdout.read())
    process.wait(timeout=20)
    assert killed and result["status"] == "memory_limit", (killed, result["status"], result["error"])


def test_watched_files_are_counted(uncounted):
    """Ten processes with 60,000 watches each: some 110 MiB of the kernel's."""
    result = uncounted.run_json(WATCHED, limits={"memory_bytes": 96 << 20, "timeout_s": 20})
    assert result["status"] == "memory_limit", (result["status"], result["error"])


def test_a_process_that_nobody_may_read_is_counted(uncounted):
    result = uncounted.run_json(UNREADABLE, limits={"memory_bytes": 96 << 20, "timeout_s": 20})
    assert result["status"] == "memory_limit", (result["status"], result["error"])
