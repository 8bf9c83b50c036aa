"""The guard against leaks: it sees mounts, files and groups that can be cupel's, and no others."""
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

import host

MOUNTS = """
import sys
sys.path.insert(0, sys.argv[1])
import host, subprocess
before = host.mounts()
for name in ("other", "cupel"):
    subprocess.run(["mount", "-t", "tmpfs", name, sys.argv[2]], check=True)
    print(name, len(host.mounts() - before))
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root mounts")
def test_only_mounts_of_cupel_count(tmp_path):
    done = subprocess.run(["unshare", "-m", sys.executable, "-c", MOUNTS, Path(host.__file__).parent, tmp_path],
                          capture_output=True, text=True)
    assert done.stdout.split("\n")[:2] == ["other 0", "cupel 1"], done.stderr


def test_a_file_that_stays_is_left_behind_and_one_that_goes_is_not():
    before = {"files": host.stray_files()}
    with tempfile.NamedTemporaryFile(prefix="of-cupel-", dir="/tmp", delete=False) as file:
        threading.Timer(0.2, os.unlink, [file.name]).start()
        host.check_no_growth(before)
    with tempfile.NamedTemporaryFile(prefix="of-cupel-", dir="/tmp"):
        with pytest.raises(AssertionError, match="of-cupel-.*the name"):
            host.check_no_growth(before, "the name", seconds=0.01)


def test_a_process_of_another_program_is_not_ours():
    with subprocess.Popen(["sleep", "30"]) as child:
        assert child.pid not in [row["pid"] for row in host.ours()]
        child.kill()
