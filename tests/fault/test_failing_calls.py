"""The Nth system call fails anywhere in our processes: a clear error or a whole answer,
and never anything left behind. strace plays the failing kernel; it counts in each process
for itself. The short form fails some calls of some kinds, the long one every call that any
of our processes makes in a run."""
import json
import re
import shutil
import signal
from collections import Counter, defaultdict

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
# Further kinds that a run makes, for the long form.
MORE = {"access": "EACCES", "arch_prctl": "EPERM", "bind": "EADDRINUSE", "brk": "ENOMEM",
        "chdir": "EACCES", "chmod": "EROFS", "chown": "EPERM", "close_range": "ENOSYS",
        "connect": "ECONNREFUSED", "dup2": "EMFILE", "dup3": "EMFILE", "epoll_create1": "EMFILE",
        "epoll_pwait": "EINTR", "epoll_wait": "EINTR", "eventfd2": "EMFILE", "faccessat2": "EACCES",
        "fadvise64": "EINVAL",
        "fchmod": "EROFS", "fchdir": "EACCES", "fchownat": "EPERM", "fcntl": "EINVAL", "flock": "ENOLCK",
        "fstat": "EIO", "fstatfs": "EIO", "ftruncate": "ENOSPC", "futex": "EINTR", "getdents64": "EIO",
        "getrandom": "ENOSYS", "getresuid": "EFAULT", "getsockopt": "ENOBUFS", "ioctl": "ENOTTY",
        "kill": "EPERM", "landlock_add_rule": "ENOMEM", "landlock_create_ruleset": "ENOMEM",
        "landlock_restrict_self": "ENOMEM", "lseek": "EIO", "mmap": "ENOMEM", "mprotect": "ENOMEM",
        "mremap": "ENOMEM", "munmap": "ENOMEM", "newfstatat": "EIO", "open": "EMFILE",
        "openat2": "EMFILE", "pidfd_open": "EMFILE", "pidfd_send_signal": "EPERM", "pipe": "EMFILE",
        "poll": "EINTR", "ppoll": "EINTR", "prctl": "EINVAL", "pread64": "EIO", "pwrite64": "ENOSPC",
        "readlink": "EACCES", "readlinkat": "EACCES", "recvfrom": "ENOMEM", "renameat": "ENOSPC",
        "rename": "ENOSPC", "rmdir": "EBUSY", "rt_sigaction": "EINVAL", "rt_sigprocmask": "EINVAL",
        "sendto": "EPIPE", "setgroups": "EPERM", "sethostname": "EPERM", "setresgid": "EAGAIN",
        "setsid": "EPERM", "setsockopt": "EPERM", "signalfd4": "EMFILE", "socket": "EMFILE",
        "stat": "EIO", "statfs": "EIO", "statx": "EIO", "symlink": "ENOSPC", "sysinfo": "EFAULT",
        "timerfd_settime": "EINVAL", "umask": "EPERM", "umount2": "EBUSY", "unlink": "EBUSY",
        "unlinkat": "EBUSY", "utimensat": "EROFS",
        "mount_setattr": "EPERM", "fsmount": "EPERM", "fsconfig": "EINVAL", "open_tree": "EPERM", "move_mount": "EPERM",
        "chroot": "EPERM", "getgroups": "EFAULT", "sched_setaffinity": "EPERM", "setpriority": "EPERM",
        "sched_getaffinity": "EFAULT", "set_robust_list": "EINVAL", "rseq": "ENOSYS"}
# Kinds that cannot fail so, or whose failure no program could survive or notice.
NEVER_FAIL = {
    "execve": "strace's own start of cupel", "exit_group": "does not return", "exit": "the same",
    "pause": "init's sleep", "close": "the kernel closes even where it tells of an error",
    "set_tid_address": "libc's own start", "rt_sigreturn": "the kernel's own", "vfork": "strace's own",
    "geteuid": "cannot fail", "getuid": "cannot fail", "getegid": "cannot fail", "getgid": "cannot fail",
    "wait4": "with WNOHANG, for a child that is there, it cannot fail", "waitid": "the same",
    "getpid": "cannot fail", "getppid": "cannot fail", "gettid": "cannot fail", "alarm": "cannot fail",
}
LOADER = {"brk", "mmap"}  # without memory the dynamic loader of any program dies of SIGSEGV
CODE = ["run", "--json", "-c", "print('ran')"]
pytestmark = [pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed"),
              pytest.mark.skipif(host.SANITIZED, reason="the sanitizer has system calls of its own"),
              pytest.mark.sample(short=5)]


def fail(cupel, call, error, nth):
    """(process, words about it) of a run whose Nth call of a kind fails."""
    strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e",
              f"inject={call}:error={error}:when={nth}"]
    done = cupel.run(CODE, before=strace, timeout=20)
    return done, f"{call} {nth}: exit {done.returncode}, {done.stdout[:300]!r}, {done.stderr[:300]!r}"


def judge(done, told, call, walls):
    """A right answer behind every wall but those that are said to be missing, or clear words."""
    if call in LOADER and done.returncode == -signal.SIGSEGV:
        return
    assert done.returncode >= 0, "ended by a signal: " + told
    assert done.returncode in (0, 1, 2, 125, 126, 127, 137, 139), told
    if done.returncode == 0:
        result = json.loads(done.stdout)
        assert result["status"] == "ok" and result["stdout"] == "ran\n", told
        lost = walls - set(result["isolation"]["walls"])
        assert lost <= set(result["isolation"]["missing"]), f"without a word, no {lost}: {told}"
    elif call != "write":  # there the words themselves may be what could not be written
        assert done.stdout.strip() or done.stderr.strip(), "failed without a word: " + told


def usual_walls(cupel):
    return set(cupel.run_json("pass")["isolation"]["walls"])


def clean_after(cupel, before):
    """strace fails the call in every process at once, also in the one that removes cgroups:
    what that leaves is swept by the next start."""
    assert cupel.run_json("print(1)")["stdout"] == "1\n"
    host.check_no_growth(before)


@pytest.mark.parametrize("call", CALLS)
def test_a_failing_call_leaves_nothing_and_says_what_failed(cupel, call):
    before, walls = host.footprint(), usual_walls(cupel)
    for nth in TIMES:
        done, told = fail(cupel, call, CALLS[call], nth)
        judge(done, told, call, walls)
        host.check_no_growth(before, told, but=["cgroups"])
    clean_after(cupel, before)


def most_calls(cupel, folder):
    """{kind: how often the busiest of our processes makes it}; the interpreter's own calls,
    after its exec, are not ours."""
    cupel.run_json("pass")  # the first run has the image to look through
    trace = folder / "trace"
    trace.touch()
    trace.chmod(0o666)
    cupel.run(CODE, before=["strace", "-f", "-qq", "-o", trace], timeout=30)
    counts, elsewhere = defaultdict(Counter), set()
    for line in trace.read_text(errors="replace").splitlines():
        match = re.match(r"(\d+) +(\w+)\((.*)", line)
        if match and match[1] not in elsewhere:
            counts[match[1]][match[2]] += 1
            if match[2].startswith("execve") and "python" in match[3].split(",")[0]:
                elsewhere.add(match[1])
    assert elsewhere and len(counts) >= 4, "the trace shows no run"
    most = Counter()
    for count in counts.values():
        most |= count
    return most


@pytest.fixture(scope="module")
def counted(cupels, place):
    made = {}

    def count(who):
        if who not in made:
            made[who] = most_calls(cupels[who], place.fresh("count"))
        return made[who]
    return count


@pytest.mark.long
def test_every_kind_of_call_that_a_run_makes_is_known_here(counted, who):
    unknown = set(counted(who)) - set(CALLS) - set(MORE) - set(NEVER_FAIL)
    assert not unknown, f"add these to MORE or NEVER_FAIL: {sorted(unknown)}"


@pytest.mark.long
@pytest.mark.parametrize("call", sorted({**CALLS, **MORE}))
def test_every_single_call_may_fail(cupel_as, counted, who, call):
    most = counted(who)[call]
    if most == 0:
        pytest.skip("a run makes none")
    before, walls, wrong = host.footprint(), usual_walls(cupel_as), []
    for nth in range(1, most + 2):  # one more: runs are not all alike
        try:
            done, told = fail(cupel_as, call, {**CALLS, **MORE}[call], nth)
            judge(done, told, call, walls)
            host.check_no_growth(before, told, but=["cgroups"])
        except (AssertionError, ValueError) as fault:
            wrong.append(f"{call} {nth}: {fault}"[:900])
    clean_after(cupel_as, before)
    assert not wrong, "\n" + "\n".join(wrong)
