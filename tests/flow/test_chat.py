"""`cupel chat`: questions one after another on one session, at a terminal and without one."""
import json
import os
import re
import signal

import pytest

import host
from test_ask_cli import EVIL, alive, script
from test_ask_why import sent, watching
from test_repl import Terminal


def cell(code, before="Let me compute it."):
    return f"{before}\n```python\n{code}\n```\n"


FIRST = cell("x = 6 * 7\nanswer('It is {x}.', x=x)")
SECOND = cell("y = x // 2\nanswer('Half of it is {y}.', y=y)")
SLEEP = cell("import time\nprint('beg' + 'un', flush=True)\ntime.sleep(60)")
ASKED = "What is 6 times 7?"
HALF = "What is it divided by 2?"
TABLE = "name,amount\nAnn,5\nBob,7\n"
TOTAL = cell("import csv\ntotal = sum(int(row['amount']) for row in csv.DictReader(open('sales.csv')))\n"
             "answer('The total is {total}.', total=total)")


def chat(engine, model, text, *args, judge="off", **options):
    return engine.cupel.run(["chat", "--model", model, "--judge", judge, *args], input=text, timeout=90,
                            **{**options, "env": {**engine.use(), **options.get("env", {})}})


# Without a terminal.

def test_questions_share_names_and_each_is_proven(engine, folder):
    done = chat(engine, script(folder, FIRST, SECOND), f"{ASKED}\n\n{HALF}\n")
    assert (done.returncode, done.stdout) == (0, "It is 42.\nHalf of it is 21.\n"), done.stderr
    assert done.stderr.count("\ncomputed: ") == 2 and f"{HALF}\n" in done.stderr
    assert "\x1b" not in done.stderr  # and it is brief:
    assert not re.search(r"^(budget|left|evidence|cost|checks) ?", done.stderr, re.M)
    assert host.wait_until(lambda: not alive(engine), 10)


def test_the_exit_code_is_that_of_the_last_question(engine, folder):
    model = script(folder, FIRST, cell("cannot_answer('no data')"))
    done = chat(engine, model, f"{ASKED}\nWho won?\n")
    assert done.returncode == 7 and done.stdout == "It is 42.\nno data\n", done.stderr
    assert chat(engine, model, "").returncode == 0
    assert chat(engine, model, f"{ASKED}\n:nope\n").returncode == 2
    assert chat(engine, model, f"{ASKED}\n:nope\n:quit\n{ASKED}\n").stdout == "It is 42.\n"


@pytest.mark.parametrize("args,says", [(["-"], "standard input holds the questions"), (["--json"], "--json"),
                                       (["/no-such-file"], "/no-such-file"), (["--judge"], "judge")])
def test_a_wrong_command_line_is_refused(engine, folder, args, says):
    done = engine.cupel.run(["chat", "--model", script(folder, FIRST), *args], input=ASKED, env=engine.use())
    assert done.returncode == 2 and done.stdout == "" and says in done.stderr, done.stderr


def test_a_check_that_fails_is_shown(engine, folder):
    done = chat(engine, script(folder, cell("answer('It is {x}.', x=41)"), FIRST), f"{ASKED}\n")
    assert done.returncode == 0 and re.search(r"^checks\n  ✗ values: .*\nrepair 1 of 3: values$", done.stderr, re.M)
    assert "✓" not in done.stderr


def test_undo_takes_a_question_back_with_its_state(engine, folder):
    model = script(folder, FIRST, cell("x = x + 1\nanswer('Now {x}.', x=x)"), SECOND)
    done = chat(engine, model, f"{ASKED}\nWhat is 1 more?\n:undo\n{HALF}\n:script\n:undo\n:undo\n:undo\n")
    if "not kept" in done.stderr:  # an ordinary user with one uid
        return
    assert done.stdout.startswith("It is 42.\nNow 43.\nHalf of it is 21.\n"), done.stderr
    assert "x + 1" not in done.stdout and "y = x // 2" in done.stdout
    assert done.stderr.count("the last question is taken back") == 3 and done.returncode == 2
    assert "there is no question to take back" in done.stderr


def test_undo_forgets_the_files_of_the_question(engine, place):
    folder = place.fresh("undone", 0o777)
    made = [cell(f"open('a.txt', 'w').write('{i}')\nopen('{i}.txt', 'w').write('{i}')\nanswer('{{x}}', x=6 * 7)")
            for i in range(2)]
    done = chat(engine, script(folder, *made), f"{ASKED}\n{ASKED}\n:undo\n:files\n:save out\n", cwd=folder)
    if "not kept" in done.stderr:
        return
    assert [path.name for path in (folder / "out").iterdir()] == ["0.txt"], done.stderr
    assert "1.txt" not in done.stdout and "a.txt" not in done.stdout


@pytest.mark.full
def test_undo_in_a_long_talk_takes_the_right_messages_back(engine, folder):
    """The oldest messages of a long talk are dropped."""
    long = "# " + "x" * 90
    replies = [cell(f"v{i} = 6 * 7\nanswer('{{x}}', x=v{i})\n" + f"{long}\n" * 200) for i in range(12)]
    asked = [f"Number {i:02}: what is 6 times 7?" for i in range(12)]
    text = "\n".join([*asked[:10], ":undo", ":undo", asked[10]]) + "\n"
    done = chat(engine, watching(folder, *replies), text)
    if "not kept" in done.stderr:
        return
    told = json.dumps(sent(folder)[-1]["messages"])
    there = [line for line in asked if line in told]
    assert asked[10] in there and asked[7] in there and not {asked[8], asked[9]} & set(there), (there, done.stderr)
    assert asked[2] not in there  # it was dropped, else the test shows nothing


@pytest.mark.full
def test_eight_questions_can_be_taken_back(engine, folder):
    model = script(folder, *(cell(f"v{i} = 6 * 7\nanswer('{{x}}', x=v{i})") for i in range(10)), FIRST)
    done = chat(engine, model, f"{ASKED}\n" * 10 + ":undo\n" * 10 + f"{ASKED}\n")
    if "the state before this question was not kept" in done.stderr and "is taken back" not in done.stderr:
        return
    assert done.stderr.count("the last question is taken back") == 8, done.stderr
    assert done.stderr.count("the state before this question was not kept") == 2 and "It is 42." in done.stdout


def test_commands(engine, place):
    folder = place.fresh("chat", 0o777)
    (folder / "sales.csv").write_text(TABLE)
    made = cell("open('n.txt', 'w').write('new')\nanswer('It is {x}.', x=6 * 7)")
    text = f":why\n:save out\n{ASKED}\n:files\n:why\n:script\n:save out/deep\n" \
           ":help\n:bogus\n:undoo\n:why not\n:add\n:add -:x\n:save\n"
    done = chat(engine, script(folder, made), text, "sales.csv:in/sales.csv", cwd=folder)
    assert f"24 B  in/sales.csv  {folder}/sales.csv\n" in done.stdout and "3 B  n.txt  made\n" in done.stdout
    assert "open('n.txt', 'w').write('new')\n" in done.stdout and "  :add FILE[:PATH]   " in done.stdout
    assert (folder / "out/deep/n.txt").read_text() == "new", done.stderr
    assert (folder / "out/deep/n.txt").stat().st_uid == engine.cupel.uid
    assert "saved out/deep/n.txt" in done.stderr and not (folder / "out/n.txt").exists()
    assert done.stderr.count("there is no answer yet") == 2 and "unknown command ':bogus'" in done.stderr
    assert "did you mean :undo?" in done.stderr and "takes no operand, but got 'not'" in done.stderr
    assert done.stderr.count("':add' needs the name of a file") == 2
    assert "':save' needs the name of a folder" in done.stderr


def test_why_shows_the_lines_behind_the_last_answer(engine, folder):
    (folder / "sales.csv").write_text(TABLE)
    done = chat(engine, script(folder, TOTAL, TOTAL), "What is the total?\n:why\n", folder / "sales.csv")
    lines = r"  total = 12  data: sales.csv\n    cell 1:2     total = sum\(.*\n"
    assert re.search(lines, done.stderr) and done.stderr.count("cell 1:2") == 1, done.stderr
    done = chat(engine, script(folder, TOTAL), "What is the total?\n", "-q", "--why", folder / "sales.csv")
    assert re.fullmatch(r"values\n" + lines, done.stderr) and done.stdout == "The total is 12.\n"


def test_a_file_is_added_on_the_way(engine, place):
    folder = place.fresh("adding", 0o777)
    (folder / "more sales.csv").write_text(TABLE)
    text = f"{ASKED}\n:add none.csv\n:add more sales.csv:sales.csv\n:add more sales.csv:sales.csv\n:files\nThe total?\n"
    done = chat(engine, script(folder, FIRST, TOTAL), text, cwd=folder)
    assert done.returncode == 0 and done.stdout.endswith("The total is 12.\n"), done.stderr
    assert f"24 B  sales.csv  {folder}/more sales.csv\n" in done.stdout
    assert "the next question has sales.csv" in done.stderr and "none.csv" in done.stderr
    assert done.stderr.count("the next question has") == 1  # the second is the same name again
    assert "data: sales.csv" in done.stderr


def test_root_adds_and_saves_below_its_folder_and_nowhere_else(engines, place):
    if "root" not in engines:
        pytest.skip("needs root")
    engine, folder, other = engines["root"], place.fresh("private", 0o700), place.fresh("elsewhere", 0o700)
    for path in (folder / "sales.csv", folder / "secret.csv", other / "sales.csv"):
        path.write_text(TABLE)
        path.chmod(0o600)
    (folder / "link.csv").symlink_to(other / "sales.csv")
    models = place.fresh("models", 0o755)
    made = cell("open('n.txt', 'w').write('new')\nanswer('It is {x}.', x=6 * 7)")
    text = f":add {other}/sales.csv\n:add link.csv\n:add ../{other.name}/sales.csv\n:add sales.csv\n" \
           f":add {folder}/secret.csv\n{ASKED}\n:save {other}/out\n:save ../{other.name}/out\n:save {folder}/made/\n"
    done = chat(engine, script(models, made), text, cwd=folder)
    assert done.stderr.count("hint: as root ':add' opens files below") == 3, done.stderr
    assert re.findall(r"the next question has (.*)", done.stderr) == ["sales.csv", "secret.csv"]
    assert not (other / "out").exists() and "begin with -o DIR" in done.stderr
    assert (folder / "made/n.txt").read_text() == "new" and (folder / "made/n.txt").stat().st_uid == 0


def test_a_chat_goes_on_later_without_what_was_taken_back(engine, place):
    folder = place.fresh("later", 0o777)
    for name in ("sales.csv", "more.csv"):
        (folder / name).write_text(TABLE)
    first = chat(engine, script(folder, TOTAL, cell("total = total + total\nanswer('{t}', t=total)")),
                 "The total?\n:add more.csv\nTwice?\n:undo\n", "sales.csv", cwd=folder)
    task = re.search(r"cupel chat --continue (t_[0-9a-f]{24}) goes on", first.stderr)[1]
    if "not kept" in first.stderr:
        pytest.skip("questions are not kept for this user")
    half = cell("answer('Half of {t} is {h}.', t=total, h=total / 2)")
    done = chat(engine, script(folder, half, cell("rows = len(list(open('more.csv')))\nanswer('{n}', n=rows)")),
                f"{HALF}\nHow many lines are there?\n", "--continue", task)
    assert done.stdout == "Half of 12 is 6.\n3\n", done.stderr
    assert f"--continue {task} goes on" in done.stderr
    shown = engine.cupel.run(["ask", "--show", task, "--json", "-q"], env=engine.use())
    assert json.loads(shown.stdout)["answer"] == "3"


def test_files_are_saved_after_each_question(engine, place):
    out = place.fresh("out", 0o700, engine.cupel.uid if engine.cupel.switch else None)
    made = [cell(f"open('{name}', 'w').write('new')\nanswer('It is {{x}}.', x=6 * 7)") for name in ("a", "b")]
    chat(engine, script(place.fresh(), *made), f"{ASKED}\n{ASKED}\n", "-o", out)
    assert sorted(path.name for path in out.iterdir()) == ["a", "b"]


# At a terminal.

class Prompt(Terminal):
    command, prompt = "chat", "> "


def prompt(engine, folder, *replies, **options):
    return Prompt(engine, "--judge", "off", "--model", script(folder, *replies), **options)


def test_a_person_asks_and_sees_the_model_write(engine, folder):
    with prompt(engine, folder, FIRST, SECOND) as one:
        one.type(ASKED + "\r")
        seen = one.expect("computed: ")
        assert "Let me compute it.\r\n```python\r\nx = 6 * 7" in seen and "\r\nIt is 42.\r\n" in seen
        assert seen.count("x = 6 * 7") == 1 and seen.count(ASKED) == 1  # neither is drawn again
        one.expect("> ")
        one.enter(HALF, "Half of it is 21.")
        one.enter(":w\t\r", "cell 2:1")
        one.type("\x1b[A\x1b[A\x1b[A")  # the history
        one.expect(ASKED)
        one.type("\x03")
        one.expect("> ")
        one.type("\x04")
        assert one.child.wait(timeout=20) == 0


def test_ctrl_c_stops_the_question_and_not_the_chat(engine, folder):
    with prompt(engine, folder, FIRST, SLEEP, SECOND) as one:
        one.enter(ASKED, "It is 42.")
        one.type("Wait\r")
        one.expect("| begun")
        one.type("\x03")
        one.expect("cancelled")
        one.expect("> ")
        one.enter(HALF, "Half of it is 21.")
    assert host.wait_until(lambda: not alive(engine), 10)


def test_a_term_signal_ends_it(engine, folder):
    with prompt(engine, folder, SLEEP) as one:
        one.type("Wait\r")
        one.expect("| begun")
        one.child.send_signal(signal.SIGTERM)
        assert one.child.wait(timeout=30) == 128 + signal.SIGTERM
    assert host.wait_until(lambda: not alive(engine), 10)


def test_a_paste_of_lines_is_one_question(engine, folder):
    with prompt(engine, folder, FIRST) as one:
        one.paste("What is\n6 times 7?")
        one.enter("", "It is 42.")


@pytest.mark.parametrize("keys,says", [("42\r", "You say 42."), ("\x04", "You say nothing.")], ids=["reply", "nobody"])
def test_the_model_asks_back(engine, folder, keys, says):
    program = folder / "model"
    ask, say = cell("ask_user('Which number?')"), cell("answer('You say {w}.', w=WORD)")
    program.write_text("#!/usr/bin/python3\nimport json, sys\ntold = json.dumps(json.load(sys.stdin)['messages'][-1])\n"
                       "word = '42' if 'The user replies: 42' in told else 'nothing' if 'Nobody can' in told else ''\n"
                       f"ask, say = {ask!r}, {say!r}\n"
                       "print(json.dumps({'text': say.replace('WORD', repr(word)) if word else ask}))\n")
    program.chmod(0o755)
    with Prompt(engine, "--judge", "off", "--max-steps", "3", "--model", f"exec:{program}") as one:
        one.type("Which number do I like?\r")
        one.expect("the model asks: Which number?\r\nreply: ")
        one.type(keys)
        one.expect(says)
        one.expect("> ")
        assert os.isatty(one.fd)


def test_streamed_text_does_not_drive_the_terminal(engine, folder):
    with prompt(engine, folder, cell("answer('It is {x}.', x=6 * 7)", before=f"Say {EVIL} it.")) as one:
        one.type(ASKED + "\r")
        seen = one.expect("It is 42.")
        drawn = seen[seen.index("Say"):]
        assert "\\x1b]0;owned\\x07\\x1b[2J" in drawn
        assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1a\x7f-\x9f]", drawn.replace("\x1b[K", "")), drawn
