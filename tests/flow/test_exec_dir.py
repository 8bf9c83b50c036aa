"""`cupel exec --dir`: a command, or a shell at a terminal, on a folder of the caller's. The folder belongs to an
ordinary user; cupel runs as that user and as root."""
import os
import shutil
import signal
import subprocess
import time

import pytest

import host
from terminal import Terminal

SECRET = "hunter2-" + "9c" * 8
TREE = {"main.py": "print('hello')\n", "notes.txt": "old\n", "data/a.csv": "1,2\n", ".env": SECRET,
        ".git/config": "[core]\n"}
EDIT = "echo more >> notes.txt; rm data/a.csv; mkdir made; echo x > made/f"


@pytest.fixture
def project(place):
    owner = host.ORDINARY if os.getuid() == 0 else os.getuid()
    root = place.fresh("project", 0o755)
    for name, text in TREE.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for base, folders, files in os.walk(root):
        for name in [base, *(os.path.join(base, one) for one in folders + files)]:
            os.chown(name, owner, owner)
    return root


def contents(root):
    return {os.path.relpath(os.path.join(base, name), root): open(os.path.join(base, name)).read()
            for base, _, files in os.walk(root) for name in files}


def run(cupel, project, *args, **options):
    return cupel.run(["exec", "--dir", project, *args], **options)


def changed(cupel, project):
    done = cupel.run(["diff", "--stat"], cwd=project)
    return [line.split(" |")[0] for line in done.stdout.splitlines()] if done.returncode == 0 else None


def has_nothing_left():
    return host.wait_until(lambda: not host.ours(), 10)


@pytest.mark.both
def test_a_commands_changes_are_kept_for_diff_and_apply(cupel_as, project):
    done = run(cupel_as, project, "sh", "-c", EDIT + "; cat; pwd; exit 7", input="typed\n")
    assert (done.returncode, done.stdout) == (7, "typed\n/workspace\n"), done.stderr
    assert "changes: 4, kept as r_" in done.stderr and contents(project) == TREE
    assert changed(cupel_as, project) == ["data/a.csv", "made", "made/f", "notes.txt"]
    assert cupel_as.run(["apply"], cwd=project).returncode == 0
    assert contents(project) == {name: text for name, text in TREE.items() if name != "data/a.csv"} | {
        "notes.txt": "old\nmore\n", "made/f": "x\n"}
    owner = project.stat().st_uid
    assert (project / "made/f").stat().st_uid == owner
    assert has_nothing_left()


@pytest.mark.both
def test_with_write_the_command_changes_the_folder_itself(cupel_as, project):
    code = EDIT + "; cat .env; echo y > .git/config"
    done = run(cupel_as, project, "--write", "sh", "-c", code)
    assert done.returncode != 0 and SECRET not in done.stdout and "kept as" not in done.stderr
    assert contents(project) == {name: text for name, text in TREE.items() if name != "data/a.csv"} | {
        "notes.txt": "old\nmore\n", "made/f": "x\n"}
    assert (project / "made/f").stat().st_uid == project.stat().st_uid


@pytest.mark.both
def test_a_shell_at_a_terminal_works_on_the_folder(cupel_as, project):
    with Terminal(cupel_as, "exec", "--dir", project, "-e", "PS1=box> ", "bash", "--norc", "--noprofile", "-i") as box:
        box.expect("box> ")
        box.type("ls; cat .env .git/config\n")
        assert "data\tmain.py  notes.txt" in box.expect("[core]").replace("  main.py", "\tmain.py")
        box.type("sleep 1000\n")
        time.sleep(0.3)
        box.type("\x03")
        box.expect("^C")
        box.type("echo typed >> notes.txt; exit 5\n")
        code, said = box.rest()
        assert code == 5 and "changes: 1, kept as r_" in said and SECRET not in said and box.is_restored()
    assert contents(project) == TREE and changed(cupel_as, project) == ["notes.txt"]


def test_nothing_is_told_where_nothing_changed(cupel, project):
    done = run(cupel, project, "grep", "-r", "old", ".")
    assert (done.returncode, done.stdout, done.stderr) == (0, "./notes.txt:old\n", "")


@pytest.mark.parametrize("how", ["time", "interrupts", "hangup"])
def test_what_was_changed_before_a_limit_or_an_interrupt_is_kept(cupel_as, project, how):
    limit = ["-t", "1"] if how == "time" else []
    code = f"{EDIT}; trap '' INT; echo go; while :; do sleep 0.1; done"
    with cupel_as.popen(["exec", "--dir", project, *limit, "sh", "-c", code]) as child:
        assert child.stdout.readline() == b"go\n"
        for number in {"time": [], "interrupts": [signal.SIGINT, signal.SIGINT], "hangup": [signal.SIGHUP]}[how]:
            child.send_signal(number)
            time.sleep(0.3)
        said = child.communicate(timeout=60)[1].decode()
        assert child.returncode == {"time": 124, "interrupts": 130, "hangup": 129}[how] and "changes: 4" in said
    assert len(changed(cupel_as, project)) == 4 and contents(project) == TREE


def test_a_command_on_a_folder_has_no_time_limit_unless_one_is_named(cupel, project):
    assert int(run(cupel, project, "sh", "-c", "ulimit -t").stdout) > 10 ** 7


@pytest.mark.parametrize("args, said", [
    (["--write", "ls"], "'--write' needs a folder"),
    (["--dir", "/proc", "ls"], "is not for code"),
    (["--dir", "/etc", "--write", "ls"], "is not for code"),
    (["--dir", "/no/such", "ls"], "No such file"),
], ids=["alone", "proc", "etc", "absent"])
def test_folders_that_no_command_may_have_are_refused(cupel, args, said):
    done = cupel.run(["exec", *args])
    assert done.returncode == 2 and said in done.stderr and done.stdout == "", done.stderr


@pytest.mark.both
@pytest.mark.sample(short=6, full=1)
@pytest.mark.parametrize("after_ms", [1, 20, 60, 120, 200, 300, 450, 600, 800, 1100])
def test_a_kill_at_any_moment_leaves_folder_and_sets_whole(cupel_as, project, after_ms):
    code = "for i in 1 2 3 4 5 6 7 8; do echo $i > new$i; sleep 0.1; done"
    child = cupel_as.popen(["exec", "--dir", project, "sh", "-c", code])
    time.sleep(after_ms / 1000)
    child.kill()
    child.communicate()
    assert has_nothing_left() and contents(project) == TREE
    assert changed(cupel_as, project) in (None, [f"new{i}" for i in range(1, 9)])
    assert run(cupel_as, project, "sh", "-c", "echo x > x").returncode == 0
    assert changed(cupel_as, project) == ["x"]
    left = [path.name for path in (cupel_as.home / "state/changes").iterdir() if path.name.startswith(".new")]
    assert left == []


@pytest.mark.both
def test_two_commands_on_one_folder_have_layers_of_their_own(cupel_as, project):
    code = "cat notes.txt; echo {0} >> notes.txt; echo {0} > only{0}; sleep 0.5; ls"
    children = [cupel_as.popen(["exec", "--dir", project, "sh", "-c", code.format(i)]) for i in (1, 2)]
    names = []
    for i, child in zip((1, 2), children):
        said, told = child.communicate(timeout=60)
        assert said.decode() == f"old\ndata\nmain.py\nnotes.txt\nonly{i}\n"
        names.append(told.decode().split("kept as ")[1].split(";")[0])
    assert cupel_as.run(["apply", names[0]], cwd=project).returncode == 0
    done = cupel_as.run(["apply", names[1]], cwd=project)
    assert done.returncode == 2 and "conflict notes.txt" in done.stderr
    assert (project / "notes.txt").read_text() == "old\n1\n" and not (project / "only2").exists()


def test_a_folder_that_is_moved_or_removed_meanwhile_is_still_the_one_of_the_command(cupel_as, project):
    child = cupel_as.popen(["exec", "--dir", project, "sh", "-c", "echo go; sleep 1; cat notes.txt; echo x > x"])
    assert child.stdout.readline() == b"go\n"
    moved = project.with_name(project.name + "-moved")
    project.rename(moved)
    project.mkdir(0o755)
    (project / "notes.txt").write_text("another\n")
    assert child.communicate(timeout=60)[0] == b"old\n" and child.returncode == 0
    assert changed(cupel_as, project) is None and changed(cupel_as, moved) == ["x"]
    child = cupel_as.popen(["exec", "--dir", moved, "sh", "-c", "echo go; sleep 1; echo y > y; cat notes.txt"])
    assert child.stdout.readline() == b"go\n"
    shutil.rmtree(moved)
    child.communicate(timeout=60)
    assert child.returncode in (0, 1) and not moved.exists() and has_nothing_left()


@pytest.mark.both
def test_special_files_and_hostile_names_of_the_folder_stop_nothing(cupel_as, project):
    os.mkfifo(project / "pipe", 0o644)
    (project / "out").symlink_to("/etc/passwd")
    (project / "loop").symlink_to("loop")
    for name in (b"a\nb\x1b[31m", b"\xff\xfe", b"-rf", b"x" * 255):
        open(os.fsencode(project) + b"/" + name, "w").close()
        os.chown(os.fsencode(project) + b"/" + name, project.stat().st_uid, project.stat().st_gid)
    code = "python3 -c \"import os; print(len(os.listdir(b'.')))\"; echo x > \"$(printf 'c\\033[1m\\nd')\"; rm -- -rf"
    done = run(cupel_as, project, "sh", "-c", code)
    assert done.returncode == 0 and done.stdout == "12\n", (done.stdout, done.stderr)
    stat = cupel_as.run(["diff", "--stat"], cwd=project).stdout
    assert "\x1b" not in stat and "-rf" in stat and r"c\033[1m\012d" in stat
    assert cupel_as.run(["apply"], cwd=project).returncode == 0
    assert os.path.exists(os.fsencode(project) + b"/c\x1b[1m\nd") and not (project / "-rf").exists()


def small_disk(path, size="4m"):
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=777", "none", path], check=True)


def test_a_full_disk_of_the_state_folder_is_told_and_leaves_no_half_set(cupels, project, place):
    if "root" not in cupels:
        pytest.skip("only root can mount a small disk")
    state = place.fresh("state", 0o700)
    small_disk(state)
    try:
        shutil.chown(state, 2147418112, 2147418112)
        code = "head -c 8000000 /dev/urandom > big"
        done = run(cupels["root"], project, "sh", "-c", code, env={"CUPEL_STATE": str(state)})
        assert done.returncode == 125 and "its changes are lost" in done.stderr, done.stderr
        assert "No space left" in done.stderr
        assert list((state / "changes").iterdir()) == []
        done = run(cupels["root"], project, "sh", "-c", "echo x > x", env={"CUPEL_STATE": str(state)})
        assert done.returncode == 0 and "changes: 1" in done.stderr
    finally:
        subprocess.run(["umount", state], check=True)


def test_a_mount_inside_the_folder_is_refused(cupels, project):
    if "root" not in cupels:
        pytest.skip("only root can mount")
    small_disk(project / "data")
    try:
        done = run(cupels["root"], project, "ls")
        assert done.returncode == 2 and "another file system is mounted" in done.stderr
        (project / "data/in").mkdir()  # a folder that is on another mount itself
        (project / "data/in/f").write_text("here\n")
        done = run(cupels["root"], project / "data/in", "sh", "-c", "cat f; echo x > f")
        assert (done.returncode, done.stdout) == (0, "here\n"), done.stderr
        assert changed(cupels["root"], project / "data/in") == ["f"]
    finally:
        subprocess.run(["umount", project / "data"], check=True)
