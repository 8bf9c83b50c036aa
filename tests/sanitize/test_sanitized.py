"""The sanitized build (`make asan`, `make ci-build`) has the sanitizer in every program, not only in cupel."""
import subprocess

import pytest

import host

pytestmark = pytest.mark.skipif(not host.SANITIZED, reason="asks about the sanitized build")


@pytest.mark.parametrize("program", ["cupel", "unit", "broker", "init"])
def test_the_program_checks_its_memory(program):
    names = subprocess.run(["nm", host.BUILD / program], capture_output=True, text=True, check=True).stdout
    assert "__asan_report_load4" in names


@pytest.mark.parametrize("program", ["broker", "init", "zygote.so"])
def test_undefined_behaviour_traps(program):
    """Without a runtime, which a process behind a filter cannot use."""
    code = subprocess.run(["objdump", "-d", host.BUILD / program], capture_output=True, text=True, check=True).stdout
    assert "\tud1" in code or "\tud2" in code
