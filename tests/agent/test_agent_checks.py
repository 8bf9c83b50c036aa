"""The proof of an answer: the rerun, the origin of each value, the template, files, schemas, a second program
and the judge. The long lists of right and wrong answers are in test_agent_right.py and test_agent_wrong.py."""
import json

import pytest

import tables
from asking import fence
from tables import ANSWER, END, FILES, PASS, QUESTION, READ, SUM, TELL, TREES, top

pytestmark = pytest.mark.sample(short=3)
CHART = READ + """
import matplotlib.pyplot as plt
plt.bar(list(rows), list(rows.values()))
plt.savefig("chart.png")
"""
DRAW = "Draw the amounts in trees.csv as a bar chart, chart.png."
WRITE = top(5) + """
import csv
with open("top.csv", "w") as out:
    table = csv.DictWriter(out, ["tree", "amount"])
    table.writeheader()
    table.writerows(best)
"""
ASK_FILE = "Write the 5 largest trees of trees.csv to top.csv, as CSV with the columns tree and amount."
TELL_FILE = "answer('{file} has the {count} largest trees.', count=len(best), file='top.csv', files=['top.csv'])"
LARGEST = "Which tree has the largest amount in trees.csv?"

# name: (question, the cells, the answer's text, its values)
RIGHT = {
    "a number": (QUESTION, [SUM, TELL], ANSWER, {"total": 1262.625}),
    "all in one cell": (QUESTION, [SUM + "\n" + TELL], ANSWER, {"total": 1262.625}),
    "a name and a verdict": (LARGEST, [READ + "best = max(rows, key=rows.get)\n"
                                       "answer('{best}: {verdict}', best=best, "
                                       "verdict='more than oak' if rows[best] > rows['oak'] else 'oak')"],
                             "ash: more than oak", {"best": "ash", "verdict": "more than oak"}),
    "a table": ("Which are the top 3 trees by amount in trees.csv?", [top(3) + "answer('{best}', best=best)"], None,
                {"best": {"columns": ["tree", "amount"], "rows": [["ash", 300.0], ["lime", 230.0], ["yew", 199.5]]}}),
    "a file": (ASK_FILE, [WRITE, TELL_FILE.replace("{file}", "top.csv").replace(" file='top.csv',", "")],
               "top.csv has the 5 largest trees.", {"count": 5}),
    "a picture": (DRAW, [CHART, "answer('chart.png shows {n} bars.', n=len(rows), files=['chart.png'])"],
                  "chart.png shows 12 bars.", {"n": 12}),
    "much output beside it": (QUESTION, ["for n in range(200_000): print('line', n)\n" + SUM, TELL], ANSWER,
                              {"total": 1262.625}),
    "another output the second time": (QUESTION, [SUM + "\nimport time\nprint(time.time())", TELL], ANSWER,
                                       {"total": 1262.625}),
    "no files": ("What is the sum of the whole numbers from 1 to 100?", ["answer('{n}', n=sum(range(1, 101)))"],
                 "5050", {"n": 5050}),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_answer_is_proven_at_the_first_try(ask, name):
    question, cells, text, values = RIGHT[name]
    files = {} if name == "no files" else FILES
    report = ask(question, [fence(cell) for cell in cells], files, args=["--judge", "off"])
    assert report["status"] == "computed", (report["reason"], report["checks"])
    assert report["steps"] == len(cells) and text in (None, report["answer"])
    assert report["values"] == values
    for check in ("rerun", "values", "template", "selection", "files"):
        assert report.outcome(check) == "pass", report["checks"]


# name: (question, the cells, the check that must fail)
WRONG = {
    "a number that is typed": (QUESTION, [SUM, TELL.replace("=total)", "=1262.625)")], "values"),
    "a number that is typed as text": (QUESTION, [SUM, TELL.replace("=total)", "=float('1262.625'))")], "values"),
    "a number that is added up by hand": (QUESTION, [SUM, "total = 1000 + 262.625\n" + TELL], "values"),
    "a table that is typed in": (QUESTION, ["rows = {'oak': 1200, 'elm': 62.625}\ntotal = sum(rows.values())", TELL],
                                 "values"),
    "data that is made up": (QUESTION, ["import random\nrandom.seed(1)\ntotal = sum(random.random() for _ in range(9))",
                                        TELL], "values"),
    "a number in the template": (QUESTION, [SUM, "answer('It is {total}, of 4711 trees.', total=total)"], "template"),
    "another value the second time": (QUESTION, [SUM + "\nimport random\ntotal += random.random()", TELL], "rerun"),
    "another file the second time": (
        ASK_FILE, [WRITE + "\nimport random\nopen('top.csv', 'a').write(f'x,{random.random()}\\n')",
                   TELL_FILE.replace("{file}", "top.csv").replace(" file='top.csv',", "")], "rerun"),
    "a missing file": (ASK_FILE, [top(5), "answer('The {count} largest are known.', count=len(best))"], "files"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_answer_is_not(ask, name):
    question, cells, check = WRONG[name]
    report = ask(question, [fence(cell) for cell in cells], FILES, watch=True, args=["--judge", "off"])
    assert report["status"] in ("unverified", "stuck"), (report["status"], report["checks"])
    assert report.outcome(check) == "fail", (check, report["checks"])
    failed = next(row for row in report["checks"] if row["outcome"] == "fail")
    assert failed["detail"] and failed["repair"] and report["reason"]


def test_each_value_has_its_lines_and_files(ask):
    cells = [READ, "unused = len(rows)\ntotal = sum(rows.values())", TELL]
    report = ask(QUESTION, [fence(cell) for cell in cells], FILES, args=["--judge", "off"])
    row, = report["trace"]
    assert (row["name"], row["origin"], row["files"]) == ("total", "data", ["trees.csv"])
    lines = "\n".join(line["code"] for line in row["slice"])
    assert "open(\"trees.csv\")" in lines and "total = sum(rows.values())" in lines and "unused" not in lines
    assert {line["cell"] for line in row["slice"]} >= {1, 2}


def test_what_fails_goes_back_to_the_model(ask):
    """And an answer that is mended is verified."""
    typed = TELL.replace("=total)", "=1417.0)")
    report = ask(QUESTION, [fence(SUM), fence(typed), *END], FILES, watch=True)
    assert report["status"] == "verified" and report["answer"] == ANSWER, report["checks"]
    assert "total" in report.told(2) and "not proven" in report.told(2) and report["steps"] == 3
    repairs = [event["data"] for event in ask.transcript(report) if event["kind"] == "repair"]
    assert [(row["why"], row["attempt"]) for row in repairs] == [("values", 1)]


def test_three_repairs_and_no_more(ask):
    """Faults that differ, so that the count of equal ones does not end it before."""
    typed = [fence(TELL.replace("=total)", f"={number}.5)")) for number in (11, 222, 3333, 44444, 555555)]
    report = ask(QUESTION, [fence(SUM), *typed], FILES, watch=True)
    assert report["status"] == "unverified" and len(report.sent) <= 5, report["reason"]


def test_what_a_failed_cell_made_is_no_part_of_the_proof(ask):
    """A later cell builds on it: it is told that the names are not there, or the proof fails."""
    replies = [fence(READ + "print(rows['cedar'])"), fence("total = sum(rows.values())\nprint('total', total)"),
               fence(SUM), *END]
    report = ask(QUESTION, replies, FILES, watch=True)
    assert report["status"] == "verified", (report["checks"], report["script"])
    assert "cedar" not in report["script"] and report["evidence"][1]["status"] in ("not_run", "ok")


# ---- the judge ----
VERDICTS = {"PASS": ("pass", "verified"), "PASS\nIt is well founded.": ("pass", "verified"),
            "FAIL total: the unit is missing": ("fail", "unverified"),
            "I think that it passes.": ("no_verdict", "computed"), "PASSABLE, but FAIL": ("no_verdict", "computed"),
            "": ("no_verdict", "computed")}


@pytest.mark.parametrize("verdict", VERDICTS)
def test_a_judge_is_asked(ask, verdict):
    outcome, status = VERDICTS[verdict]
    folder = ask.folder(FILES)
    judge, seen = ask.model(folder, [verdict], "judge")
    report = ask(QUESTION, [fence(SUM), fence(TELL)], FILES, args=["--judge", judge], watch=True, folder=folder)
    assert report.outcome("judge") == outcome, report["checks"]
    assert report["status"] == status or outcome == "fail" and report["status"] == "stuck", report["checks"]
    sent = seen.read_text()
    assert QUESTION in sent and "total = sum(rows.values())" in sent and "1262.625" in sent and "tree,amount" in sent
    if outcome == "fail":
        assert "the unit is missing" in report.request()


def test_the_judge_sees_no_conversation(ask):
    folder = ask.folder(FILES)
    judge, seen = ask.model(folder, [PASS], "judge")
    marked = [fence(SUM, "SECRET-REASONING: I feel lucky."), fence(TELL)]
    report = ask(QUESTION, marked, FILES, args=["--judge", judge], folder=folder)
    assert report["status"] == "verified" and "SECRET-REASONING" not in seen.read_text()
    assert len(seen.read_text().splitlines()) == 1


def test_what_is_not_proven_is_not_judged(ask):
    folder = ask.folder(FILES)
    judge, seen = ask.model(folder, [PASS], "judge")
    typed = [fence(SUM), fence(TELL.replace("=total)", "=1262.625)"))]
    report = ask(QUESTION, typed, FILES, args=["--judge", judge], folder=folder)
    assert report["status"] == "unverified" and not seen.exists() and report.outcome("judge") is None


# ---- a second program ----
SECOND = READ + "other = 0.0\nfor name in rows:\n    other += rows[name]\nanswer('{total}', total=other)"


def test_a_second_program_that_agrees_verifies(ask):
    report = ask(QUESTION, [fence(SUM), fence(TELL), fence(SECOND)], FILES, args=["--cross-check", "--judge", "off"])
    assert report["status"] == "verified" and report.outcome("cross_check") == "pass", report["checks"]


def test_a_second_program_that_differs_is_told_once_and_both_values_stay(ask):
    other = fence(SECOND.replace("0.0", "7.0"))
    replies = [fence(SUM), fence(TELL), other, fence("again = total\n" + TELL.replace("=total)", "=again)"))]
    report = ask(QUESTION, replies, FILES, args=["--cross-check", "--judge", "off"], watch=True)
    assert report["status"] in ("unverified", "stuck"), report["checks"]
    row = next(row for row in report["checks"] if row["check"] == "cross_check")
    assert row["outcome"] == "fail" and "1262.625" in row["detail"] and "1269.625" in row["detail"]
    assert "other = 7.0" in report.request(3)


def test_a_second_program_that_gives_nothing_proves_nothing(ask):
    replies = [fence(SUM), fence(TELL), "I would add it up."]
    report = ask(QUESTION, replies, FILES, args=["--cross-check", "--judge", "off"], watch=True)
    assert report["status"] == "computed" and report.outcome("cross_check") == "no_verdict", report["checks"]


# ---- values for programs ----
SCHEMA = {"type": "object", "required": ["total"], "additionalProperties": False,
          "properties": {"total": {"type": "number", "minimum": 0}}}


def test_values_satisfy_the_schema(ask):
    folder = ask.folder({**FILES, "schema.json": json.dumps(SCHEMA)})
    args = ["--schema", folder / "schema.json", "--judge", "off"]
    report = ask(QUESTION, tables.total(), FILES, args=args, folder=folder)
    assert report["status"] == "computed" and report.outcome("schema") == "pass", report["checks"]
    assert report["values"] == {"total": 1262.625}


@pytest.mark.parametrize("tell", ["answer('{sum}', sum=total)", "answer('{total}', total=str(total))",
                                  "answer('{total}', total=-total)", "answer('{total}', total=total, more=len(rows))"])
def test_values_that_do_not_are_told_and_mended(ask, tell):
    folder = ask.folder({**FILES, "schema.json": json.dumps(SCHEMA)})
    args = ["--schema", folder / "schema.json"]
    report = ask(QUESTION, [fence(SUM), fence(tell), *END], FILES, args=args, folder=folder, watch=True)
    assert report["status"] == "verified" and report.outcome("schema") == "pass", report["checks"]
    assert "schema" in report.told(2), report.told(2)


def test_the_trees_are_what_they_were():
    """The figures above are of this table."""
    assert sum(TREES.values()) == tables.TOTAL == 1262.625 and max(TREES, key=TREES.get) == "ash"
