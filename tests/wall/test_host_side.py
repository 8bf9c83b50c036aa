"""Attacks whose harm shows outside the box: in what other boxes and the host are left with,
in our own cpu time, in the kernel's log, in what our processes do with a hostile tree."""
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import threading
from pathlib import Path

import pytest

import host

# Row 72: watches of files are counted for a user, and boxes are many users.
INSTANCES = """
import ctypes, sys, time
libc = ctypes.CDLL(None)
made = 0
while made < 4096 and libc.inotify_init1(0) >= 0:
    made += 1
print(made, flush=True)
time.sleep(float(sys.argv[1]))
"""


def take_all(start):
    """Start a greedy one that holds what it got: (process, how many it got)."""
    greedy = start(["-c", INSTANCES, "20"])
    line = greedy.stdout.readline()
    assert line.strip().isdigit(), (line, greedy.communicate(timeout=10))
    return greedy, int(line)


def outside(args):
    return subprocess.Popen(["/usr/bin/python3", *args], stdout=subprocess.PIPE, text=True,
                            stderr=subprocess.PIPE, user=host.ORDINARY, group=host.ORDINARY,
                            extra_groups=[])


@pytest.mark.skipif(os.getuid() != 0, reason="needs two uids")
def test_without_walls_one_program_takes_every_watcher():
    """The positive control: two programs of one uid."""
    greedy, got = take_all(outside)
    try:
        second = outside(["-c", INSTANCES, "0"])
        assert got >= 100 and second.communicate(timeout=10)[0] == "0\n"
    finally:
        greedy.kill()
        greedy.communicate()


def test_a_box_that_takes_every_watcher_leaves_some_for_others(cupel_as):
    """Also of an ordinary user, who has one uid for all boxes."""
    greedy, got = take_all(lambda args: cupel_as.popen(["run", "-t", "30", *args], text=True))
    try:
        second = cupel_as.run_json(INSTANCES, args=["0"])
        host_side = subprocess.run(["/usr/bin/python3", "-c", INSTANCES, "0"], text=True,
                                   capture_output=True)
    finally:
        greedy.terminate()
        greedy.communicate(timeout=10)
    assert got >= 1, "file watchers are for every program"
    assert int(second["stdout"]) >= 1, "another box is left without"
    assert int(host_side.stdout) >= 1, "the host itself is left without"


# Row 81: what the v1 freezer holds cannot be killed.
def test_no_box_is_ever_in_a_frozen_group(cupels):
    freezer = Path("/sys/fs/cgroup/freezer")
    if "root" not in cupels or not freezer.is_dir():
        pytest.skip("no freezer of the old kind")
    front = cupels["root"].popen(["run", "-c", "print('ready', flush=True)\nimport time\ntime.sleep(9)"],
                                 text=True)
    try:
        assert front.stdout.readline() == "ready\n"
        for row in host.descendants(front.pid):
            lines = Path(f"/proc/{row['pid']}/cgroup").read_text().splitlines()
            path = next(line.split(":", 2)[2] for line in lines if ":freezer:" in line)
            state = freezer / path.lstrip("/") / "freezer.state"
            assert not state.exists() or state.read_text() == "THAWED\n", (row, path)
    finally:
        front.terminate()
        front.communicate(timeout=10)
    sources = [path for path in (host.REPO / "src").rglob("*.c") if "freezer.state" in path.read_text()]
    assert not sources, f"the old freezer is used by {sources}"


# Row 84: a line of the kernel's log for every crash would be a way to flood it.
def kernel_log():
    """Lines so far; each has a number of its own."""
    fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    lines = []
    try:
        while True:
            try:
                lines.append(os.read(fd, 8192).decode(errors="replace"))
            except BrokenPipeError:
                continue  # overwritten while we read
    except BlockingIOError:
        return lines
    finally:
        os.close(fd)


CRASHES = """
import ctypes, os
for n in range(300):
    pid = os.fork()
    if pid == 0:
        ctypes.string_at(0)
    os.waitpid(pid, 0)
libc = ctypes.CDLL(None)
for n in range(2000):
    libc.syscall(101, 0, 0, 0, 0)
print('done')
"""


def test_crashes_and_forbidden_calls_do_not_flood_the_log(cupel_as):
    try:
        before = len(kernel_log())
    except OSError as error:
        pytest.skip(f"the log cannot be read: {error}")
    assert cupel_as.run_json(CRASHES, limits={"timeout_s": 20, "cpu_s": 20})["stdout"] == "done\n"
    grown = [line for line in kernel_log()[before:] if re.search("segfault|audit|seccomp|python", line)]
    assert len(grown) < 60, f"{len(grown)} lines: {grown[:5]}"


# Row 85: each report of a forbidden call wakes the engine.
FLOOD = """
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int main(void)
{
    for (long n = 0; n < 1000000; n++)
        syscall(SYS_ptrace, 0, 0, 0, 0);
    printf("%.3f\\n", (double)clock() / CLOCKS_PER_SEC);
    return 0;
}
"""
QUIET = FLOOD.replace("SYS_ptrace", "SYS_getppid")
RUN_IT = "import os, shutil\nshutil.copy('flood', '/tmp/f')\nos.chmod('/tmp/f', 0o755)\n" \
         "os.execv('/tmp/f', ['f'])"


def our_cpu_seconds(cupel, binary):
    """(seconds of the box, seconds of our own processes) for one run, the latter from the
    kernel's account of the children that we waited for."""
    def children():
        times = os.times()
        return times.children_user + times.children_system
    before = children()
    result = cupel.run_json(RUN_IT, files=[host.binary_file("flood", binary.read_bytes(), readonly=True)],
                            limits={"timeout_s": 40, "cpu_s": 40})
    host.wait_until(lambda: not host.ours(), 2)
    assert result["status"] == "ok", (result["status"], result["error"])
    box = result["metrics"]["cpu_ms"] / 1000
    return float(result["stdout"]), max(children() - before - box, 0), result


def test_a_million_forbidden_calls_cost_us_next_to_nothing(cupel_as, place):
    binaries = {}
    for name, text in (("flood", FLOOD), ("quiet", QUIET)):
        binaries[name] = place.root / f"notify-{name}"
        if not binaries[name].exists():
            subprocess.run(["gcc", "-static", "-O1", "-xc", "-o", binaries[name], "-"], input=text,
                           text=True, check=True, timeout=60)
    _, usual, _ = our_cpu_seconds(cupel_as, binaries["quiet"])
    spent, ours, result = our_cpu_seconds(cupel_as, binaries["flood"])
    assert [row["call"] for row in result["denied"]] == ["ptrace"], result["denied"]
    assert result["denied"][0]["count"] <= 16
    # Were each of them reported, ours would be several times the box's.
    assert ours < 2 * usual + spent / 4, f"{ours:.3f} s of ours for {spent:.3f} s of the box, {usual:.3f} s without"


# Row 15: a terminal that the caller sits at.
TYPE = """
import ctypes, fcntl, os
said = []
for fd in range(64):
    for request in (0x5412, 0x5412 | 1 << 32):
        if ctypes.CDLL(None).ioctl(fd, ctypes.c_ulong(request), b'x') == 0:
            said.append(fd)
for path in ('/dev/tty', '/dev/console', '/dev/pts/0', '/proc/self/fd/0'):
    try:
        fd = os.open(path, os.O_RDWR | os.O_NOCTTY)
        said += [path] if os.isatty(fd) else []
    except OSError:
        pass
print('typed', said, [os.isatty(fd) for fd in (0, 1, 2)])
"""


def waiting(fd):
    """Bytes that are typed and not read yet."""
    return struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, b"\0" * 4))[0]


def test_nothing_is_typed_into_the_callers_terminal(cupel_as):
    leader, terminal = pty.openpty()
    if cupel_as.switch:
        os.fchown(terminal, host.ORDINARY, host.ORDINARY)
    settings = termios.tcgetattr(terminal)
    settings[3] &= ~(termios.ICANON | termios.ECHO)  # else a line counts only once it is whole
    termios.tcsetattr(terminal, termios.TCSANOW, settings)
    seen = []

    def read():
        try:
            while data := os.read(leader, 4096):
                seen.append(data)
        except OSError:
            pass  # the other end is closed
    reader = threading.Thread(target=read)
    reader.start()
    try:
        os.write(leader, b"ab")
        assert host.wait_until(lambda: waiting(terminal) == 2, 1), "the control: typing is seen"
        termios.tcflush(terminal, termios.TCIFLUSH)
        child = cupel_as.popen(["run", "-c", TYPE], stdin=terminal, stdout=terminal, stderr=terminal,
                               start_new_session=True,
                               preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        assert child.wait(timeout=20) == 0
        assert waiting(terminal) == 0, "something was typed"
    finally:
        os.close(terminal)
        reader.join(2)
        os.close(leader)
    text = b"".join(seen).decode()
    assert "typed [] [False, False, False]" in text, text


# Row 89: a racer that swaps a file for a link while files are collected.
RACER = """
import ctypes, os, sys
os.symlink('/etc/passwd', 'link')
open('file', 'w').write('harmless')
os.mkdir('folder')
open('folder/passwd', 'w').write('harmless')
os.symlink('/etc', 'etc')
libc = ctypes.CDLL(None)
pid = os.fork()
if pid == 0:
    os.setsid()
    while True:  # RENAME_EXCHANGE
        libc.renameat2(-100, b'link', -100, b'file', 2)
        libc.renameat2(-100, b'folder', -100, b'etc', 2)
open('more', 'w').write('x' * 100000)
os._exit(0)
"""


def test_a_racer_cannot_swap_a_link_in(cupel_as, place):
    secret = Path("/etc/passwd").read_bytes()
    for _ in range(8):
        out = place.fresh("out", 0o777)
        done = cupel_as.run(["run", "-c", RACER, "-o", out])
        assert done.returncode in (0, 126), done.stderr
        for path in out.rglob("*"):
            assert not path.is_symlink(), path
            assert not path.is_file() or path.read_bytes() != secret, f"{path} is the host's file"


# Row 98: our processes never walk, chown or remove a tree that user code made.
TREE = """
import os
for n in range(40):
    os.makedirs(f'cupelbait{n}/cupelbait/cupelbait', exist_ok=True)
    open(f'cupelbait{n}/cupelbait/file', 'w').close()
    os.chmod(f'cupelbait{n}', 0o700)
"""
CHANGING = "unlink,unlinkat,rmdir,chown,fchownat,lchown,chmod,fchmodat,rename,renameat,renameat2"


def test_the_end_of_a_box_touches_no_file_in_it(cupel_as, folder):
    """Its mounts go with its namespace. The occupant's own calls are left out by their pid."""
    trace = folder / "trace"
    trace.touch()
    trace.chmod(0o666)
    done = cupel_as.run(["run", "-c", TREE], timeout=40, before=[
        "strace", "-f", "-qq", "-o", trace, "-e", f"trace={CHANGING},execve,mkdir"])
    assert done.returncode == 0, done.stderr
    lines = trace.read_text().splitlines()
    makers = {line.split()[0] for line in lines if "mkdir(" in line and "cupelbait" in line}
    assert len(makers) == 1, "the control: the trace shows the occupant at work"
    others = [line for line in lines if line.split()[0] not in makers and "cupelbait" in line]
    assert not others, others[:5]


# Row 105: boxes are alike but not in their chances.
CHANCE = "import os, random, uuid\nimport numpy\n" \
         "print(random.random(), os.urandom(8).hex(), uuid.uuid4(), numpy.random.rand(), id(object()))"


@pytest.mark.boxes("host", "dir", why="the image has no numpy")
def test_two_boxes_draw_different_numbers(cupel_as):
    draws = [cupel_as.run_json(CHANCE)["stdout"].split() for _ in range(2)]
    assert len(draws[0]) == len(draws[1]) == 5, draws
    same = [pair for pair in zip(*draws) if pair[0] == pair[1]]
    assert not same, same
