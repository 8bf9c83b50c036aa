"""ROWS names a probe, or a reason, for every row of the table of threats; this holds it to
its word: no row is missing, every probe exists, and every program says the same of itself."""
import ast
import re

import pytest

from test_wall import HERE, PROGRAMS, Program

WANTED = [*range(1, 117), *range(129, 132)]
LINES = [line for line in (HERE / "ROWS").read_text().splitlines()
         if line.strip() and not line.startswith("#")]


def parse(lines):
    """{row: (probes, reason)}; a row that stands there twice or says nothing is a mistake."""
    rows = {}
    for line in lines:
        number, _, rest = line.partition(" ")
        assert number.isdigit() and int(number) not in rows, f"not a new row: '{line}'"
        rest = rest.strip()
        reason = rest[1:].strip() if rest.startswith("-") else ""
        probes = [] if rest.startswith("-") else rest.split(" # ")[0].split()
        assert reason or probes, f"row {number} has neither a probe nor a reason"
        rows[int(number)] = (probes, reason)
    return rows


ROWS = parse(LINES)


def functions(path):
    return {node.name for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.FunctionDef)}


def unit_tests():
    return {name for path in (HERE.parent / "unit").glob("*.c")
            for name in re.findall(r"^TEST\((\w+)\)", path.read_text(), re.M)}


def exists(probe):
    if probe.startswith("unit:"):
        return probe[len("unit:"):] in unit_tests()
    name, _, function = probe.partition("::")
    path = HERE / name
    if name.startswith("programs/"):
        return path.is_file() and not function
    return path.is_file() and function.startswith("test_") and function in functions(path)


def test_every_row_is_there_and_no_other():
    missing, odd = set(WANTED) - set(ROWS), set(ROWS) - set(WANTED)
    assert not missing and not odd, f"missing {sorted(missing)}, unknown {sorted(odd)}"
    assert list(ROWS) == WANTED, "rows stand in the order of their numbers"


@pytest.mark.parametrize("row", ROWS)
def test_the_probes_of_a_row_exist(row):
    lost = [probe for probe in ROWS[row][0] if not exists(probe)]
    assert not lost, f"row {row}: {lost}"


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_a_program_says_the_same_rows(path):
    own = {int(word) for word in Program(path).words("row")} & set(WANTED)
    listed = {row for row, (probes, _) in ROWS.items() if f"programs/{path.name}" in probes}
    assert own == listed, f"its 'row:' line says {sorted(own)}, ROWS says {sorted(listed)}"
    assert own, "it stands for no row"


def test_a_mistake_in_the_list_is_seen():
    assert not exists("programs/absent.py") and not exists("test_wall.py::test_absent")
    assert not exists("unit:absent") and not exists("test_wall.py")
    for lines in (["1"], ["1 - "], ["1 a", "1 b"], ["one a"]):
        with pytest.raises(AssertionError):
            parse(lines)
