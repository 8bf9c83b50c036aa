"""The Nth system call fails anywhere in our processes: a clear error or a whole answer,
and never anything left behind. strace plays the failing kernel."""
import json
import shutil

import pytest

import host

CALLS = {"mount": "EPERM", "clone3": "EAGAIN", "clone": "EAGAIN", "unshare": "EPERM",
         "mkdir": "ENOSPC", "mkdirat": "ENOSPC", "openat": "EMFILE", "pipe2": "EMFILE",
         "socketpair": "EMFILE", "memfd_create": "ENOMEM", "execveat": "ENOMEM",
         "pivot_root": "EINVAL", "setresuid": "EAGAIN", "sendmsg": "EPIPE", "recvmsg": "ENOMEM",
         "epoll_ctl": "ENOMEM", "timerfd_create": "EMFILE", "fchown": "EPERM", "setns": "EPERM",
         "seccomp": "EINVAL", "capset": "EPERM", "prlimit64": "EPERM", "write": "ENOSPC",
         "symlinkat": "ENOSPC", "fsopen": "EPERM", "move_mount": "EINVAL", "read": "EIO"}
TIMES = (1, 2, 5, 9)


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
@pytest.mark.skipif(host.SANITIZED, reason="the sanitizer has system calls of its own")
@pytest.mark.parametrize("call", CALLS)
def test_a_failing_call_leaves_nothing_and_says_what_failed(cupel, call):
    before = host.footprint()
    for nth in TIMES:
        strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e",
                  f"inject={call}:error={CALLS[call]}:when={nth}"]
        done = cupel.run(["run", "--json", "-c", "print('ran')"], before=strace, timeout=20)
        told = f"{call} {nth}: exit {done.returncode}, {done.stdout[:300]!r}, {done.stderr[:300]!r}"
        assert done.returncode >= 0, "ended by a signal: " + told
        assert done.returncode in (0, 1, 2, 125, 126, 127, 137), told
        if done.returncode == 0 and call != "write":
            result = json.loads(done.stdout)
            assert result["status"] == "ok" and result["stdout"] == "ran\n", told
        else:
            assert done.stdout.strip() or done.stderr.strip(), "failed without a word: " + told
        assert host.wait_until(lambda: not host.growth(before), 3), (told, host.growth(before))
