"""The forms of the suite: nothing is lost between them, and the short one meets every promise."""
import os
import re
import subprocess
import sys

import pytest

from host import REPO

HELD = sorted(set(re.findall(r"tests/(?!v2/)[\w/]+\.py(?:::\w+)?", (REPO / "docs/spec.md").read_text())))


def collected(form):
    env = {**os.environ, "CUPEL_TESTS": form}
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", "tests"],
                          cwd=REPO, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
    return [line for line in done.stdout.splitlines() if "::" in line]


def meets(test, held):
    """A file, a test in it, or a hostile program, which is a row of test_wall.py."""
    if "/programs/" in held:
        return test.endswith("-" + held.rpartition("/")[2] + "]")
    name = test.partition("[")[0]
    return name == held or name.startswith(held + "::")


@pytest.mark.full
def test_each_test_is_in_one_form_and_each_promise_in_the_short_one():
    short, full, both = collected("short"), collected("full"), collected("")
    assert sorted(short + full) == sorted(both)
    unmet = [held for held in HELD if not any(meets(one, held) for one in short)]
    assert not unmet, f"promises of docs/spec.md that the short form does not try: {unmet}"
