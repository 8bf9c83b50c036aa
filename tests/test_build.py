"""The build: a second make does nothing, a change of compiler, flags or sources builds again, a missing
tool is named with its command, and install puts files where uninstall takes them from. Every test
works in a copy of the tree that shares its objects by hard links; make only says what it would do."""
import os
import shutil
import subprocess

import pytest

import host
from flow.test_distributions import in_root

ENV = {name: value for name, value in os.environ.items() if "MAKE" not in name and name != "MFLAGS"}
FOLDERS = ("src include drivers policy prompts dev tests/unit tests/fuzz tests/sanitize api docs man "
           "completions bench").split()
BUILT = ("host static caller shared pic gen stamp cupel broker init tool shell zygote.so seed.so policyc unit"
         " libcupel.a libcupel.so libcupel.so.0")
pytestmark = [pytest.mark.skipif(host.BUILD != host.REPO / "build", reason="asks about the ordinary build"),
              pytest.mark.sample(short=6)]


@pytest.fixture
def tree(tmp_path):
    for name in FOLDERS:
        shutil.copytree(host.REPO / name, tmp_path / name, symlinks=True)
    for name in ("Makefile", "LICENSE", "README.md", "SECURITY.md"):
        shutil.copy2(host.REPO / name, tmp_path)
    (tmp_path / "build").mkdir()
    subprocess.run(["cp", "-al", *(host.BUILD / name for name in BUILT.split()), tmp_path / "build"], check=True)
    return tmp_path


def make(tree, *args, env=ENV):
    return subprocess.run(["make", *args], cwd=tree, env=env, capture_output=True, text=True, timeout=60)


def would(tree, *args):
    """The commands that make would run."""
    done = make(tree, "-n", "V=1", *args)
    assert done.returncode == 0, done.stderr
    return [line for line in done.stdout.replace("\\\n", " ").splitlines() if " -o build/" in line]


def flags_of_the_build():
    """The build under test may be one with WERROR=1."""
    return ["WERROR=1"] if "-Werror" in (host.BUILD / "stamp/flags").read_text().split() else ["WERROR="]


def test_a_second_make_does_nothing(tree):
    assert would(tree, *flags_of_the_build(), "all", "build/unit") == []


@pytest.mark.parametrize("change", ["CC=clang", "CFLAGS=-O1", "LDFLAGS=-Wl,-O1", "SAN=undefined"])
def test_another_compiler_or_flag_builds_everything_again(tree, change):
    sources = sum(1 for line in would(tree, *flags_of_the_build(), change) if " -c -o build/host/" in line)
    assert sources > 100


@pytest.mark.parametrize("where, program", [("src/llm", "cupel"), ("src/box/broker", "broker"), ("tests/unit", "unit")])
def test_an_added_or_deleted_source_links_again(tree, where, program):
    def linked():
        lines = would(tree, *flags_of_the_build(), f"build/{program}")
        return [line for line in lines if f" -o build/{program} " in line]
    extra = tree / where / "added.c"
    extra.write_text("/* One more. */\n")
    assert "added.o" in linked()[0]
    extra.unlink()
    assert linked() == []
    source = sorted((tree / where).glob("*.c"))[0]
    source.unlink()
    assert len(linked()) == 1 and f"{where}/{source.stem}.o" not in linked()[0]


def test_warnings_are_errors_only_where_that_is_asked_for(tree):
    for werror, expected in (("", False), ("1", True)):
        lines = would(tree, "-B", f"WERROR={werror}")
        assert lines and all(("-Werror " in line) == expected for line in lines if " -c " in line)


def test_make_names_a_missing_compiler_and_keeps_no_stamp(tree):
    done = make(tree, "CC=no-such-cc", "STATIC_CC=no-such-cc", "B=build/none")
    assert done.returncode != 0 and "cannot build, these are missing: no-such-cc\n" in done.stderr
    assert not (tree / "build/none/stamp/flags").exists()


@pytest.mark.skipif(os.getuid() != 0, reason="only root has a root of its own")
def test_make_names_the_command_that_installs_a_missing_header(place):
    prepare = "chroot root dpkg --force-depends --remove libseccomp-dev >/dev/null"
    command = f"cd {host.REPO} && make B=/tmp/none 2>&1 || true"
    done = in_root(place, prepare, command)
    assert "these are missing: <seccomp.h>" in done.stdout, done.stdout + done.stderr
    assert "run: sudo apt-get install libseccomp-dev\n" in done.stdout and "Unpacking" not in done.stdout


@pytest.mark.skipif(os.getuid() != 0, reason="only root has a root of its own")
@pytest.mark.parametrize("target, missing", [("run", False), ("test", True)])
def test_a_target_asks_only_for_its_own_packages(place, target, missing):
    prepare = "chroot root dpkg --force-depends --remove stress-ng clang >/dev/null"
    done = in_root(place, prepare, f"{host.REPO}/dev/bootstrap --name {target} 2>&1 || true")
    assert ("install stress-ng\n" in done.stdout) == missing and "clang" not in done.stdout, done.stdout + done.stderr


def files_below(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


def test_install_and_uninstall_are_equal_and_touch_no_other_file(tree):
    into = tree / "into"
    kept = into / "usr/share/doc/cupel/own.txt"
    kept.parent.mkdir(parents=True)
    kept.write_text("a file of the user\n")
    done = make(tree, "install", f"DESTDIR={into}", "PREFIX=/usr", *flags_of_the_build())
    assert done.returncode == 0, done.stderr
    found = files_below(into / "usr")
    assert {"bin/cupel", "lib/libcupel.so", "lib/libcupel.a", "include/cupel.h", "lib/pkgconfig/cupel.pc",
            "share/man/man1/cupel.1", "share/cupel/seccomp.json", "share/doc/cupel/docs/spec.md",
            "share/doc/cupel/docs/decisions/README.md"} <= found
    assert {f"share/cupel/{path.relative_to(tree)}" for path in (tree / "api").iterdir()} <= found
    assert "prefix=/usr\n" in (into / "usr/lib/pkgconfig/cupel.pc").read_text()
    for name in ("system", "user"):
        assert "ExecStart=/usr/bin/cupel serve" in (into / f"usr/lib/systemd/{name}/cupel.service").read_text()
    assert not [name for name in found if os.access(into / "usr" / name, os.X_OK) and "/lib" not in name
                and not name.startswith(("bin/", "lib/"))]
    said = subprocess.run([into / "usr/bin/cupel", "--version"], capture_output=True, text=True)
    assert said.returncode == 0 and "cupel" in said.stdout
    done = make(tree, "uninstall", f"DESTDIR={into}", "PREFIX=/usr")
    assert done.returncode == 0 and files_below(into) == {"usr/share/doc/cupel/own.txt"}
    kept.unlink()
    make(tree, "uninstall", f"DESTDIR={into}", "PREFIX=/usr")
    assert not list(into.rglob("*cupel*"))


@pytest.mark.parametrize("change", ["edited", "not built"])
def test_install_never_builds(tree, change):
    """`sudo make install` must leave no file of root in build/."""
    if change == "edited":
        source = tree / "src/base/buf.c"
        source.write_text(source.read_text() + "\n")
    else:
        (tree / "build/cupel").unlink()
    before = {path: path.stat().st_mtime_ns for path in (tree / "build").rglob("*")}
    done = make(tree, "install", f"DESTDIR={tree}/into")
    assert done.returncode != 0 and "run make first" in done.stderr and not (tree / "into").exists()
    assert before == {path: path.stat().st_mtime_ns for path in (tree / "build").rglob("*")}


@pytest.mark.parametrize("destdir, calls", [("", 1), ("staged", 0)])
@pytest.mark.skipif(os.getuid() != 0, reason="only root runs ldconfig")
def test_ldconfig_runs_only_for_a_real_installation(tree, destdir, calls):
    tool = tree / "tool/ldconfig"
    tool.parent.mkdir()
    tool.write_text(f"#!/bin/sh\necho ran >>{tree}/ran\n")
    tool.chmod(0o755)
    env = {**ENV, "PATH": f"{tool.parent}:{ENV['PATH']}"}
    where = [f"DESTDIR={tree}/{destdir}" if destdir else "DESTDIR=", f"PREFIX={tree}/prefix"]
    assert make(tree, "install", *where, env=env).returncode == 0
    log = tree / "ran"
    assert (log.read_text().count("ran") if log.exists() else 0) == calls
