"""How tasks end: every end state, with its exit code, its reason and its report."""
import json
import re
import signal
import subprocess
import time

import pytest

import host
import models
import tables
from asking import fence
from tables import ANSWER, END, FILES, QUESTION, SUM, TELL

ID = re.compile(r"t_[0-9a-f]+")
FIELDS = {"task", "status", "answer", "values", "trace", "evidence", "checks", "artifacts", "steps", "cost"}
COSTS = {"usd", "input_tokens", "cached_tokens", "output_tokens", "requests", "model_s", "execution_s", "wall_s"}
FAILS = fence("raise ValueError('the same again')")


def test_verified(ask_as):
    report = ask_as(QUESTION, tables.total(), FILES)
    assert report["status"] == "verified" and FIELDS <= set(report)
    assert ID.fullmatch(report["task"]) and COSTS <= set(report["cost"])
    assert report["cost"]["requests"] == 3 and report["cost"]["usd"] is None
    assert report["answer"] == ANSWER and report["values"] == {"total": 1262.625}
    step, told = report["evidence"]
    assert step["run"].startswith("r_") and (step["status"], step["state"], step["n"]) == ("ok", "kept", 1)
    assert (told["status"], told["n"], told["code"]) == ("ok", 2, TELL)
    assert step["result"]["stdout"] == "total 1262.625\n" and step["code"].strip() == SUM.strip()


def test_computed(ask):
    """Nobody judged it: by the caller's wish, or because the judge says neither PASS nor FAIL."""
    report = ask(QUESTION, tables.total()[:2], FILES, args=["--judge", "off"])
    assert report["status"] == "computed" and report["answer"] == ANSWER, report["checks"]
    assert report.outcome("judge") is None and "nobody judged" in report["reason"]
    report = ask(QUESTION, tables.total(verdict="It looks right to me."), FILES)
    assert report["status"] == "computed" and report.outcome("judge") == "no_verdict", report["checks"]
    assert "no verdict" in report["reason"]


def test_unanswerable(ask):
    """After a look at the data the model says that it holds no answer: its own status, never verified."""
    replies = [fence(tables.READ + "print(list(rows)[:3])"), fence("cannot_answer('there are no years')")]
    report = ask("Which tree grew most in 1990?", replies, FILES, watch=True)
    assert (report["status"], report["answer"]) == ("unanswerable", "there are no years"), report
    assert report["values"] is None and report["checks"] == [] and report["reason"] and len(report.sent) == 2


def test_a_refusal_without_a_look_is_refused_once(ask):
    refusal = fence("cannot_answer('I do not know')")
    report = ask(QUESTION, [refusal, fence(SUM), *END], FILES, watch=True)
    assert report["status"] == "verified" and "not opened trees.csv" in report.told(1), report
    report = ask(QUESTION, [refusal, fence("x = 1\ncannot_answer('I do not know')")], FILES)
    assert report["status"] == "unverified" and "has not opened trees.csv" in report["reason"], report


def test_a_question_back_has_no_reply_here(ask):
    """No terminal: the model is told so, and decides."""
    replies = [fence(SUM + "\nask_user('Which total?')"), *END]
    report = ask(QUESTION, replies, FILES, watch=True)
    assert report["status"] == "verified" and "Nobody can reply" in report.told(1), report
    asked, = (event["data"] for event in ask.transcript(report) if event["kind"] == "asked")
    assert asked == {"question": "Which total?", "reply": None}


def test_tokens_are_counted_and_unknown_is_null(ask):
    usage = [{"input_tokens": 900, "output_tokens": 50}, {"input_tokens": 1000, "output_tokens": 12},
             {"input_tokens": 500, "output_tokens": 1}]
    replies = [{"text": text, "usage": used} for text, used in zip(tables.total(), usage)]
    cost = ask(QUESTION, replies, FILES)["cost"]
    assert (cost["input_tokens"], cost["output_tokens"], cost["usd"]) == (2400, 63, None)
    cost = ask(QUESTION, tables.total(), FILES)["cost"]
    assert cost["input_tokens"] is cost["output_tokens"] is cost["usd"] is None


def test_a_typed_answer_is_asked_once_to_be_a_call(ask):
    """It is shown, but nothing proves it."""
    report = ask("What does CSV stand for?", ["Comma-separated values."], watch=True)
    assert (report["status"], report["steps"], report["evidence"]) == ("unverified", 0, [])
    assert report["answer"] == "Comma-separated values." and report["reason"] == "typed, not computed"
    assert len(report.sent) == 2 and "calls answer(template" in report.told(1)
    report = ask(QUESTION, [fence(SUM), ANSWER, *END], FILES)
    assert report["status"] == "verified" and report["values"] == {"total": 1262.625}, report


def test_a_typed_answer_to_a_question_with_files_is_not_verified(ask):
    report = ask(QUESTION, [fence(SUM), ANSWER], FILES, watch=True)
    assert report["status"] == "unverified" and report["steps"] == 1 and report["answer"] == ANSWER
    report = ask(QUESTION, [fence(SUM), ANSWER], FILES)  # and the replies are at their end
    assert report["status"] == "unverified" and "typed, not computed" in report["reason"]


def test_stuck(ask):
    report = ask(QUESTION, [FAILS], FILES, watch=True)
    assert report["status"] == "stuck" and report["reason"] and report["hint"]
    assert "the same again" in json.dumps(report) and report["evidence"]


def test_budget_exhausted(ask):
    replies = [fence(f"print({number})") for number in range(9)]
    report = ask(QUESTION, replies, FILES, args=["--max-steps", "2"], watch=True)
    assert report["status"] == "budget_exhausted" and report["steps"] == 2 and "step" in report["reason"]


def test_no_replies_left_is_failed(ask):
    report = ask(QUESTION, [fence(SUM)], FILES)
    assert report["status"] == "failed" and report["reason"] and report["steps"] == 1


@pytest.mark.parametrize("program", ["exit 3", "kill -9 $$"])
def test_a_model_that_breaks(ask, folder, program):
    report = ask(QUESTION, model=ask.program(folder, f"#!/bin/sh\n{program}\n"))
    assert report["status"] in ("failed", "stuck") and report["reason"] and report["hint"]


def test_a_model_that_is_not_there(ask):
    done = ask.cupel.run(["ask", "--json", "--model", "replay:none.jsonl", QUESTION], env=ask.engine.use())
    assert done.returncode in (1, 2) and "none.jsonl" in done.stdout + done.stderr


def test_no_model_at_all_says_how_to_get_one(ask):
    done = ask.cupel.run(["ask", QUESTION], env=ask.engine.use())
    assert done.returncode in (1, 2) and "--model" in done.stderr


@pytest.mark.parametrize("content", ["", "{}", "[", '{"text": 1}\n'])
def test_replies_that_are_none(ask, folder, content):
    (folder / "r.jsonl").write_text(content)
    done = ask.cupel.run(["ask", "--json", "--model", f"replay:{folder}/r.jsonl", QUESTION], env=ask.engine.use())
    assert done.returncode in (1, 2) and json.loads(done.stdout)


def test_an_empty_reply_is_asked_again_and_then_the_end(ask, folder):
    report = ask(QUESTION, model=ask.program(folder, "#!/bin/sh\ncat >/dev/null\n"))
    assert report["status"] in ("failed", "stuck") and report["answer"] is None and report["reason"]


def test_words_that_are_no_json_are_the_reply(ask, folder):
    report = ask(QUESTION, model=ask.program(folder, "#!/bin/sh\ncat >/dev/null\necho 'just words, and no JSON'\n"))
    assert report["status"] == "unverified" and report["answer"].strip() == "just words, and no JSON"


def test_bytes_that_are_no_text(ask, folder):
    report = ask(QUESTION, model=ask.program(folder, "#!/bin/sh\ncat >/dev/null\nhead -c 3000 /dev/urandom\n"))
    assert report["status"] in ("failed", "unverified", "stuck") and report["steps"] == 0


def test_an_endless_reply_ends(ask, folder):
    began = time.monotonic()
    report = ask(QUESTION, model=ask.program(folder, "#!/bin/sh\nexec yes 'and so on'\n"))
    assert report["status"] in ("failed", "stuck") and report["reason"] and report["steps"] == 0
    assert time.monotonic() - began < 60


def test_a_model_that_never_answers_ends_with_the_budget(ask, folder):
    report = ask(QUESTION, model=ask.program(folder, "#!/bin/sh\nsleep 600\n"), args=["--budget", "model_s=2"])
    assert report["status"] in ("failed", "budget_exhausted") and report["cost"]["wall_s"] < 30


def test_a_model_that_declines_is_denied(ask):
    with models.Anthropic([{"text": "", "stop": "refusal"}]) as fake:
        env = {**ask.engine.use(), "ANTHROPIC_BASE_URL": fake.url, "ANTHROPIC_API_KEY": fake.key}
        done = ask.cupel.run(["ask", "--json", "--yes", "--model", "anthropic/claude-opus-5", QUESTION], env=env)
    report = json.loads(done.stdout)
    assert (done.returncode, report["status"]) == (6, "denied") and report["reason"] and report["answer"] is None


def test_ctrl_c_cancels(ask, folder):
    model = ask.program(folder, "#!/bin/sh\ntouch asked\nsleep 600\n")
    child = ask.cupel.popen(["ask", "--json", "--model", model, QUESTION], env=ask.engine.use(), cwd=folder, text=True)
    try:
        assert host.wait_until((folder / "asked").exists, 20)
        child.send_signal(signal.SIGINT)
        out, told = child.communicate(timeout=20)
    except BaseException:
        child.kill()
        child.communicate()
        raise
    assert child.returncode == 130, told
    assert json.loads(out)["status"] == "failed" and "cancel" in json.loads(out)["reason"]


def test_ctrl_c_in_a_cell(ask, folder):
    model = ask.replay(folder, [fence("open('began', 'w')\nwhile True: pass")])
    child = ask.cupel.popen(["ask", "--json", "--model", model, QUESTION], env=ask.engine.use(), text=True)
    try:
        assert host.wait_until(lambda: any(row["status"] == "running" for row in ask.sessions()), 20)
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=20)
    except BaseException:
        child.kill()
        child.communicate()
        raise
    assert child.returncode == 130
    assert host.wait_until(lambda: not ask.sessions(), 10), "the session of a cancelled task lives on"


def test_an_engine_of_its_own(cupel, folder):
    """Without CUPEL_SOCKET nothing needs to run beforehand, and nothing is left."""
    (folder / "r.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in tables.total()))
    (folder / "trees.csv").write_text(tables.CSV)
    done = cupel.run(["ask", "--json", "--model", "replay:r.jsonl", QUESTION, "trees.csv"], cwd=folder, timeout=90)
    assert done.returncode == 0, (done.stdout, done.stderr)


def test_the_question_on_stdin(ask):
    folder = ask.folder(FILES)
    model = ask.replay(folder, tables.total())
    done = ask.cupel.run(["ask", "-q", "--model", model, "-", folder / "trees.csv"], input=QUESTION + "\n",
                         env=ask.engine.use())
    assert done.returncode == 0 and "1,262.625" in done.stdout and done.stderr == ""


def test_the_record_shows_it_again(ask):
    report = ask(QUESTION, tables.total(), FILES)
    events = ask.transcript(report)
    kinds = [event["kind"] for event in events]
    assert kinds[0] == "task" and kinds[-1] == "end" and {"code", "step", "check", "phase"} <= set(kinds)
    assert events[-1]["data"]["status"] == "verified"
    shown = ask.cupel.run(["ask", "--show", report["task"]], env=ask.engine.use())
    assert shown.returncode == 0 and "1,262.625" in shown.stdout + shown.stderr


def test_artifacts_are_saved_with_their_hashes(ask, folder):
    code = "import csv\nopen('a.txt', 'w').write('5 trees\\n' * len(list(csv.reader(open('trees.csv')))))\nprint(5)"
    tell = fence("answer('a.txt is written.', files=['a.txt'])")
    report = ask("Write a.txt from trees.csv.", [fence(code), tell], FILES, args=["-o", folder / "out"])
    row, = report["artifacts"]
    written = subprocess.run(["sha256sum", folder / "out/a.txt"], capture_output=True, text=True).stdout.split()[0]
    assert (row["path"], row["size_bytes"]) == ("a.txt", 104) and row["sha256"].endswith(written)
