"""What `cupel ask` shows of the proof, and what a caller may demand: --why, --judge, --schema, --instructions, the
model's questions to the user, the time of its replies."""
import json
import os
import re

import pytest

from test_ask_cli import ANSWER, EVIL, PASS, PRINT, QUESTION, ask, at_terminal, lines_of, script, task_of

TABLE = "city,t\nOslo,1.5\nRome,20\nOslo,2.5\n"
OSLO = "What is the mean t of Oslo?"
MEAN = "```python\nimport csv\nrows = [row for row in csv.DictReader(open('t.csv'))\n" \
       "        if row['city'] == 'Oslo']\n" \
       "unused = 5\nmean = sum(float(row['t']) for row in rows) / len(rows)\nn = len(rows)\n" \
       "answer('{mean:.1f} over {n} rows', mean=mean, n=n)\n```"


def cell(code):
    return f"```python\n{code}\n```"


@pytest.fixture
def table(folder):
    path = folder / "t.csv"
    path.write_text(TABLE)
    path.chmod(0o644)
    return path


def watching(folder, *replies):
    """A model that keeps what it is sent in sent.jsonl."""
    (folder / "replies.json").write_text(json.dumps(replies))
    program = folder / "model"
    program.write_text("#!/usr/bin/python3 -Ss\nimport json, sys\n"
                       f"log = open({str(folder / 'sent.jsonl')!r}, 'a+')\nlog.seek(0)\nturn = len(log.readlines())\n"
                       "log.write(json.dumps(json.load(sys.stdin)) + '\\n')\n"
                       f"print(json.dumps({{'text': json.load(open({str(folder / 'replies.json')!r}))[turn]}}))\n")
    program.chmod(0o755)
    return f"exec:{program}"


def sent(folder):
    return [json.loads(line) for line in (folder / "sent.jsonl").read_text().splitlines()]


# --why.

WHY = """values
  mean = 2.0  data: t.csv
    cell 1:2     rows = [row for row in csv.DictReader(open('t.csv'))
                         if row['city'] == 'Oslo']
    cell 1:5     mean = sum(float(row['t']) for row in rows) / len(rows)

  n = 2  data: t.csv
    cell 1:2     rows = [row for row in csv.DictReader(open('t.csv'))
                         if row['city'] == 'Oslo']
    cell 1:6     n = len(rows)
"""


@pytest.mark.both
def test_each_value_is_shown_with_its_origin_and_with_why_its_lines(engine, folder, table):
    done = ask(engine, script(folder, MEAN, PASS), OSLO, table)
    assert (done.returncode, done.stdout) == (0, "2.0 over 2 rows\n"), done.stderr
    assert "values\n  mean = 2.0  data: t.csv\n  n    = 2  data: t.csv\nevidence" in done.stderr
    task = task_of(done)
    done = ask(engine, script(folder, MEAN, PASS), "-q", "--why", OSLO, table)
    assert done.stdout == "2.0 over 2 rows\n" and done.stderr == WHY
    shown = engine.cupel.run(["ask", "-q", "--show", task, "--why"], env=engine.use())
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, done.stdout, done.stderr)
    loud = ask(engine, script(folder, MEAN, PASS), "--why", OSLO, table)
    assert done.stderr in loud.stderr and "step 1" in loud.stderr
    again = engine.cupel.run(["ask", "--show", task_of(loud), "--why"], env=engine.use())
    assert again.stderr.splitlines() == lines_of(loud)


def test_why_at_a_terminal_has_colour(engine, folder, table):
    seen, code = at_terminal(engine, ["--model", script(folder, MEAN, PASS), "--why", OSLO, str(table)])
    assert code == 0 and "\x1b[1mvalues\x1b[0m" in seen and "\x1b[1mmean\x1b[0m = " in seen
    assert "\x1b[32mdata\x1b[0m: t.csv" in seen and "\x1b[2mcell 1:5   \x1b[0m  mean = sum(" in seen


def test_a_long_slice_is_cut_in_its_middle(engine, folder, table):
    steps = "\n".join(f"x = x + len(data) + {i}" for i in range(40))
    code = cell(f"data = open('t.csv').read()\nx = len(data)\n{steps}\nanswer('{{x}}', x=x)")
    done = ask(engine, script(folder, code), "--judge", "off", "-q", "--why", "What is x?", table)
    lines = done.stderr.splitlines()
    assert len(lines) == 2 + 9 + 1 + 6, done.stderr
    assert lines[2].split() == "cell 1:1 data = open('t.csv').read()".split()
    assert lines[11].strip() == "… 27 more lines" and lines[-1].endswith("x = x + len(data) + 39")


def test_many_values_are_counted_without_why(engine, folder, table):
    names = [f"v{i}" for i in range(11)]
    code = cell("n = len(open('t.csv').readlines())\n" + "\n".join(f"{name} = n + len('{name}')" for name in names) +
                "\nanswer('%s', %s)" % (" ".join(f"{{{name}}}" for name in names),
                                        ", ".join(f"{name}={name}" for name in names)))
    done = ask(engine, script(folder, code), "--judge", "off", "How many lines?", table)
    shown = done.stderr[done.stderr.index("\nvalues\n"):]
    assert re.findall(r"^  (v\d+) +=", shown, re.M) == names[:8] and "  … 3 more\n" in shown


def test_a_typed_value_says_so(engine, folder, table):
    code = cell("answer('{mean} degrees', mean=18.4)")
    done = ask(engine, script(folder, code), "--judge", "off", OSLO, table)
    assert done.returncode == 3 and re.search(r"^  mean = 18.4  typed: \S", done.stderr, re.M), done.stderr
    assert "\nunverified: " in done.stderr and "  ✗ values" in done.stderr


def test_hostile_code_and_values_are_shown_as_text(engine, folder, table):
    code = cell(f"text = open('t.csv').read()[:4] + {EVIL!r}  # {EVIL[:5]}\nanswer('{{text}}', text=text)")
    done = ask(engine, script(folder, code), "--judge", "off", "-q", "--why", "What is in it?", table)
    assert "\\x1b]0;owned" in done.stderr and not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", done.stderr)


# The judge, and what is not proven.

def test_without_a_verdict_the_end_says_what_is_not_proven(engine, folder):
    done = ask(engine, script(folder, PRINT), "--judge", "off", QUESTION)
    assert done.returncode == 0 and done.stdout == ANSWER + "\n"
    assert "\ncomputed: every value is computed, and the cells gave the same again\n" \
           "  not proven: that it is what the question asks; nobody judged it\n" in done.stderr
    done = ask(engine, script(folder, PRINT, "I cannot say."), QUESTION)
    assert done.returncode == 0 and "asks; the judge gave no verdict\n" in done.stderr
    done = ask(engine, script(folder, PRINT, PASS), QUESTION)
    assert done.returncode == 0 and "\nverified: " in done.stderr and "not proven" not in done.stderr


def test_the_judge_may_be_another_model(engine, folder):
    (folder / "judge").mkdir()
    judge = watching(folder / "judge", "FAIL: value: it is wrong", PASS)
    (folder / "judge").chmod(0o777)
    again = PRINT.replace("6 * 7", "7 * 6")
    done = ask(engine, script(folder, PRINT, again), "--judge", judge, QUESTION)
    assert done.returncode == 0 and "\nverified: " in done.stderr and "repair 1 of 3: judge" in done.stderr, done.stderr
    assert len(sent(folder / "judge")) == 2 and "value = 6 * 7" in json.dumps(sent(folder / "judge")[0])


def test_no_answer_in_the_data_has_a_code_of_its_own(engine, folder, table):
    code = cell("print(open('t.csv').read())\ncannot_answer('there are no winners in it')")
    done = ask(engine, script(folder, code), "Who won?", table)
    assert (done.returncode, done.stdout) == (7, "there are no winners in it\n") and "\nunanswerable: " in done.stderr


# --schema.

def schema(folder, content):
    path = folder / "schema.json"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def private(engine, path):
    """Root's file is for root alone: it is opened before the rights are dropped."""
    path.chmod(0o600 if engine.cupel.who == "root" else 0o644)
    return path


def test_the_values_satisfy_the_schema_and_come_typed(engine, folder, table):
    demands = {"type": "object", "required": ["mean"], "properties": {"mean": {"type": "number", "maximum": 100}}}
    path = private(engine, schema(folder, demands))
    done = ask(engine, script(folder, MEAN, PASS), "--json", "-q", "--schema", path, OSLO, table)
    report = json.loads(done.stdout)
    assert report["status"] == "verified" and report["values"] == {"mean": 2.0, "n": 2}
    demands["required"] = ["median"]
    done = ask(engine, script(folder, MEAN), "--json", "-q", "--schema", private(engine, schema(folder, demands)), OSLO,
               table)
    report = json.loads(done.stdout)
    assert done.returncode == 3 and ("schema", "fail") in [(c["check"], c["outcome"]) for c in report["checks"]]
    assert "median" in json.dumps(report["checks"])


@pytest.mark.parametrize("content,says", [
    (b"{", "the schema '"), (b"[1]", "is no object"), (b"", "the schema '"), (b'{"a": "\xff"}', "the schema '"),
    (b'{"a": "' + b"x" * (1 << 20) + b'"}', "has more than 1048576 bytes")],
                         ids=["cut", "list", "empty", "bytes", "long"])
def test_a_wrong_schema_is_refused_by_name(engine, folder, content, says):
    path = schema(folder, content)
    done = ask(engine, script(folder, PRINT, PASS), "--schema", path, QUESTION)
    assert done.returncode == 2 and done.stdout == "" and says in done.stderr and str(path) in done.stderr
    assert "step 1" not in done.stderr


# --instructions.

def test_instructions_reach_the_model(engine, folder):
    path = folder / "rules.txt"
    path.write_text("Call the result Ägir, always.\n")
    model = watching(folder, PRINT, PASS)
    done = ask(engine, model, "--instructions", private(engine, path), QUESTION)
    assert done.returncode == 0 and "Call the result Ägir, always." in sent(folder)[0]["system"], done.stderr


@pytest.mark.parametrize("content,says", [(b"\xff", "are not UTF-8 text"), (b"a\0b", "are not UTF-8 text"),
                                          (b"x" * 65537, "has more than 65536 bytes")], ids=["bytes", "nul", "long"])
def test_wrong_instructions_are_refused_by_name(engine, folder, content, says):
    path = folder / "rules.txt"
    path.write_bytes(content)
    done = ask(engine, script(folder, PRINT, PASS), "--instructions", path, QUESTION)
    assert done.returncode == 2 and done.stdout == "" and says in done.stderr and str(path) in done.stderr


# The model asks back.

ASKS = cell("ask_user('Which " + "\\x1b[2J" + " year?')")


def test_nobody_replies_without_a_terminal(engine, folder):
    done = ask(engine, script(folder, ASKS, PRINT, PASS), QUESTION, input="2024\n")
    assert done.returncode == 0 and "the model asks: Which \\x1b[2J year?\nreply: nobody is there\n" in done.stderr
    shown = engine.cupel.run(["ask", "--show", task_of(done)], env=engine.use())
    assert shown.stderr.splitlines() == lines_of(done)


@pytest.mark.parametrize("flags", [["-q"], ["--json"]], ids=["quiet", "json"])
def test_nobody_is_asked_where_nothing_is_shown(engine, folder, flags):
    seen, code = at_terminal(engine, ["--model", script(folder, ASKS, PRINT, PASS), *flags, QUESTION])
    assert code == 0 and "reply: " not in seen.replace("reply: nobody", ""), seen


def test_a_person_replies_at_the_terminal(engine, folder):
    model = watching(folder, ASKS, PRINT, PASS)
    seen, code = at_terminal(engine, ["--model", model, QUESTION], {"NO_COLOR": "1"},
                             keys=("reply: ", "The year 2024\n"))
    assert code == 0 and "the model asks: Which \\x1b[2J year?\r\nreply: The year 2024\r\n" in seen
    assert seen.count("the model asks") == 1 and "The user replies: The year 2024" in json.dumps(sent(folder)[1])


@pytest.mark.parametrize("key,code", [("\x04", 0), ("\x03", 130)], ids=["ctrl-d", "ctrl-c"])
def test_a_person_may_decline_to_reply(engine, folder, key, code):
    seen, returned = at_terminal(engine, ["--model", script(folder, ASKS, PRINT, PASS), QUESTION], {"NO_COLOR": "1"},
                                 keys=("reply: ", key))
    assert returned == code and ("The value is 42." in seen) == (code == 0), seen


# The time of replies.

@pytest.mark.full
def test_the_time_of_replies_has_a_limit_of_its_own(engine, folder):
    slow = folder / "slow"
    slow.write_text("#!/bin/sh\ncat >/dev/null\nsleep 2\ncat %s\n" % (folder / "reply.txt"))
    slow.chmod(0o755)
    (folder / "reply.txt").write_text(PRINT)
    os.chmod(folder / "reply.txt", 0o644)
    done = ask(engine, f"exec:{slow}", "--judge", "off", "--budget", "wall_s=60,model_s=1", QUESTION)
    assert done.returncode == 5 and "\nbudget_exhausted: " in done.stderr, done.stderr
    done = ask(engine, f"exec:{slow}", "--judge", "off", "--budget", "wall_s=60,model_s=none", QUESTION)
    assert done.returncode == 0 and done.stdout == ANSWER + "\n", done.stderr
