"""Every mutation applies to the sources as they are, and the sources know nothing of mutations."""
import subprocess
import sys
from pathlib import Path

import pytest

import host

sys.path.insert(0, str(Path(__file__).resolve().parent))
import run  # noqa: E402
import table  # noqa: E402
from edits import EDITS, applied  # noqa: E402


@pytest.mark.parametrize("mutant", table.MUTANTS, ids=lambda mutant: mutant.name)
def test_each_edit_applies_exactly_once(mutant):
    changed = {}
    run.change(mutant, host.REPO, changed.__setitem__)
    assert changed
    for path, text in changed.items():
        assert text != path.read_text()


def test_every_edit_is_in_a_row_of_the_table():
    assert {name for mutant in table.MUTANTS for name in mutant.off} == set(EDITS)
    assert len(EDITS) > 100


@pytest.mark.parametrize("text", ["", "old", "new old old"])
def test_text_that_does_not_stand_there_once_is_refused(text):
    if text.count("old") == 1:
        assert applied(text, "old", "new") == "new"
        return
    with pytest.raises(ValueError):
        applied(text, "old", "new")


def test_the_sources_and_the_build_have_no_switch_for_a_control():
    found = subprocess.run(["grep", "-rliE", r"\bmutat(e|ion)", "src", "dev", "drivers", "policy", "include"],
                           cwd=host.REPO, capture_output=True, text=True).stdout.split()
    assert not found
