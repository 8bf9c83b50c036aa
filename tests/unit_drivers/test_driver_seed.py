"""Seeds without the library of the box: no driver runs code by a clock that is not fixed."""
import pytest

from driver_box import run

CODES = {"python": "print('ran')", "javascript": "console.log('ran')", "bash": "echo ran"}


@pytest.mark.parametrize("language", CODES)
def test_code_with_a_seed_does_not_run_by_the_true_clock(language):
    outcome = run(language, CODES[language], seed=7)
    told = outcome.error["message"] if outcome.error else outcome.stderr
    assert outcome.stdout == "" and outcome.code != 0 and "cannot be fixed" in told


@pytest.mark.parametrize("language", CODES)
def test_code_without_a_seed_does(language):
    """The positive control."""
    assert run(language, CODES[language]).stdout == "ran\n"
