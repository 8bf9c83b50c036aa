"""`cupel repl --dir`: a session on a folder of the caller's. The folder belongs to an ordinary user; cupel runs as that
user and as root."""
import os
import signal
import time

import pytest

import host
from terminal import Terminal

SECRET = "hunter2-" + "9c" * 8
TREE = {"notes.txt": "old\n", "data/a.csv": "1,2\n", ".env": SECRET, ".git/config": "[core]\n"}


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


def repl(cupel, project, *lines, args=(), **options):
    return cupel.run(["repl", "--dir", project, *args], input="\n".join(lines) + "\n", **options)


def changed(cupel, project):
    done = cupel.run(["diff", "--stat"], cwd=project)
    return [line.split(" |")[0] for line in done.stdout.splitlines()] if done.returncode == 0 else None


@pytest.mark.both
def test_cells_see_the_project_and_their_changes_are_kept(cupel_as, project):
    done = repl(cupel_as, project, "import os", "print(open('notes.txt').read(), open('.env').read(), os.getcwd())",
                "open('new', 'w').write('x')", "os.remove('data/a.csv')",
                "try: open('.git/config', 'w')", "except OSError as e: print(e.errno)", "",
                "print(sorted(os.listdir()))")
    assert done.returncode == 0 and SECRET not in done.stdout, (done.stdout, done.stderr)
    assert done.stdout.startswith("old\n  /workspace\n") and "30\n" in done.stdout
    assert "['.env', '.git', 'data', 'new', 'notes.txt']" in done.stdout
    assert "changes: 2, kept as r_" in done.stderr and contents(project) == TREE
    assert changed(cupel_as, project) == ["data/a.csv", "new"]
    assert cupel_as.run(["apply"], cwd=project).returncode == 0
    assert (project / "new").read_text() == "x" and not (project / "data/a.csv").exists()
    assert (project / "new").stat().st_uid == project.stat().st_uid


@pytest.mark.both
def test_undo_is_of_names_and_leaves_every_file(cupel_as, project):
    done = repl(cupel_as, project, "x = 1", "x = 2; open('notes.txt', 'a').write('more\\n'); None", ":undo",
                "print(x, open('notes.txt').read())", ":checkpoint here", "x = 3; open('late', 'w').close()",
                ":undo here", "import os; print(x, os.path.exists('late'), os.path.exists('data/a.csv'))")
    assert done.stdout.replace("restored\n", "") == "1 old\nmore\n\n1 True True\n", (done.stdout, done.stderr)
    assert contents(project) == TREE and changed(cupel_as, project) == ["late", "notes.txt"]


@pytest.mark.both
def test_with_write_the_cells_change_the_folder_itself(cupel_as, project):
    done = repl(cupel_as, project, "x = 1", "open('new', 'w').write('x'); print(open('.env').read())", "x = 2", ":undo",
                args=["--write"])
    assert SECRET not in done.stdout and "kept as" not in done.stderr
    assert contents(project) == TREE | {"new": "x"}


@pytest.mark.parametrize("language, cell", [("bash", "echo x > new"),
                                            ("javascript", "require('fs').writeFileSync('new', 'x')")])
@pytest.mark.sample(short=1, full=1)
def test_other_languages_have_the_folder_too(cupel, project, language, cell):
    done = repl(cupel, project, cell, args=["-l", language])
    assert "changes: 1" in done.stderr, done.stderr
    assert changed(cupel, project) == ["new"]


def test_an_interpreter_that_dies_costs_no_change(cupel_as, project):
    done = repl(cupel_as, project, "open('one', 'w').close()", "import os; os._exit(3)", "open('two', 'w').close()",
                "os.kill(os.getppid(), 9)", "import os, signal; os.kill(-1, signal.SIGKILL)")
    assert "changes: 2, kept as" in done.stderr, done.stderr
    assert changed(cupel_as, project) == ["one", "two"] and contents(project) == TREE


def test_full_memory_and_a_full_layer_are_told_and_cost_no_change(cupel, project):
    done = repl(cupel, project, "open('one', 'w').write('x'); None", "x = bytearray(10 ** 10)",
                "open('big', 'wb').write(bytes(10 ** 9))", args=["-m", "256M", "--disk", "20M"])
    assert "one" in changed(cupel, project) and contents(project) == TREE, done.stderr


@pytest.mark.parametrize("line, said", [
    (":put notes.txt", "takes no files"), (":get notes.txt", "gives no files"), (":files", "lists no files"),
    (":fork", "cannot be forked"), (":reset", "has one session")], ids=["put", "get", "files", "fork", "reset"])
def test_what_a_session_on_a_folder_cannot_do_is_refused(cupel, project, line, said):
    done = repl(cupel, project, "x = 1", line, "print(x)", cwd=project)
    assert said in done.stderr and done.stdout == "1\n", done.stderr


@pytest.mark.parametrize("args, said", [
    (["-f", "notes.txt"], "cannot be combined"), (["--tools", "x"], "cannot be combined"),
    (["--tools-dir", "/tmp", "--tools", "x"], "cannot be combined"), (["s_" + "0" * 24], "existing session"),
], ids=["file", "tools", "tools-dir", "session"])
def test_options_that_do_not_go_with_a_folder_are_refused(cupel, project, args, said):
    done = cupel.run(["repl", "--dir", project, *args], input="", cwd=project)
    assert done.returncode == 2 and said in done.stderr, done.stderr


@pytest.mark.parametrize("args, said", [
    (["--dir", "/proc"], "is not for code"), (["--dir", "/no/such"], "No such file"),
    (["--dir", "/etc", "--write"], "is not for code"),
], ids=["proc", "absent", "etc"])
def test_a_folder_that_no_code_may_have_is_refused_with_the_reason(cupel, args, said):
    done = cupel.run(["repl", *args], input="1\n")
    assert done.returncode != 0 and said in done.stderr and done.stdout == "", done.stderr


@pytest.mark.both
@pytest.mark.parametrize("victim", ["prompt", "engine"])
def test_a_kill_leaves_the_folder_as_it_was_and_no_process(cupel_as, project, victim):
    with Terminal(cupel_as, "repl", "--dir", project) as box:
        box.expect("changes no file")
        box.expect(">>> ")
        box.type("open('new', 'w').write('x')\r")
        box.expect(">>> ")
        if victim == "prompt":
            box.child.kill()
            box.child.wait()
        else:
            lines = {row["pid"]: open(f"/proc/{row['pid']}/cmdline", "rb").read()
                     for row in host.descendants(box.child.pid)}
            os.kill(min(pid for pid, line in lines.items() if b"serve" in line), signal.SIGKILL)
            box.child.send_signal(signal.SIGTERM)
            box.child.wait(timeout=60)
    assert host.wait_until(lambda: not host.ours(), 15) and contents(project) == TREE
    left = [path.name for path in (cupel_as.home / "state/changes").iterdir() if path.name.startswith(".new")]
    assert victim == "engine" or left == []


@pytest.mark.both
def test_two_prompts_on_one_folder_have_layers_of_their_own(cupel_as, project):
    first = cupel_as.popen(["repl", "--dir", project], stdin=-1)
    second = cupel_as.popen(["repl", "--dir", project], stdin=-1)
    told = []
    for i, child in ((1, first), (2, second)):
        child.stdin.write(f"open('notes.txt', 'a').write('{i}\\n'); print(open('notes.txt').read())\n".encode())
        child.stdin.flush()
    time.sleep(0.5)
    for i, child in ((1, first), (2, second)):
        out, err = child.communicate(timeout=60)
        assert out == f"old\n{i}\n\n".encode(), err
        told.append(err.decode().split("kept as ")[1].split(";")[0])
    assert cupel_as.run(["apply", told[0]], cwd=project).returncode == 0
    assert "conflict notes.txt" in cupel_as.run(["apply", told[1]], cwd=project).stderr


@pytest.mark.full
def test_a_folder_of_100_000_files_costs_the_session_no_copy(cupel, place):
    many = place.fresh("many")
    for i in range(100):
        (many / f"d{i}").mkdir()
        for k in range(1000):
            open(many / f"d{i}/f{k}", "w").close()
    done = cupel.run(["repl", "--dir", many], input="x = 1\nopen('d5/f5', 'w').write('x')\nx = 2\n:undo\nprint(x)\n",
                     timeout=120)
    assert done.stdout.endswith("1\n") and "changes: 1" in done.stderr, (done.stdout, done.stderr)
