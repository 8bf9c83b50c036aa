"""A cell that asks for input, and a client that answers (docs/protocol.md)."""
import time

import pytest

import host
from sessions import Session


@pytest.fixture
def engine(engines):
    return engines.first()


@pytest.fixture
def session(client):
    one = Session(client, request={"limits": {"timeout_s": 20}})
    yield one
    one.ask("end")


def start(session, code, **fields):
    frame = {"op": "run", "id": "r", "events": True, "input": True}
    session.client.send({**frame, "request": {"session": session.id, "code": code}, **fields})


def until(session, event):
    """The frames up to an event, or to the result."""
    frames = []
    while True:
        frames.append(session.client.receive())
        if frames[-1].get("event") == event or "result" in frames[-1] or "error" in frames[-1]:
            return frames


def answer(session, **fields):
    session.client.send({"op": "input", "id": "r", **fields})


def result_of(session):
    return until(session, "never")[-1]["result"]


def test_input_waits_for_the_client(session):
    start(session, "a = input('name? ')\nb = input()\n(a, b)")
    frames = until(session, "input")
    assert frames[-2:] == [{"id": "r", "event": "stdout", "seq": 2, "text": "name? "},
                           {"id": "r", "event": "input", "seq": 3, "echo": True}]
    answer(session, text="ann\n")
    assert until(session, "input")[-1]["event"] == "input"
    answer(session, text="b é\n")
    assert result_of(session)["results"] == [{"text/plain": "('ann', 'b é')"}]


def test_the_end_of_input_is_an_eof_error(session):
    start(session, "input()")
    until(session, "input")
    answer(session, end=True)
    assert result_of(session)["error"]["name"] == "EOFError"


def test_a_secret_is_asked_for_without_echo(session):
    start(session, "from getpass import getpass\ngetpass('key: ')")
    assert until(session, "input")[-1]["echo"] is False
    answer(session, text="s3cret\n")
    assert result_of(session)["results"] == [{"text/plain": "'s3cret'"}]


def test_lines_can_be_read_in_every_way(session):
    start(session, "import sys\n[sys.stdin.readline(), sys.stdin.buffer.readline(), *sys.stdin]")
    for text in ("a\n", "b\n", "c\n", "no newline"):
        assert until(session, "input")[-1]["event"] == "input"
        answer(session, text=text)
    until(session, "input")
    answer(session, end=True)
    frames = until(session, "input")
    while "result" not in frames[-1]:
        answer(session, end=True)
        frames = until(session, "input")
    assert frames[-1]["result"]["results"] == [{"text/plain": "['a\\n', b'b\\n', 'c\\n', 'no newline']"}]


def test_an_answer_that_nobody_asked_for_is_refused(session):
    start(session, "import time; time.sleep(0.5); input()")
    answer(session, text="early\n")
    refused = until(session, "input")[-1]
    assert refused["error"]["kind"] == "absent" and "id" not in refused
    until(session, "input")
    answer(session, text="right\n")
    answer(session, text="twice\n")
    frames = until(session, "never")
    refusals = int("error" in frames[-1])  # of "twice": before the result or after it
    if refusals:
        frames = until(session, "never")
    assert frames[-1]["result"]["results"] == [{"text/plain": "'right'"}]
    answer(session, text="late\n")
    for _ in range(2 - refusals):
        assert session.client.receive()["error"]["kind"] == "absent"
    for wrong in ({}, {"text": "a", "end": True}, {"text": 5}, {"end": False}, {"text": "x" * 65537}, {"end": 1}):
        answer(session, **wrong)
        assert session.client.receive()["error"]["field"] in ("text", "end"), wrong


def test_an_interrupted_question_is_over_and_its_answer_is_not_the_next_ones(session):
    start(session, "import time\ntry:\n    input()\n    time.sleep(9)\nexcept KeyboardInterrupt:\n    pass\n"
          "try:\n    time.sleep(0.6)  # an interrupt is sent twice\nexcept KeyboardInterrupt:\n    pass\n"
          "print('again', flush=True)\ninput()")
    until(session, "input")
    session.client.send({"op": "interrupt", "id": "r"})
    while session.client.receive().get("text") != "again\n":
        pass
    time.sleep(0.3 * host.slowness())  # the second question is there, and takes the first one's place
    answer(session, text="second\n")
    assert result_of(session)["results"] == [{"text/plain": "'second'"}]
    start(session, "input()")
    until(session, "input")
    session.client.send({"op": "interrupt", "id": "r"})
    assert result_of(session)["status"] == "interrupted"
    assert session.value("1 + 1") == "2"


def test_threads_children_and_other_clients_find_no_input(session):
    start(session, "import os, subprocess, sys, threading\nfound = []\n"
          "thread = threading.Thread(target=lambda: found.append(sys.stdin.readline()))\n"
          "thread.start(); thread.join()\n"
          "found.append(subprocess.run(['cat'], capture_output=True).stdout)\n"
          "pid = os.fork()\nif not pid: os._exit(len(sys.stdin.readline()))\n"
          "found += [os.waitpid(pid, 0)[1], os.read(0, 9)]; found")
    assert result_of(session)["results"] == [{"text/plain": "['', b'', 0, b'']"}]
    assert session.run("input()")["error"]["name"] == "EOFError"
    start(session, "input()", input=False)
    assert result_of(session)["error"]["name"] == "EOFError"


def test_questions_that_nobody_answers_are_few_events(session):
    """A box says what it likes on its channel: the client hears of two questions for one answer at most."""
    start(session, "import os, sys\nknown = sys._getframe(1).f_globals\nfor n in range(1, 6000):\n"
          "    echo = 'true' if n % 2 else 'false'\n"
          "    line = '{%s\"op\":\"input\",\"number\":%d,\"echo\":%s}\\n' % (known['mark'], n, echo)\n"
          "    os.write(known['words'], line.encode())\n1")
    frames = until(session, "never")
    assert 1 <= sum(frame.get("event") == "input" for frame in frames) <= 2
    assert frames[-1]["result"]["status"] == "ok"
    assert session.value("1 + 1") == "2"


def test_a_stdin_that_is_given_is_read_and_nobody_is_asked(session):
    start(session, "input()")
    until(session, "input")
    answer(session, text="x\n")
    result_of(session)
    session.client.send({"op": "run", "id": "r", "events": True, "input": True,
                         "request": {"session": session.id, "code": "input()", "stdin": "given\n"}})
    assert result_of(session)["results"] == [{"text/plain": "'given'"}]
