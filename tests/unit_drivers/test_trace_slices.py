"""flow.py: the lines of a slice. A line that belongs to the slice of {x} ends in `#x`; all others do not."""
import json
import random

import pytest
import tracing

SLICES = tracing.programs("slices")


@pytest.mark.parametrize("name", SLICES)
def test_a_slice_is_the_lines_that_make_the_value(name):
    cells = SLICES[name][0].rstrip().split(tracing.CUT)
    found = tracing.trace(cells, question="", inputs=[])["values"][0]["slice"]
    lines = {(one["cell"], at) for one in found for at in range(one["line"], one["end"] + 1)}
    marked = {(number, at) for number, cell in enumerate(cells, 1)
              for at, line in enumerate(cell.split("\n"), 1) if line.endswith("#x")}
    calls = {one for one in lines if "answer(" in cells[one[0] - 1].split("\n")[one[1] - 1]}
    assert lines - calls == marked


def test_the_code_of_a_line_is_that_of_its_statement_alone():
    found = tracing.trace('ä = "é"; b = 2; c = b\nanswer("{x}", x=c)', inputs=[])["values"][0]["slice"]
    assert [one["code"] for one in found] == ["b = 2", "c = b"]


def test_the_code_of_a_line_keeps_its_indentation():
    found = tracing.trace('t = 0\nfor i in range(3):\n    if i:\n        t += i\nanswer("{x}", x=t)', inputs=[])
    code = "\n".join([one["code"] for one in found["values"][0]["slice"]])
    assert code == "t = 0\nfor i in range(3):\n    if i:\n        t += i"


def test_an_earlier_answer_is_no_part_of_a_slice():
    found = tracing.trace('a = [48]\nanswer("{x}", x=a)\n# %%\na.append(1)\nanswer("{x}", x=a)', inputs=[])
    assert [one["code"] for one in found["values"][0]["slice"]] == ["a = [48]", "a.append(1)"]


def test_a_made_file_has_the_lines_that_made_it():
    code = ('import matplotlib.pyplot as plt\nd = load("sales.csv")\ne = 3\nplt.bar(d.a, d.b)\nplt.savefig("c.png")\n'
            'answer("See c.png: {n}", n=len(d), files=["c.png"])')
    found = tracing.trace(code)
    assert [(one["path"], [line["line"] for line in one["slice"]]) for one in found["files"]] == [("c.png", [2, 4, 5])]
    assert found["problems"] == []


def test_imports_are_followed_and_not_shown():
    found = tracing.trace('import math\nfrom math import *\na = math.sqrt(48)\nanswer("{x}", x=a + 0)', inputs=[])
    assert [one["code"] for one in found["values"][0]["slice"]] == ["a = math.sqrt(48)", "x=a + 0"]


def test_the_lines_that_opened_an_input_make_the_origin_data():
    code = ('import glob\nnames = glob.glob("*.csv")\ntotal = sum(len(open(n).read()) for n in names)\nk = 5\n'
            'answer("{x} {y}", x=total, y=k)')
    found = tracing.trace(code, inputs=["sales.csv"], opened=[["sales.csv", [[1, 3]]]])["values"]
    assert [(one["origin"], one["files"]) for one in found] == [("data", ["sales.csv"]), ("typed", [])]


def test_a_call_inside_the_answer_that_opens_an_input_is_data():
    code = 'answer("{x} {y}",\n       x=len(open(name).read()),\n       y=7)'
    found = tracing.trace(code, inputs=["sales.csv"], opened=[["sales.csv", [[1, 2], [1, 1]]]])["values"]
    assert [one["origin"] for one in found] == ["data", "typed"]


def test_a_cell_that_is_no_python_is_noted_and_the_others_are_traced():
    found = tracing.trace(["this is ( no Python", 'a = 2 * 21\nanswer("{x}", x=a)'], question="2 * 21?", inputs=[])
    assert found["problems"] == [] and "cell 1" in found["notes"][-1]


HUGE = {
    "a long sum": 'x = ' + '+'.join(['1'] * 20000) + '\nanswer("{x}", x=x)',
    "deep parentheses": 'x = ' + '(' * 150 + '1' + ')' * 150 + '\nanswer("{x}", x=x)',
    "deep attributes": 'x = a' + '.b' * 5000 + '\nanswer("{x}", x=x)',
    "many elifs": 'if a: x = 1\n' + 'elif a: x = 2\n' * 2000 + 'answer("{x}", x=x)',
    "many weak bindings": 'x = 0\n' + 'if x: x = 1\n' * 2000 + 'answer("{x}", x=x)',
    "many changes": 'x = []\n' + 'x.append(x)\n' * 3000 + 'answer("{x}", x=x)',
    "a loop of changes": 'x = []\nwhile x:\n' + '    x.append(y); y = x\n' * 2000 + 'answer("{x}", x=x)',
    "many names": ''.join([f'a{n} = a{n - 1}\n' for n in range(1, 3000)]) + 'answer("{x}", x=a2999)',
    "many functions": ''.join([f'def f{n}(a): return f{n - 1}(a)\n' for n in range(1, 1500)])
                      + 'answer("{x}", x=f1499(1))',
    "nested functions": ''.join(['  ' * n + f'def f{n}():\n' for n in range(60)])
                        + '  ' * 60 + 'pass\nanswer("{x}", x=f0())',
    "a long text": 'x = "' + 'a.b ' * 100000 + '"\nanswer("{x}", x=x)',
    "many columns": ''.join([f'd["a{n}"] = d["a{n - 1}"]\n' for n in range(1, 2000)]) + 'answer("{x}", x=d)',
    "too much code": 'x = 1\n' + '#' * (1 << 20) + '\nanswer("{x}", x=x)',
}


@pytest.mark.sample(short=3)
@pytest.mark.parametrize("name", HUGE)
def test_a_huge_program_ends_with_a_response(name):
    found = tracing.trace([HUGE[name]], {"x": 1}, template="{x}", inputs=["sales.csv"])
    assert {one["kind"] for one in found["problems"]} & {"typed", "untraced"}


def test_a_forged_payload_never_crashes_the_analysis():
    junk = [None, 0, -1, 1e300, "x", [], {}, [[]], [{}], {"a": None}, [["a"]], {"path": 3, "at": [[1], "x", [1, {}]]}]
    dice = random.Random(3)
    fields = "kind cell line template text values types files opened".split()
    for _ in range(500):
        payload = {name: dice.choice(junk) for name in fields} if dice.random() < 0.9 else dice.choice(junk)
        if isinstance(payload, dict) and dice.random() < 0.5:
            payload = {**payload, "cell": 1, "line": 1, "values": {"x": dice.choice(junk)},
                       "types": {"x": dice.choice(junk)},
                       "opened": [dice.choice(junk), {"path": "sales.csv", "at": dice.choice(junk)}]}
        cell = {"n": 1, "code": 'answer("{x}", x=len(open("sales.csv")))', "output": dice.choice(junk)}
        request = {"question": dice.choice(junk), "inputs": ["sales.csv"], "answer": payload,
                   "schema": dice.choice(junk), "cells": [cell]}
        tracing.DRIVER.load("trace").main(json.dumps(request))
        assert "Error" not in str(tracing.DRIVER.shown.pop().response["problems"]), payload


def test_too_many_cells_are_untraced():
    found = tracing.trace(["x = 1"] * 400 + ['answer("{x}", x=x)'], inputs=[])
    assert "400 cells" in found["problems"][0]["message"]


PIECES = ["\0", "{", "(", "\n    ", "é²½", "answer", "1e999", "lambda: ", '"', "\ud800", "*"]


def mutated(dice, text):
    """The text with a few of its pieces cut, doubled, moved or replaced."""
    for _ in range(dice.randint(1, 5)):
        at, end = sorted([dice.randrange(len(text) + 1), dice.randrange(len(text) + 1)])
        end = min(end, at + dice.choice([1, 3, 20, 200]))
        piece = dice.choice(["", text[at:end] * 2, *PIECES])
        text = text[:at] + piece + text[end:]
    return text


def test_changed_programs_never_crash_the_analysis(tmp_path):
    seed = random.randrange(1 << 30)
    dice, folder = random.Random(seed), tracing.plant(tmp_path)
    pool = [one for name in ("right", "wrong", "computed") for one in tracing.programs(name).values()]
    for _ in range(400):
        code, fields = dice.choice(pool)
        cells = mutated(dice, code).split(tracing.CUT)
        question = mutated(dice, fields.get("question", "") + "Oslo 2023")
        found = tracing.trace(cells, {"m": 1.5, "n": None, "c": "Oslo"}, question=question, folder=folder,
                              template=mutated(dice, "{m} and {n} of {c} 48"), inputs=["sales.csv", "gone.csv"])
        crashes = [one for one in found["problems"] if "Error" in one["message"] and "cannot be" in one["message"]]
        assert not crashes, (seed, crashes, cells)
