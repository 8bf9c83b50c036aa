"""`-f DIR` and `--venv DIR` of `cupel run` and `cupel exec`: folders of the caller that a box shows and never
changes."""
import json
import os
import shutil
import subprocess
import time

import pytest

import host

SECRET = "hunter2-" + "9c" * 8
PYTHON = "/usr/bin/python3"


def owner():
    return host.ORDINARY if os.getuid() == 0 else os.getuid()


def own(root):
    subprocess.run(["chown", "-R", "-h", f"{owner()}:{owner()}", root], check=True)


@pytest.fixture
def data(place):
    root = place.fresh("data", 0o755)
    for name, text in {"a.csv": "1,2\n", "deep/b.csv": "3,4\n", ".env": SECRET, "keys/x.pem": SECRET,
                       ".cupelignore": "*.secret\n", "y.secret": SECRET}.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    own(root)
    return root


@pytest.fixture
def venv(place):
    root = place.fresh("venv", 0o755) / "ve"
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", root], check=True)
    package = next((root / "lib").iterdir()) / "site-packages/ours"
    package.mkdir()
    (package / "__init__.py").write_text("X = 'of the environment'\n")
    (root / "bin/tool").write_text(f"#!{root}/bin/python\nimport ours\nprint('tool', ours.X)\n")
    (root / "bin/tool").chmod(0o755)
    own(root.parent)
    return root


def refused(cupel, *args):
    done = cupel.run(args)
    assert done.returncode == 2 and done.stdout == "", (done.stdout, done.stderr)
    assert host.wait_until(lambda: not host.ours(), 5)
    return done.stderr


# Folders.

@pytest.mark.both
@pytest.mark.parametrize("command", [["run", "-l", "bash", "-c"], ["exec", "sh", "-c"]], ids=["run", "exec"])
def test_a_folder_is_shown_read_only_without_its_secrets(cupel_as, data, command):
    code = f"cat {data.name}/a.csv {data.name}/deep/b.csv; grep -r hunter2 .; pwd; " \
           f"for f in a.csv new keys/new; do (echo x > {data.name}/$f) 2>/dev/null && echo WROTE; done; " \
           f"rm -rf {data.name}; ls"
    done = cupel_as.run([command[0], "-f", data, *command[1:], code])
    assert done.stdout == f"1,2\n3,4\n/workspace\n{data.name}\n", (done.stdout, done.stderr)
    assert "WROTE" not in done.stdout and (data / "a.csv").read_text() == "1,2\n"
    outside = subprocess.run(["grep", "-r", "hunter2", data], capture_output=True, text=True)
    assert outside.stdout.count("hunter2") == 3  # the same probe finds them outside


@pytest.mark.both
def test_folders_and_files_have_the_places_that_are_named_and_are_no_artifacts(cupel_as, data, folder):
    (folder / "one").write_text("single\n")
    code = "cat in/x/a.csv two/deep/b.csv sub/one; echo out > in/out; mkdir m; echo o > m/p"
    done = cupel_as.run(["run", "--json", "-f", f"{data}/:in/x", "-f", f"{data}:two:ro", "-f", f"{folder}/one:sub/",
                         "-l", "bash", "-c", code])
    answer = json.loads(done.stdout)
    assert answer["stdout"] == "1,2\n3,4\nsingle\n", answer
    assert sorted(one["path"] for one in answer["artifacts"]) == ["in/out", "m/p"] and answer["skipped"] == []


def test_a_folder_of_100_000_files_costs_no_copy(cupel, place):
    few, many = place.fresh("few"), place.fresh("many")
    for i in range(100):
        (many / f"d{i}").mkdir()
        for k in range(1000):
            open(many / f"d{i}/f{k}", "w").close()
    done = cupel.run(["run", "--json", "-f", many, "-l", "bash", "-c", f"find {many.name} -type f | wc -l; echo x > x"],
                     timeout=120)
    answer = json.loads(done.stdout)
    assert answer["stdout"] == "100000\n" and [one["path"] for one in answer["artifacts"]] == ["x"]
    assert answer["skipped"] == []
    assert cupel.run(["run", "-f", few, "ls"]).returncode in (0, 1)


def test_a_thousand_files_fit_whatever_the_soft_limit_is(cupel, folder):
    args = []
    for i in range(1500):
        (folder / f"f{i}").write_text(str(i))
        args += ["-f", folder / f"f{i}"]
    done = cupel.run(["run", *args, "-l", "bash", "-c", "ls | wc -l; cat f1499"],
                     before=["prlimit", "--nofile=1024:8192"])
    assert done.stdout == "1500\n1499", done.stderr


@pytest.mark.parametrize("args, said", [
    (["-f", "{0}", "--record"], "and '--record' cannot be combined"),
    (["-f", "{0}", "--tools", "x"], "and '--tools' cannot be combined"),
    (["-f", "{0}", "--cache", "5"], "and '--cache' cannot be combined"),
    (["-f", "{0}:../x"], "path"), (["-f", "/proc"], "is not for code"), (["-f", "{state}"], "cupel's own state"),
    (["-f", "{0}"] * 9, "at most 8 folders"), (["-f", "{0}", "-f", "{0}"], "place files of /workspace"),
], ids=["record", "tools", "cache", "path", "proc", "state", "nine", "twice"])
def test_folders_that_cannot_be_shown_are_refused(cupel, data, args, said):
    cupel.run(["run", "1"])
    args = [one.format(data, state=cupel.home / "state") for one in args]
    done = cupel.run(["run", *args, "1"])
    assert done.returncode in (2, 125) and said in done.stderr and done.stdout == "", done.stderr


@pytest.mark.both
def test_links_fifos_and_names_of_a_shown_folder_harm_nothing(cupel_as, data, place):
    secret = place.fresh("neighbour", 0o755)
    (secret / "f").write_text(SECRET)
    os.mkfifo(data / "pipe", 0o644)
    (data / "out").symlink_to(secret)
    (data / "etc").symlink_to("/etc/shadow")
    (data / "a\nb\x1b[31m").write_text("x")
    own(data)
    code = f"cat {data.name}/out/f {data.name}/etc; ls {data.name} | wc -l; timeout 0.2 cat {data.name}/pipe; true"
    done = cupel_as.run(["exec", "-f", data, "sh", "-c", code])
    assert (done.returncode, done.stdout) == (0, "9\n"), (done.stdout, done.stderr)


def test_a_folder_replaced_during_the_run_stays_the_one_that_was_opened(cupel_as, data):
    child = cupel_as.popen(["exec", "-f", f"{data}:in", "sh", "-c", "echo go; sleep 1; cat in/a.csv"])
    assert child.stdout.readline() == b"go\n"
    data.rename(data.with_name("moved-" + data.name))
    data.mkdir()
    (data / "a.csv").write_text("another\n")
    assert child.communicate(timeout=60)[0] == b"1,2\n"


# Virtual environments.

@pytest.mark.both
def test_python_is_that_of_the_environment_at_its_own_path(cupel_as, venv):
    code = "import ours, subprocess, sys\nprint(ours.X, sys.prefix, sys.executable)\n" \
           "print(subprocess.check_output([sys.executable, '-c', 'import ours; print(ours.X)'], text=True))\n" \
           f"try: open('{venv}/new', 'w')\nexcept OSError as e: print(e.errno)"
    done = cupel_as.run(["run", "--venv", venv, code])
    assert done.stdout == f"of the environment {venv} {venv}/bin/python\nof the environment\n\n30\n", done.stderr
    done = cupel_as.run(["exec", "--venv", venv, "sh", "-c", "tool; which python; echo $VIRTUAL_ENV"])
    assert done.stdout == f"tool of the environment\n{venv}/bin/python\n{venv}\n", done.stderr
    done = cupel_as.run(["run", "--venv", venv, "-l", "bash", "-c", "tool"])
    assert done.stdout == "tool of the environment\n", done.stderr


@pytest.mark.both
def test_an_environment_and_a_project_go_together(cupel_as, venv):
    project = venv.parent
    (project / "test_it.py").write_text("import ours\nprint('tested', ours.X)\n")
    own(project)
    done = cupel_as.run(["run", "--dir", project, "--venv", venv, "--", "python", "test_it.py"])
    assert done.stdout == "tested of the environment\n", done.stderr
    done = cupel_as.run(["exec", "--dir", project, "--venv", venv, "sh", "-c", "python test_it.py; echo x > x; ls"])
    assert done.stdout == "tested of the environment\ntest_it.py\nve\nx\n", done.stderr
    assert not (project / "x").exists() and cupel_as.run(["diff", "--stat"], cwd=project).stdout == "x | +1 -0 | new\n"


@pytest.mark.both
@pytest.mark.parametrize("top", ["/opt", "/srv", "/fresh-top", "/home"])
@pytest.mark.sample(short=2, full=1)
def test_an_environment_elsewhere_on_the_host_is_found_and_its_neighbours_are_not(cupel_as, venv, top):
    if os.getuid() != 0:
        pytest.skip("only root can make folders there")
    made = f"{top}/cupel-tests-{os.getpid()}"
    os.makedirs(made)
    try:
        subprocess.run([PYTHON, "-m", "venv", "--without-pip", f"{made}/ve"], check=True)
        open(f"{made}/neighbour", "w").write(SECRET)
        subprocess.run(["chmod", "-R", "a+rX", made], check=True)
        done = cupel_as.run(["run", "--venv", f"{made}/ve", f"import os, sys; print(sys.prefix, os.listdir('{made}'))"])
        assert done.stdout == f"{made}/ve ['ve']\n", done.stderr
    finally:
        shutil.rmtree(made)
        if top == "/fresh-top":
            os.rmdir(top)


def test_a_missing_package_names_the_environment(cupel, venv):
    done = cupel.run(["run", "--venv", venv, "import polars"])
    assert f"'polars' is not in the virtual environment: '{venv}/bin/pip install polars'" in done.stderr


def link(path, target):
    path.unlink()
    path.symlink_to(target)


SPOILS = {
    "no-file": (lambda venv: (venv / "pyvenv.cfg").unlink(), "no readable file"),
    "large": (lambda venv: os.truncate(venv / "pyvenv.cfg", 1 << 30), "65536 at most"),
    "fifo": (lambda venv: ((venv / "pyvenv.cfg").unlink(), os.mkfifo(venv / "pyvenv.cfg")), "no readable file"),
    "link": (lambda venv: link(venv / "pyvenv.cfg", "/etc/shadow"), "no readable file"),
    "no-home": (lambda venv: (venv / "pyvenv.cfg").write_text("version = 3.11.2\n"), "names no 'home'"),
    "relative": (lambda venv: (venv / "pyvenv.cfg").write_text("home = ../bin\n"), "is no path"),
    "other": (lambda venv: (venv / "pyvenv.cfg").write_text("home = /opt/py/bin\x1b[3m\n"), "no Python of its home"),
    "bytes": (lambda venv: (venv / "pyvenv.cfg").write_bytes(b"home = /\xff\n"), "is no path"),
    "no-python": (lambda venv: (venv / "bin/python").unlink(), "no program 'bin/python'"),
    "out": (lambda venv: link(venv / "bin/python", "/bin/sh"), "leads to '/bin/sh'"),
    "up": (lambda venv: link(venv / "bin/python", "../../x"), "leads out"),
    "loop": (lambda venv: link(venv / "bin/python", "python"), "chain of links"),
    "bin": (lambda venv: (shutil.rmtree(venv / "bin"), (venv / "bin").symlink_to("/usr/bin")), "no program"),
}


@pytest.mark.parametrize("spoil", SPOILS)
def test_a_spoilt_environment_is_refused(cupel_as, venv, spoil):
    change, said = SPOILS[spoil]
    change(venv)
    own(venv.parent)
    told = refused(cupel_as, "run", "--venv", venv, "1")
    assert said in told and "\x1b" not in told, told


def test_an_environment_of_another_python_is_refused(cupel, venv):
    other = venv.parent / "python"
    other.mkdir()
    shutil.copy(PYTHON, other / "python3")
    (venv / "pyvenv.cfg").write_text(f"home = {other}\nversion = 3.12.1\n")
    (venv / "bin/python3").unlink()
    (venv / "bin/python3").symlink_to(other / "python3")
    own(venv.parent)
    told = refused(cupel, "exec", "--venv", venv, "python", "-c", "1")
    assert "Python 3.12 of" in told and "-m venv DIR" in told


@pytest.mark.parametrize("path", ["/", "/proc/self", "/etc", "/usr/lib", "/run", "/mnt", "/no/such", "{home}/state"])
def test_places_that_are_no_environments_are_refused(cupel, path):
    cupel.run(["run", "1"])
    assert "cupel:" in refused(cupel, "run", "--venv", path.format(home=cupel.home), "1")


def test_a_kill_leaves_nothing_of_a_shown_folder(cupel_as, data, venv):
    for after in (0.01, 0.1, 0.3, 0.6):
        child = cupel_as.popen(["exec", "-f", data, "--venv", venv, "sleep", "100"])
        time.sleep(after)
        child.kill()
        child.communicate()
        assert host.wait_until(lambda: not host.ours(), 10)
