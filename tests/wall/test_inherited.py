"""Whatever odd state cupel is started in, the box starts the same."""
import os
import resource
import signal
import socket
from pathlib import Path

import pytest

import host

FD_CODE = """
import os, stat
odd = []
for name in os.listdir('/proc/self/fd'):
    try:
        mode = os.fstat(int(name)).st_mode
        link = os.readlink('/proc/self/fd/' + name)
    except OSError:
        continue
    if stat.S_ISDIR(mode) or stat.S_ISREG(mode) and not link.startswith('/memfd:'):
        odd.append((name, link))
    try:
        os.close(os.open('etc/shadow', os.O_RDONLY, dir_fd=int(name)))
        odd.append((name, 'reaches shadow'))
    except OSError:
        pass
print(odd, len(os.listdir('/proc/self/fd')) <= 6)
"""
STATE_CODE = "cat /proc/self/status | grep -E '^Sig(Blk|Ign)'; umask; nice; " \
             "cat /proc/self/oom_score_adj; ulimit -c; cat /proc/self/stat | cut -d' ' -f5,6"


def test_inherited_descriptors_do_not_reach_the_box(cupel_as):
    held = [os.open("/", os.O_RDONLY), os.open("/etc/passwd", os.O_RDONLY)]
    held += [os.dup(held[0]) for _ in range(40)]
    link = socket.socketpair()
    try:
        result = cupel_as.run_json(FD_CODE, options={
            "pass_fds": [*held, link[0].fileno(), link[1].fileno()]})
    finally:
        [os.close(fd) for fd in held]
        [end.close() for end in link]
    assert result["stdout"] == "[] True\n", result["stdout"]


def odd_state():
    """Runs in the child before cupel starts."""
    for number in (signal.SIGPIPE, signal.SIGCHLD, signal.SIGHUP, signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, set(range(1, 65)) - {signal.SIGKILL, signal.SIGSTOP})
    os.umask(0o777)
    resource.setrlimit(resource.RLIMIT_CORE, (1 << 20, 1 << 20))


def test_a_shut_umask_does_not_shut_us_out_of_what_we_make(cupel_as, place):
    """The first start makes the folder and the file of the slots; the second must get at them."""
    cupel_as.run_json("pass")
    runtime = place.fresh("run", 0o700, cupel_as.uid)
    mine = "mount -t tmpfs -o mode=755 none /run; for n in 1 2; do \"$@\"; done"
    if cupel_as.uid == 0:
        before = ["unshare", "-m", "--propagation", "private", "sh", "-ec", mine, "sh"]
    else:
        before = ["sh", "-ec", mine.partition("; ")[2], "sh"]
    done = cupel_as.run(["run", "-c", "print('ran')"], before=before, umask=0o777,
                        env={"XDG_RUNTIME_DIR": str(runtime)})
    assert done.stdout == "ran\nran\n", done


@pytest.mark.boxes("host", why="it makes an image and a set of changes of its own")
def test_a_shut_umask_keeps_no_image_and_no_change_from_us(cupel_as, place):
    state, tree = place.fresh("state", 0o755, cupel_as.uid), place.fresh("tree", 0o755, cupel_as.uid)
    project = place.fresh("project", 0o755, cupel_as.uid or host.ORDINARY)
    (tree / "etc").mkdir()
    settings = {"env": {"CUPEL_STATE": str(state / "s")}, "umask": 0o777}
    for words in (["run", "-q", "1"], ["images", "import", "--name", "small", tree], ["images", "verify", "small"],
                  ["run", "-q", "--dir", project, "-c", "open('new', 'w').write('x'); print('ran')"]):
        done = cupel_as.run(words, **settings)
        assert done.returncode == 0, (words, done)
    assert "+x" in cupel_as.run(["diff"], **{**settings, "cwd": project}).stdout


def test_odd_signals_and_umask_do_not_reach_the_box(cupel_as):
    result = cupel_as.run_json(STATE_CODE, "bash", options={"preexec_fn": odd_state})
    usual = cupel_as.run_json(STATE_CODE, "bash")
    lines = result["stdout"].split("\n")
    assert result["status"] == usual["status"] == "ok"
    assert lines[0].split()[1].strip("0") == "" and lines[1].split()[1].strip("0") == "", lines
    assert lines[2] == "0022" and int(lines[5]) in (0, 1)
    assert lines[:3] == usual["stdout"].split("\n")[:3]


def threads_of(uid):
    count = 0
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
        except OSError:   # it has ended
            continue
        count += int(fields["Threads"]) if fields["Uid"].split()[0] == str(uid) else 0
    return count


@pytest.mark.parametrize("limit,value", [
    ("NOFILE", 256), ("STACK", 1 << 20), ("CORE", 1 << 20), ("MEMLOCK", 0),
    pytest.param("NPROC", 64, marks=pytest.mark.alone)])
def test_the_callers_own_limits_do_not_break_the_box(cupel_as, limit, value):
    if limit == "NPROC":   # it counts all of that user: the engines of other tests, too
        value += threads_of(cupel_as.uid)

    def tighten():
        resource.setrlimit(getattr(resource, "RLIMIT_" + limit), (value, value))
    result = cupel_as.run_json("print(1)", options={"preexec_fn": tighten})
    assert result["stdout"] == "1\n"


def test_a_caller_that_may_not_write_files_gets_an_answer_all_the_same(cupel_as):
    done = cupel_as.run(["run", "print(1)"], preexec_fn=lambda: resource.setrlimit(
        resource.RLIMIT_FSIZE, (4096, 4096)))
    assert done.returncode in (0, 125) and done.stdout + done.stderr, done


def test_a_missing_standard_stream_does_no_harm(cupel_as):
    def close_all():
        os.close(0)
    result = cupel_as.run_json("print(1)", options={"preexec_fn": lambda: os.umask(0)})
    assert result["stdout"] == "1\n"
    done = cupel_as.run(["run", "print(2)"], preexec_fn=close_all)
    assert done.returncode == 0 and done.stdout == "2\n", done


def test_a_timeout_is_kept_with_every_signal_blocked(cupel_as):
    result = cupel_as.run_json("import time; time.sleep(30)", limits={"timeout_s": 0.5},
                               options={"preexec_fn": odd_state})
    assert result["status"] == "timeout"
