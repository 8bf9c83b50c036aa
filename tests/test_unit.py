"""The C unit tests, each shown as a test of its own."""
import re
import subprocess

import pytest

from host import BUILD

UNIT = BUILD / "unit"


def outcomes():
    """(name, passed, what was said) of every unit test, from one run of all of them."""
    if not UNIT.exists():
        return []
    done = subprocess.run([UNIT], capture_output=True, encoding="utf-8", errors="replace",
                          timeout=300)
    said, rows = [], []
    for line in done.stdout.splitlines():
        match = re.match(r"(ok|not ok) (\w+)$", line)
        if match:
            rows.append((match[2], match[1] == "ok", "\n".join(said + [done.stderr[-4000:]])))
            said = []
        else:
            said.append(line)
    return rows


ROWS = outcomes()


def test_the_unit_tests_are_built_and_ran():
    assert UNIT.exists(), f"'{UNIT}' is not built: run make"
    assert len(ROWS) > 0


@pytest.mark.parametrize("name,passed,said", ROWS, ids=[row[0] for row in ROWS])
def test_unit(name, passed, said):
    assert passed, "\n" + said
