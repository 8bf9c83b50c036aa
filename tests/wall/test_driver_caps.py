"""What a box may say over its channel is capped in every direction."""
import json

import pytest

SAY = """
import fcntl, json, os, stat, sys
def is_words(fd):
    try:
        return stat.S_ISFIFO(os.fstat(fd).st_mode) and fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY
    except OSError:
        return False
words = next(fd for fd in range(3, 1024) if is_words(fd))
# In a session every line has the nonce of its cell, which code in the same interpreter can find.
frame = sys._getframe()
while 'words_id' not in frame.f_globals:
    frame = frame.f_back
nonce = frame.f_globals['mark'][9:41]
def say(line):
    text = json.dumps({'nonce': nonce, **line}).encode() + b'\\n'
    while text:
        text = text[os.write(words, text):]
def result(value, kind='text/plain'):
    say({'op': 'result', 'data': {kind: value}})
"""
ENDING = "\nos._exit(0)"


def results(cupel, code, **fields):
    answer = cupel.run_json(SAY + code + ENDING, **fields)
    assert answer["status"] == "ok", answer["error"]
    return answer["results"], answer


def test_an_honest_result_arrives(cupel_as):
    """The positive control: the channel is open to whoever writes its form."""
    found, _ = results(cupel_as, "result('mine')")
    assert found == [{"text/plain": "mine"}]


def test_no_more_results_than_the_cap(cupel):
    found, _ = results(cupel, "for n in range(400): result(str(n))")
    assert len(found) == 256


def test_a_line_over_the_cap_makes_us_deaf(cupel):
    found, answer = results(cupel, "result('before')\nresult('x' * (17 << 20))\nresult('after')")
    assert found == [{"text/plain": "before"}]
    assert len(answer.process.stdout) < 1 << 20


def test_all_lines_together_have_a_cap(cupel):
    found, answer = results(cupel, "for n in range(8): result('x' * (15 << 20))",
                            limits={"timeout_s": 30, "cpu_s": 30})
    assert len(found) <= 4 and len(answer.process.stdout) < 65 << 20


def test_the_text_of_an_error_has_a_cap(cupel):
    code = "say({'op': 'error', 'kind': 'exception', 'name': 'E', 'message': 'm' * (1 << 20), " \
           "'traceback': 't' * (1 << 20)})\nos._exit(1)"
    answer = cupel.run_json(SAY + code)
    assert len(answer["error"]["message"]) <= 64 << 10
    assert len(answer["error"]["traceback"]) <= 64 << 10


@pytest.mark.parametrize("data", [
    {"image/png": "<script>"}, {"text/html": 5}, {"no type": "x"}, {"TEXT/PLAIN": "x"},
    {"text/": "x"}, {"a" * 200 + "/b": "x"}, {f"text/x-{n}": "x" for n in range(17)}, {"text/x+json": {}}, {}])
def test_a_bundle_that_is_not_as_agreed_is_dropped(cupel, data):
    found, _ = results(cupel, f"say({{'op': 'result', 'data': json.loads({json.dumps(data)!r})}})\n"
                              "result('good')")
    assert found == [{"text/plain": "good"}]


def test_ids_and_updates_have_a_form_and_a_maximum(cupel):
    code = """
def shown(text, **more): say({'op': 'result', 'data': {'text/plain': text}, **more})
shown('one', display_id='i'); shown('two', display_id='i'); shown('new', display_id='i', update=True)
for wrong in ({'display_id': 'x' * 201}, {'display_id': ''}, {'display_id': 5}, {'update': True}, {'metadata': []}):
    shown('wrong', **wrong)
shown('big', display_id='b')
for _ in range(100): shown('x' * (1 << 20), display_id='i', update=True)
"""
    found, answer = results(cupel, code, limits={"timeout_s": 30, "cpu_s": 30})
    assert [len(row["text/plain"]) for row in found] == [1 << 20, 1 << 20, 3] and len(answer.process.stdout) < 5 << 20
    found, _ = results(cupel, "for n in range(300): result(str(n))\nsay({'op': 'clear'})\nresult('last')")
    assert found == [{"text/plain": "last"}]


def test_forbidden_calls_are_reported_so_often_and_no_more(cupel):
    code = "import ctypes, errno\nc = ctypes.CDLL(None, use_errno=True)\nfor _ in range(100):\n" \
           " c.syscall(101, 0, 0, 0, 0)\n print(errno.errorcode[ctypes.get_errno()])"
    result = cupel.run_json(code)
    denied, errors = result["denied"], result["stdout"].split()
    assert errors == ["EPERM"] * 16 + ["ENOSYS"] * 84, errors
    assert [row["call"] for row in denied] == ["ptrace"] and denied[0]["count"] == 16, denied
