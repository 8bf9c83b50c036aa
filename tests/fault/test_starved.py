"""A host that has nothing left to give: no room for the state, no inode, no descriptor, no
memory, no process, nothing that may be written. A right answer with every wall, or a clear
error; nothing is left behind, and the next run is as ever."""
import contextlib
import json
import os
import resource
from pathlib import Path

import pytest

import host

MARK = "ran-behind-walls"
CODE = f"print('{MARK}')"
# 1: the words themselves could not be written. 125: we could not. 137, -9: killed for memory.
MAY_END_IN = (0, 1, 2, 125, 126, 127)
pytestmark = [pytest.mark.skipif(host.SANITIZED, reason="the sanitizer has appetites of its own"),
              pytest.mark.sample(short=4)]


def usual_walls(cupel):
    return set(cupel.run_json("pass")["isolation"]["walls"])


def judge(done, walls, may_end_in=MAY_END_IN):
    """True where it ran; an error must have words. Never fewer walls than usual."""
    told = f"exit {done.returncode}, stdout {done.stdout[-600:]!r}, stderr {done.stderr[-600:]!r}"
    assert done.returncode in may_end_in, told
    if MARK in done.stdout:
        result = json.loads(done.stdout)
        lost = walls - set(result["isolation"]["walls"])
        assert not lost, f"ran without {lost}: {told}"
        if done.returncode == 137 and 137 in may_end_in:  # its words were out, then memory was short
            assert result["status"] == "killed" and result["signal"] == 9, told
            return False
        assert done.returncode == 0 and result["status"] == "ok", told
        return True
    assert done.returncode != 0, "no answer, and yet a success: " + told
    if done.returncode > 0:
        assert done.stdout.strip() or done.stderr.strip(), "failed without a word: " + told
    if done.stdout.strip():  # a refusal, or a run that a limit of the caller's brought down
        answer = json.loads(done.stdout)
        assert answer["error"]["message"], told
        assert not walls - set(answer.get("isolation", {}).get("walls", walls)), told
    return False


@pytest.fixture
def starve(cupel_as):
    """Runs in want, and looks afterwards whether the house is clean and the next run right."""
    walls, before = usual_walls(cupel_as), host.footprint()

    def run(code=CODE, cli=(), may_end_in=MAY_END_IN, **options):
        done = cupel_as.run(["run", "--json", *cli, "-c", code], timeout=30, **options)
        ran = judge(done, walls, may_end_in)
        host.check_no_growth(before, done, but=["cgroups"])
        return ran, done
    yield run
    assert cupel_as.run_json("print(1)")["stdout"] == "1\n"
    host.check_no_growth(before)


ROOT = {"user": None, "group": None, "extra_groups": None}  # of Popen: no change of uid


def switched(cupel):
    """In a shell that is still root: the words that change to whoever cupel runs as."""
    return f"setpriv --reuid {cupel.uid} --regid {cupel.uid} --clear-groups --" if cupel.switch else ""


def in_own_mounts(cupel, folder, prepare):
    """A command that mounts for itself alone, then starts cupel as whom it should run."""
    if os.getuid() != 0:
        pytest.skip("only root can mount")
    owner = cupel.uid if cupel.switch else 2 ** 31 - 2 ** 16  # as root: the doors' private uid
    text = f"set -e; D={folder}; OWNER={owner}; {prepare}; exec {switched(cupel)} \"$@\""
    return {"before": ["unshare", "-m", "--propagation", "private", "sh", "-c", text, "sh"],
            "env": {"CUPEL_STATE": str(folder)}, **ROOT}


FILL = "dd if=/dev/zero of=$D/fill bs=4096 2>/dev/null || true"
PLOT = "import matplotlib.pyplot as p\np.plot([1, 2])\np.show()\n" + CODE
STATES = {
    "no block": "mount -t tmpfs -o size=64k,uid=$OWNER,gid=$OWNER,mode=700 none $D; " + FILL,
    "a few blocks": "mount -t tmpfs -o size=8k,uid=$OWNER,gid=$OWNER,mode=700 none $D",
    "no inode": "mount -t tmpfs -o nr_inodes=1,uid=$OWNER,gid=$OWNER,mode=700 none $D",
    "two inodes": "mount -t tmpfs -o nr_inodes=2,uid=$OWNER,gid=$OWNER,mode=700 none $D",
}


@pytest.mark.parametrize("state", STATES)
def test_a_full_disk_for_the_state_is_a_clear_error(cupel_as, starve, folder, state):
    """The state only remembers: where nothing can be, a run needs none of it."""
    for code in (CODE, PLOT):
        ran, done = starve(code, ["-t", "30"], **in_own_mounts(cupel_as, folder, STATES[state]))
        assert ran, (done.stdout[-500:], done.stderr[-500:])


def test_what_a_full_disk_cut_short_is_not_read_later(cupel_as, starve, folder):
    prepare = STATES["a few blocks"] + f"; {switched(cupel_as)} \"$@\" >/dev/null 2>&1 || true; " \
        "mount -o remount,size=1m $D"
    ran, done = starve(PLOT, ["-t", "30"], **in_own_mounts(cupel_as, folder, prepare))
    assert ran, done


@pytest.mark.parametrize("prepare", [
    "mount -t tmpfs -o ro,uid=$OWNER,gid=$OWNER,mode=700 none $D",
    "mount --bind $D $D; chown $OWNER:$OWNER $D; mount -o remount,ro,bind $D"], ids=["tmpfs", "bind"])
def test_a_state_that_may_not_be_written_is_refused_or_not_needed(cupel_as, starve, folder, prepare):
    starve(PLOT, ["-t", "30"], **in_own_mounts(cupel_as, folder, prepare))


RUNTIMES = {
    "read-only": "mount -t tmpfs -o ro,mode=700 none $R",
    "read-only as it is": "mount --bind $R $R; mount -o remount,ro,bind $R",
    "no inode": "mount -t tmpfs -o nr_inodes=1,mode=700 none $R",
}


@pytest.mark.parametrize("kind", RUNTIMES)
def test_without_a_place_for_its_lock_there_is_no_run(cupel_as, starve, folder, kind):
    """Root's instances hold a slot each; who has none must not take another's."""
    if cupel_as.switch:
        pytest.skip("a user's runs need no slot")
    options = in_own_mounts(cupel_as, folder, "R=/run/cupel; chown $OWNER $D; " + RUNTIMES[kind])
    ran, done = starve(**options)
    assert not ran and done.returncode == 125, done
    assert "/run/cupel" in done.stdout + done.stderr, done


def test_a_users_runtime_folder_that_may_not_be_written(cupel_as, starve, folder):
    runtime = cupel_as.env["XDG_RUNTIME_DIR"]
    prepare = f"R={runtime}; chown $OWNER $D; mount -t tmpfs -o ro,uid=$OWNER,mode=700 none $R"
    starve(**in_own_mounts(cupel_as, folder, prepare))


LEAST = {"NOFILE": 64, "AS": 1 << 30, "DATA": 512 << 20}  # of the caller's limits
ULIMIT = {"NOFILE": "ulimit -n 64'", "AS": "ulimit -v 1048576'", "DATA": "ulimit -d 524288'"}


def limit(kind, soft, hard=None):
    return lambda: resource.setrlimit(getattr(resource, "RLIMIT_" + kind), (soft, hard or soft))


def is_told(kind, value, done):
    """The limit, what it is, what is needed and what to type; and nothing was begun."""
    said = done.stdout + done.stderr
    assert done.returncode == 125 and f"the caller's RLIMIT_{kind} is {value};" in said, done
    assert str(LEAST[kind]) in said and ULIMIT[kind] in said, done


@pytest.mark.parametrize("count", [64, 63, 40, 32, 28, 24, 20, 16, 12, 10, 8, 6, 5, 4, 3])
def test_few_open_files(starve, count):
    groups = host.cgroups()
    ran, done = starve(preexec_fn=limit("NOFILE", count))
    assert ran == (count >= LEAST["NOFILE"]), done
    host.check_no_growth({"cgroups": groups}, "waits for the next start's sweep", seconds=2)
    if not ran and count > 3:  # the loader itself needs the fourth
        is_told("NOFILE", count, done)


@pytest.mark.parametrize("kind", ["AS", "DATA"])
@pytest.mark.parametrize("mib", [1, 2, 4, 6, 8, 12, 16, 24, 48, 400])
def test_little_memory_of_our_own(starve, kind, mib):
    """Where even a program cannot be loaded, the loader's word or the signal is all there is."""
    ran, done = starve(preexec_fn=limit(kind, mib << 20), may_end_in=(*MAY_END_IN, -9, -11, 137, 139))
    assert not ran, "the code would be blamed for the caller's limit"
    if mib >= 16:
        is_told(kind, mib << 20, done)


@pytest.mark.parametrize("kind,soft", [("NOFILE", 12), ("AS", 64 << 20), ("DATA", 4 << 20)])
def test_a_soft_limit_of_the_caller_is_raised_to_the_hard_one(starve, kind, soft):
    ran, done = starve(preexec_fn=limit(kind, soft, LEAST[kind]))
    assert ran, done


@contextlib.contextmanager
def group(kind, **limits):
    """A cgroup of the test's own, for cupel and not for its boxes."""
    root = Path("/sys/fs/cgroup")
    base = root / kind if (root / kind).is_dir() else None
    made = base and base / f"cupeltest-{os.getpid()}"
    if not made or os.getuid() != 0:
        pytest.skip(f"no cgroup v1 hierarchy '{kind}' to write to")
    made.mkdir()
    try:
        for name, value in limits.items():
            (made / name.replace("__", ".")).write_text(str(value))
        yield made
    finally:
        host.wait_until(lambda: not (made / "cgroup.procs").read_text(), 3)
        made.rmdir()


def joined(made, cupel):
    """cupel starts in that group."""
    return {"before": ["sh", "-c", f"echo $$ > {made}/cgroup.procs; exec {switched(cupel)} \"$@\"", "sh"], **ROOT}


@pytest.mark.parametrize("mib", [1, 2, 3, 4, 6])
def test_no_memory_in_our_own_group(cupel_as, starve, mib):
    with group("memory", memory__limit_in_bytes=mib << 20) as made:
        starve(may_end_in=(*MAY_END_IN, -9, 137), **joined(made, cupel_as))


@pytest.mark.parametrize("most", range(1, 9))
def test_no_process_in_our_own_group(cupel_as, starve, most):
    with group("pids", pids__max=most) as made:
        starve(**joined(made, cupel_as))


@pytest.mark.parametrize("most", [1, 2, 3, 4, 6])
def test_no_process_for_an_ordinary_user(cupels, most):
    """The limit counts the user's processes everywhere; root is not bound by it."""
    cupel, before = cupels["user"], host.footprint()
    walls = usual_walls(cupel)
    done = cupel.run(["run", "--json", "-c", CODE], timeout=30, preexec_fn=lambda: resource.setrlimit(
        resource.RLIMIT_NPROC, (most, most)))
    judge(done, walls)
    host.check_no_growth(before)


def test_an_out_folder_that_is_full_is_a_clear_error(cupel_as, starve, folder, place):
    out = place.fresh("out", 0o777)
    prepare = f"chown $OWNER $D; mount -t tmpfs -o size=8k,mode=1777 none {out}"
    done = cupel_as.run(["run", "--json", "-o", out, "-c", "open('big', 'w').write('x' * 100000)"],
                        **in_own_mounts(cupel_as, folder, prepare))
    assert done.returncode not in (0, -9, -11), done
    assert "No space left" in done.stdout + done.stderr and "big" in done.stdout + done.stderr, done


@pytest.mark.parametrize("form,words", [(["--json"], "No space left"), ([], "")], ids=["json", "text"])
def test_a_full_device_for_the_answer_is_not_taken_for_success(cupel_as, form, words):
    with open("/dev/full", "wb") as full:
        child = cupel_as.popen(["run", *form, "-c", CODE], stdout=full, text=True)
        _, said = child.communicate(timeout=30)
    assert child.returncode not in (0, -9, -11), "an answer that nobody got"
    assert said.strip() and words in said, said
