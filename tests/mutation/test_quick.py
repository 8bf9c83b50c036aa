"""A few mutants in every test run; `make test-mutation` runs them all."""
import os
import subprocess

import pytest

import host


@pytest.mark.full
@pytest.mark.skipif(os.getuid() != 0, reason="mutants are probed as root")
@pytest.mark.skipif(host.SANITIZED, reason="mutants are built without sanitizers")
def test_a_few_disabled_controls_are_noticed():
    done = subprocess.run([host.REPO / "tests/mutation/run.py", "--quick"], capture_output=True,
                          text=True, timeout=1000)
    assert done.returncode == 0, done.stdout + done.stderr
