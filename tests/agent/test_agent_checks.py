"""Verification in both directions: right answers pass, plausible wrong ones never do."""
import pytest

import tables
from asking import fence, plan, requirement
from tables import FILES, LARGEST, QUESTION, READ, SUM, TREES, listing, top

pytestmark = pytest.mark.sample(short=3)
CHART = READ + """
import matplotlib.pyplot as plt
plt.bar(list(rows), list(rows.values()))
plt.savefig("chart.png")
print(len(rows), "bars")
"""
WRITE = READ + """
with open("top.csv", "w") as out:
    out.write("tree,amount\\n" + "".join(f"{n},{rows[n]}\\n" for n in sorted(rows, key=rows.get)[::-1][:%d]))
print("wrote", %d)
"""
TOP_5 = "Which are the top 5 trees by amount in trees.csv?"
ASK_FILE = "Write the 5 largest trees of trees.csv to top.csv, as CSV with the columns tree and amount."
FILE_CHECK = plan(requirement("top.csv has five rows", file="top.csv", format="csv", rows=5,
                              columns=["tree", "amount"]))
MEAN = READ + "mean = sum(rows.values()) / len(rows)\nprint('mean', mean)"

SAVE_FIVE = "Save the five largest trees of trees.csv as top.csv."
MUCH = "for n in range(200_000): print('line', n)\n"

RIGHT = {
    "a number": (QUESTION, SUM, "The total is 1262.625."),
    "rounded": (QUESTION, SUM, "The total is about 1,262.6."),
    "in thousands": (QUESTION, SUM, "The total is 1.26k."),
    "with the question's own numbers": ("What is 5% of the total amount in trees.csv?",
                                        SUM + "\nprint('share', total * 0.05)", "5% of the total is 63.13."),
    "percent of a share": ("What share of the total amount is ash?", SUM + "\nprint('ash share', rows['ash'] / total)",
                           "ash has 23.8% of the total."),
    "the largest": ("Which tree has the largest amount in trees.csv?", top(12), "Ash has the largest amount: 300.0."),
    "the smallest": ("Which tree has the lowest amount in trees.csv?", READ + "print(rows)", "Fig, with 5.5."),
    "two lists": ("How much is the amount of oak, and of elm, in trees.csv?", top(12),
                  "oak and elm are 120.5 and 80.25."),
    "five for top 5": (TOP_5, top(5), listing(LARGEST[:5])),
    "a table": (TOP_5, top(5), "| tree | amount |\n|---|---|\n"
                + "\n".join(f"| {name} | {TREES[name]} |" for name in LARGEST[:5])),
    "the last value": (QUESTION, SUM.replace("print('total', total)", "total"), "The total is 1,262.63."),
    "a file": (ASK_FILE, FILE_CHECK + WRITE % (5, 5), "top.csv has the 5 largest trees, from ash to pear."),
    "a file of the question's count": (SAVE_FIVE, WRITE % (5, 5), "top.csv has the 5 largest trees."),
    "a test of the question": (QUESTION + "\nassert round(total, 3) == 1262.625\nassert len(rows) == 12\n", SUM,
                               "The total is 1,262.63."),
    "files that are listed": (QUESTION, SUM.replace('open("trees.csv")', "open(__import__('os').listdir('.')[0])"),
                              "The total is 1,262.63."),
    "much output": (QUESTION, MUCH + SUM, "The total is 1,262.63."),
    "a picture": ("Draw the amounts in trees.csv as a bar chart, chart.png.", CHART, "chart.png shows 12 bars."),
}


def reply(code):
    """A cell, perhaps behind a plan."""
    return fence(code.partition("</plan>")[2], code.partition("</plan>")[0] + "</plan>") if "</plan>" in code \
        else fence(code)


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_answer_is_verified(ask, name):
    question, code, answer = RIGHT[name]
    report = ask(question, [reply(code), answer], FILES)
    assert report["status"] == "verified", (report["reason"], report["checks"])
    assert report["answer"] == answer and report["steps"] == 1
    assert report.outcome("rerun") == "pass" and "fail" not in dict(report.kinds).values()


# question, code, answer, the check that must fail
WRONG = {
    "top 10 for top 5": (TOP_5, top(10), listing(LARGEST[:10]), "checklist"),
    "four for top 5": (TOP_5, top(5), listing(LARGEST[:4]), "checklist"),
    "a number from nowhere": (QUESTION, SUM, "The total is 1,417.00.", "numbers"),
    "a digit off": (QUESTION, SUM, "The total is 1,262.64.", "numbers"),
    "the wrong magnitude": (QUESTION, SUM, "The total is 1.26M.", "numbers"),
    "another row's number": ("How much is the amount of oak, and of elm, in trees.csv?", top(12),
                             "oak: 300.0\nelm: 80.25", "numbers"),
    "two rows' numbers exchanged": (TOP_5, top(5), listing(LARGEST[:5], {**TREES, "ash": 230.0, "lime": 300.0}),
                                    "numbers"),
    "a name from nowhere": ("Which tree has the largest amount in trees.csv?", top(1),
                            "The largest amount has Sequoia: 300.0.", "names"),
    "another name for a number": ("Which tree has the largest amount in trees.csv?", top(1),
                                  "Elm has the largest amount: 300.0.", "numbers"),
    "not the largest": ("Which tree has the largest amount in trees.csv?", top(12),
                        "Oak has the largest amount: 120.5.", "numbers"),
    "not the smallest": ("Which tree has the lowest amount in trees.csv?", READ + "print(rows)",
                         "Oak has the lowest amount: 120.5.", "numbers"),
    "two numbers exchanged in a list": ("How much is the amount of oak, and of elm, in trees.csv?", top(12),
                                        "oak and elm are 80.25 and 120.5.", "numbers"),
    "a name from nowhere among five": (TOP_5, top(5), "The top 5 are ash, lime, yew, oak and sequoia.", "names"),
    "a number under another label": (QUESTION, MEAN, "The total is 105.22.", "numbers"),
    "a hundredth of it": ("What share of the total amount is ash?", SUM + "\nprint('ash share', rows['ash'] / total)",
                          "ash has 0.238% of the total.", "numbers"),
    "a missing file": (ASK_FILE, top(5), "top.csv has the 5 largest trees.", "checklist"),
    "too many rows in the file": (ASK_FILE, FILE_CHECK + WRITE % (7, 5), "top.csv has the 5 largest trees.",
                                  "checklist"),
    "no rows in the file": (ASK_FILE, FILE_CHECK + WRITE % (0, 5), "top.csv has the 5 largest trees.", "checklist"),
    "one of two files": ("Draw the amounts in trees.csv as chart.png and as chart.svg.", CHART,
                         "chart.png and chart.svg show 12 bars.", "checklist"),
    "a header and no rows": (SAVE_FIVE, WRITE % (0, 5), "top.csv has the 5 largest trees.", "checklist"),
    "a header and no rows, and a plan that asks for less": (
        SAVE_FIVE, plan(requirement("top.csv", file="top.csv", format="csv")) + WRITE % (0, 5),
        "top.csv has the 5 largest trees.", "checklist"),
    "a test of the question does not hold": (QUESTION + "\nassert total == 1263\n", SUM, "The total is 1,262.63.",
                                             "tests"),
    "a test of the question beside the plan's": (
        QUESTION + "\nassert total == 1263\n", plan(requirement("it is large", code="assert total > 5")) + SUM,
        "The total is 1,262.63.", "tests"),
    "another middle of much output": (
        QUESTION, MUCH + "import random\nprint('x' * random.getrandbits(21))\n" + MUCH + SUM,
        "The total is 1,262.63.", "rerun"),
    "another end of much output": (QUESTION, MUCH + "import random\nprint('chance', random.random())\n" + SUM,
                                   "The total is 1,262.63.", "rerun"),
    "another column": (ASK_FILE, (FILE_CHECK + WRITE % (5, 5)).replace('"tree,amount\\n"', '"name,value\\n"'),
                       "top.csv has the 5 largest trees.", "checklist"),
    "a picture that is none": ("Draw the amounts in trees.csv as a bar chart, chart.png.",
                               READ + "open('chart.png', 'w').write('a chart')\nprint(len(rows), 'bars')",
                               "chart.png shows 12 bars.", "checklist"),
    "a table that is JSON": (ASK_FILE, FILE_CHECK + READ + "import json\njson.dump({'tree': 5}, open('top.csv', 'w'))\n"
                             "print('wrote', 5)", "top.csv has the 5 largest trees.", "checklist"),
    "an answer to another question": (TOP_5, MEAN, "The mean amount is 105.22.", "checklist"),
    "no number for how many": ("How many trees does trees.csv have?", top(1), "The largest tree is ash.", "checklist"),
    "another result the second time": (QUESTION, SUM + "\nimport random\nprint('chance', random.random())",
                                       "The total is 1,262.63.", "rerun"),
    "its own test does not hold": (QUESTION, plan(requirement("it is small", code="assert total < 1000")) + SUM,
                                   "The total is 1,262.63.", "tests"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_answer_is_not(ask, name):
    question, code, answer, check = WRONG[name]
    report = ask(question, [reply(code), answer], FILES, watch=True)
    assert report["status"] in ("unverified", "stuck"), (report["status"], report["checks"])
    assert report.outcome(check) == "fail", (check, report["checks"])
    failed = next(row for row in report["checks"] if row["outcome"] == "fail")
    assert failed["detail"] and failed["repair"]
    assert report["reason"]


MADE_UP = {
    "printed": READ + "print('total 1262.625')",
    "named": READ + "total = 1262.625\nprint('total', total)",
    "as text": READ + "print('total', float('1262.625'))",
    "added up": READ + "total = 1000 + 262.625\nprint('total', total)",
    "without the file": "rows = {'oak': 1262.625}\nprint('total', sum(rows.values()))",
}


@pytest.mark.parametrize("name", MADE_UP)
def test_a_literal_proves_nothing(ask, name):
    """The number is in the output, but no code has computed it from the data."""
    report = ask(QUESTION, [fence(MADE_UP[name]), "The total is 1,262.625."], FILES, watch=True)
    assert report["status"] != "verified", report["checks"]


TYPED_IN = "rows = {'oak': 120, 'elm': 80}\ntotal = sum(rows.values())\nprint('total', total)"


def test_an_answer_without_its_input_is_not_verified(ask):
    """The data is typed in: computed it is, but not from the file. What reads it mends it."""
    report = ask(QUESTION, [fence(TYPED_IN), "The total is 200."], FILES, watch=True)
    assert report["status"] == "unverified" and report.outcome("inputs") == "fail", report["checks"]
    assert "no cell reads trees.csv" in report.told()
    report = ask(QUESTION, [fence(TYPED_IN), "The total is 200.", fence(SUM), "The total is 1,262.63."], FILES)
    assert report["status"] == "verified" and report.outcome("inputs") == "pass", report["checks"]
    names = [name for name, _ in report.kinds]
    assert names.index("inputs") < names.index("numbers")


def test_without_files_no_input_is_missed(ask):
    report = ask("What is 120 + 80?", [fence(TYPED_IN), "It is 200."])
    assert report.outcome("inputs") == "skip" and report["status"] == "verified", report["checks"]


def test_two_large_outputs_are_compared(ask):
    """Each has lost its middle, and in the proof run one its end and the other its beginning."""
    replies = [fence(MUCH), fence(MUCH.replace("line", "row")), fence(SUM), "The total is 1,262.63."]
    report = ask(QUESTION, replies, FILES)
    assert report["status"] == "verified" and report.outcome("rerun") == "pass", report["checks"]
    assert report["evidence"][0]["result"]["truncated"]


def test_what_fails_goes_back_to_the_model(ask):
    """And an answer that is mended is verified."""
    report = ask(QUESTION, [fence(SUM), "The total is 1,417.00.", "The total is 1,262.63."], FILES, watch=True)
    assert report["status"] == "verified", report["checks"]
    assert "1,417" in report.told(2) and report["answer"] == "The total is 1,262.63."
    assert len(report.sent) == 3 and report["steps"] == 1


def test_a_missing_file_can_be_made_later(ask):
    replies = [fence(top(5)), "top.csv has the 5 largest trees.", fence(WRITE.lstrip() % (5, 5)),
               "top.csv has the 5 largest trees."]
    report = ask(ASK_FILE, replies, FILES, watch=True)
    assert report["status"] == "verified", report["checks"]
    assert "top.csv" in report.told(2) and [row["path"] for row in report["artifacts"]] == ["top.csv"]


def test_what_a_failed_cell_made_is_no_part_of_the_proof(ask):
    """A later cell builds on it: it is told that the names are not there, or the proof fails."""
    replies = [fence(READ + "print(rows['cedar'])"), fence("total = sum(rows.values())\nprint('total', total)"),
               fence(SUM), "The total is 1,262.63."]
    report = ask(QUESTION, replies, FILES, watch=True)
    assert report["status"] == "verified", (report["checks"], report["script"])
    assert "cedar" not in report["script"] and report["evidence"][1]["status"] in ("not_run", "ok")


VERDICTS = {"PASS": ("pass", "verified"), "PASS\nIt is well founded.": ("pass", "verified"),
            "FAIL: the unit is missing": ("fail", "unverified"), "I think that it passes.": ("no_verdict", "verified"),
            "PASSABLE, but FAIL": ("no_verdict", "verified"), "": ("no_verdict", "verified")}


@pytest.mark.parametrize("verdict", VERDICTS)
def test_a_verifier_is_asked(ask, verdict):
    outcome, status = VERDICTS[verdict]
    folder = ask.folder(FILES)
    verifier, seen = ask.model(folder, [verdict], "verifier")
    report = ask(QUESTION, tables.total(), FILES, args=[f"--verifier={verifier}"], watch=True, folder=folder)
    assert report.outcome("verifier") == outcome, report["checks"]
    assert (report["status"] == "verified") == (status == "verified"), report["checks"]
    sent = seen.read_text()
    assert QUESTION in sent and "1262.625" in sent
    if outcome == "fail":
        assert "the unit is missing" in report.request()


def test_the_verifier_sees_no_conversation(ask):
    folder = ask.folder(FILES)
    verifier, seen = ask.model(folder, ["PASS"], "verifier")
    marked = [fence(SUM, "SECRET-REASONING: I feel lucky."), "The total amount is 1,262.625."]
    report = ask(QUESTION, marked, FILES, args=[f"--verifier={verifier}"], folder=folder)
    assert report["status"] == "verified" and "SECRET-REASONING" not in seen.read_text()


def test_without_a_verifier_none_is_asked(ask):
    assert ask(QUESTION, tables.total(), FILES).outcome("verifier") is None


SECOND = READ + "other = 0.0\nfor name in rows:\n    other += rows[name]\nprint('total', other)"


@pytest.mark.parametrize("second,outcome", [(SECOND, "pass"), (SECOND.replace("0.0", "7.0"), "fail")])
def test_a_second_method_is_asked_for(ask, second, outcome):
    replies = [fence(SUM), *["The total is 1,262.625.", fence(second)] * 5]
    report = ask(QUESTION, replies, FILES, args=["--cross-check"], watch=True)
    assert report.outcome("cross_check") == outcome, report["checks"]
    assert (report["status"] == "verified") == (outcome == "pass")
