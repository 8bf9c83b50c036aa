"""Repairs: what a model is told of an error, how often it may try, and when the task is given up."""
import json
import re

import pytest

from asking import fence
from tables import END, FILES, QUESTION, READ, SUM

BROKEN = READ + "total = sum(rows)\nprint('total', total)"     # TypeError


def told_once(ask, code, **options):
    """What the model is told of one failing cell; the task then goes on rightly."""
    report = ask(QUESTION, [fence(code), fence(SUM), *END], FILES, watch=True, **options)
    assert report["status"] == "verified", report["checks"]
    return report


def test_an_error_is_told_with_all_that_mends_it(ask):
    report = told_once(ask, READ + "key = 'cedar'\nprint(rows[key])")
    told = report.told(1)
    assert "KeyError" in told and "cedar" in told
    assert re.search(r"print\(rows\[key\]\)", told), "the failing line"
    assert re.search(r"key\b.{0,20}'cedar'", told), "the values that the line names"
    assert "oak" in told, "the keys that there are"
    assert re.search(r"only", told, re.I), "to change only what needs it"
    assert "/usr/lib" not in told and report["evidence"][0]["status"] == "error"


def test_what_survived_is_told(ask):
    """Of a cell that fails nothing is kept, where the session can go back; else all until there."""
    report = told_once(ask, READ + "half = 7\n1 / 0")
    told, state = report.told(1), report["evidence"][0]["state"]
    assert "ZeroDivisionError" in told and "line 4: 1 / 0" in told
    assert state == "kept" and "half" in told or re.search(r"as before|nothing of this cell", told, re.I), (state, told)


def test_what_was_printed_before_the_error_is_kept(ask):
    assert "got as far as this" in told_once(ask, "print('got as far as this')\n1 / 0").told(1)


def test_close_names_are_offered(ask):
    report = ask(QUESTION, [fence(READ + "revenue = 3"), fence("print(revenu)"), fence(SUM), *END], FILES, watch=True)
    assert "revenue" in report.told(2) and "revenu" in report.told(2)


def test_installed_alternatives_are_offered(ask):
    assert "pandas" in told_once(ask, "import polars").told(1)


def test_a_timeout_asks_for_a_cheaper_way(ask):
    report = told_once(ask, "print('begun')\nwhile True: pass", args=["-t", "2"])
    told = report.told(1)
    assert report["evidence"][0]["status"] == "timeout" and "begun" in told
    assert re.search(r"cheaper|faster|algorithm|smaller", told), told


def test_a_memory_limit_asks_for_chunks(ask):
    report = told_once(ask, "held = []\nwhile True: held.append(bytearray(b'x') * (8 << 20))", args=["-m", "256M"])
    assert re.search(r"chunk|stream", report.told(1)), report.told(1)


def test_a_memory_error_asks_for_chunks_too(ask):
    """The limit was met by one allocation: Python says so itself."""
    report = told_once(ask, "raise MemoryError()")
    assert report["evidence"][0]["status"] == "error" and re.search(r"chunk|stream", report.told(1)), report.told(1)
    assert not re.search(r"chunk|stream", told_once(ask, "raise ValueError()").told(1))


@pytest.mark.parametrize("program", ["exit 3", "kill -9 $$"])
def test_a_program_that_fails_is_no_model(ask, folder, program):
    """It is tried again once; nothing that the model did is at fault, so the task is not stuck."""
    text = f"#!/bin/sh\necho x >>{folder}/calls\n{program}\n"
    report = ask(QUESTION, model=ask.program(folder, text))
    assert report["status"] == "failed" and report["reason"] and report["hint"], report
    assert (folder / "calls").read_text() == "x\nx\n"


def test_a_model_that_says_nothing_of_use_is_stuck(ask):
    report = ask(QUESTION, ["<plan>look at it</plan>"], FILES, watch=True)
    assert report["status"] == "stuck" and report["reason"], report


def test_money_for_an_unknown_price_is_denied(ask, folder):
    """A rule declines: nothing has failed, and no model was asked."""
    report = ask(QUESTION, model=ask.program(folder, f"#!/bin/sh\ntouch {folder}/called\n"),
                 args=["--budget", "usd=0.01"])
    assert report["status"] == "denied" and "price" in report["reason"] and report["hint"], report
    assert not (folder / "called").exists()


def test_a_dead_cell_takes_nothing_with_it(ask):
    """The state before it is there, and the model is told so."""
    replies = [fence(READ + "print(len(rows))"), fence("import os\nos._exit(3)"),
               fence("total = sum(rows.values())\nprint('total', total)"), *END]
    report = ask(QUESTION, replies, FILES, watch=True)
    if report["evidence"][1]["state"] == "rolled_back":
        assert report["status"] == "verified", report["checks"]
        assert re.search(r"as before|nothing of this cell", report.told(2), re.I), report.told(2)
    else:
        assert report["evidence"][1]["state"] == "lost"


# ---- the check before running ----
NOT_RUN = {
    "syntax": ("print('a'\n", "SyntaxError|syntax|never closed"),
    "a name that is not there": ("print('begun')\nprint(undefined_thing)", "undefined_thing"),
    "a module that is missing": ("print('begun')\nimport no_such_module_here", "no_such_module_here"),
}


@pytest.mark.parametrize("name", NOT_RUN)
def test_what_cannot_run_is_not_run(ask, name):
    code, said = NOT_RUN[name]
    report = told_once(ask, code)
    step = report["evidence"][0]
    assert (step["status"], step["run"]) == ("not_run", None) and report["steps"] == 2, step
    assert re.search(said, report.told(1)), report.told(1)


def test_what_could_run_is_run(ask):
    """Names that come from elsewhere are no reason to hold a cell back."""
    code = READ + """
try:
    import simplejson_not_here as json_module
except ImportError:
    json_module = None
globals()['made'] = 1
exec('other = 2')
def later():
    return not_yet
total = sum(rows.values())
print('total', total, made, other, [x for x in range(2)], __name__)
"""
    report = ask(QUESTION, [fence(code), *END], FILES)
    assert report["evidence"][0]["status"] == "ok" and report["status"] == "verified", report["evidence"][0]


# ---- repetitions ----
def test_the_same_code_on_the_same_state_is_not_run_again(ask):
    look = "print('looked')\nlen(rows)"
    report = ask(QUESTION, [fence(SUM), fence(look), fence(look), *END], FILES, watch=True)
    first, second = report["evidence"][1:3]
    assert second["repeated"] and not first["repeated"] and second["run"] in (None, first["run"])
    assert re.search(r"same|already|again|earlier", report.told(3), re.I) and "looked" in report.told(3)
    assert report["status"] == "verified", report["checks"]


def test_the_same_code_on_another_state_is_run(ask):
    add = "count = globals().get('count', 0) + 1\nprint('count', count)"
    report = ask(QUESTION, [fence(SUM), fence(add), fence(add), *END], FILES)
    assert [step["result"]["stdout"] for step in report["evidence"][1:3]] == ["count 1\n", "count 2\n"]


def failing(*messages):
    """Cells that differ in all but the error."""
    return [fence(f"attempt = {number}\nraise ValueError({message!r})") for number, message in enumerate(messages)]


def test_the_second_identical_error_is_told_so(ask):
    report = ask(QUESTION, [*failing("broken", "broken"), fence(SUM), *END], FILES, watch=True)
    assert report["status"] == "verified", report["checks"]
    assert not re.search(r"same error|identical|second time", report.told(1), re.I)
    assert re.search(r"same error|identical|second time|again", report.told(2), re.I), report.told(2)


def test_the_third_asks_for_another_approach(ask):
    report = ask(QUESTION, [*failing("broken", "broken", "broken"), fence(SUM), *END], FILES, watch=True)
    assert report["status"] == "verified", (report["status"], report["checks"])
    assert re.search(r"another approach|different approach|other way|new plan|another way", report.told(3), re.I)
    assert report.told(3) != report.told(2)


def test_then_it_is_stuck(ask):
    report = ask(QUESTION, failing(*["broken"] * 9), FILES, watch=True)
    assert report["status"] == "stuck" and 3 <= report["steps"] <= 4, report["steps"]
    assert "ValueError" in report["reason"] and report["hint"] and "broken" in json.dumps(report["evidence"])
    assert all(step["status"] == "error" for step in report["evidence"])


def test_an_error_that_differs_in_numbers_alone_is_the_same(ask):
    """A model that raises a number to get past the count is noticed."""
    report = ask(QUESTION, failing(*(f"limit {10 ** n} is too small" for n in range(9))), FILES, watch=True)
    assert report["status"] == "stuck" and report["steps"] <= 5, report["steps"]


def test_other_errors_are_no_repetition(ask):
    kinds = ["ValueError('a')", "KeyError('b')", "TypeError('c')", "IndexError('d')", "OSError('e')"]
    report = ask(QUESTION, [*(fence(f"raise {kind}") for kind in kinds), fence(SUM), *END], FILES)
    assert report["status"] == "verified" and report["steps"] == 7, report["checks"]


def test_a_loop_of_two_cells_is_noticed(ask):
    """Code that comes again and again without an error ends too."""
    pair = [fence("a = 1\nprint('one')"), fence("a = 2\nprint('two')")]
    report = ask(QUESTION, pair * 20, FILES, args=["--max-steps", "40"], watch=True)
    assert report["status"] in ("stuck", "budget_exhausted") and report["steps"] < 30, report["steps"]


def test_a_repair_is_an_event(ask):
    report = ask(QUESTION, [fence(BROKEN), fence(SUM), *END], FILES)
    repairs = [event["data"] for event in ask.transcript(report) if event["kind"] == "repair"]
    assert repairs and repairs[0]["attempt"] == 1 and repairs[0]["of"] == 3 and repairs[0]["why"]
