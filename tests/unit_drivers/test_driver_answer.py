"""The values of an agent's answer: their JSON and types, and the text of a template, which is made from those alone."""
import datetime
import decimal
import fractions
import random

import pytest

import answers
import host

values, world = answers.values(), answers.world()


@pytest.mark.parametrize("code, plain, types, text", answers.ROWS, ids=[row[0][:60] for row in answers.ROWS])
def test_a_value_has_its_json_its_types_and_its_text(code, plain, types, text):
    found, kinds = answers.told(values, eval(code, world))
    assert (repr(found), kinds) == (repr(plain), answers.types_of(types))
    assert values.render("{x}", {"x": found}, kinds) == text


@pytest.mark.parametrize("code, template, text", answers.FORMATS)
def test_a_template_formats_its_values(code, template, text):
    found, kinds = answers.told(values, eval(code, world))
    assert values.render(template, {"x": found}, kinds) == text


@pytest.mark.parametrize("code, template, said", answers.WRONG)
def test_a_wrong_value_or_template_says_how_to_mend_it(code, template, said):
    with pytest.raises((ValueError, TypeError)) as problem:
        found, kinds = answers.told(values, eval(code, world))
        values.render(template, {"x": found}, kinds)
    assert said in str(problem.value)


def test_every_row_of_types_is_known():
    """The types that docs and the trace name: each has a row here."""
    kinds = {kind for _, _, types, _ in answers.ROWS for kind in answers.types_of(types).values()}
    assert {*"number integer bool text none date datetime time timedelta decimal fraction complex list dict table nan "
            "-inf".split()} <= kinds


SCALARS = [None, True, False, 0, -7, 1 << 80, 0.1, -2.5e-9, float("inf"), -float("inf"), "", "a|b\nc", "ünï ☃",
           datetime.date(1, 1, 1), datetime.datetime(2024, 2, 29, 1, 2, 3, 4), datetime.time(23, 59),
           datetime.timedelta(days=-1, microseconds=1), decimal.Decimal("1E+5"), fractions.Fraction(-7, 3), 1j]


def same(decoded, value):
    if isinstance(decoded, values.Table):
        rows = [[row.get(name) for name in decoded.columns] if isinstance(row, dict) else list(row) for row in value]
        return len(decoded.rows) == len(rows) and all(same(*pair) for pair in zip(decoded.rows, rows))
    if isinstance(value, (list, tuple)):
        return len(decoded) == len(value) and all(same(*pair) for pair in zip(decoded, value))
    if isinstance(value, dict):
        return [*decoded] == [*value] and all(same(decoded[key], value[key]) for key in value)
    return type(decoded) is type(value) and decoded == value


def make(dice, depth=0):
    kind = dice.randrange(6 if depth < 4 else 3)
    some = range(dice.randrange(5))
    if kind < 3:
        return dice.choice(SCALARS)
    if kind == 3:
        return [make(dice, depth + 1) for _ in some]
    if kind == 4:
        return {f"k{at}": make(dice, depth + 1) for at in some}
    return [{"a": dice.choice(SCALARS), "b": dice.choice(SCALARS)} for _ in some]


def test_whatever_is_encoded_is_decoded_to_the_same():
    dice = random.Random(host.SEED)
    for _ in range(2000):
        value = make(dice)
        found, kinds = answers.told(values, value)
        decoded = values.decode(found, kinds["x"], "x", kinds)
        assert same(decoded, value), (value, found, kinds)


def test_a_subclass_cannot_show_another_value_than_it_has():
    class Text(str):
        def __str__(self): return "other"
        def __format__(self, spec): return "other"

    class Number(float):
        def __format__(self, spec): return "other"
        def __repr__(self): return "other"

    class Count(int):
        def __repr__(self): return "other"
    for value, text in ((Text("own"), "own"), (Number(1.5), "1.5"), (Count(3), "3")):
        found, kinds = answers.told(values, value)
        assert values.render("{x}", {"x": found}, kinds) == text
