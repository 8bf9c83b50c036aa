"""Budgets: each ends a task that passes it, is shown to the model, and leaves room for an answer."""
import json
import re

import pytest

import models
import tables
from asking import fence
from tables import ANSWER, END, FILES, QUESTION, SUM, TELL

COUNT = [fence(f"print({number})") for number in range(9)]


def test_steps_have_a_limit_and_a_forced_answer(ask):
    """The last step is the answer's: before it the model is told so, and what it then calls counts."""
    replies = [fence(SUM), fence("print(1)"), *END]
    report = ask(QUESTION, replies, FILES, args=["--max-steps", "3"], watch=True)
    assert report["steps"] == 3 and report["answer"] == ANSWER and report["status"] == "verified", report["checks"]
    assert "one more cell is run" in report.told(2) and "one more cell" not in report.request(1)
    assert len(report.sent) == 4


def test_a_forced_answer_that_is_not_proven_is_the_end_of_the_budget(ask):
    """No step is left to mend it: the answer is shown, and what failed is said."""
    replies = [fence(SUM), fence(TELL.replace("=total)", "=1262.625)"))]
    report = ask(QUESTION, replies, FILES, args=["--max-steps", "2"], watch=True)
    assert report["status"] == "budget_exhausted" and report["answer"] == ANSWER, report
    assert "values" in report["reason"] and report.outcome("values") == "fail" and len(report.sent) == 2


def test_a_forced_answer_may_be_that_there_is_none(ask):
    replies = [fence(SUM), fence("cannot_answer('there are no years in ' + str(len(rows)) + ' rows')")]
    report = ask("What was the total in 1990?", replies, FILES, args=["--max-steps", "2"])
    assert report["status"] == "unanswerable" and "12 rows" in report["answer"], report


def test_who_goes_on_computing_in_the_answer_phase_gets_no_step_more(ask):
    report = ask(QUESTION, COUNT, FILES, args=["--max-steps", "2"], watch=True)
    assert report["status"] == "budget_exhausted" and report["steps"] == 2
    assert [step["result"]["stdout"] for step in report["evidence"] if step["run"]] == ["0\n", "1\n"]


def test_twelve_steps_by_default(ask):
    replies = [fence(f"print({number})") for number in range(20)]
    report = ask(QUESTION, replies, FILES, watch=True)
    assert report["status"] == "budget_exhausted" and report["steps"] == 12


def test_the_model_is_told_what_is_left(ask):
    report = ask(QUESTION, [fence(SUM), *END], FILES, args=["--max-steps", "7"], watch=True)
    assert re.search(r"\b6\b[^\n]{0,40}(step|cell)|(step|cell)[^\n]{0,40}\b6\b", report.told(1)), report.told(1)


def test_wall_time(ask, folder):
    """A cell that would take longer is cut, and so is the task."""
    report = ask(QUESTION, [fence("while True: pass")], FILES, args=["--budget", "wall_s=3"], watch=True)
    assert report["status"] == "budget_exhausted", report
    assert report["cost"]["wall_s"] < 25 and "time" in report["reason"]


def test_reply_time_is_a_budget_of_its_own(ask, folder):
    """A slow model uses up model_s, and nothing of wall_s."""
    slow = f"#!/bin/sh\ncat >/dev/null\nsleep 1.2\nprintf '```python\\nprint(%s)\\n```' $(date +%N)\n"
    report = ask(QUESTION, model=ask.program(folder, slow), args=["--budget", "wall_s=900,model_s=4"])
    assert report["status"] == "budget_exhausted" and "reply time" in report["reason"], report
    assert 1 <= report["steps"] <= 4 and report["cost"]["model_s"] >= 1.2


def test_execution_time(ask):
    spin = "import time\nend = time.time() + 0.7\nwhile time.time() < end: pass\n"
    replies = [fence(f"{spin}print({number})") for number in range(9)]
    report = ask(QUESTION, replies, FILES, args=["--budget", "execution_s=1"], watch=True)
    assert report["status"] == "budget_exhausted" and report["steps"] <= 3, report
    assert report["cost"]["execution_s"] < 10


def test_tokens(ask):
    replies = [{"text": text, "usage": {"input_tokens": 4000, "output_tokens": 1000}} for text in COUNT]
    report = ask(QUESTION, replies, FILES, args=["--budget", "tokens=12000"], watch=True)
    assert report["status"] == "budget_exhausted" and "token" in report["reason"]
    assert report["cost"]["input_tokens"] + report["cost"]["output_tokens"] <= 20000 and report["steps"] <= 3


def test_artifact_bytes(ask):
    replies = [fence(f"open('f{n}.bin', 'wb').write(bytes(600_000))\nprint('wrote', {n})") for n in range(4)]
    replies.append(fence("answer('{n} bytes are written.', n=600_000 * 4)"))
    report = ask("Write a large file.", replies, args=["--budget", "artifact_bytes=1M"], watch=True)
    assert report["status"] != "verified"
    assert sum(row["size_bytes"] for row in report["artifacts"]) <= 1 << 20
    assert "artifact" in (report["reason"] or "") + report.request()


@pytest.mark.parametrize("budget", ["steps=0", "steps=1.5", "wall_s=x", "usd=-1", "unknown=1", "", "steps=none",
                                    "steps"])
def test_a_budget_that_is_none_is_refused(ask, folder, budget):
    model = ask.replay(folder, tables.total())
    done = ask.cupel.run(["ask", "--model", model, "--budget", budget, QUESTION], env=ask.engine.use())
    assert done.returncode == 2 and "budget" in done.stderr


def test_money_cannot_bound_a_price_that_nobody_knows(ask, folder):
    model = ask.program(folder, "#!/bin/sh\ntouch called\n")
    done = ask.cupel.run(["ask", "--json", "--model", model, "--budget", "usd=0.01", QUESTION], env=ask.engine.use(),
                         cwd=folder)
    assert done.returncode in (1, 2, 6) and "price" in done.stdout + done.stderr and not (folder / "called").exists()


@pytest.mark.parametrize("usd,requests", [("0.0001", 0), ("1", 2)])
def test_money_is_reserved_before_it_is_spent(ask, usd, requests):
    """A request that could cost more than there is left is not made."""
    with models.Anthropic([{"text": "Comma-separated values."}] * 3) as fake:
        env = {**ask.engine.use(), "ANTHROPIC_BASE_URL": fake.url, "ANTHROPIC_API_KEY": fake.key}
        done = ask.cupel.run(["ask", "--json", "--yes", "--model", "anthropic/claude-opus-5", "--budget", f"usd={usd}",
                              "What does CSV stand for?"], env=env)
        assert len(fake.completions) == requests, done.stdout
    report = json.loads(done.stdout)
    assert report["status"] == ("unverified" if requests else "budget_exhausted"), report
    assert bool(report["cost"]["usd"]) == bool(requests)
