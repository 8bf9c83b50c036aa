"""The release build has no switch for its controls: mutate() is the constant 0 in it, by the
commands that really build it, and every name of a mutation is gone."""
import os
import re
import shlex
import subprocess

import pytest

import host

REPO = host.REPO
HEADER = REPO / "src/box/wall/mutate.h"
NAMES = re.findall(r"^    X\((\w+)\)", HEADER.read_text(), re.M)
SOURCES = sorted(str(path.relative_to(REPO)) for path in REPO.glob("src/**/*.c")
                 if "mutate(" in path.read_text())
ENV = {name: value for name, value in os.environ.items() if "MAKE" not in name and name != "MFLAGS"}


@pytest.fixture(scope="module")
def commands():
    """What make would do for a build from nothing."""
    done = subprocess.run(["make", "-n", "V=1", "B=build/from-nothing", "build/from-nothing/cupel"],
                          cwd=REPO, env=ENV, capture_output=True, text=True, check=True)
    return done.stdout.replace("\\\n", " ").splitlines()


def compilations(commands, source):
    """The commands that compile a source: host's and static one, as there are."""
    found = [shlex.split(line) for line in commands if " -c -o " in line and line.endswith(source)]
    assert found, f"{source} is not compiled"
    return found


def preprocessed(command, text, *more):
    """The compiler's own view of a source, given as text, under its real flags."""
    at = command.index("-c")
    flags = [word for word in command[:at] if word not in ("-MMD", "-MP", "-fsyntax-only")]
    flags = [word.replace("build/from-nothing", str(host.BUILD)) for word in flags]
    done = subprocess.run([*flags, *more, "-E", "-P", "-x", "c", "-"], input=text, cwd=REPO,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_no_command_of_the_build_defines_a_mutation(commands):
    assert len([line for line in commands if " -c -o " in line]) > 40
    assert not [line for line in commands if "MUTAT" in line.upper()]


def test_nothing_but_the_header_knows_the_define():
    found = subprocess.run(["grep", "-rlE", "CUPEL_MUTATION|MUTATE_", "src", "dev", "drivers", "policy",
                            "Makefile"], cwd=REPO, capture_output=True, text=True).stdout.split()
    assert found == ["src/box/wall/mutate.h"]


def test_the_define_is_asked_for_once_and_has_no_default():
    lines = [line for line in HEADER.read_text().splitlines() if line.startswith("#")]
    asked = [line for line in lines if "CUPEL_MUTATION" in line]
    assert asked == ["#ifdef CUPEL_MUTATION"] and "#define mutate(id) 0" in lines


@pytest.mark.parametrize("source", SOURCES)
def test_the_source_is_the_one_without_mutations(commands, source):
    """Equal, to the compiler, to a source in which 0 was written by hand for every mutate()."""
    text = (REPO / source).read_text()
    plain = re.sub(r"\bmutate\(\w+(?:##name)?\)", "0", text.replace('#include "box/wall/mutate.h"\n', ""))
    assert "mutate" not in plain
    for command in compilations(commands, source):
        assert preprocessed(command, text) == preprocessed(command, plain)


@pytest.mark.parametrize("source", SOURCES)
def test_the_comparison_would_see_a_mutation(commands, source):
    """The positive control."""
    text = (REPO / source).read_text()
    used = re.findall(r"\bmutate\((\w+)\)", text) or ["LIMIT_CORE"]
    command = compilations(commands, source)[0]
    assert preprocessed(command, text) != preprocessed(
        command, text, f"-DCUPEL_MUTATION=MUTATE_{used[0]}")


def test_the_program_holds_no_name_of_a_mutation():
    program = host.PROGRAM.read_bytes()
    assert b"CUPEL_STATE" in program, "the control: names that are in it are found"
    assert len(NAMES) > 80
    assert not [name for name in NAMES if b"MUTATE_" + name.encode() in program]
    assert b"CUPEL_MUTATION" not in program and b"mutate(" not in program
