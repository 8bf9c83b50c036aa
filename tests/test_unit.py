"""The C unit tests, each shown as a test of its own. The names come from the sources; each test is one run of
build/unit, so that one that fails, hangs or leaves a child touches no other."""
import re
import subprocess

import pytest

from host import BUILD, REPO, SANITIZED

UNIT = BUILD / "unit"
# A sanitized program maps terabytes, which no transplant can copy, and its leak checker looks into it.
# Its init is no static program, and an image would need its libraries.
UNSANITIZED = ("test_transplant_program.c", "test_box_service.c", "test_box_image.c")
# TEST_BOTH makes two of one, for root and for an ordinary user.
NAMES = sorted(name + who for path in (REPO / "tests/unit").glob("*.c")
               if not (SANITIZED and path.name in UNSANITIZED)
               for both, name in re.findall(r"^TEST(_BOTH)?\((\w+)\)", path.read_text(), re.M)
               for who in (("_as_root", "_as_user") if both else ("",)))


def unit(*args):
    with subprocess.Popen([UNIT, *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
                          errors="replace") as child:
        said = child.communicate(timeout=240)[0]
    return child.returncode, said


def test_the_sources_and_the_program_have_the_same_unit_tests():
    code, said = unit("--list")
    assert code == 0 and said.split() == NAMES


# Many rounds, and what takes long; tests of one round each hold the same.
FULL = re.compile(r"_\d+_(rounds|in_a_row)_|_pandas_|_any_moment_|_half_way_|_large_array|_too_many_|_another_layout"
                  r"|_hidden_from_its_birth|_long_replies_|_run_into_the_range_|_what_user_code_tries")


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.full) if FULL.search(name) else name
                                  for name in NAMES])
def test_unit(name):
    code, said = unit(f"={name}")
    assert code == 0 and f"ok {name}" in said.splitlines(), said
