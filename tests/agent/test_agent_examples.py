"""The shipped cases: each with its input, question and scripted replies, ends as its expect.json says."""
import json
import subprocess

import pytest

import host
from asking import EXIT, OF_A_CASE, Answer, copy_case

EXAMPLES = host.REPO / "examples"
CASES = sorted(path.parent.name for path in EXAMPLES.glob("*/expect.json"))
NAMES = {"sales", "cleanup", "finance", "intervals", "repairs", "impossible", "injection"}
DATA_MAX = 60 << 10


def run_case(ask, name, folder):
    """The report of a shipped case, and the folder with what it made."""
    files = copy_case(EXAMPLES / name, folder)
    question = (folder / "question.txt").read_text().strip()
    done = ask.cupel.run(["ask", "--json", "--model", "replay:replies.jsonl", "-o", "out", question, *files],
                         cwd=folder, env=ask.engine.use(), timeout=90)
    assert done.stdout, done.stderr
    report = Answer(json.loads(done.stdout))
    report.done = done
    return report


def test_every_case_is_whole():
    assert set(CASES) == NAMES
    listed = (EXAMPLES / "README.md").read_text()
    for name in CASES:
        files = {path.name: path for path in (EXAMPLES / name).iterdir()}
        assert {"question.txt", "replies.jsonl", "expect.json"} < set(files) and f"{name}/" in listed
        assert sum(path.stat().st_size for path in files.values()) < DATA_MAX


def commands():
    """{case: the command that README has for it}."""
    lines = [line for line in (EXAMPLES / "README.md").read_text().splitlines() if line.startswith("cd examples/")]
    return {line.split()[1].removeprefix("examples/"): line.partition("&& ")[2] for line in lines}


def test_readme_has_a_command_for_every_case():
    told = commands()
    for name in CASES:
        inputs = {path.name for path in (EXAMPLES / name).iterdir()} - OF_A_CASE
        assert inputs and inputs == set(told[name].split("<")[0].split()[-len(inputs):]), told[name]


def test_a_command_of_readme_runs(ask, folder):
    """As it is written, by a shell."""
    copy_case(EXAMPLES / "impossible", folder)
    command = commands()["impossible"].replace("cupel", ask.cupel.program, 1)
    done = subprocess.run(["sh", "-c", command], cwd=folder, env={**ask.cupel.env, **ask.engine.use()}, text=True,
                          capture_output=True, timeout=90, **ask.cupel.identity())
    assert done.returncode == EXIT["unanswerable"] and "nothing that measures satisfaction" in done.stdout, done.stderr


@pytest.mark.parametrize("name", CASES)
def test_the_case_ends_as_expected(ask_as, folder, name):
    expect = json.loads((EXAMPLES / name / "expect.json").read_text())
    report = run_case(ask_as, name, folder)
    story = json.dumps({key: report[key] for key in ("status", "reason", "checks", "answer")}, indent=1)
    assert report["status"] == expect["status"], story
    assert report.done.returncode == EXIT[expect["status"]]
    for check, outcome in expect["checks"].items():
        assert report.outcome(check) == outcome, (check, story)
    assert sorted(row["path"] for row in report["artifacts"]) == sorted(expect["artifacts"])
    for path in expect["artifacts"]:
        assert (folder / "out" / path).stat().st_size > 0
    for words in expect["answer_contains"]:
        assert words in report["answer"], story
    assert report["steps"] == expect["steps"]
