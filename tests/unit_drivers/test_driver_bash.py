"""The Bash driver on its own: what it tells the engine, and that scripts do not notice it."""
import pytest

from driver_box import run


def bash(code, **options):
    return run("bash", code, **options)


def test_a_script_and_its_arguments():
    outcome = bash('echo "$0 $1 $# $LINENO"; read line; echo "$line"', args=["ä b", "c"], stdin="in\n")
    assert (outcome.stdout, outcome.stderr, outcome.code, outcome.frames) == (
        "main.sh ä b 2 1\nin\n", "", 0, [])


@pytest.mark.parametrize("code, line, status", [
    ("echo a\nfalse", 2, 1), ("set -e\n\nls /nope\necho never", 3, 2), ("nope_nope", 1, 127),
    ("f() {\n  false\n}\nset -e\nf\n", 2, 1), ("true | (exit 4)", 1, 4),
    ("set -eo pipefail\n(exit 5) | true", 2, 5), ("false\ncd /nope", 2, 1)])
def test_the_line_of_the_last_failing_command(code, line, status):
    outcome = bash(code)
    assert outcome.all("fail")[-1] == {"op": "fail", "line": line, "code": status}
    assert outcome.code == status


def test_tested_commands_and_exits_are_no_failures():
    outcome = bash("if false; then :; fi\nfalse || true\n! true\nwhile false; do :; done\nexit 7")
    assert outcome.frames == [] and outcome.code == 7


def test_a_sourced_file_has_no_lines_of_ours():
    outcome = bash("\n\n\nsource ./lib.sh\ntrue", files={"lib.sh": "false\ntrue\n"})
    assert outcome.frames == []


@pytest.mark.parametrize("code, line, message", [
    ("echo a\nif true; then\n echo b\n", 4, "syntax error: unexpected end of file"),
    ("for i in ) do", 1, "syntax error near unexpected token `)'"),
    ("echo '日本' \"\\\" )", 1, "unexpected EOF while looking for matching `\"'")])
def test_syntax_errors_run_nothing(code, line, message):
    outcome = bash(code)
    error = outcome.error
    assert (error["kind"], error["line"], error["message"]) == ("syntax", line, message)
    assert (outcome.code, outcome.stdout, outcome.stderr) == (2, "", "")
    assert "/lib/" not in error["traceback"]


def test_syntax_error_around_bytes_that_are_no_text(tmp_path):
    outcome = bash("printf '\udcff' )".encode("utf-8", "surrogateescape").decode("latin-1"))
    assert outcome.error["kind"] == "syntax"


def test_extglob_that_the_code_turns_on_is_no_syntax_error():
    assert bash("shopt -s extglob\ntouch a b\necho !(a)").stdout == "b\n"


def test_status_and_pipe_status_survive_the_trap():
    outcome = bash("(exit 3)\necho $?\nfalse | true | (exit 2)\necho ${PIPESTATUS[@]}")
    assert outcome.stdout == "3\n1 0 2\n" and outcome.all("fail")[-1]["line"] == 3


def test_tracing_shows_only_the_code():
    assert bash("set -x\nfalse\ntrue").stderr == "+ false\n+ true\n"


def test_own_traps_work_as_usual():
    outcome = bash("trap 'echo err $LINENO' ERR\nf() { false; true; }\nf\nfalse")
    assert outcome.stdout == "err 4\n"
    outcome = bash("set -E\ntrap 'echo err $LINENO' ERR\nf() {\n false; true; }\nf")
    assert outcome.stdout == "err 4\n"
    outcome = bash("trap 'echo bye $?' EXIT\nset -eu\necho $nope")
    assert outcome.stdout == "bye 1\n" and outcome.code == 1
    assert bash("trap 'echo dbg' DEBUG\ntrue").stdout == "dbg\n"


def test_nothing_of_the_driver_is_in_sight():
    outcome = bash("set; declare -F; env; echo \"BASH_ENV=$BASH_ENV-\"; bash -c 'echo $BASH_ENV$0'")
    assert "cupel_driver" not in outcome.stdout and "BASH_ENV=-" in outcome.stdout
    assert outcome.stdout.endswith("\nbash\n")


def test_the_channel_is_out_of_the_way():
    outcome = bash("exec 3>out 4>&1\necho x >&3\nfalse\nls /nope 2>&4\ntrue")
    assert outcome.work == {"out": b"x\n"} and len(outcome.all("fail")) == 2
    outcome = bash("exec 250>&-\nfalse\necho on")
    assert (outcome.stdout, outcome.stderr, outcome.frames) == ("on\n", "", [])


def test_few_open_files_are_enough(tmp_path):
    outcome = bash("echo x\nfalse", argv=["/bin/bash", "-c", "ulimit -n 64; exec /bin/bash \"$0\"",
                                          "{home}/main.sh"], env={"BASH_ENV": ""})
    assert outcome.stdout == "x\n"


def test_subshells_substitutions_and_functions():
    outcome = bash("x=$(false)\necho \"<$x>\"\n( exit 3 )\necho $?\nf() { return 4; }\nf\necho $?")
    assert outcome.stdout == "<>\n3\n4\n" and outcome.all("fail")[-1]["line"] == 6
