"""Other file systems mounted below /usr: runs work, and what was mounted stays hidden,
unless it is one of the folders that packages fill. Each case has a mount namespace of its own."""
import json
import os
import shlex

import pytest

import engine
import host
import sessions

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root mounts over /usr")
SECRET = "secret-" + "51e0c2"
LOOK = """
import json, os, sys
own = [line.split() for line in open("/proc/self/mountinfo")]
def can_write(path):
    try:
        os.close(os.open(path, os.O_WRONLY))
        return True
    except OSError:
        return False
print(json.dumps({
    "mounts": [[row[4], row[5]] for row in own if row[4].startswith("/usr")],
    "local": os.listdir("/usr/local"),
    "seen": [path for path in sys.argv[1:] if os.path.lexists(path)],
    "full": [path for path in sys.argv[1:] if os.path.isdir(path) and os.listdir(path)],
    "writable": [path for path in ("/usr/bin/env", "/usr/lib/os-release") if can_write(path)],
    "python": os.path.realpath(sys.executable).startswith("/usr/bin/python3"),
    "driver": os.listdir("/usr/lib/cupel") != [],
}))
"""
HEADERS = "/usr/include/linux"


class Mounted(host.Cupel):
    """cupel behind a script that mounts, then becomes the user."""

    def __init__(self, cupel, place, commands):
        self.__dict__.update(cupel.__dict__)
        user = "setpriv --reuid {0} --regid {0} --clear-groups ".format(host.ORDINARY) \
            if cupel.switch else ""
        script = place.fresh("wrap", 0o755) / "cupel"
        script.write_text("#!/bin/sh\nset -e\n[ \"$in_ns\" ] || in_ns=1 exec unshare -m \"$0\" \"$@\"\n"
                          f"{commands}\nexec {user}{shlex.quote(cupel.program)} \"$@\"\n")
        script.chmod(0o755)
        self.program = str(script)

    def identity(self):
        return {}


@pytest.fixture
def secret(place):
    """A folder as somebody's project: everybody on the host may read it."""
    folder = place.fresh("project", 0o755)
    (folder / "env").write_text(SECRET)
    return folder


def look(cupel, *paths):
    result = cupel.run_json(LOOK, args=paths, cli=["--cold"])
    assert result["status"] == "ok", (result["stderr"], result["error"])
    seen = json.loads(result.stdout)
    assert seen["python"] and seen["driver"] and not seen["local"] and not seen["writable"], seen
    for path, flags in dict(seen["mounts"]).items():  # the last one covers those before
        assert {"ro", "nosuid", "nodev"} <= set(flags.split(",")), (path, flags)
    return result, seen


# Commands, then what must not be seen in the box, what must be an empty folder there, and
# whether files of the host are shared.
CASES = {
    "a tmpfs in /usr/local": ("mount -t tmpfs none /usr/local/games", [], [], False),
    "a /usr/local of its own": ("mount -t tmpfs none /usr/local; touch /usr/local/x", [], [], False),
    "a project": ("mount --bind $secret /usr/src", ["/usr/src/env"], ["/usr/src"], False),
    "secrets beside packages": ("mount --bind $secret /usr/share/man", ["/usr/share/man/env"],
                                ["/usr/share/man"], False),
    "single files": ("mount --bind $secret/env /usr/bin/yes; "
                     "mount --bind $secret/env /usr/lib/os-release",
                     ["/usr/bin/yes", "/usr/lib/os-release"], [], True),
    "nested": ("mount -t tmpfs none /usr/src; mkdir /usr/src/a; "
               "mount --bind $secret /usr/src/a", ["/usr/src/a"], ["/usr/src"], False),
    "read-only": ("mount -t tmpfs -o ro,nosuid,nodev,noexec none /usr/src", [], ["/usr/src"], False),
    "twice": ("mount -t tmpfs none /usr/src; mount --bind $secret /usr/src",
              ["/usr/src/env"], ["/usr/src"], False),
    "many": (f"for f in $(ls {HEADERS}/*.h | head -100); do mount --bind $secret/env $f; done",
             [f"{HEADERS}/acct.h"], [], True),
    "/usr/lib itself": ("mount --bind /usr/lib /usr/lib", [], [], False),
    "/usr itself": ("mount --bind /usr /usr", [], [], False),
    "/usr itself and one in it": ("mount --bind /usr /usr; mount --bind $secret /usr/src",
                                  ["/usr/src/env"], ["/usr/src"], False),
    "/usr/lib itself and one in it": ("mount --bind /usr/lib /usr/lib; "
                                      "mount --bind $secret /usr/lib/python3.11/test",
                                      ["/usr/lib/python3.11/test/env"], [], True),
}


@pytest.mark.sample(short=4)
@pytest.mark.parametrize("case", CASES)
def test_a_run_works_with_something_mounted_below_usr(cupel_as, place, secret, case):
    commands, unseen, empty, shared = CASES[case]
    if "/usr/lib/python3.11/test" in commands and not os.path.isdir("/usr/lib/python3.11/test"):
        commands = commands.replace("/usr/lib/python3.11/test", "/usr/lib/python3/dist-packages/bs4")
        unseen = ["/usr/lib/python3/dist-packages/bs4/env"]
    mounted = Mounted(cupel_as, place, f"secret={secret}; {commands}")
    result, seen = look(mounted, *unseen, *empty)
    assert not set(seen["seen"]) & set(unseen) and not seen["full"], seen
    assert set(empty) <= set(seen["seen"]), seen
    assert ("private_files" in result["isolation"]["missing"]) == shared, result["isolation"]


def test_a_mount_on_a_folder_that_packages_fill_is_part_of_the_image(cupel_as, place, secret):
    odd = r"/usr/games/a:b,c\\d e"
    mounted = Mounted(cupel_as, place, "mount -t tmpfs none /usr/games; "
                      f"mkdir '{odd}' /usr/games/x; echo 5 >'{odd}/f'; echo 6 >/usr/games/g; "
                      f"ln -s g /usr/games/l; mount --bind {secret} /usr/games/x")
    code = f"print(open({odd!r} + '/f').read(), open('/usr/games/l').read())\n" + LOOK
    result = mounted.run_json(code, args=["/usr/games/x/env"], cli=["--cold"])
    assert result["status"] == "ok", result["stderr"]
    assert result.stdout.split()[:2] == ["5", "6"] and '"seen": []' in result.stdout


LOCK = """
import fcntl, sys, time
try:
    lock = open(sys.argv[1], "rb")
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    print("locked", flush=True)
    time.sleep(float(sys.argv[2]))
except BlockingIOError:
    print("taken")
"""


@pytest.mark.parametrize("mount, path, other", [
    ("$secret /usr/src", "/usr/bin/env", "locked"),
    ("$secret/env /usr/bin/yes", "/usr/bin/env", "taken"),  # positive control of the row below
    ("$secret/env /usr/bin/yes", "/usr/lib/python3.11/colorsys.py", "locked"),
])
def test_private_files_says_whether_two_boxes_share_a_file(cupel, place, secret, mount, path, other):
    mounted = Mounted(cupel, place, f"secret={secret}; mount --bind {mount}")
    path = path if os.path.exists(path) else "/usr/lib/os-release"
    first = mounted.popen(["run", "--cold", "-c", LOCK, path, "30", "-t", "40"], text=True)
    assert first.stdout.readline() == "locked\n"
    second = mounted.run_json(LOCK, args=[path, "0"], cli=["--cold"])
    first.terminate()
    first.communicate(timeout=10)
    assert second.stdout.strip() == other
    if other == "taken":
        assert "private_files" in second["isolation"]["missing"]


def test_the_digest_of_the_image_follows_what_boxes_see(cupel_as, place, secret):
    def digest(commands):
        cupel = Mounted(cupel_as, place, f"secret={secret}; {commands}")
        return cupel.run_json("1", cli=["--cold"])["provenance"]["image_digest"]
    plain = digest("true")
    packages = "/usr/lib/python3/dist-packages"
    hidden = digest(f"mount --bind $secret {packages}/bs4")
    assert hidden != plain
    assert digest("mount -t tmpfs none /usr/local") == plain  # never seen, mounted or not
    (secret / "env").write_text("other")
    assert digest(f"mount --bind $secret {packages}/bs4") == hidden  # nobody sees its content
    assert digest("true") == plain


@pytest.mark.full
def test_an_engine_and_its_sessions_work_with_files_mounted_below_usr(cupel_as, place, secret):
    mounted = Mounted(cupel_as, place, f"mount --bind {secret}/env /usr/bin/yes; "
                      f"mount --bind {secret} /usr/src")
    with engine.Engine(mounted, place.fresh("sock") / "s") as served, served.client() as client:
        for language, code in (("python", "print(6 * 7)"), ("javascript", "console.log(6 * 7)"),
                               ("bash", "echo $((6 * 7))")):
            _, end = client.run({"language": language, "code": code})
            assert end["result"]["stdout"] == "42\n", end
            assert "private_files" in end["result"]["isolation"]["missing"]
        client.wait_until_warm()
        session = sessions.Session(client)
        assert session.value("x = 5; x") == "5"
        assert session.value("x = 6; x") == "6"
        assert session.ask("undo")["state"] in ("restored", "rolled_back", "kept")
        assert session.value("x") == "5"
        session.ask("end")


def test_the_doctor_names_what_is_hidden(cupel_as, place, secret):
    mounted = Mounted(cupel_as, place, f"mount --bind {secret} /usr/src; "
                      f"mount --bind {secret}/env /usr/bin/yes")
    done = mounted.run(["doctor", "--json"])
    rows = {row["name"]: row for row in json.loads(done.stdout)["checks"]}
    assert rows["mounts"]["verdict"] == "weak"
    assert "/usr/src" in rows["mounts"]["detail"] and "/usr/bin/yes" in rows["mounts"]["detail"]
    assert rows["overlay"]["verdict"] == "ok" and rows["a run"]["verdict"] == "ok"
    assert done.returncode == 0
