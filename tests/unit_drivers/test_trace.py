"""trace.py: slices, origins and problems of small programs, right and wrong alike."""
import pytest
import tracing

RIGHT, COMPUTED, WRONG, KNOWN, COPIED = [tracing.programs(name) for name in "right computed wrong known copied".split()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tracing.plant(tmp_path_factory.mktemp("inputs"))


def kinds(found):
    return sorted({one["kind"] for one in found["problems"]})


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_program_has_no_problem(folder, name):
    code, fields = RIGHT[name]
    found = tracing.trace(code, folder=folder, **fields)
    assert found["problems"] == []
    assert {one["origin"] for one in found["values"]} <= {"data", "computed"}


@pytest.mark.parametrize("name", COMPUTED)
def test_a_computed_value_has_no_problem(name):
    code, fields = COMPUTED[name]
    found = tracing.trace(code, inputs=[], **fields)
    assert found["problems"] == []
    assert {one["origin"] for one in found["values"]} == {"computed"}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_program_has_its_problem(folder, name):
    code, fields = WRONG[name]
    expected = fields.pop("expect").split()
    found = tracing.trace(code, folder=folder, **fields)
    assert kinds(found) == sorted(expected)
    assert all([one["message"] and one["repair"] for one in found["problems"]])


@pytest.mark.parametrize("name", KNOWN)
def test_knowledge_that_is_typed_in_is_a_problem(name):
    code, fields = KNOWN[name]
    expected = fields.pop("expect").split()
    assert kinds(tracing.trace(code, inputs=[], **fields)) == sorted(expected)


@pytest.mark.parametrize("name", COPIED)
def test_a_number_that_was_printed_before_is_copied_unless_it_selects(folder, name):
    code, fields = COPIED[name]
    number = fields.pop("number", None)
    found = [one for one in tracing.trace(code, folder=folder, **fields)["problems"] if one["kind"] == "typed"]
    assert [number in one["message"] for one in found if number] == [True] * bool(number)
    assert bool(found) == bool(number)
